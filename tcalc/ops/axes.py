"""Axes inserted, removed, moved and repeated, under NumPy's names."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index as whole_number

import numpy as np

from ..graph import normal
from ..graph.extents import ONE, extent_product, show_shape
from ..graph.nodes import Expr
from ..graph.normal import view
from ..support.errors import ShapeError
from .arithmetic import Axis, as_expr, broadcast_shapes, check_axis, expand, listed_axes, public
from .indexing import take
from .joining import flip
from .reshape import ravel, reshape

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_arrays",
    "expand_dims",
    "fliplr",
    "flipud",
    "moveaxis",
    "repeat",
    "rollaxis",
    "rot90",
    "squeeze",
    "swapaxes",
    "tile",
]


# --- axes of extent 1 -----------------------------------------------------------------------------


@public
def expand_dims(a: object, axis: int | Sequence[int]) -> Expr:
    """The array with axes of extent 1 at these places of the result, as `numpy.expand_dims`."""
    e = as_expr(a)
    count = 1 if isinstance(axis, int | np.integer) else len(axis)
    ndim = e.ndim + count
    new = listed_axes(axis, ndim, "expand_dims")
    rest = [k for k in range(ndim) if k not in new]
    return normal.einsum([e], [rest], range(ndim), ONE, dict.fromkeys(new, 1))


@public
def squeeze(a: object, axis: Axis = None) -> Expr:
    """The array without axes of extent 1: all of them, or the ones named, as `numpy.squeeze`.

    Raises
    ------
    ShapeError
        Where an axis that is named has another extent.
    """
    e = as_expr(a)
    ones = [k for k, extent in enumerate(e.shape) if isinstance(extent, int) and extent == 1]
    gone = ones if axis is None else listed_axes(axis, e.ndim, "squeeze")
    for k in gone:
        if k not in ones:
            raise ShapeError(f"squeeze: axis {k} of shape {show_shape(e.shape)} is not 1")
    return normal.einsum([e], [range(e.ndim)], [k for k in range(e.ndim) if k not in gone])


def _at_least(e: Expr, before: int, behind: int) -> Expr:
    """The array with axes of extent 1 before and behind its own."""
    ndim = before + e.ndim + behind
    return expand_dims(e, [k for k in range(ndim) if not before <= k < before + e.ndim])


def _each(arrays: tuple[object, ...], ndim: int) -> Expr | tuple[Expr, ...]:
    found = []
    for a in arrays:
        e = as_expr(a)
        behind = 1 if ndim == 3 and 0 < e.ndim < 3 else 0
        found.append(_at_least(e, max(0, ndim - behind - e.ndim), behind))
    return found[0] if len(found) == 1 else tuple(found)


@public
def atleast_1d(*arrays: object) -> Expr | tuple[Expr, ...]:
    """Arrays with at least one axis; several give a tuple."""
    return _each(arrays, 1)


@public
def atleast_2d(*arrays: object) -> Expr | tuple[Expr, ...]:
    """Arrays with at least two axes, new ones in front; several give a tuple."""
    return _each(arrays, 2)


@public
def atleast_3d(*arrays: object) -> Expr | tuple[Expr, ...]:
    """Arrays with at least three axes: a vector becomes (1, n, 1), a matrix (m, n, 1)."""
    return _each(arrays, 3)


@public
def broadcast_arrays(*arrays: object) -> tuple[Expr, ...]:
    """The arrays, each broadcast to their common shape."""
    exprs = [as_expr(a) for a in arrays]
    shape = broadcast_shapes((), *[e.shape for e in exprs])
    return tuple([expand(e, shape) for e in exprs])


# --- order of axes --------------------------------------------------------------------------------


@public
def swapaxes(a: object, axis1: int, axis2: int) -> Expr:
    """Two axes in each other's place."""
    e = as_expr(a)
    order = list(range(e.ndim))
    i, j = (check_axis(k, e.ndim, "swapaxes") for k in (axis1, axis2))
    order[i], order[j] = order[j], order[i]
    return view(e, order)


