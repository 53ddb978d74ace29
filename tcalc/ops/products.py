"""Products of vectors under NumPy's names: `outer inner vdot vecdot cross`."""

from __future__ import annotations

import numpy as np

from ..graph import normal
from ..graph.extents import show_shape
from ..graph.nodes import Expr
from ..support.errors import ShapeError
from .arithmetic import as_expr, broadcast, const, multiply, public, sum, tensordot
from .axes import moveaxis
from .reshape import ravel

__all__ = ["cross", "inner", "outer", "vdot", "vecdot"]


@public
def outer(a: object, b: object) -> Expr:
    """a_i b_j, of the entries of a and b in C order."""
    left, right = (e if e.ndim == 1 else ravel(e) for e in map(as_expr, (a, b)))
    return tensordot(left, right, 0)


@public
def inner(a: object, b: object) -> Expr:
    """The sum over the last axes of both, as `numpy.inner`."""
    left, right = as_expr(a), as_expr(b)
    if not left.ndim or not right.ndim:
        return multiply(left, right)
    return tensordot(left, right, ([-1], [-1]))


@public
def vdot(a: object, b: object) -> Expr:
    """The sum of products of all entries in C order."""
    left, right = as_expr(a), as_expr(b)
    if left.shape == right.shape:
        return tensordot(left, right, left.ndim)
    return tensordot(ravel(left), ravel(right), 1)


@public
def vecdot(x1: object, x2: object, axis: int = -1) -> Expr:
    """The sum of products along one axis of arrays that broadcast."""
    return sum(multiply(x1, x2), axis)


@public
def cross(
    a: object, b: object, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Expr:
    """The vector product over axes of extent 3, the last ones by default, as `numpy.cross`."""
    if axis is not None:
        axisa = axisb = axisc = axis
    left, right = broadcast(moveaxis(a, axisa, -1), moveaxis(b, axisb, -1))
    if not left.ndim or left.shape[-1] != 3:
        raise ShapeError(f"cross needs axes of extent 3, not {show_shape(left.shape)}")
    sign = np.zeros((3, 3, 3), np.float32)  # operands of single precision stay so
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        sign[i, j, k], sign[i, k, j] = 1, -1
    n = left.ndim - 1
    words = [(n, n + 1, n + 2), (*range(n), n + 1), (*range(n), n + 2)]
    return moveaxis(normal.einsum([const(sign), left, right], words, range(n + 1)), -1, axisc)
