"""Products with selection tensors: entries are taken, or summed by segments.

A selection tensor S_ij is 1 where idx_i is j. It stands in a plan as a slot that no step makes. A
label j that the other operand has is summed by taking entries; a label j of the result by adding
entries at their places. Several selection tensors that share labels i act as one whose last index
runs over all theirs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod

from ...support.arrays import Sizes
from ...support.records import NamedTuple
from ..builder import Builder
from ..steps import SlotWord, Word
from .axis_order import sized
from .pairwise import merged, reduce, times

#: Places below this one are exact in single precision too.
EXACT = 1 << 24


class SelectionFactor(NamedTuple):
    """One selection tensor: a slot of integers, labels of its axes, the label that it selects."""

    integers: int
    labels: Word
    value: int


def selection_factors(b: Builder, x: SlotWord) -> list[SelectionFactor]:
    slot, word = x
    stored = b.selections[slot]
    first = len(word) - len(stored)
    return [
        SelectionFactor(index, tuple([word[k] for k in axes]), word[first + k])
        for k, (index, axes) in enumerate(stored)
    ]


def selected(b: Builder, x: SlotWord, y: SlotWord, keep: set[int]) -> SlotWord:
    """The product of two operands, a selection tensor among them, summed over labels not in `keep`.

    That of two selection tensors stays one, and nothing is summed, where that is possible.
    """
    if x[0] not in b.selections:
        x, y = y, x
    if y[0] in b.selections:
        both = _joint(b, x, y, keep)
        if both is not None:
            return both
        y = written(b, y[0]), y[1]
    parts, sizes = selection_factors(b, x), sized(b, x)
    found = b.floating(y[0]), y[1]
    inside = [p for p in parts if p.value in found[1]]
    if inside:
        found = _taken(b, found, inside)
    outside = [p for p in parts if p.value in keep]
    places = {label for p in outside for label in p.labels}
    once = {label for p in parts for label in p.labels} - places - set(found[1])
    found = reduce(b, *found, set(found[1]) - keep - places)
    found = b.scale(found[0], prod([sizes[label] for label in once - keep])), found[1]
    found = _repeated(b, found, tuple(sorted(once & keep)), sizes)
    if not outside:
        return found
    if not places & (set(found[1]) | keep):
        return _counted(b, found, outside, sizes)
    found = _repeated(b, found, tuple(sorted(places - set(found[1]))), sizes)
    return _summed(b, found, outside, keep, sizes)


def summed_alone(b: Builder, x: SlotWord, keep: set[int]) -> SlotWord:
    """A selection tensor without the labels outside `keep`: how often each place is selected."""
    return x if keep.issuperset(x[1]) else selected(b, x, (b.number(1.0), ()), keep)


def written(b: Builder, slot: int) -> int:
    """The array of zeros and ones that a slot stands for; any other slot itself."""
    if slot not in b.selections:
        return slot
    word = tuple(range(len(b.shapes[slot])))
    parts = selection_factors(b, (slot, word))
    order = word[: len(word) - len(parts)]
    index = _combined(b, parts, order, sized(b, (slot, word)))
    shape = b.shapes[slot]
    return b.emit("onehot", (index,), shape, (order, word))


def added_at(b: Builder, x: SlotWord, slot: int, axes: Word, coef: float) -> int:
    """An array with `coef` added where a selection tensor is 1; its axis k is axis axes[k]."""
    parts = selection_factors(b, (slot, tuple(range(len(axes)))))
    order = tuple(range(len(axes) - len(parts)))
    by_value = {p.value: p for p in parts}
    args, places = [x[0]], []
    for label in [axes[k] for k in x[1]]:
        if label in by_value:
            args.append(b.aligned(by_value[label].integers, by_value[label].labels, order))
            places.append((len(args) - 1, 0))
        else:
            places.append((-1, len(order) - label))
    shape = b.shapes[x[0]]
    words = (x[1], *[order[len(order) - len(b.shapes[a]) :] for a in args[1:]], x[1])
    return b.emit("add_at", tuple(args), shape, words, (float(coef), tuple(places)))


# --- several selection tensors as one -------------------------------------------------------------


def _joint(b: Builder, x: SlotWord, y: SlotWord, keep: set[int]) -> SlotWord | None:
    """Both as one slot that no step makes, unless both select one label.

    Where one selects among the integers of the other, these are taken.
    """
    sizes = {**sized(b, x), **sized(b, y)}
    parts = selection_factors(b, x) + selection_factors(b, y)
    exact = all(sizes[p.value] <= EXACT for p in parts)
    while exact and (taking := _chosen_among(parts, keep)):
        parts = [_among(b, p, taking, sizes) for p in parts if p is not taking]
    return selection_of(b, parts, sizes)


def _chosen_among(parts: Sequence[SelectionFactor], keep: set[int]) -> SelectionFactor | None:
    """One that selects among the integers of others, by a label that nothing else has."""
    chosen = Counter([p.value for p in parts])
    read = {label for p in parts for label in p.labels} - keep
    return next((p for p in parts if p.value in read and chosen[p.value] == 1), None)


def _among(
    b: Builder, p: SelectionFactor, taking: SelectionFactor, sizes: Mapping[int, int]
) -> SelectionFactor:
    """A selection tensor by those of its integers that another one selects."""
    if taking.value not in p.labels:
        return p
    word = tuple(range(len(p.labels)))
    # Entries are taken of floats, which hold these places exactly.
    numbers = b.emit("copy", (p.integers,), b.shapes[p.integers], (word, word))
    slot, labels = _taken(b, (numbers, p.labels), [taking])
    word, params = tuple(range(len(labels))), (sizes[p.value], "an index of an index")
    slot = b.emit("index", (slot,), b.shapes[slot], (word, word), params)
    return SelectionFactor(slot, labels, p.value)


def selection_of(
    b: Builder, parts: Sequence[SelectionFactor], sizes: Mapping[int, int]
) -> SlotWord | None:
    """Selection tensors as one slot, None where labels are selected twice, or select others."""
    values = tuple([p.value for p in parts])
    labels = tuple(dict.fromkeys([label for p in parts for label in p.labels]))
    if len(set(values)) < len(values) or set(values) & set(labels):
        return None
    word = labels + values
    stored = [(p.integers, tuple([labels.index(label) for label in p.labels])) for p in parts]
    return b.selection(tuple(stored), tuple([sizes[label] for label in word])), word


def _combined(
    b: Builder, factors: Sequence[SelectionFactor | int], order: Word, sizes: Mapping[int, int]
) -> int:
    """Places in the C order of several axes: an axis is selected, or its own label is the index."""
    args, spelled, words = [], [], []
    for f in factors:
        if isinstance(f, SelectionFactor):
            args.append(b.aligned(f.integers, f.labels, order))
            words.append(order[len(order) - len(b.shapes[args[-1]]) :])
            spelled.append((sizes[f.value], len(args) - 1, 0))
        else:
            spelled.append((sizes[f], -1, len(order) - order.index(f)))
    shape = tuple([sizes[label] for label in order])
    if len(spelled) == 1 and args and b.shapes[args[0]] == shape:
        return args[0]
    return b.emit("joint", tuple(args), shape, (*words, order), tuple(spelled))


def _repeated(b: Builder, x: SlotWord, labels: Word, sizes: Mapping[int, int]) -> SlotWord:
    """The array repeated along new axes, as a view."""
    slot, word = x
    if not labels:
        return x
    shape = (*[sizes[label] for label in labels], *b.shapes[slot])
    full = labels + word
    return b.emit("broadcast", (slot,), shape, (word, full), shape), full


# --- kernels --------------------------------------------------------------------------------------


def _taken(b: Builder, x: SlotWord, parts: Sequence[SelectionFactor]) -> SlotWord:
    """Entries of an array by integers, one for every entry of the indices."""
    order = tuple(dict.fromkeys([label for p in parts for label in p.labels]))
    by_value: dict[int, SelectionFactor] = {p.value: p for p in parts}
    sizes = _with_indices(b, sized(b, x), parts)
    group = tuple([label for label in x[1] if label in by_value or label in order])
    index = _combined(b, [by_value.get(label, label) for label in group], order, sizes)
    before = x[1][: x[1].index(group[0])]
    after = tuple([label for label in x[1] if label not in before + group])
    slot, word = merged(b, *x, [group], before + group + after)
    axis = word.index(group[0])
    full = word[:axis] + order + word[axis + 1 :]
    shape = tuple([sizes[label] for label in full])
    words = (word, order, full)
    return b.emit("take", (slot, index), shape, words, (axis,)), full


def _summed(
    b: Builder,
    x: SlotWord,
    parts: Sequence[SelectionFactor],
    keep: set[int],
    sizes: Mapping[int, int],
) -> SlotWord:
    """Entries of an array added at their places in a result that is 0 elsewhere.

    The array has all labels of the places.
    """
    chosen = {label for p in parts for label in p.labels}
    order = tuple([label for label in x[1] if label in chosen])
    sizes = {**sizes, **sized(b, x)}
    own = tuple([label for label in order if label in keep])
    index = _combined(b, [*own, *parts], order, sizes)
    before = x[1][: x[1].index(order[0])]
    after = tuple([label for label in x[1] if label not in before + order])
    slot, word = merged(b, *x, [order], before + order + after)
    axis = word.index(order[0])
    kept = own + tuple([p.value for p in parts])
    count = prod([sizes[label] for label in kept])
    shape = (count, *[sizes[label] for label in before + after])
    words = (word, order, (*kept[-1:], *before, *after))
    slot = b.emit("segments", (slot, index), shape, words, (axis,))
    full = kept + before + after
    return b.reshape(slot, tuple([sizes[label] for label in full])), full


def _counted(
    b: Builder, x: SlotWord, parts: Sequence[SelectionFactor], sizes: Mapping[int, int]
) -> SlotWord:
    """How often each place is selected, times an array without the labels of the indices."""
    order = tuple(dict.fromkeys([label for p in parts for label in p.labels]))
    index = _combined(b, parts, order, sizes)
    kept = tuple([p.value for p in parts])
    shape: Sizes = tuple([sizes[label] for label in kept])
    words = (order, kept[-1:])
    count = b.emit("count", (index,), (prod(shape),), words)
    counts = b.reshape(count, shape), kept
    if x == (b.number(1.0), ()):
        return counts
    return times(b, counts, x, kept + x[1])


def _with_indices(
    b: Builder, sizes: dict[int, int], parts: Sequence[SelectionFactor]
) -> dict[int, int]:
    """Extents of the labels of the indices too."""
    for p in parts:
        sizes |= zip(p.labels, b.shapes[p.integers], strict=True)
    return sizes
