"""X B X' of symmetric B, for X the inverse of a lower triangle: half of what two solves would take.

Of several B at once; neither X nor X B is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import prod
from typing import NamedTuple

from ..builder import Builder
from ..steps import SlotWord, Word


class Between(NamedTuple):
    """The slot of X; the other operands; labels of B between both X, and of the result."""

    inverse: int
    rest: list[SlotWord]
    inner: tuple[int, int]
    outer: tuple[int, int]

    def swapped(self, out: Word) -> Word:
        """The exchange of the outer axes, which changes nothing where B is symmetric."""
        turned = dict(zip(self.outer, self.outer[::-1], strict=True))
        return tuple([out.index(turned.get(label, label)) for label in out])


def between(
    b: Builder, operands: Sequence[SlotWord], out: Word, extents: Mapping[int, int]
) -> Between | None:
    """The product, where an inverse of a triangle stands on both sides of all other operands.

    One of these holds a matrix: of thin ones X B is small, and B might never be made.
    """
    if "congruence" not in b.machine.forms:
        return None
    inverses = [k for k, (slot, _) in enumerate(operands) if _of_triangle(b, slot)]
    for i, j in combinations(inverses, 2):
        (one, (k, m)), (two, (n, p)) = operands[i], operands[j]
        rest = [operand for place, operand in enumerate(operands) if place not in (i, j)]
        standing = {label for _, word in rest for label in word}
        ends = len({k, m, n, p}) == 4 and {k, n} == {k, m, n, p}.intersection(out)
        held = any({m, p} <= set(word) for _, word in rest)
        if one == two and ends and held and not {k, n} & standing:
            return Between(one, rest, (m, p), (k, n)) if extents[k] >= b.machine.half_rows else None
    return None


def _of_triangle(b: Builder, slot: int) -> bool:
    return slot in b.inverses and b.inverses[slot].kind == "lower" and len(b.shapes[slot]) == 2


def congruent(b: Builder, matrices: SlotWord, found: Between) -> SlotWord:
    """The products, of symmetric matrices that have the inner labels on two axes."""
    slot, word, inner = b.floating(matrices[0]), matrices[1], set(found.inner)
    several = tuple([label for label in word if label not in inner])
    axis = int(bool(several) and {word[0], word[-1]} == inner)
    if not axis and set(word[-2:]) != inner:
        slot, word = b.ordered(slot, word, (*several, *found.inner)), (*several, *found.inner)
    shape, known = b.shapes[slot], b.inverses[found.inverse]
    n = shape[-1]
    count = prod(shape) // n**2
    stack = b.reshape(slot, (n, count, n) if axis else (count, n, n))
    words = ((0, 1, 2), (3, 0), (3, 1, 4)) if axis else ((0, 1, 2), (3, 1), (0, 3, 4))
    args, params = (stack, known.matrix), (axis, known.name)
    slot = b.emit("congruence", args, b.shapes[stack], words, params)
    renamed = dict(zip(found.inner, found.outer, strict=True))
    return b.reshape(slot, shape), tuple([renamed.get(label, label) for label in word])
