"""Entries at places that wrap around: x[mod(i + j, n)] reads x with copies of itself behind it.

There the place is affine, so that plans read windows and correlate; sums at such places are folded
back, piece by piece. For plans only, as how often places wrap around is known with the sizes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...graph.applications import rewritten
from ...graph.extents import ONE, Extent, extent_from, extent_of, form_of
from ...graph.factors import LabelledExpr, indicates, selects
from ...graph.nodes import Apply, Einsum, Expr, Labels, postorder
from ...graph.normal import add, einsum
from ...integers.affine import Affine, Constraint
from ...integers.boxes import index
from ...ops.indicator import at_sizes, corners, indicator, renamed
from ...ops.selection import wrapped_place, wraps
from ...support.records import NamedTuple

#: How many copies of an array places may reach over.
MOST = 4


class _Wrap(NamedTuple):
    """Places in an array of this extent: affine in labels, from the first of some copies on."""

    place: Affine
    extent: Extent
    copies: int


def unwrapped(roots: Sequence[Expr], sizes: Mapping[str, int]) -> list[Expr]:
    """The roots with affine places, in arrays beside themselves, for those that wrap around."""
    if not any(wraps(node) for node in postorder(roots)):
        return list(roots)

    def change(new: Expr, old: Expr) -> Expr:
        while isinstance(new, Einsum):
            found = _without_one(new, sizes)
            if found is None:
                break
            new = found
        return new

    return rewritten(roots, change)


def _without_one(e: Einsum, sizes: Mapping[str, int]) -> Expr | None:
    """A product with one selection fewer; None where there is none, or it stays."""
    for k, (arg, word) in enumerate(zip(e.args, e.labels, strict=True)):
        wrap = _wrap(arg, word, sizes) if wraps(arg) else None
        if wrap is None or len(set(word)) < len(word):
            continue
        label = word[-1]
        rest = [o for n, o in enumerate(zip(e.args, e.labels, strict=True)) if n != k]
        here = [op for op, other in rest if label in other]
        if any(selects(op) or indicates(op) for op in here) or bool(here) == (label in e.out):
            continue
        return _read(e, rest, label, wrap) if here else _added(e, rest, label, wrap)
    return None


def _wrap(arg: Expr, word: Labels, sizes: Mapping[str, int]) -> _Wrap | None:
    """The places of a selection tensor, if they are affine but for wrapping around its extent."""
    assert isinstance(arg, Apply)
    places, extent = wrapped_place(arg), arg.params[0]
    count = extent_of(extent, sizes)
    if places is None or not count:
        return None
    lengths = {axis: extent_of(n, sizes) for axis, n in enumerate(arg.args[0].shape)}
    if 0 in lengths.values():
        return None
    low, high = corners(at_sizes(places, sizes), lengths)
    first, last = low // count, high // count
    if last - first >= MOST:
        return None
    whole = renamed(places, word) - form_of(extent) * first
    return _Wrap(whole, extent, last - first + 1)


def _read(e: Einsum, rest: Sequence[LabelledExpr], label: int, wrap: _Wrap) -> Expr:
    """Entries at such places: of the arrays beside themselves."""
    extents = _extents(e, label, wrap)
    operands = [(_beside(op, w.index(label), wrap) if label in w else op, w) for op, w in rest]
    operands += indicator(extents, [Constraint(index(label) - wrap.place, True)])
    return einsum([op for op, _ in operands], [w for _, w in operands], e.out, e.coef, extents)


def _added(e: Einsum, rest: Sequence[LabelledExpr], label: int, wrap: _Wrap) -> Expr:
    """Sums at such places: the copies of what is added up, on one another."""
    extents = _extents(e, label, wrap)
    operands = [*rest, *indicator(extents, [Constraint(index(label) - wrap.place, True)])]
    inner = einsum([op for op, _ in operands], [w for _, w in operands], e.out, e.coef, extents)
    axis = e.out.index(label)
    return add([_piece(inner, axis, wrap, k, True) for k in range(wrap.copies)])


def _extents(e: Einsum, label: int, wrap: _Wrap) -> dict[int, Extent]:
    """The extents of all labels, this one's that of the copies."""
    return {**dict(enumerate(e.extents)), label: extent_from(form_of(wrap.extent) * wrap.copies)}


def _beside(e: Expr, axis: int, wrap: _Wrap) -> Expr:
    """Copies of an array beside each other along an axis."""
    return add([_piece(e, axis, wrap, k, False) for k in range(wrap.copies)])


def _piece(e: Expr, axis: int, wrap: _Wrap, k: int, back: bool) -> Expr:
    """An array as the k-th of its copies, or that copy as an array, along an axis."""
    new, word = e.ndim, range(e.ndim)
    short, long = (new, axis) if back else (axis, new)
    extents: dict[int, Extent] = dict(enumerate(e.shape))
    extents |= {short: wrap.extent, long: extent_from(form_of(wrap.extent) * wrap.copies)}
    shift = Constraint(index(long) - index(short) - form_of(wrap.extent) * k, True)
    operands: list[LabelledExpr] = [(e, tuple(word)), *indicator(extents, [shift])]
    out = [new if n == axis else n for n in word]
    return einsum([op for op, _ in operands], [w for _, w in operands], out, ONE, extents)
