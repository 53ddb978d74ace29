"""Loops in normal form: what they repeat, what they are fed with, and what stands outside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..calculus.batching import batched
from ..graph.applications import apply_all, rewritten
from ..graph.extents import Extent
from ..graph.nodes import Expr, Var
from ..graph.normal import bare, drop_axes
from ..graph.products import zeros_node
from ..graph.row import Op
from ..graph.sums import absent_axes
from ..rules.strategy import simplify
from .body import Body, cut, depth_of, formal, plain_below, replaced
from .diagonal_states import Cores, core_of, embedded, read, repeats, slices

__all__: list[str] = []

#: The outputs that belong to one state: the last one, those after all steps, those before them.
LAST, AFTER, BEFORE = range(3)


class Steps(NamedTuple):
    """How often a loop runs, and whether it takes the slices from the last one on."""

    length: Extent
    backward: bool = False


class Feed(NamedTuple):
    """What the variables of a body are fed with, besides the states."""

    scanned: dict[Var, Expr]
    captured: dict[Var, Expr]


def loop(
    row: Op,
    states: Sequence[Var],
    outputs: Sequence[Expr],
    inits: Sequence[Expr],
    feed: Feed,
    steps: Steps,
) -> tuple[Expr, ...]:
    """All outputs of the loop in which outputs[k] is the next value of states[k].

    What depends neither on states nor on slices is computed once, outside, and a state that stays
    as it is is no state; of one with unit tensors, the core is carried. Equal loops are one.
    """
    scanned, captured, inside = _settled(feed)
    found = dict(zip(states, replaced(list(map(bare, outputs)), inside), strict=True))
    cores = Cores(_simplified(found, captured), dict(zip(states, map(bare, inits), strict=True)))
    found = _simplified(cores.following, captured)
    still: dict[Var, Expr] = {}
    while some := {v: cores.first[v] for v, e in found.items() if e is v}:
        still |= some
        rest = {v: e for v, e in found.items() if v not in some}
        found = _simplified(rest, captured | still)
    captured |= still
    slices = {v: e for v, e in scanned.items() if v not in captured}
    body, operands = _closed(found, slices, captured)
    args = [*[cores.first[v] for v in found], *operands]
    params = (body, steps.length, steps.backward)
    made = apply_all(row, *args, params=params) if found else ()
    of = {v: made[k :: len(found)] for k, v in enumerate(found)}
    for v, e in still.items():
        of[v] = (e, *batched([e, e], {}, steps.length))
    each = [_outputs(v, cores, of, steps.length) for v in states]
    return tuple([outputs[kind] for kind in (LAST, AFTER, BEFORE) for outputs in each])


def _simplified(found: Mapping[Var, Expr], captured: Mapping[Var, Expr]) -> dict[Var, Expr]:
    """Next states with captured numbers in their places."""
    plain = {v: e for v, e in captured.items() if plain_below([e])[id(e)]}
    after = [simplify(e) for e in replaced(list(found.values()), plain)]
    return dict(zip(found, after, strict=True))


def _outputs(
    v: Var, cores: Cores, of: Mapping[Var, Sequence[Expr]], length: Extent
) -> Sequence[Expr]:
    """The outputs of a state, from those of what is carried of it."""
    if v not in cores.patterns:
        return of[v]
    word = cores.patterns[v]
    if word is None:
        return [zeros_node(v.shape), *[zeros_node((length, *v.shape))] * 2]
    last, *histories = of[core_of(v, word)]
    long = (0, *[label + 1 for label in word])
    return [embedded(last, word), *[embedded(e, long) for e in histories]]


def _closed(
    found: Mapping[Var, Expr], scanned: Mapping[Var, Expr], captured: Mapping[Var, Expr]
) -> tuple[Body, list[Expr]]:
    """The body with canonical variables, and what is scanned and captured."""
    outputs = list(found.values())
    inside, free, whole = cut(outputs, [*found, *scanned])
    used = {id(n) for n in inside}
    slices = [v for v in scanned if id(v) in used]
    depth = depth_of(inside)
    fixed, change = _numbered("c", depth, free, replaced(free, captured), whole)
    whole = {id(v) for v in slices if v.integral}
    sliced, other = _numbered("x", depth, slices, [scanned[v] for v in slices], whole)
    change |= other
    own = [formal(f"s{k}@{depth}", v.shape) for k, v in enumerate(found)]
    change |= {id(v): new for v, new in zip(found, own, strict=True)}
    closed = rewritten(outputs, lambda new, old: change.get(id(old), new))
    body = Body(tuple(own), tuple(sliced), tuple(fixed), tuple(closed))
    return body, [*sliced.values(), *fixed.values()]


def _settled(feed: Feed) -> tuple[dict[Var, Expr], dict[Var, Expr], dict[Var, Expr]]:
    """Scanned and captured operands, and what takes the place of some slices.

    A scanned operand that repeats one slice is captured; of one with unit tensors, the core is
    scanned.
    """
    scanned, captured = {}, {v: bare(e) for v, e in feed.captured.items()}
    inside: dict[Var, Expr] = {}
    for v, operand in feed.scanned.items():
        e = bare(operand)
        if 0 in absent_axes(e):
            captured[v] = drop_axes(e, {0})
        elif repeats(word := slices(e)):
            core = core_of(v, word)
            scanned[core] = read(e, (0, *[label + 1 for label in word]))
            inside[v] = embedded(core, word)
        else:
            scanned[v] = e
    return scanned, captured, inside


def _numbered(
    letter: str, depth: int, found: Sequence[Expr], operands: Sequence[Expr], whole: set[int]
) -> tuple[dict[Var, Expr], dict[int, Expr]]:
    """Variables for operands in their canonical order, and what they take the place of.

    Equal operands have one variable. Those in `whole` are integers.
    """
    made: dict[tuple[int, bool], Var] = {}
    fed: dict[Var, Expr] = {}
    change: dict[int, Expr] = {}
    for k in sorted(range(len(found)), key=lambda k: operands[k].order):
        key = id(operands[k]), id(found[k]) in whole
        if key not in made:
            made[key] = formal(f"{letter}{len(made)}@{depth}", found[k].shape, key[1])
            fed[made[key]] = operands[k]
        change[id(found[k])] = made[key]
    return fed, change
