"""What few programs enter, of plans: products of bound data, nests of data that are read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcalc as tc

RNG = np.random.default_rng(0)
X, w, y = tc.var("X", ("m", "n")), tc.var("w", "m"), tc.var("y", "n")


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("columns", [70, 64, 3])
def test_weighted_products_of_bound_data(dtype: Any, columns: int) -> None:
    """X' diag(w) X of data and weights that are bound: computed once, and the same at each call."""
    data = RNG.normal(size=(90, columns)).astype(dtype)
    weights = RNG.uniform(-1, 2, 90).astype(dtype)
    gram = tc.einsum("mi,mj,m->ij", X, X, w)
    f = tc.compile(
        {"gram": gram, "moved": gram @ y, "of": tc.einsum("mi,mj,m->ij", X, X, tc.exp(w)) * y},
        data={"X": data, "w": weights},
    )
    wide, wanted = data.astype(float), weights.astype(float)
    square = wide.T @ (wide * wanted[:, None])
    tolerance = 1e-11 if dtype is np.float64 else 1e-3
    for _ in range(3):
        v = RNG.normal(size=columns).astype(dtype)
        found = f(y=v)
        assert found["gram"].dtype == dtype
        np.testing.assert_allclose(found["gram"], square, rtol=tolerance, atol=tolerance)
        if columns >= 64:
            np.testing.assert_array_equal(found["gram"], found["gram"].T)
        np.testing.assert_allclose(found["moved"], square @ v, rtol=tolerance, atol=10 * tolerance)
        other = wide.T @ (wide * np.exp(wanted)[:, None]) * v
        np.testing.assert_allclose(found["of"], other, rtol=tolerance, atol=10 * tolerance)
        found["gram"][...] = np.nan  # what a caller gets is the caller's


def test_compiled_derivatives_read_nests() -> None:
    """A dict that is not derived by: its arrays are read at each call, its numbers too."""

    def f(x: Any, d: Any) -> Any:
        return np.sum(x**2 * d["a"]) * d["k"] + np.sum(x) * d["b"]["c"][0]

    slope = tc.compile(tc.grad(f))
    x = np.array([0.5, -0.2, 0.7])
    for a, k, c in [(x + 1, 2.0, 3.0), (x - 1, 2.0, 3.0), (x + 1, -1.0, 0.5), (x[::-1], 0.0, 1.0)]:
        found = slope(x, {"a": a, "k": k, "b": {"c": [c, 9.0]}})
        np.testing.assert_allclose(found, 2 * x * a * k + c)
    found = slope(x[:1], {"a": x[:1], "k": 1.0, "b": {"c": [x[0], 9.0]}})
    np.testing.assert_allclose(found, 2 * x[:1] ** 2 + x[0])
