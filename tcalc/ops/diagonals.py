"""Diagonals of arrays, the main one and those beside it, under NumPy's names."""

from __future__ import annotations

from ..graph import normal
from ..graph.extent_forms import least
from ..graph.extents import ONE, Extent, extent_from, form_of, show_shape
from ..graph.factors import LabelledExpr
from ..graph.nodes import Expr
from ..graph.variables import check_extent
from ..integers.affine import Constraint
from ..integers.boxes import index
from ..support.errors import ShapeError
from ..support.whole_numbers import whole_number
from .arithmetic import as_expr, check_axis, public
from .indicator import indicator

__all__ = ["diag", "diagonal", "eye", "trace"]


def _axes(e: Expr, axis1: int, axis2: int) -> tuple[int, int]:
    """The two axes of a diagonal, checked."""
    if e.ndim < 2:
        raise ShapeError(f"a diagonal needs two axes, not shape {show_shape(e.shape)}")
    i, j = check_axis(axis1, e.ndim, "diagonal"), check_axis(axis2, e.ndim, "diagonal")
    if i == j:
        raise ShapeError(f"a diagonal needs two different axes, not {axis1} and {axis2}")
    return i, j


def _length(e: Expr, i: int, j: int, offset: int) -> Extent:
    """The extent of a diagonal; what is below 0 for numbers is nothing."""
    rows, columns = form_of(e.shape[i]), form_of(e.shape[j])
    length = extent_from(least([rows - max(-offset, 0), columns - max(offset, 0)]))
    return max(0, length) if isinstance(length, int) else length


def _read(a: object, offset: int, axis1: int, axis2: int, summed: bool) -> Expr:
    e, offset = as_expr(a), whole_number(offset)
    i, j = _axes(e, axis1, axis2)
    length = _length(e, i, j, offset)
    word = list(range(e.ndim))
    rest = [k for k in range(e.ndim) if k not in (i, j)]
    if offset == 0 and e.shape[i] == e.shape[j]:
        word[j] = i
        return normal.einsum([e], [word], rest if summed else [*rest, i])
    label = e.ndim
    extents: dict[int, Extent] = {label: length, i: e.shape[i], j: e.shape[j]}
    operands: list[LabelledExpr] = [(e, tuple(word))]
    for axis, start in ((i, max(-offset, 0)), (j, max(offset, 0))):
        form = Constraint(index(axis) - index(label) - start, True)
        operands += indicator({k: extents[k] for k in (axis, label)}, [form])
    ops, words = [op for op, _ in operands], [word for _, word in operands]
    return normal.einsum(ops, words, rest if summed else [*rest, label], ONE, extents)


@public
def eye(n: Extent, m: Extent | None = None, k: int = 0) -> Expr:
    """n rows and m columns (as many by default) with ones on the k-th diagonal, never stored."""
    rows = check_extent(n, "the extent of eye")
    columns = rows if m is None else check_extent(m, "the columns of eye")
    extents: dict[int, Extent] = {0: rows, 1: columns}
    held = indicator(extents, [Constraint(index(1) - index(0) - whole_number(k), True)])
    return normal.einsum([op for op, _ in held], [word for _, word in held], (0, 1), ONE, extents)


@public
def diagonal(a: object, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Expr:
    """A diagonal of two axes, as a last axis."""
    return _read(a, offset, axis1, axis2, False)


@public
def trace(a: object, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Expr:
    """The sum of a diagonal of two axes."""
    return _read(a, offset, axis1, axis2, True)


@public
def diag(a: object, k: int = 0) -> Expr:
    """A diagonal of a matrix, or the matrix with a vector on a diagonal."""
    e, offset = as_expr(a), whole_number(k)
    if e.ndim == 2:
        return diagonal(e, offset)
    if e.ndim != 1:
        raise ShapeError(f"diag takes a vector or a matrix, not shape {show_shape(e.shape)}")
    if not offset:
        return normal.einsum([e], [(0,)], (0, 0))
    size = extent_from(form_of(e.shape[0]) + abs(offset))
    extents: dict[int, Extent] = {0: e.shape[0], 1: size, 2: size}
    operands: list[LabelledExpr] = [(e, (0,))]
    for label, start in ((1, max(-offset, 0)), (2, max(offset, 0))):
        form = Constraint(index(label) - index(0) - start, True)
        operands += indicator({k: extents[k] for k in (0, label)}, [form])
    ops, words = [op for op, _ in operands], [word for _, word in operands]
    return normal.einsum(ops, words, (1, 2), ONE, extents)
