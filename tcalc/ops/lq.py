"""LQ and QR decompositions: the family {L, Q, X = inv(L)} is closed under differentiation.

Seeger et al. 2018, section 3 and appendix.
"""

from __future__ import annotations

from typing import Any

from ..applied import apply_all
from ..array import as_expr, public
from ..errors import ShapeError
from ..expr import Expr
from ..extents import ONE, Coef, Shape, show_shape
from ..normal import add, einsum
from ..op import Op
from .matrices import labels, refuse
from .triangles import lower_half, tri_inverse

__all__ = ["gelqf", "lq", "qr"]


def _lq(xp: Any, params: tuple[Any, ...], a: Any) -> Any:
    m, n = a.shape[-2:]
    if m > n:
        raise ShapeError(f"lq needs at least as many columns as rows, not {m} x {n}")
    q, r = xp.linalg.qr(xp.swapaxes(a, -1, -2))
    diagonal = xp.diagonal(r, axis1=-2, axis2=-1)
    # What is left of a row beside the rows before it, at the size of the row's rounding errors.
    rounding = n * xp.finfo(a.dtype).eps * xp.sqrt((a * a).sum(axis=-1))
    dependent = (xp.abs(diagonal) <= rounding).any(axis=-1)
    refuse("lq: the rows (for qr, the columns) are linearly dependent", dependent)
    sign = xp.sign(diagonal)[..., None, :]
    return xp.swapaxes(r * xp.swapaxes(sign, -1, -2), -1, -2), xp.swapaxes(q * sign, -1, -2)


def _lq_shapes(params: tuple[Any, ...], shape: Shape) -> tuple[Shape, Shape]:
    return (*shape[:-1], shape[-2]), shape


def _lq_partial_l(a: Expr, factor: Expr, q: Expr) -> Expr:
    """dL = L T, T = P ∘ (C + C'), C = X dA Q'."""
    b, i, j, k, m, p = labels(a)
    x, half = tri_inverse(factor), lower_half(a.shape[-2])
    out = (*b, i, j, k, m)
    ops = [factor, half, x, q]
    first = einsum(ops, [(*b, i, p), (p, j), (*b, p, k), (*b, j, m)], out)
    second = einsum(ops, [(*b, i, p), (p, j), (*b, j, k), (*b, p, m)], out)
    return add([first, second])


def _lq_partial_q(a: Expr, factor: Expr, q: Expr) -> Expr:
    """dQ = X dA - T Q."""
    b, i, j, k, m, p = labels(a)
    x, half = tri_inverse(factor), lower_half(a.shape[-2])
    out = (*b, i, j, k, m)
    direct = einsum([x], [(*b, i, k)], (*b, i, j, k, j), ONE, {j: a.shape[-1]})
    ops, minus = [half, x, q, q], Coef(-1)
    first = einsum(ops, [(i, p), (*b, i, k), (*b, p, m), (*b, p, j)], out, minus)
    second = einsum(ops, [(i, p), (*b, p, k), (*b, i, m), (*b, p, j)], out, minus)
    return add([direct, first, second])


LQ_SOURCE = """
def _lq(a):
    q, r = np.linalg.qr(np.swapaxes(a, -1, -2))
    sign = np.sign(np.diagonal(r, axis1=-2, axis2=-1))[..., None, :]
    return np.swapaxes(r, -1, -2) * sign, np.swapaxes(q * sign, -1, -2)
"""
LQ = Op(
    "lq", (2,), ((_lq_partial_l, _lq_partial_q),), _lq,
    "_lq({0})", r"\operatorname{{lq}}({0})",
    domain=((0.5, 2.0),), shape=_lq_shapes, flops=4.0,
    parts=("lq_l", "lq_q"), helper=LQ_SOURCE,
)  # fmt: skip


@public
def lq(a: object) -> tuple[Expr, Expr]:
    """(L, Q) with a = L Q, L lower triangular with positive diagonal, the rows of Q orthonormal.

    `a` has at least as many columns as rows, and full rank.
    """
    e = as_expr(a)
    if e.ndim < 2:
        raise ShapeError(f"lq needs a matrix, not shape {show_shape(e.shape)}")
    m, n = e.shape[-2:]
    if isinstance(m, int) and isinstance(n, int) and m > n:
        raise ShapeError(f"lq needs at least as many columns as rows, not {show_shape(e.shape)}")
    factor, q = apply_all(LQ, e)
    return factor, q


@public
def gelqf(a: object) -> tuple[Expr, Expr]:
    """(Q, L) of `lq`, in LAPACK's order."""
    factor, q = lq(a)
    return q, factor


@public
def qr(a: object) -> tuple[Expr, Expr]:
    """(Q, R) with a = Q R, R upper triangular with positive diagonal; at least as many rows."""
    factor, q = lq(as_expr(a).mT)
    return q.mT, factor.mT
