"""Cumulative products: loops, so that derivatives are right with zeros among the entries."""

from __future__ import annotations

from ..graph.nodes import Expr
from ..ops.arithmetic import as_expr, check_axis, public
from ..ops.axes import moveaxis
from ..ops.reshape import ravel
from ..ops.views import ones
from .fold import fold

__all__ = ["cumprod"]


@public
def cumprod(a: object, axis: int | None = None) -> Expr:
    """Partial products along an axis, without one of all entries in C order.

    Examples
    --------
    >>> import tcalc as tc
    >>> x = tc.var("x", 3)
    >>> tc.jacobian(tc.cumprod(x), x)(x=[2.0, 0.0, 4.0])
    array([[1., 0., 0.],
           [0., 2., 0.],
           [0., 8., 0.]])
    """
    e = ravel(a) if axis is None else as_expr(a)
    place = check_axis(0 if axis is None else axis, e.ndim, "cumprod")
    lines = moveaxis(e, place, 0)
    states = fold(lambda s, i: s * lines[i], ones(lines.shape[1:]), lines.shape[0], history=True)
    return moveaxis(states, 0, place)
