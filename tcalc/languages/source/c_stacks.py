"""Stacks of products in C: a loop over some axes around a product of matrices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import prod

from ...support.records import NamedTuple
from .c_contractions import merged
from .c_nests import Call, atom
from .c_values import Strided, Value, added, in_memory
from .c_writer import Writer

Labels = Sequence[int]

#: Terms of a product from which it is faster than a nest of loops.
LEAST = 512
#: Entries that are added up while a routine is called, and while an entry is copied.
CALLED, COPIED = 200, 4
#: Axes, besides those that both operands have, over which a loop may run.
FURTHER = 2
#: Most axes of a product that is looked at.
MOST = 8


class Axes(NamedTuple):
    """What the axes of a product of two arrays are.

    Attributes
    ----------
    loops : sequence of int
        Those over which a loop runs.
    left, right : sequence of int
        Those of one operand, in the order of the result; each are the axis of a matrix.
    summed : sequence of int
    """

    loops: Labels
    left: Labels
    right: Labels
    summed: Labels


def by_stacks(
    language: Writer, values: Sequence[Value], words: Sequence[Labels], out: Labels
) -> Value | None:
    """A contraction of two arrays that is a product of matrices for each place along some axes."""
    if len(values) != 2 or language.integers or len({*out}) < len(out):
        return None
    if any(len({*word}) < len(word) for word in words):
        return None
    given = list(zip(values, words, strict=True))
    shapes = {k: n for v, w in given for k, n in zip(w, v.shape, strict=True)}
    if any(shapes[k] != n for v, w in given for k, n in zip(w, v.shape, strict=True)):
        return None  # one is repeated along an axis
    lengths = {k: language.length(n) for k, n in shapes.items()}
    options = [
        (_cost(lengths, axes, [w for v, w in ordered if _apart(v, w, axes)]), axes, ordered)
        for axes, ordered in _options(given, out)
        if _terms(lengths, axes) >= LEAST
    ]
    if not options:
        return None
    _, axes, ordered = min(options, key=lambda option: option[0])
    array, found = language.storage(tuple([shapes[k] for k in out]))
    index = language.index(len(axes.loops))
    parts = [_lying(language, v, w, axes) for v, w in ordered]
    (a, (_, ai), (depth, ak)), (b, (_, bj), (_, bk)) = (
        (_start(v, w, axes.loops, index), *_matrix(v, w, axes))
        for v, (_, w) in zip(parts, ordered, strict=True)
    )
    target = _start(found, out, axes.loops, index)
    (m, ci), (n, _) = _groups(found, out, (axes.left, axes.right))
    call = f"multiply({m}, {n}, {depth}, 1, {a}, {ai}, {ak}, {b}, {bk}, {bj}, 0, {target}, {ci})"
    over = [shapes[k] for k in axes.loops]
    nodes = language.stacked(index, over, [Call(call, (array.name,))])
    language.emit(*nodes, made=[array])
    return found


def _options(
    given: Sequence[tuple[Value, Labels]], out: Labels
) -> Iterator[tuple[Axes, Sequence[tuple[Value, Labels]]]]:
    """Loops around products, and the operands of these in their order."""
    (_, p), (_, q) = given
    if len(out) > MOST:
        return
    stack, summed = [k for k in out if k in p and k in q], [k for k in p if k in q and k not in out]
    rest = [k for k in out if k not in stack]
    if not summed or {*p, *q} != {*out, *summed}:
        return
    for count in range(1 - bool(stack), FURTHER + 1):
        for more in combinations(rest, count):
            loops = [k for k in out if k in stack or k in more]
            inner = [k for k in rest if k not in more]
            for ordered in (given, given[::-1]):
                left, right = ([k for k in inner if k in w] for _, w in ordered)
                whole = [*left, *right] == inner and left and right
                if whole and _groups(in_memory("", _named(out)), out, (left, right))[1:]:
                    yield Axes(loops, left, right, summed), ordered


def _named(out: Labels) -> list[str]:
    """Extents that are all different."""
    return [f"n{k}" for k in out]


def _groups(v: Value, word: Labels, groups: Sequence[Labels]) -> list[tuple[str, str]]:
    """Axes of an array as one each, its last ones next to each other; none where they are not."""
    found = [merged(v, [word.index(k) for k in group]) for group in groups]
    axes = [axis for axis in found if axis is not None]
    return axes if len(axes) == len(groups) and axes[-1][1] == "1" else []


def _matrix(v: Value, word: Labels, axes: Axes) -> list[tuple[str, str]]:
    """An operand's own axes and the summed ones, as one each; none where a routine cannot read."""
    own = [k for k in (*axes.left, *axes.right) if k in word]
    found = [merged(v, [word.index(k) for k in group]) for group in (own, axes.summed)]
    pair = [axis for axis in found if axis is not None]
    steps = [step for _, step in pair]
    return pair if len(pair) == 2 and "1" in steps and "0" not in steps else []


def _apart(v: Value, word: Labels, axes: Axes) -> bool:
    """Must the array be copied for products of matrices?"""
    return v.memory is not None and not _matrix(v, word, axes)


def _lying(language: Writer, v: Value, word: Labels, axes: Axes) -> Value:
    """The operand in memory as a routine reads it, the longer one of its two axes last."""
    if v.memory is not None and _matrix(v, word, axes):
        return v
    own = [k for k in (*axes.left, *axes.right) if k in word]
    sides = sorted(
        (own, axes.summed),
        key=lambda group: prod([language.length(v.shape[word.index(k)]) for k in group]),
    )
    order = [k for group in ([k for k in axes.loops if k in word], *sides) for k in group]
    return language.filled(v.shape, v, order=[word.index(k) for k in order])


def _terms(lengths: dict[int, int], axes: Axes) -> int:
    """The terms of one product."""
    return prod([lengths[k] for k in (*axes.left, *axes.right, *axes.summed)])


def _cost(lengths: dict[int, int], axes: Axes, copied: Sequence[Labels]) -> int:
    """Of calling a routine so often, and of copies."""
    calls = prod([lengths[k] for k in axes.loops])
    entries = [prod([lengths[k] for k in word]) for word in copied]
    return CALLED * calls + COPIED * sum(entries)


def _start(v: Value, word: Labels, loops: Labels, index: Sequence[str]) -> str:
    """Where the matrix of an array begins, at places of the loops."""
    assert isinstance(v.memory, Strided)
    strides = v.memory.strides
    own = [(i, strides[word.index(k)]) for i, k in zip(index, loops, strict=True) if k in word]
    steps = [i if step == "1" else f"{i} * {atom(step)}" for i, step in own if step != "0"]
    start = added(v.memory.start, *steps)
    return v.memory.name if start == "0" else f"{v.memory.name} + {start}"
