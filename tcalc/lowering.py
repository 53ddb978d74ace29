"""Expressions to steps: every node below the roots once, at concrete sizes.

A value is held lazily as `coef` times an array of which some axes are permuted, repeated (a unit
tensor) or broadcast; it is written out only where somebody needs all of its entries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

from .expr import Add, Apply, Const, Einsum, Expr, Part, Var, postorder
from .extents import extent_of
from .flat import Flat, flat, flatten, nested
from .lower import product
from .op import Factor, Op
from .pairs import Operand
from .products import symmetries
from .steps import BUFFER, INPUT, RESULT, VIEW, Builder, Inverse, Output, Sizes, Word, spread
from .variants import Way


class Value(NamedTuple):
    """coef times a slot's array, read with labels.

    Label k < ndim of the slot is its axis k, other labels are broadcast; a label twice in `axes` is
    a unit tensor. Slot -1 is the number 1.
    """

    slot: int
    axes: Word
    coef: float


class Lowering:
    """One walk over the nodes below the roots, operands first."""

    def __init__(
        self,
        roots: Sequence[Expr],
        sizes: Mapping[str, int],
        fixed: Collection[str],
        way: Way,
    ) -> None:
        self.b = Builder(sizes)
        self.b.dense_inverses = way.dense_inverses
        self.sizes = sizes
        self.values: dict[int, Value] = {}
        self.taken: set[int] = set()
        nodes = postorder(roots)
        variables = {node.name: node for node in nodes if isinstance(node, Var)}
        self.inputs = sorted(variables)
        for name in self.inputs:
            self._input(variables[name], name in fixed)
        uses = Counter([id(root) for root in roots])
        for node in nodes:
            for arg in node.args:
                uses[id(arg)] += 1
        self.factored = Counter(
            [
                (id(node.op.factor), id(node.args[0]))
                for node in nodes
                if isinstance(node, Apply) and node.op.factor is not None
                for _ in range(uses[id(node)])
            ]
        )
        opened: dict[int, Flat] = {}
        inside: set[int] = set()
        for node in reversed(nodes):
            if (
                isinstance(node, Einsum)
                and id(node) not in inside
                and nested(node, uses, way.open_shared)
            ):
                opened[id(node)], found = flatten(node, uses, way.open_shared)
                inside.update(map(id, found))
        for node in nodes:
            if isinstance(node, Einsum):
                if id(node) not in inside:
                    self.values[id(node)] = self._product(node, opened.get(id(node)) or flat(node))
            elif isinstance(node, Add):
                self.values[id(node)] = self._sum(node)
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
        if "integer" in variable.properties:
            self.b.integers.add(slot)
        self.values[id(variable)] = Value(slot, tuple(range(variable.ndim)), 1)

    # --- products ---------------------------------------------------------------------------------

    def _product(self, e: Einsum, whole: Flat) -> Value:
        coef = whole.coef.evaluate(self.sizes)
        if whole.coef.zero or not whole.operands:
            return Value(-1, e.out, 0 if whole.coef.zero else coef)
        factors: list[Operand] = []
        for arg, word in whole.operands:
            value = self.values[id(arg)]
            if len(set(value.axes)) < len(value.axes):
                value = self._written(value, self.shape(arg))
            coef *= value.coef
            if value.slot >= 0:
                read = dict(zip(value.axes, word, strict=True))
                own = tuple([read[axis] for axis in range(len(self.b.shapes[value.slot]))])
                factors.append((value.slot, own))
                if len(own) > 1 and len(own) == arg.ndim:
                    self._note_symmetries(arg, value)
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
        axis = {label: k for k, label in enumerate(word)}
        for label in e.out:
            axis.setdefault(label, len(axis))
        return Value(slot, tuple([axis[label] for label in e.out]), coef)

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
        sizes = [prod(self.b.shapes[slot]) for slot, _ in factors]
        k = sizes.index(min(sizes))
        slot, word = factors[k]
        if 4 * sizes[k] > size or [s for s, _ in factors].count(slot) > 1:
            return coef
        factors[k] = (self.b.scale(self.b.floating(slot), coef), word)
        return 1

    # --- sums -------------------------------------------------------------------------------------

    def _sum(self, e: Add) -> Value:
        groups: dict[frozenset[int], list[tuple[float, Operand]]] = {}
        units: list[Value] = []
        number = 0.0
        for term in e.args:
            value = self.values[id(term)]
            if len(set(value.axes)) < len(value.axes):
                units.append(value)
            elif value.slot < 0:
                number += value.coef
            else:
                slot, word = self._read(value)
                groups.setdefault(frozenset(word), []).append((value.coef, (slot, word)))
        parts = [self._combination(terms) for terms in groups.values()]
        parts.sort(key=lambda part: prod(self.b.shapes[part[1][0]]))
        total = parts[0] if parts else None
        if total is not None and number:
            sign, (slot, word) = total
            total = 1, (self.b.shift(slot, number, sign), word)
        for part in parts[1:]:
            assert total is not None
            total = self._joined(total, part)
        if units:
            return self._with_units(e, total, number, units)
        if total is None:
            return Value(-1, tuple(range(e.ndim)), number)
        return self._value(total[1], e.ndim, total[0])

    def _read(self, value: Value) -> Operand:
        """A slot, and the node's axis that each of its axes is."""
        place = {axis: k for k, axis in enumerate(value.axes)}
        slot = self.b.floating(value.slot)
        return slot, tuple([place[axis] for axis in range(len(self.b.shapes[slot]))])

    @staticmethod
    def _value(operand: Operand, ndim: int, coef: float) -> Value:
        slot, word = operand
        axis = {label: k for k, label in enumerate(word)}
        for label in range(ndim):
            axis.setdefault(label, len(axis))
        return Value(slot, tuple([axis[label] for label in range(ndim)]), coef)

    def _combination(self, terms: list[tuple[float, Operand]]) -> tuple[int, Operand]:
        """A linear combination of operands with the same labels, and its sign."""
        terms = sorted(terms, key=lambda term: term[0] <= 0)
        total: tuple[int, Operand] | None = None
        for coef, (slot, word) in terms:
            sign = -1 if coef < 0 else 1
            part = sign, (self.b.scale(slot, abs(coef)), word)
            total = part if total is None else self._joined(total, part)
        assert total is not None
        return total

    def _joined(self, x: tuple[int, Operand], y: tuple[int, Operand]) -> tuple[int, Operand]:
        """The sum of two signed operands, broadcast; y has at least as many entries."""
        (sign, one), (other, two) = x, y
        extra = tuple([label for label in one[1] if label not in two[1]])
        target = two[1]
        if extra:
            sizes = dict(zip(one[1], self.b.shapes[one[0]], strict=True))
            sizes.update(zip(two[1], self.b.shapes[two[0]], strict=True))
            target = spread(tuple(sorted(two[1] + extra)), sizes)
        if sign == other:
            return sign, (self.b.binary("add", one, two, target), target)
        if sign < 0:
            one, two = two, one
        return 1, (self.b.binary("subtract", one, two, target), target)

    def _with_units(
        self, e: Add, total: tuple[int, Operand] | None, number: float, units: list[Value]
    ) -> Value:
        """Unit tensors are added onto diagonals of the sum of the other terms."""
        shape = self.shape(e)
        axes = tuple(range(e.ndim))
        sign = 1
        target, held = axes, -1
        if total is not None:
            sign, (slot, word) = total
            target = word if len(word) == e.ndim else axes
            held = self.b.aligned(slot, word, target)
        elif number:
            held = self.b.number(number)
        for unit in units:
            held = self._embedded(unit, shape, target, sign, held)
        return self._value((held, target), e.ndim, sign)

    def _embedded(
        self, value: Value, shape: Sizes, target: Word, sign: int = 1, onto: int = -1
    ) -> int:
        """A value with unit tensors written out, axes in the order of `target`, onto a sum."""
        pattern = tuple([value.axes[k] for k in target])
        order = tuple(dict.fromkeys(pattern))
        if value.slot < 0:
            core = self.b.number(value.coef * sign)
        else:
            slot = self.b.scale(self.b.floating(value.slot), value.coef * sign)
            own = tuple(range(len(self.b.shapes[slot])))
            core = self.b.aligned(slot, own, order)
        number = {label: k for k, label in enumerate(order)}
        pattern = tuple([number[label] for label in pattern])
        sizes = tuple([shape[k] for k in target])
        args = (core,) if onto < 0 else (onto, core)
        words = (*[tuple(range(len(self.b.shapes[a]))) for a in args[:-1]], (), pattern)
        kind = "embed" if onto < 0 else "embed_add"
        return self.b.emit(kind, args, sizes, words, 0, (pattern,))

    def _written(self, value: Value, shape: Sizes) -> Value:
        axes = tuple(range(len(shape)))
        return Value(self._embedded(value, shape, axes), axes, 1)

    # --- operators --------------------------------------------------------------------------------

    def _plain(self, value: Value, shape: Sizes, whole: bool) -> Operand:
        """A value as an array with its coefficient multiplied in; integers stay if `whole`."""
        if len(set(value.axes)) < len(value.axes):
            value = self._written(value, shape)
        if value.slot < 0:
            return self.b.number(value.coef), ()
        if not whole or value.coef != 1:
            slot, word = self._read(value)
            return self.b.scale(slot, value.coef), word
        place = {axis: k for k, axis in enumerate(value.axes)}
        return value.slot, tuple([place[a] for a in range(len(self.b.shapes[value.slot]))])

    def _bound(self, params: tuple[Any, ...]) -> tuple[Any, ...]:
        """Parameters with dimensions replaced by their extents."""
        return tuple([self.sizes.get(p, p) if isinstance(p, str) else p for p in params])

    def _apply(self, e: Apply) -> Value:
        params = e.params if e.args else self._bound(e.params)
        key = (e.op.name, repr(params))
        whole = not e.op.elementwise
        operands = [self._plain(self.values[id(arg)], self.shape(arg), whole) for arg in e.args]
        if whole:
            return self._core_apply(e, operands, params, key)
        labels = {label for _, word in operands for label in word}
        target = next((w for _, w in operands if len(w) == len(labels)), tuple(sorted(labels)))
        extents = self.shape(e)
        shape = tuple([extents[label] for label in target])
        args = tuple([self.b.aligned(slot, word, target) for slot, word in operands])
        words = (*[w for _, w in operands], target)
        kind, origin = ("ufunc", BUFFER) if e.op.ufunc else ("kernel", RESULT)
        flops = e.op.flops * prod(shape)
        slot = self.b.emit(kind, args, shape, words, flops, (e.op, *params), origin, key)
        return self._value((slot, target), e.ndim, 1)

    def _core_apply(
        self, e: Apply, operands: list[Operand], params: tuple[Any, ...], key: Any
    ) -> Value:
        args = []
        entries = 1
        for arg, (slot, word) in zip(e.args, operands, strict=True):
            shape = self.shape(arg)
            entries = max(entries, prod(shape))
            axes = tuple(range(arg.ndim))
            slot = self.b.aligned(slot, word, axes)
            if self.b.shapes[slot] != shape:
                own = axes[arg.ndim - len(self.b.shapes[slot]) :]
                slot = self.b.emit("broadcast", (slot,), shape, (own, axes), 0, shape, origin=VIEW)
            args.append(slot)
        axes = tuple(range(e.ndim))
        matrix = any(core >= 2 for core in e.op.core)
        flops = e.op.flops * entries * (self.shape(e.args[0])[-1] if matrix else 1)
        words: tuple[Word, ...] = (*[tuple(range(len(self.b.shapes[a]))) for a in args], axes)
        step_params = (e.op, *params)
        kind, shape, origin = "kernel", self.shape(e), RESULT
        if e.op.outputs > 1 and e.op.shape is not None:
            shapes = e.op.shape(params, *[self.shape(arg) for arg in e.args])
            kind, shape = "kernels", (sum([prod(s) for s in shapes]),)
        elif e.op.factor is not None and self._is_shared(e, e.op.factor):
            kind, args = "finish", [self._factor(e.op.factor, args[0], words[:1])]
            flops -= e.op.factor.flops * entries
        if e.op.over is not None:
            kind, origin = "over", BUFFER
            args[0] = self.b.floating(args[0])
        slot = self.b.emit(kind, tuple(args), shape, words, flops, step_params, origin, key)
        if e.op.inverts:
            factored = kind == "finish"
            self.b.inverses[slot] = Inverse(e.op.inverts, args[0], factored, e.op.name)
        return Value(slot, axes, 1)

    def _is_shared(self, e: Apply, factor: Op | Factor) -> bool:
        """Is the factorisation a row's own, or wanted by more than one step?"""
        if isinstance(factor, Op):
            return True
        return e.args[0].ndim == 2 and self.factored[id(factor), id(e.args[0])] > 1

    def _factor(self, factor: Op | Factor, matrix: int, words: tuple[Word, ...]) -> int:
        """The slot with a factorisation of a matrix: a row's own step, or one of plans only."""
        shape = self.b.shapes[matrix]
        flops = factor.flops * prod(shape) * shape[-1]
        words = (*words, words[0])
        if isinstance(factor, Factor):
            return self.b.emit("factor", (matrix,), shape, words, flops, (factor,), RESULT)
        key = (factor.name, "()")
        matrix = self.b.floating(matrix)
        return self.b.emit("over", (matrix,), shape, words, flops, (factor,), BUFFER, key)

    def _part(self, e: Part) -> Value:
        """One output of a step that has several."""
        whole = self.values[id(e.args[0])].slot
        axes = tuple(range(e.ndim))
        slot = self.b.emit("part", (whole,), self.shape(e), ((), axes), 0, (e.index,), VIEW)
        return Value(slot, axes, 1)

    # --- outputs ----------------------------------------------------------------------------------

    def output(self, root: Expr, number: int) -> Output:
        """A slot that nobody else returns, with all entries of the root."""
        value, shape, b = self.values[id(root)], self.shape(root), self.b
        axes = tuple(range(len(shape)))
        if len(set(value.axes)) < len(value.axes):
            value = self._written(value, shape)
        if value.slot < 0:
            params = (float(value.coef), number)
            slot = b.emit("fill", (), shape, (axes,), 0, params, key=number)
        else:
            slot, word = self._read(value)
            slot = b.scale(slot, value.coef)
            whole = len(word) == len(axes)
            kept = b.owner[slot] in self.taken or slot in b.fixed
            if not whole or kept or b.origin[slot] not in (BUFFER, RESULT):
                target = word if whole else axes
                view = b.aligned(slot, word, target)
                sizes = tuple([shape[k] for k in target])
                slot = b.emit("copy", (view,), sizes, (target, target), 0, (), key=number)
                b.fixed.discard(slot)
                word = target
            value = self._value((slot, word), len(axes), 1)
        self.taken.add(b.owner[slot])
        if value.slot < 0 or value.axes == axes:
            return Output(slot, None)
        return Output(slot, value.axes)
