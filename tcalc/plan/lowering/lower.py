"""Expressions to steps: every node below the roots once, at concrete sizes.

A value is held lazily as `coef` times an array of which some axes are permuted, repeated (a unit
tensor) or broadcast; it is written out only where somebody needs all of its entries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from functools import partial
from math import inf, prod

from ...contraction.congruences import opened as as_one
from ...contraction.nested import flatten
from ...graph.extents import doubles_of, extent_of
from ...graph.factors import Factors, indicates, selects
from ...graph.nodes import Add, Apply, Const, Einsum, Expr, Part, Var, postorder
from ...graph.products import symmetries
from ...integers.affine import Guard
from ...ops.indicator import bound, check, conditions
from ...support.arrays import Sizes
from ..builder import Builder
from ..products.axis_order import spread
from ..products.congruences import congruent, found_between
from ..products.contract import by_labels, product
from ..products.sparse import sparse_input
from ..products.strided import opened, placed
from ..steps import BUFFER, INPUT, RESULT, Output, SlotWord, Word
from .operators import Operators, Planner
from .orders import hoped_orders
from .spellings import LoweringChoice
from .sums import Sums, Value

#: Rows of a matrix from which it is worth knowing that it is symmetric.
SQUARE = 64


class Lowering:
    """One walk over the nodes below the roots, operands first."""

    def __init__(
        self,
        roots: Sequence[Expr],
        b: Builder,
        fixed: Collection[str],
        way: LoweringChoice,
        inner: Planner,
        sparse: Mapping[str, int],
        placed: bool = False,
    ) -> None:
        self.b, self.sizes = b, b.sizes
        self.values: dict[int, Value] = {}
        self.sums = Sums(b)
        b.dense_inverses = way.dense_inverses
        self.taken: set[int] = set()
        nodes = postorder(roots)
        self.orders = hoped_orders(roots, nodes) if placed else {}
        variables = {node.name: node for node in nodes if isinstance(node, Var)}
        self.inputs = sorted(variables)
        for name in self.inputs:
            self._input(variables[name], name in fixed)
            if name in sparse:
                sparse_input(b, self.values[id(variables[name])].slot, sparse[name])
        uses = Counter([id(root) for root in roots])
        uses.update([id(arg) for node in nodes for arg in node.args])
        operators = Operators(b, self.values, nodes, uses, inner)
        needed = {id(root) for root in roots}
        products: dict[int, Factors] = {}
        size = partial(extent_of, sizes=self.sizes)
        for node in reversed(nodes):
            if id(node) not in needed:
                continue
            if isinstance(node, Einsum):
                products[id(node)] = whole = flatten(
                    node, lambda e: way.open_shared or uses[id(e)] < 2, size, not way.open_shared
                )
                needed.update([id(arg) for arg, _ in whole.operands])
            elif selects(node):
                needed.update(map(id, operators.read_by(node.args[0])))
            else:
                needed.update(map(id, node.args))
        for node in nodes:
            if isinstance(node, Part) and id(node) in needed:
                operators.reads(node)
        for node in nodes:
            if id(node) not in needed:
                continue
            if indicates(node):
                check(bound(node.params, self.sizes))
            if selects(node):
                self.values[id(node)] = operators.selection(node)
            elif isinstance(node, Einsum):
                self.values[id(node)] = self._product(node, products[id(node)])
            elif isinstance(node, Add):
                terms = [self.values[id(term)] for term in node.args]
                self.values[id(node)] = self.sums.sum(terms, self.shape(node))
            elif isinstance(node, Apply):
                self.values[id(node)] = operators.apply(node)
            elif isinstance(node, Part):
                self.values[id(node)] = operators.part(node)
            elif isinstance(node, Const):
                array = node.value
                slot = self.b.const(array, id(node))
                self.values[id(node)] = Value(slot, tuple(range(node.ndim)), 1)

    def shape(self, e: Expr) -> Sizes:
        return tuple([extent_of(extent, self.sizes) for extent in e.shape])

    def _input(self, variable: Var, fixed: bool) -> None:
        slot = self.b.slot(self.shape(variable), INPUT, name=variable.name)
        if fixed:
            self.b.fixed.add(slot)
        if variable.integral:
            self.b.integers.add(slot)
        self.values[id(variable)] = Value(slot, tuple(range(variable.ndim)), 1)

    # --- products ---------------------------------------------------------------------------------

    def _scaled_in_parts(self, e: Einsum, whole: Factors) -> Value:
        """A product whose coefficient no double holds: several scales by doubles."""
        first, *others = doubles_of(whole.coef.value)
        value = self._product(e, whole._replace(coef=whole.coef._replace(value=first)))
        for factor in others:
            if value.slot >= 0:
                value = value._replace(slot=self.b.scale(value.slot, value.coef), coef=factor)
        return value

    def _product(self, e: Einsum, whole: Factors) -> Value:
        if isinstance(whole.coef.value, Decimal) and whole.operands:
            return self._scaled_in_parts(e, whole)
        coef = whole.coef.evaluate(self.sizes)
        if whole.coef.zero or not whole.operands:
            return Value(-1, e.out, float(whole.coef.value) if whole.coef.zero else coef)
        factors: list[SlotWord] = []
        guards: list[Guard] = []
        for arg, word in whole.operands:
            if indicates(arg):
                guards += conditions(bound(arg.params, self.sizes), word)
                continue
            value = self.values[id(arg)]
            if word and len(set(value.axes)) < len(value.axes):
                value = self.sums.written(value, self.shape(arg))
            coef *= value.coef
            if value.slot >= 0:
                read = dict(zip(value.axes, word, strict=True))
                own = tuple([read[axis] for axis in range(len(self.b.shapes[value.slot]))])
                factors.append((value.slot, own))
                if len(own) > 1 and len(own) == arg.ndim:
                    self._note_symmetries(arg, value)
        if guards:
            return self._guarded(e, whole, factors, guards, coef)
        standing = {label for _, word in factors for label in word}
        for label in whole.extents.keys() - standing - set(e.out):
            coef *= extent_of(whole.extents[label], self.sizes)
        if coef == 0:  # sums over nothing, whatever the operands hold
            return Value(-1, e.out, 0)
        slot, word = -1, ()
        if len(factors) == 1 and len(standing) == len(factors[0][1]) and standing.issubset(e.out):
            slot, word = factors[0]
        elif factors:
            extents = {label: extent_of(whole.extents[label], self.sizes) for label in standing}
            hoped = [e.out[axis] for axis in self.orders.get(id(e), range(e.ndim))]
            core = tuple([label for label in dict.fromkeys(hoped) if label in standing])
            coef = self._absorb(factors, coef, prod([extents[label] for label in core]))
            slot, word = self._contracted(e, whole, factors, core, extents)
        value = Value.of((slot, word), e.out, coef)
        if e.ndim == len(word) == 2 and self.b.shapes[slot][0] >= SQUARE:
            self._note_symmetries(as_one(e, whole), value)
        return value

    def _contracted(
        self,
        e: Einsum,
        whole: Factors,
        factors: list[SlotWord],
        core: Word,
        extents: Mapping[int, int],
    ) -> SlotWord:
        """The sum of products; of symmetric matrices between an inverse and its transpose."""
        found = found_between(self.b, factors, core) if len(core) == e.ndim else None
        if found is not None and found.symmetric(e, whole):
            wanted = found.word([word for _, word in factors], core)
            inside = product(self.b, [factors[k] for k in found.rest], wanted, extents)
            return congruent(self.b, factors[found.inverse][0], inside, found)
        return product(self.b, factors, core, extents)

    def _guarded(
        self,
        e: Einsum,
        whole: Factors,
        factors: list[SlotWord],
        guards: list[Guard],
        coef: float,
    ) -> Value:
        """A product under conditions on its labels."""
        out = tuple(dict.fromkeys(e.out))
        extents = {label: extent_of(n, self.sizes) for label, n in whole.extents.items()}
        factors = by_labels(self.b, factors)
        found = opened(self.b, factors, guards, out, extents) if coef else None
        if found is None:
            return Value(-1, e.out, 0)
        factors, extents = found.factors, found.extents
        standing = {label for _, word in factors for label in word}
        for label in extents.keys() - standing - set(found.core):
            coef *= extents[label]
        x: SlotWord = -1, ()
        if factors:
            core = tuple([label for label in found.core if label in standing])
            coef = self._absorb(factors, coef, prod([extents[label] for label in core]))
            x = product(self.b, factors, core, extents)
        target = found.core
        if found.where is not None:
            shape = tuple([extent_of(whole.extents[label], self.sizes) for label in out])
            own = x[0], tuple([target.index(label) for label in x[1]])
            target = tuple(range(len(out)))
            order = spread(self.b, target, dict(enumerate(shape)))
            where = found.where._replace(forms=tuple([found.where.forms[k] for k in order]))
            x = placed(self.b, own, where, tuple([shape[k] for k in order])), order
        read = dict(zip(out, target, strict=True))
        return Value.of(x, [read[label] for label in e.out], coef)

    def _note_symmetries(self, e: Expr, value: Value) -> None:
        """What is known of the node holds for the slot, its axes in another order."""
        axes, b = value.axes, self.b
        for known, perms in ((b.symmetries, symmetries(e)), (b.antisymmetries, e._antisymmetries)):
            if perms and value.slot not in known:
                moved = [{axes[k]: axes[p] for k, p in enumerate(perm)} for perm in perms]
                known[value.slot] = tuple([tuple([m[k] for k in range(e.ndim)]) for m in moved])

    def _absorb(self, factors: list[SlotWord], coef: float, size: int) -> float:
        """Scale the smallest operand where that is much less work than scaling the result."""
        if coef == 1 or len(factors) < 2:
            return coef
        sizes = [
            inf if slot in self.b.selections or slot in self.b.sparse else prod(self.b.shapes[slot])
            for slot, _ in factors
        ]
        k = sizes.index(min(sizes))
        slot, word = factors[k]
        if 4 * sizes[k] > size or [s for s, _ in factors].count(slot) > 1:
            return coef
        factors[k] = (self.b.scale(self.b.floating(slot), coef), word)
        return 1

    # --- outputs ----------------------------------------------------------------------------------

    def output(self, root: Expr, number: int, lent: bool, ordered: bool = False) -> Output:
        """A slot that nobody else returns, with all entries of the root.

        Where inputs are `lent`, one that is the root as it stands is returned itself. The entries
        of others lie in C-order where they are to be `ordered`.
        """
        value, shape, b = self.values[id(root)], self.shape(root), self.b
        axes = tuple(range(len(shape)))
        if len(set(value.axes)) < len(value.axes):
            value = self.sums.written(value, shape)
        if value.slot < 0:
            params = (float(value.coef), number)
            slot = b.emit("fill", (), shape, (axes,), params, number)
        else:
            slot, word = self.sums.read(value)
            slot = b.scale(slot, value.coef)
            whole = len(word) == len(axes)
            kept = b.owner[slot] in self.taken or slot in b.fixed
            own = b.origin[slot] in (BUFFER, RESULT) and not kept
            given = lent and b.origin[slot] is INPUT and slot not in b.integers
            turned = ordered and not given and word != axes
            if turned or not (whole and (own or given)):
                target = word if whole and not turned else axes
                view = b.aligned(slot, word, target)
                sizes = tuple([shape[k] for k in target])
                slot = b.emit("copy", (view,), sizes, (target, target), key=number)
                b.fixed.discard(slot)
                word = target
            value = Value.of((slot, word), axes, 1)
        self.taken.add(b.owner[slot])
        if value.slot < 0 or value.axes == axes:
            return Output(slot, None)
        return Output(slot, value.axes)
