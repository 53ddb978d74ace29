"""Plans within a limit of memory: loops that keep states now and then where all are too many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ..graph.nodes import Expr
from ..plan.steps import Plan

#: What such a plan says.
CHECKPOINTS = "loops with checkpoints, as all states would take more memory than is allowed"


def within(
    plan: Plan,
    most: int | None,
    saving: Callable[[], Sequence[Expr] | None],
    planned: Callable[[Sequence[Expr]], Plan],
) -> Plan:
    """The plan; or that of roots which are `saving` memory, where it takes more bytes than it may.

    `saving` gives these or None, `planned` plans them. Where they take no less, the plan stays.
    """
    if most is None or plan.peak_bytes <= most:
        return plan
    roots = saving()
    other = plan if roots is None else planned(roots)
    if other.peak_bytes >= plan.peak_bytes:
        return plan
    return replace(other, note="; ".join([*([other.note] if other.note else []), CHECKPOINTS]))
