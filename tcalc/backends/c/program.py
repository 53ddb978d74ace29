"""Plans on C: runs of steps as functions that the system's compiler makes, the rest as NumPy does.

Functions are written at the first call, when the strides of all arrays are known or foreseen, and
again for other strides. Matrices go to routines of our own, on the BLAS that SciPy brings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ...plan.kinds.table import KINDS
from ...plan.steps import RESULT, VIEW, Plan, Step, TiledLoop, Unit
from ...plan.tiles import Tiling
from ...support.machine import Machine
from ..host.program import Binder, HostProgram
from ..host.slots import Run, allocation, cleared, dropped
from ..host.tiles import temporaries
from ..host.workspaces import Workspaces
from ..interface import BackEnd
from ..numpy.program import Units, numpy_closures
from ..numpy.tiles import tiled
from .compiler import command
from .functions import CompiledSteps, CompiledTiles, check_addresses
from .loops import Loops
from .source import expressible, tileable
from .together import Beside as Beside
from .together import Together

#: Steps of one function; compilers take more than twice as long for twice as many.
MOST = 400
#: Bytes that nobody reads any more with which a function ends.
FREED = 1 << 20

MACHINE = Machine()


def bind(
    plan: Plan,
    dtype: np.dtype[Any],
    threads: int = 1,
    together: Callable[[], Together] = Together,
) -> HostProgram:
    """The plan as functions of C, between steps that NumPy does."""
    closures = numpy_closures(dtype, Loops(dtype, together()).loop)
    workspaces = Workspaces(plan, dtype, False, closures, threads)
    return HostProgram(workspaces, CompiledRuns(workspaces, Units(workspaces), together()))


def available() -> None:
    """Raises an Error where there is no C compiler, or another Python."""
    command()
    check_addresses()


class CompiledRuns:
    """Runs of steps as functions; `others` binds what has no form in C."""

    def __init__(self, workspaces: Workspaces, others: Binder, together: Together) -> None:
        self._workspaces, self._others, self._together = workspaces, others, together
        self._open: CompiledSteps | None = None

    def runs(self, unit: Unit) -> list[Run]:
        plan = self._workspaces.plan
        if isinstance(unit, TiledLoop):
            return [*self.finish(), *self._loop(unit)]
        if expressible(plan, unit):
            return self._compiled(unit)
        found = self._others.runs(unit)
        if self._open is not None and plan.origin[unit.out] is VIEW and unit.kind != "part":
            self._open.before += found
            return []
        return [*self.finish(), *found]

    def _loop(self, loop: TiledLoop) -> list[Run]:
        workspaces = self._workspaces
        if not tileable(workspaces.plan, loop):
            return self._others.runs(loop)
        tiling = Tiling(workspaces.plan, loop)
        births = [run for step in tiling.kept for run in workspaces.lives.ready(step)]
        scratch = workspaces.place(lambda slots: temporaries(tiling, workspaces.dtype))
        other = tiled(tiling, workspaces, scratch)
        part = CompiledTiles(workspaces, tiling, scratch, other)
        part.join(self._together)
        return [*births, part.run]

    def _compiled(self, step: Step) -> list[Run]:
        full = self._open is None or len(self._open.steps) >= MOST
        found = self.finish() if full else []
        part = self._open = self._open or CompiledSteps(self._workspaces)
        plan, lives = self._workspaces.plan, self._workspaces.lives
        if plan.origin[step.out] is RESULT:
            dtype = self._workspaces.dtype
            part.before.append(allocation(step.out, plan.shapes, (), np.empty, dtype))
        else:
            birth = lives.birth(step)
            part.before += birth
            if birth and KINDS[step.kind].into_zeros:
                part.new.add(step.out)
        part.steps.append(step)
        return found

    def drop(self, slots: Sequence[int]) -> list[Run]:
        part, plan = self._open, self._workspaces.plan
        if part is None:
            return self._others.drop(slots)
        part.after.append(dropped(slots))
        part.idle += sum([prod(plan.shapes[slot]) for slot in slots]) * plan.itemsize
        return self.finish() if part.idle >= FREED else []

    def finish(self) -> list[Run]:
        """Ends the function that steps are collected for."""
        part, self._open = self._open, None
        if part is None:
            return []
        if part.worthwhile:
            part.place = self._workspaces.place(part.table)
            part.join(self._together)
            return [*part.before, part.run, *part.after]
        runs = list(part.before)
        for step in part.steps:
            if KINDS[step.kind].into_zeros and step.out not in part.new:
                runs.append(cleared(step.out))
            runs.append(self._workspaces.closure(step))
        return [*runs, *part.after]


BACKEND = BackEnd(bind, available, MACHINE)
