"""Singular values: the family {U, s, V, K, 1/s} is closed under differentiation.

K_ij = s_j / (s_j^2 - s_i^2) off the diagonal. With A = U diag(s) V' and P = U' dA V,

    ds = diag(P),   dU = U (K ∘ P - (K ∘ P)'),   dV = V (K ∘ P' - (K ∘ P')'),

and where U (or, with A transposed, V) is not square, dU has a part outside of its own columns,
(I - U U') dA V diag(1/s). K is closed by itself: its derivative is -(K_ij^2 + K_ji^2) by s_j and
-2 K_ij K_ji by s_i, in which no digits cancel.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from ...graph.applications import application, apply, apply_all
from ...graph.extents import (
    Coef,
    Extent,
    Shape,
    extent_coef,
    extent_from,
    form_of,
    least_extent,
    show_shape,
)
from ...graph.nodes import Apply, Expr
from ...graph.normal import add, einsum
from ...graph.operators import Kernels, Meaning, Op, for_each_row
from ...graph.spelling import Spelling
from ...support.errors import ShapeError, UnsupportedError
from ..arithmetic import as_expr, public
from ..matrix_cores import attempt, labels, refuse
from .eigh import DEGENERATE, continuation, least_gap, rounding_of
from .results import SVDResult

__all__ = ["svd", "svdvals"]

#: Norms differentiate only what equal and zero singular values leave defined: see `_gaps`.
NORMS = ("nuclear", "spectral")
EQUAL = {
    "raise": (
        "svd: equal singular values, whose vectors have no derivative; "
        'degenerate="nan" or "epsilon" goes on'
    ),
    "spectral": "norm: second derivatives of order 2 need one largest singular value",
    "norm": "norm: third derivatives of orders 2 and 'nuc' need distinct singular values",
}


# --- the decomposition ----------------------------------------------------------------------------


def beyond(extent: Extent, rank: Extent) -> Coef:
    """1 where an extent is more than the rank, else 0: what there is outside of a subspace."""
    return extent_coef(least_extent(1, extent_from(form_of(extent) - form_of(rank))))


def _svd(xp: Any, params: tuple[Any, ...], a: Any) -> Any:
    name = "norm" if params[0] in NORMS else "svd"
    problem = f"{name}: no convergence, as with entries that are not finite"
    return tuple(attempt(problem, lambda x: xp.linalg.svd(x, full_matrices=False), a))


def _flops(shape: Sequence[int]) -> float:
    """With thin U and V', directly or by a triangle (Golub & Van Loan 2013, figure 8.6.1)."""
    *batch, m, n = shape
    m, n = max(m, n), min(m, n)
    return prod(batch) * min(14 * m * n * n + 8 * n**3, 6 * m * n * n + 20 * n**3)


def _svd_shapes(params: tuple[Any, ...], shape: Shape) -> tuple[Shape, Shape, Shape]:
    *batch, m, n = shape
    k = least_extent(m, n)
    return (*batch, m, k), (*batch, k), (*batch, k, n)


def _value_partial(a: Expr, u: Expr, s: Expr, vh: Expr) -> Expr:
    """ds = diag(U' dA V)."""
    b, i, _, k, m, _ = labels(a)
    return einsum([u, vh], [(*b, k, i), (*b, i, m)], (*b, i, k, m))


def _left_partial(a: Expr, u: Expr, s: Expr, vh: Expr) -> Expr:
    """dU = U (K ∘ P - (K ∘ P)') + (I - U U') dA V / s, P = U' dA V."""
    (kind,) = application(s).params
    gaps = apply(GAPS, s, params=(kind,))
    b, i, j, k, m, p = labels(u)
    out = (*b, i, j, k, m)
    terms = [
        einsum([u, gaps, u, vh], [(*b, i, p), (*b, p, j), (*b, k, p), (*b, j, m)], out),
        einsum([u, gaps, u, vh], [(*b, i, p), (*b, j, p), (*b, k, j), (*b, p, m)], out, Coef(-1)),
    ]
    outside = beyond(u.shape[-2], u.shape[-1])
    if not outside.zero:
        inverse = apply(INVERSE, s, params=(kind,))
        scaled = [(*b, j, m), (*b, j)]
        extents = {i: u.shape[-2]}
        terms += [
            einsum([vh, inverse], scaled, (*b, i, j, i, m), outside, extents),
            einsum(
                [u, u, vh, inverse], [(*b, i, p), (*b, k, p), *scaled], out, outside.by(Coef(-1))
            ),
        ]
    return add(terms)


