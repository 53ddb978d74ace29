"""What of a loop needs no loop: computed for all steps at once, where memory allows.

A step on small arrays costs its calls, not its operations; what depends on slices alone is one call
for all steps. It is held for all steps, so it must not be larger than the slices it is made of.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from ..graph.applications import rewritten
from ..graph.extents import Coef, extent_of
from ..graph.nodes import Add, Apply, Expr, Var, postorder
from ..graph.normal import add, scale
from .body import cut, formal
from .derivatives import Primal, every
from .normal import Feed, loop

__all__: list[str] = []

#: Entries of what is computed for all steps at once, in all, and for each entry that is scanned.
MOST, TIMES = 1 << 24, 4


def ahead(node: Apply, sizes: Mapping[str, int]) -> tuple[Expr, ...] | None:
    """All outputs of the loop with less in its steps; None where that is nothing."""
    found = _Ahead(node, sizes)
    body, primal = found.primal.body, found.primal
    outputs = found.singles(found.sums(list(body.outputs)))
    if not found.made:
        return None
    values = every(primal, list(found.made.values()), primal.operands[1])
    scanned = primal.operands[1] | dict(zip(found.made, values, strict=True))
    feed = Feed(scanned, primal.operands[2])
    return loop(node.op, body.states, outputs, primal.operands[0], feed, primal.steps)


class _Ahead:
    """Variables for what is computed ahead, as long as there is room for it."""

    def __init__(self, node: Apply, sizes: Mapping[str, int]) -> None:
        self.primal = Primal.of(node)
        self.sizes = sizes
        self.made: dict[Var, Expr] = {}
        self.known: dict[int, Var] = {}
        steps = self.primal.body.steps
        count = max(1, extent_of(self.primal.steps.length, sizes))
        self.width = {v: self.entries(v) for v in steps}
        self.room = min(TIMES * sum(self.width.values()), MOST // count)

    def entries(self, e: Expr) -> int:
        return prod([extent_of(x, self.sizes) for x in e.shape])

    def variable(self, e: Expr) -> Var | None:
        """The slice of what is computed ahead for an expression; None where it is too large."""
        if id(e) not in self.known:
            slices = [v for v in postorder([e]) if isinstance(v, Var) and v in self.width]
            size = self.entries(e)
            if not slices or size > min(self.room, sum([self.width[v] for v in slices])):
                return None
            self.room -= size
            self.known[id(e)] = v = formal(f"h{len(self.made)}", e.shape)
            self.made[v] = e
        return self.known[id(e)]

    def sums(self, outputs: list[Expr]) -> list[Expr]:
        """The terms of a sum that need no loop are one."""
        inside, free, _ = cut(outputs, self.primal.body.states)
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
        """The largest parts that need no loop; of those that are too large, parts of them."""
        _, free, whole = cut(outputs, self.primal.body.states)
        waiting = sorted([e for e in free if id(e) not in whole], key=lambda e: e.order)[::-1]
        change: dict[int, Expr] = {}
        while waiting:
            e = waiting.pop()
            several = isinstance(e, Apply) and e.op.outputs > 1
            if not e.args or id(e) in change:
                continue
            v = None if several else self.variable(e)
            if v is None:
                waiting.extend(e.args[::-1])
            else:
                change[id(e)] = v
        return rewritten(outputs, lambda new, old: change.get(id(old), new))
