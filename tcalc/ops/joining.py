"""Arrays put together and around: concatenate, stack, pad, flip, roll, under NumPy's names.

Each part stands at shifted places in zeros: a product with an indicator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..graph import normal
from ..graph.extents import ONE, Extent, extent_coef, extent_from, form_of, show_shape
from ..graph.nodes import Expr
from ..graph.products import filled, is_number
from ..integers.affine import Affine, Constraint
from ..integers.boxes import index
from ..support.errors import ShapeError, UnsupportedError
from ..support.whole_numbers import clipped_repr, whole_number
from .arithmetic import Axis, as_expr, check_axis, chosen_axes, public
from .elementwise import mod
from .indexing import getitem
from .indicator import indicator
from .operands import shown_operands
from .reductions import arange
from .reshape import ravel, reshape

__all__ = ["array", "concatenate", "flip", "pad", "roll", "stack"]


def shifted(e: Expr, axis: int, start: Affine, extent: Extent) -> Expr:
    """The array along an axis of another extent, from a place on, with zeros around it.

    From a place before the first one, that is so many entries from there on.
    """
    label = e.ndim
    extents: dict[int, Extent] = {axis: e.shape[axis], label: extent}
    held = indicator(extents, [Constraint(index(label) - index(axis) - start, True)])
    word = tuple(range(e.ndim))
    out = (*word[:axis], label, *word[axis + 1 :])
    ops, words = [op for op, _ in held], [w for _, w in held]
    return normal.einsum([e, *ops], [word, *words], out, ONE, extents)


def widened(e: Expr, widths: Sequence[tuple[Extent, Extent]]) -> Expr:
    """The array with margins of zeros, of these extents before and behind along each axis."""
    for axis, (before, after) in enumerate(widths):
        start, extent = form_of(before), form_of(e.shape[axis])
        if (before, after) != (0, 0):
            e = shifted(e, axis, start, extent_from(extent + start + form_of(after)))
    return e


def holds_expressions(value: object) -> bool:
    """Does a nest of lists and tuples hold an expression?"""
    if isinstance(value, list | tuple):
        return any(map(holds_expressions, value))
    return isinstance(value, Expr)


@public
def array(a: object) -> Expr:
    """Nested lists of expressions, arrays and numbers as one array: stacked, as `numpy.array`.

    Examples
    --------
    >>> import tcalc as tc
    >>> x = tc.var("x")
    >>> tc.array([[x, 1.0], [0.0, x**2]]).shape
    (2, 2)
    """
    if isinstance(a, list | tuple) and holds_expressions(a):
        return stack([array(part) for part in a])
    return as_expr(a)


def parts(arrays: object, what: str) -> list[Expr]:
    """The arrays of a sequence, or along the first axis of one array."""
    if isinstance(arrays, Expr) and arrays.ndim:
        arrays = list(arrays)
    if not isinstance(arrays, Sequence | np.ndarray):
        raise TypeError(f"{what} takes a sequence of arrays, not {type(arrays).__name__}")
    found = [array(a) for a in arrays]
    if not found:
        raise ValueError(f"{what} needs at least one array")
    return found


@public
def concatenate(arrays: object, axis: int | None = 0) -> Expr:
    """Arrays one behind the other along an axis, as `numpy.concatenate`.

    Parameters
    ----------
    arrays : sequence of expressions and arrays
    axis : int

    Examples
    --------
    >>> import tcalc as tc
    >>> x, y = tc.var("x", "n"), tc.var("y", "m")
    >>> tc.concatenate([x, y]).shape
    ('m+n',)
    """
    exprs = parts(arrays, "concatenate")
    if axis is None:
        exprs, axis = [ravel(e) for e in exprs], 0
    ndim = exprs[0].ndim
    if not ndim:
        raise ShapeError("concatenate: arrays without axes cannot be concatenated; use stack")
    place = check_axis(axis, ndim, "concatenate")
    rest = [(*e.shape[:place], *e.shape[place + 1 :]) for e in exprs]
    for e, other in zip(exprs, rest, strict=True):
        if e.ndim != ndim or other != rest[0]:
            raise ShapeError(
                f"concatenate along axis {place}: {shown_operands(exprs[0], e)} do not fit"
            )
    starts = [Affine()]
    for e in exprs:
        starts.append(starts[-1] + form_of(e.shape[place]))
    whole = extent_from(starts[-1])
    terms = [
        shifted(e, place, start, whole)
        for e, start in zip(exprs, starts, strict=False)
        if e.shape[place] != 0
    ]
    return normal.add(terms) if terms else exprs[0]


@public
def stack(arrays: object, axis: int = 0) -> Expr:
    """Arrays of one shape along a new axis, as `numpy.stack`."""
    exprs = parts(arrays, "stack")
    shape = exprs[0].shape
    for e in exprs:
        if e.shape != shape:
            raise ShapeError(f"stack: shapes {show_shape(shape)} and {show_shape(e.shape)} differ")
    place = check_axis(axis, len(shape) + 1, "stack")
    key = (*[slice(None)] * place, None)
    return concatenate([getitem(e, key) for e in exprs], place)


@public
def pad(a: object, pad_width: object, mode: str = "constant", constant_values: object = 0) -> Expr:
    """An array with a margin of a number or of its own entries, as `numpy.pad`.

    Parameters
    ----------
    a : expression or array
    pad_width : int or sequence
        ``n``, ``(before, after)``, or one such pair per axis.
    mode : {"constant", "edge", "wrap", "reflect", "symmetric"}
        What the margins are: ``constant_values``, the first and last entries, entries from the
        other end, or entries from this end mirrored without or with the first one. Margins of
        entries are no wider than the axis.
    constant_values : number or scalar expression

    Examples
    --------
    >>> import tcalc as tc
    >>> tc.pad(tc.var("x", 4), (1, 2), "wrap")(x=[1.0, 2, 3, 4])
    array([4., 1., 2., 3., 4., 1., 2.])
    """
    e = as_expr(a)
    if mode != "constant" and mode not in MARGINS:
        known = ", ".join(map(repr, ["constant", *MARGINS]))
        raise UnsupportedError(f"pad: mode {mode!r}; there are {known}")
    value = as_expr(constant_values)
    if value.ndim:
        raise UnsupportedError("pad: constant_values is one number")
    widths = np.asarray(pad_width)
    if widths.dtype.kind not in "iu" or (widths.size and widths.min() < 0):
        raise ValueError(f"pad: widths are whole numbers from 0 on, not {clipped_repr(pad_width)}")
    try:
        pairs = np.broadcast_to(widths, (e.ndim, 2)).tolist()
    except ValueError:
        raise ValueError(
            f"pad: {clipped_repr(pad_width)} are no widths for {e.ndim} axes"
        ) from None
    for axis, (before, after) in enumerate(pairs):
        if (before or after) and mode != "constant":
            e = _between_entries(e, axis, before, after, mode)
        elif before or after:
            e = _between_numbers(e, axis, before, after, value)
    return e


def _between_numbers(e: Expr, axis: int, before: int, after: int, value: Expr) -> Expr:
    extent = extent_from(form_of(e.shape[axis]) + before + after)
    inner = shifted(e, axis, Affine((), before), extent)
    if is_number(value, 0):
        return inner
    outside = [index(0) - (form_of(e.shape[axis]) + before), before - 1 - index(0)]
    margins = [_where(form, extent, value) for form in outside]
    return normal.add([inner, *[_along(m, axis, inner) for m in margins]])


#: Entries before and behind an axis, of so many each, by mode.
MARGINS: dict[str, Callable[[int], tuple[slice, slice]]] = {
    "edge": lambda k: (slice(0, 1), slice(-1, None)),
    "wrap": lambda k: (slice(-k, None), slice(0, k)),
    "reflect": lambda k: (slice(k, 0, -1), slice(-2, -k - 2, -1)),
    "symmetric": lambda k: (slice(k - 1, None, -1), slice(-1, -k - 1, -1)),
}


def _between_entries(e: Expr, axis: int, before: int, after: int, mode: str) -> Expr:
    widest = max(before, after) + (mode == "reflect")
    extent = e.shape[axis]
    if isinstance(extent, int) and (extent < 1 or (mode != "edge" and widest > extent)):
        raise ShapeError(f"pad: {widest} entries for a margin, of an axis of extent {extent}")
    front = [slice(None)] * axis
    parts = []
    for side, count in enumerate((before, after)):
        if side:
            parts.append(e)
        if count:
            entries = getitem(e, (*front, MARGINS[mode](count)[side]))
            parts += [entries] * (count if mode == "edge" else 1)
    return concatenate(parts, axis)


def _where(form: Affine, extent: Extent, value: Expr) -> Expr:
    """A vector that is a number where a form is not negative, and 0 elsewhere."""
    held = indicator({0: extent}, [Constraint(form)])
    ops, words = [op for op, _ in held], [w for _, w in held]
    return normal.einsum([value, *ops], [(), *words], (0,), ONE, {0: extent})


def _along(vector: Expr, axis: int, e: Expr) -> Expr:
    """A vector along one axis, repeated along the others."""
    return normal.einsum([vector], [(axis,)], range(e.ndim), ONE, dict(enumerate(e.shape)))


@public
def flip(m: object, axis: Axis = None) -> Expr:
    """The entries along axes (all by default) in reverse order, as `numpy.flip`."""
    e = as_expr(m)
    axes = chosen_axes(axis, e.ndim, "flip")
    return getitem(e, tuple([slice(None, None, -1 if k in axes else None) for k in range(e.ndim)]))


@public
def roll(a: object, shift: int | Sequence[int], axis: Axis = None) -> Expr:
    """The entries along an axis shifted, those that leave it at the other end, as `numpy.roll`.

    Several axes are rolled one after the other, each by its shift or all by one; without an axis,
    the entries are in C order.
    """
    e = as_expr(a)
    if isinstance(axis, Sequence) or isinstance(shift, Sequence):
        for count, place in np.broadcast(shift, 0 if axis is None else axis):
            e = _rolled(e, int(count), int(place))
        return e
    if axis is None and e.ndim != 1:
        return reshape(roll(ravel(e), shift), e.shape)
    return _rolled(e, shift, 0 if axis is None else axis)


def _rolled(e: Expr, shift: int, axis: int) -> Expr:
    place = check_axis(axis, e.ndim, "roll")
    extent, count = e.shape[place], whole_number(shift)
    if isinstance(extent, int):
        count = count % extent if extent else 0
    if not count:
        return e
    ahead = (slice(None),) * place
    if isinstance(extent, str) and abs(count) > 1:  # it may be beyond the extent
        return getitem(e, (*ahead, mod(arange(extent) - count, filled(extent_coef(extent), ()))))
    ends = [getitem(e, (*ahead, slice(-count, None))), getitem(e, (*ahead, slice(-count)))]
    return concatenate(ends, place)
