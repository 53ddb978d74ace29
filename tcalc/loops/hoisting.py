"""Hoisting: what does not depend on states is computed for all steps at once, if memory allows.

A step on small arrays costs its calls, not its operations; what depends on slices alone takes one
call for all steps. Its values are held for all steps, so they must not be larger than the slices.
Where a call costs less than to hold them, products are hoisted that are quicker for all steps:
those of small rows with what is the same in all steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

from ..graph.applications import rewritten
from ..graph.extents import Coef, Extent, extent_of
from ..graph.factors import indicates
from ..graph.nodes import Add, Apply, Einsum, Expr, Var, postorder
from ..graph.normal import add, scale
from ..support.machine import Machine
from .body import body_variable, loop_invariants
from .derivatives import Primal, at_all_steps
from .normal_form import LoopOperands, normal_form_loop

__all__: list[str] = []

#: Limits of the entries that are hoisted: in all, and per entry of the scanned slices.
MOST, TIMES = 1 << 24, 4


def hoisted(node: Apply, sizes: Mapping[str, int], machine: Machine) -> tuple[Expr, ...] | None:
    """All outputs of the loop with a smaller step; None where nothing is hoisted.

    Entrywise computations of up to `machine.call` entries are worth it.
    """
    if node.params[0].frugal:
        return None
    found = _Hoisting(node, sizes, machine)
    body, primal = found.primal.body, found.primal
    outputs = found.singles(found.sums(list(body.outputs)))
    if not found.made:
        return None
    values = at_all_steps(primal, list(found.made.values()), primal.operands[1])
    scanned = primal.operands[1] | dict(zip(found.made, values, strict=True))
    feed = LoopOperands(scanned, primal.operands[2])
    return normal_form_loop(node.op, body.states, outputs, primal.operands[0], feed, primal.steps)


class _Hoisting:
    """Variables for what is hoisted, as long as there is room for its values."""

    def __init__(self, node: Apply, sizes: Mapping[str, int], machine: Machine) -> None:
        self.primal = Primal.of(node)
        self.sizes, self.machine = sizes, machine
        self.made: dict[Var, Expr] = {}
        self.known: dict[int, Var] = {}
        steps = self.primal.body.steps
        self.count = max(1, extent_of(self.primal.steps.length, sizes))
        self.width = {v: self.entries(v) for v in steps}
        self.room = min(TIMES * sum(self.width.values()), MOST // self.count)

    def entries(self, e: Expr) -> int:
        return self._size(e.shape)

    def variable(self, e: Expr) -> Var | None:
        """The variable for an expression that is hoisted; None where it is too large."""
        if id(e) not in self.known:
            slices = [v for v in postorder([e]) if isinstance(v, Var) and v in self.width]
            size = self.entries(e)
            if not slices or size > min(self.room, sum([self.width[v] for v in slices])):
                return None
            if size > self.machine.call and not self._quicker(e):
                return None
            self.room -= size
            self.known[id(e)] = v = body_variable(f"h{len(self.made)}", e.shape)
            self.made[v] = e
        return self.known[id(e)]

    def sums(self, outputs: list[Expr]) -> list[Expr]:
        """Hoist the terms of a sum that depend on no state, as one expression."""
        inside, free, _ = loop_invariants(outputs, self.primal.body.states)
        ids = set(map(id, free))
        parts: dict[int, list[Expr]] = {}
        for node in inside:
            terms = [t for t in node.args if id(t) in ids] if isinstance(node, Add) else []
            if len(terms) > 1 and (v := self.variable(add(terms))) is not None:
                parts[id(node)] = [v, *[scale(t, Coef(-1)) for t in terms]]
        return rewritten(
            outputs, lambda new, old: add([new, *parts[id(old)]]) if id(old) in parts else new
        )

    def singles(self, outputs: list[Expr]) -> list[Expr]:
        """Hoist the largest invariants that there is room for, or else their operands."""
        _, free, integers = loop_invariants(outputs, self.primal.body.states)
        waiting = sorted([e for e in free if id(e) not in integers], key=lambda e: e.order)[::-1]
        change: dict[int, Expr] = {}
        seen: set[int] = set()  # what there was no room for has none later
        while waiting:
            e = waiting.pop()
            several = isinstance(e, Apply) and e.op.outputs > 1
            if not e.args or id(e) in seen:
                continue
            seen.add(id(e))
            v = None if several else self.variable(e)
            if v is None:
                waiting.extend(e.args[::-1])
            else:
                change[id(e)] = v
        return rewritten(outputs, lambda new, old: change.get(id(old), new))

    def _quicker(self, e: Expr) -> bool:
        """Are there products, or operators on matrices, in it that are quicker for all steps?

        A large array of products that read nothing again is better made row by row in the steps.
        """
        large = self.count * self.entries(e) >= self.machine.large
        moving, found = set(map(id, self.width)), False
        for node in postorder([e]):
            moves = [id(arg) in moving for arg in node.args]
            if any(moves):
                moving.add(id(node))
            if isinstance(node, Apply):
                found = found or (not node.op.elementwise and bool(node.args))
            elif isinstance(node, Einsum) and node.summed:
                several = sum([not indicates(arg) for arg in node.args]) > 1
                if several and any(moves) and large and not self._rereads(node, moves):
                    return False
                found = found or several
        return found

    def _rereads(self, e: Einsum, moves: Sequence[bool]) -> bool:
        return rereads(e, moves, lambda word: self._size([e.extents[i] for i in word]))

    def _size(self, extents: Sequence[Extent]) -> int:
        return prod([extent_of(x, self.sizes) for x in extents])


def rereads(e: Einsum, moves: Sequence[bool], size: Callable[[Sequence[int]], int]) -> bool:
    """Do steps read more of what is the same in all of them than of their own?

    Of the operands those that `moves` has are a step's own; `size` is of labels. Then one product
    for all steps is quicker, which reads the others once.
    """
    read = [0, size(e.out)]
    for own, word in zip(moves, e.labels, strict=True):
        read[own] += size(word)
    return read[0] > read[1]
