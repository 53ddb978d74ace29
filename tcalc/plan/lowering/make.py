"""Expressions to plans: steps, in an order of execution, with their memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any, NamedTuple

from ...graph.extents import NOMINAL
from ...graph.nodes import Einsum, Expr, dimensions, postorder
from ...graph.normal import bare
from ...rules.row_spaces import by_triangles
from ...support.machine import NOMINAL_MACHINE, Machine
from ..builder import Builder
from ..kinds.table import KINDS
from ..products.tall import over_rows
from ..products.triangular_halves import halved, masked
from ..schedule.memory import assign
from ..schedule.tiling import grouped
from ..steps import VIEW, Output, Plan, Step
from .factoring import factored
from .fusion import fused
from .lower import Lowering
from .operators import Planner
from .orthonormal import orthonormal
from .spellings import LoweringChoice, ahead, multiplied_out, rows_inside, summed_inside
from .traces import traced
from .wraps import unwrapped

#: What another spelling or way of lowering must save.
SAVED = 0.99
#: Nodes up to which every way is tried with every spelling.
FEW = 64
WAYS = [LoweringChoice(shared, dense) for shared in (False, True) for dense in (False, True)]
#: What finds other spellings of roots, which may take less time.
SPELLINGS = (multiplied_out, factored, traced, orthonormal)
#: Values whose times as spelled are this close may change places where other spellings are tried,
#: which they are where a root takes this part of the time of all.
CLOSE, NOTABLE = 2.0, 0.05


#: Finds roots that equal others, if there are any.
Respelled = Callable[[], Sequence[Expr] | None]


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
) -> Plan:
    """The plan that computes the roots, given extents of all dimensions.

    `fixed` names variables whose values never change: what depends on nothing else is kept.
    Without `choose` the roots are lowered as they are spelled, which is quicker. Where inputs are
    `lent`, an output that is one of them, or its transpose, is no copy of it. The `machine` decides
    between plans of equal results. `sparse` names variables that are sparse matrices, and about how
    many entries they hold; then roots are lowered as they are spelled. `respelled` finds roots that
    equal these in quite another spelling; it is asked where there is enough work to choose. All is
    run so many `times`; outputs are `placed` where they are written into rows of arrays.
    """
    given = _given(sizes, itemsize, fixed, choose, lent, machine, times)
    given = given._replace(sparse=sparse or {}, placed=placed)
    if choose and not sparse:
        best = _prepared(roots, given)
        if respelled is not None and best.lowered.worth(len(postorder(best.roots))):
            others = respelled()
            best = best if others is None else _least([best, _prepared(others, given)])
        lowering, outputs, *_ = best.lowered
    else:
        lowering, outputs, *_ = _lowered(roots, given)
    b = lowering.b
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


class _Given(NamedTuple):
    """What all ways to lower the roots have in common; `inner` plans what loops repeat."""

    sizes: Mapping[str, int]
    fixed: Collection[str]
    lent: bool
    machine: Machine
    inner: Planner
    times: int = 1
    placed: bool = False
    sparse: Mapping[str, int] = {}
    #: Are kernels looked for in what is tried, or were they before?
    unfused: bool = False


def _given(
    sizes: Mapping[str, int],
    itemsize: int = 8,
    fixed: Collection[str] = (),
    choose: bool = True,
    lent: bool = False,
    machine: Machine = NOMINAL_MACHINE,
    times: int = 1,
) -> _Given:
    steps: dict[tuple[int, ...], Plan] = {}

    def inner(
        step: Sequence[Expr], sizes: Mapping[str, int], fixed: Collection[str], count: int
    ) -> Plan:
        key = count, *map(id, step)
        if key not in steps:
            steps[key] = make_plan(
                step, sizes, itemsize, fixed=fixed, choose=choose, machine=machine,
                times=max(1, times * count), placed=True,
            )  # fmt: skip
        return steps[key]

    return _Given(sizes, fixed, lent, machine, inner, times)


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


def _lowered(roots: Sequence[Expr], given: _Given, way: LoweringChoice = WAYS[0]) -> Lowered:
    b = Builder(given.sizes, given.machine)
    roots = fused(roots) if given.unfused else roots
    lowering = Lowering(roots, b, given.fixed, way, given.inner, given.sparse, given.placed)
    outputs = [lowering.output(root, k, given.lent) for k, root in enumerate(roots)]
    results = [o.slot for o in outputs]
    b.drop_unused(results)
    halved(b, results)
    masked(b, results)
    often = [s for s in b.steps if s.out not in b.fixed]
    loops = [s for s in often if s.kind == "loop"]
    return Lowered(lowering, outputs, _time(often, b.machine), _time(loops, b.machine), given.times)


def _prepared(roots: Sequence[Expr], given: _Given) -> Tried:
    """The best way to lower the roots, with what only plans have in them."""
    roots = summed_inside(_unwrapped(roots, given), given.sizes, given.machine)
    tried = [
        _cheapest(ahead(fused(spelling), given.sizes, given.machine), given)
        for spelling in _stepwise(roots, given)
    ]
    return min(tried, key=lambda t: t.lowered.whole) if tried[1:] else tried[0]


def _stepwise(roots: Sequence[Expr], given: _Given) -> list[Sequence[Expr]]:
    """The roots with large rows made in the steps of loops.

    Of sums of products behind a loop that have a factor in common its steps hold one array.
    """
    found = rows_inside(roots, given.sizes, given.machine)
    if found is roots:
        return [roots]
    return [found, rows_inside(factored(roots), given.sizes, given.machine)]


def _unwrapped(roots: Sequence[Expr], given: _Given) -> Sequence[Expr]:
    """The roots with windows for places that wrap around, where that is not much dearer."""
    other = unwrapped(roots, given.sizes)
    if all(a is b for a, b in zip(roots, other, strict=True)):
        return roots
    times = [_lowered(fused(spelling), given).time for spelling in (roots, other)]
    return other if times[1] <= CLOSE * times[0] else roots


def _cheapest(roots: Sequence[Expr], given: _Given) -> Tried:
    """The best of a few ways to lower the roots, where there is enough work to choose.

    First the best spelling is taken, then the best way for it; of few nodes all pairs are tried.
    """
    nodes = len(postorder(roots))
    tried = _spelled(roots, _lowered(roots, given), given)
    best = _least(tried)
    if not best.lowered.worth(nodes):
        return best
    spelling, inverses = best.roots, bool(best.lowered.lowering.b.inverses)
    for other, way in product([t.roots for t in tried] if nodes <= FEW else [spelling], WAYS[1:]):
        if inverses or not way.dense_inverses:
            best = _least([best, Tried(_lowered(other, given, way), other, way)])
    return best


def _spelled(roots: Sequence[Expr], lowered: Lowered, given: _Given) -> list[Tried]:
    """The roots as they stand, and in other spellings where there is enough work to choose."""
    tried = [Tried(lowered, roots)]
    if lowered.worth(len(postorder(roots))):
        spellings = [spelled(roots) for spelled in SPELLINGS]
        if not given.unfused:
            spellings += map(by_triangles, [roots, *spellings])
        for other in _others(roots, spellings):
            tried.append(Tried(_lowered(other, given), other))
    return tried


def _least(tried: Sequence[Tried]) -> Tried:
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
    return sum([step.flops / machine.speed(_speed(step)) for step in steps])


def _speed(step: Step) -> str:
    """The speed of its kind; a kernel of matrices for NumPy only is a call of LAPACK."""
    matrices = step.kind == "kernel" and 2 in step.params[0].core
    return "factorisation" if matrices and step.params[0].kernels.host else KINDS[step.kind].speed


def predicted_time(plan: Plan, machine: Machine) -> float:
    """Predicted time of a call, without what is kept, in units of one elementwise operation."""
    return _time([step for step in plan.steps if step.out not in plan.fixed], machine)


def chosen(
    options: Sequence[Sequence[Expr]],
    sizes: Mapping[str, int],
    machine: Machine = NOMINAL_MACHINE,
) -> list[Expr]:
    """Of the values that every root may have, the one that takes the least time at these sizes.

    As much care is taken as there is time to be saved in calls: none for a small problem, and for
    roots that take a fraction of the time of all only a look at each value as it is spelled.
    """
    first = [values[0] for values in options]
    if all(len(values) == 1 for values in options):
        return first
    given = _given(sizes, machine=machine)
    total = _lowered(first, given).time
    if total < machine.worth_comparing * len(postorder(first)):
        return first
    places: dict[Any, int] = {}  # a block and its transpose are found once, and alike
    found = []
    for values in options:
        key = tuple(map(_made_of, values))
        if key not in places:
            places[key] = _best(values, given, total)
        found.append(values[places[key]])
    return found


def planned(
    options: Sequence[Sequence[Expr]],
    sizes: Mapping[str, int],
    machine: Machine = NOMINAL_MACHINE,
) -> tuple[list[Expr], LoweringChoice]:
    """What a plan computes of the values that every root may have, as expressions to be written.

    Which value, in which spelling, and the way in which it is lowered. Kernels that stand for
    several nodes are none of it: they are for plans only.
    """
    given = _given(sizes, machine=machine)._replace(unfused=True)
    best = _cheapest(chosen(options, sizes, machine), given)
    return list(best.roots), best.way


def _made_of(e: Expr) -> Any:
    """A key that a value and its transposes have in common."""
    if isinstance(e, Einsum) and not e.summed:
        return (*map(id, e.args), len(e.extents), e.coef.key())
    return id(e)


def _best(values: Sequence[Expr], given: _Given, total: float) -> int:
    """The place of one value: of those that are close, the one whose best spelling takes least."""
    if len(values) == 1:
        return 0
    spellings = [fused(_unwrapped([value], given)) for value in values]
    found = [_lowered(roots, given) for roots in spellings]
    least = min([lowered.time for lowered in found])
    times = []
    for roots, lowered in zip(spellings, found, strict=True):
        close = lowered.time <= CLOSE * least and least >= NOTABLE * total
        times.append(
            _least(_spelled(roots, lowered, given)).lowered.time if close else lowered.time
        )
    return times.index(min(times))


def by_operations(options: Sequence[Expr]) -> list[Expr]:
    """The options, that of the fewest predicted operations first; NOMINAL for every dimension.

    As they are spelled. Loops that several of them have in common are planned once.
    """
    roots = list(map(bare, options))
    given = _given(dict.fromkeys(dimensions(roots), NOMINAL), choose=False)
    steps = [_lowered([root], given).lowering.b.steps for root in roots]
    counts = [sum([step.flops for step in made]) for made in steps]
    return [options[k] for k in sorted(range(len(options)), key=counts.__getitem__)]


def operations_by_node(roots: Sequence[Expr], sizes: Mapping[str, int]) -> dict[int, float]:
    """Predicted operations of the steps that each node below the roots adds, by its id.

    As the roots are spelled. A node that others' steps compute with adds none: a product in a
    product, or a transpose. What only writes results is counted for the last node.
    """
    lowering = _lowered(roots, _given(sizes, choose=False)).lowering
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
