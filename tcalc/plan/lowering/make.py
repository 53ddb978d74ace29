"""Expressions to plans: steps, in an order of execution, with their memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import product
from math import inf, prod

from ...graph.extents import NOMINAL
from ...graph.nodes import Expr, dimensions, postorder
from ...graph.normal import bare
from ...rules.row_spaces import by_triangles
from ...support.machine import NOMINAL_MACHINE, Machine
from ...support.records import NamedTuple
from ..builder import Builder, TooSlow
from ..products.orthonormal_rows import completed
from ..products.tall import over_rows
from ..products.triangular_halves import halved, masked
from ..schedule.memory import assign
from ..schedule.tiling import grouped
from ..steps import VIEW, Output, Plan, Step, speed_name
from .factoring import factored
from .fusion import fused
from .gathered import gathered
from .lower import Lowering
from .memo import Known, Memo
from .operators import Planner
from .orthonormal import orthonormal
from .spellings import (
    LoweringChoice,
    ahead,
    differences_of_rows,
    multiplied_out,
    rows_inside,
    summed_inside,
)
from .traces import traced
from .wraps import unwrapped

#: What another spelling or way of lowering must save.
SAVED = 0.99
#: Nodes up to which every way is tried with every spelling.
FEW = 64
WAYS = [LoweringChoice(shared, dense) for shared in (False, True) for dense in (False, True)]
#: Windows may take this many times as long as what they stand for.
CLOSE = 2.0
#: Roots are given up that take so much longer than others, before steps are dropped or halved.
BEYOND = 4.0

#: Finds roots that equal others, if there are any.
Respelled = Callable[[], Sequence[Expr] | None]
#: What else is done to roots before they are lowered.
Prepared = Callable[[Sequence[Expr]], Sequence[Expr]]


def make_plan(
    roots: Sequence[Expr],
    sizes: Mapping[str, int],
    itemsize: int = 8,
    note: str = "",
    fixed: Collection[str] = (),
    choose: bool = True,
    lent: bool = False,
    machine: Machine = NOMINAL_MACHINE,
    sparse: Mapping[str, int] | None = None,
    respelled: Respelled | None = None,
    times: int = 1,
    placed: bool = False,
    ordered: bool = False,
    known: Known | None = None,
) -> Plan:
    """The plan that computes the roots, given extents of all dimensions.

    `fixed` names variables whose values never change: what depends on nothing else is kept.
    Without `choose` the roots are lowered as they are spelled, which is quicker. Where inputs are
    `lent`, an output that is one of them, or its transpose, is no copy of it. The `machine` decides
    between plans of equal results. `sparse` names variables that are sparse matrices, and about how
    many entries they hold; then roots are lowered as they are spelled. `respelled` finds roots that
    equal these in quite another spelling; it is asked where there is enough work to choose. All is
    run so many `times`; outputs are `placed` where they are written into rows of arrays, and
    `ordered` where their entries lie in C-order, however that is best for the steps before. What is
    `known` of other plans of the same, or of a choice between values, is not found out again.
    """
    alike = choose or known is not None  # what is known has no loops where nothing is chosen
    given = given_for(sizes, itemsize, fixed, alike, lent, machine, times, known)
    given = given._replace(sparse=sparse or {}, placed=placed, ordered=ordered)
    if choose and not sparse:
        best = _prepared(roots, given)
        if respelled is not None and given.searches(best.roots, best.lowered):
            others = respelled()
            # Of equal ones the one that more spellings have in common.
            best = best if others is None else least_time([_prepared(others, given), best])
        lowering, outputs, *_ = best.lowered
    else:
        lowering, outputs, *_ = lowered_in(roots, given)
    b = lowering.b if known is None else lowering.b.apart()
    results = [o.slot for o in outputs]
    over_rows(b, results)
    units = grouped(b, results)
    memory = assign(b, units, outputs, itemsize)
    return Plan(
        inputs=tuple(lowering.inputs),
        consts=b.consts,
        integers=frozenset(b.integers),
        fixed=frozenset(b.fixed),
        units=tuple(units),
        shapes=b.shapes,
        origin=b.origin,
        owner=b.owner,
        home=memory.home,
        blocks=memory.blocks,
        outputs=tuple(outputs),
        last_use=memory.last_use,
        names=b.names,
        itemsize=itemsize,
        flops=sum([step.flops for step in b.steps]),
        peak_bytes=memory.peak_bytes,
        note=note,
    )


class Given(NamedTuple):
    """What all ways to lower the roots have in common; `inner` plans what loops repeat.

    `memo` keeps what was found out, of what was lowered by roots and way.
    """

    sizes: Mapping[str, int]
    fixed: Collection[str]
    lent: bool
    machine: Machine
    inner: Planner
    memo: Memo
    times: int = 1
    placed: bool = False
    ordered: bool = False
    sparse: Mapping[str, int] = {}
    #: Are kernels looked for in what is tried, or were they before?
    unfused: bool = False

    def searches(self, roots: Sequence[Expr], lowered: Lowered, share: float = 1.0) -> bool:
        """Is there enough work to choose, and took the search no longer than some calls take?"""
        steps = self.times * lowered.time / self.machine.worth_trying
        return lowered.worth(len(postorder(roots))) and self.memo.affords(steps, share)


def given_for(
    sizes: Mapping[str, int],
    itemsize: int = 8,
    fixed: Collection[str] = (),
    choose: bool = True,
    lent: bool = False,
    machine: Machine = NOMINAL_MACHINE,
    times: int = 1,
    known: Known | None = None,
) -> Given:
    settings = itemsize, tuple(sorted(fixed)), choose, lent, times
    memo = ({} if known is None else known).setdefault(settings, Memo({}, {}, {}))

    def inner(
        step: Sequence[Expr], sizes: Mapping[str, int], fixed: Collection[str], count: int
    ) -> Plan:
        key = count, *map(id, step)
        if key not in memo.steps:
            memo.steps[key] = make_plan(
                step, sizes, itemsize, fixed=fixed, choose=choose, machine=machine,
                times=max(1, times * count), placed=True,
            )  # fmt: skip
        return memo.steps[key]

    return Given(sizes, fixed, lent, machine, inner, memo, times)


class Lowered(NamedTuple):
    """Steps for roots as they are spelled, the predicted time of them all and that of loops.

    However what is around it is lowered, a loop is the same. `times` is how often all run, where
    they are the steps of a loop.
    """

    lowering: Lowering
    outputs: list[Output]
    time: float
    loops: float
    times: int = 1

    @property
    def made(self) -> float:
        """The time of all steps that were made, before some were dropped or halved."""
        return self.lowering.b.time

    def worth(self, nodes: int) -> bool:
        """Is there enough work to choose?"""
        least = self.lowering.b.machine.worth_choosing * nodes
        return self.times * (self.time - self.loops) >= least

    @property
    def whole(self) -> float:
        """The time with that of loops by their steps' kernels, and of what is held in memory.

        Large results go there and back.
        """
        b = self.lowering.b
        loops = [step.params for step in b.steps if step.kind == "loop"]
        steps: float = sum([n * predicted_time(plan, b.machine) for *_, n, _, plan in loops])
        made = [prod(step.shape) for step in b.steps if b.origin[step.out] is not VIEW]
        moved = sum([entries for entries in made if entries >= b.machine.large])
        return self.time - self.loops + steps + (b.machine.read + b.machine.write) * moved


class Tried(NamedTuple):
    """Roots lowered, how they were spelled, and in which way they were lowered."""

    lowered: Lowered
    roots: Sequence[Expr]
    way: LoweringChoice = WAYS[0]


def _within(
    longest: float, roots: Sequence[Expr], given: Given, way: LoweringChoice = WAYS[0]
) -> Lowered | None:
    """The roots lowered, or None where that is beyond this time."""
    try:
        return lowered_in(roots, given, way, longest)
    except TooSlow:
        return None


def compared(spellings: Iterable[Sequence[Expr]], given: Given) -> list[Lowered | None]:
    """Spellings lowered; those are given up that take much longer than one before them."""
    found, longest = [], inf
    for roots in spellings:
        lowered = _within(longest, roots, given)
        found.append(lowered)
        if lowered is not None:
            longest = min(longest, BEYOND * lowered.made)
    return found


def lowered_in(
    roots: Sequence[Expr],
    given: Given,
    way: LoweringChoice = WAYS[0],
    longest: float = inf,
) -> Lowered:
    roots = given.memo.with_kernels(roots) if given.unfused else roots
    key = (*map(id, roots), way, given.placed, given.ordered, bool(given.sparse))
    if key in given.memo.lowered:
        known: Lowered = given.memo.lowered[key][0]
        if known.made > longest:
            raise TooSlow
        return known
    b = Builder(given.sizes, given.machine)
    b.longest = longest
    lowering = Lowering(roots, b, given.fixed, way, given.inner, given.sparse, given.placed)
    outputs = [lowering.output(root, k, given.lent, given.ordered) for k, root in enumerate(roots)]
    results = [o.slot for o in outputs]
    b.drop_unused(results)
    halved(b, results)
    masked(b, results)
    completed(b)
    often = [s for s in b.steps if s.out not in b.fixed]
    loops = [s for s in often if s.kind == "loop"]
    times = _time(often, b.machine), _time(loops, b.machine), given.times
    found = Lowered(lowering, outputs, *times)
    given.memo.lowered[key] = found, roots
    return found


def _prepared(roots: Sequence[Expr], given: Given) -> Tried:
    """The best way to lower the roots, with what only plans have in them."""
    roots = differences_of_rows(roots, given.sizes, given.machine.squares)
    roots = _gathered(with_windows(roots, given), given)
    kernels = given.memo.with_kernels
    return stepwise(roots, given, lambda e: ahead(kernels(e), given.sizes, given.machine))


def stepwise(roots: Sequence[Expr], given: Given, prepared: Prepared = list) -> Tried:
    """The best way to lower the roots, with sums over steps and large rows made inside of loops.

    Of sums of products behind a loop that have a factor in common its steps hold one array.
    """
    roots = summed_inside(roots, given.sizes, given.machine)
    found = rows_inside(roots, given.sizes, given.machine)
    spellings = [found]
    if found is not roots:
        spellings.append(rows_inside(factored(roots), given.sizes, given.machine))
    tried = [cheapest(prepared(spelling), given) for spelling in spellings]
    return min(tried, key=lambda t: t.lowered.whole) if tried[1:] else tried[0]


def with_windows(roots: Sequence[Expr], given: Given) -> Sequence[Expr]:
    """The roots with windows for places that wrap around, where that is not much dearer."""
    other = unwrapped(roots, given.sizes)
    if all(a is b for a, b in zip(roots, other, strict=True)):
        return roots
    times = [
        lowered_in(given.memo.with_kernels(spelling), given).time for spelling in (roots, other)
    ]
    return other if times[1] <= CLOSE * times[0] else roots


def _gathered(roots: Sequence[Expr], given: Given) -> Sequence[Expr]:
    """The roots with few rows taken before others are computed, where that saves something."""
    spellings = [roots, *_others(roots, [gathered(roots, given.sizes)])]
    if len(spellings) == 1:
        return roots
    return least_time([Tried(lowered_in(fused(one), given), one) for one in spellings]).roots


def cheapest(roots: Sequence[Expr], given: Given) -> Tried:
    """The best of a few ways to lower the roots, where there is enough work to choose.

    First the best spelling is taken, then the best way for it; of few nodes all pairs are tried.
    """
    nodes = len(postorder(roots))
    tried = spelled_otherwise(roots, lowered_in(roots, given), given)
    best = least_time(tried)
    if not best.lowered.worth(nodes):
        return best
    spelling, inverses = best.roots, bool(best.lowered.lowering.b.inverses)
    for other, way in product([t.roots for t in tried] if nodes <= FEW else [spelling], WAYS[1:]):
        if (inverses or not way.dense_inverses) and given.searches(best.roots, best.lowered):
            lowered = _within(BEYOND * best.lowered.made, other, given, way)
            if lowered is not None:
                best = least_time([best, Tried(lowered, other, way)])
    return best


def spelled_otherwise(
    roots: Sequence[Expr], lowered: Lowered, given: Given, share: float = 1.0
) -> list[Tried]:
    """The roots as they stand, and in other spellings in this share of what a search may take."""
    tried = [Tried(lowered, roots)]
    if given.searches(roots, lowered, share):
        by_products, by_halves = traced(roots)
        spellings = [multiplied_out(roots), factored(roots), by_products, orthonormal(roots)]
        if not given.unfused:
            apart = differences_of_rows(roots, given.sizes, given.machine.across - 1)
            spellings += [fused(apart), *by_triangles([roots, *spellings])]
        if not given.unfused or "congruence" in given.machine.forms:
            spellings.append(by_halves())
        for other in _others(roots, spellings):
            searches = given.searches(roots, lowered, share)
            found = _within(BEYOND * lowered.made, other, given) if searches else None
            if found is not None:
                tried.append(Tried(found, other))
    return tried


def least_time(tried: Sequence[Tried]) -> Tried:
    """The one that takes the least time; a later one only where it saves something."""
    best = tried[0]
    for other in tried[1:]:
        if other.lowered.time < SAVED * best.lowered.time:
            best = other
    return best


def _others(roots: Sequence[Expr], spellings: Sequence[list[Expr]]) -> list[list[Expr]]:
    """The spellings that are not the roots' own."""
    found = {tuple(map(id, spelling)): spelling for spelling in spellings}
    found.pop(tuple(map(id, roots)), None)
    return list(found.values())


