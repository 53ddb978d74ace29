"""What few programs enter: lines of core layers that nothing else in these tests reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcalc as tc

x, y, c = tc.var("x", "n"), tc.var("y", "n"), tc.var("c")
X, S = tc.var("X", ("n", "n")), tc.var("S", ("n", "n"), symmetric=True)
DATA = np.array([0.5, -0.2, 0.7])
MATRIX = np.array([[2.0, 1, 0], [1, 3, 0.5], [0, 0.5, 1]])


def test_compressed_tensors_of_one_kind_add() -> None:
    one, other = (tc.compress(tc.hessian(e, x)) for e in (tc.sum(x**4), tc.sum(x * y) ** 2))
    wanted = np.diag(12 * DATA**2) + 2 * np.outer(DATA + 1, DATA + 1)
    values = {"x": DATA, "y": DATA + 1}
    solved = (one + other).solve(tc.var("b", "n"))(values, b=DATA)
    np.testing.assert_allclose(solved, np.linalg.solve(wanted, DATA))
    with pytest.raises(tc.ShapeError, match=r"of shapes \(n, n\) and \(n, n, n, n\) do not add"):
        one + tc.compress(tc.hessian(tc.sum(X**4), X))
    with pytest.raises(ValueError, match="over variables of other properties"):
        tc.compress(tc.hessian(tc.sum(X**4), X)) + tc.compress(tc.hessian(tc.sum(S**4), S))
    with pytest.raises(TypeError):
        one + 3  # type: ignore[operator]


@pytest.mark.parametrize(("g", "derived"), [
    (lambda t: t**2, lambda a: 2 * a), (lambda t: 3 * t, lambda a: 3 * np.eye(3)),
    (lambda t: t**2 / 2 + t, lambda a: a + np.eye(3)), (lambda t: 0 * t + 5, lambda a: 0 * a),
])  # fmt: skip
def test_polynomials_of_symmetric_matrices(g: Callable[..., Any], derived: Any) -> None:
    w, v = np.linalg.eigh(MATRIX)
    e = tc.linalg.matrix_function(S, g)
    np.testing.assert_allclose(e(S=MATRIX), (v * g(w)) @ v.T, atol=1e-12)
    trace = tc.trace(e)
    np.testing.assert_allclose(trace(S=MATRIX, n=3), g(w).sum(), rtol=1e-12)
    slope = tc.derivative(trace, S)
    np.testing.assert_allclose(slope(S=MATRIX, n=3), derived(MATRIX), atol=1e-12)


def test_directions_have_the_same_further_axes() -> None:
    with pytest.raises(tc.ShapeError, match="the same further axes"):
        tc.jvp(x * y, (x, y), (tc.ones(("n", 2)), tc.ones("n")))


def test_indefinite_and_singular_determinants() -> None:
    for sign in (1.0, -1.0):
        square = tc.hessian(sign * tc.sum(x) ** 2, x)
        found = tc.compile(square, structured=True)(x=DATA)
        assert found.slogdet() == (0.0, -np.inf)
