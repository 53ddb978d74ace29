"""NumPy's functions of sequences: convolutions, interpolation, functions by parts, counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..graph.extents import show_shape
from ..graph.nodes import Expr
from ..loops.build import build
from ..loops.convolutions import convolved
from ..ops.arithmetic import add, as_expr, check_axis, dot, multiply, subtract
from ..ops.arithmetic import sum as total
from ..ops.axes import moveaxis
from ..ops.differences import diff
from ..ops.elementwise import divide, greater_equal, less, mod, where
from ..ops.indexing import segment_sum, take
from ..ops.joining import concatenate, flip
from ..ops.ordering import argsort
from ..ops.reshape import ravel
from ..ops.selection import selection
from ..support.errors import ShapeError, TraceError

MODES = ("valid", "same", "full")


def convolve(a: object, v: object, mode: str | int = "full") -> Expr:
    """As `numpy.convolve`; an extent that has a name counts as no less than the other, a number."""
    one, other = _sequences(a, v, "convolve")
    return _joined(one, other, mode, "convolve")


def correlate(a: object, v: object, mode: str | int = "valid") -> Expr:
    """As `numpy.correlate`; of extents as `convolve`."""
    one, other = _sequences(a, v, "correlate")
    if _is_shorter(one, other):
        return flip(_joined(other, flip(one), mode, "correlate"))
    return _joined(one, flip(other), mode, "correlate")


def _sequences(a: object, v: object, name: str) -> list[Expr]:
    found = [as_expr(a), as_expr(v)]
    for e in found:
        if e.ndim > 1:
            raise ShapeError(f"{name}: sequences have one axis, not shape {show_shape(e.shape)}")
        if e.shape == (0,):
            raise ValueError(f"{name}: a sequence without entries")
    return [ravel(e) for e in found]


def _joined(one: Expr, other: Expr, mode: str | int, name: str) -> Expr:
    if isinstance(mode, int) and 0 <= mode < len(MODES):
        mode = MODES[mode]
    if mode not in MODES:
        raise ValueError(f"{name}: mode {mode!r} is not 'full', 'same' or 'valid'")
    if _is_shorter(one, other):
        one, other = other, one
    found: Expr = convolved(one, other, mode)
    return found


def _is_shorter(one: Expr, other: Expr) -> bool:
    m, n = one.shape[0], other.shape[0]
    return isinstance(m, int) and (not isinstance(n, int) or m < n)


def interp(
    x: object,
    xp: object,
    fp: object,
    left: object = None,
    right: object = None,
    period: object = None,
) -> Expr:
    """As `numpy.interp`, differentiable by the values `fp`, by `x` and by rising knots `xp`.

    At a knot the derivative is that of the piece on its right.
    """
    e, knots, values = as_expr(x), as_expr(xp), as_expr(fp)
    if knots.ndim != 1 or values.ndim != 1:
        shapes = f"{show_shape(knots.shape)} and {show_shape(values.shape)}"
        raise ShapeError(f"interp: knots and values are vectors, not of shapes {shapes}")
    if knots.shape != values.shape:
        raise ShapeError(
            f"interp: {show_shape(knots.shape)} knots, {show_shape(values.shape)} values"
        )
    if period is not None:
        e, knots = mod(e, period), mod(knots, period)
        order = argsort(knots)
        knots, values = take(knots, order), take(values, order)
        knots = concatenate([subtract(knots[-1:], period), knots, add(knots[:1], period)])
        values = concatenate([values[-1:], values, values[:1]])
        left = right = None
    inside = values[0] if knots.shape == (1,) else _within(e, knots, values)
    before, behind = (values[k] if v is None else v for k, v in ((0, left), (-1, right)))
    return where(less(e, knots[0]), before, where(less(knots[-1], e), behind, inside))


def _within(e: Expr, knots: Expr, values: Expr) -> Expr:
    """Values between knots; the outer pieces go on beyond them."""
    slopes = divide(diff(values), diff(knots))
    # the last piece that begins at or before x, the first one for what stands before all
    piece = total(greater_equal(e[..., None], knots[1:-1]), -1)
    chosen = selection(piece, slopes.shape[0])
    start, slope, value = (dot(chosen, each) for each in (knots[:-1], slopes, values[:-1]))
    return add(value, multiply(slope, subtract(e, start)))


def piecewise(
    x: object, condlist: Any, funclist: Sequence[Any], *args: Any, **options: Any
) -> Expr:
    """As `numpy.piecewise`: of several conditions that hold the last one counts."""
    e = as_expr(x)
    conditions = list(condlist) if isinstance(condlist, list | tuple) else [condlist]
    pieces = list(funclist)
    if len(pieces) == len(conditions) + 1:
        rest = pieces.pop()
    elif len(pieces) == len(conditions):
        rest = 0
    else:
        raise ValueError(f"piecewise: {len(conditions)} conditions, {len(pieces)} functions")

    def value(piece: Any) -> Any:
        return piece(e, *args, **options) if callable(piece) else piece

    found = add(value(rest), multiply(0, e))
    for condition, piece in zip(conditions, pieces, strict=True):
        found = where(condition, value(piece), found)
    return found


def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: object, *args: Any, **kwargs: Any
) -> Expr:
    """As `numpy.apply_along_axis`: the function of every vector along an axis."""
    e = as_expr(arr)
    place = check_axis(axis, e.ndim, "apply_along_axis")
    vectors = moveaxis(e, place, -1)

    def found(chosen: list[Any]) -> Expr:
        if len(chosen) < e.ndim - 1:
            results: Expr = build(vectors.shape[len(chosen)], lambda i: found([*chosen, i]))
            return results
        return as_expr(func1d(vectors[tuple(chosen)], *args, **kwargs))

    results = found([])
    new = results.ndim - e.ndim + 1
    return moveaxis(
        results, list(range(results.ndim - new, results.ndim)), list(range(place, place + new))
    )


def bincount(x: object, weights: object = None, minlength: int = 0) -> Expr:
    """As `numpy.bincount`, of integers that are an array and of weights that may be an expression.

    Raises
    ------
    TraceError
        For integers that are an expression: how many sums there are depends on them.
    """
    if isinstance(x, Expr):
        raise TraceError(
            "bincount of integers that are an expression: how many sums there are depends on their"
            " values; write segment_sum(weights, x, n)"
        )
    places = np.asarray(x)
    if places.ndim != 1 or (places.size and places.dtype.kind not in "iub"):
        raise ValueError(
            f"bincount: {places.dtype} of shape {show_shape(places.shape)} is no vector of integers"
        )
    if places.size and places.min() < 0:
        raise ValueError(f"bincount: {places.min()} is negative, and no place of a sum")
    count = max(int(minlength), int(places.max(initial=-1)) + 1)
    found: Expr = segment_sum(weights, places.astype(np.int64), count)
    return found
