"""NumPy's parameters over functions of ours that have others: what a call with them means."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..graph.applications import is_symmetric
from ..graph.arraylike import surface
from ..graph.extents import Extent, Shape, show_shape
from ..graph.nodes import Expr, Var
from ..ops import (
    arithmetic,
    elementwise,
    entrywise,
    joining,
    reductions,
    reshape,
    statistics,
    triangles,
)
from ..ops.arithmetic import Axis, as_expr, check_axis, matmul, multiply, subtract
from ..ops.diagonals import diagonal as any_diagonal
from ..ops.diagonals import trace as any_trace
from ..ops.indexing import getitem, take
from ..ops.matrix import cholesky as lower_cholesky
from ..ops.matrix import eigh as symmetric_eigh
from ..ops.matrix import lapack_names, lq, norms, svd
from ..ops.views import transpose
from ..support.errors import TraceError, UnsupportedError

# --- bits ----------------------------------------------------------------------------------------


def _of_conditions(name: str, joined: Callable[..., Expr], more: str = "") -> Callable[..., Expr]:
    """NumPy's function of bits, of conditions alone."""

    def call(*operands: object) -> Expr:
        for e in operands:
            written = not isinstance(e, Expr) and np.asarray(e).dtype.kind != "b"
            if written or (isinstance(e, Var) and e.integral):
                raise TypeError(
                    f"{name} joins conditions, such as x != 0; bits are not offered{more}"
                )
        return joined(*operands)

    return call


bitwise_and = _of_conditions("bitwise_and, or &,", elementwise.logical_and)
bitwise_or = _of_conditions("bitwise_or, or |,", elementwise.logical_or)
bitwise_xor = _of_conditions("bitwise_xor, or ^,", entrywise.logical_xor, ", and a power is **")
bitwise_not = _of_conditions("bitwise_not, or ~,", elementwise.logical_not)
surface.update(
    bitwise_and=bitwise_and, bitwise_or=bitwise_or, bitwise_xor=bitwise_xor, bitwise_not=bitwise_not
)


# --- reductions -----------------------------------------------------------------------------------


def _reduction(
    ours: Callable[..., Expr], neutral: float, combine: Callable[..., Expr]
) -> Callable[..., Expr]:
    """The reduction with a first value, and of the entries where a mask holds."""

    def reduction(
        a: object, axis: Axis = None, keepdims: bool = False, initial: Any = None, where: Any = None
    ) -> Expr:
        chosen = a if where is None or where is True else elementwise.where(where, a, neutral)
        found = ours(chosen, axis, keepdims)
        return found if initial is None else combine(found, initial)

    return reduction


sum = _reduction(arithmetic.sum, 0.0, arithmetic.add)
prod = _reduction(reductions.prod, 1.0, multiply)
max = _reduction(reductions.max, -np.inf, elementwise.maximum)
min = _reduction(reductions.min, np.inf, elementwise.minimum)
all = _reduction(statistics.all, 1.0, elementwise.logical_and)
any = _reduction(statistics.any, 0.0, elementwise.logical_or)


def mean(a: object, axis: Axis = None, keepdims: bool = False, where: object = True) -> Expr:
    if where is True:
        return arithmetic.mean(a, axis, keepdims)
    held, e = arithmetic.broadcast(elementwise.truth(as_expr(where)), a)
    count = arithmetic.sum(held, axis, keepdims)
    return elementwise.divide(sum(e, axis, keepdims, where=held), count)


def var(
    a: object, axis: Axis = None, ddof: float = 0, keepdims: bool = False, correction: Any = None
) -> Expr:
    return arithmetic.var(a, axis, ddof if correction is None else correction, keepdims)


def std(
    a: object, axis: Axis = None, ddof: float = 0, keepdims: bool = False, correction: Any = None
) -> Expr:
    return reductions.std(a, axis, ddof if correction is None else correction, keepdims)


# --- shapes ---------------------------------------------------------------------------------------


def shape(a: object) -> Shape:
    return as_expr(a).shape


def ndim(a: object) -> int:
    return as_expr(a).ndim


