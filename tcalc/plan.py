"""Expressions to plans: steps, in an order of execution, with their memory."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from .expr import Expr, dimensions
from .loops import grouped
from .lowering import Lowering
from .memory import assign
from .normal import bare
from .steps import Plan

#: Extent assumed for every dimension that no array has bound.
NOMINAL = 100


def make_plan(
    roots: Sequence[Expr],
    sizes: Mapping[str, int],
    itemsize: int = 8,
    note: str = "",
    fixed: Collection[str] = (),
) -> Plan:
    """The plan that computes the roots, given extents of all dimensions.

    `fixed` names variables whose values never change: what depends on nothing else is kept.
    """
    lowering = Lowering(roots, sizes, fixed)
    b = lowering.b
    outputs = [lowering.output(root, k) for k, root in enumerate(roots)]
    results = [o.slot for o in outputs]
    b.drop_unused(results)
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


def cost(exprs: Expr | Sequence[Expr], sizes: Mapping[str, int] | None = None) -> tuple[float, int]:
    """Predicted operations and peak bytes; dimensions without a size count NOMINAL."""
    roots = [bare(e) for e in ([exprs] if isinstance(exprs, Expr) else exprs)]
    known = {**dict.fromkeys(dimensions(roots), NOMINAL), **(sizes or {})}
    plan = make_plan(roots, known)
    return plan.flops, plan.peak_bytes
