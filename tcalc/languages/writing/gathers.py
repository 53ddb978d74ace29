"""Products with selection tensors that are gathers, strided views or segment sums."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from operator import is_

from ...graph.applications import with_args
from ...graph.extent_forms import floor_divided
from ...graph.extents import ONE, Extent, extent_from, form_of
from ...graph.factors import LabelledExpr, indicates, selects
from ...graph.nodes import Apply, Einsum, Expr, Labels
from ...graph.normal import einsum, view
from ...integers.affine import Affine, Constraint
from ...ops.indexing import getitem
from ...ops.indicator import conditions, indicator
from ...ops.reductions import arange
from ...support.errors import Error
from ...support.records import NamedTuple


class Gather(NamedTuple):
    """``array[keys]`` with its axes permuted.

    Attributes
    ----------
    keys : tuple of Expr or None
        The integers for each axis of the array; None takes all of the axis.
    perm : tuple of int
        Axis k of the product is axis perm[k] of the gather.
    """

    array: Expr
    keys: tuple[Expr | None, ...]
    perm: Labels


class SegmentSum(NamedTuple):
    """``segment_sum(summand, index, extent)`` with its axes permuted."""

    summand: Expr
    index: Expr
    extent: Extent
    perm: Labels


def as_gather(node: Einsum) -> Gather | None:
    """The gather that a product is, if it is one."""
    if not node.summed:
        inner = under_permutation(node)
        found = None if inner is None else as_gather(inner)
        return None if found is None else found._replace(perm=composed(node, found.perm))
    arrays = [(op, w) for op, w in zip(node.args, node.labels, strict=True) if not selects(op)]
    chosen = {w[-1]: (op.args[0], w[:-1]) for op, w in zip(node.args, node.labels, strict=True)
              if selects(op)}  # fmt: skip
    if not arrays or len(chosen) + len(arrays) != len(node.args) or not chosen:
        return None
    labels = {w for _, w in chosen.values() if w}
    shared = next(iter(labels), ())
    beside = {label for _, w in arrays for label in w if label in shared}
    if chosen.keys() & set(node.out) or len(labels) > 1 or len(set(shared)) < len(shared):
        return None
    one = _as_one(arrays, chosen.keys() | beside | {k for k in node.out if k not in shared})
    if one is None:
        return None
    array, word = one
    if len(set(word)) < len(word) or not chosen.keys() <= set(word):
        return None
    keys = {label: key for label, (key, _) in chosen.items()}
    for label in beside:  # one entry of each row, whose number counts them
        rows, places = arange(node.extents[label]), range(len(shared))
        extents = {k: node.extents[other] for k, other in enumerate(shared)}
        keys[label] = einsum([rows], [(shared.index(label),)], places, ONE, extents)
    natural = natural_order(word, tuple(keys), shared)
    if sorted(natural) != sorted(node.out):
        return None
    shown = [keys.get(label) for label in word]
    while shown[-1] is None:
        shown.pop()
    return Gather(array, tuple(shown), tuple([natural.index(label) for label in node.out]))


class StridedView(NamedTuple):
    """``array[keys]`` with its axes permuted; keys are the text of slices and integers."""

    array: Expr
    keys: tuple[str | None, ...]
    perm: Labels


def as_strided_view(node: Expr) -> StridedView | None:
    """The strided view that a contraction is, or that an indicator is of a unit matrix, if any."""
    if indicates(node):
        return _unit_rows(node)
    if not isinstance(node, Einsum):
        return None
    if not node.summed:
        inner = under_permutation(node)
        found = None if inner is None else as_strided_view(inner)
        return None if found is None else found._replace(perm=composed(node, found.perm))
    pairs = list(zip(node.args, node.labels, strict=True))
    arrays = [(op, word) for op, word in pairs if not indicates(op)]
    if not 0 < len(arrays) < len(pairs) or any(selects(op) for op, _ in arrays):
        return None
    read = {label for _, word in arrays for label in word}
    slices = _sliced(pairs, read, node.out, dict(enumerate(node.extents)))
    if slices is None:
        return None
    keys, order = slices
    back = {out: label for label, out in order.items()}
    one = _as_one(arrays, {back.get(label, label) for label in node.out} | keys.keys())
    return None if one is None else _viewed(*one, keys, order, node, node.out)


def _as_one(arrays: Sequence[LabelledExpr], kept: set[int]) -> LabelledExpr | None:
    """The product of arrays with the labels that are read; None where it is larger than these."""
    array, word = arrays[0]
    if len(arrays) == 1:
        return array, word
    read = {label for _, w in arrays for label in w}
    if not kept <= read or len(kept) > max(op.ndim for op, _ in arrays):
        return None
    word = tuple(dict.fromkeys([k for k in (*word, *sorted(kept)) if k in kept]))
    return einsum([op for op, _ in arrays], [w for _, w in arrays], word), word


def unit(n: Extent) -> Expr:
    """The unit matrix."""
    return einsum([], [], (0, 0), ONE, {0: n})


def _unit_rows(node: Apply) -> StridedView | None:
    """The slice of a unit matrix, or a row of it, that an indicator is, if it is one."""
    axes = tuple(range(node.ndim))
    for axis in axes:
        n, column = node.shape[axis], node.ndim
        extents = dict(enumerate((*node.shape, n)))
        out = tuple([column if k == axis else k for k in axes])
        found = _sliced([(node, axes)], {axis, column}, out, extents)
        if found is None:
            continue
        view = _viewed(unit(n), (axis, column), *found, node, out)
        if view is not None:
            return view
    return None


#: Slices as text by the labels that they read, and the labels along those that are no integers.
Slices = tuple[dict[int, str], dict[int, int]]


def _sliced(
    pairs: list[LabelledExpr], read: set[int], out: Labels, extents: Mapping[int, Extent]
) -> Slices | None:
    """What the indicators among operands slice; None where one of them slices nothing."""
    keys: dict[int, str] = {}
    order: dict[int, int] = {}
    for op, w in pairs:
        if not indicates(op):
            continue
        key = _key(op, w, read, out, extents)
        if key is None or key[0] in keys:
            return None
        label, text, along = key
        keys[label] = text
        order |= {label: along} if along is not None else {}
    return keys, order


def _viewed(
    array: Expr,
    word: Labels,
    keys: dict[int, str],
    order: dict[int, int],
    node: Expr,
    out: Labels,
) -> StridedView | None:
    """The view of an array at labels that a node is, whose axes have the labels `out`."""
    natural = [order.get(label, label) for label in word if label in order or label not in keys]
    if len(set(word)) < len(word) or sorted(natural) != sorted(out) or not keys.keys() <= {*word}:
        return None
    shown = [keys.get(label) for label in word]
    while shown[-1] is None:
        shown.pop()
    found = StridedView(array, tuple(shown), tuple([natural.index(label) for label in out]))
    return found if _is_view(found, node) else None


def _is_view(found: StridedView, node: Expr) -> bool:
    """Is it what indexing by these keys gives? Slices that leave the array would be clipped."""
    keys = [_numbers(key) if key is not None else slice(None) for key in found.keys]
    if None in keys:
        return False
    try:
        return alike(view(getitem(found.array, tuple(keys)), found.perm), node)
    except (Error, IndexError):
        return False


def alike(e: Expr, other: Expr) -> bool:
    """Are they equal but for the checks of accesses, which name the array that was read?"""
    return e is other or _unchecked(e) is _unchecked(other)


def _unchecked(e: Expr) -> Expr:
    """The node without the checks of indicators that it is made of."""
    if indicates(e) and e.params[2]:
        axes, extents = tuple(range(e.ndim)), dict(enumerate(e.shape))
        operands = indicator(extents, conditions(e.params, axes))
        return einsum([op for op, _ in operands], [w for _, w in operands], axes, ONE, extents)
    if not isinstance(e, Einsum):
        return e
    args = [_unchecked(a) if indicates(a) or len(e.args) == 1 else a for a in e.args]
    return e if all(map(is_, args, e.args)) else with_args(e, args)


def _numbers(key: str) -> slice | int | None:
    """A key of whole numbers as Python's; None where it has dimensions."""
    parts = key.split(":")
    if not all(part.removeprefix("-").isdecimal() or not part for part in parts):
        return None
    ends = [int(part) if part else None for part in parts]
    return slice(*ends) if len(parts) > 1 else ends[0]


