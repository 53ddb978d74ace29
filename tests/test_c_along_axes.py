"""Functions of entries that lie apart in memory, in C: windows, several axes, and long ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import tcalc as tc
from tcalc.backends.c.rows import REDUCTIONS, SHARES
from tests.test_c_by_vector import texts


def shares(x: Any, axis: Any) -> Any:
    hit = x == x.max(axis=axis, keepdims=True)
    return hit / hit.sum(axis=axis, keepdims=True)


#: Functions, with NumPy's or SciPy's.
ROWS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "max": (tc.max, np.max),
    "min": (tc.min, np.min),
    "prod": (tc.prod, np.prod),
    "norm": (tc.norm, lambda x, axis: np.sqrt((x * x).sum(axis))),
    "logsumexp": (tc.logsumexp, scipy.special.logsumexp),
    "hardmax": (tc.hardmax, shares),
    "hardmin": (tc.hardmin, lambda x, axis: shares(-x, axis)),
}
#: Shapes, what they are seen as, and axes: pooling, windows that are turned, one axis in the
#: middle, no axes before, extents of 1, and more entries than are put side by side at once.
PLACES: dict[str, tuple[tuple[int, ...], Callable[[Any], Any], tuple[int, ...]]] = {
    "pooled": ((3, 8, 6), lambda x: x.reshape(3, 4, 2, 3, 2), (2, 4)),
    "turned": ((6, 4, 5), lambda x: x.transpose(2, 0, 1), (0, 2)),
    "middle": ((5, 7, 2), lambda x: x, (1,)),
    "every other": ((12, 10), lambda x: x[::2, ::2], (0, 1)),
    "rows of every other": ((12, 10), lambda x: x[::2, ::2], (1,)),
    "single": ((1, 4, 1, 6), lambda x: x.reshape(1, 2, 2, 3, 2), (2, 4)),
    "many columns": ((4, 150, 2), lambda x: x, (0, 2)),
    "long": ((50, 3, 70), lambda x: x, (0, 2)),
    "too long for the stack": ((80, 3, 70), lambda x: x, (0, 2)),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", ROWS)
def test_entries_that_lie_apart(
    name: str, place: str, dtype: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    function, wanted = ROWS[name]
    shape, seen, axes = PLACES[place]
    written = texts(monkeypatch)
    step = tc.compile(function(seen(tc.var("x", shape)), axis=axes), backend="c")
    rng = np.random.default_rng(3)
    values = rng.integers(1, 9, size=shape).astype(dtype) / 8  # with ties
    special = values.copy()
    special.ravel()[:: max(values.size // 7, 1)] = np.nan
    for array in (values, np.asfortranarray(values), special):
        found = step(x=array)
        assert found.dtype == dtype
        with np.errstate(invalid="ignore"):
            expected = wanted(seen(array), axis=axes)
        bound = 200 * np.finfo(dtype).eps
        np.testing.assert_allclose(found, expected, rtol=bound, atol=1e-300)
    called = {**REDUCTIONS, **SHARES}[{"norm": "norm2"}.get(name, name)]
    assert any(called in text for text in written) is (place != "too long for the stack")


@pytest.mark.parametrize("threads", [1, 2])
def test_pooling_and_its_gradient_are_one_pass_each(threads: int) -> None:
    """Whoever shares the images: rows of windows are put side by side by every thread."""
    h = tc.var("h", (40, 3, 12, 12))
    pooled = tc.sum(h.reshape(40, 3, 6, 2, 6, 2).max(axis=(3, 5)) ** 2)
    values = np.random.default_rng(1).normal(size=(40, 3, 12, 12))
    windows = values.reshape(40, 3, 6, 2, 6, 2)
    top = windows.max(axis=(3, 5), keepdims=True)
    expected = (2 * top * (windows == top)).reshape(values.shape)
    value, gradient = tc.compile(tc.value_and_grad(pooled, h), backend="c", threads=threads)(
        h=values
    )
    np.testing.assert_allclose(value, np.sum(top**2), rtol=1e-12)
    np.testing.assert_allclose(gradient, expected, rtol=1e-14)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_exponentials_to_the_ends_of_the_range(dtype: type) -> None:
    """By every place of a vector, and beside numbers of which nothing is left."""
    kind = np.finfo(dtype)
    top, low = np.log(kind.max), np.log(kind.smallest_subnormal)
    points = np.concatenate([
        np.linspace(low - 2, top + 0.5, 2001), np.linspace(-1, 1, 501),
        [0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e30, kind.tiny, top, low],
    ]).astype(dtype)  # fmt: skip
    step = tc.compile(2 * tc.exp(tc.var("x", "n")) / 2, backend="c")
    with np.errstate(over="ignore", under="ignore"):
        wanted = np.exp(points.astype(np.longdouble)).astype(dtype)
    for first in range(9):
        found = step(x=points[first:])
        unit = np.spacing(np.where(np.isfinite(wanted), wanted, 1).astype(dtype))[first:]
        with np.errstate(invalid="ignore"):
            off = np.abs(found - wanted[first:])
        same = (found == wanted[first:]) | (np.isnan(found) & np.isnan(wanted[first:]))
        assert (same | (off <= 4 * unit)).all()
    assert found.dtype == dtype


def test_shares_of_masked_rows() -> None:
    """Those of rows with nothing are no numbers; others have none of what is masked."""
    X = tc.var("X", ("m", "n"))
    values = np.random.default_rng(2).normal(size=(9, 21)) * 30
    values[np.random.default_rng(2).random(values.shape) < 0.5] = -np.inf
    values[3], values[4, 2] = -np.inf, np.inf
    for axis in (0, 1):
        total = tc.compile(tc.logsumexp(X, axis=axis), backend="c")(X=values)
        with np.errstate(invalid="ignore"):
            np.testing.assert_allclose(total, scipy.special.logsumexp(values, axis=axis))
