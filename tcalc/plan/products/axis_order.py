"""In which order the axes of results lie in memory, where that is the plan's to choose.

NumPy's loops run along the last axis: a long one belongs there. Where it stands before short ones,
as in an array of many small vectors, what is broadcast or summed is computed with it moved last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from ..builder import Builder
from ..steps import VIEW, SlotWord, Word


def spread(b: Builder, target: Word, sizes: Mapping[int, int], least: int | None = None) -> Word:
    """The axes of a broadcast result: a long one last, another one first, short ones between."""
    if len(target) < 2 or sizes[target[-1]] >= b.machine.short:
        return target
    first, second, *_ = sorted(target, key=lambda label: -sizes[label])
    if len(target) > 2 and sizes[second] >= b.machine.short:
        middle = [label for label in target if label not in (first, second)]
        return (first, *middle, second)
    return lengthwise(b, target, sizes, least)


def lengthwise(b: Builder, word: Word, sizes: Mapping[int, int], least: int | None = None) -> Word:
    """The labels with the long one last, where a short one is and all others have few entries.

    Short is what has less than the `least` entries, by default those of entrywise steps and sums.
    """
    if len(word) < 2 or sizes[word[-1]] >= (least or b.machine.shortest):
        return word
    longest = max(word, key=lambda label: sizes[label])
    others = prod([sizes[label] for label in word if label != longest])
    if sizes[longest] < b.machine.short or others > b.machine.unrolled:
        return word
    return (*[label for label in word if label != longest], longest)


def sized(b: Builder, *operands: SlotWord) -> dict[int, int]:
    """The extents of the operands' labels."""
    return {
        label: n for slot, word in operands for label, n in zip(word, b.shapes[slot], strict=True)
    }


def entrywise(b: Builder, operands: Sequence[SlotWord], target: Word) -> Word:
    """The order of axes of an entrywise result: that of the operands where they lie alike."""
    alike = all(word == target and b.origin[slot] is not VIEW for slot, word in operands if word)
    return target if alike else lengthwise(b, target, sized(b, *operands))


def along(b: Builder, x: SlotWord, target: Word) -> SlotWord:
    """An operand as it is, or copied so that its long axis is the last one, as in the target."""
    slot, word = x
    if not word or target[-1] not in word or word[-1] == target[-1]:
        return x
    if lengthwise(b, word, sized(b, x))[-1] != target[-1]:
        return x
    outside = [label for label in word if label not in target]
    order = (*outside, *[label for label in target if label in word])
    return b.ordered(slot, word, order), order


def unrolled(b: Builder, x: SlotWord, y: SlotWord, batch: Word) -> Word | None:
    """The batch with its long label last, if products of the others are few for each of it."""
    sizes = sized(b, x, y)
    work = prod([n for label, n in sizes.items() if label not in batch])
    longest = max(batch, key=lambda label: sizes[label], default=None)
    if longest is None or sizes[longest] < b.machine.short or work > b.machine.unrolled:
        return None
    if any(
        longest in word and sizes[word[-1]] >= b.machine.shortest and word[-1] != longest
        for _, word in (x, y)
    ):
        return None
    return (*[label for label in batch if label != longest], longest)
