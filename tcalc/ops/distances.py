"""Squared distances between the rows of two matrices, as one kernel: planned, never written."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from ..graph.applications import apply
from ..graph.extents import Coef
from ..graph.nodes import Expr
from ..graph.normal import add, einsum, scale
from ..graph.operators import Kernels, Meaning, Op, Spelling
from ..graph.products import split_coef
from .matrix_cores import labels

__all__: list[str] = []

#: Entries of all differences, from which on they are not made.
MANY = 1 << 12


def _twice_difference(a: Expr, b: Expr, y: Expr, sign: int) -> tuple[Expr, tuple[int, ...]]:
    """2 (a_ik - b_jk) or its negative, and its labels."""
    batch, i, j, k, *_ = labels(a)
    word, extents = (*batch, i, j, k), dict(enumerate((*y.shape, a.shape[-1])))
    left = einsum([a], [(*batch, i, k)], word, Coef(2 * sign), extents)
    right = einsum([b], [(*batch, j, k)], word, Coef(-2 * sign), extents)
    return add([left, right]), word


def _partial_left(a: Expr, b: Expr, y: Expr) -> Expr:
    found, (*batch, i, j, k) = _twice_difference(a, b, y, 1)
    return einsum([found], [(*batch, i, j, k)], (*batch, i, j, i, k))


def _partial_right(a: Expr, b: Expr, y: Expr) -> Expr:
    found, (*batch, i, j, k) = _twice_difference(a, b, y, -1)
    return einsum([found], [(*batch, i, j, k)], (*batch, i, j, j, k))


def _kernel(xp: Any, params: tuple[Any, ...], a: Any, b: Any) -> Any:
    if a.ndim == 2 and prod(a.shape) * len(b) >= MANY:
        from scipy.spatial.distance import cdist

        return cdist(a, b, "sqeuclidean")
    return _portable(xp, params, a, b)


def _portable(xp: Any, params: tuple[Any, ...], a: Any, b: Any) -> Any:
    difference = a[..., :, None, :] - b[..., None, :, :]
    return xp.einsum("...k,...k->...", difference, difference)


def _flops(a: Sequence[int], b: Sequence[int]) -> float:
    """A difference, a product and an addition for every pair of rows and every entry of them."""
    return 3 * prod(a) * b[-2]


SQUARED_DISTANCES = Op(
    "squared_distances", (2, 2),
    Meaning(
        (_partial_left, _partial_right), shape=lambda params, a, b: (*a[:-1], b[-2]),
        domain=((-2, 2), (-2, 2)), pairs=True,
    ),
    Kernels(_kernel, host=True, portable=_portable, flops=_flops),
    Spelling(r"\operatorname{{squared\_distances}}({0}, {1})"),
)  # fmt: skip


def distances_of_sum(a: Expr, b: Expr) -> Expr:
    """|a_i + b_j|^2 of shape (..., n, m), for rows of shapes (..., n, k) and (..., m, k)."""
    if split_coef(a)[0].value < 0:
        return apply(SQUARED_DISTANCES, scale(a, Coef(-1)), b)
    return apply(SQUARED_DISTANCES, a, scale(b, Coef(-1)))
