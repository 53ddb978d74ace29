"""Inverses that are never formed: products with them are solves."""

from __future__ import annotations

from math import prod

from ..builder import Builder
from ..slot_facts import Inverse
from ..steps import SlotWord, Word


def solvable(b: Builder, inverse: SlotWord, other: SlotWord, summed: Word) -> bool:
    """Is this an inverse times columns, few of them where the inverse is needed in full?"""
    if inverse[0] not in b.inverses:
        return False
    mine = set(inverse[1])
    if len(mine) != 2 or len(summed) != 1 or mine & set(other[1]) - {summed[0]}:
        return False
    n = b.shapes[inverse[0]][0]
    return not b.dense_inverses or b.machine.narrow * prod(b.shapes[other[0]]) <= n * n


def solved(b: Builder, inverse: SlotWord, other: SlotWord, label: int) -> SlotWord:
    """The product with an inverse, by substitution with the matrix or its factor."""
    known = b.inverses[inverse[0]]
    transposed = inverse[1].index(label) == 0
    (own,) = set(inverse[1]) - {label}
    columns = tuple([k for k in other[1] if k != label])
    target = (label, *columns)
    slot = b.ordered(*other, target)
    shape = b.shapes[slot]
    flat_shape = (shape[0], prod(shape[1:]))
    words = (inverse[1], target, (own, *columns))
    slot = b.reshape(slot, flat_shape)
    sides = {"lower": [transposed], "positive": [False, True], "general": [transposed]}
    for side in sides[known.kind]:
        slot = _step(b, known, slot, side, words)
    return b.reshape(slot, shape), (own, *columns)


def _step(b: Builder, known: Inverse, slot: int, transposed: bool, words: tuple[Word, ...]) -> int:
    shape = b.shapes[slot]
    args = (known.matrix, slot)
    if known.kind != "general":
        return b.emit("trisolve", args, shape, words, (transposed, known.name))
    return b.emit("solve", args, shape, words, (transposed, known.factored))