def _key(
    op: Apply, w: Labels, word: Container[int], out: Labels, extents: Mapping[int, Extent]
) -> tuple[int, str, int | None] | None:
    """The label that an indicator slices, the slice as text, and the label along it; else None."""
    guards = [g for g in conditions(op.params, w) if isinstance(g, Constraint) and g.equality]
    read = [label for label in w if label in word and label not in out]
    if len(guards) != 1 or len(op.params[1]) != 1 or len(read) != 1 or len(w) > 2:
        return None
    (label,) = read
    name = f"#{label}"
    c = guards[0].form.coefficient(name)
    form = (Affine.of(name) * c - guards[0].form) * c
    rest = [k for k in w if k != label]
    if abs(c) != 1 or any(k not in out for k in rest):
        return None
    n = form_of(extents[label])
    if not rest:
        return label, _end(form, n), None
    step = form.coefficient(f"#{rest[0]}")
    if not step:  # a multiple of the label by a dimension
        return None
    start, count = form.without([f"#{rest[0]}"]), form_of(extents[rest[0]])
    return label, ":".join(slice_ends(start, step, count, n)), rest[0]


def slice_ends(start: Affine, step: int, count: Affine, n: Affine) -> list[str]:
    """The ends of a slice of an axis of extent n, and its step unless that is 1, as text."""
    stop = start + step * (count - 1) + step // abs(step)
    full = floor_divided((n - start if step > 0 else start + 1) + abs(step) - 1, abs(step))
    first = "" if start == (Affine() if step > 0 else n - 1) else _end(start, n)
    last = "" if full == count else _end(stop, n)
    return [first, last, *([str(step)] if step != 1 else [])]


