"""Operators to steps: applications, the factorisations they share, loops, selection tensors.

An elementwise application is one step on broadcast operands; one with core axes gets operands with
all their axes, in order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from math import prod
from typing import Any

from ...graph.extents import extent_names, extent_of
from ...graph.factors import indicates
from ...graph.iterations import Iteration
from ...graph.nodes import Apply, Expr, Part
from ...graph.operators import Factorisation, Loop, Op, operations
from ...graph.products import symmetries
from ...ops.affine_entries import held_as_integers
from ...ops.indicator import bound
from ...support.arrays import Sizes
from ...support.excerpts import shortened
from ..builder import Builder
from ..products.axis_order import along, entrywise, sized, spread
from ..products.gathers import written
from ..slot_facts import Inverse
from ..steps import Plan, SlotWord, Word
from .integers import IntegerForm, computed
from .powers import powers
from .sums import Sums, Value

#: The plan of one step of a loop, at extents of its dimensions, with what is the same in all.
Planner = Callable[[Sequence[Expr], Mapping[str, int], Collection[str], int], Plan]


class Operators:
    """How applications become steps.

    Parameters
    ----------
    b : Builder
    values : mapping
        What has been lowered, by the identity of the node; read when a node is.
    nodes : sequence of Expr
        All that is lowered.
    uses : mapping
        How often a node is read, by its identity.
    inner : callable
        The planner of the steps of loops.
    """

    def __init__(
        self,
        b: Builder,
        values: Mapping[int, Value],
        nodes: Sequence[Expr],
        uses: Mapping[int, int],
        inner: Planner,
    ) -> None:
        self.b, self.sizes, self.values, self.inner = b, b.sizes, values, inner
        self.sums = Sums(b)
        self.factored = Counter(
            [
                (id(node.op.kernels.factor), id(node.args[0]))
                for node in nodes
                if isinstance(node, Apply) and node.op.kernels.factor is not None
                for _ in range(uses[id(node)])
            ]
        )
        self.read: dict[int, list[int]] = {}
        self.forms: dict[int, IntegerForm] = {}

    def reads(self, part: Part) -> None:
        """Somebody needs this output of a loop."""
        self.read.setdefault(id(part.args[0]), []).append(part.index)

    def shape(self, e: Expr) -> Sizes:
        return tuple([extent_of(extent, self.sizes) for extent in e.shape])

    def _plain(self, value: Value, shape: Sizes, whole: bool) -> SlotWord:
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
            self._bound(p) if isinstance(p, tuple)
            else extent_of(p, self.sizes) if isinstance(p, str) and extent_names([p]) <= known
            else p
            for p in params
        ])  # fmt: skip

    def apply(self, e: Apply) -> Value:
        params = e.params
        if indicates(e):
            params = bound(e.params, self.sizes)
        elif not e.args or e.op.meaning.regroups or e.op.meaning.dimensions:
            params = self._bound(e.params)
        key = (e.op.name, repr(params))
        whole = not e.op.elementwise
        if isinstance(e.op, Loop):
            return self._loop(e, e.op.iteration(e.params, self.read[id(e)]))
        operands = [self._plain(self.values[id(arg)], self.shape(arg), whole) for arg in e.args]
        if e.op.meaning.regroups and params[0] == 1 and e.args[0].ndim - 1 in operands[0][1][:-1]:
            return self._split(operands[0], e.args[0].ndim - 1, params[1])
        if whole:
            return self._core_apply(e, operands, params, key)
        found = powers(self.b, e, operands)
        if found is not None:
            return Value.of(found, range(e.ndim), 1)
        labels = {label for _, word in operands for label in word}
        target = next((w for _, w in operands if len(w) == len(labels)), tuple(sorted(labels)))
        extents = self.shape(e)
        target = entrywise(self.b, operands, target)
        operands = [along(self.b, operand, target) for operand in operands]
        shape = tuple([extents[label] for label in target])
        args = tuple([self.b.aligned(slot, word, target) for slot, word in operands])
        words = (*[w for _, w in operands], target)
        kind = "ufunc" if e.op.kernels.ufunc else "kernel"
        flops = operations(e.op, shape)
        slot = self.b.emit(kind, args, shape, words, (e.op, *params), key, flops)
        return Value.of((slot, target), range(e.ndim), 1)

    def _core_apply(
        self, e: Apply, operands: list[SlotWord], params: tuple[Any, ...], key: Any
    ) -> Value:
        args = []
        for arg, (slot, word) in zip(e.args, operands, strict=True):
            if e.op.core[0] in (1, -1):
                slot, word = self._turned((slot, word), tuple(range(arg.ndim)))
            known = word in symmetries(arg)  # a symmetric operand is what its transpose is
            whole = tuple(range(arg.ndim)) if known else word
            args.append(self._full((slot, whole), self.shape(arg)))
        axes, shape = tuple(range(e.ndim)), self.shape(e)
        if e.op.meaning.pairs and self._long_last(shape):
            args.reverse()
            axes, shape = ((*x[:-2], x[-1], x[-2]) for x in (axes, shape))
        shapes = [self.b.shapes[a] for a in args]
        flops, factor = operations(e.op, *shapes), e.op.kernels.factor
        words: tuple[Word, ...] = (*[tuple(range(len(self.b.shapes[a]))) for a in args], axes)
        step_params = (e.op, *params)
        kind = "kernel"
        if e.op.outputs > 1 and e.op.meaning.shape is not None:
            made = e.op.meaning.shape(params, *shapes)
            kind, shape = "kernels", (sum([prod(s) for s in made]),)
        elif factor is not None and self._is_shared(e, factor):
            kind, args = "finish", [self._factor(factor, args[0], words[:1])]
        elif factor is not None:
            flops += operations(factor, *shapes)
        if e.op.kernels.into is not None:
            kind = "into"
        if e.op.kernels.over is not None:
            kind = "over"
            args[0] = self.b.floating(args[0])
        slot = self.b.emit(kind, tuple(args), shape, words, step_params, key, flops)
        if e.op.meaning.inverts:
            factored = kind == "finish"
            self.b.inverses[slot] = Inverse(e.op.meaning.inverts, args[0], factored, e.op.name)
        return Value(slot, axes, 1)

    def _split(self, x: SlotWord, axis: int, extents: Sizes) -> Value:
        """An axis as several, with others behind it: the array is read otherwise, not moved."""
        slot, word = x
        at, shape, several = word.index(axis), self.b.shapes[slot], range(axis, axis + len(extents))
        found = (*word[:at], *several, *word[at + 1 :])
        sizes = (*shape[:at], *extents, *shape[at + 1 :])
        apart = {label: prod(extents[k + 1 :]) for k, label in enumerate(several)}
        forms = tuple([
            (0, tuple([apart.get(i, 0) if label == axis else int(i == label) for i in found]))
            for label in word
        ])  # fmt: skip
        own = tuple([-1 - k for k in range(len(word))])
        view = self.b.emit("window", (slot,), sizes, (own, found), forms)
        return Value.of((view, found), range(len(found)), 1)

    def _long_last(self, shape: Sizes) -> bool:
        """Is the last axis the longer one of two, and not the one that loops run over?"""
        *lead, m, n = shape
        turned = (*lead, n, m)
        return not self.b.machine.is_wide(shape) if m < n else self.b.machine.is_wide(turned)

    def _full(self, x: SlotWord, shape: Sizes) -> int:
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
        times = count if step.entries(self.sizes) >= self.b.machine.large else 1
        plan = self.inner(list(step.following.values()), self.sizes, fixed, times)
        shape = (step.entries(self.sizes) + plan.peak_bytes // plan.itemsize,)
        words = (*[tuple(range(len(self.b.shapes[a]))) for a in args], ())
        key = (e.op.name, repr(e.params), read)
        params = (e.op, *e.params, count, read, plan)
        flops = plan.flops_once + count * (plan.flops - plan.flops_once)
        slot = self.b.emit("loop", tuple(args), shape, words, params, key, flops)
        return Value(slot, (), 1)

    def _turned(self, x: SlotWord, axes: Word) -> SlotWord:
        """Many short vectors, which are read along the long axis."""
        b, whole = self.b, len(x[1]) == len(axes)
        return along(b, x, spread(b, axes, sized(b, x), b.machine.across)) if whole else x

    def selection(self, e: Expr) -> Value:
        """A slot that stands for the tensor; only its integers are an array."""
        (arg,) = e.args
        slot, word = self._integers(arg)
        shape, extent = self.b.shapes[slot], self.shape(e)[-1]
        params = (extent, shortened(str(arg)))
        index = self.b.emit("index", (slot,), shape, (word, word), params)
        whole = ((index, tuple(range(len(word)))),)
        axes = (*[word.index(k) for k in range(arg.ndim)], arg.ndim)
        return Value(self.b.selection(whole, (*shape, extent)), axes, 1)

    def read_by(self, integers: Expr) -> Sequence[Expr]:
        """What integers that index are computed from, themselves where they are not computed."""
        if not computed(integers):
            return (integers,)
        form = self.forms.setdefault(id(integers), IntegerForm(integers, self.sizes))
        return form.leaves

    def _integers(self, e: Expr) -> SlotWord:
        """An array of integers; what is computed of others is so in integers."""
        axes = tuple(range(e.ndim))
        if not computed(e) and held_as_integers(e):
            return self._plain(self.values[id(e)], self.shape(e), True)
        form = self.forms.setdefault(id(e), IntegerForm(e, self.sizes))
        args, words = [], []
        for leaf in form.leaves:
            x = self._plain(self.values[id(leaf)], self.shape(leaf), True)
            args.append(self._full(x, self.shape(leaf)))
            words.append(tuple([-1 - k for k in range(leaf.ndim)]))
        shape = self.shape(e)
        key = (str(id(e)),)
        return self.b.emit("integers", tuple(args), shape, (*words, axes), (form,), key), axes

    def _is_shared(self, e: Apply, factor: Op | Factorisation) -> bool:
        """Is the factorisation a row's own, or of a large matrix and wanted by several steps?"""
        if isinstance(factor, Op):
            return True
        (matrix,) = e.args
        large = matrix.ndim == 2 and self.shape(matrix)[0] > self.b.machine.factored
        return large and self.factored[id(factor), id(matrix)] > 1

    def _factor(self, factor: Op | Factorisation, matrix: int, words: tuple[Word, ...]) -> int:
        """The slot with a factorisation of a matrix: a row's own step, or one of plans only."""
        shape = self.b.shapes[matrix]
        flops = operations(factor, shape)
        words = (*words, words[0])
        if isinstance(factor, Factorisation):
            return self.b.emit("factor", (matrix,), shape, words, (factor,), flops=flops)
        key = (factor.name, "()")
        matrix = self.b.floating(matrix)
        return self.b.emit("over", (matrix,), shape, words, (factor,), key, flops)

    def part(self, e: Part) -> Value:
        """One output of a step that has several."""
        whole = self.values[id(e.args[0])].slot
        axes = tuple(range(e.ndim))
        slot = self.b.emit("part", (whole,), self.shape(e), ((), axes), (e.index,))
        return Value(slot, axes, 1)
