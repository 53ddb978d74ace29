"""Pushforward and pullback of loops, which are loops themselves.

The pushforward is a loop over tangents of the states that scans the states of the primal loop. The
pullback is a loop over cotangents in the opposite direction; cotangents of scanned and captured
operands are then computed for all steps at once. Of a loop with a bound both make the steps that it
made, whose number is an operand of theirs; the condition itself has no derivative.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ..accumulation.orders import pullbacks, pushforwards
from ..calculus.batching import with_batch_axis
from ..graph.applications import parts, rewritten
from ..graph.extents import Shape
from ..graph.nodes import Apply, Expr, Var
from ..graph.normal import add, einsum, terms_of, view
from ..graph.operators import Differentials
from ..graph.products import zeros_node
from ..graph.properties import subspace
from ..ops.elementwise import equal
from ..ops.matrix_cores import symmetric_part
from ..ops.reductions import arange
from ..support.records import NamedTuple
from .body import Body, alike, derived_variable
from .normal_form import AFTER, BEFORE, LAST, LoopOperands, LoopRange, normal_form_loop

__all__: list[str] = []


class Primal(NamedTuple):
    """The loop that is differentiated.

    `operands` are the first states, the scanned and the captured operands by variable.
    """

    node: Apply
    body: Body
    steps: LoopRange
    operands: tuple[list[Expr], dict[Var, Expr], dict[Var, Expr]]

    @staticmethod
    def of(node: Apply) -> Primal:
        body, length, backward = node.params
        n, m = len(body.states), len(body.steps)
        fed = dict(zip(body.steps, node.args[n : n + m], strict=True))
        captured = dict(zip(body.captured, node.args[n + m :], strict=True))
        made = parts(node)[-1] if body.until is not None else captured.get(body.bound)
        steps = LoopRange(length, backward, body.frugal, made=made)
        return Primal(node, body, steps, (list(node.args[:n]), fed, captured))

    def first_unmade(self, given: Differentials, k: int, outer: Shape) -> Expr | None:
        """The cotangent of state k in the first row that no step has made, if a bound leaves any.

        There the states after the last step of a loop forward are those before the next one, and
        the states before the first step of a loop backward are those after the one that precedes.
        """
        bar = given[(AFTER if self.steps.backward else BEFORE) * self.body.results + k]
        if self.steps.made is None or bar is None:
            return None
        axes, place = range(bar.ndim), equal(arange(self.steps.length), self.steps.made)
        kept = [axis for axis in axes if axis != len(outer)]
        return einsum([bar, place], [axes, (len(outer),)], kept)

    def scanned(self) -> dict[Var, Expr]:
        """What derivatives may scan: the states before and after each step, and the slices."""
        outputs, n = parts(self.node), self.body.results
        found: dict[Var, Expr] = {}
        for k, v in enumerate(self.body.states[:n]):
            found[v] = outputs[BEFORE * n + k]
            found[alike("a", v)] = outputs[AFTER * n + k]
        return found | self.operands[1]

    def shortened(self, found: Sequence[Expr]) -> list[Expr]:
        """Expressions in the body's variables that scan the next states, not compute them."""
        known: dict[int, Expr] = {id(e): v for e, v in self.following()}
        return rewritten(found, lambda new, old: known.get(id(old), new))

    def following(self) -> list[tuple[Expr, Var]]:
        """What a step computes of the next states, with the variables that scan these."""
        states = self.body.states[: self.body.results]
        pairs = zip(self.body.outputs, states, strict=False)
        return [(e, alike("a", v)) for e, v in pairs if e.args]


