"""Plans on NumPy: one closure per step, run in a loop over a list of arrays.

Views of the workspace are bound once, when a workspace is made; a call only fills in its inputs and
allocates its outputs. A workspace serves one call at a time and then waits in a pool.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from math import prod
from typing import Any

import numpy as np

from ...plan.failures import StepError
from ...plan.kinds.table import KINDS
from ...plan.steps import BUFFER, RESULT, VIEW, Loop, Output, Plan, Step, Unit
from ...support.errors import LinAlgError
from .kernels import KERNELS, allocation, cleared, dropped
from .matrices import Array, Run, Slots
from .sweep import Targets, birth, looped
from .tiles import Tiles

#: Workspaces above this size are freed after every call.
KEPT_BYTES = 1 << 28
#: Arrays made by kernels are dropped early from this size on.
_DROP_BYTES = 1 << 14


class Program:
    """A plan bound to a dtype; calling it with input arrays gives a list of fresh outputs.

    One whose outputs are `given` writes to arrays of the caller: see `sweep`.
    """

    def __init__(self, plan: Plan, dtype: np.dtype[Any], given: bool = False) -> None:
        self.plan = plan
        self.dtype = dtype
        self._targets = Targets(plan, dtype) if given else None
        self._extra = len(plan.outputs) if given else 0
        self._count = len(plan.inputs)
        self._pool: list[Slots] = []
        self._kept = sum(plan.blocks) <= KEPT_BYTES
        self._template: Slots | None = None
        self._lock = threading.Lock()
        self._members: dict[int, list[int]] = {}
        for slot, place in enumerate(plan.home):
            if place is not None:
                self._members.setdefault(place, []).append(slot)
        self._steps: dict[int, Step] = {}
        self._once: list[Run] = []
        self._static: list[Run] = []
        self._runs: list[Run] = []
        self._born: set[int] = set()
        self._still: set[int] = set()
        self._ends = self._drops()
        self._scratch: list[Callable[[Slots], Any]] = []
        for time, unit in enumerate(plan.units):
            self._add(unit)
            if time in self._ends:
                self._end(self._ends[time])
        self._finish()
        self._returns = [self._return(output) for output in plan.outputs]

    @property
    def swept(self) -> bool:
        """Do results go into arrays of the caller?"""
        return self._targets is not None

    @staticmethod
    def available() -> None:
        """Raises an Error where the back end lacks something; NumPy is always there."""

    def __call__(self, arrays: Sequence[Array]) -> list[Any]:
        with np.errstate(all="ignore"):
            base = self._base(arrays)
            slots = base.copy()
            slots[: self._count] = arrays
            self._execute(self._runs, slots)
        results = [finish(slots) for finish in self._returns]
        if self._kept:
            self._pool.append(base)
        return results

    def sweep(
        self,
        count: int,
        fixed: Mapping[str, Array],
        moving: Mapping[str, Iterable[Array]],
        into: Sequence[Iterable[Array]],
    ) -> None:
        """Run `count` times.

        Inputs are arrays that stay, or one array for each time; the results of each time go into
        arrays of their own, of the shapes of the outputs.
        """
        targets = self._targets
        assert targets is not None
        reads = [moving[n] if n in moving else repeat(fixed[n]) for n in self.plan.inputs]
        inputs = zip(*reads, strict=False) if reads else repeat(())
        writes, rows = targets.writes(into), targets.copies(into)
        first = len(self.plan.shapes)
        last, runs, done = first + self._extra, self._runs, 0
        with np.errstate(all="ignore"):
            base = self._base(())
            slots = base.copy()
            slots[: self._count] = [fixed.get(name) for name in self.plan.inputs]
            try:
                for run in self._once if count else ():
                    run(slots)
                times = range(count)
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
        if self._kept:
            self._pool.append(base)

    def _execute(self, runs: Sequence[Run], slots: Slots) -> None:
        run = None
        try:
            for run in runs:
                run(slots)
        except StepError:
            raise
        except np.linalg.LinAlgError as error:
            raise StepError(str(error), self._steps.get(id(run))) from error

    def _add(self, unit: Unit) -> None:
        """Sort a unit: once for fixed data, once per workspace, at every call."""
        if isinstance(unit, Loop):
            tiles = Tiles(self.plan, unit, self.dtype)
            for step in unit.steps:
                if step.out in unit.kept:
                    self._birth(step)
            self._runs.append(tiles.run(self.place(lambda slots: tiles.temporaries())))
        elif unit.out in self.plan.fixed:
            if self.plan.origin[unit.out] is BUFFER:
                self._once.append(self._fixed_array(unit.out))
            self._once.append(self.closure(unit))
        elif self._is_static(unit):
            self._still.add(unit.out)
            self._static.append(self.closure(unit))
        else:
            self._birth(unit)
            if unit.kind != "scratch":
                self._runs.append(self.closure(unit))

    def place(self, made: Callable[[Slots], Any]) -> int:
        """A further slot with what is made for every workspace."""
        self._scratch.append(made)
        return len(self.plan.shapes) + self._extra + len(self._scratch) - 1

    def _end(self, slots: Sequence[int]) -> None:
        """Nobody reads these slots from here on."""
        self._runs.append(dropped(tuple(slots)))

    def _finish(self) -> None:
        """All units are there."""

    def closure(self, step: Step) -> Run:
        if step.kind == "loop":
            run = looped(step, type(self)(step.params[-1], self.dtype, given=True))
        else:
            run = KERNELS[step.kind](step, self.dtype)
        self._steps[id(run)] = step
        return run

    def _is_static(self, step: Step) -> bool:
        """A view of the workspace, or of such a view: bound once."""
        plan = self.plan
        place = plan.home[plan.owner[step.out]]
        if plan.origin[step.out] is not VIEW or place is None or place < 0:
            return False
        return all(plan.origin[a] is not VIEW or a in self._still for a in step.args)

    def _birth(self, step: Step, clear: bool = True) -> bool:
        """The first step that writes into an output makes its array; was it this one?"""
        place = self.plan.home[step.out]
        if place is not None and place < 0 and place not in self._born:
            self._born.add(place)
            if self._targets is None:
                self._runs.append(self._output_array(-1 - place, step.kind))
            else:
                self._runs += birth(self.plan, -1 - place, self._members[place], step.kind)
            return True
        if clear and KINDS[step.kind].into_zeros:
            self._runs.append(cleared(step.out))
        return False

    def _fixed_array(self, slot: int) -> Run:
        plan = self.plan
        aliases = [k for k in plan.fixed if plan.owner[k] == slot != k and plan.origin[k] is BUFFER]
        return allocation(slot, plan.shapes, aliases, np.empty, self.dtype)

    def _output_array(self, number: int, kind: str) -> Run:
        """Binds all slots that live in an output to a new array."""
        # Pages of zeros come from the system unwritten, where a unit tensor is mostly zeros.
        new = np.zeros if KINDS[kind].into_zeros else np.empty
        slot, members = self.plan.outputs[number].slot, self._members[-1 - number]
        others = [other for other in members if other != slot]
        return allocation(slot, self.plan.shapes, others, new, self.dtype)

    def _drops(self) -> dict[int, list[int]]:
        """Slots with memory of their own that can be forgotten, by the unit after which."""
        plan = self.plan
        ends: dict[int, list[int]] = {}
        for slot, owner in enumerate(plan.owner):
            if plan.origin[owner] is not RESULT or owner in plan.fixed:
                continue
            large = prod(plan.shapes[owner]) * plan.itemsize >= _DROP_BYTES
            if large and plan.last_use.get(owner, len(plan.units)) < len(plan.units):
                ends.setdefault(plan.last_use[owner], []).append(slot)
        return ends

    def _base(self, arrays: Sequence[Array]) -> Slots:
        """A workspace that no other call uses."""
        try:
            return self._pool.pop()
        except IndexError:
            return self._workspace(arrays)

    def _workspace(self, arrays: Sequence[Array]) -> Slots:
        plan, dtype = self.plan, self.dtype
        with self._lock:
            if self._template is None:
                self._template = self._fixed_slots(arrays)
        slots = self._template.copy()
        blocks = [np.empty(size, np.uint8) for size in plan.blocks]
        bound: dict[Any, Array] = {}
        for place, members in self._members.items():
            for slot in members if place >= 0 else ():
                shape = plan.shapes[slot]
                if (place, shape) not in bound:
                    size = prod(shape) * dtype.itemsize
                    bound[place, shape] = blocks[place][:size].view(dtype).reshape(shape)
                slots[slot] = bound[place, shape]
        for run in self._static:
            run(slots)
        slots += [None] * self._extra
        for made in self._scratch:
            slots.append(made(slots))
        return slots

    def _fixed_slots(self, arrays: Sequence[Array]) -> Slots:
        """Constants, and what is computed once; all that later steps do not read is dropped.

        Of a program that is swept, constants alone: what is fixed is so in one sweep.
        """
        plan = self.plan
        slots: Slots = [None] * len(plan.shapes)
        for slot, array in plan.consts.items():
            slots[slot] = array if slot in plan.integers else array.astype(self.dtype)
        if self._targets is not None:
            return slots
        slots[: self._count] = arrays
        self._execute(self._once, slots)
        read = {a for step in plan.steps if step.out not in plan.fixed for a in step.args}
        return [a if k in read and k >= self._count else None for k, a in enumerate(slots)]

    def _return(self, output: Output) -> Callable[[Slots], Any]:
        slot, perm = output
        made_by_kernel = self.plan.origin[slot] is RESULT
        ndim = len(self.plan.shapes[slot])

        def finish(v: Slots) -> Any:
            array = v[slot]
            if made_by_kernel and not _owned(array, v, slot):
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