@public
def moveaxis(a: object, source: int | Sequence[int], destination: int | Sequence[int]) -> Expr:
    """Axes moved to other places, the rest in their order, as `numpy.moveaxis`."""
    e = as_expr(a)
    old, new = (listed_axes(axes, e.ndim, "moveaxis") for axes in (source, destination))
    if len(old) != len(new):
        raise ShapeError(f"moveaxis: {len(old)} axes cannot be moved to {len(new)} places")
    order = [k for k in range(e.ndim) if k not in old]
    for place, axis in sorted(zip(new, old, strict=True)):
        order.insert(place, axis)
    return view(e, order)


@public
def rollaxis(a: object, axis: int, start: int = 0) -> Expr:
    """One axis moved in front of another, as `numpy.rollaxis`; `moveaxis` is easier to read."""
    e = as_expr(a)
    place = check_axis(axis, e.ndim, "rollaxis")
    front = e.ndim if start == e.ndim else check_axis(start, e.ndim, "rollaxis")
    return moveaxis(e, place, front - (place < front))


@public
def flipud(m: object) -> Expr:
    """The rows in reverse order."""
    return flip(m, 0)


@public
def fliplr(m: object) -> Expr:
    """The columns in reverse order."""
    return flip(m, 1)


@public
def rot90(m: object, k: int = 1, axes: Sequence[int] = (0, 1)) -> Expr:
    """Turned by k quarters, from the first of two axes towards the second, as `numpy.rot90`."""
    e = as_expr(m)
    i, j = listed_axes(axes, e.ndim, "rot90")
    turns = whole_number(k) % 4
    if turns % 2:
        return swapaxes(flip(e, j), i, j) if turns == 1 else flip(swapaxes(e, i, j), j)
    return flip(e, (i, j)) if turns else e


# --- entries repeated -----------------------------------------------------------------------------


def _merged(e: Expr, place: int) -> Expr:
    """Axes `place` and `place + 1` as one."""
    whole = extent_product(e.shape[place : place + 2])
    return reshape(e, (*e.shape[:place], whole, *e.shape[place + 2 :]))


def _copies(e: Expr, place: int, count: int) -> Expr:
    """The array with a new axis before `place`, along which it is the same `count` times."""
    rest = [k for k in range(e.ndim + 1) if k != place]
    return normal.einsum([e], [rest], range(e.ndim + 1), ONE, {place: count})


@public
def repeat(a: object, repeats: int | Sequence[int], axis: int | None = None) -> Expr:
    """Every entry along an axis several times, as `numpy.repeat`.

    Parameters
    ----------
    a : expression or array
        Flattened where no axis is given.
    repeats : int or sequence of int
        For all entries, or for each.
    axis : int, optional
    """
    e = ravel(a) if axis is None else as_expr(a)
    place = check_axis(0 if axis is None else axis, e.ndim, "repeat")
    counts = np.asarray(repeats)
    if counts.dtype.kind not in "iu" or counts.ndim > 1 or (counts.size and counts.min() < 0):
        raise ValueError(f"repeat: {repeats!r} are no numbers of repetitions")
    if counts.size == 1:
        count = int(counts.reshape(()))
        return e if count == 1 else _merged(_copies(e, place + 1, count), place)
    extent = e.shape[place]
    if extent != counts.size:
        raise ShapeError(f"repeat: {counts.size} repetitions for an axis of extent {extent}")
    return take(e, np.repeat(np.arange(counts.size), counts), place)


@public
def tile(a: object, reps: int | Sequence[int]) -> Expr:
    """The array several times along its axes, as `numpy.tile`."""
    e = as_expr(a)
    counts = [whole_number(n) for n in (reps if isinstance(reps, Sequence) else [reps])]
    e = _at_least(e, max(0, len(counts) - e.ndim), 0)
    counts = [1] * (e.ndim - len(counts)) + counts
    for place, count in enumerate(counts):
        if count != 1:
            e = _merged(_copies(e, place, count), place)
    return e
