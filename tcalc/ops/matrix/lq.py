"""LQ and QR decompositions: the family {L, Q, X = inv(L)} is closed under differentiation.

Seeger et al. 2018, section 3 and appendix.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from ...graph.applications import apply, apply_all
from ...graph.extents import ONE, Coef, Shape, least_extent, show_shape
from ...graph.nodes import Apply, Expr
from ...graph.normal import add, einsum
from ...graph.operators import Kernels, Meaning, Op
from ...graph.spelling import Spelling
from ...support.errors import ShapeError
from ...support.lapack import LARGE
from ...support.triangles import without_upper
from ..arithmetic import as_expr, public
from ..matrix_cores import labels, refuse, same
from .directional_rows import member
from .results import QRResult
from .triangular import lower_half, tri_inverse

__all__ = ["gelqf", "lq", "qr"]

FIRST = "first"


def _checked(xp: Any, params: Any, columns: int, factor: Any) -> Any:
    """The signs of the diagonal; a LinAlgError where rows depend on those before them."""
    name, lines = params
    diagonal = xp.diagonal(factor, 0, -2, -1)
    # What is left of a row beside the rows before it, at the size of the row's rounding errors:
    # rows of the factor are as long as those of the matrix.
    lengths = xp.sqrt(xp.einsum("...ij,...ij->...i", factor, factor))
    rounding = columns * xp.finfo(factor.dtype).eps * lengths
    dependent = (xp.abs(diagonal) <= rounding).any(axis=-1)
    refuse(f"{name}: the {lines} are linearly dependent", dependent)
    return xp.sign(diagonal)


def _wide(params: Any, a: Any) -> None:
    """Refuse a matrix with fewer columns than rows."""
    name, lines = params
    m, n = a.shape[-2:]
    if m > n:
        more, less = ("rows", "columns") if lines == "columns" else ("columns", "rows")
        shown = f"{n} x {m}" if lines == "columns" else f"{m} x {n}"
        raise ShapeError(
            f"{name} needs at least as many {more} as {less}, as is assumed of named dimensions, "
            f"not {shown}"
        )


def _kernel(orthogonal: Callable[[Any, Any], Any], xp: Any, params: Any, a: Any) -> Any:
    _wide(params, a)
    q, factor = orthogonal(xp, a)
    sign = _checked(xp, params, a.shape[-1], factor)
    # Arrays of our own: in place where arrays can be written to.
    factor *= sign[..., None, :]
    q *= sign[..., :, None]
    return factor, q


def _triangle(xp: Any, params: Any, a: Any) -> Any:
    return _from_reflected(xp, params, _kept_beside(xp, (), a))


def _from_reflected(xp: Any, params: Any, reflected: Any) -> Any:
    """The triangle, with a positive diagonal, from the first columns of `lq_reflected`."""
    _wide(params, reflected)
    factor = xp.tril(reflected[..., : reflected.shape[-2]])
    return factor * _checked(xp, params, reflected.shape[-1], factor)[..., None, :]


def _kept_beside(xp: Any, params: Any, a: Any) -> Any:
    """A triangle in the first columns, zeros in the others."""
    _, factor = _turned(xp, a)
    *batch, m, n = a.shape
    return xp.concatenate([factor, xp.zeros((*batch, m, n - min(m, n)), dtype=a.dtype)], -1)


def _reflected_over(xp: Any, params: Any, a: Any) -> None:
    """In place: reflectors stand where `_kept_beside` has zeros."""
    if a.ndim > 2 or not a.size:
        a[...] = _kept_beside(xp, params, a)
    else:
        _geqrt(a, over=True)


def _turned(xp: Any, a: Any) -> tuple[Any, Any]:
    """Orthonormal rows and a lower triangle whose product, triangle first, is a."""
    q, r = xp.linalg.qr(xp.swapaxes(a, -1, -2))
    return xp.swapaxes(q, -1, -2), xp.swapaxes(r, -1, -2)


def _reflected(xp: Any, a: Any) -> tuple[Any, Any]:
    """The same by LAPACK on the memory of one matrix, without copies of it."""
    if a.ndim > 2 or not a.size:
        return _turned(xp, a)
    import scipy.linalg

    (orgqr,) = scipy.linalg.get_lapack_funcs(("orgqr",), (a,))
    reflectors, scales, factor = _reflectors(a)
    return orgqr(reflectors, scales, lwork=LARGE * len(a), overwrite_a=1)[0].T, factor


def _reflectors(a: Any) -> tuple[Any, Any, Any]:
    """Householder's reflectors of the transpose, their scales, and the triangle.

    By panels that are halved again and again, so that most of the work is products of matrices.
    """
    m = len(a)
    reflectors, triangles, panel = _geqrt(a)
    factor = reflectors[:m].T.copy()
    without_upper(factor)
    places = np.arange(m)
    return reflectors, triangles[places % panel, places], factor


def _geqrt(a: Any, over: bool = False) -> tuple[Any, Any, int]:
    """Reflectors below the triangle's transpose, their triangles, and the columns of a panel."""
    import scipy.linalg

    (geqrt,) = scipy.linalg.get_lapack_funcs(("geqrt",), (a,))
    panel = min(*a.shape, LARGE)
    # Row-major memory is the transpose in column-major order, so that the rows are the columns.
    reflectors, triangles, _ = geqrt(panel, a.T, overwrite_a=int(over))
    return reflectors, triangles, panel


