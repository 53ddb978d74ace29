"""Triangles of arrays: entries below or above a diagonal of the last two axes."""

from __future__ import annotations

from operator import index as whole_number

from ..graph.extents import ONE, Extent, show_shape
from ..graph.nodes import Expr
from ..graph.normal import einsum
from ..graph.variables import check_extent
from ..integers.affine import Constraint
from ..integers.boxes import index
from ..support.errors import ShapeError
from .arithmetic import as_expr, expand, public
from .elementwise import where
from .indicator import indicator

__all__ = ["tri", "tril", "triu"]


@public
def tri(n: Extent, m: Extent | None = None, k: int = 0) -> Expr:
    """Ones at and below the k-th diagonal of n rows and m columns, zeros above, as `numpy.tri`."""
    rows = check_extent(n, "the rows of tri")
    columns = rows if m is None else check_extent(m, "the columns of tri")
    extents: dict[int, Extent] = {0: rows, 1: columns}
    held = indicator(extents, [Constraint(index(0) + whole_number(k) - index(1))])
    return einsum([op for op, _ in held], [word for _, word in held], (0, 1), ONE, extents)


def _triangle(m: object, k: int, lower: bool, what: str) -> Expr:
    e = as_expr(m)
    e = expand(e, (*e.shape, *e.shape)) if e.ndim == 1 else e
    if e.ndim < 2:
        raise ShapeError(f"{what} needs at least one axis, not {show_shape(e.shape)}")
    rows, columns = e.shape[-2:]
    mask = tri(rows, columns, whole_number(k) - (not lower))
    return where(mask, e, 0) if lower else where(mask, 0, e)


@public
def tril(m: object, k: int = 0) -> Expr:
    """The array with zeros above the k-th diagonal of the last two axes, as `numpy.tril`."""
    return _triangle(m, k, True, "tril")


@public
def triu(m: object, k: int = 0) -> Expr:
    """The array with zeros below the k-th diagonal of the last two axes, as `numpy.triu`."""
    return _triangle(m, k, False, "triu")
