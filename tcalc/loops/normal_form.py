"""Loops in normal form: constants and loop invariants outside, equal loops one node.

A condition on the states becomes one more state, which holds it: a step never computes it for the
state that it begins with, which the step before has left, or the first states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..calculus.batching import with_batch_axis
from ..graph.applications import apply_all, rewritten
from ..graph.extents import Extent
from ..graph.nodes import Expr, Var
from ..graph.normal import bare, drop_axes
from ..graph.operators import Op
from ..graph.products import is_zero, zeros_node
from ..graph.sums import absent_axes
from ..ops.affine_entries import held_as_integers
from ..ops.arithmetic import sum as sum_of
from ..ops.views import ones
from ..rules.strategy import simplified
from ..support.records import NamedTuple
from .body import (
    Body,
    body_variable,
    constant_below,
    kind_of,
    loop_invariants,
    nesting_depth,
    replaced,
    symmetric,
)
from .diagonal_states import (
    DiagonalStates,
    core_of_value,
    core_variable,
    diagonal_pattern,
    embedded,
    repeats,
    slice_pattern,
)
from .symmetric_states import symmetric_states

__all__: list[str] = []

#: Outputs of one state: its last value, its values after each step and before each step.
LAST, AFTER, BEFORE = range(3)

#: What a bound is before the body has its own variables: a state, or what is captured.
_FLAG, _MADE = body_variable("until", ()), body_variable("made", ())


class LoopRange(NamedTuple):
    """How often a body runs, and how.

    Attributes
    ----------
    length : int or str
        The number of steps.
    backward : bool
        Are scanned operands read from the last slice on?
    frugal : bool
        As of `Body`; a loop with a bound is so always.
    until : Expr or None
        The loop ends before the first step at which this condition on the states is not 0.
    made : Expr or None
        The number of steps that are made, those of the first slices; None: all.
    """

    length: Extent
    backward: bool = False
    frugal: bool = False
    until: Expr | None = None
    made: Expr | None = None


class _Steps(NamedTuple):
    """What a body says of its steps: see `Body`."""

    frugal: bool
    bound: Var | None
    until: Expr | None


class LoopOperands(NamedTuple):
    """The operands of a body's variables: arrays scanned slice by slice, and captured arrays."""

    scanned: dict[Var, Expr]
    captured: dict[Var, Expr]


def normal_form_loop(
    row: Op,
    states: Sequence[Var],
    outputs: Sequence[Expr],
    inits: Sequence[Expr],
    feed: LoopOperands,
    steps: LoopRange,
) -> tuple[Expr, ...]:
    """All outputs of the loop in which outputs[k] is the next value of states[k].

    Loop invariants are moved outside, states that never change are captured instead, of states that
    are zero off a diagonal the diagonal is carried, and those that stay symmetric are known to be.
    Equal loops are the same node. Where the loop ends at a condition, the number of steps is the
    last output.
    """
    bounded = steps.until is not None or steps.made is not None  # histories may have zeros at last
    values = dict(zip(states, zip(map(bare, outputs), map(bare, inits), strict=True), strict=True))
    still = {v: begin for v, (e, begin) in values.items() if e is v and not bounded}
    scanned, captured, inside = _scanned_and_captured(
        LoopOperands(feed.scanned, feed.captured | still)
    )
    inside = _with_constants(inside, captured)
    changing = [v for v in values if v not in still]
    after, first = [values[v][0] for v in changing], [values[v][1] for v in changing]
    matrices, after = symmetric_states(changing, after, first, inside)
    inside |= matrices
    changing = [matrices.get(v, v) for v in changing]
    cores = DiagonalStates(
        dict(zip(changing, simplified(after), strict=True)), dict(zip(changing, first, strict=True))
    )
    found = _simplified_states(cores.following, captured)
    until = None if steps.until is None else cores.carried(replaced([bare(steps.until)], inside)[0])
    while some := {v: cores.first[v] for v, e in found.items() if e is v and not bounded}:
        still |= some
        captured |= some
        rest = {v: e for v, e in found.items() if v not in some}
        found = _simplified_states(rest, captured)
    slices = {v: e for v, e in scanned.items() if v not in captured}
    bound, first = None, [cores.first[v] for v in found]
    if until is not None:
        (until,) = _simplified_states({_FLAG: until}, captured).values()
    if until is not None and is_zero(until):
        until = None
    if until is not None:
        begin, end = (
            simplified(replaced([until], at))[0] for at in (captured | cores.first, found)
        )
        bound, found, first = _FLAG, found | {_FLAG: end}, [*first, begin]
    elif steps.made is not None:
        bound, captured = _MADE, captured | {_MADE: bare(steps.made)}
    of_steps = _Steps(steps.frugal or bound is not None, bound, until)
    body, operands = _closed_body(found, slices, captured, of_steps)
    params = (body, steps.length, steps.backward)
    made = apply_all(row, *first, *operands, params=params) if found else ()
    shown = [v for v in found if v is not _FLAG]
    of = {v: made[k : 3 * len(shown) : len(shown)] for k, v in enumerate(shown)}
    for v, e in still.items():
        of[v] = (e, *with_batch_axis([e, e], {}, steps.length))
    each = [_state_outputs(matrices.get(v, v), cores, of, steps.length) for v in values]
    outs = [outputs[kind] for kind in (LAST, AFTER, BEFORE) for outputs in each]
    if steps.until is None:
        return tuple(outs)
    return (*outs, made[-1] if until is not None else sum_of(ones(steps.length)))


