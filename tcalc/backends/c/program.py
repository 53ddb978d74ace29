"""Plans on C: runs of steps as functions that the system's compiler makes, the rest as NumPy does.

Functions are written at the first call, when the strides of all arrays are known or foreseen, and
again for other strides. Matrices go to routines of our own, on the BLAS that SciPy brings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from ...plan.kinds.table import KINDS
from ...plan.steps import RESULT, VIEW, Plan, Step, TiledLoop, Unit
from ...plan.tiles import Tiling
from ...support.blas import OF_NUMPY, OF_SCIPY, one_thread
from ...support.machine import COMPILED_MACHINE
from ..host.program import Binder, HostProgram
from ..host.slots import Run, Slots, allocation, cleared, dropped
from ..host.tiles import temporaries
from ..host.workspaces import Workspaces
from ..interface import BackEnd, Sweep
from ..numpy.program import Units, numpy_closures
from ..numpy.program import bind as bound_to_numpy
from ..numpy.tiles import tiled
from .compiler import command
from .embedded import embedded
from .entries import Entries
from .forms import expressible, tileable
from .functions import CFunction, CompiledSteps
from .held import HeldStep, held
from .loops import Loops
from .objects import check_addresses
from .tiles import CompiledTiles
from .together import Beside as Beside
from .together import Together

#: Steps of one function; compilers take more than twice as long for twice as many.
MOST = 400
#: Bytes that nobody reads any more with which a function ends.
FREED = 1 << 20
#: Operations of steps for which BLAS has no second thread, and up to which it shall have none.
SMALL, SPUN = 1e4, 1e9

MACHINE = COMPILED_MACHINE


def bind(
    plan: Plan,
    dtype: np.dtype[Any],
    threads: int = 1,
    together: Callable[[], Together] = Together,
) -> HostProgram:
    """The plan as functions of C, between steps that NumPy does."""
    loops, inside = Loops(dtype, together()), embedded(plan, dtype)
    kept = {**inside, **held(plan, dtype)}

    def sweep(step: Step) -> Sweep:
        """What runs a loop apart from other steps."""
        if step.out in inside:
            return bound_to_numpy(step.params[-1], dtype, swept=True)
        return loops.loop(step)

    closures = numpy_closures(plan, dtype, sweep, _beside_threads if threads > 1 else None)
    workspaces = Workspaces(plan, dtype, False, closures, threads)
    runs = CompiledRuns(workspaces, Units(workspaces), together(), kept)
    program = HostProgram(workspaces, runs)
    program.entries = runs.entries()
    return program


def _beside_threads(step: Step, run: Run) -> Run:
    """A step of NumPy's between loops that our threads share.

    Threads of BLAS's look for more work for a while when theirs is done. What they gain has to be
    more than that.
    """
    if not SMALL < step.flops < SPUN:
        return run

    def alone(v: Slots) -> None:
        with one_thread(OF_NUMPY, OF_SCIPY):
            run(v)

    return alone


def available() -> None:
    """Raises an Error where there is no C compiler, or another Python."""
    command()
    check_addresses()


class CompiledRuns:
    """Runs of steps as functions; `others` binds what has no form in C.

    Steps of functions that are `held`, by slot, have results that are no single arrays.
    """

    def __init__(
        self,
        workspaces: Workspaces,
        others: Binder,
        together: Together,
        held: Mapping[int, HeldStep],
    ) -> None:
        self._held = held
        self._workspaces, self._others, self._together = workspaces, others, together
        self._integers = workspaces.plan.integral
        self._open: CompiledSteps | None = None
        self._parts: list[CFunction] = []
        self._zeros: set[int] = set()
        self._alone = True

    def entries(self) -> Entries | None:
        """What makes entries, where functions of steps do all that a call does."""
        if not self._alone or not self._parts:
            return None
        found = Entries(self._workspaces, self._parts, self._zeros)
        return found if found.possible else None

    def runs(self, unit: Unit) -> list[Run]:
        plan = self._workspaces.plan
        if isinstance(unit, TiledLoop):
            return self._loop(unit)
        if unit.out in self._held or expressible(plan, unit, self._integers, self._held):
            return self._compiled(unit)
        found, view = self._others.runs(unit), plan.origin[unit.out] is VIEW
        self._alone = self._alone and (view or not found)
        if self._open is not None and view and unit.kind != "part":
            self._open.before += found
            return []
        return [*self.finish(), *found]

    def _loop(self, loop: TiledLoop) -> list[Run]:
        workspaces = self._workspaces
        if not tileable(workspaces.plan, loop, self._integers):
            self._alone = False
            return [*self.finish(), *self._others.runs(loop)]
        found = self.finish()
        tiling = Tiling(workspaces.plan, loop)
        births = [run for step in tiling.kept for run in workspaces.lives.ready(step)]
        for step in tiling.views:  # others read those of the workspace, too
            workspaces.takes(step)
        scratch = workspaces.place(lambda slots: temporaries(tiling, workspaces.dtype))
        other = tiled(tiling, workspaces, scratch)
        part = CompiledTiles(workspaces, tiling, scratch, other)
        part.join(self._together)
        self._parts.append(part)
        return [*found, *births, part.run]

    def _compiled(self, step: Step) -> list[Run]:
        full = self._open is None or len(self._open.steps) >= MOST
        found = self.finish() if full else []
        part = self._open = self._open or CompiledSteps(self._workspaces, self._held)
        plan, lives = self._workspaces.plan, self._workspaces.lives
        if step.out in self._held:
            self._workspaces.hold(step.out, self._held[step.out].memory)
        elif plan.origin[step.out] is RESULT:
            dtype = part.kind(step.out)
            part.before.append(allocation(step.out, plan.shapes, (), np.empty, dtype))
        else:
            birth, home = lives.birth(step), plan.home[step.out]
            part.before += birth
            if birth and KINDS[step.kind].into_zeros:
                part.new.add(step.out)
                self._zeros |= {slot for slot, _ in plan.outputs if plan.home[slot] == home}
        part.steps.append(step)
        return found

    def drop(self, slots: Sequence[int]) -> list[Run]:
        part, plan = self._open, self._workspaces.plan
        slots = [slot for slot in slots if plan.owner[slot] not in self._held]
        if part is None:
            return self._others.drop(slots)
        part.after.append(dropped(slots))
        part.idle += sum([prod(plan.shapes[slot]) for slot in slots]) * plan.itemsize
        return self.finish() if part.idle >= FREED else []

    def finish(self) -> list[Run]:
        """Ends the function that steps are collected for.

        Where C has done all so far, a call may be one entry, which costs less than one step.
        """
        part, self._open = self._open, None
        if part is None:
            return []
        if part.worthwhile or self._alone:
            part.place = self._workspaces.place(part.addresses)
            part.join(self._together)
            self._parts.append(part)
            return [*part.before, part.run, *part.after]
        self._alone = False
        runs = list(part.before)
        for step in part.steps:
            if KINDS[step.kind].into_zeros and step.out not in part.new:
                runs.append(cleared(step.out))
            runs.append(self._workspaces.closure(step))
        return [*runs, *part.after]


BACKEND = BackEnd(bind, available, MACHINE, refuses=True)
