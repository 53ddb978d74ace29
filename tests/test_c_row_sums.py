"""Sums over rows in C: some rows at a time, the last ones one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.backends.c.loopnests import MANY, ROWS

n, m = "n", "m"
X, W, T = tc.var("X", (n, m)), tc.var("W", (n, m)), tc.var("T", ("k", n, m))
y, z = tc.var("y", n), tc.var("z", m)
A = X * W - z
SUMS: dict[str, Any] = {
    "columns": tc.sum(X, axis=0),
    "of products": tc.sum(X * W, axis=0),
    "with what a row has": tc.sum((X - z) * y[:, None], axis=0),
    "two": [tc.sum(X * W, axis=0), tc.sum((X - z) * (X - z), axis=0)],
    "and what is summed": [A, tc.sum(A, axis=0)],
    "and of everything": [tc.sum(A), tc.sum(A, axis=0)],
    "over several axes": tc.sum(T * W, axis=(0, 1)),
    "over an axis between": tc.sum(T * z, axis=1),
    "of rows too": [tc.sum(X * W, axis=0), tc.sum(X * W, axis=1)],
    "added to what is there": tc.sum(X * W, axis=0) + tc.sum(X * y[:, None], axis=0) + z,
    "of functions": tc.sum(tc.tanh(X) * W, axis=0),
}
ROWS_OF = (1, ROWS, MANY - 1, MANY, MANY + 1, MANY + ROWS, 5 * ROWS + 3)


def data(rows: int, columns: int, dtype: Any) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(rows)
    shapes = {"X": (rows, columns), "W": (rows, columns), "T": (3, rows, columns)}
    shapes |= {"y": (rows,), "z": (columns,)}
    return {name: rng.normal(size=shape).astype(dtype) for name, shape in shapes.items()}


def compared(name: str, values: dict[str, np.ndarray], threads: int) -> None:
    outputs = SUMS[name]
    roots = outputs if isinstance(outputs, list) else [outputs]
    read = {key: values[key] for root in roots for key in root.variables}
    found = tc.compile(roots, backend="c", threads=threads)(**read)
    exact = {key: value.astype(np.longdouble) for key, value in read.items()}
    wanted = by_numpy(name, exact)
    rounding = 50 * np.finfo(found[0].dtype).eps
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other.astype(float), rtol=rounding, atol=20 * rounding)


def by_numpy(name: str, v: dict[str, np.ndarray]) -> list[np.ndarray]:
    X, W, T, y, z = [v.get(key, np.zeros(())) for key in ("X", "W", "T", "y", "z")]
    of = {
        "columns": lambda: [X.sum(0)],
        "of products": lambda: [(X * W).sum(0)],
        "with what a row has": lambda: [((X - z) * y[:, None]).sum(0)],
        "two": lambda: [(X * W).sum(0), ((X - z) ** 2).sum(0)],
        "and what is summed": lambda: [X * W - z, (X * W - z).sum(0)],
        "and of everything": lambda: [(X * W - z).sum(), (X * W - z).sum(0)],
        "over several axes": lambda: [(T * W).sum((0, 1))],
        "over an axis between": lambda: [(T * z).sum(1)],
        "of rows too": lambda: [(X * W).sum(0), (X * W).sum(1)],
        "added to what is there": lambda: [(X * W).sum(0) + (X * y[:, None]).sum(0) + z],
        "of functions": lambda: [(np.tanh(X) * W).sum(0)],
    }
    return of[name]()


@pytest.mark.parametrize("name", SUMS)
def test_sums_of_any_number_of_rows(name: str) -> None:
    for rows in ROWS_OF:
        for columns in (4, 5, 10, 33):
            compared(name, data(rows, columns, np.float64), 1)


@pytest.mark.parametrize("name", SUMS)
def test_sums_of_float32_and_of_rows_that_lie_otherwise(name: str) -> None:
    compared(name, data(MANY + 1, 10, np.float32), 1)
    turned = {key: np.asfortranarray(a) for key, a in data(MANY + 1, 12, np.float64).items()}
    compared(name, turned, 1)
    apart = {key: np.repeat(a, 2, axis=0)[::2] for key, a in data(MANY + 1, 12, np.float64).items()}
    compared(name, apart, 1)


@pytest.mark.parametrize("name", SUMS)
def test_sums_of_many_rows_that_threads_share(name: str) -> None:
    values = data(20_001, 9, np.float64)
    for threads in (1, 3):
        compared(name, values, threads)
