"""Functions that derivatives do not look into: called for values, by their rules else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcalc as tc
import tcalc.autograd as ag
import tcalc.numpy as tnp
from tcalc.autograd.extend import (
    def_linear,
    defjvp,
    defjvp_argnum,
    defvjp,
    defvjp_argnum,
    defvjp_argnums,
    primitive,
)
from tcalc.autograd.fixed_points import fixed_point
from tcalc.autograd.test_util import check_grads
from tcalc.calculus.black_boxes import PULLBACKS, black_box

RNG = np.random.default_rng(3)
A, B, C = RNG.normal(size=(3, 4)), RNG.normal(size=(4, 2)), RNG.normal(size=(5, 3, 4))


def product_vjp(ans: Any, a: Any, b: Any) -> Callable[[Any], Any]:
    return lambda u: u @ b.T


def product() -> Any:
    """A matrix product, by rules that are stated one by one."""

    @primitive
    def times(a: Any, b: Any) -> Any:
        out = np.zeros((a.shape[0], b.shape[1]))
        for k in range(a.shape[1]):
            out += np.outer(a[:, k], b[k])  # nothing that could be traced
        return out

    defvjp(times, product_vjp, lambda ans, a, b: lambda u: a.T @ u)
    return times


def by_number() -> Any:
    times = product()
    rules = (product_vjp, lambda ans, a, b: lambda u: a.T @ u)
    defvjp_argnum(times, lambda k, ans, args, options: rules[k](ans, *args))
    return times


def by_numbers() -> Any:
    times = product()
    rules = (product_vjp, lambda ans, a, b: lambda u: a.T @ u)
    defvjp_argnums(
        times, lambda ks, ans, args, options: lambda u: [rules[k](ans, *args)(u) for k in ks]
    )
    return times


def with_pushforwards() -> Any:
    times = product()
    defjvp(times, "same", lambda v, ans, a, b: a @ v)
    return times


def with_pushforwards_by_number() -> Any:
    times = product()
    defjvp_argnum(times, lambda k, v, ans, args, options: v @ args[1] if not k else args[0] @ v)
    return times


def linear() -> Any:
    times = product()
    def_linear(times)
    return times


WAYS = [product, by_number, by_numbers, with_pushforwards, with_pushforwards_by_number, linear]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("backend", ["numpy", "c", "functional"])
def test_derivatives_of_all_orders_modes_and_back_ends_are_those_of_the_rules(
    way: Any, backend: str
) -> None:
    times = way()
    a, b = tc.var("a", A.shape), tc.var("b", B.shape)
    e, wanted = tc.sum(tc.sin(times(a, b)) ** 2), tc.sum(tc.sin(a @ b) ** 2)
    for mode in ("forward", "reverse", "cross-country", "auto"):
        for wrt in (("a",), ("b",), ("a", "a"), ("a", "b")):
            found, right = e, wanted
            for name in wrt:
                found, right = (tc.derivative(f, name, mode=mode) for f in (found, right))
            found = tc.compile(found, backend=backend)(a=A, b=B)
            np.testing.assert_allclose(found, right(a=A, b=B), atol=1e-10)


@pytest.mark.parametrize("way", WAYS)
def test_batches_and_their_derivatives(way: Any) -> None:
    times = way()

    def one(a: Any, b: Any) -> Any:
        return tnp.sum(tnp.tanh(times(a, b)))

    def plain(a: Any, b: Any) -> Any:
        return tnp.sum(tnp.tanh(a @ b))

    for transform in (lambda f: f, tc.grad, tc.hessian):
        found, wanted = (tc.vmap(transform(f), (0, None))(C, B) for f in (one, plain))
        np.testing.assert_allclose(found, wanted, atol=1e-12)
    found, wanted = (tc.jacobian(tc.vmap(tc.grad(f), (0, None)))(C, B) for f in (one, plain))
    np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_arrays_go_through_and_expressions_are_one_node() -> None:
    times = product()
    np.testing.assert_allclose(times(A, B), A @ B)
    a = tc.var("a", A.shape)
    assert str(times(a, tc.const(B))).startswith("times(a, ")
    assert tc.to_latex(times(a, a.T)) == r"\operatorname{times}(a, a^{\top})"
    assert times(a, a.T) is times(a, a.T)
    with pytest.raises(tc.UnsupportedError, match="no NumPy source for times"):
        tc.to_code(times(a, a.T), "numpy")


def test_what_is_no_expression_is_as_current_as_in_python() -> None:
    @primitive
    def weighted(x: Any, options: dict[str, Any], *, power: int = 1) -> Any:
        return options["weights"] * x**power

    defvjp(
        weighted, lambda ans, x, options, power=1: (
            lambda u: u * options["weights"] * power * x ** (power - 1)
        ),
    )  # fmt: skip
    weights = np.array([1.0, 2.0, 3.0])
    derived = tc.grad(lambda x: tnp.sum(weighted(x, {"weights": weights}, power=2)))
    np.testing.assert_allclose(derived(np.ones(3)), 2 * weights)
    weights[0] = 7.0
    np.testing.assert_allclose(derived(np.ones(3)), 2 * weights)
    # numbers are told apart by their types as well: 1 and True, 1 and 1.0
    x = tc.var("x", 3)
    several = [weighted(x, {"weights": w}) for w in (1, 1.0, True, 2)]
    assert len({id(e) for e in several}) == 4
    assert weighted(x, {"weights": 1}) is weighted(x, {"weights": 1})


def test_nests_of_expressions_are_arguments() -> None:
    @primitive
    def total(nest: dict[str, Any]) -> Any:
        return np.sum(nest["a"]) * nest["b"][0]

    defvjp(
        total, lambda ans, nest: lambda u: {
            "a": tnp.full(np.shape(nest["a"]), u * nest["b"][0]), "b": (u * tnp.sum(nest["a"]),)
        },
    )  # fmt: skip
    check_grads(total, order=2)({"a": A, "b": (2.0,)})
    gradient = ag.grad(lambda y: total({"a": A, "b": (y,)}))(2.0)
    np.testing.assert_allclose(gradient, A.sum())


def test_refusals_say_what_is_missing() -> None:
    no_rules = primitive(lambda x: 2 * x)
    half = primitive(lambda x, y: x * y)
    defvjp(half, lambda ans, x, y: lambda u: u * y)
    x = tc.var("x", 3)
    for derive in (ag.grad(lambda x: tnp.sum(no_rules(x))), ag.deriv(no_rules)):
        with pytest.raises(NotImplementedError, match="no derivative by argument 0"):
            derive(A)
    with pytest.raises(NotImplementedError, match="no derivative by argument 1"):
        tc.grad(tc.sum(half(tc.const(A[0, :3]), x)), x)
    wrong = primitive(lambda x: x[:2])
    defvjp(wrong, lambda ans, x: lambda u: u)
    with pytest.raises(tc.ShapeError, match="vjp of function gives shape"):
        tc.grad(tc.sum(wrong(x)), x)
    with pytest.raises(tc.TraceError, match="state shape="):
        no_rules(tc.var("y", "n"))
    with pytest.raises(tc.TraceError, match=r"not positive definite.*state shape="):
        primitive(np.linalg.cholesky)(tc.var("S", (3, 3)))
    with pytest.raises(tc.TraceError, match="no array of real numbers, but str"):
        primitive(lambda x: "text")(x)
    varying = primitive(lambda x: x[x > 1])
    with pytest.raises(tc.ShapeError, match=r"gave shape \(3,\)"):
        varying(x)(x=[2.0, 2.0, 2.0])

    @primitive
    def writing(x: Any) -> Any:
        x[0] = 0.0
        return x

    with pytest.raises(tc.TraceError, match="read-only"):
        writing(x)
    with pytest.raises(tc.TraceError, match="positional"):
        writing(0.0, x=x)


def test_stated_shapes() -> None:
    factor = primitive(np.linalg.cholesky, shape=lambda s: s.shape)
    s = tc.var("s", (3, 3))
    data = A @ A.T
    np.testing.assert_allclose(factor(s)(s=data), np.linalg.cholesky(data))


@pytest.mark.parametrize("order", [1, 2, 3])
def test_fixed_points_are_differentiated_implicitly(order: int) -> None:
    def root(a: Any) -> Any:
        step: Any = lambda a: lambda x: 0.5 * (x + a / x)  # noqa: E731
        return fixed_point(step, a, 10.0, lambda x, y: abs(x - y), 1e-14)

    derived, wanted = root, tnp.sqrt
    for _ in range(order):
        derived, wanted = ag.grad(derived), ag.grad(wanted)
    np.testing.assert_allclose(derived(2.0), wanted(2.0), rtol=1e-9)


def test_fixed_points_of_vectors() -> None:
    M = 0.3 * RNG.normal(size=(4, 4)) / 4
    b = RNG.normal(size=4)

    def solution(given: Any) -> Any:
        def step(given: Any) -> Callable[[Any], Any]:
            m, c = given
            return lambda x: m @ x + c

        return fixed_point(
            step, given, np.zeros(4), lambda x, y: np.max(np.abs(x - y)), 1e-15
        )  # fmt: skip

    found = ag.grad(lambda given: tnp.sum(solution(given) ** 2))((M, b))
    wanted = ag.grad(
        lambda given: tnp.sum(tnp.linalg.solve(np.eye(4) - given[0], given[1]) ** 2)
    )((M, b))  # fmt: skip
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_extents_by_name_are_those_of_the_arrays() -> None:
    doubled = black_box(lambda v: 2 * v, shape=lambda v: v.shape)
    PULLBACKS[doubled] = lambda argnum, ans, args, options: lambda u: 2 * u
    x = tc.var("x", "n")
    e = tc.sum(doubled(x) ** 2)
    for n in (0, 1, 3):
        at = np.arange(1.0, n + 1)
        np.testing.assert_array_equal(doubled(x)(x=at), 2 * at)
        np.testing.assert_array_equal(tc.grad(e, x)(x=at), 8 * at)
