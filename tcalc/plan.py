"""Expressions to plans: steps, in an order of execution, with their memory."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import product

from .expr import Expr, dimensions, postorder
from .factoring import factored
from .halves import halved
from .loops import grouped
from .lowering import Lowering
from .memory import assign
from .normal import bare
from .paths import GEMM_SPEED
from .rules.kernels import fused
from .steps import Builder, Output, Plan
from .variants import Way, multiplied_out

#: Operations of a step in the time of one elementwise operation.
SPEED = dict.fromkeys(("dot", "matmul", "gram"), GEMM_SPEED)
SPEED["correlate"] = GEMM_SPEED / 4  # many of its operands are copied for one product
SPEED |= dict.fromkeys(("trisolve", "solve", "over", "kernels"), 0.75 * GEMM_SPEED)
#: Time per node from which other ways of lowering are tried (each takes a fraction of a
#: millisecond a node), and what one must save to be taken.
WORTH_CHOOSING = 1e4
SAVED = 0.99
WAYS = [Way(shared, dense) for shared in (False, True) for dense in (False, True)]

#: Extent assumed for every dimension that no array has bound.
NOMINAL = 100


def make_plan(
    roots: Sequence[Expr],
    sizes: Mapping[str, int],
    itemsize: int = 8,
    note: str = "",
    fixed: Collection[str] = (),
    choose: bool = True,
    lent: bool = False,
) -> Plan:
    """The plan that computes the roots, given extents of all dimensions.

    `fixed` names variables whose values never change: what depends on nothing else is kept.
    Without `choose` the roots are lowered as they are spelled, which is quicker. Where inputs are
    `lent`, an output that is one of them, or its transpose, is no copy of it.
    """
    if choose:
        lowering, outputs = _cheapest(fused(roots), sizes, fixed, lent)
    else:
        lowering, outputs = _lowered(roots, sizes, fixed, lent, Way())
    b = lowering.b
    results = [o.slot for o in outputs]
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


def _lowered(
    roots: Sequence[Expr],
    sizes: Mapping[str, int],
    fixed: Collection[str],
    lent: bool,
    way: Way,
) -> tuple[Lowering, list[Output]]:
    lowering = Lowering(roots, sizes, fixed, way)
    outputs = [lowering.output(root, k, lent) for k, root in enumerate(roots)]
    results = [o.slot for o in outputs]
    lowering.b.drop_unused(results)
    halved(lowering.b, results)
    return lowering, outputs


def _cheapest(
    roots: Sequence[Expr], sizes: Mapping[str, int], fixed: Collection[str], lent: bool
) -> tuple[Lowering, list[Output]]:
    """The best of a few ways to lower the roots, where there is enough work to choose."""
    best = _lowered(roots, sizes, fixed, lent, Way())
    if _time(best[0].b) < WORTH_CHOOSING * len(postorder(roots)):
        return best
    inverses = bool(best[0].b.inverses)
    ways = [way for way in WAYS if inverses or not way.dense_inverses]
    spellings = _distinct([list(roots), multiplied_out(roots), factored(roots)])
    for spelling, way in list(product(spellings, ways))[1:]:  # the first is there
        other = _lowered(spelling, sizes, fixed, lent, way)
        if _time(other[0].b) < SAVED * _time(best[0].b):
            best = other
    return best


def _distinct(spellings: Sequence[list[Expr]]) -> list[list[Expr]]:
    return list({tuple(map(id, roots)): roots for roots in spellings}.values())


def _time(b: Builder) -> float:
    """Predicted time of all steps in units of one elementwise operation."""
    return sum([step.flops / SPEED.get(step.kind, 1) for step in b.steps])


def cost(exprs: Expr | Sequence[Expr], sizes: Mapping[str, int] | None = None) -> tuple[float, int]:
    """Predicted operations and peak bytes; dimensions without a size count NOMINAL."""
    roots = [bare(e) for e in ([exprs] if isinstance(exprs, Expr) else exprs)]
    known = {**dict.fromkeys(dimensions(roots), NOMINAL), **(sizes or {})}
    plan = make_plan(roots, known, choose=sizes is not None)
    return plan.flops, plan.peak_bytes
