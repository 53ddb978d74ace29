"""Products with sparse matrices: inputs of which only the entries that are not zero are held.

A sparse matrix with weights on its rows and columns stands in a plan as a slot that no step makes.
Where it is multiplied by an array, weights go to the array and to the result.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...support.records import NamedTuple
from ..builder import Builder
from ..steps import SlotWord, Word
from .axis_order import sized
from .gathers import written
from .pairwise import reduce, times


class SparseMatrix(NamedTuple):
    """A sparse input, and what its rows and columns are multiplied by: None is nothing.

    Attributes
    ----------
    slot : int
        Of the input.
    entries : int
        About how many are held.
    weights : tuple of SlotWord or None
        One for each axis, with its label, or without labels.
    """

    slot: int
    entries: int
    weights: tuple[SlotWord | None, SlotWord | None] = (None, None)


def _read(b: Builder, x: SlotWord) -> SparseMatrix:
    """The matrix of a slot, its weights under the labels of the operand."""
    held: SparseMatrix = b.sparse[x[0]]
    weights = [
        None if w is None else (w[0], (label,) if w[1] else ())
        for w, label in zip(held.weights, x[1], strict=True)
    ]
    return held._replace(weights=(weights[0], weights[1]))


def multiplied(b: Builder, x: SlotWord, y: SlotWord, keep: set[int]) -> SlotWord:
    """The product of two operands, a sparse matrix among them, summed over labels not in `keep`.

    Raises
    ------
    TypeError
        Where the product is as large as the matrix written out.
    """
    if x[0] not in b.sparse:
        x, y = y, x
    if y[0] in b.sparse:
        return _gram(b, x, y, keep)
    y = b.floating(written(b, y[0])), y[1]
    shared = [label for label in x[1] if label in y[1]]
    summed = [label for label in shared if label not in keep]
    own = [label for label in x[1] if label not in y[1]]
    if len(y[1]) == len(shared) < 2 and not summed:
        return _weighted(b, x, y)
    if len(summed) == 1 and len(shared) == 1:
        found = _dot(b, x, y, summed[0])
        return reduce(b, *found, set(own) - keep)
    if len(summed) == 2 and len(y[1]) == 2:
        return _inner(b, x, y)
    raise b.dense(_read(b, x).slot, "this product")


def summed_alone(b: Builder, x: SlotWord, once: set[int]) -> SlotWord:
    """The matrix summed over some of its labels."""
    for label in [label for label in x[1] if label in once]:
        if x[0] not in b.sparse:
            return reduce(b, *x, once)
        extent = sized(b, x)[label]
        ones = b.emit("fill", (), (extent,), ((0,),), (1.0, "ones"), ("ones",))
        x = _dot(b, x, (ones, (label,)), label)
    return x


def _weighted(b: Builder, x: SlotWord, y: SlotWord) -> SlotWord:
    """The matrix with one axis multiplied by a vector, or the first one by a number."""
    held = _read(b, x)
    axis = x[1].index(y[1][0]) if y[1] else 0
    weights = list(held.weights)
    weights[axis] = _both(b, weights[axis], y)
    weights_of = [None if w is None else (w[0], tuple([0 for _ in w[1]])) for w in weights]
    key = ("sparse", held.slot, tuple(weights_of))
    return b.unmade(key, held._replace(weights=(weights_of[0], weights_of[1]))), x[1]


def _both(b: Builder, one: SlotWord | None, other: SlotWord) -> SlotWord:
    if one is None:
        return other
    target: Word = max(one[1], other[1], key=len)
    return times(b, one, other, target)


def _dot(b: Builder, x: SlotWord, y: SlotWord, label: int) -> SlotWord:
    held, axis = _read(b, x), x[1].index(label)
    (own,) = [other for other in x[1] if other != label]
    before, after = held.weights[axis], held.weights[1 - axis]
    if before is not None:
        y = times(b, before, y, y[1])
    order = (label, *[other for other in y[1] if other != label])
    array = b.ordered(y[0], y[1], order)
    word = (own, *order[1:])
    sizes = {**sized(b, x), **sized(b, y)}
    shape = tuple([sizes[k] for k in word])
    params = (axis, held.entries)
    found = b.emit("sparse_dot", (held.slot, array), shape, (x[1], order, word), params), word
    return found if after is None else times(b, after, found, word)


def _gram(b: Builder, x: SlotWord, y: SlotWord, keep: set[int]) -> SlotWord:
    one, other = _read(b, x), _read(b, y)
    shared = [label for label in x[1] if label in y[1]]
    plain = not any(one.weights + other.weights)
    if x[1] == y[1] and plain and not keep.intersection(shared):
        params: tuple[int, ...] = (one.entries,)
        return b.emit("sparse_inner", (one.slot, other.slot), (), (*(x[1],) * 2, ()), params), ()
    if len(shared) != 1 or shared[0] in keep:
        raise b.dense(one.slot, "this product")
    (label,) = shared
    places = x[1].index(label), y[1].index(label)
    weights: SlotWord | None = None
    for factor in (one.weights[places[0]], other.weights[places[1]]):
        weights = (
            factor if weights is None else weights if factor is None else _both(b, weights, factor)
        )
    word = x[1][1 - places[0]], y[1][1 - places[1]]
    sizes = {**sized(b, x), **sized(b, y)}
    shape = sizes[word[0]], sizes[word[1]]
    args, words = [one.slot, other.slot], [x[1], y[1]]
    after = [one.weights[1 - places[0]], other.weights[1 - places[1]]]
    if weights is not None and weights[1]:
        args.append(weights[0])
        words.append(weights[1])
    elif weights is not None:
        after.append(weights)
    params = (*places, one.entries, other.entries)
    found: SlotWord = b.emit("sparse_gram", tuple(args), shape, (*words, word), params), word
    for factor in after:
        if factor is not None:
            found = times(b, factor, found, word)
    return reduce(b, *found, set(word) - keep)


def _inner(b: Builder, x: SlotWord, y: SlotWord) -> SlotWord:
    held = _read(b, x)
    for weight in held.weights:
        if weight is not None:
            y = times(b, weight, y, y[1])
    array = b.ordered(y[0], y[1], x[1])
    words: Sequence[Word] = (x[1], x[1], ())
    found = b.emit("sparse_inner", (held.slot, array), (), tuple(words), (held.entries,))
    return found, ()


def sparse_input(b: Builder, slot: int, entries: int) -> None:
    """Mark an input as a sparse matrix."""
    b.sparse[slot] = SparseMatrix(slot, entries)
