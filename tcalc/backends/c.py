"""Plans on C: runs of steps as functions that the system's compiler makes, the rest as NumPy does.

A function is written at the first call, when the strides of all arrays are known, and again for
other strides. Matrices are multiplied and factorised by the BLAS and LAPACK that SciPy brings.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..failures import StepError
from ..steps import INTO_ZEROS, RESULT, VIEW, Plan, Step, Unit
from .c_compiler import command
from .c_library import function
from .c_matrices import Array
from .c_source import Source, expressible
from .numpy import Program
from .numpy_kernels import allocation, cleared, dropped
from .numpy_matrices import Run, Slots

#: Strides for which one run of steps is compiled; arrays of others are left to NumPy.
MAX_VARIANTS = 8
#: Bytes before an array object's address of its entries.
_HEAD = object.__basicsize__


class CProgram(Program):
    """A plan bound to a dtype, as `Program`, most of its steps compiled."""

    def __init__(self, plan: Plan, dtype: np.dtype[Any], given: bool = False) -> None:
        self._parts: list[_Part] = []
        self._open: _Part | None = None
        super().__init__(plan, dtype, given)

    @staticmethod
    def available() -> None:
        """Raises an Error where there is no C compiler."""
        command()

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
                before, self._runs = self._runs, self._open.before
                super()._add(unit)
                self._runs = before
                return
        self._close()
        super()._add(unit)

    def _compiled(self, step: Step) -> None:
        if self._open is None:
            self._open = _Part(self)
        part = self._open
        before, self._runs = self._runs, part.before
        if self.plan.origin[step.out] is RESULT:
            self._runs.append(allocation(step.out, self.plan.shapes, (), np.empty, self.dtype))
        elif self._birth(step, clear=False):
            part.new.add(step.out)
        self._runs = before
        part.steps.append(step)

    def _end(self, slots: Sequence[int]) -> None:
        if self._open is None:
            super()._end(slots)
        else:
            self._open.after.append(dropped(tuple(slots)))

    def _close(self) -> None:
        part, self._open = self._open, None
        if part is None:
            return
        if part.worthwhile:
            part.place = self._place(part.table)
            self._runs += [*part.before, part.run]
        else:
            self._runs += part.before
            for step in part.steps:
                if step.kind in INTO_ZEROS and step.out not in part.new:
                    self._runs.append(cleared(step.out))
                self._runs.append(self._closure(step))
        self._runs += part.after

    def _finish(self) -> None:
        self._close()


class _Part:
    """A run of steps that is one function of C for every set of strides."""

    def __init__(self, program: CProgram) -> None:
        self.program = program
        self.before: list[Run] = []
        self.after: list[Run] = []
        self.steps: list[Step] = []
        self.new: set[int] = set()
        self.place = 0
        self._made: tuple[list[int], list[int], list[int]] | None = None
        self._variants: dict[Any, Callable[..., int] | None] = {}
        self._closures: list[Run] = []
        self._lock = threading.Lock()

    @property
    def worthwhile(self) -> bool:
        """Is there anything to fuse, or a routine of our own?"""
        return len(self.steps) > 1 or self.steps[0].kind in ("kernel", "over", "trisolve", "einsum")

    def _slots(self) -> tuple[list[int], list[int], list[int]]:
        """Slots that stay where they are in a workspace, those that come with a call, and those of
        these whose strides may be any."""
        if self._made is None:
            read = {a for step in self.steps for a in (step.out, *step.args)}
            stay = sorted([slot for slot in read if self.program.stays(slot)])
            come = sorted(read.difference(stay))
            made = {step.out for step in self.steps}
            # Arrays of a caller may lie anyhow.
            free = [slot for slot in come if self.program.swept or slot not in made]
            self._made = stay, come, free
        return self._made

    def table(self, slots: Slots) -> Any:
        """Addresses of the arrays that stay, for one workspace."""
        stay, _, _ = self._slots()
        addresses = np.array([slots[k].ctypes.data for k in stay], np.uintp)
        return addresses, addresses.ctypes.data

    def run(self, v: Slots) -> None:
        _, come, free = self._slots()
        key = tuple([v[k].strides for k in free])
        try:
            compute = self._variants[key]
        except KeyError:
            compute = self._variant(key, v)
        if compute is None:
            self._by_numpy(v, 0)
            return
        table = v[self.place][1]
        done = compute(0, table, *[id(v[k]) for k in come])
        while done > 0:
            self._step(v, done - 1)
            done = compute(done, table, *[id(v[k]) for k in come])
        if done < 0:
            self._by_numpy(v, -done - 1)

    def _by_numpy(self, v: Slots, first: int) -> None:
        for number in range(first, len(self.steps)):
            self._step(v, number)

    def _step(self, v: Slots, number: int) -> None:
        """One step as NumPy does it, its result where C looks for it."""
        step = self.steps[number]
        if not self._closures:
            self._closures = [self.program._closure(s) for s in self.steps]
        held = v[step.out]
        try:
            if step.kind in INTO_ZEROS:
                held.fill(0)
            self._closures[number](v)
        except np.linalg.LinAlgError as error:
            raise StepError(str(error), step) from error
        if v[step.out] is not held:
            held[...] = v[step.out]
            v[step.out] = held

    def _variant(self, key: Any, v: Slots) -> Callable[..., int] | None:
        with self._lock:
            if key not in self._variants:
                room = len(self._variants) < MAX_VARIANTS
                self._variants[key] = self._compile(v) if room else None
            return self._variants[key]

    def _compile(self, v: Slots) -> Callable[..., int] | None:
        """The function for arrays that lie as these do, None where strides are no whole entries."""
        program = self.program
        plan, dtype = program.plan, program.dtype
        stay, come, _ = self._slots()
        arrays: dict[int, Array] = {}
        for slot in [*stay, *come]:
            array = v[slot]
            if array.dtype != dtype or any(s % dtype.itemsize for s in array.strides):
                return None
            strides = tuple([s // dtype.itemsize for s in array.strides])
            arrays[slot] = Array(array.shape, strides)
        if not all(v[step.out].flags.c_contiguous for step in self.steps):
            return None
        source = Source(plan, self.steps, arrays, dtype, self.new)
        readers: dict[int, set[int]] = {}
        for step in plan.steps:
            for a in step.args:
                readers.setdefault(plan.owner[a], set()).add(step.out)
        returned = {plan.owner[output.slot] for output in plan.outputs}

        def read(slot: int, made: set[int]) -> bool:
            owner = plan.owner[slot]
            return owner in returned or bool(readers.get(owner, set()) - made)

        names = [f"real *p{slot} = (real *)table[{k}];" for k, slot in enumerate(stay)]
        names += [f"real *p{slot} = *(real **)(o{slot} + {_HEAD});" for slot in come]
        given = "".join([f", char *o{slot}" for slot in come])
        text = (
            f"int run(int start, char **table{given}) {{\n{chr(10).join(names)}\n"
            f"switch (start) {{ case 0:;\n{source.body(read)}\n}}\nreturn 0;\n}}\n"
        )
        made: Callable[..., int] = function(text, dtype.char, 1 + len(come))
        return made