def _with_constants(inside: Mapping[Var, Expr], captured: Mapping[Var, Expr]) -> dict[Var, Expr]:
    """Substitutes for variables, with captured constants in place of their variables."""
    plain = _constants(captured)
    return {**plain, **dict(zip(inside, replaced(list(inside.values()), plain), strict=True))}


def _constants(captured: Mapping[Var, Expr]) -> dict[Var, Expr]:
    return {v: e for v, e in captured.items() if constant_below([e])[id(e)]}


def _simplified_states(found: Mapping[Var, Expr], captured: Mapping[Var, Expr]) -> dict[Var, Expr]:
    """Next states with captured constants substituted."""
    after = simplified(replaced(list(found.values()), _constants(captured)))
    return dict(zip(found, after, strict=True))


def _state_outputs(
    v: Var, cores: DiagonalStates, of: Mapping[Var, Sequence[Expr]], length: Extent
) -> Sequence[Expr]:
    """The outputs of a state, from those of the diagonal that is carried of it."""
    if v not in cores.patterns:
        return of[v]
    word = cores.patterns[v]
    if word is None:
        return [zeros_node(v.shape), *[zeros_node((length, *v.shape))] * 2]
    last, *histories = of[core_variable(v, word)]
    long = (0, *[label + 1 for label in word])
    return [embedded(last, word), *[embedded(e, long) for e in histories]]


def _closed_body(
    found: Mapping[Var, Expr], scanned: Mapping[Var, Expr], captured: Mapping[Var, Expr], of: _Steps
) -> tuple[Body, list[Expr]]:
    """The body with canonical variables, and the operands that are scanned and captured."""
    roots = [*found.values(), *([] if of.until is None else [of.until])]
    inside, free, integers = loop_invariants(roots, [*found, *scanned])
    if of.bound is not None and of.bound in captured:
        free = [*free, of.bound]
    used = {id(n) for n in inside}
    slices = [v for v in scanned if id(v) in used]
    depth = nesting_depth(inside)
    fixed, change = _canonical_variables("c", depth, free, replaced(free, captured), integers)
    integers = {id(v) for v in slices if v.integral}
    sliced, other = _canonical_variables("x", depth, slices, [scanned[v] for v in slices], integers)
    change |= other
    own = [body_variable(f"s{k}@{depth}", v.shape, v.properties) for k, v in enumerate(found)]
    change |= {id(v): new for v, new in zip(found, own, strict=True)}
    closed = rewritten(roots, lambda new, old: change.get(id(old), new))
    bound = None if of.bound is None else change[id(of.bound)]
    assert bound is None or isinstance(bound, Var)
    until = None if of.until is None else closed.pop()
    body = Body(tuple(own), tuple(sliced), tuple(fixed), tuple(closed), of.frugal, bound, until)
    return body, [*sliced.values(), *fixed.values()]


def _scanned_and_captured(
    feed: LoopOperands,
) -> tuple[dict[Var, Expr], dict[Var, Expr], dict[Var, Expr]]:
    """Scanned operands, captured operands, and substitutes for slices.

    A scanned operand of equal slices is captured; of what is zero off a diagonal the diagonal is
    captured, or that of every slice scanned. Variables for symmetric matrices are symmetric.
    """
    scanned: dict[Var, Expr] = {}
    fixed = {v: bare(e) for v, e in feed.captured.items()}
    inside: dict[Var, Expr] = {}
    for v, operand in feed.scanned.items():
        e = bare(operand)
        if 0 in absent_axes(e):
            fixed[v] = drop_axes(e, {0})
        elif repeats(word := slice_pattern(e)):
            items = core_of_value(e, (0, *[label + 1 for label in word]))
            scanned[core := _variable_of(core_variable(v, word), items, 1)] = items
            inside[v] = embedded(core, word)
        else:
            scanned[item := _variable_of(v, e, 1)] = e
            inside[v] = item
    captured: dict[Var, Expr] = {}
    for given, e in fixed.items():
        v, word = given, diagonal_pattern(e)
        if repeats(word):
            e, v = core_of_value(e, word), core_variable(v, word)
        captured[own := _variable_of(v, e, 0)] = e
        inside[given] = embedded(own, word)
    return scanned, captured, {v: e for v, e in inside.items() if e is not v}


def _variable_of(v: Var, e: Expr, leading: int) -> Var:
    """The variable for an operand, or for its slices: another one, where these are symmetric."""
    known = () if v.properties else symmetric(e, leading)
    return body_variable(v.name + "~", v.shape, known) if known else v


def _canonical_variables(
    letter: str, depth: int, found: Sequence[Expr], operands: Sequence[Expr], integers: set[int]
) -> tuple[dict[Var, Expr], dict[int, Expr]]:
    """Canonical variables with their operands, and what they replace, by id.

    Equal operands have one variable. `integers` has the ids of the integer ones.
    """
    made: dict[tuple[int, bool], Var] = {}
    fed: dict[Var, Expr] = {}
    change: dict[int, Expr] = {}
    for k in sorted(range(len(found)), key=lambda k: operands[k].order):
        key = id(operands[k]), id(found[k]) in integers and held_as_integers(operands[k])
        if key not in made:
            known = kind_of(True) if key[1] else symmetric(found[k])
            made[key] = body_variable(f"{letter}{len(made)}@{depth}", found[k].shape, known)
            fed[made[key]] = operands[k]
        change[id(found[k])] = made[key]
    return fed, change
