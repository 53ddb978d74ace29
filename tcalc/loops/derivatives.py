"""Derivatives and batches of loops, as loops of the same row.

A tangent is a loop over tangents, which scans the states of the loop that it is of; a cotangent is
a loop over cotangents in the other direction. What scanned and captured operands get is computed
for all steps at once, behind that loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..accumulation.orders import pullbacks, pushforwards
from ..calculus.batching import batched
from ..graph.applications import parts, rewritten
from ..graph.extents import Extent, Shape
from ..graph.nodes import Apply, Expr, Var, postorder
from ..graph.normal import add, einsum, terms_of, view
from ..graph.products import zeros_node
from ..graph.row import Given
from .body import Body, formal, like, replaced
from .normal import AFTER, BEFORE, LAST, Feed, Steps, loop

__all__: list[str] = []


class Primal(NamedTuple):
    """A loop with names for what its derivatives read of it."""

    node: Apply
    body: Body
    steps: Steps
    operands: tuple[list[Expr], dict[Var, Expr], dict[Var, Expr]]

    @staticmethod
    def of(node: Apply) -> Primal:
        body, length, backward = node.params
        n, m = len(body.states), len(body.steps)
        fed = dict(zip(body.steps, node.args[n : n + m], strict=True))
        captured = dict(zip(body.captured, node.args[n + m :], strict=True))
        return Primal(node, body, Steps(length, backward), (list(node.args[:n]), fed, captured))

    def scanned(self) -> dict[Var, Expr]:
        """What a further loop may scan: the states before each step and after it, the slices."""
        outputs, n = parts(self.node), len(self.body.states)
        found: dict[Var, Expr] = {}
        for k, v in enumerate(self.body.states):
            found[v] = outputs[BEFORE * n + k]
            found[like("a", v)] = outputs[AFTER * n + k]
        return found | self.operands[1]

    def shortened(self, found: Sequence[Expr]) -> list[Expr]:
        """Expressions in the body's variables, the next states not computed again."""
        known: dict[int, Expr] = {
            id(e): like("a", v)
            for e, v in zip(self.body.outputs, self.body.states, strict=True)
            if e.args
        }
        return rewritten(found, lambda new, old: known.get(id(old), new))


def tangents(node: Apply, given: Given) -> Given:
    """Tangents of all outputs: a loop over tangents of the states."""
    primal = Primal.of(node)
    body, n = primal.body, len(primal.body.states)
    moving = {v: t for v, t in zip(body.formals, given, strict=True) if t is not None}
    sliced = set(body.steps)
    directions = next(t.shape[v.ndim + (v in sliced) :] for v, t in moving.items())
    active = sorted(body.varying([v.name for v in moving]))
    states = {v: like("d", v, (), directions) for v in [body.states[k] for k in active]}
    seeds = states | {
        v: like("d", v, (), directions) for v in (*body.steps, *body.captured) if v in moving
    }
    found = pushforwards([body.outputs[k] for k in active], seeds)
    outputs = [
        zeros_node(s.shape) if e is None else e for e, s in zip(found, states.values(), strict=True)
    ]
    inits = [moving.get(v, zeros_node(d.shape)) for v, d in states.items()]
    scanned = primal.scanned() | {seeds[v]: t for v, t in moving.items() if v in sliced}
    captured = primal.operands[2] | {
        seeds[v]: t for v, t in moving.items() if v in set(body.captured)
    }
    feed = Feed(scanned, captured)
    made = loop(
        node.op, list(states.values()), primal.shortened(outputs), inits, feed, primal.steps
    )
    results: list[Expr | None] = [None] * (3 * n)
    for kind in (LAST, AFTER, BEFORE):
        for place, k in enumerate(active):
            results[kind * n + k] = made[kind * len(active) + place]
    return results


class _Cotangents(NamedTuple):
    """Variables for the cotangents of some states, and what they are fed with.

    `carried` are those after a step, from the later steps; `direct` and `early` what the histories
    after and before the steps get, by number of the state.
    """

    carried: dict[int, Var]
    direct: dict[int, Var]
    early: dict[int, Var]
    scanned: dict[Var, Expr]

    @staticmethod
    def of(body: Body, needed: Sequence[int], given: Given, outer: Shape) -> _Cotangents:
        n = len(body.states)
        found = _Cotangents({}, {}, {}, {})
        for k in needed:
            v = body.states[k]
            found.carried[k] = like("l", v, outer)
            for kind, letter, into in ((AFTER, "p", found.direct), (BEFORE, "q", found.early)):
                bar = given[kind * n + k]
                if bar is not None:
                    into[k] = like(letter, v, outer)
                    found.scanned[into[k]] = _moved(bar, len(outer), 0)
        return found

    def seed(self, k: int) -> Expr:
        """The whole cotangent of state k after a step."""
        return add([self.carried[k], self.direct[k]]) if k in self.direct else self.carried[k]


def _moved(e: Expr, axis: int, to: int) -> Expr:
    """The expression with one axis at another place."""
    order = [k for k in range(e.ndim) if k != axis]
    order.insert(to, axis)
    return view(e, order)


