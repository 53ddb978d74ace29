"""Which of several equal values is planned, or printed: by predicted time, or by operations."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import inf
from typing import Any

from ...graph.extents import NOMINAL
from ...graph.nodes import Apply, Einsum, Expr, dimensions, postorder
from ...graph.normal import bare
from ...graph.operators import Loop
from ...support.machine import NOMINAL_MACHINE, Machine
from ..steps import Plan
from .make import (
    Given,
    compared,
    given_for,
    least_time,
    lowered_in,
    make_plan,
    predicted_time,
    spelled_otherwise,
    stepwise,
    with_windows,
)
from .memo import Known
from .spellings import LoweringChoice

#: What of a search may go to each value, before what is made of them all is spelled otherwise.
FIRST_SHARE = 0.5
#: Values whose times as spelled are this close may change places where other spellings are tried,
#: which they are where a root takes this part of the time of all.
CLOSE, NOTABLE = 2.0, 0.05
#: Nodes of values from which on it takes a second or more to find others.
MANY_NODES = 1000


def chosen(
    options: Sequence[Sequence[Expr]],
    sizes: Mapping[str, int],
    machine: Machine = NOMINAL_MACHINE,
    known: Known | None = None,
) -> list[Expr]:
    """Of the values that every root may have, the one that takes the least time at these sizes.

    As much care is taken as there is time to be saved in calls: a small problem takes values of
    little time and few steps, and roots that take a fraction of the time of all only a look at each
    value as it is spelled. What it finds out it leaves in `known`, for the plan.
    """
    first = [values[0] for values in options]
    if all(len(values) == 1 for values in options):
        return first
    given = given_for(sizes, machine=machine, known=known)
    total = lowered_in(first, given).time
    nodes = postorder(first)
    small = total < machine.worth_comparing * len(nodes)
    places: dict[Any, int] = {}  # a block and its transpose are found once, and alike
    found = []
    for values in options:
        key = tuple(map(_made_of, values))
        if key not in places:
            places[key] = _shortest(values, given) if small else _best(values, given, total)
        found.append(values[places[key]])
    return _least_together(found, options, given) if any(map(_is_loop, nodes)) else found


def _is_loop(e: Expr) -> bool:
    return isinstance(e, Apply) and isinstance(e.op, Loop)


def _least_together(
    found: list[Expr], options: Sequence[Sequence[Expr]], given: Given
) -> list[Expr]:
    """What was found of every root alone, or values with more loops in common: all of one place."""
    most = max(map(len, options))
    columns = [[values[min(k, len(values) - 1)] for values in options] for k in range(most)]
    several = {tuple(map(id, column)): column for column in [found, *columns]}
    if len(several) == 1:
        return found
    return min(several.values(), key=lambda column: lowered_in(column, given).time)


def enough(
    values: Sequence[Expr], sizes: Mapping[str, int], machine: Machine, known: Known | None
) -> bool:
    """Does finding other values, which have as many nodes, take longer than they can save?"""
    nodes = len(postorder(values))
    if nodes < MANY_NODES:
        return False
    given = given_for(sizes, machine=machine, known=known)
    return lowered_in(values, given).time < machine.worth_comparing * nodes


def planned(
    options: Sequence[Sequence[Expr]],
    sizes: Mapping[str, int],
    machine: Machine = NOMINAL_MACHINE,
    times: int = 1,
) -> tuple[list[Expr], LoweringChoice]:
    """What a plan computes of the values that every root may have, as expressions to be written.

    Which value, in which spelling, and the way in which it is lowered; what loops make in their
    steps. Kernels that stand for several nodes are none of it: they are for plans only.
    """
    known: Known = {}
    values = chosen(options, sizes, machine, known)
    given = given_for(sizes, machine=machine, times=times, known=known)._replace(unfused=True)
    best = stepwise(values, given)
    return list(best.roots), best.way


def plan_as_spelled(
    roots: Sequence[Expr],
    sizes: Mapping[str, int],
    itemsize: int,
    fixed: Collection[str],
    lent: bool,
    ordered: bool,
    machine: Machine,
    known: Known,
    several: bool,
) -> Plan | None:
    """A plan without any choice; None where there is none, or to make the best takes no longer.

    Are there `several` values? How it is lowered is left in `known`, but for loops, whose steps are
    not chosen among either.
    """
    given = given_for(sizes, itemsize, fixed, True, lent, machine, known=known)
    nodes, kernels = postorder(roots), given.memo.with_kernels(roots)
    loops = any(map(_is_loop, nodes))
    if not several:
        given = given._replace(ordered=ordered)
        if loops or not lowered_in(kernels, given).worth(len(nodes)):
            return None
    kept = None if loops else known
    plan = make_plan(
        kernels, sizes, itemsize, "", fixed, False, lent, machine, ordered=ordered, known=kept
    )
    longest = machine.worth_searching * len(nodes)
    return plan if predicted_time(plan, machine) <= longest else None


def _made_of(e: Expr) -> Any:
    """A key that a value and its transposes have in common."""
    if isinstance(e, Einsum) and not e.summed:
        return (*map(id, e.args), len(e.extents), e.coef.key())
    return id(e)


def _shortest(values: Sequence[Expr], given: Given) -> int:
    """The place of one value: of the one that takes the least time, and the fewest steps."""
    if len(values) == 1:
        return 0
    found = [lowered_in(given.memo.with_kernels([value]), given) for value in values]
    step = given.machine.worth_comparing
    times = [lowered.time + step * len(lowered.lowering.b.steps) for lowered in found]
    return min(range(len(values)), key=times.__getitem__)


def _best(values: Sequence[Expr], given: Given, total: float) -> int:
    """The place of one value: of those that are close, the one whose best spelling takes least."""
    if len(values) == 1:
        return 0
    spellings = [given.memo.with_kernels(with_windows([value], given)) for value in values]
    found = compared(spellings, given)
    least = min([lowered.time for lowered in found if lowered is not None])
    times = []
    for roots, lowered in zip(spellings, found, strict=True):
        if lowered is None:
            times.append(inf)
            continue
        if lowered.time <= CLOSE * least and least >= NOTABLE * total:
            lowered = least_time(spelled_otherwise(roots, lowered, given, FIRST_SHARE)).lowered
        times.append(lowered.time)
    return times.index(min(times))


def by_operations(options: Sequence[Expr]) -> list[Expr]:
    """The options, that of the fewest predicted operations first; NOMINAL for every dimension.

    As they are spelled. Loops that several of them have in common are planned once. Those that take
    much longer than one before them come last.
    """
    roots = list(map(bare, options))
    given = given_for(dict.fromkeys(dimensions(roots), NOMINAL), choose=False)
    found = compared([[root] for root in roots], given)
    counts = [
        inf if lowered is None else sum([step.flops for step in lowered.lowering.b.steps])
        for lowered in found
    ]
    return [options[k] for k in sorted(range(len(options)), key=counts.__getitem__)]
