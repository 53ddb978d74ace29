"""X B X' of symmetric B, for X the inverse of a lower triangle: half of what two solves would take.

Of several B at once; neither X nor X B is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ...contraction.congruences import Between, between
from ..builder import Builder
from ..steps import SlotWord, Word


def found_between(b: Builder, operands: Sequence[SlotWord], out: Word) -> Between | None:
    """The product, where an inverse of a large triangle stands on both sides of all others."""
    if "congruence" not in b.machine.forms:
        return None
    inverses = [k for k, (slot, _) in enumerate(operands) if _of_triangle(b, slot)]
    found = between(operands, inverses, out)
    large = found is not None and b.shapes[operands[found.inverse][0]][0] >= b.machine.half_rows
    return found if large else None


def _of_triangle(b: Builder, slot: int) -> bool:
    return slot in b.inverses and b.inverses[slot].kind == "lower" and len(b.shapes[slot]) == 2


def congruent(b: Builder, inverse: int, matrices: SlotWord, found: Between) -> SlotWord:
    """The products with an inverse, of symmetric matrices with the inner labels on two axes."""
    slot, word, inner = b.floating(matrices[0]), matrices[1], set(found.inner)
    several = tuple([label for label in word if label not in inner])
    axis = int(bool(several) and {word[0], word[-1]} == inner)
    if not axis and set(word[-2:]) != inner:
        slot, word = b.ordered(slot, word, (*several, *found.inner)), (*several, *found.inner)
    shape, known = b.shapes[slot], b.inverses[inverse]
    n = shape[-1]
    count = prod(shape) // n**2
    stack = b.reshape(slot, (n, count, n) if axis else (count, n, n))
    words = ((0, 1, 2), (3, 0), (3, 1, 4)) if axis else ((0, 1, 2), (3, 1), (0, 3, 4))
    args, params = (stack, known.matrix), (axis, known.name)
    slot = b.emit("congruence", args, b.shapes[stack], words, params)
    renamed = dict(zip(found.inner, found.outer, strict=True))
    return b.reshape(slot, shape), tuple([renamed.get(label, label) for label in word])
