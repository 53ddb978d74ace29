"""Plans on C: runs of steps as functions that the system's compiler makes, the rest as NumPy does.

A function is written at the first call, when the strides of all arrays are known, and again for
other strides. Matrices go to routines of our own, on the BLAS that SciPy brings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np

from ...plan.kinds.table import KINDS
from ...plan.steps import RESULT, VIEW, Loop, Plan, Step, Unit
from ..numpy.kernels import allocation, cleared, dropped
from ..numpy.program import Program
from .compiler import command
from .functions import Part, TiledPart, check_addresses
from .source import expressible, tileable

#: Steps of one function; compilers take more than twice as long for twice as many.
MOST = 400
#: Bytes that nobody reads any more with which a function ends.
FREED = 1 << 20


class CProgram(Program):
    """A plan bound to a dtype, as `Program`, most of its steps compiled."""

    def __init__(self, plan: Plan, dtype: np.dtype[Any], given: bool = False) -> None:
        self._open: Part | None = None
        super().__init__(plan, dtype, given)

    @staticmethod
    def available() -> None:
        """Raises an Error where there is no C compiler, or another Python."""
        command()
        check_addresses()

    def stays(self, slot: int) -> bool:
        """Is the slot the same array in all calls that use one workspace?"""
        plan = self.plan
        if plan.origin[slot] is VIEW and slot not in plan.fixed:
            return slot in self._still
        home = plan.home[slot]
        if home is not None:
            return home >= 0
        given = plan.owner[slot] < len(plan.inputs)
        return slot in plan.fixed and not given and (not self.swept or slot in plan.consts)

    def _add(self, unit: Unit) -> None:
        if isinstance(unit, Step) and unit.out not in self.plan.fixed:
            if not self._is_static(unit) and expressible(self.plan, unit):
                self._compiled(unit)
                return
            bound = self.plan.origin[unit.out] is VIEW and unit.kind != "part"
            if self._open is not None and (bound or self._is_static(unit)):
                with self._before(self._open):
                    super()._add(unit)
                return
        self._close()
        if isinstance(unit, Loop) and tileable(self.plan, unit):
            for step in unit.steps:
                if step.out in unit.kept:
                    self._birth(step)
            self._runs.append(TiledPart(self, unit).run)
        else:
            super()._add(unit)

    def _compiled(self, step: Step) -> None:
        if self._open is None or len(self._open.steps) >= MOST:
            self._close()
            self._open = Part(self)
        part = self._open
        with self._before(part):
            if self.plan.origin[step.out] is RESULT:
                self._runs.append(allocation(step.out, self.plan.shapes, (), np.empty, self.dtype))
            elif self._birth(step, clear=False) and KINDS[step.kind].into_zeros:
                part.new.add(step.out)
        part.steps.append(step)

    @contextmanager
    def _before(self, part: Part) -> Iterator[None]:
        """What is to be run goes before a part."""
        held, self._runs = self._runs, part.before
        try:
            yield
        finally:
            self._runs = held

    def _end(self, slots: Sequence[int]) -> None:
        if self._open is None:
            super()._end(slots)
            return
        part = self._open
        part.after.append(dropped(tuple(slots)))
        part.idle += sum([prod(self.plan.shapes[slot]) for slot in slots]) * self.plan.itemsize
        if part.idle >= FREED:
            self._close()

    def _close(self) -> None:
        part, self._open = self._open, None
        if part is None:
            return
        if part.worthwhile:
            part.place = self.place(part.table)
            self._runs += [*part.before, part.run]
        else:
            self._runs += part.before
            for step in part.steps:
                if KINDS[step.kind].into_zeros and step.out not in part.new:
                    self._runs.append(cleared(step.out))
                self._runs.append(self.closure(step))
        self._runs += part.after

    def _finish(self) -> None:
        self._close()
