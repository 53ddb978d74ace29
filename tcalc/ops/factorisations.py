"""Cholesky, LQ and symmetric eigen decompositions, closed under differentiation.

Three small families derive by the product rule alone, to any order: {L, X = inv(L)} of Cholesky,
{L, Q, X} of LQ, {w, V, F} of the eigen decomposition, F_ij = 1 / (w_j - w_i) off the diagonal
(Seeger et al. 2018, section 3 and appendix). Factorisations of symmetric matrices are of
(A + A') / 2, so that derivatives agree with plain finite differences.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..applied import apply, apply_all
from ..array import as_expr, public
from ..errors import ShapeError
from ..expr import Expr
from ..extents import ONE, Coef, Extent, Shape, show_shape
from ..normal import add, einsum, scale
from ..op import Op
from .linalg import attempt, refuse, square

__all__ = ["cholesky", "eigh", "gelqf", "lq", "qr", "syevd", "tri_inverse"]

DEGENERATE = ("raise", "nan", "epsilon")
EPSILON = 1e-10
#: Equal eigenvalues come out this many roundings apart, or as many as there are rows.
FEW = 16


def _same(params: tuple[Any, ...], shape: Shape) -> Shape:
    return shape


LOWER_HALF = Op(
    "lower_half", (), (),
    lambda xp, params: xp.tril(xp.ones((params[0], params[0])), -1) + xp.eye(params[0]) / 2,
    "np.tril(np.ones(({p[0]}, {p[0]})), -1) + np.eye({p[0]}) / 2", "P",
    shape=lambda params: (params[0], params[0]),
)  # fmt: skip
LOWER_ONES = Op(
    "lower_ones", (), (), lambda xp, params: xp.tril(xp.ones((params[0], params[0]))),
    "np.tril(np.ones(({p[0]}, {p[0]})))", "M", shape=lambda params: (params[0], params[0]),
)  # fmt: skip


def lower_half(n: Extent) -> Expr:
    """1 below the diagonal and 1/2 on it: the P of the formulas."""
    return apply(LOWER_HALF, params=(n,))


def lower_ones(n: Extent) -> Expr:
    """1 on and below the diagonal."""
    return apply(LOWER_ONES, params=(n,))


def _labels(e: Expr) -> tuple[tuple[int, ...], int, int, int, int, int]:
    """Batch labels of a matrix, and five more."""
    n = e.ndim - 2
    return tuple(range(n)), n, n + 1, n + 2, n + 3, n + 4


def _both(first: Expr) -> Expr:
    """Half a Jacobian and its transpose in the last two axes, those of a symmetric operand."""
    axes = list(range(first.ndim))
    swapped = einsum([first], [axes], [*axes[:-2], axes[-1], axes[-2]])
    return scale(add([first, swapped]), Coef(0.5))


def _symmetric(xp: Any, a: Any) -> Any:
    return (a + xp.swapaxes(a, -1, -2)) / 2


# --- Cholesky -------------------------------------------------------------------------------------


def _cholesky(xp: Any, params: tuple[Any, ...], a: Any) -> Any:
    problem = "cholesky: the matrix is not positive definite"
    return attempt(problem, xp.linalg.cholesky, _symmetric(xp, a))


def _cholesky_partial(a: Expr, factor: Expr) -> Expr:
    """dL = L T, T = P ∘ (X dA X')."""
    b, i, j, k, m, p = _labels(a)
    inverse = tri_inverse(factor)
    ops = [factor, lower_half(a.shape[-1]), inverse, inverse]
    words = [(*b, i, p), (p, j), (*b, p, k), (*b, j, m)]
    return _both(einsum(ops, words, (*b, i, j, k, m)))


def _tri_inverse(xp: Any, params: tuple[Any, ...], a: Any) -> Any:
    import scipy.linalg

    diagonal = xp.diagonal(a, axis1=-2, axis2=-1)
    refuse("tri_inverse: a zero on the diagonal", (diagonal == 0).any(axis=-1))
    found = np.zeros_like(a)
    (trtri,) = scipy.linalg.get_lapack_funcs(("trtri",), (a,))
    for at in np.ndindex(a.shape[:-2]) if a.size else ():
        found[at], _ = trtri(np.tril(a[at]), lower=1)
    return found


def _tri_inverse_partial(a: Expr, x: Expr) -> Expr:
    """dX = -X (m ∘ dL) X, m the lower triangle."""
    b, i, j, k, m, _ = _labels(a)
    words = [(*b, i, k), (k, m), (*b, m, j)]
    return einsum([x, lower_ones(a.shape[-1]), x], words, (*b, i, j, k, m), Coef(-1))


CHOLESKY = Op(
    "cholesky", (2,), (_cholesky_partial,), _cholesky,
    "np.linalg.cholesky(({0} + np.swapaxes({0}, -1, -2)) / 2)", r"\operatorname{{chol}}({0})",
    domain=((0.5, 2.0),), shape=_same, flops=0.3,
)  # fmt: skip
TRI_INVERSE = Op(
    "tri_inverse", (2,), (_tri_inverse_partial,), _tri_inverse,
    "np.linalg.inv(np.tril({0}))", r"{0}^{{-1}}",
    domain=((0.5, 2.0),), shape=_same, flops=0.3, inverts=True,
)  # fmt: skip


def _lower_triangle_partial(a: Expr, y: Expr) -> Expr:
    b, i, j, _, _, _ = _labels(a)
    extents = dict(enumerate(a.shape))
    return einsum([lower_ones(a.shape[-1])], [(i, j)], (*b, i, j, i, j), ONE, extents)


LOWER_TRIANGLE = Op(
    "lower_triangle", (2,), (_lower_triangle_partial,), lambda xp, params, a: xp.tril(a),
    "np.tril({0})", r"\operatorname{{tril}}({0})", domain=((0.5, 2.0),), shape=_same,
)  # fmt: skip


def lower_triangle(e: Expr) -> Expr:
    """Square matrices with zeros above the diagonal, whatever stands there."""
    return apply(LOWER_TRIANGLE, e)


@public
def cholesky(a: object) -> Expr:
    """The lower triangular L with positive diagonal and L L' = (a + a') / 2."""
    return apply(CHOLESKY, square("cholesky", as_expr(a)))


@public
def tri_inverse(a: object) -> Expr:
    """The inverse of the lower triangle of a matrix; the other triangle is not read."""
    return apply(TRI_INVERSE, square("tri_inverse", as_expr(a)))


# --- LQ -------------------------------------------------------------------------------------------


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
    b, i, j, k, m, p = _labels(a)
    x, half = tri_inverse(factor), lower_half(a.shape[-2])
    out = (*b, i, j, k, m)
    ops = [factor, half, x, q]
    first = einsum(ops, [(*b, i, p), (p, j), (*b, p, k), (*b, j, m)], out)
    second = einsum(ops, [(*b, i, p), (p, j), (*b, j, k), (*b, p, m)], out)
    return add([first, second])


def _lq_partial_q(a: Expr, factor: Expr, q: Expr) -> Expr:
    """dQ = X dA - T Q."""
    b, i, j, k, m, p = _labels(a)
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


# --- symmetric eigen decomposition ----------------------------------------------------------------


def _eigh(xp: Any, params: tuple[Any, ...], a: Any) -> Any:
    problem = "eigh: no convergence, as with entries that are not finite"
    return tuple(attempt(problem, xp.linalg.eigh, _symmetric(xp, a)))


def _eigh_shapes(params: tuple[Any, ...], shape: Shape) -> tuple[Shape, Shape]:
    return shape[:-1], shape


def _eigenvalue_partial(a: Expr, w: Expr, v: Expr) -> Expr:
    """dw = diag(V' dA V)."""
    b, i, _, k, m, _ = _labels(a)
    return einsum([v, v], [(*b, k, i), (*b, m, i)], (*b, i, k, m))


def _gaps(xp: Any, params: tuple[Any, ...], w: Any) -> Any:
    """1 / (w_j - w_i), 0 on the diagonal, equal eigenvalues as the caller asked."""
    n = w.shape[-1]
    difference = w[..., None, :] - w[..., :, None]
    off = ~xp.eye(n, dtype=bool)
    size = xp.abs(w).max(axis=-1, initial=0)[..., None, None]
    rounding = max(n, FEW) * xp.finfo(w.dtype).eps * size
    tied = off & (xp.abs(difference) <= rounding)
    if params[0] == "epsilon":
        sign = xp.where(difference < 0, -1, 1).astype(w.dtype)
        difference = xp.maximum(xp.abs(difference), EPSILON) * sign
    elif xp.any(tied):
        if params[0] == "raise":
            problem = (
                "eigh: equal eigenvalues, whose eigenvectors have no derivative; "
                'degenerate="nan" or "epsilon" goes on'
            )
            refuse(problem, tied.any(axis=(-2, -1)))
        difference = xp.where(tied, xp.nan, difference)
    return xp.where(off, 1 / xp.where(off, difference, 1), 0).astype(w.dtype)


def _gaps_partial(w: Expr, f: Expr) -> Expr:
    """dF_ij = -F_ij^2 (dw_j - dw_i)."""
    n = w.ndim - 1
    word = (*range(n), n, n + 1)
    plus = einsum([f, f], [word, word], (*word, n))
    minus = einsum([f, f], [word, word], (*word, n + 1), Coef(-1))
    return add([plus, minus])


GAPS_SOURCE = """
def _gaps(w):
    d = w[..., None, :] - w[..., :, None] + np.eye(w.shape[-1], dtype=w.dtype)
    return 1 / d - np.eye(w.shape[-1], dtype=w.dtype)
"""
GAPS = Op(
    "gaps", (1,), (_gaps_partial,), _gaps,
    "_gaps({0})", r"\operatorname{{gaps}}({0})",
    domain=((0.5, 2.0),), shape=lambda params, s: (*s, s[-1]), helper=GAPS_SOURCE,
)  # fmt: skip


def _eigenvector_partial(degenerate: str) -> Any:
    def partial(a: Expr, w: Expr, v: Expr) -> Expr:
        """dV = V (F ∘ (V' dA V))."""
        b, i, j, k, m, p = _labels(a)
        f = apply(GAPS, w, params=(degenerate,))
        words = [(*b, i, p), (*b, p, j), (*b, k, p), (*b, m, j)]
        return _both(einsum([v, f, v, v], words, (*b, i, j, k, m)))

    return partial


EIGH = {
    kind: Op(
        "eigh" if kind == "raise" else f"eigh_{kind}", (2,),
        ((_eigenvalue_partial, _eigenvector_partial(kind)),), _eigh,
        "np.linalg.eigh(({0} + np.swapaxes({0}, -1, -2)) / 2)", r"\operatorname{{eigh}}({0})",
        domain=((0.5, 2.0),), shape=_eigh_shapes, flops=9.0,
        parts=("eigvals", "eigvecs"),
    )
    for kind in DEGENERATE
}  # fmt: skip


@public
def eigh(a: object, degenerate: str = "raise") -> tuple[Expr, Expr]:
    """(w, V): eigenvalues ascending and eigenvectors as columns, of (a + a') / 2.

    Parameters
    ----------
    a : expression of shape (..., n, n)
    degenerate : {"raise", "nan", "epsilon"}
        What derivatives of eigenvectors do at equal eigenvalues, where they are undefined: a
        LinAlgError, nan, or a gap of at least 1e-10. Eigenvalues are not affected.
    """
    if degenerate not in DEGENERATE:
        raise ValueError(f"degenerate={degenerate!r}: one of {', '.join(map(repr, DEGENERATE))}")
    w, v = apply_all(EIGH[degenerate], square("eigh", as_expr(a)))
    return w, v


SIGNS_SOURCE = """
def _signs(v):
    top = np.abs(v).argmax(axis=-2)[..., None, :]
    return np.where(np.take_along_axis(v, top, axis=-2)[..., 0, :] < 0, -1, 1).astype(v.dtype)
"""


def _signs(xp: Any, params: tuple[Any, ...], v: Any) -> Any:
    """The sign of the largest entry of every column, the first of equal ones."""
    if not v.size:
        return xp.ones(v.shape[:-1], v.dtype)
    top = xp.abs(v).argmax(axis=-2)[..., None, :]
    largest = xp.take_along_axis(v, top, axis=-2)[..., 0, :]
    return xp.where(largest < 0, -1, 1).astype(v.dtype)


SIGNS = Op(
    "column_signs", (2,), (None,), _signs, "_signs({0})", r"\operatorname{{signs}}({0})",
    domain=((0.5, 2.0),), shape=lambda params, s: s[:-1], helper=SIGNS_SOURCE,
)  # fmt: skip


@public
def syevd(a: object, degenerate: str = "raise") -> tuple[Expr, Expr]:
    """(U, w) with the eigenvectors as rows of U: U a = diag(w) U.

    The entry of largest magnitude in every row of U is positive; the first of equal ones counts.
    """
    w, v = eigh(a, degenerate)
    b, i, j, _, _, _ = _labels(v)
    return einsum([v, apply(SIGNS, v)], [(*b, i, j), (*b, j)], (*b, j, i)), w