def cotangents(node: Apply, given: Given, wanted: Sequence[bool]) -> Given:
    """Cotangents of operands: a loop the other way over those of the states, then one batch."""
    primal = Primal.of(node)
    body, n = primal.body, len(primal.body.states)
    bar, part = next((b, p) for b, p in zip(given, parts(node), strict=True) if b is not None)
    outer = bar.shape[: bar.ndim - part.ndim]
    names = [v.name for v, want in zip(body.formals, wanted, strict=True) if want]
    reached = body.reaching({k % n for k, bar in enumerate(given) if bar is not None})
    needed = sorted(body.varying(names) & reached)
    bars = _Cotangents.of(body, needed, given, outer)
    rest = [k for k in range(n, len(node.args)) if wanted[k]]
    roots, seeds = [body.outputs[k] for k in needed], [bars.seed(k) for k in needed]
    found = pullbacks(roots, seeds, [body.formals[k] for k in [*needed, *rest]])
    made = _back(primal, bars, given, found[: len(needed)]) if needed else ()
    results: list[Expr | None] = [None] * len(node.args)
    for k, e in zip(needed, made, strict=False):
        results[k] = e if wanted[k] else None
    behind = dict(zip(bars.carried.values(), made[BEFORE * len(needed) :], strict=True))
    items = primal.scanned() | bars.scanned | behind
    direct = {k: e for k, e in zip(rest, found[len(needed) :], strict=True) if e is not None}
    short = primal.shortened(list(direct.values()))
    for k, e in zip(direct, every(primal, short, items), strict=True):
        results[k] = _moved(e, 0, len(outer)) if k < n + len(body.steps) else _total(e)
    return results


def _back(
    primal: Primal, bars: _Cotangents, given: Given, found: Sequence[Expr | None]
) -> tuple[Expr, ...]:
    """The loop over cotangents of states, from those that a step gives to the states before it."""
    outputs, inits = [], []
    for (k, v), e in zip(bars.carried.items(), found, strict=True):
        terms = [term for term in (e, bars.early.get(k)) if term is not None]
        outputs.append(add(terms) if terms else zeros_node(v.shape))
        last = given[k]
        inits.append(zeros_node(v.shape) if last is None else last)
    feed = Feed(primal.scanned() | bars.scanned, primal.operands[2])
    steps = Steps(primal.steps.length, not primal.steps.backward)
    carried = list(bars.carried.values())
    return loop(primal.node.op, carried, primal.shortened(outputs), inits, feed, steps)


def _total(e: Expr) -> Expr:
    """The sum over the leading axis, term by term."""
    axis = tuple(range(e.ndim))
    return add([einsum([term], [axis], axis[1:]) for term in terms_of(e)])


def every(primal: Primal, found: Sequence[Expr], items: Mapping[Var, Expr]) -> list[Expr]:
    """Expressions in the body's variables for all steps, with an axis of steps in front."""
    inside = {id(node) for node in postorder(found)}
    axes = {v: item for v, item in items.items() if id(v) in inside}
    return replaced(batched(found, axes, primal.steps.length), primal.operands[2])


# --- batches --------------------------------------------------------------------------------------


def for_batch(node: Apply, args: Given, extent: Extent) -> tuple[Expr, ...]:
    """One loop over the states of all items; a state that is the same for all stays one."""
    primal = Primal.of(node)
    body, n = primal.body, len(primal.body.states)
    given = {v: a for v, a in zip(body.formals, args, strict=True) if a is not None}
    several = body.varying([v.name for v in given])
    wide = {v: like("b", v, (extent,)) for k, v in enumerate(body.states) if k in several}
    pairs = zip(body.states, primal.operands[0], strict=True)
    inits = [_item(given.get(v), e, v in wide, extent) for v, e in pairs]
    scanned, captured = dict(primal.operands[1]), dict(primal.operands[2])
    for v, a in given.items():
        if v in scanned or v in captured:
            integer = v.integral
            wide[v] = formal("b" + v.name, (extent, *v.shape), integer)
            fed = scanned if v in scanned else captured
            fed[wide[v]] = _moved(a, 1, 0) if v in scanned else a
    changed = batched([body.outputs[k] for k in sorted(several)], dict(wide), extent)
    outputs = list(body.outputs)
    for k, e in zip(sorted(several), changed, strict=True):
        outputs[k] = e
    states = [wide.get(v, v) for v in body.states]
    made = loop(node.op, states, outputs, inits, Feed(scanned, captured), primal.steps)
    found = []
    for k, e in enumerate(made):
        if k % n not in several:
            found.append(_item(None, e, True, extent))
        else:
            found.append(e if k < n else _moved(e, 1, 0))
    return tuple(found)


def _item(a: Expr | None, e: Expr, wide: bool, extent: Extent) -> Expr:
    """The operand for all items, repeated where it has no axis for them."""
    if a is not None or not wide:
        return e if a is None else a
    (found,) = batched([e], {}, extent)
    return found
