"""Finite differences and sums of trapezoids along an axis, under NumPy's names."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index as whole_number

from ..graph.extents import show_shape
from ..graph.nodes import Expr
from ..support.errors import ShapeError, UnsupportedError
from ..support.whole_numbers import clipped_repr
from .arithmetic import Axis, as_expr, check_axis, chosen_axes, public, subtract
from .arithmetic import sum as total
from .elementwise import divide
from .indexing import getitem
from .joining import concatenate

__all__ = ["diff", "ediff1d", "gradient", "trapezoid"]

#: Behind what refuses operands that other libraries' functions of these names take.
_HINT = "; the derivative by a variable is grad(f, x) or derivative(f, x, order)"


def _cut(e: Expr, axis: int, start: int | None, stop: int | None) -> Expr:
    return getitem(e, (*(slice(None),) * axis, slice(start, stop)))


def _with_entries(value: object, name: str) -> Expr:
    e = as_expr(value)
    if not e.ndim:
        raise ShapeError(f"{name}: a scalar has no neighbouring entries{_HINT}")
    return e


@public
def diff(
    a: object, n: int = 1, axis: int = -1, prepend: object = None, append: object = None
) -> Expr:
    """Differences of neighbours along an axis, n times, as `numpy.diff`.

    The derivative of an expression is its method ``e.diff(x)``, or `derivative`.
    """
    e = _with_entries(a, "diff")
    place = check_axis(axis, e.ndim, "diff")
    try:
        order = whole_number(n)
    except TypeError:
        problem = f"diff of neighbours n times: n = {clipped_repr(n)} is no integer{_HINT}"
        raise TypeError(problem) from None
    if order < 0:
        raise ValueError(f"diff: n = {order} is negative")
    if not order:
        return e
    parts = [_margin(prepend, e, place), e, _margin(append, e, place)]
    given = [part for part in parts if part is not None]
    e = concatenate(given, place) if len(given) > 1 else e
    for _ in range(order):
        if e.shape[place] in (0, 1):
            return _cut(e, place, 0, 0)
        e = subtract(_cut(e, place, 1, None), _cut(e, place, None, -1))
    return e


def _margin(value: object, e: Expr, axis: int) -> Expr | None:
    """What stands before or behind the entries; a number along the whole margin."""
    if value is None:
        return None
    found = as_expr(value)
    if found.ndim:
        return found
    return found + _cut(e, axis, 0, 1) * 0


@public
def ediff1d(ary: object) -> Expr:
    """Differences of neighbours of all entries in C order."""
    return diff(as_expr(ary).ravel())


@public
def gradient(f: object, *varargs: object, axis: Axis = None) -> Expr | list[Expr]:
    """Central differences along axes, one-sided at the ends, as `numpy.gradient`.

    Derivatives by variables are `grad`.

    Parameters
    ----------
    f : expression or array
    *varargs : number, or one number per axis
        Distances between entries.
    axis : int or tuple of int, optional
        All axes by default; several give a list.
    """
    e = _with_entries(f, "gradient")
    listed = axis is None or isinstance(axis, Sequence)
    axes = chosen_axes(None, e.ndim, "gradient") if axis is None else _ordered(axis, e.ndim)
    if named := [h for h in varargs if isinstance(h, str)]:
        raise TypeError(f"gradient: {clipped_repr(named[0])} is no distance between entries{_HINT}")
    steps = [as_expr(h) for h in (varargs or (1.0,))]
    steps = steps * len(axes) if len(steps) == 1 else steps
    if len(steps) != len(axes):
        raise TypeError(f"gradient: {len(varargs)} distances for {len(axes)} axes{_HINT}")
    if any(h.ndim for h in steps):
        raise UnsupportedError(
            f"gradient: distances between entries are one number per axis{_HINT}"
        )
    found = [_central(e, k, h) for k, h in zip(axes, steps, strict=True)]
    return found if listed and len(found) != 1 else found[0]


def _ordered(axis: int | Sequence[int], ndim: int) -> list[int]:
    given = axis if isinstance(axis, Sequence) else [axis]
    return [check_axis(k, ndim, "gradient") for k in given]


def _central(e: Expr, axis: int, step: Expr) -> Expr:
    extent = e.shape[axis]
    if isinstance(extent, int) and extent < 2:
        raise ShapeError(f"gradient needs two entries along each axis, not {show_shape(e.shape)}")
    first = _cut(e, axis, 1, 2) - _cut(e, axis, 0, 1)
    inner = (_cut(e, axis, 2, None) - _cut(e, axis, None, -2)) / 2
    last = _cut(e, axis, -1, None) - _cut(e, axis, -2, -1)
    return divide(concatenate([first, inner, last], axis), step)


@public
def trapezoid(y: object, x: object = None, dx: object = 1.0, axis: int = -1) -> Expr:
    """The integral along an axis by trapezoids, of entries at `x` or `dx` apart."""
    e = as_expr(y)
    place = check_axis(axis, e.ndim, "trapezoid")
    sums = (_cut(e, place, 1, None) + _cut(e, place, None, -1)) / 2
    if x is None:
        return total(sums, place) * as_expr(dx)
    points = as_expr(x)
    widths = diff(points, axis=0 if points.ndim == 1 else axis)
    if points.ndim == 1:
        widths = widths[(slice(None), *(None,) * (e.ndim - place - 1))]
    return total(widths * sums, place)
