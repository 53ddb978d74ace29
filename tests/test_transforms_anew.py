"""Transforms made anew for every call, as in a loop of descent: what traces gave is found again."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.graph import trees
from tcalc.run import compiled

X = np.random.default_rng(0).normal(size=(20, 3))
W = np.array([0.1, -0.2, 0.3])


def loss(w: Any) -> Any:
    state = np.zeros(3)
    for row in X[:4]:
        state = np.tanh(state * w + row)
    return np.sum(state**2)


class Model:
    """A loss that is a method, of an object that changes."""

    def __init__(self, scale: float) -> None:
        self.scale = scale

    def loss(self, w: Any) -> Any:
        return self.scale * np.sum(w**3)


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is compiled from now on."""
    made: list[Any] = []
    init = compiled.Compiled.__init__

    def counted(self: Any, outputs: Any, *options: Any) -> None:
        made.append(outputs)
        init(self, outputs, *options)

    monkeypatch.setattr(compiled.Compiled, "__init__", counted)
    return made


ANEW: dict[str, Callable[[], Any]] = {
    "gradient": lambda: tc.grad(loss)(W),
    "by its position": lambda: tc.grad(loss, (0,))(W),
    "Hessian": lambda: tc.hessian(loss)(W),
    "third order": lambda: tc.derivative(loss, order=3)(W),
    "gradient of a gradient": lambda: tc.grad(lambda w: np.sum(tc.grad(loss)(w)))(W),
    "along a direction": lambda: tc.hvp(loss)(W, W),
    "batch": lambda: tc.vmap(tc.grad(loss))(X),
}


@pytest.mark.parametrize("name", ANEW)
def test_nothing_is_planned_twice(name: str, plans: list[Any]) -> None:
    first = ANEW[name]()
    planned = len(plans)
    again = ANEW[name]()
    if name != "gradient of a gradient":  # of a function that is another one each time
        assert len(plans) == planned
    for one, other in zip(trees.leaves(first), trees.leaves(again), strict=True):
        np.testing.assert_array_equal(one, other)


def test_options_tell_transforms_apart() -> None:
    def product(a: Any, b: Any) -> Any:
        return np.sum(a * b**2)

    a, b = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    np.testing.assert_allclose(tc.grad(product)(a, b), b**2)
    np.testing.assert_allclose(tc.grad(product, 1)(a, b), 2 * a * b)
    (pair,) = tc.grad(product, (1,))(a, b)
    np.testing.assert_allclose(pair, 2 * a * b)
    np.testing.assert_allclose(tc.derivative(product, 1, order=2)(a, b), np.diag(2 * a))
    np.testing.assert_allclose(tc.vmap(product, (0, None))(X[:, :2], b), X[:, :2] @ b**2)
    np.testing.assert_allclose(tc.vmap(product, (None, 0))(a, X[:, :2]), X[:, :2] ** 2 @ a)


def test_what_functions_read_may_change(plans: list[Any]) -> None:
    model, other = Model(2.0), Model(5.0)
    np.testing.assert_allclose(tc.grad(model.loss)(W), 6 * W**2)
    planned = len(plans)
    np.testing.assert_allclose(tc.grad(model.loss)(W), 6 * W**2)
    assert len(plans) == planned
    np.testing.assert_allclose(tc.grad(other.loss)(W), 15 * W**2)
    model.scale = 7.0
    np.testing.assert_allclose(tc.grad(model.loss)(W), 21 * W**2)


def test_functions_are_not_kept() -> None:
    def local(w: Any) -> Any:
        return np.sum(w**2)

    model = Model(1.0)
    watched = [weakref.ref(local), weakref.ref(model)]
    tc.grad(local)(W)
    tc.grad(model.loss)(W)
    del local, model
    gc.collect()
    assert [one() for one in watched] == [None, None]


def test_a_function_that_nothing_is_kept_with() -> None:
    class Unhashable:
        __hash__ = None  # type: ignore[assignment]

        def __call__(self, w: Any) -> Any:
            return np.sum(w**2)

    np.testing.assert_allclose(tc.grad(Unhashable())(W), 2 * W)


def test_a_function_that_derives_itself() -> None:
    def tower(x: Any, depth: int = 2) -> Any:
        return x**4 if depth == 0 else tc.grad(lambda t: tower(t, depth - 1))(x)

    assert tower(2.0) == 48
    assert tc.grad(tower)(2.0) == 48