def _time(steps: Sequence[Step], machine: Machine) -> float:
    """Predicted time of steps in units of one elementwise operation."""
    return sum([step.flops / machine.speed(speed_name(step)) for step in steps])


def predicted_time(plan: Plan, machine: Machine) -> float:
    """Predicted time of a call, without what is kept, in units of one elementwise operation."""
    return _time([step for step in plan.steps if step.out not in plan.fixed], machine)


def operations_by_node(roots: Sequence[Expr], sizes: Mapping[str, int]) -> dict[int, float]:
    """Predicted operations of the steps that each node below the roots adds, by its id.

    As the roots are spelled. A node that others' steps compute with adds none: a product in a
    product, or a transpose. What only writes results is counted for the last node.
    """
    lowering = lowered_in(roots, given_for(sizes, choose=False)).lowering
    steps = sorted(lowering.b.steps, key=lambda step: step.out, reverse=True)
    found = dict.fromkeys(lowering.values, 0.0)
    for key, value in lowering.values.items():  # in the order in which slots were made
        while steps and steps[-1].out <= value.slot:
            found[key] += steps.pop().flops
    for key in [*found][-1:]:
        found[key] += sum([step.flops for step in steps])
    return found


def cost(exprs: Expr | Sequence[Expr], sizes: Mapping[str, int] | None = None) -> tuple[float, int]:
    """Predicted operations and peak bytes; dimensions without a size count NOMINAL."""
    roots = [bare(e) for e in ([exprs] if isinstance(exprs, Expr) else exprs)]
    known = {**dict.fromkeys(dimensions(roots), NOMINAL), **(sizes or {})}
    plan = make_plan(roots, known, choose=sizes is not None)
    return plan.flops, plan.peak_bytes
