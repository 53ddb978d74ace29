"""Products among the operands of a contraction that are there already."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Generic, TypeVar

from ..graph.nodes import Labels
from ..support.records import NamedTuple

#: Products among a product's operands that are looked for.
MAX_KNOWN = 16

Operand = TypeVar("Operand")


class KnownProduct(NamedTuple, Generic[Operand]):
    """A product that is there already, and one half of what it is a product of, as bits."""

    operand: Operand
    half: int


def known_products(
    operands: Sequence[Operand],
    words: Sequence[Labels],
    out: Collection[int],
    met: Callable[[Operand, Operand], bool],
    product: Callable[[Operand, Operand, set[int]], Operand | None],
) -> dict[int, KnownProduct[Operand]]:
    """Sets of operands, as bits, of which the product is there: pairs, and pairs of these.

    Parameters
    ----------
    operands : sequence
    words : sequence of tuple of int
        Their labels.
    out : collection of int
        The labels of the whole.
    met : callable
        ``met(one, two)``: has any product of the two been made?
    product : callable
        ``product(one, two, kept)`` is that which keeps labels that the rest needs, or None.
    """
    held = {1 << k: operand for k, operand in enumerate(operands)}
    found: dict[int, KnownProduct[Operand]] = {}
    waiting = list(held)
    while waiting and len(found) < MAX_KNOWN:
        one = waiting.pop(0)
        for two in list(held):
            both = one | two
            if one & two or both in held or not met(held[one], held[two]):
                continue
            rest = [word for k, word in enumerate(words) if not both >> k & 1]
            made = product(held[one], held[two], set(out).union(*rest))
            if made is not None:
                held[both], found[both] = made, KnownProduct(made, one)
                waiting.append(both)
    return found
