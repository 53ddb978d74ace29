"""Cases of gathers and of shifted reads: what takes and places entries of arrays."""

# ruff: noqa: E501 (a row of a table is one line)

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import tcalc as tc


class Case(NamedTuple):
    """A function of variables; those in `below` are of integers from 0 up to an extent."""

    name: str
    build: Callable[..., tc.Expr]
    shapes: dict[str, tuple[int, ...]]
    below: dict[str, int]

    def variables(self) -> dict[str, tc.Expr]:
        return {n: tc.var(n, s, integer=n in self.below) for n, s in self.shapes.items()}

    def sample(self, dtype: Any = np.float64) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(len(self.name))
        return {
            n: rng.integers(0, self.below[n], s)
            if n in self.below
            else rng.normal(size=s).astype(dtype)
            for n, s in self.shapes.items()
        }


def windows(x: tc.Expr, size: int) -> tc.Expr:
    """Overlapping windows of a vector."""
    extent = x.shape[0]
    assert isinstance(extent, int)
    return tc.build(extent - size + 1, lambda i: tc.build(size, lambda j: x[i + j]))


def image_windows(x: tc.Expr, size: int) -> tc.Expr:
    extent = x.shape[0]
    assert isinstance(extent, int)
    n = extent - size + 1
    return tc.build(
        n,
        lambda i: tc.build(
            n, lambda j: tc.build(size, lambda a: tc.build(size, lambda b: x[i + a, j + b]))
        ),
    )


CASES = [
    Case("taken", lambda x, i: tc.exp(x[i]), {"x": (5,), "i": (7,)}, {"i": 5}),
    Case("rows", lambda X, i: X[i] ** 2, {"X": (5, 3), "i": (2, 4)}, {"i": 5}),
    Case("columns", lambda X, i: X[:, i] ** 2, {"X": (3, 5), "i": (4,)}, {"i": 5}),
    Case("entries", lambda X, i, j: tc.sum(X[i, j] ** 3), {"X": (5, 3), "i": (6,), "j": (6,)}, {"i": 5, "j": 3}),
    Case("one place", lambda X, i: X[i] * X, {"X": (5, 3), "i": ()}, {"i": 5}),
    Case("segments", lambda x, i: tc.segment_sum(tc.sin(x), i, 4), {"x": (6, 2), "i": (6,)}, {"i": 4}),
    Case("often", lambda x, i: tc.sum(x[i]) + tc.sum(x * x), {"x": (5,), "i": (9,)}, {"i": 5}),
    Case("less selected", lambda x, A, i: A @ x - 2 * x[i], {"x": (5,), "A": (7, 5), "i": (7,)}, {"i": 5}),
    Case("less pairs", lambda X, A, i, j: tc.einsum("qab,ab->q", A, X) - X[i, j], {"X": (5, 3), "A": (4, 5, 3), "i": (4,), "j": (4,)}, {"i": 5, "j": 3}),
    Case("repeated", lambda x: tc.cumsum(tc.exp(x[0]) * tc.ones(5)), {"x": (2,)}, {}),
    Case("differences", lambda x: tc.sum((x[1:] - x[:-1]) ** 4), {"x": (6,)}, {}),
    Case("second differences", lambda x: x[2:] - 2 * x[1:-1] + x[:-2] * x[1:-1], {"x": (7,)}, {}),
    Case("padded", lambda X: tc.pad(X**2, ((1, 2), (0, 1))) + 1, {"X": (3, 4)}, {}),
    Case("joined", lambda x, y: tc.concatenate([x, y, x[::-1]]) ** 2, {"x": (4,), "y": (3,)}, {}),
    Case("diagonals", lambda x, X: tc.diag(x, 1) + X * tc.diag(x, 1).T, {"x": (4,), "X": (5, 5)}, {}),
    Case("convolved", lambda x, w: windows(x, 5) @ w, {"x": (24,), "w": (5,)}, {}),
    Case("convolved, squared", lambda x, w: tc.sum((windows(x, 5) @ w) ** 3), {"x": (24,), "w": (5,)}, {}),
    Case("image", lambda x, w: tc.einsum("ijab,oab->oij", image_windows(x, 3), w), {"x": (9, 9), "w": (2, 3, 3)}, {}),
]  # fmt: skip
