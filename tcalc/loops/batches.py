"""The batch (`vmap`) of a loop: one loop over the states of all items.

Where items make different numbers of steps, the loop goes on until the last one has ended. An item
that has keeps its states, and its histories have zeros there, as those of a single loop have.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..calculus.batching import with_batch_axis
from ..graph.extents import ONE, Extent, Shape
from ..graph.nodes import Apply, Expr, Var
from ..graph.normal import add, einsum
from ..graph.operators import Differentials
from ..graph.products import zeros_node
from ..ops.elementwise import greater_equal, less, less_equal, logical_not, where
from ..ops.elementwise_row import Function
from ..ops.reductions import arange
from ..ops.reductions import max as max_of
from ..ops.statistics import all as all_of
from .accumulations import with_first
from .body import alike, body_variable
from .derivatives import Primal, move_axis
from .normal_form import AFTER, BEFORE, LAST, LoopOperands, normal_form_loop

#: Outputs by kind, and of each kind by state.
Kinds = list[Sequence[Expr]]
#: The index of a loop whose items make different numbers of steps.
_INDEX = body_variable("index", ())


def batched_loop(node: Apply, args: Differentials, extent: Extent) -> tuple[Expr, ...]:
    """One loop over the states of all items of a batch; states equal for all are not batched."""
    batch = _Batch(node, args, extent)
    kinds, made = batch.apart() if batch.ends_vary else batch.together()
    found = []
    for kind, outputs in enumerate(kinds):
        for k, e in enumerate(outputs):
            if k in batch.several:
                found.append(e if kind == LAST else move_axis(e, 1, 0))
            else:
                found.append(batch.for_all(e))
    return (*found, *made)


class _Batch:
    """The loop of all items; `items` has variables for what varies from item to item.

    Attributes
    ----------
    several : set of int
        The states that vary.
    ends_vary : bool
        Do items make different numbers of steps?
    """

    def __init__(self, node: Apply, args: Differentials, extent: Extent) -> None:
        self.row, self.extent, self.primal = node.op, extent, Primal.of(node)
        self.body = body = self.primal.body
        given = {v: a for v, a in zip(body.formals, args, strict=True) if a is not None}
        varying = body.varying([v.name for v in given])
        self.ends_vary = body.bound in given or any(body.states[k] is body.bound for k in varying)
        n = body.results
        self.several = set(range(n)) if self.ends_vary else varying
        self.items: dict[Var, Var] = {
            body.states[k]: alike("b", body.states[k], (extent,)) for k in self.several
        }
        scanned, captured = dict(self.primal.operands[1]), dict(self.primal.operands[2])
        for v, a in given.items():
            if v in scanned or v in captured:
                self.items[v] = item = alike("b", v, (extent,))
                fed = scanned if v in scanned else captured
                fed[item] = move_axis(a, 1, 0) if v in scanned else a
        self.feed = LoopOperands(scanned, captured)
        self.states = [self.items.get(v, v) for v in body.states[:n]]
        self.inits = [
            given[v] if v in given else self.for_all(e) if k in self.several else e
            for k, (v, e) in enumerate(zip(body.states[:n], self.primal.operands[0], strict=False))
        ]
        after = [body.outputs[k] for k in sorted(self.several)]
        changed = dict(zip(sorted(self.several), self.of_items(*after), strict=True))
        self.outputs = [changed.get(k, e) for k, e in enumerate(body.outputs[:n])]

    def of_items(self, *exprs: Expr) -> list[Expr]:
        """Expressions in variables of the body for all items."""
        return with_batch_axis(exprs, dict(self.items), self.extent)

    def for_all(self, e: Expr) -> Expr:
        """What is the same for all items, once for each."""
        (found,) = with_batch_axis([e], {}, self.extent)
        return found

    def together(self) -> tuple[Kinds, list[Expr]]:
        """All items make the same steps: the outputs by kind and state, and the number of steps."""
        steps = self.primal.steps
        if self.body.until is not None:
            steps = steps._replace(until=self.body.until, made=None)
        made = normal_form_loop(self.row, self.states, self.outputs, self.inits, self.feed, steps)
        n = len(self.states)
        kinds: Kinds = [made[kind * n : (kind + 1) * n] for kind in (LAST, AFTER, BEFORE)]
        return kinds, [self.for_all(e) for e in made[3 * n :]]

    def apart(self) -> tuple[Kinds, list[Expr]]:
        """As `together`, where each item makes steps of its own."""
        steps, body, n = self.primal.steps, self.body, len(self.states)
        states, inits, counted = list(self.states), list(self.inits), []
        if body.until is None:
            assert body.bound is not None
            counter = self.items[body.bound]
            counts = self.feed.captured[counter]
            self.feed.scanned[_INDEX] = arange(steps.length)
            ended = greater_equal(_INDEX, counter)
            some = isinstance(self.extent, int) and self.extent > 0
            most = counts if some else with_first(zeros_node(()), counts)
            steps = steps._replace(made=max_of(most))
        else:
            (ended,) = self.of_items(body.until)
            steps = steps._replace(until=all_of(ended), made=None)
            counter = body_variable("count", (self.extent,))
            counted = [add([counter, logical_not(ended)])]
            states, inits = [*states, counter], [*inits, zeros_node(counter.shape)]
        kept = [
            where(_spread(ended, (0,), e.shape), s, e)
            for s, e in zip(self.states, self.outputs, strict=True)
        ]
        made = normal_form_loop(self.row, states, [*kept, *counted], inits, self.feed, steps)
        if counted:
            counts = made[n]
        kinds: Kinds = [made[kind * len(states) :][:n] for kind in (LAST, AFTER, BEFORE)]
        for kind in (AFTER, BEFORE):
            ahead = less if (kind == AFTER) != steps.backward else less_equal
            kinds[kind] = [_of_steps(e, counts, ahead) for e in kinds[kind]]
        return kinds, [counts] if counted else []


def _of_steps(e: Expr, counts: Expr, ahead: Function) -> Expr:
    """A history of items, with zeros for steps that an item has not made."""
    rows = _spread(arange(e.shape[0]), (0,), e.shape)
    return where(ahead(rows, _spread(counts, (1,), e.shape)), e, zeros_node(e.shape))


def _spread(e: Expr, axes: Sequence[int], shape: Shape) -> Expr:
    """An array repeated along the other axes of a shape."""
    return einsum([e], [axes], range(len(shape)), ONE, dict(enumerate(shape)))