def _flops(shape: Sequence[int]) -> float:
    """Reflectors and their product, 2 m^2 n - 2 m^3 / 3 each (Golub & Van Loan 2013, 5.2)."""
    *batch, m, n = shape
    return 4 * prod(batch) * (m * m * n - m**3 / 3)


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
    if a.shape[-2] == a.shape[-1]:
        return _rotation(a, factor, q)
    b, i, j, k, m, p = labels(a)
    x, half = tri_inverse(factor), lower_half(a.shape[-2])
    out = (*b, i, j, k, m)
    direct = einsum([x], [(*b, i, k)], (*b, i, j, k, j), ONE, {j: a.shape[-1]})
    ops, minus = [half, x, q, q], Coef(-1)
    first = einsum(ops, [(i, p), (*b, i, k), (*b, p, m), (*b, p, j)], out, minus)
    second = einsum(ops, [(i, p), (*b, p, k), (*b, i, m), (*b, p, j)], out, minus)
    return add([direct, first, second])


def _rotation(a: Expr, factor: Expr, q: Expr) -> Expr:
    """dQ = (S - S') Q, S the part of C above the diagonal: what X dA - T Q is where Q is square.

    There the last row of X cancels, and with it its condition.
    """
    b, i, j, k, m, p = labels(a)
    ops = [apply(UPPER_ONES, params=(a.shape[-1],)), tri_inverse(factor), q, q]
    out = (*b, i, j, k, m)
    first = einsum(ops, [(i, p), (*b, i, k), (*b, p, m), (*b, p, j)], out)
    second = einsum(ops, [(p, i), (*b, p, k), (*b, i, m), (*b, p, j)], out, Coef(-1))
    return add([first, second])


def _written(node: Apply) -> tuple[str, Expr]:
    """The user's matrix, of which the operand may be the first rows, or those of the transpose."""
    (operand,), (name, lines) = node.args, node.params
    by_columns = lines.endswith("columns")
    if not lines.startswith(FIRST):
        return name, operand.mT if by_columns else operand
    while len(operand.args) == 1:
        (operand,) = operand.args
    (whole,) = [a for a in operand.args if getattr(a, "op", None) is not LEADING_ROWS]
    wide = longer_side(whole.shape) == "columns"
    return name, whole if wide == by_columns else whole.mT


#: Its parameters are the function that the user called, and what that calls the rows.
LQ = Op(
    "lq", (2,),
    Meaning(
        ((_lq_partial_l, _lq_partial_q),), shape=_lq_shapes, triangular=True,
        positive_diagonal=True,
    ),
    Kernels(
        partial(_kernel, _reflected), host=True, portable=partial(_kernel, _turned), flops=_flops,
    ),
    Spelling(
        r"\operatorname{{lq}}({0})", symbols=(r"L_{\mathrm{lq}}", r"Q_{\mathrm{lq}}"),
        written=_written,
    ),
    parts=("lq_l", "lq_q"),
    params=(("lq", "rows"), ("qr", "columns")),
)  # fmt: skip


def solved_rows(a: Expr, factor: Expr) -> Expr:
    """Q as inv(L) A: of L's condition, where reflectors give it to rounding."""
    b, i, j, k, *_ = labels(a)
    return einsum([tri_inverse(factor), a], [(*b, i, k), (*b, k, j)], (*b, i, j))


def _reflected_partial(a: Expr, y: Expr) -> Expr:
    b, i, j, k, m, p = labels(a)
    beside = apply(LEADING_ROWS, params=a.shape[-2:])
    factor = einsum([y, beside], [(*b, i, k), (j, k)], (*b, i, j))
    moved = _lq_partial_l(a, factor, solved_rows(a, factor))
    return einsum([moved, beside], [(*b, i, p, k, m), (p, j)], (*b, i, j, k, m))


