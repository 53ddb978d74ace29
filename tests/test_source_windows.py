"""Printed NumPy programs that sum over windows: filters, lags, and products of parts of windows."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.extents import extent_of
from tests.shared import run_source

LINE = tc.parse_index("y[i=0..n-p] = sum[k](w[k]*x[i+k])", x="n", w="p")
AREA = tc.parse_index(
    "y[i=0..m-p,j=0..n-q] = sum[k,l](w[k,l]*x[i+k,j+l])", x=("m", "n"), w=("p", "q")
)
DEEP = tc.parse_index(
    "y[o,i=0..m-p,j=0..n-q] = sum[c,k,l](w[o,c,k,l]*x[c,i+k,j+l])",
    x=("a", "m", "n"), w=("b", "a", "p", "q"),
)  # fmt: skip
SQUARED = tc.sum(LINE**2) / 2
CASES = {
    "a filter": LINE,
    "by what is filtered": tc.vjp(LINE, "x", tc.var("u", "n-p+1")),
    "by the filter": tc.vjp(LINE, "w", tc.var("u", "n-p+1")),
    "curvature in the filter": tc.hessian(SQUARED, "w"),
    "curvature in what is filtered": tc.hessian(SQUARED, "x"),
    "an image": AREA,
    "by the image": tc.vjp(AREA, "x", tc.var("u", ("m-p+1", "n-q+1"))),
    "by the mask": tc.vjp(AREA, "w", tc.var("u", ("m-p+1", "n-q+1"))),
    "curvature in the mask": tc.hessian(tc.sum(AREA**2), "w"),
    "channels": DEEP,
    "by their masks": tc.vjp(DEEP, "w", tc.var("u", ("b", "m-p+1", "n-q+1"))),
}
SIZES = [
    {"n": n, "m": m, "p": p, "q": q, "a": 2, "b": 3}
    for n, m, p, q in [(1, 1, 1, 1), (5, 4, 2, 3), (6, 6, 6, 6), (40, 30, 12, 3), (90, 20, 3, 20)]
]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s['n']} {s['p']}")
def test_sums_over_windows(name: str, size: dict[str, int]) -> None:
    e = CASES[name]
    rng = np.random.default_rng(1)
    data: dict[str, np.ndarray] = {}
    for v in e.variables.values():
        data[v.name] = rng.normal(size=[extent_of(n, size) for n in v.shape])
    found, expected = run_source(e, {**size, **data}), tc.compile(e, backend="numpy")(data)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


def naive(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    return np.array([sum(w * x[i : i + len(w)]) for i in range(len(x) - len(w) + 1)])


@pytest.mark.parametrize(("n", "p"), [*product((60, 3000), (1, 5, 12, 31, 60))])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_filters_of_all_lengths(n: int, p: int, dtype: type) -> None:
    rng = np.random.default_rng(p)
    data: dict[str, np.ndarray] = {
        "x": rng.normal(size=n).astype(dtype),
        "w": rng.normal(size=p).astype(dtype),
    }
    found = run_source(LINE, data)
    assert found.dtype == dtype
    limit = 1e-4 if dtype is np.float32 else 1e-11
    np.testing.assert_allclose(found, naive(data["x"], data["w"]), rtol=limit, atol=limit)
    by_filter = run_source(CASES["by the filter"], {**data, "u": found})
    np.testing.assert_allclose(by_filter, naive(data["x"], found), rtol=limit, atol=n * limit)


@pytest.mark.parametrize("wild", [np.inf, np.nan])
def test_what_is_not_finite_stays_where_it_is(wild: float) -> None:
    x, w = np.random.default_rng(0).normal(size=1000), np.ones(20)
    x[500] = wild
    with np.errstate(invalid="ignore"):
        found = run_source(LINE, {"x": x, "w": w})
    np.testing.assert_allclose(found, naive(x, w))
    assert np.isfinite(found).sum() == len(found) - 20


def test_lags_of_uneven_lines_keep_their_digits() -> None:
    """A difference of sums would lose small windows between large ones."""
    x = np.random.default_rng(0).normal(size=400)
    x[:200] *= 1e12
    x[200:] *= 1e-3
    hessian = run_source(CASES["curvature in the filter"], {"x": x, "w": np.ones(300)})
    windows = np.lib.stride_tricks.sliding_window_view(x, 101)
    np.testing.assert_allclose(hessian, windows @ windows.T, rtol=1e-12)


def test_windows_are_read_without_a_copy_of_them_all() -> None:
    assert "_correlate(_window(x, " in tc.to_code(LINE)
    assert "_correlate" not in tc.to_code(LINE, "jax")
