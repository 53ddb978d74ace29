"""Expressions to steps: every node below the roots once, at concrete sizes.

A value is held lazily as `coef` times an array of which some axes are permuted, repeated (a unit
tensor) or broadcast; it is written out only where somebody needs all of its entries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from math import inf, prod
from typing import Any

from ...contraction.nested import flatten
from ...graph.extents import ONE, extent_names, extent_of
from ...graph.nodes import Add, Apply, Const, Einsum, Expr, Part, Var, postorder
from ...graph.normal import built
from ...graph.products import Factors, indicates, selects, symmetries
from ...graph.row import Factorisation, Iteration, Loop, Op, effort
from ...integers.affine import Guard
from ...ops.indicator import bound, check, conditions
from ..failures import shortened
from ..products.axis_order import Operand, along, entrywise, sized, spread
from ..products.contract import by_labels, product
from ..products.gathers import written
from ..products.strided import opened, placed
from ..slot_facts import Inverse
from ..steps import BUFFER, INPUT, RESULT, Builder, Output, Plan, Sizes, Word
from .spellings import Way
from .sums import Sums, Value

#: The plan of one step of a loop, at extents of its dimensions, with what is the same in all.
Planner = Callable[[Sequence[Expr], Mapping[str, int], Collection[str]], Plan]

#: Rows of a matrix from which it is worth knowing that it is symmetric.
SQUARE = 64


class Lowering:
    """One walk over the nodes below the roots, operands first."""

    def __init__(
        self,
        roots: Sequence[Expr],
        b: Builder,
        fixed: Collection[str],
        way: Way,
        inner: Planner,
    ) -> None:
        self.b, self.sizes = b, b.sizes
        self.values: dict[int, Value] = {}
        self.sums = Sums(b)
        self.inner, b.dense_inverses = inner, way.dense_inverses
        self.taken: set[int] = set()
        nodes = postorder(roots)
        variables = {node.name: node for node in nodes if isinstance(node, Var)}
        self.inputs = sorted(variables)
        for name in self.inputs:
            self._input(variables[name], name in fixed)
        uses = Counter([id(root) for root in roots])
        uses.update([id(arg) for node in nodes for arg in node.args])
        self.factored = Counter(
            [
                (id(node.op.kernels.factor), id(node.args[0]))
                for node in nodes
                if isinstance(node, Apply) and node.op.kernels.factor is not None
                for _ in range(uses[id(node)])
            ]
        )
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
            else:
                needed.update(map(id, node.args))
        self.read: dict[int, list[int]] = {}
        for node in nodes:
            if isinstance(node, Part) and id(node) in needed:
                self.read.setdefault(id(node.args[0]), []).append(node.index)
        for node in nodes:
            if id(node) not in needed:
                continue
            if indicates(node):
                check(bound(node.params, self.sizes))
            if selects(node):
                self.values[id(node)] = self._selection(node)
            elif isinstance(node, Einsum):
                self.values[id(node)] = self._product(node, products[id(node)])
            elif isinstance(node, Add):
                terms = [self.values[id(term)] for term in node.args]
                self.values[id(node)] = self.sums.sum(terms, self.shape(node))
            elif isinstance(node, Apply):
                self.values[id(node)] = self._apply(node)
            elif isinstance(node, Part):
                self.values[id(node)] = self._part(node)
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

    def _product(self, e: Einsum, whole: Factors) -> Value:
        coef = whole.coef.evaluate(self.sizes)
        if whole.coef.zero or not whole.operands:
            return Value(-1, e.out, 0 if whole.coef.zero else coef)
        factors: list[Operand] = []
        guards: list[Guard] = []
        for arg, word in whole.operands:
            if indicates(arg):
                guards += conditions(bound(arg.params, self.sizes), word)
                continue
            value = self.values[id(arg)]
            if len(set(value.axes)) < len(value.axes):
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
            core = tuple([label for label in dict.fromkeys(e.out) if label in standing])
            coef = self._absorb(factors, coef, prod([extents[label] for label in core]))
            slot, word = product(self.b, factors, core, extents)
        value = Value.of((slot, word), e.out, coef)
        if e.ndim == len(word) == 2 and self.b.shapes[slot][0] >= SQUARE:
            self._note_symmetries(_opened(e, whole), value)
        return value

    def _guarded(
        self, e: Einsum, whole: Factors, factors: list[Operand], guards: list[Guard], coef: float
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
        x: Operand = -1, ()
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

    def _absorb(self, factors: list[Operand], coef: float, size: int) -> float:
        """Scale the smallest operand where that is much less work than scaling the result."""
        if coef == 1 or len(factors) < 2:
            return coef
        sizes = [
            inf if slot in self.b.selections else prod(self.b.shapes[slot]) for slot, _ in factors
        ]
        k = sizes.index(min(sizes))
        slot, word = factors[k]
        if 4 * sizes[k] > size or [s for s, _ in factors].count(slot) > 1:
            return coef
        factors[k] = (self.b.scale(self.b.floating(slot), coef), word)
        return 1

    # --- operators --------------------------------------------------------------------------------

    def _plain(self, value: Value, shape: Sizes, whole: bool) -> Operand:
        """A value as an array with its coefficient multiplied in; integers stay if `whole`."""
        if len(set(value.axes)) < len(value.axes):
            value = self.sums.written(value, shape)
        if value.slot < 0:
            return self.b.number(value.coef), ()
        if not whole or value.coef != 1:
            slot, word = self.sums.read(value)
            return self.b.scale(slot, value.coef), word
        place, slot = {axis: k for k, axis in enumerate(value.axes)}, written(self.b, value.slot)
        return slot, tuple([place[axis] for axis in range(len(self.b.shapes[slot]))])

    def _bound(self, params: tuple[Any, ...]) -> tuple[Any, ...]:
        """Parameters with dimensions replaced by their extents."""
        known = self.sizes.keys()
        return tuple([
            extent_of(p, self.sizes) if isinstance(p, str) and extent_names([p]) <= known else p
            for p in params
        ])  # fmt: skip

    def _apply(self, e: Apply) -> Value:
        params = e.params if e.args else self._bound(e.params)
        if indicates(e):
            params = bound(e.params, self.sizes)
        key = (e.op.name, repr(params))
        whole = not e.op.elementwise
        if isinstance(e.op, Loop):
            return self._loop(e, e.op.iteration(e.params, self.read[id(e)]))
        operands = [self._plain(self.values[id(arg)], self.shape(arg), whole) for arg in e.args]
        if whole:
            return self._core_apply(e, operands, params, key)
        labels = {label for _, word in operands for label in word}
        target = next((w for _, w in operands if len(w) == len(labels)), tuple(sorted(labels)))
        extents = self.shape(e)
        target = entrywise(self.b, operands, target)
        operands = [along(self.b, operand, target) for operand in operands]
        shape = tuple([extents[label] for label in target])
        args = tuple([self.b.aligned(slot, word, target) for slot, word in operands])
        words = (*[w for _, w in operands], target)
        kind = "ufunc" if e.op.kernels.ufunc else "kernel"
        flops = e.op.kernels.flops * prod(shape)
        slot = self.b.emit(kind, args, shape, words, (e.op, *params), key, flops)
        return Value.of((slot, target), range(e.ndim), 1)

    def _core_apply(
        self, e: Apply, operands: list[Operand], params: tuple[Any, ...], key: Any
    ) -> Value:
        args = []
        for arg, (slot, word) in zip(e.args, operands, strict=True):
            if e.op.core[0] in (1, -1):
                slot, word = self._turned((slot, word), tuple(range(arg.ndim)))
            known = word in symmetries(arg)  # a symmetric operand is what its transpose is
            whole = tuple(range(arg.ndim)) if known else word
            args.append(self._full((slot, whole), self.shape(arg)))
        entries = max([1, *[prod(self.shape(arg)) for arg in e.args]])
        axes = tuple(range(e.ndim))
        matrix = any(core >= 2 for core in e.op.core)
        flops = e.op.kernels.flops * entries * (self.shape(e.args[0])[-1] if matrix else 1)
        words: tuple[Word, ...] = (*[tuple(range(len(self.b.shapes[a]))) for a in args], axes)
        step_params = (e.op, *params)
        kind, shape = "kernel", self.shape(e)
        if e.op.outputs > 1 and e.op.meaning.shape is not None:
            shapes = e.op.meaning.shape(params, *[self.shape(arg) for arg in e.args])
            kind, shape = "kernels", (sum([prod(s) for s in shapes]),)
        elif e.op.kernels.factor is not None and self._is_shared(e, e.op.kernels.factor):
            kind, args = "finish", [self._factor(e.op.kernels.factor, args[0], words[:1])]
            flops -= effort(e.op.kernels.factor) * entries
        if e.op.kernels.over is not None:
            kind = "over"
            args[0] = self.b.floating(args[0])
        slot = self.b.emit(kind, tuple(args), shape, words, step_params, key, flops)
        if e.op.meaning.inverts:
            factored = kind == "finish"
            self.b.inverses[slot] = Inverse(e.op.meaning.inverts, args[0], factored, e.op.name)
        return Value(slot, axes, 1)

    def _full(self, x: Operand, shape: Sizes) -> int:
        """The slot of an array with all axes in their order, repeated along those it has not."""
        axes = tuple(range(len(shape)))
        slot = self.b.aligned(*x, axes)
        if self.b.shapes[slot] != shape:
            own = axes[len(axes) - len(self.b.shapes[slot]) :]
            slot = self.b.emit("broadcast", (slot,), shape, (own, axes), shape)
        return slot

    def _loop(self, e: Apply, step: Iteration) -> Value:
        """A loop is one step, which holds the plan of what it repeats."""
        args = []
        for arg, v in zip(e.args, step.variables, strict=True):
            operand = self._plain(self.values[id(arg)], self.shape(arg), True)
            slot = self._full(operand, self.shape(arg))
            args.append(slot if v.integral else self.b.floating(slot))
        count = extent_of(step.times, self.sizes)
        read = tuple(sorted(self.read[id(e)]))
        fixed = [v.name for v in step.fixed]
        plan = self.inner(list(step.following.values()), self.sizes, fixed)
        shape = (step.entries(self.sizes) + plan.peak_bytes // plan.itemsize,)
        words = (*[tuple(range(len(self.b.shapes[a]))) for a in args], ())
        key = (e.op.name, repr(e.params), read)
        params = (e.op, *e.params, count, read, plan)
        slot = self.b.emit("loop", tuple(args), shape, words, params, key, count * plan.flops)
        return Value(slot, (), 1)

    def _turned(self, x: Operand, axes: Word) -> Operand:
        """Many short vectors, which are read along the long axis."""
        b, whole = self.b, len(x[1]) == len(axes)
        return along(b, x, spread(b, axes, sized(b, x))) if whole else x

    def _selection(self, e: Expr) -> Value:
        """A slot that stands for the tensor; only its integers are an array."""
        (arg,) = e.args
        slot, word = self._plain(self.values[id(arg)], self.shape(arg), True)
        shape, extent = self.b.shapes[slot], self.shape(e)[-1]
        params = (extent, shortened(str(arg)))
        index = self.b.emit("index", (slot,), shape, (word, word), params)
        whole = ((index, tuple(range(len(word)))),)
        axes = (*[word.index(k) for k in range(arg.ndim)], arg.ndim)
        return Value(self.b.selection(whole, (*shape, extent)), axes, 1)

    def _is_shared(self, e: Apply, factor: Op | Factorisation) -> bool:
        """Is the factorisation a row's own, or wanted by more than one step?"""
        if isinstance(factor, Op):
            return True
        return e.args[0].ndim == 2 and self.factored[id(factor), id(e.args[0])] > 1

    def _factor(self, factor: Op | Factorisation, matrix: int, words: tuple[Word, ...]) -> int:
        """The slot with a factorisation of a matrix: a row's own step, or one of plans only."""
        shape = self.b.shapes[matrix]
        flops = effort(factor) * prod(shape) * shape[-1]
        words = (*words, words[0])
        if isinstance(factor, Factorisation):
            return self.b.emit("factor", (matrix,), shape, words, (factor,), flops=flops)
        key = (factor.name, "()")
        matrix = self.b.floating(matrix)
        return self.b.emit("over", (matrix,), shape, words, (factor,), key, flops)

    def _part(self, e: Part) -> Value:
        """One output of a step that has several."""
        whole = self.values[id(e.args[0])].slot
        axes = tuple(range(e.ndim))
        slot = self.b.emit("part", (whole,), self.shape(e), ((), axes), (e.index,))
        return Value(slot, axes, 1)

    # --- outputs ----------------------------------------------------------------------------------

    def output(self, root: Expr, number: int, lent: bool) -> Output:
        """A slot that nobody else returns, with all entries of the root.

        Where inputs are `lent`, one that is the root as it stands is returned itself.
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
            if not (whole and (own or given)):
                target = word if whole else axes
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


def _opened(e: Einsum, whole: Factors) -> Expr:
    """The product as one node, which may be known to be symmetric where nested ones are not."""
    return e if len(whole.operands) == len(e.args) else built(whole._replace(coef=ONE))
