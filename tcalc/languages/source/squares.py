"""Products of a matrix with itself, of which half are computed."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ...graph.nodes import Expr, Labels
from ...rules.facts import is_nonnegative
from .language import Code, Operator, named
from .placed import PlacedProducts
from .solves import Solves
from .values import Operand


def weighted_square(
    factors: Sequence[tuple[Expr, Labels]], out: Labels
) -> tuple[tuple[int, int], list[int]] | None:
    """Where a matrix stands twice in X' diag(d) X, and where the factors of d >= 0 stand."""
    matrices = [k for k, (_, word) in enumerate(factors) if len(word) == 2]
    weights = [k for k, (_, word) in enumerate(factors) if len(word) == 1]
    if len(matrices) != 2 or not weights or len(matrices) + len(weights) != len(factors):
        return None
    (one, first), (two, second) = (factors[k] for k in matrices)
    shared = [k for k, label in enumerate(first) if label == second[k]]
    summed = {word for k in weights for word in factors[k][1]}
    if one is not two or len(shared) != 1 or summed != {first[shared[0]]} or summed & set(out):
        return None
    times = Counter([id(factors[k][0]) for k in weights])
    odd = [factors[k][0] for k in weights if times[id(factors[k][0])] % 2]
    return ((matrices[0], matrices[1]), weights) if all(map(is_nonnegative, odd)) else None


class SquaredProducts(PlacedProducts):
    """Products of which some operands stand twice."""

    solves: Solves

    @abstractmethod
    def entrywise_pair(self, operands: Sequence[Operand], out: Labels) -> Code:
        """A product of two operands in which nothing is summed."""

    def halves(self, factors: Sequence[tuple[Expr, Labels]], out: Labels) -> list[Operand]:
        """The operands; in X' diag(d) X with d >= 0 they are twice the product of sqrt(d) and X.

        One array times its own transpose is half the work of two arrays.
        """
        found = weighted_square(factors, out)
        # Of a diagonal the product has fewer axes than the operand.
        if found is None or any(len({*factors[k][1]}) < len(factors[k][1]) for k in found[0]):
            return self.squared(factors)
        operands = [(self.values.code(arg), word) for arg, word in factors]
        place, weights = found
        weight = self.language.multiply([operands[k][0] for k in weights])
        root = self.language.call(Operator("sqrt"), [weight])
        if root is None:
            return operands
        word = factors[place[0]][1]
        pair = [operands[place[0]], (root, operands[weights[0]][1])]
        half = named(self.language, self.entrywise_pair(pair, word))
        return [(half, factors[k][1]) for k in place]

    def squared(self, factors: Sequence[tuple[Expr, Labels]]) -> list[Operand]:
        """The operands; one that stands twice and is read nowhere else becomes its square.

        Where all stand twice, at the same axes, they are two halves.
        """
        counts = Counter([(id(arg), word) for arg, word in factors])
        if len({word for _, word in factors}) == 1 and {*counts.values()} == {2} and factors[2:]:
            pairs = {id(arg): arg for arg, _ in factors}.values()
            owned = [replace(self.values.code(e), fresh=self.values.read_twice(e)) for e in pairs]
            half = named(self.language, replace(self.language.multiply(owned), fresh=False))
            return [(half, factors[0][1])] * 2
        found: dict[tuple[int, Labels, int], Operand] = {}
        for k, (arg, word) in enumerate(factors):
            twice = counts[id(arg), word] == 2 < len(factors) and self.values.read_twice(arg)
            if not twice:
                found[id(arg), word, k] = self.solves.operand(arg), word
            elif (id(arg), word, -1) not in found:
                code = self.values.code(arg)
                square = self.language.multiply([replace(code, fresh=True), code])
                # What it is multiplied with may have more axes.
                found[id(arg), word, -1] = replace(square, fresh=False), word
        return list(found.values())
