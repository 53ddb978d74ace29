"""Entries that are not read change nothing: what takes entries of taken entries, beside nan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcalc as tc

PAIRS = [[1, -2], [-1, 1]]
#: Functions of a matrix 3 x 4, which NumPy computes from its entries alone.
READ: dict[str, Callable[[Any], Any]] = {
    "a column of columns": lambda a: a[:, [2, 1]][:, -1],
    "columns of columns": lambda a: np.take(a[:, [2, 1]], [-1], 1),
    "rows of rows": lambda a: a[[2, 1]][[1, 0]],
    "a column rolled": lambda a: np.roll(a, -2, 1)[:, -1],
    "columns rolled": lambda a: np.take(np.roll(a, -3, 1), [0, -2, 1, 1], 1),
    "rows of rows of rows": lambda a: np.take(a[PAIRS][PAIRS], [0], 1),
    "rows of rows of rows, tiled": lambda a: np.take(np.tile(a[PAIRS][PAIRS], 2), [0], 1),
    "a diagonal of rows": lambda a: np.diagonal(a[PAIRS]),
    "a diagonal of rows tiled": lambda a: np.diagonal(np.tile(np.flip(a, 0), 2)[PAIRS]),
    "every other row of rows": lambda a: a[[2, 0, 1, 1]][::2],
    "rows of rows, backwards": lambda a: a[[2, 0, 1]][::-1][1:],
    "entries of rows": lambda a: a[[2, 0]][[1, 0], [3, 2]],
    "rows of a stack": lambda a: np.take(np.stack([a, a * a]), [1, 0, 0], 0),
    "entries of a stack": lambda a: np.stack([a[0], a[1]])[[1, 1, 0], [3, 0, 2]],
    "columns of a concatenation": lambda a: np.take(np.concatenate([a, a + 1], 1), [5, 0], 1),
    "rows of rows of a stack": lambda a: np.take(np.stack([a, a + 1]), [1, 0], 0)[PAIRS],
    "rows of rows padded": lambda a: np.pad(a[[2, 1]][[1, 0]], ((1, 0), (0, 2))),
}


@pytest.mark.parametrize("backend", ["numpy", "functional", "c"])
@pytest.mark.parametrize("name", READ)
def test_only_what_is_read_counts(name: str, backend: str) -> None:
    fun, x = READ[name], np.arange(1.0, 13.0).reshape(3, 4)
    for place in np.ndindex(x.shape):
        for value in (np.nan, np.inf):
            x.flat[:] = np.arange(1.0, 13.0)
            x[place] = value
            found = tc.compile(fun(tc.var("X", (3, 4))), backend=backend)(X=x)
            np.testing.assert_array_equal(found, fun(x))


@pytest.mark.parametrize("name", READ)
def test_gradients_add_at_what_is_read(name: str) -> None:
    fun, x = READ[name], np.linspace(-1.0, 1.0, 12).reshape(3, 4)
    weights = np.cos(np.arange(fun(x).size)).reshape(fun(x).shape)
    found = tc.grad(tc.sum(weights * fun(tc.var("X", (3, 4)))), "X")(X=x)
    step = 1e-6
    slopes = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        for sign in (1, -1):
            moved = x.copy()
            moved[place] += sign * step
            slopes[place] += sign * np.sum(weights * fun(moved)) / (2 * step)
    np.testing.assert_allclose(found, slopes, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("backend", ["numpy", "functional", "c"])
def test_integers_of_integers_are_checked(backend: str) -> None:
    x, one, two = tc.var("x", "n"), tc.var("i", "m", integer=True), tc.var("j", "k", integer=True)
    f = tc.compile(x[one][two], backend=backend)
    data = np.array([1.0, np.nan, 3.0])
    np.testing.assert_array_equal(f(x=data, i=[2, 1, 0], j=[0, 2, -1]), [3.0, 1.0, 1.0])
    with pytest.raises(IndexError, match="i"):
        f(x=data, i=[2, 3, 0], j=[0, 2, 2])
    with pytest.raises(IndexError, match="j"):
        f(x=data, i=[2, 1, 0], j=[0, 3, 2])
