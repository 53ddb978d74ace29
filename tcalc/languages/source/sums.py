"""Sums in source code: terms that repeat entries, that stand at places, that are unit tensors."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...graph.factors import indicates, selects
from ...graph.nodes import Add, Const, Einsum, Expr, Labels
from .language import Code
from .ownership import Ownership
from .products import Products
from .values import AnyOrder, Embedding, Narrow, unscaled


def embedded_once(nodes: Sequence[Expr], uses: Counter[int], axes: int) -> set[int]:
    """Unit tensors of so many axes at least that one sum reads: they are written onto the others.

    None where there are constants, which may be of higher precision.
    """
    if any(isinstance(node, Const) for node in nodes):
        return set()
    return {
        id(term)
        for node in nodes
        if isinstance(node, Add) and node.ndim >= axes
        for term in node.args
        if isinstance(term, Einsum)
        and len(set(term.out)) < term.ndim
        and not term.summed
        and uses[id(term)] == 1
        and not any(indicates(arg) or selects(arg) for arg in term.args)
    }


class Sums(Ownership):
    """The sums of one program.

    Attributes
    ----------
    products : Products
    units : set
        Unit tensors that are written onto the other terms of a sum.
    orders : mapping
        In which order axes of nodes are hoped for, where they have one in memory.
    """

    products: Products
    units: set[int]
    orders: Mapping[int, Labels]

    @abstractmethod
    def code(self, e: Expr) -> Code:
        """An operand, which is written already."""

    @abstractmethod
    def inner(self, e: Expr) -> Code:
        """An expression that need not stand in the whole, written now."""

    def sum(self, node: Add) -> Code:
        """A sum, of which terms that stand at places are added to one array of zeros."""
        if self.waiting.isdisjoint(map(id, node.args)):
            return self.language.add(self.entrywise(node, node.args))
        if not self.units.isdisjoint(map(id, node.args)):
            return self.with_units(node)
        whole, terms = None, []
        for term in node.args:
            coef, product = unscaled(term)
            found = self.products.entries(product, coef) if id(term) in self.waiting else None
            if found is not None and found.where is not None:
                whole = self.products.among_zeros(found, whole)
            else:
                code = self.inner(term) if found is None else found.code
                own = found is not None and self.makes(product, code)
                terms.append(replace(code, fresh=own))
        terms = terms if whole is None else [whole, *terms]
        return self.language.add(terms) if terms[1:] else terms[0]

    def with_units(self, node: Add) -> Code:
        """A sum, of which unit tensors are added onto diagonals of the sum of the other terms."""
        language = self.language
        assert isinstance(language, Embedding)
        units = [term for term in node.args if id(term) in self.units]
        units.sort(key=lambda term: not any(arg.ndim for arg in term.args))  # numbers last
        others = [term for term in node.args if id(term) not in self.units]
        for term in others:
            if id(term) in self.waiting:  # for places among zeros, of which there are none here
                self.inner(term)
        codes = self.entrywise(node, others)
        total = language.add(codes) if codes[1:] else codes[0] if codes else None
        target = None if total is None else self.overwritten(total, node, len(codes) > 1)
        if target is not None:
            total = None
        else:
            target = self.products.unit(units.pop(0))
        for term in units:
            self.products.unit(term, target)
        found = replace(target, fresh=True)
        return found if total is None else language.add([found, replace(total, fresh=False)])

    def overwritten(self, total: Code, node: Add, several: bool) -> Code | None:
        """A new array for a sum, or None; as its reader's lies, where the language has a choice."""
        language, order = self.language, self.orders.get(id(node))
        assert isinstance(language, Embedding)
        if order is None or total.fresh or not isinstance(language, AnyOrder):
            return language.overwritable(total, node.shape, several)
        shape = tuple([node.shape[axis] for axis in order])
        found = language.overwritable(language.transpose(total, order), shape, several)
        back = [order.index(axis) for axis in range(node.ndim)]
        return None if found is None else language.turned_array(found, back)

    def entrywise(self, node: Expr, args: Sequence[Expr]) -> list[Code]:
        """Operands of an entrywise node, not repeated along axes that others among them have."""
        every = set(range(node.ndim))
        whole = [Narrow(self.code(arg), every) for arg in args]
        small = [self.narrow.get(id(arg), n) for arg, n in zip(args, whole, strict=True)]
        enough = set().union(*[n.axes for n in small]) == every
        read = [n.code for n in (small if enough else whole)]
        full = [a for a, c in zip(args, read, strict=True) if self.fills(a, c, node)]
        return [
            replace(c, fresh=self.owned(arg, node), core=c.core if full and not c.name else "")
            for c, arg in zip(read, args, strict=True)
        ]