def _right_partial(a: Expr, u: Expr, s: Expr, vh: Expr) -> Expr:
    """That of the left factor of A' = V diag(s) U', its axes in the order of V'."""
    b, i, j, k, m, _ = labels(a)
    found = _left_partial(a.mT, vh.mT, s, u.mT)
    return einsum([found], [(*b, i, j, m, k)], (*b, j, i, k, m))


SVD = Op(
    "svd", (2,),
    Meaning(((_left_partial, _value_partial, _right_partial),), shape=_svd_shapes),
    Kernels(_svd, flops=_flops),
    Spelling(
        r"\operatorname{{svd}}({0})",
        symbols=(r"U_{\mathrm{svd}}", r"\sigma", r"V_{\mathrm{svd}}^{\top}"),
        written=lambda node: ("norm" if node.params[0] in NORMS else "svd", node.args[0]),
    ),
    parts=("svd_u", "svd_s", "svd_vh"),
    params=tuple([(kind,) for kind in (*DEGENERATE, 1e-8, *NORMS)]),
)  # fmt: skip


# --- gaps and reciprocals -------------------------------------------------------------------------


def _gaps(xp: Any, params: tuple[Any, ...], s: Any) -> Any:
    """s_j / (s_j^2 - s_i^2), 0 on the diagonal; equal singular values as the caller asked.

    K = (F + H) / 2 with F_ij = 1 / (s_j - s_i), H_ij = 1 / (s_j + s_i). The Hessian of the nuclear
    norm depends on H alone, and that of the spectral norm on the gaps to the largest value, so for
    norms F is 0 at ties.
    """
    (kind,) = params
    row, column = s[..., None, :], s[..., :, None]
    difference, total = row - column, row + column
    off = ~xp.eye(s.shape[-1], dtype=bool)
    rounding = rounding_of(xp, s)[..., None]
    tied = off & (xp.abs(difference) <= rounding)
    instead = xp.full_like(difference, xp.nan)
    if least := least_gap(kind):
        difference = xp.maximum(xp.abs(difference), least) * xp.where(difference < 0, -1, 1)
        tied = xp.zeros_like(tied)
    elif kind in NORMS:
        if kind == "spectral":
            refuse(EQUAL[kind], tied[..., :1, :].any(axis=(-2, -1)))
        positive = total > rounding
        instead = xp.where(positive, 0.5 / xp.where(positive, total, 1), 0)
    elif kind != "nan":
        refuse(EQUAL[kind], tied.any(axis=(-2, -1)))
    share = row / xp.where(total > 0, total, 1)
    found = xp.where(tied, instead, share / xp.where(off & ~tied, difference, 1))
    return xp.asarray(xp.where(off, found, 0), s.dtype)


def _gaps_partial(s: Expr, k: Expr) -> Expr:
    """dK_ij = -(K_ij^2 + K_ji^2) ds_j - 2 K_ij K_ji ds_i; ties stay undefined here."""
    assert isinstance(k, Apply)
    if k.params[0] in NORMS:
        k = apply(GAPS, s, params=("norm",))
    n = s.ndim - 1
    word, turned = (*range(n), n, n + 1), (*range(n), n + 1, n)
    return add(
        [
            einsum([k, k], [word, word], (*word, n + 1), Coef(-1)),
            einsum([k, k], [turned, turned], (*word, n + 1), Coef(-1)),
            einsum([k, k], [word, turned], (*word, n), Coef(-2)),
        ]
    )


