"""Products among the operands of a product inlined, their labels merged with those around them.

The first half of the normal form; `tcalc.graph.normal` says what is inlined.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..support.errors import ShapeError
from ..support.limits import spend
from .extents import Coef, Extent, extent_coef
from .factors import (
    Factors,
    LabelledExpr,
    chained,
    enlarging,
    indicates,
    inlined,
    same_selections,
    selects,
)
from .nodes import Einsum, Labels
from .products import grouped_factors, without_ones

MAX_OPERANDS = 12


class Inlining:
    """One product whose operands are inlined; labels that become equal are merged (union-find)."""

    def __init__(self, extents: dict[int, Extent], out: Labels, coef: Coef) -> None:
        self.extents = extents
        self.out = out
        self.coef = coef
        self.parent: dict[int, int] = {}

    def find(self, label: int) -> int:
        parent = self.parent
        while label in parent:
            label = parent[label]
        return label

    def union(self, a: int, b: int) -> None:
        a, b = self.find(a), self.find(b)
        if a != b:
            a, b = min(a, b), max(a, b)
            self.parent[b] = a
            if a in self.extents and b in self.extents:
                self.check(a, self.extents[b])
            elif b in self.extents:
                self.extents[a] = self.extents[b]

    def check(self, label: int, extent: Extent) -> None:
        known = self.extents.setdefault(label, extent)
        if known != extent:
            raise ShapeError(f"an index has extent {known} in one place and {extent} in another")

    def word(self, labels: Labels) -> Labels:
        if not self.parent:
            return labels
        return tuple([self.find(label) for label in labels])

    def of(self, operands: list[LabelledExpr]) -> Factors:
        """The product of these operands, after inlining."""
        for op, word in operands:
            for label, extent in zip(word, op.shape, strict=True):
                self.check(label, extent)
        if not any(isinstance(op, Einsum) or selects(op) for op, _ in operands):
            return Factors(operands, self.out, self.extents, self.coef)
        operands = self.merged(self.inline_outer_products(operands))
        while (inside := self.inline_contraction(operands)) is not None:
            operands = self.merged(self.inline_outer_products(inside))
        operands = [(op, self.word(word)) for op, word in operands]
        out, coef = self.word(self.out), self.coef
        placed = {label for _, word in operands for label in word}.union(out)
        # summed labels that are in no operand any more: a sum over nothing but the extent
        for label in sorted({self.find(label) for label in self.extents} - placed):
            coef = coef.by(extent_coef(self.extents[label]))
        return Factors(operands, out, self.extents, coef)

    def inline_outer_products(self, operands: Iterable[LabelledExpr]) -> list[LabelledExpr]:
        """The operands after outer products among them are inlined."""
        kept: list[LabelledExpr] = []
        waiting = list(operands)
        for k, (op, word) in enumerate(waiting):
            if isinstance(op, Einsum) and not op.summed:
                local: dict[int, int] = {}
                for mine, theirs in zip(word, op.out, strict=True):
                    if theirs in local:
                        self.union(local[theirs], mine)
                    else:
                        local[theirs] = mine
                self.coef = self.coef.by(op.coef)
                inside = list(zip(op.args, op.labels, strict=True))
                if len(kept) + len(inside) + len(waiting) - k - 1 > MAX_OPERANDS:
                    inside = grouped_factors(inside, op.extents)
                for arg, labels in inside:
                    kept.append((arg, tuple([local[label] for label in labels])))
            else:
                kept.append((op, word))
        return kept

    def merged(self, operands: list[LabelledExpr]) -> list[LabelledExpr]:
        """The operands with selections that stand twice once, and chained indicators as one."""
        operands = self.merge_selections(operands)
        while (found := self.merge_indicators(operands)) is not None:
            operands = self.inline_outer_products(found)
        return operands

    def merge_indicators(self, operands: list[LabelledExpr]) -> list[LabelledExpr] | None:
        """The operands without a summed label that one or two indicators alone have, or None."""
        label, found = next(self.chains(operands), (None, []))
        if label is None:
            return None
        self.extents = {k: e for k, e in self.extents.items() if self.find(k) != label}
        words = [(op, self.word(word)) for op, word in operands]
        return [(op, word) for op, word in words if label not in word] + found

    def chains(self, operands: list[LabelledExpr]) -> Iterator[tuple[int, list[LabelledExpr]]]:
        """The summed labels that indicators alone have, and what these are without them."""
        if not any(indicates(op) for op, _ in operands):
            return
        outer = {self.find(label) for label in self.out}
        holders: dict[int, list[LabelledExpr]] = {}
        for op, labels in operands:
            word = self.word(labels)
            for label in set(word) - outer:
                holders.setdefault(label, []).append((op, word))
        for label, rows in holders.items():
            if len(rows) <= 2 and all(indicates(op) for op, _ in rows):
                found = chained(rows, label)
                if found is not None:
                    yield label, found

    def merge_selections(self, operands: list[LabelledExpr]) -> list[LabelledExpr]:
        """One selection tensor twice, S_ij S_ik, is S_ij with a unit tensor of j and k."""
        if not any(selects(op) for op, _ in operands):
            return operands
        while True:
            operands = [(op, self.word(word)) for op, word in operands]
            pairs = same_selections(operands)
            if not pairs:
                outer = {self.find(label) for label in self.out}
                operands, gone = without_ones(operands, outer)
                if not gone:
                    return operands
                kept = {k: e for k, e in self.extents.items() if self.find(k) not in gone}
                self.extents = kept
            for a, b in pairs:
                self.union(a, b)

    def inline_contraction(self, operands: list[LabelledExpr]) -> list[LabelledExpr] | None:
        """The operands after one contraction is inlined, or None where none is to be."""
        if not any(isinstance(op, Einsum) for op, _ in operands):
            return None
        outer = {self.find(label) for label in self.out}
        for k, (op, labels) in enumerate(operands):
            if not isinstance(op, Einsum):
                continue
            word = self.word(labels)
            diagonal = len(set(word)) < len(word)
            if not diagonal:
                few = len(operands) + len(op.args) - 1 <= MAX_OPERANDS
                if not few or outer.issuperset(word):
                    continue
                beside = operands[:k] + operands[k + 1 :]
                if not (enlarging(op) or self.is_cut_again(op, word, beside)):
                    continue
            spend("steps", len(operands))
            return operands[:k] + inlined(op, word, self.extents) + operands[k + 1 :]
        return None

    def is_cut_again(self, op: Einsum, word: Labels, beside: list[LabelledExpr]) -> bool:
        """Is op entries of one array, of which an indicator beside it takes some that are known?"""
        if sum([not indicates(arg) for arg in op.args]) > 1:
            return False
        names = dict(zip(op.out, word, strict=True))
        inner = [
            (arg, tuple([names.get(i, -1 - i) for i in w]))
            for arg, w in zip(op.args, op.labels, strict=True)
        ]
        return any(label in word for label, _ in self.chains([*inner, *beside]))
