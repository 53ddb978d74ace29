"""NumPy's functions on dimensions that are names: rolled, flattened, merged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcalc as tc

RNG = np.random.default_rng(0)
A = RNG.normal(size=(3, 4))


@pytest.mark.parametrize("shift", [-7, -2, -1, 0, 1, 3, 5])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_rolls_of_named_extents_go_beyond_them(n: int, shift: int) -> None:
    y, at = tc.var("y", "n"), RNG.normal(size=n)
    e = np.roll(y, shift)
    np.testing.assert_array_equal(e(y=at), np.roll(at, shift))
    gradient = tc.grad(tc.sum(e * y**2), y)(y=at)
    np.testing.assert_allclose(gradient, 2 * at * np.roll(at, shift) + np.roll(at**2, -shift))


FLATTENED: list[Callable[[Any, Any], Any]] = [
    lambda X, y: np.cumsum(X),
    lambda X, y: np.take(X, [0, 5]),
    lambda X, y: np.roll(X, 4),
    lambda X, y: np.concatenate([X, y], axis=None),
    lambda X, y: np.outer(X, y),
    lambda X, y: np.sort(X, axis=None),
    lambda X, y: np.repeat(X, 2, axis=1),
    lambda X, y: np.tile(y, 3),
    lambda X, y: np.append(X, y),
    lambda X, y: np.kron(y, y),
    lambda X, y: np.diagonal(X) * np.trace(X, 1),
    lambda X, y: np.einsum("...i,i", X, y),
    lambda X, y: np.linalg.norm(X, axis=0, keepdims=True) * y,
    lambda X, y: X.flatten(),
]


@pytest.mark.parametrize("compute", FLATTENED)
def test_named_dimensions_are_merged_as_numbers_are(compute: Callable[[Any, Any], Any]) -> None:
    X, y = tc.var("X", ("m", "n")), tc.var("y", "n")
    data = {"X": A, "y": A[0]}
    np.testing.assert_allclose(compute(X, y)(data), compute(A, A[0]), rtol=1e-12)


def test_named_dimensions_keep_their_names() -> None:
    X, y = tc.var("X", ("m", "n")), tc.var("y", "n")
    assert np.vstack([X, y]).shape == ("m+1", "n")
    assert np.diff(y).shape == ("n-1",)
    assert np.tril(X).shape == np.sort(X).shape == np.cumprod(X, axis=1).shape == ("m", "n")
    assert np.eye(2, 3).shape == (2, 3)
    assert tc.eye("m", "n", 1)(m=2, n=3).tolist() == [[0, 1, 0], [0, 0, 1]]
    data = RNG.normal(size=(4, 3))
    np.testing.assert_allclose(np.var(X, axis=0, ddof=1)(X=data), np.var(data, axis=0, ddof=1))
    np.testing.assert_allclose(np.std(X, ddof=2)(X=data), np.std(data, ddof=2))
    np.testing.assert_allclose(np.tril(X, -1)(X=data), np.tril(data, -1))
    np.testing.assert_allclose(np.gradient(y)(y=data[:, 0]), np.gradient(data[:, 0]))
