"""Runs of steps, and loops, of a program as functions of C: written when the strides are known."""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from ...plan.failures import StepError
from ...plan.kinds.table import KINDS
from ...plan.steps import Step
from ...support.records import NamedTuple
from ..host.slots import Run, Slots
from ..host.workspaces import Workspaces
from .frames import Frame, StridedArray
from .held import HeldStep, Memory
from .objects import HEAD, INTEGER, spelled
from .outlining import marked
from .rows import in_vectors
from .sharing import NAME, Shared
from .source import Source, read_by_others
from .together import Compute, Together

#: Kinds of which one step alone is better off in C.
_BETTER = ("kernel", "into", "over", "trisolve", "congruence", "einsum", "loop", "correlate")
#: Strides for which one run of steps is compiled; arrays of others are left to NumPy.
MAX_VARIANTS = 8


class Used(NamedTuple):
    """Slots of a function: those that stay where they are in a workspace, those that come with a
    call, those of these whose strides may be any, and for those that begin in one that comes,
    always at the same entry, which one that is."""

    stay: list[int]
    come: list[int]
    free: list[int]
    inside: dict[int, int]


class Addresses:
    """What a function is given for one workspace, which one call at a time uses.

    Attributes
    ----------
    table : int
        Where the number of threads stands and, behind it, addresses of the arrays that stay, and
        of memory for what is no single array.
    given : ctypes array
        Addresses of the array objects that come with a call.
    objects : int
        Where these stand.
    """

    def __init__(
        self, threads: int, arrays: Sequence[np.ndarray], come: int, held: Sequence[Memory]
    ) -> None:
        places = [a.ctypes.data for a in arrays] + [memory.address for memory in held]
        self._kept = np.array([threads, *places], np.uintp), arrays, held
        self.table: int = self._kept[0].ctypes.data
        self.given = (ctypes.c_void_p * come)()
        self.objects = ctypes.addressof(self.given)


