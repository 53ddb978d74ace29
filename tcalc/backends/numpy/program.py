"""Plans on NumPy: one closure a step, and one a loop over tiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...plan.steps import Plan, Step, TiledLoop, Unit
from ...plan.tiles import Tiling
from ...support.machine import FORMS, Machine
from ...support.namespaces import NUMPY
from ..host.program import HostProgram
from ..host.slots import Closures, Run, Slots, dropped
from ..host.tiles import temporaries
from ..host.workspaces import Workspaces
from ..interface import BackEnd, Sweep
from .kernels import KERNELS
from .matrices import multiplying, product_for
from .tiles import tiled

MACHINE = Machine(forms=FORMS)


def bind(plan: Plan, dtype: np.dtype[Any], threads: int = 1, swept: bool = False) -> HostProgram:
    """The plan as closures over NumPy's functions."""
    closures = numpy_closures(plan, dtype, lambda loop: bind(loop.params[-1], dtype, swept=True))
    workspaces = Workspaces(plan, dtype, swept, closures, threads)
    return HostProgram(workspaces, Units(workspaces))


def numpy_closures(
    plan: Plan,
    dtype: np.dtype[Any],
    inner: Callable[[Step], Sweep],
    around: Callable[[Step, Run], Run] | None = None,
) -> Closures:
    """Kernels of a plan's single steps, where `inner` binds the plans of those that are loops.

    What stands `around` the kernels of others is the caller's.
    """

    kernels = KERNELS | multiplying(product_for(plan))

    def made(step: Step) -> Run:
        if step.kind == "loop":
            return _loop(step, inner(step))
        run = kernels[step.kind](step, dtype)
        return around(step, run) if around else run

    return Closures(made)


def _loop(step: Step, program: Sweep) -> Run:
    """The kernel of a row with the program of one step as its last parameter."""
    op, *rest, _ = step.params
    args, o, kernel, params = step.args, step.out, op.kernels.compute, (*rest, program)

    def run(v: Slots) -> None:
        v[o] = kernel(NUMPY, params, *[v[k] for k in args])

    return run


class Units:
    """Units as runs, each by itself."""

    def __init__(self, workspaces: Workspaces) -> None:
        self._workspaces = workspaces

    def runs(self, unit: Unit) -> list[Run]:
        workspaces = self._workspaces
        if isinstance(unit, TiledLoop):
            tiling = Tiling(workspaces.plan, unit)
            births = [run for s in tiling.kept for run in workspaces.lives.ready(s)]
            scratch = workspaces.place(lambda slots: temporaries(tiling, workspaces.dtype))
            return [*births, tiled(tiling, workspaces, scratch)]
        ready = workspaces.lives.ready(unit)
        return ready if unit.kind == "scratch" else [*ready, workspaces.closure(unit)]

    def drop(self, slots: Sequence[int]) -> list[Run]:
        return [dropped(slots)]

    def finish(self) -> list[Run]:
        return []


BACKEND = BackEnd(bind, available=lambda: None, machine=MACHINE, refuses=True)