GAPS = Op(
    "svd_gaps", (1,),
    Meaning((_gaps_partial,), shape=lambda params, s: (*s, s[-1])),
    Kernels(_gaps, flops=for_each_row(5)),
    Spelling(r"\operatorname{{gaps}}({0})"),
    params=tuple([(kind,) for kind in (*DEGENERATE, 1e-8, *NORMS, "norm")]),
)  # fmt: skip


def _inverse(xp: Any, params: tuple[Any, ...], s: Any) -> Any:
    """1 / s; zero singular values as the caller asked."""
    (kind,) = params
    if least := least_gap(kind):
        return xp.asarray(1 / xp.maximum(s, least), s.dtype)
    zero = s <= rounding_of(xp, s)
    if kind != "nan" and kind not in NORMS:
        problem = (
            "svd: a singular value of 0, whose vectors have no derivative where the matrix is "
            'not square; degenerate="nan" or "epsilon" goes on'
        )
        refuse(problem, zero.any(axis=-1))
    instead = 0 if kind in NORMS else xp.nan
    return xp.asarray(xp.where(zero, instead, 1 / xp.where(zero, 1, s)), s.dtype)


def _inverse_partial(s: Expr, x: Expr) -> Expr:
    word = tuple(range(s.ndim))
    return einsum([x, x], [word, word], (*word, word[-1]), Coef(-1))


INVERSE = Op(
    "svd_reciprocal", (1,),
    Meaning((_inverse_partial,), shape=lambda params, s: s),
    Kernels(_inverse),
    Spelling(r"\operatorname{{reciprocal}}({0})"),
    params=tuple([(kind,) for kind in (*DEGENERATE, 1e-8, *NORMS)]),
)  # fmt: skip


# --- functions ------------------------------------------------------------------------------------


def decomposed(e: Expr, kind: str | float) -> tuple[Expr, ...]:
    """(U, s, V') of matrices; `kind` says what becomes of undefined derivatives."""
    return apply_all(SVD, e, params=(kind,))


@public
def svd(
    a: object,
    full_matrices: bool = False,
    compute_uv: bool = True,
    degenerate: str | float = "raise",
) -> Expr | SVDResult:
    """(U, s, Vh) with a = U diag(s) Vh, s descending; s alone if ``compute_uv=False``.

    U and Vh have as many columns and rows as s has entries, the smaller extent of the matrix,
    ``min(m,n)`` of named ones. `np.linalg.svd` of an expression has NumPy's ``full_matrices=True``.
    Signs of the vectors are LAPACK's. The derivative of a singular value of 0 is that of its smooth
    continuation, which may be negative.

    Parameters
    ----------
    a : expression of shape (..., m, n)
    full_matrices : bool
        True is for square matrices only, where it changes nothing: further columns of U or rows of
        Vh are not determined by `a`, and have no derivative.
    compute_uv : bool
    degenerate : {"raise", "nan", "epsilon"} or float
        What derivatives of U and Vh do where they are undefined, at equal singular values and, if
        the matrix is not square, at a singular value of 0: a LinAlgError, nan, or gaps and values
        of at least 1e-10; a positive number is the least gap in its place. First derivatives of
        singular values are not affected.

    Raises
    ------
    UnsupportedError
        For ``full_matrices=True`` of matrices that are not square.
    """
    e = as_expr(a)
    if e.ndim < 2:
        raise ShapeError(f"svd needs a matrix, not shape {show_shape(e.shape)}")
    kind = continuation(degenerate)
    if full_matrices and compute_uv and e.shape[-2] != e.shape[-1]:
        raise UnsupportedError(
            f"svd of shape {show_shape(e.shape)} with full_matrices=True: the columns of U and V "
            "beyond the singular values are not determined by the matrix; write full_matrices=False"
        )
    found = SVDResult(*decomposed(e, kind))
    return found if compute_uv else found.S


@public
def svdvals(a: object) -> Expr:
    """The singular values of `svd`, descending."""
    found = svd(a, compute_uv=False)
    assert isinstance(found, Expr)
    return found
