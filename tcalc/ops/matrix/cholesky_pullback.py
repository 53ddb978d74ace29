"""Pullbacks as single kernels: the planner puts them in place of the products they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...graph.applications import apply
from ...graph.extents import Coef
from ...graph.nodes import Expr
from ...graph.normal import add, einsum, scale, view
from ...graph.operators import Kernels, Meaning, Op, for_each_row
from ...graph.spelling import Spelling
from ...support.products import take_product
from ...support.triangles import above, mirrored
from ..matrix_cores import labels, of_square
from .triangular import lower_half, lower_ones, tri_inverse

__all__: list[str] = []

#: Columns of a block, twice as many from so many columns on.
BLOCK, MANY = 64, 700


def _symmetrised(e: Expr) -> Expr:
    """Half the sum with the axes of the result exchanged."""
    n = e.ndim - 4
    swap = (*range(n), n + 1, n, n + 2, n + 3)
    return scale(add([e, view(e, swap)]), Coef(0.5))


def _partial_factor(factor: Expr, bar: Expr, result: Expr) -> Expr:
    """Of G_ij = C_kl L_km P_ml X_li X_mj by L_ab, symmetrised; dX = -X (M ∘ dL) X."""
    b, i, j, p, q, m = labels(factor)
    k, l = m + 1, m + 2
    x, half, ones = tri_inverse(factor), lower_half(factor.shape[-1]), lower_ones(factor.shape[-1])
    out = (*b, i, j, p, q)
    direct = einsum(
        [bar, half, x, x, ones],
        [(*b, p, l), (q, l), (*b, l, i), (*b, q, j), (p, q)],
        out,
    )
    ops, words = [bar, factor, ones, half, x, x, x, ones], [(*b, k, l), (*b, k, m), (k, m), (m, l)]
    first = einsum(ops, [*words, (*b, l, p), (*b, q, i), (*b, m, j), (p, q)], out, Coef(-1))
    second = einsum(ops, [*words, (*b, l, i), (*b, m, p), (*b, q, j), (p, q)], out, Coef(-1))
    return _symmetrised(add([direct, first, second]))


def _partial_bar(factor: Expr, bar: Expr, result: Expr) -> Expr:
    b, i, j, k, l, m = labels(factor)
    x, half, ones = tri_inverse(factor), lower_half(factor.shape[-1]), lower_ones(factor.shape[-1])
    words = [(*b, k, m), (k, m), (m, l), (*b, l, i), (*b, m, j)]
    return _symmetrised(einsum([factor, ones, half, x, x], words, (*b, i, j, k, l)))


def _pullback(xp: Any, params: tuple[Any, ...], factor: Any, bar: Any) -> Any:
    if bar.ndim == 2:
        return _swept(factor, bar)
    found = np.empty_like(bar)
    for at in np.ndindex(bar.shape[:-2]):
        found[at] = _swept(factor[at], bar[at])
    return found


def _portable(xp: Any, params: tuple[Any, ...], factor: Any, bar: Any) -> Any:
    """X' (T + T' - diag T) X / 2 for T the lower triangle of L' C."""
    upper = xp.swapaxes(xp.tril(factor), -1, -2)
    product = upper @ bar
    inner = xp.tril(product) + xp.swapaxes(xp.tril(product, -1), -1, -2)
    left = xp.linalg.solve(upper, inner)
    return xp.linalg.solve(upper, xp.swapaxes(left, -1, -2)) / 2


def _swept(factor: Any, bar: Any) -> Any:
    """The pullback by blocks of columns, the last first (Murray 2016).

    Entries above the diagonal are arbitrary until the lower triangle is copied over them.
    """
    import scipy.linalg

    (trsm,) = scipy.linalg.get_blas_funcs(("trsm",), (factor, bar))
    n, bar = len(bar), np.array(bar, factor.dtype)
    block = BLOCK if n < MANY else 2 * BLOCK
    for start in reversed(range(0, n, block)):
        stop = start + block
        own, left, below = slice(start, stop), slice(start), slice(stop, n)
        triangle = factor[own, own].copy()
        np.copyto(triangle, 0, where=above(len(triangle)))
        if stop < n:
            under = bar[below, own].copy()
            trsm(1, triangle.T, under.T, lower=0, overwrite_b=1)
            bar[below, own] = under
            take_product(under, factor[own, left], bar[below, left])
            take_product(under.T, factor[below, :stop], bar[own, :stop])
        bar[own, own] = inner = _of_block(trsm, triangle, bar[own, own])
        take_product(inner, factor[own, left], bar[own, left])
    bar *= 0.5
    mirrored(bar)
    return bar


def _of_block(trsm: Any, factor: Any, bar: Any) -> Any:
    """X' (T + T' - diag T) X for T the lower triangle of L' C: twice the pullback of one block."""
    product = factor.T @ bar
    mirrored(product)
    # Row-major memory is the transpose in column-major order, so X' M is solved as M X.
    turned = trsm(1, factor.T, product.T, side=1, lower=0, trans_a=1, overwrite_b=1)
    return trsm(1, factor.T, turned, lower=0, overwrite_b=1)


CHOLESKY_PULLBACK = Op(
    "cholesky_pullback", (2, 2),
    Meaning((_partial_factor, _partial_bar), shape=of_square("cholesky_pullback")),
    Kernels(_pullback, host=True, portable=_portable, flops=for_each_row(2 / 3)),
    Spelling(r"\operatorname{{pullback}}({0}, {1})"),
)  # fmt: skip


def cholesky_pullback(factor: Expr, bar: Expr) -> Expr:
    """The symmetric gradient by A of a loss with gradient `bar` by A's Cholesky factor."""
    return apply(CHOLESKY_PULLBACK, factor, bar)