def size(a: object, axis: int | None = None) -> int:
    """The number of entries, or the extent of an axis; dimensions that are names have none."""
    e = as_expr(a)
    extents = e.shape if axis is None else (e.shape[check_axis(axis, e.ndim, "size")],)
    count = 1
    for extent in extents:
        if isinstance(extent, str):
            raise TraceError(f"the number of entries of shape {show_shape(e.shape)} is not known")
        count *= extent
    return count


def reshaped(a: object, shape: Any, order: str = "C") -> Expr:
    """Another shape; in Fortran's order, that of the transpose, transposed."""
    if order in ("C", "A"):
        return reshape.reshape(a, shape)
    if order != "F":
        raise ValueError(f"reshape: order {order!r}; 'C' or 'F'")
    target: list[Extent] = [shape] if isinstance(shape, int | str) else list(shape)
    return transpose(reshape.reshape(transpose(a), target[::-1]))


def ravel(a: object, order: str = "C") -> Expr:
    return reshaped(a, -1, "C" if order == "K" else order)


def resized(a: object, *shape: Any, order: str = "C") -> Expr:
    """The method `reshape`, which takes extents one by one, too."""
    return reshaped(a, shape[0] if len(shape) == 1 else shape, order)


def transposed(a: object, *axes: Any) -> Expr:
    """The method `transpose`, which takes axes one by one, too."""
    return transpose(a, axes[0] if len(axes) == 1 else axes or None)


def clip(
    a: object, a_min: object = None, a_max: object = None, *, min: object = None, max: object = None
) -> Expr:
    return elementwise.clip(a, min if a_min is None else a_min, max if a_max is None else a_max)


def same(a: object) -> Expr:
    """The expression itself: expressions are immutable, real, and have no memory layout."""
    return as_expr(a)


def check_dtype(name: str, dtype: Any) -> None:
    """Refuse types that would change values: expressions are of real numbers."""
    if np.dtype(dtype) != np.float64:
        raise TraceError(
            f"np.{name}: expressions are not converted to {np.dtype(dtype)}; "
            "convert the arrays that they are called with"
        )


def astype(a: object, dtype: Any, **options: Any) -> Expr:
    """The expression itself, where the type is that of real numbers."""
    check_dtype("astype", dtype)
    return as_expr(a)


def item(a: object, *place: Any) -> Any:
    raise TraceError("an expression is no number: call it with values, or write x[0] for an entry")


def sorted_in_place(a: object, *args: Any, **options: Any) -> None:
    raise TraceError("expressions are immutable: write x = np.sort(x), not x.sort()")


def angle(z: object, deg: bool = False) -> Expr:
    """pi where z is negative: numbers are real."""
    e = as_expr(z)
    return elementwise.where(elementwise.less(e, 0), 180.0 if deg else np.pi, 0.0)


def delete(arr: object, obj: Any, axis: int | None = None) -> Expr:
    """Entries along an axis without some of them, whose places are known."""
    e = reshape.ravel(arr) if axis is None else as_expr(arr)
    place = check_axis(0 if axis is None else axis, e.ndim, "delete")
    return take(e, np.delete(np.arange(size(e, place)), obj), place)


def block(arrays: Any) -> Expr:
    """Nested lists of blocks: innermost ones along the last axis."""
    depth, row = 0, arrays
    while isinstance(row, list):
        depth, row = depth + 1, row[0]
    return _block(arrays, depth)


def _block(arrays: Any, depth: int) -> Expr:
    if not depth:
        return as_expr(arrays)
    parts = [_block(part, depth - 1) for part in arrays]
    ndim = builtins.max(depth, *[e.ndim for e in parts])
    parts = [reshape.reshape(e, ((1,) * (ndim - e.ndim) + e.shape)) for e in parts]
    return joining.concatenate(parts, -depth)


