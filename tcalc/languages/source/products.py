"""Products in source code: scaling, unit tensors, and contractions as matrix products."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence

from ...graph.extents import ONE, Coef, Extent
from ...graph.nodes import Einsum, Expr, Labels
from ..writing.gathers import Gather, Segments, gather, segments
from .numpy import ATOM, Code, NumPy

Operand = tuple[Code, Labels]
MIN_NAMED = 12


class Products(ABC):
    """Statements so far, the code of every node, and how products of these are written."""

    def __init__(self, language: NumPy) -> None:
        self.language = language
        self.lines: list[str] = []
        self.codes: dict[int, Code] = {}
        self.short: dict[int, tuple[Code, set[int]]] = {}
        self.uses: Counter[int] = Counter()
        self.turned: set[int] = set()
        self.temporaries = 0
        self.prefix = "t"

    @abstractmethod
    def extent(self, extent: Extent) -> str:
        """An extent in the source."""

    def assign(self, code: Code) -> Code:
        self.temporaries += 1
        name = f"{self.prefix}{self.temporaries}"
        self.lines.append(f"{name} = {code.text}")
        return code._replace(text=name, level=ATOM, condition="")

    def named(self, code: Code) -> Code:
        return code if code.text.isidentifier() else self.assign(code)

    # --- products ---

    def scaled(self, coef: Coef, factors: list[Code]) -> Code:
        """coef * factors, the number next to the smallest factor."""
        language, value = self.language, coef.value
        negative = math.copysign(1, value) < 0 and value == value
        first = [] if abs(value) == 1 and (factors or coef.times) else [language.number(abs(value))]
        first += [Code(self.extent(d), weak=True) for d in coef.times]
        code = language.multiply([*first, *factors])
        if coef.over:
            code = language.divide(code, [self.extent(d) for d in coef.over])
        return language.negate(code) if negative else code

    def outer(self, node: Einsum) -> Code:
        """A product without a summed label."""
        labels = list(dict.fromkeys(node.out))
        scalars: list[Code] = []
        groups: dict[tuple[int, ...], list[Code]] = {}
        for arg, word in zip(node.args, node.labels, strict=True):
            if word:
                order = [label for label in labels if label in word]
                groups.setdefault(tuple(order), []).append(self.aligned(arg, word, order))
            else:
                scalars.append(self.codes[id(arg)])
        factors = []
        for group in sorted(groups, key=lambda group: (len(group), group)):
            product = self.language.multiply(groups[group])
            factors.append(self.language.expand(product, [k in group for k in labels]))
        plain = node.coef == ONE and not scalars and len(factors) == 1
        code = factors[0] if plain else self.scaled(node.coef, scalars + factors)
        present = {axis for axis, label in enumerate(labels) if any(label in g for g in groups)}
        if len(labels) < len(node.out):
            return self.embedded(node, code, bool(factors))
        if len(present) == len(labels):
            return code
        if self.uses[id(node)] > 1 and len(code.text) > MIN_NAMED:
            code = self.named(code)
        self.short[id(node)] = (code, present)
        shape = [self.extent(e) for e in node.shape]
        return self.language.broadcast(code, shape) if factors else self.language.full(code, shape)

    def embedded(self, node: Einsum, core: Code, array: bool) -> Code:
        """A unit tensor times its core, written on a diagonal of zeros."""
        language = self.language
        if not array:
            core = language.full(core, [self.extent(e) for e in node.extents])
        if node.out == (0, 0):
            return language.diag(core)
        core = self.named(core)
        self.temporaries += 1
        name = f"{self.prefix}{self.temporaries}"
        self.lines += language.embed(name, core, node.out, [self.extent(e) for e in node.shape])
        return Code(name)

    def aligned(self, arg: Expr, word: Labels, order: list[int]) -> Code:
        """An operand with its axes in this order of labels."""
        if id(arg) in self.turned and isinstance(arg, Einsum):
            return self.short_enough(self.contraction(arg, [word.index(k) for k in order]))
        return self.arranged((self.codes[id(arg)], word), order)

    def arranged(self, operand: Operand, order: Sequence[int]) -> Code:
        """The operand with axes in this order, repeated labels read as diagonals."""
        code, word = operand
        if len(set(word)) < len(word):
            distinct = tuple(dict.fromkeys(word))
            code, word = self.language.diagonal(code, word, distinct), distinct
        return self.language.transpose(code, [word.index(label) for label in order])

    # --- contractions ---

    def contraction(self, node: Einsum, order: Sequence[int]) -> Code:
        """A product with summed labels; result axes in this order of its open labels."""
        language, out = self.language, tuple(order)
        operands = [
            (self.codes[id(arg)], word) for arg, word in zip(node.args, node.labels, strict=True)
        ]
        if len(operands) == 1 and operands[0][1] == (0, 0) and not out:
            return language.trace(operands[0][0])
        taken, summed = gather(node), segments(node)
        if taken is not None or summed is not None:
            return self.indexed(node, taken, summed, order)
        flat = [
            (
                self.arranged(operand, list(dict.fromkeys(operand[1]))),
                tuple(dict.fromkeys(operand[1])),
            )
            for operand in operands
        ]
        while len(flat) > 1:
            flat = self.alone_summed(flat, out)
            if len(flat) == 2:
                return self.pair(flat[0], flat[1], out)
            step = self.paired(flat, out, 1) or self.absorbed(flat) or self.paired(flat, out, 0)
            if step is None:
                return language.einsum([c for c, _ in flat], [w for _, w in flat], out)
            flat = step
        return self.arranged(self.summed(flat[0], out), out)

    def indexed(
        self, node: Einsum, taken: Gather | None, summed: Segments | None, order: Sequence[int]
    ) -> Code:
        """A gather, or a sum by segments, result axes in this order of the open labels."""
        language = self.language
        if taken is not None:
            keys = [None if key is None else self.inner(key) for key in taken.keys]
            code, perm = language.take(self.inner(taken.array), keys), taken.perm
        else:
            assert summed is not None
            summand, index = self.inner(summed.summand), self.inner(summed.index)
            code = language.segment_sum(summand, index, self.extent(summed.extent))
            perm = summed.perm
        return language.transpose(code, [perm[node.out.index(label)] for label in order])

    @abstractmethod
    def inner(self, e: Expr) -> Code:
        """The code of an expression that need not stand in the whole."""

    def alone_summed(self, flat: list[Operand], out: Labels) -> list[Operand]:
        """Labels that only one operand has are summed there."""
        counts = Counter([label for _, word in flat for label in word])
        return [self.summed(f, [k for k in f[1] if k in out or counts[k] > 1]) for f in flat]

    def summed(self, operand: Operand, keep: Iterable[int]) -> Operand:
        code, word = operand
        kept = set(keep)
        axes = [k for k, label in enumerate(word) if label not in kept]
        if not axes:
            return operand
        rest = tuple([label for label in word if label in kept])
        return self.language.sum(code, axes, len(word)), rest

    def absorbed(self, flat: list[Operand]) -> list[Operand] | None:
        """An operand whose labels all stand in another one scales that one."""
        best: tuple[int, int, int] | None = None
        for i, (_, small) in enumerate(flat):
            for j, (_, large) in enumerate(flat):
                inside = set(small) <= set(large) and (len(small), i) < (len(large), j)
                if inside and (best is None or (len(large), i, j) < best):
                    best = (len(large), i, j)
        if best is None:
            return None
        _, i, j = best
        (code, target), word = flat[j], flat[i][1]
        aligned = self.arranged(flat[i], [k for k in target if k in word])
        factor = self.language.expand(aligned, [k in word for k in target])
        product = self.short_enough(self.language.multiply([code, factor]))
        return [f for k, f in enumerate(flat) if k not in (i, j)] + [(product, target)]

    def paired(self, flat: list[Operand], out: Labels, fewer: int) -> list[Operand] | None:
        """Two operands multiplied where that sums a label of theirs: the smallest result.

        The result has at least `fewer` axes less than the larger one.
        """
        options = []
        for i in range(len(flat)):
            for j in range(i + 1, len(flat)):
                rest = {k for m, (_, w) in enumerate(flat) if m not in (i, j) for k in w}
                joint = dict.fromkeys((*flat[i][1], *flat[j][1]))
                outer = [k for k in out if k in joint]
                kept = (*outer, *[k for k in joint if k in rest and k not in out])
                largest = max(len(flat[i][1]), len(flat[j][1]))
                if len(kept) < len(joint) and len(kept) + fewer <= largest:
                    options.append((len(kept), i, j, kept))
        if not options:
            return None
        _, i, j, kept = min(options)
        product = self.short_enough(self.pair(flat[i], flat[j], kept))
        return [f for k, f in enumerate(flat) if k not in (i, j)] + [(product, kept)]

    def short_enough(self, code: Code) -> Code:
        return self.assign(code) if len(code.text) > self.language.width else code

    def pair(self, a: Operand, b: Operand, out: Labels) -> Code:
        """The product of two operands with the labels that are not in `out` summed."""
        language = self.language
        shared = [k for k in a[1] if k in b[1]]
        summed = [k for k in shared if k not in out]
        batch = [k for k in shared if k in out]
        left = [k for k in out if k in a[1] and k not in shared]
        right = [k for k in out if k in b[1] and k not in shared]
        if batch or not summed:
            return self.batched(a, b, out, (batch, left, right, summed))
        if len(summed) == 1 and len(left) < 2 and len(right) < 2:
            if out == (*right, *left) and right and (left or len(b[1]) > 1):
                a, b, left, right = b, a, right, left
            first, second = self.arranged(a, [*left, *summed]), self.arranged(b, [*summed, *right])
            return language.matmul(first, second)
        if not out:
            return language.inner(self.arranged(a, a[1]), self.arranged(b, a[1]))
        axes = ([a[1].index(k) for k in summed], [b[1].index(k) for k in summed])
        order = [k for k in a[1] if k in left] + [k for k in b[1] if k in right]
        found = language.tensordot(a[0], b[0], axes)
        return language.transpose(found, [order.index(k) for k in out])

    def batched(self, a: Operand, b: Operand, out: Labels, groups: tuple[list[int], ...]) -> Code:
        language = self.language
        batch, left, right, summed = groups
        if len(left) == len(right) == len(summed) == 1:
            found = language.matmul(
                self.arranged(a, [*batch, *left, *summed]),
                self.arranged(b, [*batch, *summed, *right]),
            )
            order = [*batch, *left, *right]
            return language.transpose(found, [order.index(k) for k in out])
        return language.einsum([a[0], b[0]], [a[1], b[1]], out)
