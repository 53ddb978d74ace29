"""A number's multiple of a derivative is the derivative of the multiple, and is written as such."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.nodes import Derivative

x, y = tc.var("x", "n"), tc.var("y", "n")
SCORE = tc.grad(tc.sum(tc.scipy.stats.poisson.logpmf(y, tc.exp(x))), x)
DATA = {"x": np.array([0.1, 0.2, -0.5]), "y": np.array([1.0, 4.0, 0.0])}
MULTIPLES: dict[str, tuple[Callable[[Any], Any], float, str]] = {
    "minus": (lambda g: -g, -1.0, "exp(x) - y"),
    "minus twice": (lambda g: -1 * -g, 1.0, "y - exp(x)"),
    "left": (lambda g: 2 * g, 2.0, "2*(y - exp(x))"),
    "right": (lambda g: g * 2, 2.0, "2*(y - exp(x))"),
    "over": (lambda g: g / 2, 0.5, "(y - exp(x))/2"),
}


@pytest.mark.parametrize("name", MULTIPLES)
def test_they_are_written_without_guards_and_derived_further(name: str) -> None:
    made, factor, text = MULTIPLES[name]
    found = made(SCORE)
    assert isinstance(found, Derivative)
    assert str(found) == text
    score = DATA["y"] - np.exp(DATA["x"])
    np.testing.assert_allclose(found(DATA), factor * score, rtol=1e-14)
    np.testing.assert_allclose(tc.compile(found)(**DATA), factor * score, rtol=1e-14)
    second = tc.jacobian(found, x)
    np.testing.assert_allclose(second(DATA), -factor * np.diag(np.exp(DATA["x"])), rtol=1e-14)
    assert pickle.loads(pickle.dumps(found)) is found


def test_they_are_projected_and_structured_as_derivatives_are() -> None:
    S = tc.var("S", ("n", "n"), symmetric=True)
    A = tc.var("A", ("n", "n"))
    found = -tc.grad(tc.trace(A @ S), S)
    values = np.arange(9.0).reshape(3, 3)
    np.testing.assert_allclose(found(A=values, S=np.eye(3)), -(values + values.T) / 2)
    h = tc.compile(-tc.hessian(tc.sum(tc.exp(x)), x), structured=True)(x=DATA["x"])
    assert h.cores[0].shape == (3,)
    np.testing.assert_allclose(h.todense(), -np.diag(np.exp(DATA["x"])))


def test_other_factors_make_no_derivative() -> None:
    for product in (y * SCORE, SCORE / y, SCORE + 1, 2 / SCORE):
        assert not isinstance(product, Derivative)
    assert str(0 * SCORE) == "vector(0, n)"