def loop_pushforward(node: Apply, given: Differentials) -> Differentials:
    """Tangents of all outputs: a loop over tangents of the states."""
    primal = Primal.of(node)
    body, n = primal.body, primal.body.results
    moving = {v: t for v, t in zip(body.formals, given, strict=True) if t is not None}
    sliced = set(body.steps)
    directions = next(t.shape[v.ndim + (v in sliced) :] for v, t in moving.items())
    active = sorted(body.varying([v.name for v in moving]).intersection(range(n)))
    states = {v: derived_variable("d", v, (), directions) for v in [body.states[k] for k in active]}
    seeds = states | {
        v: derived_variable("d", v, (), directions)
        for v in (*body.steps, *body.captured)
        if v in moving
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
    feed = LoopOperands(scanned, captured)
    made = normal_form_loop(
        node.op, list(states.values()), primal.shortened(outputs), inits, feed, primal.steps
    )
    results: list[Expr | None] = [None] * len(parts(node))
    for kind in (LAST, AFTER, BEFORE):
        for place, k in enumerate(active):
            results[kind * n + k] = made[kind * len(active) + place]
    return results


class _StateCotangents(NamedTuple):
    """Variables for cotangents of states, by number of the state.

    Attributes
    ----------
    carried : dict
        Cotangents of the state after a step, from later steps.
    direct, early : dict
        Slices of the cotangents of the histories after and before each step.
    scanned : dict
        The operands of these slices.
    """

    carried: dict[int, Var]
    direct: dict[int, Var]
    early: dict[int, Var]
    scanned: dict[Var, Expr]

    @staticmethod
    def of(
        body: Body, needed: Sequence[int], given: Differentials, outer: Shape
    ) -> _StateCotangents:
        n = body.results
        found = _StateCotangents({}, {}, {}, {})
        for k in needed:
            v = body.states[k]
            found.carried[k] = derived_variable("l", v, outer)
            for kind, letter, into in ((AFTER, "p", found.direct), (BEFORE, "q", found.early)):
                bar = given[kind * n + k]
                if bar is not None:
                    into[k] = derived_variable(letter, v, outer)
                    found.scanned[into[k]] = move_axis(_of_state(v, bar), len(outer), 0)
        return found

    def seed(self, k: int) -> Expr:
        """The total cotangent of state k after a step."""
        return add([self.carried[k], self.direct[k]]) if k in self.direct else self.carried[k]


def _of_state(v: Var, cotangent: Expr) -> Expr:
    """A cotangent of a state, of a symmetric one its symmetric part: all that tangents meet."""
    return symmetric_part(cotangent) if subspace(v.properties).transposed else cotangent


def move_axis(e: Expr, axis: int, to: int) -> Expr:
    """The expression with one axis moved."""
    order = [k for k in range(e.ndim) if k != axis]
    order.insert(to, axis)
    return view(e, order)


def loop_pullback(node: Apply, given: Differentials, wanted: Sequence[bool]) -> Differentials:
    """Cotangents of operands: a loop backward over those of the states, then one batch."""
    primal = Primal.of(node)
    body, n = primal.body, primal.body.results
    if all(bar is None for bar in given[: 3 * n]):
        return [None] * len(node.args)
    bar, part = next((b, p) for b, p in zip(given, parts(node), strict=True) if b is not None)
    outer = bar.shape[: bar.ndim - part.ndim]
    names = [v.name for v, want in zip(body.formals, wanted, strict=True) if want]
    reached = body.reaching({k % n for k, bar in enumerate(given[: 3 * n]) if bar is not None})
    needed = sorted(body.varying(names) & reached)
    bars = _StateCotangents.of(body, needed, given, outer)
    rest = [k for k in range(len(body.states), len(node.args)) if wanted[k]]
    roots, seeds = [body.outputs[k] for k in needed], [bars.seed(k) for k in needed]
    found = pullbacks(roots, seeds, [body.formals[k] for k in [*needed, *rest]])
    direct = {k: e for k, e in zip(rest, found[len(needed) :], strict=True) if e is not None}
    inside = direct if body.frugal else {}
    made = _reverse_loop(primal, bars, given, found[: len(needed)], inside, outer)
    sliced = len(body.states) + len(body.steps)
    results: list[Expr | None] = [None] * len(node.args)
    for k, e in zip(needed, made.states, strict=True):
        early = primal.first_unmade(given, k, outer) if primal.steps.backward else None
        results[k] = add([e, *([] if early is None else [early])]) if wanted[k] else None
    if inside:
        for k, e in made.operands.items():
            results[k] = e if k >= sliced else move_axis(e, 0, len(outer))
        return results
    items = primal.scanned() | bars.scanned | made.behind
    known: dict[Expr, Expr] = {e: items[v] for e, v in primal.following()}
    for k, e in zip(direct, at_all_steps(primal, direct.values(), items | known), strict=True):
        results[k] = move_axis(e, 0, len(outer)) if k < sliced else _sum_of_steps(e)
    return results


class _Reversed(NamedTuple):
    """What the loop over cotangents gives.

    Attributes
    ----------
    states : sequence of Expr
        Cotangents of the first states.
    behind : dict
        By variable: the cotangents of states after each step.
    operands : dict
        By number: the cotangents of scanned and captured operands that were asked for.
    """

    states: Sequence[Expr]
    behind: dict[Var, Expr]
    operands: dict[int, Expr]


def _reverse_loop(
    primal: Primal,
    bars: _StateCotangents,
    given: Differentials,
    found: Sequence[Expr | None],
    direct: Mapping[int, Expr],
    outer: Shape,
) -> _Reversed:
    """The loop over cotangents of states; `found` are those of one step's states before it.

    `direct` are one step's cotangents of scanned operands, of which there is one for each step, and
    of captured ones, which are added up.
    """
    body, carried = primal.body, list(bars.carried.values())
    outputs, inits = [], []
    for (k, v), e in zip(bars.carried.items(), found, strict=True):
        terms = [term for term in (e, bars.early.get(k)) if term is not None]
        state = body.states[k]
        outputs.append(_of_state(state, add(terms)) if terms else zeros_node(v.shape))
        first = [given[k], None if primal.steps.backward else primal.first_unmade(given, k, outer)]
        given_first = [_of_state(state, e) for e in first if e is not None]
        inits.append(add([zeros_node(v.shape), *given_first]))
    sliced = len(body.states) + len(body.steps)
    added = {k: derived_variable("g", body.formals[k], outer) for k in direct}
    for k, e in direct.items():
        outputs.append(e if k < sliced else add([added[k], e]))
        inits.append(zeros_node(e.shape))
    states = [*carried, *added.values()]
    if not states:
        return _Reversed((), {}, {})
    feed = LoopOperands(primal.scanned() | bars.scanned, primal.operands[2])
    steps = primal.steps._replace(backward=not primal.steps.backward)
    made = normal_form_loop(primal.node.op, states, primal.shortened(outputs), inits, feed, steps)
    count, several = len(carried), len(states)
    ends = {
        k: made[(AFTER if k < sliced else LAST) * several + place]
        for place, k in enumerate(added, count)
    }
    behind = dict(zip(carried, made[BEFORE * several :], strict=False))
    return _Reversed(made[:count], behind, ends)


def _sum_of_steps(e: Expr) -> Expr:
    """The sum over the leading axis, term by term."""
    axis = tuple(range(e.ndim))
    return add([einsum([term], [axis], axis[1:]) for term in terms_of(e)])


def at_all_steps(
    primal: Primal, found: Collection[Expr], items: Mapping[Var, Expr] | Mapping[Expr, Expr]
) -> list[Expr]:
    """Expressions in the body's variables for all steps, along a leading axis."""
    return with_batch_axis(list(found), items, primal.steps.length, primal.operands[2])