def _end(form: Affine, n: Affine) -> str:
    """The end of a slice as text: a negative number where it is counted from the axis's end."""
    behind = form - n
    if form.terms and not behind.terms and behind.constant < 0:
        return str(behind.constant)
    return str(extent_from(form))


def natural_order(word: Labels, chosen: Labels, shared: Labels) -> Labels:
    """Axes of an indexed array in NumPy's order: those of the indices together, or in front."""
    places = [k for k, label in enumerate(word) if label in chosen]
    rest = tuple([label for label in word if label not in chosen])
    if places[-1] - places[0] + 1 > len(places):
        return shared + rest
    return rest[: places[0]] + shared + rest[places[0] :]


def under_permutation(node: Einsum) -> Einsum | None:
    """The contraction of which a product only permutes the axes; None for other products."""
    inner = node.args[0] if len(node.args) == 1 and node.coef == ONE else None
    if not isinstance(inner, Einsum) or not inner.summed:
        return None
    whole = len(set(node.out)) == len(node.out) == inner.ndim == len(set(node.labels[0]))
    return inner if whole else None


def composed(node: Einsum, perm: Labels) -> Labels:
    return tuple([perm[node.labels[0].index(label)] for label in node.out])


def as_segment_sum(node: Einsum) -> SegmentSum | None:
    """The segment sum that a contraction is, if it is one."""
    if not node.summed:
        inner = under_permutation(node)
        found = None if inner is None else as_segment_sum(inner)
        return None if found is None else found._replace(perm=composed(node, found.perm))
    words = [label for word in node.labels for label in word]
    for k, (op, word) in enumerate(zip(node.args, node.labels, strict=True)):
        *places, value = word
        inside = value in node.out and words.count(value) == 1 and len(set(word)) == len(word)
        if not selects(op) or not places or not inside or set(places) & set(node.out):
            continue
        rest = [label for label in node.out if label != value]
        summand = einsum(
            [*node.args[:k], *node.args[k + 1 :]],
            [*node.labels[:k], *node.labels[k + 1 :]],
            [*places, *rest],
            ONE,
            dict(enumerate(node.extents)),
        )
        order = [value, *rest]
        perm = tuple([order.index(label) for label in node.out])
        return SegmentSum(summand, op.args[0], node.extents[value], perm)
    return None
