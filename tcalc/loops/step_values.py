"""One step of a loop, and what expressions before and behind the loop are at that step.

An array that has a row for each step, and is made entry by entry of others of that kind, has its
row made in the step: of the loop's states, and of the slices that it scans.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod

from ..graph.applications import parts, with_args
from ..graph.extents import Extent, extent_of
from ..graph.factors import indicates, selects
from ..graph.nodes import Add, Apply, Einsum, Expr, Part, Var
from ..graph.normal import add, einsum
from ..graph.products import zeros_node
from ..support.records import NamedTuple
from .body import body_variable, replaced
from .derivatives import Primal, move_axis
from .normal_form import AFTER, LoopOperands, normal_form_loop

__all__: list[str] = []

#: An operand and the axis of its that the steps are along; None: it is the same in all.
Sliced = tuple[Expr, int | None]


class StepValue(NamedTuple):
    """What is made in each step for an expression behind the loop, `whole`.

    Attributes
    ----------
    item : Expr
        What one step makes: it is added up, or `held` for all steps, along a leading axis.
    word, rest : tuple of int, or None, and dict
        The expression is the product of this, which has the labels `word`, with its own operands at
        the places in `rest`. None: it is this itself.
    """

    whole: Expr
    item: Expr
    word: tuple[int, ...] | None = None
    rest: Mapping[int, tuple[int, ...]] = {}
    held: bool = False


class StepValues:
    """One step of a loop.

    Attributes
    ----------
    above : dict
        By id: the expressions that depend on the loop.
    """

    def __init__(self, node: Apply, nodes: Sequence[Expr], sizes: Mapping[str, int]) -> None:
        self.node, self.sizes = node, sizes
        self.primal = Primal.of(node)
        self.n = self.primal.body.results
        self.order = {id(e): k for k, e in enumerate(nodes)}
        self.above: dict[int, Expr] = {id(node): node}
        for e in nodes:
            if any(id(arg) in self.above for arg in e.args):
                self.above[id(e)] = e
        self._fed: dict[tuple[int, int], tuple[Var, Expr]] = {}
        self._known: dict[tuple[int, int], Expr | None] = {}

    def is_history(self, e: Expr) -> bool:
        """Are these the loop's states after each step, or before it?"""
        return isinstance(e, Part) and e.args[0] is self.node and e.index >= AFTER * self.n

    def entries(self, shape: Sequence[Extent]) -> int:
        return prod([extent_of(x, self.sizes) for x in shape])

    def entrywise(self, e: Einsum, words: Sequence[Sequence[int]], labels: Collection[int]) -> bool:
        """Are a step's products, with these labels, no more than one operand has entries?"""
        held = [self.entries([e.extents[i] for i in {*w} & {*labels}]) for w in words]
        return self.entries([e.extents[i] for i in labels]) <= max(held, default=1)

    def stays(self, e: Expr) -> bool:
        """Is an expression before the loop scanned as it is, whatever it is made of?"""
        return False

    def joins(self, e: Einsum, label: int) -> bool:
        """May a step make the product whose rows are along this label?"""
        words = [word for arg, word in zip(e.args, e.labels, strict=True) if not chooses(arg)]
        moving = [word for word in words if label in word]
        return len(words) < 2 or self.entrywise(e, moving, set().union(*words) - {label})

    def row(self, e: Expr, axis: int) -> Expr | None:
        """The row of an expression along this axis that belongs to a step.

        None where it is not the loop's to know: where a step would need another step's states.
        """
        waiting, found = [(e, axis)], {}
        while waiting:
            one, at = waiting.pop()
            key = id(one), at
            if key in self._known or key in found:
                continue
            operands = None if self.is_history(one) or self.stays(one) else self.operands(one, at)
            found[key] = one, at, operands
            waiting += [(a, k) for a, k in operands or () if k is not None]
        for key, (one, at, operands) in sorted(found.items(), key=lambda x: self.order[x[0][0]]):
            self._known[key] = self._made(one, at, operands)
        return self._known[id(e), axis]

    def operands(self, e: Expr, axis: int) -> list[Sliced] | None:
        """The operands whose rows make the row of an expression; None where others are needed."""
        if isinstance(e, Add) or (isinstance(e, Apply) and e.op.elementwise):
            return [(arg, axis) for arg in e.args]
        if not isinstance(e, Einsum) or e.out.count(e.out[axis]) > 1:
            return None
        label = e.out[axis]
        if not self.joins(e, label):
            return None
        found: list[Sliced] = []
        for arg, word in zip(e.args, e.labels, strict=True):
            here = [k for k, i in enumerate(word) if i == label]
            if len(here) > 1 or (here and chooses(arg)):
                return None
            found.append((arg, here[0] if here else None))
        return found

    def _made(self, e: Expr, axis: int, operands: Sequence[Sliced] | None) -> Expr | None:
        if self.is_history(e) and axis == 0 and isinstance(e, Part):
            kind, k = divmod(e.index, self.n)
            return self.primal.body.outputs[k] if kind == AFTER else self.primal.body.states[k]
        rows: list[Expr] = []
        for arg, at in operands or ():
            row = self._known[id(arg), at] if at is not None else arg
            if row is None or (at is None and id(arg) in self.above):
                operands = None
                break
            rows.append(row)
        if operands is None or not operands:
            return None if id(e) in self.above else self._slice(e, axis)
        if not isinstance(e, Einsum):
            return with_args(e, rows)
        label = e.out[axis]
        words = [[i for i in word if i != label] for word in e.labels]
        extents = {i: x for i, x in enumerate(e.extents) if i != label}
        return einsum(rows, words, [i for i in e.out if i != label], e.coef, extents)

    def _slice(self, e: Expr, axis: int) -> Expr:
        """A variable for what the loop scans."""
        key = id(e), axis
        if key not in self._fed:
            shape = (*e.shape[:axis], *e.shape[axis + 1 :])
            v = body_variable(f"r{len(self._fed)}@", shape)
            self._fed[key] = v, move_axis(e, axis, 0)
        return self._fed[key][0]

    def loop(
        self, values: Sequence[StepValue], change: Mapping[Var, Expr] | None = None
    ) -> dict[int, Expr]:
        """What takes the place of the loop's outputs, and of what its steps make, by id.

        `change` are rows that steps make of variables for slices.
        """
        body, n = self.primal.body, self.n
        first, scanned, captured = self.primal.operands
        items = {(id(value.item), value.held): value for value in values}
        added = [body_variable(f"g{k}@", v.item.shape) for k, v in enumerate(items.values())]
        outputs = list(body.outputs)
        for v, (_, item, _, _, held) in zip(added, items.values(), strict=True):
            outputs.append(item if held else add([v, item]))
        inits = [*first, *[zeros_node(v.shape) for v in added]]
        feed = LoopOperands(scanned | dict(self._fed.values()), captured)
        states, outputs = [*body.states, *added], replaced(outputs, change or {})
        made = normal_form_loop(self.node.op, states, outputs, inits, feed, self.primal.steps)
        found = {}
        for k, part in enumerate(parts(self.node)):
            kind, state = divmod(k, n)
            found[id(part)] = made[kind * len(states) + state]
        place = {key: n + k for k, key in enumerate(items)}
        for value in values:
            at = place[id(value.item), value.held] + AFTER * len(states) * value.held
            found[id(value.whole)] = made[at]
        return found


def chooses(e: Expr) -> bool:
    """Does it say which entries of other operands are read?"""
    return indicates(e) or selects(e)


def rewritten_with(
    nodes: Sequence[Expr], known: Mapping[int, Expr], values: Mapping[int, StepValue]
) -> dict[int, Expr]:
    """All nodes, by id, with what is `known` of a value as one operand of its product."""
    done: dict[int, Expr] = {}
    for e in nodes:
        found = values.get(id(e))
        if found is not None and found.word is not None and isinstance(e, Einsum):
            ops = [known[id(e)], *[done[id(e.args[k])] for k in found.rest]]
            words = [found.word, *found.rest.values()]
            done[id(e)] = einsum(ops, words, e.out, e.coef, dict(enumerate(e.extents)))
        elif id(e) in known:
            done[id(e)] = known[id(e)]
        else:
            done[id(e)] = with_args(e, [done[id(a)] for a in e.args]) if e.args else e
    return done
