"""Contractions with a_nl + c_jl, a sum of two arrays that is larger than both, without making it.

Multiplying out would need fewer operations, and digits would cancel where a and c are near each
other: the sum is made entry by entry instead, where it is read.
"""

from __future__ import annotations

from math import prod

from ..builder import Builder
from ..slot_facts import OuterSum
from ..steps import SlotWord, Word
from .axis_order import sized


def note(b: Builder, slot: int, word: Word, parts: tuple[tuple[int, SlotWord], ...]) -> None:
    """Remember what a sum of two signed operands is made of, where each lacks a label."""
    if len(word) == 3 and all(len(own) == 2 for _, (_, own) in parts):
        b.outer_sums[slot] = OuterSum(
            tuple([(s, x, tuple([word.index(i) for i in own])) for s, (x, own) in parts])
        )


def weighted(b: Builder, x: SlotWord, y: SlotWord, keep: set[int]) -> SlotWord | None:
    """The sum over n of w_jn (a_nl + c_jl); x is w and y the sum, where they are such."""
    found = b.outer_sums.get(y[0])
    if found is None or len(set(x[1])) != 2 or not keep.issuperset(set(y[1]) - set(x[1])):
        return None
    summed = [label for label in x[1] if label in y[1] and label not in keep]
    rows = [label for label in x[1] if label in y[1] and label in keep]
    if len(summed) != 1 or len(rows) != 1 or prod(b.shapes[y[0]]) < b.machine.large:
        return None
    (n,), (j,), (last,) = summed, rows, set(y[1]) - set(x[1])
    parts = {}
    for sign, slot, axes in found.parts:
        word = tuple([y[1][k] for k in axes])
        parts[frozenset(word)] = sign, b.aligned(slot, word, (n if n in word else j, last))
    above, beside = parts.get(frozenset((n, last))), parts.get(frozenset((j, last)))
    if above is None or beside is None:
        return None
    sizes, (sign, a), (other, c) = sized(b, y), above, beside
    args = b.aligned(b.floating(x[0]), x[1], (j, n)), a, c
    words = ((j, n), (n, last), (j, last), (j, last))
    params = (float(sign), float(other))
    return b.emit("weighted", args, (sizes[j], sizes[last]), words, params), (j, last)
