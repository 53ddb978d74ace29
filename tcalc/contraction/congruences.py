"""X B X' in a product, of symmetric B for X the inverse of a lower triangle.

Both are one routine's work, half of what two solves would take.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from ..graph.extents import ONE
from ..graph.factors import Factors
from ..graph.nodes import Einsum, Expr, Labels
from ..graph.normal import built
from ..graph.products import symmetries
from ..support.records import NamedTuple


class Between(NamedTuple):
    """Where X stands, and the other operands; labels of B between both X, and of the result."""

    inverse: int
    rest: list[int]
    inner: tuple[int, int]
    outer: tuple[int, int]

    def symmetric(self, e: Einsum, whole: Factors) -> bool:
        """Does an exchange of the outer axes of e, which is the `whole` product, change nothing?"""
        turned = dict(zip(self.outer, self.outer[::-1], strict=True))
        swapped = tuple([e.out.index(turned.get(label, label)) for label in e.out])
        return swapped in symmetries(opened(e, whole))

    def word(self, operands: Sequence[Labels], out: Labels) -> Labels:
        """Labels of B: those of the other operands that are kept, or are between both X."""
        inside = dict.fromkeys([label for k in self.rest for label in operands[k]])
        return tuple([label for label in inside if label in out or label in self.inner])


def between(
    operands: Sequence[tuple[object, Labels]], inverses: Sequence[int], out: Labels
) -> Between | None:
    """The product, where one of the inverses stands on both sides of all other operands.

    One of these holds a matrix: of thin ones X B is small, and B might never be made.
    """
    for i, j in combinations(inverses, 2):
        (one, (k, m)), (two, (n, p)) = operands[i], operands[j]
        rest = [place for place in range(len(operands)) if place not in (i, j)]
        standing = {label for place in rest for label in operands[place][1]}
        ends = len({k, m, n, p}) == 4 and {k, n} == {k, m, n, p}.intersection(out)
        held = any({m, p} <= set(operands[place][1]) for place in rest)
        if one == two and ends and held and not {k, n} & standing:
            return Between(i, rest, (m, p), (k, n))
    return None


def opened(e: Einsum, whole: Factors) -> Expr:
    """The product as one node, which may be known to be symmetric where nested ones are not."""
    return e if len(whole.operands) == len(e.args) else built(whole._replace(coef=ONE))
