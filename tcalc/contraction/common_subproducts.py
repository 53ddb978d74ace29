"""Two halves of a product that are one: tr(S T S T) is made of S T once.

A half is a set of operands. Two halves are twins if renaming labels turns one into the other; then
the second one is spelled as the first, and its products are made only once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import NamedTuple

Word = tuple[int, ...]
MAX_SAME = 3


class Operands(NamedTuple):
    """Words of a product, which array each is of, and the symmetries of the arrays.

    `chosen` counts the last labels that are selected by the others: 0 for an array of numbers.
    """

    words: tuple[Word, ...]
    arrays: tuple[int, ...]
    symmetries: tuple[tuple[Word, ...], ...]
    chosen: tuple[int, ...] = ()


class Twin(NamedTuple):
    """Operand by operand of the first half: its partner, and how the partner is spelled."""

    partners: Mapping[int, int]
    words: Mapping[int, Word]


def twin(
    given: Operands, one: Sequence[int], two: Sequence[int], kept: tuple[int, int]
) -> Twin | None:
    """How the second half is the first one, if it is; `kept` are their open labels as bits."""
    if sorted([given.arrays[k] for k in one]) != sorted([given.arrays[k] for k in two]):
        return None
    ordered = sorted(one, key=lambda k: (given.arrays[k], k))
    groups: dict[int, list[int]] = {}
    for k in two:
        groups.setdefault(given.arrays[k], []).append(k)
    if any(len(group) > MAX_SAME for group in groups.values()):
        return None
    for chosen in _arrangements([groups[a] for a in sorted(groups)]):
        found = _matched(given, ordered, chosen, kept)
        if found is not None:
            return found
    return None


def _arrangements(groups: list[list[int]]) -> list[list[int]]:
    """All orders of operands in which those of one array stay together."""
    found: list[list[int]] = [[]]
    for group in groups:
        found = [before + list(order) for before in found for order in permutations(group)]
    return found


def _matched(
    given: Operands, one: Sequence[int], two: Sequence[int], kept: tuple[int, int]
) -> Twin | None:
    """The renaming of labels that turns operand after operand into its partner."""
    stack: list[tuple[int, dict[int, int]]] = [(0, {})]
    while stack:
        place, names = stack.pop()
        if place == len(one):
            if all((kept[0] >> a & 1) == (kept[1] >> b & 1) for a, b in names.items()):
                words = {mine: tuple([names[label] for label in given.words[mine]]) for mine in one}
                return Twin(dict(zip(one, two, strict=True)), words)
            continue
        mine, theirs = given.words[one[place]], given.words[two[place]]
        for perm in ((*range(len(theirs)),), *given.symmetries[two[place]]):
            spelled = tuple([theirs[p] for p in perm])
            joined = dict(names)
            agree = all(joined.setdefault(a, b) == b for a, b in zip(mine, spelled, strict=True))
            if agree and len(set(joined.values())) == len(joined):
                stack.append((place + 1, joined))
    return None
