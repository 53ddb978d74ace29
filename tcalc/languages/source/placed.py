"""Products under conditions on indices: what is read as windows, and written among zeros."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence

from ...graph.extents import ONE, Coef, Extent, Shape, extent_coef
from ...graph.factors import indicates, selects
from ...graph.nodes import Apply, Einsum, Expr, Labels
from ...ops.indicator import accesses, conditions
from .language import Code, Language, named
from .places import Opened, View, Window, opened
from .values import AnyOrder, NodeCodes, Operand, Placed


class PlacedProducts(ABC):
    """The products of one function that have indicators among their operands."""

    language: Language
    values: NodeCodes

    @abstractmethod
    def scaled(self, coef: Coef, factors: list[Code]) -> Code:
        """coef * factors."""

    @abstractmethod
    def contracted(
        self, operands: Sequence[Operand], extents: Mapping[int, Extent], out: Labels
    ) -> Code:
        """The product of operands, labels that are not in `out` summed."""

    @abstractmethod
    def contraction(self, node: Einsum, order: Sequence[int], coef: Coef = ONE) -> Code:
        """A product with summed labels, result axes in this order of `out`."""

    def as_read(self, node: Einsum, order: Sequence[int], coef: Coef = ONE) -> Code:
        """The same, in memory as its reader lies where the language has a choice."""
        hoped, language = self.values.orders.get(id(node)), self.language
        if hoped is None or not isinstance(language, AnyOrder):
            return self.contraction(node, order, coef)
        lying = [node.out[axis] for axis in hoped]
        code = self.contraction(node, lying, coef)
        return language.turned_array(code, [lying.index(label) for label in order])

    def indicator(self, e: Expr) -> Code:
        """An array of conditions."""
        found = self.entries(e)
        assert isinstance(e, Apply)
        return self.language.indicator(*e.params[:2]) if found is None else self.among_zeros(found)

    def guarded(self, node: Einsum, out: Labels) -> Code | None:
        """A product with indicators whose equalities can be solved; None for any other."""
        if not any(indicates(op) for op in node.args):
            return None
        pairs = list(zip(node.args, node.labels, strict=True))
        distinct, extents = tuple(dict.fromkeys(out)), dict(enumerate(node.extents))
        found = self.at_places(pairs, distinct, extents, node.coef)
        if found is None:
            return None
        code = self.among_zeros(found)
        return code if distinct == out else self.language.embed(code, out, node.shape)

    def entries(self, e: Expr, coef: Coef = ONE) -> Placed | None:
        """Entries of a product with indicators without repeated axes, times a coefficient."""
        if not isinstance(e, Einsum):
            word = tuple(range(e.ndim))
            return self.at_places([(e, word)], word, dict(enumerate(e.shape)), coef)
        pairs, extents = list(zip(e.args, e.labels, strict=True)), dict(enumerate(e.extents))
        return self.at_places(pairs, e.out, extents, coef.by(e.coef))

    def among_zeros(self, found: Placed, onto: Code | None = None) -> Code:
        """Entries at their places, among zeros or added to those of another product."""
        if found.where is None:
            return found.code
        return self.language.place(found.code, found.whole, found.where, onto)

    def at_places(
        self,
        pairs: Sequence[tuple[Expr, Labels]],
        out: Labels,
        extents: Mapping[int, Extent],
        coef: Coef,
    ) -> Placed | None:
        """A product of expressions, of which indicators say which entries are read and written."""
        guards = [g for op, word in pairs if indicates(op) for g in conditions(op.params, word)]
        arrays = [(op, word) for op, word in pairs if not indicates(op)]
        checked = [a for op, word in pairs if indicates(op) for a in accesses(op.params, word)]
        if any(selects(op) for op, _ in arrays):
            return None
        shapes, words = [op.shape for op, _ in arrays], [word for _, word in arrays]
        found = opened(shapes, words, guards, checked, out, extents, self.values.forms)
        if found is None:
            return None
        codes = [self.values.inner(op) for op, _ in arrays]
        operands = self.read_once(
            [self.read(*of) for of in zip(codes, shapes, found.windows, strict=True)]
        )
        for members, word in found.masks:
            shape = tuple([found.extents[label] for label in word])
            operands.append((self.language.indicator(shape, members), word))
        code, shape = self.written(operands, coef, found), tuple([extents[label] for label in out])
        if found.where is None or found.whole == shape:
            return Placed(code, shape, found.where)
        whole = self.language.place(code, found.whole, found.where)
        steps = tuple(
            [tuple([int(k == axis) for k in range(len(out))]) for axis in range(len(out))]
        )
        return Placed(
            self.language.window(whole, found.whole, View((0,) * len(out), steps, shape)),
            shape,
            None,
        )

    def read(self, c: Code, shape: Shape, w: Window) -> Operand:
        """An operand at its places."""
        if any(margin != (0, 0) for margin in w.margins):
            c = self.language.pad(c, shape, w.margins)
        return self.language.window(c, w.whole, w.view), w.word

    def read_once(self, operands: list[Operand]) -> list[Operand]:
        """The operands, windows under a name that several of them are."""
        times = Counter([code.text for code, _ in operands if code.overlaps])
        names = {
            code.text: named(self.language, code) for code, _ in operands if times[code.text] > 1
        }
        return [(names.get(code.text, code), word) for code, word in operands]

    def written(self, operands: list[Operand], coef: Coef, found: Opened) -> Code:
        """The entries of a product over all labels of its result."""
        standing = {label for _, word in operands for label in word}
        for label in found.extents.keys() - standing - set(found.core):
            coef = coef.by(extent_coef(found.extents[label]))
        core = tuple([label for label in found.core if label in standing])
        factors = [self.contracted(operands, found.extents, core)] if operands else []
        code = factors[0] if factors and coef == ONE else self.scaled(coef, factors)
        shape = tuple([found.extents[label] for label in found.core])
        if not core:
            return self.language.full(code, shape) if shape or not factors else code
        if len(core) == len(found.core):
            return code
        code = self.language.expand(code, [label in standing for label in found.core])
        return self.language.broadcast(code, shape)
