"""Views and constructors of expressions, under NumPy's names."""

from __future__ import annotations

from collections.abc import Sequence

from ..graph.extents import ONE, Coef, Extent
from ..graph.nodes import Expr
from ..graph.normal import view
from ..graph.products import filled
from ..graph.variables import check_shape
from ..support.errors import ShapeError
from .arithmetic import as_expr, check_axis, public

__all__ = [
    "matrix_transpose",
    "ones",
    "transpose",
    "zeros",
]


@public
def transpose(a: object, axes: Sequence[int] | int | None = None, *more: int) -> Expr:
    """The array with its axes in another order, by default the reverse one."""
    e = as_expr(a)
    if isinstance(axes, int):
        axes = (axes, *more)
    perm = (
        list(range(e.ndim))[::-1]
        if axes is None
        else [check_axis(k, e.ndim, "transpose") for k in axes]
    )
    if sorted(perm) != list(range(e.ndim)):
        raise ShapeError(f"transpose: {axes} is not an order of the {e.ndim} axes")
    return view(e, perm)


@public
def matrix_transpose(a: object) -> Expr:
    """The array with its last two axes exchanged."""
    e = as_expr(a)
    if e.ndim < 2:
        raise ShapeError("a matrix transpose needs at least two axes")
    return view(e, [*range(e.ndim - 2), e.ndim - 1, e.ndim - 2])


# --- constructors ---------------------------------------------------------------------------------


@public
def zeros(shape: Extent | Sequence[Extent] = ()) -> Expr:
    """An array of zeros; it is never stored."""
    return filled(Coef(0), check_shape(shape, "zeros"))


@public
def ones(shape: Extent | Sequence[Extent] = ()) -> Expr:
    """An array of ones; it is never stored."""
    return filled(ONE, check_shape(shape, "ones"))
