"""Files written for autograd run with another import: its transforms, optimizers and checks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import autograd
import autograd.numpy as theirs
import numpy as np
import pytest
from autograd.misc import optimizers as their_optimizers

import tcalc as tc
import tcalc.autograd as ours
import tcalc.numpy as tnp
from tcalc.autograd import flattening, optimizers
from tcalc.autograd.extend import vspace
from tcalc.autograd.test_util import check_equivalent, check_grads, combo_check

X = np.array([0.3, -0.8, 1.4])
V = np.array([1.0, 0.5, -2.0])
U = np.array([[0.2, 1.0, -1.0], [3.0, 0.4, 0.1]])


def scalar(np: Any) -> Callable[..., Any]:
    return lambda x, c=2.0: np.sum(np.sin(x) * np.exp(c * x)) + np.prod(x)


def vector(np: Any) -> Callable[..., Any]:
    return lambda x, c=2.0: np.array([x[0] * x[1], np.tanh(c * x[2])])


def entries(np: Any) -> Callable[..., Any]:
    return lambda x: np.tanh(x) ** 2


#: A transform, as a function of a library's namespaces.
TRANSFORMS: list[Callable[[Any, Any], Any]] = [
    lambda ag, np: ag.grad(scalar(np))(X),
    lambda ag, np: ag.grad(scalar(np), 1)(X, 0.7),
    lambda ag, np: ag.value_and_grad(scalar(np))(X),
    lambda ag, np: ag.jacobian(vector(np))(X),
    lambda ag, np: ag.hessian(scalar(np))(X),
    lambda ag, np: ag.elementwise_grad(entries(np))(X),
    lambda ag, np: ag.elementwise_grad(ag.elementwise_grad(entries(np)))(X),
    lambda ag, np: ag.deriv(entries(np))(X),
    lambda ag, np: ag.grad_named(scalar(np), "c")(X, 0.7),
    lambda ag, np: ag.make_vjp(vector(np))(X)[0](V[:2]),
    lambda ag, np: ag.make_vjp(vector(np))(X)[1],
    lambda ag, np: ag.make_jvp(vector(np))(X)(V),
    lambda ag, np: ag.make_hvp(scalar(np))(X)[0](V),
    lambda ag, np: ag.hessian_vector_product(scalar(np))(X, V),
    lambda ag, np: ag.tensor_jacobian_product(vector(np))(X, V[:2]),
    lambda ag, np: ag.make_ggnvp(vector(np))(X)(V),
    lambda ag, np: ag.grad_and_aux(lambda x: (scalar(np)(x), x**2))(X),
    lambda ag, np: ag.checkpoint(vector(np))(X),
    lambda ag, np: ag.grad(lambda x: np.sum(x, keepdims=True) ** 2)(X),
    lambda ag, np: ag.hessian_vector_product(lambda x: np.sum(x**3, keepdims=True))(X, V),
    lambda ag, np: ag.grad(lambda p: p["a"] * np.sum(p["b"][0] ** 2))({"a": 2.0, "b": [X]})["b"][0],
]


def leaves(tree: Any) -> list[Any]:
    return [leaf for part in tree for leaf in leaves(part)] if isinstance(tree, tuple) else [tree]


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_transforms_give_what_autograd_gives(transform: Callable[[Any, Any], Any]) -> None:
    found, wanted = leaves(transform(ours, tnp)), leaves(transform(autograd, theirs))
    for one, other in zip(found, wanted, strict=True):
        assert np.shape(one) == np.shape(other)
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


def test_gradients_by_all_arguments_by_name() -> None:
    found = ours.multigrad_dict(lambda x, y=2.0: tnp.sum(x * y))(X)
    np.testing.assert_allclose(found["x"], np.full(3, 2.0))
    np.testing.assert_allclose(found["y"], X.sum())


@pytest.mark.parametrize("name", ["sgd", "rmsprop", "adam"])
def test_optimizers_take_autograds_steps(name: str) -> None:
    start = [X, {"b": U, "a": 0.5}]

    def gradient(p: Any, i: int) -> Any:
        return [2 * p[0] + i, {"b": p[1]["b"] ** 3, "a": p[1]["a"]}]

    seen: list[int] = []
    run = [getattr(module, name) for module in (optimizers, their_optimizers)]
    found = run[0](gradient, start, lambda x, i, g: seen.append(i), 30, 0.05)
    wanted = run[1](gradient, start, None, 30, 0.05)
    assert seen == list(range(30))
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-12)
    np.testing.assert_allclose(found[1]["b"], wanted[1]["b"], rtol=1e-12)


def test_flattening_goes_there_and_back() -> None:
    nest = {"b": [U, 2.0], "a": (X,)}
    flat, unflatten = flattening.flatten(nest)
    np.testing.assert_array_equal(flat, np.concatenate([X, U.ravel(), [2.0]]))
    back = unflatten(flat)
    np.testing.assert_array_equal(back["b"][0], U)
    assert isinstance(back["a"], tuple)
    func, _, start = flattening.flatten_func(lambda p: {"c": p["a"][0] * 2}, nest)
    np.testing.assert_array_equal(func(start), X * 2)
    gradient = tc.grad(lambda p: tc.sum(flattening.flatten(p)[0] ** 2))(nest)
    np.testing.assert_array_equal(gradient["b"][0], 2 * U)


def test_checks_of_gradients_see_wrong_ones() -> None:
    check_grads(lambda x, y: (tnp.sin(x) * y, x), (0, 1))(X, 2.0)
    combo_check(tnp.sum, 0)([X, U], axis=[None, 0], keepdims=[True, False])
    check_equivalent({"a": X}, {"a": X + 1e-9})
    with pytest.raises(AssertionError, match="shapes"):
        check_equivalent(X, U)

    def wrong(x: Any) -> Any:
        return tnp.sum(x * tc.stop_gradient(x) if ours.isbox(x) else x * x)

    for mode, said in (("fwd", "JVP"), ("rev", "VJP")):
        with pytest.raises(AssertionError, match=f"{said}.* check of wrong failed"):
            check_grads(wrong, modes=[mode])(X)


def test_cotangents_of_nests_are_summed() -> None:
    found = tc.vjp(lambda x: {"a": x**2, "b": (3 * x,)})(X, {"a": V, "b": (V,)})
    np.testing.assert_allclose(found, 2 * X * V + 3 * V)
    with pytest.raises(tc.TraceError, match="2 cotangents for 1"):
        tc.vjp(lambda x: x)(X, (V, V))


def test_spaces_of_nests_have_a_basis_and_a_product() -> None:
    like = {"a": (X, 2.0), "b": [U]}
    space = vspace(like)
    basis = list(space.standard_basis())
    assert space.size == len(basis) == X.size + 1 + U.size
    products = [[space.inner_prod(v, w) for w in basis] for v in basis]
    np.testing.assert_array_equal(products, np.eye(space.size))
    total = functools.reduce(space.add, basis)
    check_equivalent(total, space.ones())
    check_equivalent(
        space.add(space.zeros(), space.scalar_mul(total, 2.0)), space.add(total, total)
    )
    assert space == vspace(total) == vspace(space.randn())
    assert space != vspace((X, 2.0)) != vspace((X, U))


def test_functions_that_are_traced_once() -> None:
    calls = []

    def f(a: Any, x: Any, b: float) -> Any:
        calls.append(a)
        return a * tnp.sin(x) + b

    traced = ours.const_graph(f, 2.0, b=1.0)
    for x in (X, X + 1, X + 2):
        np.testing.assert_allclose(traced(x), 2 * np.sin(x) + 1)
    assert calls == [2.0]


def test_traced_values_are_instances_of_what_they_stand_for() -> None:
    def f(x: Any, n: Any) -> Any:
        assert ours.isinstance(x, np.ndarray)
        assert ours.isinstance(n, float)
        assert not ours.isinstance(x, (list, tuple, dict))
        assert ours.isinstance([x], list)
        return tnp.sum(x) * n

    assert ours.grad(f, 1)(X, 2.0) == X.sum()