def lq_reflected_row() -> Op:
    """The row of what L is read of, in the memory of the matrix: for plans only."""
    name = "lq_reflected"
    return member(name, lambda: Op(
        name, (2,), Meaning((_reflected_partial,), shape=same),
        Kernels(_kept_beside, flops=lambda shape: _flops(shape) / 2, over=_reflected_over),
        Spelling(r"L_{{\mathrm{{lq}}}}({0})", parameters=False), family=(lq_reflected_row,),
    ))  # fmt: skip


def lq_triangle_row() -> Op:
    """The row of L alone, without the work that Q takes: for plans only."""
    name, reflected = "lq_triangle", lq_reflected_row()
    return member(name, lambda: Op(
        name, (2,),
        Meaning(
            (lambda a, factor: _lq_partial_l(a, factor, solved_rows(a, factor)),),
            shape=lambda params, s: (*s[:-1], s[-2]), triangular=True, positive_diagonal=True,
        ),
        Kernels(_triangle, flops=0, factor=reflected, finish=_from_reflected),
        Spelling(r"L_{{\mathrm{{lq}}}}({0})", parameters=False),
        params=LQ.params, family=(lq_triangle_row,),
    ))  # fmt: skip


UPPER_ONES = Op(
    "upper_ones", (),
    Meaning((), shape=lambda params: (params[0], params[0]), mask=("upper", 0.0)),
    Kernels(lambda xp, params: xp.triu(xp.ones((params[0], params[0])), 1)),
    Spelling(r"\operatorname{{triu}}(\mathbf{{1}} \mathbf{{1}}^{{\top}} - I)"),
    params=((3,), ("n",)),
)  # fmt: skip
LEADING_ROWS = Op(
    "leading_rows", (),
    Meaning((), shape=lambda params: params),
    Kernels(lambda xp, params: xp.eye(*params)),
    Spelling(r"\operatorname{{eye}}"),
    params=((2, 3), ("m", "n")),
)  # fmt: skip
LOWER_TRAPEZOID = Op(
    "lower_trapezoid", (),
    Meaning((), shape=lambda params: params),
    Kernels(lambda xp, params: xp.tril(xp.ones(params))),
    Spelling(r"\operatorname{{tril}}(\mathbf{{1}} \mathbf{{1}}^{{\top}})"),
    params=((3, 2), ("m", "n")),
)  # fmt: skip


def longer_side(shape: Shape) -> str:
    """ "rows" or "columns", whichever a matrix has more of; nothing where names hide it."""
    m, n = shape[-2:]
    shorter = least_extent(m, n)
    return "rows" if shorter == n else "columns" if shorter == m else ""


def factors(e: Expr, name: str, lines: str) -> tuple[Expr, Expr]:
    """(L, Q) for the function `name`, whose messages call the rows of e `lines`."""
    if e.ndim < 2:
        raise ShapeError(f"{name} needs a matrix, not shape {show_shape(e.shape)}")
    m, n = e.shape[-2:]
    if m == n or longer_side(e.shape) != "rows":
        factor, q = apply_all(LQ, e, params=(name, lines))
        return factor, q
    b, i, j, k, _, _ = labels(e)
    top = einsum([apply(LEADING_ROWS, params=(n, m)), e], [(i, k), (*b, k, j)], (*b, i, j))
    _, q = apply_all(LQ, top, params=(name, f"{FIRST} {n} {lines}"))
    mask = apply(LOWER_TRAPEZOID, params=(m, n))
    return einsum([mask, e, q], [(i, j), (*b, i, k), (*b, j, k)], (*b, i, j)), q


@public
def lq(a: object) -> tuple[Expr, Expr]:
    """(L, Q) with a = L Q, L lower triangular with positive diagonal, the rows of Q orthonormal.

    A matrix with more rows than columns has L of its own shape, with zeros above the diagonal, and
    Q square. Of named dimensions the number of columns is taken to be at least that of rows: a
    ShapeError at evaluation otherwise. The rows (of a longer matrix, the first ones) must be
    linearly independent: a LinAlgError.
    """
    return factors(as_expr(a), "lq", "rows")


@public
def gelqf(a: object) -> tuple[Expr, Expr]:
    """(Q, L) of `lq`, in LAPACK's order."""
    factor, q = factors(as_expr(a), "gelqf", "rows")
    return q, factor


@public
def qr(a: object) -> QRResult:
    """(Q, R) with a = Q R, R upper triangular with positive diagonal, as `lq` of the transpose.

    A matrix with more columns than rows has R of its own shape, and Q square. Of named dimensions
    the number of rows is taken to be at least that of columns.
    """
    e = as_expr(a)
    if e.ndim < 2:
        raise ShapeError(f"qr needs a matrix, not shape {show_shape(e.shape)}")
    factor, q = factors(e.mT, "qr", "columns")
    return QRResult(q.mT, factor.mT)
