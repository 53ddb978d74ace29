"""Functions of arrays that are compiled: calls with arrays alone go straight to their plan."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcalc as tc

RNG = np.random.default_rng(5)


def f(w: Any, X: Any, s: Any) -> Any:
    return np.sum(np.exp(s * (X @ w)))


def slope(w: np.ndarray, X: np.ndarray, s: float) -> np.ndarray:
    found: np.ndarray = s * X.T @ np.exp(s * (X @ w))
    return found


def test_calls_of_the_same_and_of_other_shapes() -> None:
    g = tc.compile(tc.grad(f))
    for m, n, s in [(4, 3, 0.5), (4, 3, 0.25), (5, 2, 0.5), (4, 3, 2.0), (4, 3, 0.5)] * 2:
        w, X = RNG.normal(size=n), RNG.normal(size=(m, n))
        for scale in (s, np.array(s), np.float64(s)):
            np.testing.assert_allclose(g(w, X, scale), slope(w, X, s), rtol=1e-12)
    assert len(g._plain) == 2, "floats are arrays without axes"


def test_arguments_are_told_apart_by_their_place() -> None:
    def difference(a: Any, b: Any) -> Any:
        return np.sum(a * a - 3 * b)

    g = tc.compile(tc.grad(difference, (0, 1)))
    a, b = RNG.normal(size=3), RNG.normal(size=3)
    for one, two in [(a, a), (a, b), (b, b), (b, a)] * 2:
        by_a, by_b = g(one, two)
        np.testing.assert_allclose(by_a, 2 * one)
        np.testing.assert_allclose(by_b, [-3, -3, -3])


def test_numbers_that_a_trace_holds_for_are_not_arrays() -> None:
    g = tc.compile(tc.grad(lambda w, k: np.sum(w**k)))
    w = np.array([1.0, 2.0])
    for k in (2, 3, 2.0, 3, np.array(2.0)):
        np.testing.assert_allclose(g(w, k), k * w ** (float(k) - 1))


def test_dtypes_and_layouts_of_calls() -> None:
    g = tc.compile(tc.grad(f))
    w, X = RNG.normal(size=3), RNG.normal(size=(4, 3))
    for convert in (np.asarray, np.asfortranarray, np.float32, lambda a: a[..., None][..., 0]) * 2:
        found = g(convert(w), convert(X), convert(np.array(0.5)))
        assert found.dtype == convert(w).dtype
        np.testing.assert_allclose(found, slope(w, X, 0.5), rtol=1e-5)
    whole = g(np.array([1, 2, 3]), np.arange(12).reshape(4, 3), 0.01)
    np.testing.assert_allclose(whole, slope(np.array([1, 2, 3]), np.arange(12).reshape(4, 3), 0.01))


def test_directions_batches_and_functions_themselves() -> None:
    w, X, v = RNG.normal(size=3), RNG.normal(size=(4, 3)), RNG.normal(size=3)
    product = tc.compile(tc.hvp(f))
    batch = tc.compile(tc.vmap(f, in_axes=(None, 0, None)))
    value = tc.compile(f)
    for _ in range(3):
        second = X.T @ (np.exp(X @ w) * (X @ v))
        np.testing.assert_allclose(product(w, X, 1.0, v), second, rtol=1e-12)
        np.testing.assert_allclose(batch(w, X, 1.0), np.exp(X @ w), rtol=1e-12)
        np.testing.assert_allclose(value(w, X, 1.0), np.sum(np.exp(X @ w)), rtol=1e-12)


def test_errors_of_calls_are_those_of_the_first() -> None:
    g = tc.compile(tc.grad(f))
    w, X = RNG.normal(size=3), RNG.normal(size=(4, 3))
    for _ in range(2):
        g(w, X, 1.0)
        with pytest.raises(tc.Error):
            g(w, X.T, 1.0)
        with pytest.raises(TypeError, match="argument"):
            g(w, X)
        with pytest.raises(TypeError, match="masked"):
            g(np.ma.masked_array(w, [True, False, False]), X, 1.0)
        with pytest.raises(TypeError, match="real numbers"):
            g(w.astype(complex), X, 1.0)
