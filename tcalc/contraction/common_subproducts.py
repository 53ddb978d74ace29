"""Common subproducts of one contraction: tr(S T S T) needs S T once.

Two sets of operands are isomorphic if renaming labels turns one into the other. Then the operands
of the second are read with the labels of the first, and the products are computed only once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations

from ..graph.nodes import Labels
from ..support.records import NamedTuple

#: Operands of one array, beyond which no pairing is looked for.

MAX_REPEATS = 3


class ContractionOperands(NamedTuple):
    """The operands of a product.

    Attributes
    ----------
    words : tuple of labels
        One an operand.
    arrays : tuple of int
        Which array each operand is; equal numbers are equal arrays.
    symmetries : tuple of tuple of permutations
        Permutations of axes that leave each operand unchanged.
    chosen : tuple of int
        How many last labels of each operand a selection tensor selects by the others; 0 for arrays
        of numbers. Empty if there are no selection tensors.
    fixed : int
        The operands, as bits, that never change: products of these are made once.
    """

    words: tuple[Labels, ...]
    arrays: tuple[int, ...]
    symmetries: tuple[tuple[Labels, ...], ...]
    chosen: tuple[int, ...] = ()
    fixed: int = 0


class Isomorphism(NamedTuple):
    """For each operand of the first set, its partner in the second, and the partner's labels."""

    partners: Mapping[int, int]
    words: Mapping[int, Labels]


def isomorphism(
    given: ContractionOperands, one: Sequence[int], two: Sequence[int], kept: tuple[int, int]
) -> Isomorphism | None:
    """How the second set is the first one relabelled, None if it is not.

    `kept` are the labels of the two products as bits.
    """
    if sorted([given.arrays[k] for k in one]) != sorted([given.arrays[k] for k in two]):
        return None
    ordered = sorted(one, key=lambda k: (given.arrays[k], k))
    groups: dict[int, list[int]] = {}
    for k in two:
        groups.setdefault(given.arrays[k], []).append(k)
    if any(len(group) > MAX_REPEATS for group in groups.values()):
        return None
    for chosen in _pairings([groups[a] for a in sorted(groups)]):
        found = _relabelling(given, ordered, chosen, kept)
        if found is not None:
            return found
    return None


def _pairings(groups: list[list[int]]) -> list[list[int]]:
    """All orders of operands that permute operands of the same array only."""
    found: list[list[int]] = [[]]
    for group in groups:
        found = [before + list(order) for before in found for order in permutations(group)]
    return found


def _relabelling(
    given: ContractionOperands, one: Sequence[int], two: Sequence[int], kept: tuple[int, int]
) -> Isomorphism | None:
    """The renaming of labels that turns operand after operand into its partner."""
    stack: list[tuple[int, dict[int, int]]] = [(0, {})]
    while stack:
        place, names = stack.pop()
        if place == len(one):
            if all((kept[0] >> a & 1) == (kept[1] >> b & 1) for a, b in names.items()):
                words = {mine: tuple([names[label] for label in given.words[mine]]) for mine in one}
                return Isomorphism(dict(zip(one, two, strict=True)), words)
            continue
        mine, theirs = given.words[one[place]], given.words[two[place]]
        for perm in ((*range(len(theirs)),), *given.symmetries[two[place]]):
            spelled = tuple([theirs[p] for p in perm])
            joined = dict(names)
            agree = all(joined.setdefault(a, b) == b for a, b in zip(mine, spelled, strict=True))
            if agree and len(set(joined.values())) == len(joined):
                stack.append((place + 1, joined))
    return None
