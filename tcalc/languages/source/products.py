"""Products in source code: scaling, unit tensors, and contractions pair by pair.

Contractions become matrix products where they have that form; unit tensors are written onto
diagonals of zeros.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ...contraction.congruences import Between
from ...contraction.paths import path_of
from ...graph.extents import ONE, Coef, Extent, doubles_of, size_of
from ...graph.factors import Factors, indicates, selects
from ...graph.nodes import Einsum, Expr, Labels
from ...support.limits import spend
from ..writing.gathers import Gather, SegmentSum, as_gather, as_segment_sum
from .blocks import Blocks
from .language import Code, Language, named, short_enough
from .solves import Solves
from .squares import SquaredProducts, weighted_square
from .values import AnyOrder, Embedding, Narrow, NodeCodes, Operand, moved_axes

MIN_NAMED = 12
#: Steps of the text of a product of two operands, and of each of their labels.
PAIRED, LABELLED = 30, 2


class Products(SquaredProducts):
    """How the products of one function are written.

    Parameters
    ----------
    language : Language
        Its scope takes the statements.
    values : Values
        What stands around the products.
    """

    def __init__(self, language: Language, values: NodeCodes) -> None:
        self.language = language
        self.values = values
        self.solves = Solves(language, values)
        self.blocks = Blocks(language, values, set())

    # --- products ---

    def scaled(self, coef: Coef, factors: list[Code]) -> Code:
        """coef * factors, the number next to the smallest factor."""
        language, value = self.language, coef.value
        negative = math.copysign(1, value) < 0 and value == value
        plain = abs(value) == 1 and (factors or coef.times)
        first = [] if plain else [language.number(n) for n in doubles_of(size_of(value))]
        first += [language.size(d) for d in coef.times]
        code = language.multiply([*first, *factors])
        if coef.over:
            code = language.divide(code, [language.size(d) for d in coef.over])
        return language.negate(code) if negative else code

    def unit(self, node: Expr, onto: Code | None = None) -> Code:
        """A unit tensor times its core, among zeros or added onto an array."""
        assert isinstance(node, Einsum)
        return self.outer(node, onto)[0]

    def outer(self, node: Einsum, onto: Code | None = None) -> tuple[Code, Narrow | None]:
        """A product without a summed label, and what it repeats along axes that no operand has.

        A unit tensor may be added `onto` an array.
        """
        guarded = self.guarded(node, node.out)
        if guarded is not None:
            return guarded, None
        labels = list(dict.fromkeys(node.out))
        scalars: list[Code] = []
        groups: dict[tuple[int, ...], list[Code]] = {}
        absorbs = self.absorbs(node)
        coef = ONE if absorbs else node.coef
        for arg, word in zip(node.args, node.labels, strict=True):
            if word:
                order = [label for label in labels if label in word]
                falls = node.ndim > 2 == len(order) and tuple(order) == word[::-1]
                if falls and not absorbs and not self.values.turned(arg):
                    code = self.values.columns(arg)  # or the product has its axes in another order
                else:
                    code = self.aligned(arg, word, order, node.coef if absorbs else ONE)
                twice = sum([a is arg for a in node.args]) == 2 and self.values.read_twice(arg)
                first = twice and tuple(order) not in groups
                own = first or self.values.owned(arg, node)
                own = own and word == node.out and not code.view
                groups.setdefault(tuple(order), []).append(replace(code, fresh=own))
            else:
                scalars.append(self.values.code(arg))
        alike = [(self.language.multiply(group), word) for word, group in groups.items()]
        # Not by their axes: products that differ in the order of axes alone have the same bits,
        # or the entries that are their maximum would not be found.
        alike.sort(key=lambda operand: (len(operand[1]), operand[0].text))
        if len(alike) > 2:
            (c, word), *others = [(replace(c, fresh=False), word) for c, word in alike]
            operands = [(self.scaled(node.coef, [*scalars, c]), word), *others]
            scalars, coef, alike = [], ONE, [self.paired_up(operands, node)]
        factors = [self.language.expand(c, [k in group for k in labels]) for c, group in alike]
        plain = coef == ONE and not scalars and len(factors) == 1
        code = factors[0] if plain else self.scaled(coef, scalars + factors)
        present = {axis for axis, label in enumerate(labels) if any(label in g for g in groups)}
        if len(labels) < len(node.out):
            return self.embedded(node, code, bool(factors), onto), None
        if len(present) == len(labels):
            return code, None
        # What is narrow is read later: by then others may have written to its operands.
        again = any(arg.args and arg.ndim and self.values.shared(arg) for arg in node.args)
        if (again or self.values.shared(node)) and len(code.text) > MIN_NAMED:
            code = named(self.language, code)
        repeated = self.language.broadcast if factors else self.language.full
        return repeated(code, node.shape), Narrow(code, present)

    def paired_up(self, operands: Sequence[Operand], node: Einsum) -> Operand:
        """The product of more than two arrays with other axes each, small ones first."""
        every = {label for _, word in operands for label in word}
        out = tuple([label for label in dict.fromkeys(node.out) if label in every])
        return self.contracted(operands, dict(enumerate(node.extents)), out), out

    def embedded(self, node: Einsum, core: Code, array: bool, onto: Code | None) -> Code:
        """A unit tensor times its core, which is one number where it is no array."""
        if onto is not None and isinstance(self.language, Embedding):
            self.language.embed_onto(onto, core, node.out)
            return onto
        filled = core if array else self.language.full(core, node.extents)
        found = self.language.embed(filled, node.out, node.shape)
        return replace(found, core=found.core and core.text)

    def absorbs(self, node: Einsum) -> bool:
        """Is it a scaled matrix, or more, that is made of a number or a vector: to be scaled?"""
        arg = node.args[0] if len(node.args) == 1 and abs(node.coef.value) != 1 else node
        if (
            arg is node
            or not isinstance(arg, Einsum)
            or arg.ndim < 2
            or not self.values.turned(arg)
        ):
            return False
        operands = self.values.factors(arg).operands
        plain = not any(indicates(op) or selects(op) for op, _ in operands)
        small = any(op.ndim < 2 for op, _ in operands) and len(operands) > 1
        return plain and small and weighted_square(operands, arg.out) is None

    def aligned(self, arg: Expr, word: Labels, order: list[int], coef: Coef = ONE) -> Code:
        """An operand, scaled, with its axes in this order of labels."""
        if self.values.turned(arg) and isinstance(arg, Einsum):
            turned = self.as_read(arg, [word.index(k) for k in order], coef)
            return short_enough(self.language, turned)
        return self.arranged((self.values.code(arg), word), order)

    def arranged(self, operand: Operand, order: Sequence[int]) -> Code:
        """The operand with axes in this order, repeated labels read as diagonals."""
        code, word = operand
        if len(set(word)) < len(word):
            distinct = tuple(dict.fromkeys(word))
            code, word = self.language.diagonal(code, word, distinct), distinct
        return self.language.transpose(code, [word.index(label) for label in order])

    # --- contractions ---

    def contraction(self, node: Einsum, order: Sequence[int], coef: Coef = ONE) -> Code:
        """A product with summed labels, pairwise as planned; result axes in this order of `out`.

        Where it `absorbs` a coefficient, its smallest operand is scaled.
        """
        language, out = self.language, tuple(order)
        taken, summed = as_gather(node), as_segment_sum(node)
        if taken is not None or summed is not None:
            return self.indexed(node, taken, summed, order)
        guarded = self.guarded(node, out)
        if guarded is not None:
            return guarded
        whole = self.values.factors(node)
        by_blocks = self.blocks.written(whole, out, lambda code: self.scaled(coef, [code]))
        if by_blocks is not None:
            return by_blocks
        found = self.solves.between(node, whole)
        if found is not None:
            return self.congruent(whole, out, coef, found)
        spelled = sorted(whole.operands, key=lambda item: any(item[0] is arg for arg in node.args))
        operands = self.solves.met(self.halves(spelled, out), out)
        if coef != ONE:
            k = min(range(len(operands)), key=lambda k: self.solves.rank(operands[k]))
            code, word = self.solves.made(operands[k])
            operands[k] = self.scaled(coef, [code]), word
        if len(operands) == 1 and operands[0][1] == (0, 0) and not out:
            return language.trace(operands[0][0])
        return self.contracted(operands, whole.extents, out)

    def congruent(self, whole: Factors, out: Labels, coef: Coef, found: Between) -> Code:
        """Symmetric matrices, which the other operands make, between an inverse on both sides."""
        inverse, _ = whole.operands[found.inverse]
        stack = [k for k in out if k not in found.outer]
        word = (*stack, *found.inner)
        rest = [whole.operands[k] for k in found.rest]
        operands = self.solves.met(self.halves(rest, word), word)
        inside = self.contracted(operands, whole.extents, word)
        if coef != ONE:
            inside = self.scaled(coef, [inside])
        made = self.solves.congruence(inverse, inside)
        # They are symmetric: either of their axes is the first one.
        return self.new((made, (*stack, *[k for k in out if k in found.outer])), out)

    def new(self, operand: Operand, order: Sequence[int]) -> Code:
        """A new array with axes in this order, under its name where the language has any order."""
        code, word = operand
        perm = [word.index(label) for label in order]
        if isinstance(self.language, AnyOrder):
            return self.language.turned_array(code, perm)
        return self.language.transpose(code, perm)

    def contracted(
        self, operands: Sequence[Operand], extents: Mapping[int, Extent], out: Labels
    ) -> Code:
        """The product of operands, labels that are not in `out` summed."""
        flat = self.grouped(self.alone_summed([self.distinct(f) for f in operands], out), out)
        held = dict(enumerate(flat))
        for step, (i, j) in enumerate(self.path(extents, flat, out), len(flat)):
            a, b = held.pop(i), held.pop(j)
            if not held:
                return self.pair(a, b, out)
            rest = {label for _, word in held.values() for label in word}.union(out)
            if rest.issuperset(a[1] + b[1]) and (a[0].overlaps or b[0].overlaps):
                codes, words = zip(a, b, *held.values(), strict=True)
                return self.language.einsum(codes, words, out)
            held[step] = self.paired(a, b, rest, out)
        return self.arranged(flat[0], out)

    def path(
        self, whole: Mapping[int, Extent], flat: Sequence[Operand], out: Labels
    ) -> list[tuple[int, ...]]:
        """Pairs to multiply, in the order of a plan; of equally fast ones those as spelled."""
        order = [0, *range(len(flat) - 1, 0, -1)]
        place = [*order, *range(len(flat), 2 * len(flat))]
        extents = {label: self.values.extent(extent) for label, extent in whole.items()}
        pairs = path_of([flat[k][1] for k in order], out, extents).pairs
        return [tuple(sorted([place[i], place[j]])) for i, j in pairs]

    def paired(self, a: Operand, b: Operand, kept: set[int], out: Labels) -> Operand:
        """The product of two operands of several, its axes in an order that reads well."""
        joint = [label for label in dict.fromkeys((*a[1], *b[1])) if label in kept]
        wanted = [label for label in out if label in joint]
        word = (*wanted, *[label for label in joint if label not in wanted])
        found = [(self.pair(a, b, w), w) for w in dict.fromkeys((tuple(joint), word, word[::-1]))]
        code, word = min(found, key=lambda option: len(option[0].text))
        return short_enough(self.language, code), word

    def indexed(
        self, node: Einsum, taken: Gather | None, summed: SegmentSum | None, order: Sequence[int]
    ) -> Code:
        """A gather, or a sum by segments, result axes in this order of the open labels."""
        language = self.language
        if taken is not None:
            keys = [None if key is None else self.values.integer(key) for key in taken.keys]
            code, perm = language.take(self.values.inner(taken.array), keys), taken.perm
        else:
            assert summed is not None
            summand, index = self.values.inner(summed.summand), self.values.integer(summed.index)
            code = language.segment_sum(summand, index, summed.extent)
            perm = summed.perm
        return language.transpose(code, [perm[node.out.index(label)] for label in order])

    def distinct(self, operand: Operand) -> Operand:
        """The operand with repeated labels read as diagonals."""
        word = tuple(dict.fromkeys(operand[1]))
        return self.arranged(operand, word), word

    def alone_summed(self, flat: list[Operand], out: Labels) -> list[Operand]:
        """Labels that only one operand has are summed there."""
        counts = Counter([label for _, word in flat for label in word])
        return [self.summed(f, [k for k in f[1] if k in out or counts[k] > 1]) for f in flat]

    def grouped(self, flat: list[Operand], out: Labels) -> list[Operand]:
        """Operands with the same labels as one; two halves where that sums labels of theirs."""
        groups: dict[frozenset[int], list[Operand]] = {}
        found = []
        for code, word in flat:
            if code.overlaps:
                found.append((code, word))
            else:
                groups.setdefault(frozenset(word), []).append((code, word))
        for labels, members in groups.items():
            counts = Counter([(code.text, word) for code, word in members])
            members.sort(key=lambda f: (-counts[f[0].text, f[1]], f[1], f[0].text))
            whole = labels.issubset(set(out).union(*[g for g in groups if g != labels]))
            word = members[0][1]
            last = len(members) if whole or len(members) == 1 else -1
            one = self.language.multiply([self.arranged(f, word) for f in members[:last]])
            found += [(one, word), *members[last:]]
        return found

    def summed(self, operand: Operand, keep: Iterable[int]) -> Operand:
        code, word = operand
        kept = set(keep)
        axes = [k for k, label in enumerate(word) if label not in kept]
        if not axes:
            return operand
        rest = tuple([label for label in word if label in kept])
        return self.language.sum(code, axes, len(word)), rest

    def pair(self, a: Operand, b: Operand, out: Labels) -> Code:
        """The product of two operands with the labels that are not in `out` summed."""
        spend("steps", PAIRED + LABELLED * (len(a[1]) + len(b[1])))
        language = self.language
        shared = [k for k in a[1] if k in b[1]]
        summed = [k for k in shared if k not in out]
        batch = [k for k in shared if k in out]
        left = [k for k in out if k in a[1] and k not in shared]
        right = [k for k in out if k in b[1] and k not in shared]
        solved = self.solves.solved(a, b, summed)
        if solved is not None:
            return self.new(solved, out)
        a, b = self.solves.made(a), self.solves.made(b)
        if not summed:
            return self.entrywise_pair([a, b], out)
        if a[0].overlaps or b[0].overlaps:
            return language.einsum([a[0], b[0]], [a[1], b[1]], out)
        if batch:
            return self.batched(a, b, out, (batch, left, right, summed))
        if len(summed) == 1 and len(left) < 2 and len(right) < 2:
            if out == (*right, *left) and right and (left or len(b[1]) > 1):
                a, b, left, right = b, a, right, left
            if not left and not right and len(b[0].text) < len(a[0].text):
                a, b = b, a
            first, second = self.arranged(a, [*left, *summed]), self.arranged(b, [*summed, *right])
            return language.matmul(first, second)
        if not out:
            return language.inner(self.arranged(a, a[1]), self.arranged(b, a[1]))
        if out == (*[k for k in b[1] if k in right], *[k for k in a[1] if k in left]):
            a, b, left, right = b, a, right, left
        if not (left and right) and moved_axes(b[1], a[1], summed) < moved_axes(a[1], b[1], summed):
            a, b, left, right = b, a, right, left
        stack = "matmul_stacks" in language.own_words
        if stack and self.values.often and len(summed) == 1 and min(len(a[1]), len(b[1])) < 3:
            return self.stacked(a, b, out, summed[0])
        if stack and len(b[1]) == len(summed) == 1 and a[1][-2] in summed:
            kept = tuple([k for k in a[1] if k in left])
            return self.arranged((language.matmul(b[0], a[0]), kept), out)
        if stack and not (left and right) and moved_axes(a[1], b[1], summed):
            return language.einsum([a[0], b[0]], [a[1], b[1]], out)
        axes = ([a[1].index(k) for k in summed], [b[1].index(k) for k in summed])
        order = [k for k in a[1] if k in left] + [k for k in b[1] if k in right]
        found = language.tensordot(a[0], b[0], axes)
        return language.transpose(found, [order.index(k) for k in out])

    def stacked(self, a: Operand, b: Operand, out: Labels, summed: int) -> Code:
        """A stack of matrices times a matrix or a vector: quick to call, for small arrays."""
        stack, other = (a, b) if len(a[1]) > len(b[1]) else (b, a)
        rest = [label for label in stack[1] if label != summed]
        own = [label for label in other[1] if label != summed]
        first, second = self.arranged(stack, [*rest, summed]), self.arranged(other, [summed, *own])
        return self.arranged((self.language.matmul(first, second), (*rest, *own)), out)

    def entrywise_pair(self, operands: Sequence[Operand], out: Labels) -> Code:
        """A product of two operands in which nothing is summed, the larger one first."""
        factors = []
        for operand in sorted(operands, key=lambda operand: -len(operand[1])):
            aligned = self.arranged(operand, [k for k in out if k in operand[1]])
            factors.append(self.language.expand(aligned, [k in operand[1] for k in out]))
        return self.language.multiply(factors)

    def batched(self, a: Operand, b: Operand, out: Labels, groups: tuple[list[int], ...]) -> Code:
        """A product of matrices for every place along axes that both operands and `out` have."""
        language = self.language
        batch, left, right, summed = groups
        if left and len(left) < len(right):
            a, b, left, right = b, a, right, left
        stacks = len(left) > 1 and "matmul_stacks" in language.own_words
        if not (len(right) == len(summed) == 1 and (stacks or len(left) == 1)):
            return language.einsum([a[0], b[0]], [a[1], b[1]], out)
        first, more = self.arranged(a, [*batch, *left, *summed]), left[1:]
        second = self.arranged(b, [*batch, *summed, *right])
        if more:
            second = language.expand(
                second, [k not in more for k in (*batch, *more, *summed, *right)]
            )
        order = [*batch, *left, *right]
        return language.transpose(language.matmul(first, second), [order.index(k) for k in out])