class CFunction(ABC):
    """One function of C for every set of strides."""

    def __init__(self, workspaces: Workspaces) -> None:
        self.workspaces = workspaces
        self.plan, self.dtype = workspaces.plan, workspaces.dtype
        self.integers = workspaces.plan.integral
        self.steps: list[Step] = []
        self.place = 0
        self._used: Used | None = None
        self._variants: dict[Any, Compute | None] = {}
        self.join(Together())

    def join(self, together: Together) -> None:
        """Be compiled together with these, as their last."""
        self.together = together
        together.parts.append(self)

    @property
    def used(self) -> Used:
        if self._used is None:
            read = {slot for slot in self.slots() if self.outside(slot)}
            lives = self.workspaces.lives
            stay = sorted([slot for slot in read if lives.stays(slot)])
            begins = {slot: self.begins(slot) for slot in sorted(read.difference(stay))}
            come = sorted(set(begins.values()))
            made = {step.out for step in self.steps}
            # Arrays of a caller may have any strides.
            free = [slot for slot in come if slot not in made]
            inside = {slot: base for slot, base in begins.items() if slot != base}
            self._used = Used(stay, come, free, inside)
        return self._used

    def begins(self, slot: int) -> int:
        """The slot whose address and strides tell where this one begins: of a view what it is a
        view of, and of all slots in the memory of an output that one.
        """
        root = self._root(slot)
        home = self.plan.home[root]
        return root if home is None or home >= 0 else self.plan.outputs[-1 - home].slot

    def _root(self, slot: int) -> int:
        views = self.workspaces.views
        found = slot
        while found in views:
            found = views[found].args[0]
        return slot if self.workspaces.lives.stays(found) else found

    def _apart(self, slot: int, v: Slots) -> int:
        """Entries from where the slot that it begins in begins."""
        view, whole = v[slot], v[self._root(slot)]
        apart: int = (view.ctypes.data - whole.ctypes.data) // view.itemsize
        return apart

    def slots(self) -> set[int]:
        return {a for step in self.steps for a in (step.out, *step.args)}

    def outside(self, slot: int) -> bool:
        """Does the slot exist outside of the function?"""
        return True

    def addresses(self, slots: Slots) -> Addresses:
        """Of the arrays that stay, for one workspace."""
        return self._addresses([slots[k] for k in self.used.stay])

    def _addresses(self, arrays: Sequence[np.ndarray], held: Sequence[Memory] = ()) -> Addresses:
        return Addresses(self.workspaces.threads, arrays, len(self.used.come), held)

    def called(self, compute: Compute, v: Slots, start: int = 0) -> int:
        """What C returns: 0, or the number of the step that is left to Python."""
        at: Addresses = v[self.place]
        at.given[:] = [id(v[k]) for k in self.used.come]
        return compute(start, at.table, at.objects)

    def compute(self, v: Slots) -> Compute | None:
        """The function for arrays that lie as these do, None where NumPy does the work."""
        key = self.key(v)
        try:
            return self._variants[key]
        except KeyError:
            with self.together.lock:
                if self.missing(v):
                    self.together.missed(self, v)
                return self._variants.get(key)

    def made(self, v: Slots) -> Compute | None:
        """The function for arrays that lie so, where it is there."""
        return self._variants.get(self.key(v))

    def key(self, v: Slots) -> Any:
        """What tells apart how arrays lie."""
        return tuple([v[k].strides for k in self.used.free])

    def missing(self, v: Slots) -> bool:
        """Is there no function for arrays that lie so, but room for one?"""
        return len(self._variants) < MAX_VARIANTS and self.key(v) not in self._variants

    def keep(self, v: Slots, made: Compute | None) -> None:
        self._variants[self.key(v)] = made

    def written(self, v: Slots) -> str | None:
        """The function in C for arrays that lie so; None where NumPy does the work."""
        stay, come, _, inside = self.used
        arrays = {slot: v[slot] for slot in (*stay, *come, *inside)}
        entries = all(
            array.dtype == self.kind(slot) and not any(s % array.itemsize for s in array.strides)
            for slot, array in arrays.items()
        )
        straight = all(arrays[s.out].flags.c_contiguous for s in self.steps if s.out in arrays)
        return self.text(arrays, v) if entries and straight else None

    @property
    def bytes(self) -> int:
        """Memory that it has in a workspace besides slots."""
        return 0

    @abstractmethod
    def text(self, arrays: Mapping[int, np.ndarray], v: Slots) -> str | None:
        """The function in C, given the arrays outside; None where it cannot be written."""

    def whole(
        self, body: str, name: str, shared: Shared, v: Slots, held: Sequence[int] = ()
    ) -> str:
        """The function around its body, and before it what threads share.

        Addresses of arrays get a name and their slot's number.
        """
        stay, come, *_ = self.used
        names = [
            self.pointer(name, k, f"(void *)table[{n}]") for n, k in enumerate((*stay, *held), 1)
        ]
        names += [
            self.pointer(name, k, f"*(void **)(given[{n}] + {HEAD})") for n, k in enumerate(come)
        ]
        names += self._inside(name, v)
        head = f"{shared.text}\nint {NAME}(int start, char **table, char **given)\n{{"
        names.append("const long threads = (long)table[0];")
        return "\n".join([head, *names, body, "return 0;", "}\n"])

    def _inside(self, name: str, v: Slots) -> list[str]:
        """Pointers to slots that begin in others that come with a call."""
        return [
            self.pointer(name, slot, f"{name}{base} + {self._apart(slot, v)}L")
            for slot, base in self.used.inside.items()
        ]

    def pointer(self, name: str, slot: int, start: str) -> str:
        """C for a pointer to a slot's entries."""
        return f"{self.spelled(slot)} *{name}{slot} = {start};"

    def nest(self, text: str, slots: Collection[int]) -> str:
        """A nest of loops over these slots, marked where it may become a function of reals."""
        return text if self.integers.intersection(slots) else marked(text)

    def kind(self, slot: int) -> np.dtype[Any]:
        return INTEGER if slot in self.integers else self.dtype

    def spelled(self, slot: int) -> str:
        """The type of a slot's entries in C."""
        return spelled(self.kind(slot))

    def array(self, a: np.ndarray) -> StridedArray:
        return StridedArray(a.shape, tuple([s // a.itemsize for s in a.strides]))


class CompiledSteps(CFunction):
    """A run of steps.

    Attributes
    ----------
    before, after : list of Run
        What is bound before it and dropped after it.
    new : set of int
        Results in memory that is new and zero.
    idle : int
        Bytes that are dropped after it, of results that it could have dropped.
    """

    def __init__(self, workspaces: Workspaces, held: Mapping[int, HeldStep]) -> None:
        super().__init__(workspaces)
        self._held = held
        self.before: list[Run] = []
        self.after: list[Run] = []
        self.new: set[int] = set()
        self.idle = 0
        self._closures: list[Run] = []

    @property
    def worthwhile(self) -> bool:
        """Is there anything to fuse, or a loop or routine of our own, or memory that is held?"""
        only = self.steps[0]
        better = (
            only.kind in _BETTER
            or only.out in self._held
            or (only.kind == "ufunc" and in_vectors(only.params[0]))
        )
        return better or len(self.steps) > 1

    @property
    def held(self) -> dict[int, HeldStep]:
        """Its steps with results that are no single arrays, by slot, and those of others."""
        slots = [a for step in self.steps for a in (*step.args, step.out)]
        return {slot: self._held[slot] for slot in slots if slot in self._held}

    @property
    def bytes(self) -> int:
        made = [self._held[step.out] for step in self.steps if step.out in self._held]
        return sum([step.bytes for step in made])

    def slots(self) -> set[int]:
        return super().slots().difference(self._held)

    def addresses(self, slots: Slots) -> Addresses:
        """Of the arrays that stay, and of what is no single array, for one workspace."""
        return self._addresses([slots[k] for k in self.used.stay], [slots[k] for k in self.held])

    def run(self, v: Slots) -> None:
        compute = self.compute(v)
        if compute is None:
            for number in range(len(self.steps)):
                self._step(v, number)
            return
        done = self.called(compute, v)
        while done:
            step = self.steps[done - 1]
            made = self._held.get(step.out)
            error = made.failed(v[step.out]) if made else None
            if error is not None:
                self._failed(error, step)
            self._step(v, done - 1)
            done = self.called(compute, v, done)

    def _failed(self, error: BaseException, step: Step) -> NoReturn:
        if isinstance(error, np.linalg.LinAlgError):
            raise StepError(str(error), step) from error
        raise error

    def _step(self, v: Slots, number: int) -> None:
        """One step as NumPy does it, its result where C looks for it."""
        step = self.steps[number]
        if not self._closures:
            self._closures = [self.workspaces.closure(s) for s in self.steps]
        memory = v[step.out]
        try:
            if KINDS[step.kind].into_zeros:
                memory.fill(0)
            self._closures[number](v)
        except np.linalg.LinAlgError as error:
            self._failed(error, step)
        if step.out in self._held:
            memory.take(v[step.out])
        elif v[step.out] is not memory:
            memory[...] = v[step.out]
        v[step.out] = memory

    def text(self, arrays: Mapping[int, np.ndarray], v: Slots) -> str | None:
        known = {slot: self.array(a) for slot, a in arrays.items()}
        frame = Frame(self.plan, known, self.new, computed=self.steps, held=self._held)
        numbers = {step.out: k for k, step in enumerate(self.steps, 1)}

        def left(step: Step) -> str:
            number = numbers[step.out]
            return f"return {number}; case {number}:;"  # C goes on behind it

        shared = Shared(self.spelled)
        source = Source(frame, self.dtype.char, left, shared)
        for step in self.steps:
            made = self._held.get(step.out)
            if made is None:
                source.add(step)
            else:
                given = [arrays[a] for a in step.args]
                source.call(step, made.text(frame, given, numbers[step.out]))
        body = source.body(read_by_others(self.plan), self.nest)
        first = 1 + len(self.used.stay)
        memory = [f"real *p{k} = (void *)table[{n}];" for n, k in enumerate(self.held, first)]
        whole = "\n".join([*memory, f"switch (start) {{ case 0:;\n{body}\n}}"])
        return self.whole(whole, "p", shared, v)
