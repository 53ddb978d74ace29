"""Programs: a list of runs over the slots of a workspace.

Views of the workspace are bound once, when a workspace is made; a call only fills in its inputs and
allocates its outputs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import repeat, takewhile
from typing import Any, Protocol

import numpy as np

from ...plan.steps import RESULT, Output, Plan, Unit
from ...support.arrays import Array
from ...support.errors import LinAlgError
from ...support.rows import Rows
from ..interface import EntryMaker
from .slots import Run, Slots
from .targets import Targets
from .workspaces import Workspaces


class Binder(Protocol):
    """How a back end turns the units of one plan into runs, asked in the order of execution.

    Each method returns the runs that are certain by then; a unit may be held back.
    """

    def runs(self, unit: Unit) -> list[Run]:
        """Runs for a unit that is part of every call."""

    def drop(self, slots: Sequence[int]) -> list[Run]:
        """Nobody reads these slots from here on."""

    def finish(self) -> list[Run]:
        """All units are there."""


class HostProgram:
    """A plan bound to a dtype; calling it with input arrays gives a list of fresh outputs.

    Where results go into arrays of the caller, it is not called: see `sweep`.
    """

    entries: EntryMaker | None = None

    def __init__(self, workspaces: Workspaces, binder: Binder) -> None:
        self.dtype, self._once = workspaces.dtype, workspaces.once
        self._take, self._give_back = workspaces.take, workspaces.give_back
        self._failed = workspaces.closure.failed
        self._plan = plan = workspaces.plan
        self._count = len(plan.inputs)
        self._runs = _runs(workspaces, binder)
        held = workspaces.lives.held
        self._returns = [_returned(plan, output, held) for output in plan.outputs]
        self._targets = Targets(plan, self.dtype)

    def __call__(self, arrays: Sequence[Array]) -> list[Any]:
        with np.errstate(all="ignore"):
            base = self._take(arrays)
            slots = base.copy()
            slots[: self._count] = arrays
            run = None
            try:
                for run in self._runs:
                    run(slots)
            except np.linalg.LinAlgError as error:
                self._failed(run, error)
        results = [finish(slots) for finish in self._returns]
        self._give_back(base)
        return results

    def sweep(
        self,
        count: int,
        fixed: Mapping[str, Array],
        moving: Mapping[str, Rows],
        into: Sequence[Rows],
        ends: Rows | None = None,
    ) -> int:
        """Run `count` times, as `tcalc.backends.interface.Sweep` says."""
        targets = self._targets
        reads: list[Iterable[Array]] = [
            moving[n] if n in moving else repeat(fixed[n]) for n in self._plan.inputs
        ]
        inputs = zip(*reads, strict=False) if reads else repeat(())
        writes, rows = targets.writes(into), targets.copies(into)
        first = len(self._plan.shapes)
        last, runs, done = first + len(self._plan.outputs), self._runs, 0
        with np.errstate(all="ignore"):
            base = self._take(())
            slots = base.copy()
            slots[: self._count] = [fixed.get(name) for name in self._plan.inputs]
            try:
                for run in self._once if count else ():
                    run(slots)
                times = range(count) if ends is None else _until(ends, count)
                for _, arrays, results, row in zip(times, inputs, writes, rows, strict=False):
                    slots[: self._count] = arrays
                    slots[first:last] = results
                    for run in runs:
                        run(slots)
                    if targets.copied:
                        targets.finish(slots, row)
                    done += 1
            except np.linalg.LinAlgError as error:
                raise LinAlgError(f"{error}, at step {done + 1} of {count} of a loop") from error
        self._give_back(base)
        return done


def _until(ends: Rows, count: int) -> Iterator[int]:
    """So many numbers, until a row that is not 0 when its number is asked for."""
    return (t for t, _ in zip(range(count), takewhile(operator.not_, ends), strict=False))


def _runs(workspaces: Workspaces, binder: Binder) -> list[Run]:
    """What every call runs."""
    found: list[Run] = []
    drops = workspaces.lives.drops
    for time, unit in enumerate(workspaces.plan.units):
        if not workspaces.takes(unit):
            found += binder.runs(unit)
        if time in drops:
            found += binder.drop(drops[time])
    return found + binder.finish()


def _returned(plan: Plan, output: Output, held: Collection[int]) -> Callable[[Slots], Any]:
    slot, perm = output
    made_by_kernel, stays = plan.origin[slot] is RESULT, plan.owner[slot] in held
    ndim = len(plan.shapes[slot])

    def finish(v: Slots) -> Any:
        array = v[slot]
        if stays or (made_by_kernel and not _owned(array, v, slot)):
            array = array.copy()
        return array[()] if ndim == 0 else array if perm is None else array.transpose(perm)

    return finish


def _owned(array: Array, v: Slots, slot: int) -> bool:
    """Did a kernel return an array of its own that no other slot holds?"""
    flags = array.flags
    return (
        flags.owndata
        and flags.writeable
        and not any(other is array for k, other in enumerate(v) if k != slot)
    )