def fftshift(x: object, axes: Axis = None, sign: int = 1) -> Expr:
    """Each axis rolled by half of its extent, as `numpy.fft.fftshift`."""
    e = as_expr(x)
    places = arithmetic.chosen_axes(axes, e.ndim, "fftshift")
    return joining.roll(e, [sign * (size(e, k) // 2) for k in places], places)


def ifftshift(x: object, axes: Axis = None) -> Expr:
    return fftshift(x, axes, -1)


# --- linear algebra -------------------------------------------------------------------------------


def diagonal(x: object, offset: int = 0) -> Expr:
    return any_diagonal(x, offset, -2, -1)


def trace(x: object, offset: int = 0) -> Expr:
    return any_trace(x, offset, -2, -1)


def cholesky(a: object, upper: bool = False) -> Expr:
    factor = lower_cholesky.cholesky(a)
    return factor.mT if upper else factor


def _symmetric(a: object, triangle: str) -> Expr:
    """The symmetric matrix with one triangle of a: the one that NumPy reads, and no other."""
    e = as_expr(a)
    if e.ndim < 2 or is_symmetric(e):
        return e
    if triangle.upper() not in ("L", "U"):
        raise ValueError(f"UPLO={triangle!r}: 'L' or 'U'")
    lower = e if triangle.upper() == "L" else e.mT
    return triangles.tril(lower) + triangles.tril(lower, -1).mT


def eigh(a: object, UPLO: str = "L") -> Any:
    if UPLO.upper() == "U":
        raise UnsupportedError("eigh: with UPLO='U' eigenvectors have other signs; write 'L'")
    return symmetric_eigh.eigh(_symmetric(a, UPLO))


def eigvalsh(a: object, UPLO: str = "L") -> Expr:
    return symmetric_eigh.eigvalsh(_symmetric(a, UPLO))


def qr(a: object, mode: str = "reduced") -> Any:
    if mode not in ("reduced", "r"):
        raise UnsupportedError(f"qr: mode {mode!r}; there are 'reduced' and 'r'")
    found = lq.qr(a)
    return found if mode == "reduced" else found.R


def lstsq(a: object, b: object) -> tuple[Expr, Expr, int, Expr]:
    """Solution, squared residuals, rank and singular values; what is not used costs nothing."""
    e, rhs = as_expr(a), as_expr(b)
    x = lapack_names.lstsq(e, rhs)
    off = arithmetic.sum(arithmetic.square(subtract(matmul(e, x), rhs)), 0)
    rows, columns = (size(e, k) for k in (0, 1))
    residuals = reshape.reshape(off, (-1,)) if rows > columns else as_expr(np.zeros(0))
    return x, residuals, builtins.min(rows, columns), svd.svdvals(e)


def vector_norm(x: object, axis: Axis = None, keepdims: bool = False, ord: float | str = 2) -> Expr:
    if axis is not None:
        return norms.norm(x, ord, axis, keepdims)
    e = as_expr(x)
    found = norms.norm(reshape.ravel(e), ord)
    return reshape.reshape(found, (1,) * e.ndim) if keepdims else found


def matrix_norm(x: object, keepdims: bool = False, ord: float | str = "fro") -> Expr:
    return norms.norm(x, ord, (-2, -1), keepdims)


def cond(x: object, p: float | str | None = None) -> Expr:
    """The ratio of the largest to the smallest singular value, or of norms."""
    if p in (None, 2):
        s = svd.svdvals(x)
        return elementwise.divide(s[..., 0], s[..., -1])
    inverse = lapack_names.inverse(x)
    return multiply(*[norms.norm(e, p, (-2, -1)) for e in (x, inverse)])


def multi_dot(arrays: Sequence[object]) -> Expr:
    """The product of several matrices; plans choose the order of multiplications."""
    found = as_expr(arrays[0])
    for a in arrays[1:]:
        found = matmul(found, a)
    return found


def matvec(x1: object, x2: object) -> Expr:
    return getitem(matmul(x1, getitem(as_expr(x2), (..., None))), (..., 0))


def vecmat(x1: object, x2: object) -> Expr:
    row = getitem(as_expr(x1), (..., None, slice(None)))
    return getitem(matmul(row, x2), (..., 0, slice(None)))
