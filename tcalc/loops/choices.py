"""Loops whose steps choose: running extrema with what stands beside them, and a single change.

A step that takes a new value where that is larger finds the largest one, and other states that
change where it does are what stood at its place. A step that changes states at one index only is
that change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from ..graph.nodes import Add, Apply, Einsum, Expr, Var
from ..graph.normal import drop_axes
from ..graph.operators import TABLE
from ..graph.products import is_number, numeral, zeros_node
from ..graph.sums import absent_axes
from ..ops import arithmetic
from ..ops.choices import choice
from ..ops.elementwise import equal, isnan, less, less_equal, logical_and, where
from ..ops.reductions import arange, hardmax, hardmin, max, min
from ..support.records import NamedTuple
from .accumulations import dependents, with_first
from .body import replaced

__all__: list[str] = []

#: Expressions of the index for all its values, along a leading axis.
Batched = Callable[[Sequence[Expr]], list[Expr]]


class Search(NamedTuple):
    """A running extremum.

    Attributes
    ----------
    place : int
        The state that is the extremum.
    value : Expr
        What it is compared with.
    largest, strict : bool
        Is it the largest value? Does the first one of equal values stay?
    beside : mapping of int to Expr
        Other states that change where it does, and to what.
    """

    place: int
    value: Expr
    largest: bool
    strict: bool
    beside: dict[int, Expr]


def searches(states: Sequence[Var], outputs: Sequence[Expr]) -> list[Search]:
    """The running extrema among states; what they need depends on no state."""
    found: list[Search] = []
    for k, (state, out) in enumerate(zip(states, outputs, strict=True)):
        parts = choice(out)
        compared = None if parts is None else _compared(parts[0], state)
        if parts is None or compared is None or parts[2] is not state:
            continue
        condition, value, _ = parts
        other, largest, strict = compared
        if other is not value or id(value) in dependents([value], states):
            continue
        beside: dict[int, Expr] = {}
        for n, (mate, after) in enumerate(zip(states, outputs, strict=True)):
            chosen = choice(after)
            if n == k or chosen is None or chosen[0] is not condition or chosen[2] is not mate:
                continue
            if id(chosen[1]) not in dependents([chosen[1]], states):
                beside[n] = chosen[1]
        found.append(Search(k, value, largest, strict, beside))
    return found


def _compared(condition: Expr, state: Var) -> tuple[Expr, bool, bool] | None:
    """What a state is compared with, whether it must be above it, and whether strictly."""
    if not isinstance(condition, Apply) or len(condition.args) != 2:
        return None
    strict = condition.op is TABLE["less"]
    if not strict and condition.op is not TABLE["less_equal"]:
        return None
    one, other = condition.args
    if (one is state) == (other is state):
        return None
    return (other, True, strict) if one is state else (one, False, strict)


def search_ends(search: Search, inits: Sequence[Expr], batched: Batched) -> dict[int, Expr]:
    """The last states of a search. A value that is no number is never chosen, as by the loop."""
    init, worst = inits[search.place], -inf if search.largest else inf
    extremum = max if search.largest else min
    values, *payloads = batched([search.value, *search.beside.values()])
    missing = isnan(values)
    values = where(missing, worst, values)
    best = extremum(with_first(init, values), 0)
    ends = {search.place: best}
    if not search.beside:
        return ends
    padded = with_first(numeral(worst, init.shape), values)  # of no steps too there is an extremum
    axes = (slice(None), *[None] * init.ndim)
    steps, before = arange(values.shape[0])[axes], (arange(padded.shape[0]) - 1)[axes]
    shares = (hardmax if search.largest else hardmin)(padded, 0)
    if not search.strict:  # what is no number ties with an infinity, and is not chosen for it
        shares = where(with_first(zeros_node(init.shape), missing), 0, shares)
    place = (min if search.strict else max)(where(shares, before, inf if search.strict else -1), 0)
    first, other = (init, best) if search.largest else (best, init)
    changed = less(first, other)
    if not search.strict:
        top = extremum(padded, 0)
        reached = less_equal(init, top) if search.largest else less_equal(top, init)
        changed = logical_and(less_equal(0, place), reached)
    for k, payload in zip(search.beside, payloads, strict=True):
        taken = arithmetic.sum(where(equal(steps, place), payload, 0), 0)
        ends[k] = where(changed, taken, inits[k])
    return ends


def single_change(
    index: Var, states: Sequence[Var], outputs: Sequence[Expr], inits: Sequence[Expr],
    batched: Batched,
) -> list[Expr] | None:  # fmt: skip
    """The last states of a loop that changes them at one value of the index only."""
    branches: list[Expr] = []
    conditions: dict[int, Expr] = {}
    for state, out in zip(states, outputs, strict=True):
        parts = choice(out)
        if out is state:
            branches.append(state)
            continue
        if parts is None or parts[2] is not state:
            return None
        absent = absent_axes(parts[0])
        alone = drop_axes(parts[0], absent) if absent else parts[0]
        conditions[id(alone)] = alone
        branches.append(parts[1])
    if len(conditions) != 1:
        return None
    (condition,) = conditions.values()
    if condition.shape or not _holds_once(condition, index, states):
        return None
    changed = replaced(branches, dict(zip(states, inits, strict=True)))
    one, *after = batched([where(condition, e, 0) for e in (numeral(1.0), *changed)])
    happens = less(0, arithmetic.sum(one, 0))
    return [
        where(happens, arithmetic.sum(e, 0), init) for e, init in zip(after, inits, strict=True)
    ]


def _holds_once(condition: Expr, index: Var, states: Sequence[Var]) -> bool:
    """Is the index, or an affine form of it, equal to what depends on neither it nor states?"""
    if not isinstance(condition, Apply) or condition.op is not TABLE["equal"]:
        return False
    moving = dependents([condition], [index, *states])
    sides = [arg for arg in condition.args if id(arg) in moving]
    return len(sides) == 1 and _is_affine(sides[0], index)


def _is_affine(e: Expr, index: Var) -> bool:
    if isinstance(e, Add):
        moving = [t for t in e.args if not is_number(t)]
        return len(moving) == 1 and _is_affine(moving[0], index)
    if isinstance(e, Einsum) and not e.shape and len(e.args) == 1:
        return _is_affine(e.args[0], index)
    return e is index
