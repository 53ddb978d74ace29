"""The least gap of eigenvalues and singular values, in derivatives of vectors, as asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcalc as tc

la = tc.linalg
A = tc.var("A", ("n", "n"))

rng = np.random.default_rng(5)
Q, R = (np.linalg.qr(rng.normal(size=(4, 4)))[0] for _ in range(2))
#: Gaps of 1e-5, 1 and 1e-3: apart for LAPACK, and below, at and above what is asked for.
VALUES = np.array([1.0, 1 + 1e-5, 2 + 1e-5, 2 + 1e-5 + 1e-3])
DATA = (Q * VALUES) @ Q.T
LEAST = [1e-8, 1e-4, 0.01, 1, np.float32(0.25)]


def raised(gaps: np.ndarray, least: float) -> np.ndarray:
    """Gaps off the diagonal, raised to the least one; inf on the diagonal."""
    found = np.sign(gaps) * np.maximum(np.abs(gaps), least)
    np.fill_diagonal(found, np.inf)
    return found


def eigenvectors(a: np.ndarray, least: float) -> np.ndarray:
    """The Jacobian of the eigenvectors by perturbation theory, a direction after the other."""
    w, v = np.linalg.eigh(a)
    rates = 1 / raised(w[None, :] - w[:, None], least)
    found = np.zeros((4, 4, 4, 4))
    for k, m in np.ndindex(4, 4):
        direction = np.zeros((4, 4))
        direction[k, m] = 1
        found[:, :, k, m] = v @ (rates * (v.T @ ((direction + direction.T) / 2) @ v))
    return found


def left_vectors(a: np.ndarray, least: float) -> np.ndarray:
    """The same for the left singular vectors of a square matrix."""
    u, s, vh = np.linalg.svd(a)
    rates = s[None, :] / (raised(s[None, :] - s[:, None], least) * (s[None, :] + s[:, None]))
    found = np.zeros((4, 4, 4, 4))
    for k, m in np.ndindex(4, 4):
        p = np.outer(u[k], vh[:, m])
        found[:, :, k, m] = u @ (rates * p - (rates * p).T)
    return found


VECTORS = {
    "eigh": (lambda a, least: la.eigh(a, degenerate=least)[1], DATA, eigenvectors),
    "svd": (
        lambda a, least: la.svd(a, degenerate=least)[0],
        (Q * VALUES[::-1]) @ R,
        left_vectors,
    ),
}


@pytest.mark.parametrize("name", VECTORS)
@pytest.mark.parametrize("least", LEAST)
def test_gaps_are_raised_to_the_least_one_everywhere(name: str, least: Any) -> None:
    vectors, data, oracle = VECTORS[name]
    J = tc.jacobian(vectors(A, least), A)
    expected = oracle(data, float(least))
    close: dict[str, Any] = {"rtol": 1e-6, "atol": 1e-9 * np.abs(expected).max()}
    for backend in ("numpy", "functional", "c"):
        np.testing.assert_allclose(tc.compile(J, backend=backend)(A=data), expected, **close)
    scope: dict[str, Any] = {}
    exec(tc.to_code(J, "numpy"), scope)
    np.testing.assert_allclose(scope["f"](data), expected, **close)
    read = tc.parse(str(J), A=("n", "n"))
    np.testing.assert_allclose(read(A=data), expected, **close)
    # values are no matter of the gap
    plain = vectors(A, "raise")(A=data)
    np.testing.assert_array_equal(vectors(A, least)(A=data), plain)


@pytest.mark.parametrize("name", VECTORS)
def test_epsilon_is_a_name_of_a_size(name: str) -> None:
    vectors, _, _ = VECTORS[name]
    tied = (Q * [1.0, 1.0, 2.0, 2.0]) @ Q.T
    by_name, by_size = (tc.jacobian(vectors(A, kind), A) for kind in ("epsilon", 1e-10))
    expected = by_name(A=tied)
    np.testing.assert_allclose(by_size(A=tied), expected, atol=1e-14 * np.abs(expected).max())
    larger = tc.jacobian(vectors(A, 1e-3), A)(A=tied)
    assert 1e2 < np.abs(larger).max() < 1e4
    assert np.abs(expected).max() > 1e8


def test_singular_values_are_raised_too() -> None:
    B = tc.var("B", (5, 2))
    data = np.zeros((5, 2))
    data[0, 0] = 2.0
    found = tc.jacobian(la.svd(B, degenerate=0.01)[0], B)(B=data)
    assert np.isclose(np.abs(found).max(), 100)


@pytest.mark.parametrize("least", [1, np.int64(1), np.float32(1)])
def test_sizes_are_any_numbers(least: Any) -> None:
    B = tc.var("B", (3, 3))
    assert la.eigh(B, degenerate=least)[1] is la.eigh(B, degenerate=1.0)[1]


@pytest.mark.parametrize("function", [la.eigh, la.syevd, la.svd])
@pytest.mark.parametrize("wrong", [0, -1e-8, np.nan, np.inf, True, "eps", None, (1e-8,)])
def test_what_is_no_size_is_refused(function: Callable[..., Any], wrong: Any) -> None:
    with pytest.raises(ValueError, match="the least gap as a positive number"):
        function(A, degenerate=wrong)
