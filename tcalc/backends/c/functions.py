"""Runs of steps, and loops, of a program as functions of C: written when the strides are known."""

from __future__ import annotations

import ctypes
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...plan.failures import StepError
from ...plan.kinds.table import KINDS
from ...plan.steps import Plan, Step
from ...plan.tiles import Sliced, Tiling
from ...support.errors import Error
from ..host.slots import Run, Slots
from ..host.tiles import temporaries
from ..host.workspaces import Workspaces
from .loopnests import Count
from .matrices import CALLS, Frame, StridedArray
from .sharing import MOST, NAME, Cut, Shared, cut, joined
from .source import Source
from .together import Compute, Together

#: Strides for which one run of steps is compiled; arrays of others are left to NumPy.
MAX_VARIANTS = 8
#: Bytes before an array object's address of its entries.
HEAD = object.__basicsize__


def check_addresses() -> None:
    """Raises an Error where array objects do not begin as NumPy's do in CPython."""
    if sys.implementation.name == "cpython":
        array = np.empty(1)
        if ctypes.c_void_p.from_address(id(array) + HEAD).value == array.ctypes.data:
            return
    raise Error('backend="c" needs CPython and NumPy\'s own arrays')


class Used(NamedTuple):
    """Slots of a function: those that stay where they are in a workspace, those that come with a
    call, and those of these whose strides may be any."""

    stay: list[int]
    come: list[int]
    free: list[int]


class _CFunction(ABC):
    """One function of C for every set of strides."""

    def __init__(self, workspaces: Workspaces) -> None:
        self.workspaces = workspaces
        self.plan, self.dtype = workspaces.plan, workspaces.dtype
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
            come = sorted(read.difference(stay))
            made = {step.out for step in self.steps}
            # Arrays of a caller may have any strides.
            free = [slot for slot in come if slot not in made]
            self._used = Used(stay, come, free)
        return self._used

    def slots(self) -> set[int]:
        return {a for step in self.steps for a in (step.out, *step.args)}

    def outside(self, slot: int) -> bool:
        """Does the slot exist outside of the function?"""
        return True

    def table(self, slots: Slots) -> Any:
        """Addresses of the arrays that stay, for one workspace, and what keeps them alive."""
        return self._addresses([slots[k] for k in self.used.stay])

    def _addresses(self, arrays: Sequence[np.ndarray]) -> tuple[Any, int]:
        """The number of threads and, behind it, addresses; and where they stand."""
        found = np.array([self.workspaces.threads, *[a.ctypes.data for a in arrays]], np.uintp)
        return (found, arrays), found.ctypes.data

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

    @property
    def pointers(self) -> int:
        return 1 + len(self.used.come)

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
        dtype = self.dtype
        arrays = {slot: v[slot] for slot in (*self.used.stay, *self.used.come)}
        entries = all(
            array.dtype == dtype and not any(s % dtype.itemsize for s in array.strides)
            for array in arrays.values()
        )
        straight = all(arrays[s.out].flags.c_contiguous for s in self.steps if s.out in arrays)
        return self.text(arrays, v) if entries and straight else None

    @abstractmethod
    def text(self, arrays: Mapping[int, np.ndarray], v: Slots) -> str | None:
        """The function in C, given the arrays outside; None where it cannot be written."""

    def whole(self, body: str, name: str, shared: Shared, held: Sequence[int] = ()) -> str:
        """The function around its body, and before it what threads share.

        Addresses of arrays get a name and their slot's number.
        """
        stay, come, _ = self.used
        names = [f"real *{name}{k} = (real *)table[{n}];" for n, k in enumerate((*stay, *held), 1)]
        names += [f"real *{name}{k} = *(real **)(o{k} + {HEAD});" for k in come]
        given = "".join([f", char *o{k}" for k in come])
        lines = [
            shared.text,
            f"int {NAME}(int start, char **table{given})",
            "{",
            "const long threads = (long)table[0];",
            *names,
            body,
            "return 0;",
            "}",
        ]
        return "\n".join(lines) + "\n"

    def array(self, a: np.ndarray) -> StridedArray:
        return StridedArray(a.shape, tuple([s // self.dtype.itemsize for s in a.strides]))


def read_by_others(plan: Plan) -> Callable[[int, set[int]], bool]:
    """Do other steps than the one that makes a slot and these read it, or the caller?"""
    readers: dict[int, set[int]] = {}
    for step in plan.steps:
        for a in step.args:
            readers.setdefault(plan.owner[a], set()).add(step.out)
    returned = {plan.owner[output.slot] for output in plan.outputs}

    def read(slot: int, made: set[int]) -> bool:
        owner = plan.owner[slot]
        return owner in returned or bool(readers.get(owner, set()) - made)

    return read


class CompiledSteps(_CFunction):
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

    def __init__(self, workspaces: Workspaces) -> None:
        super().__init__(workspaces)
        self.before: list[Run] = []
        self.after: list[Run] = []
        self.new: set[int] = set()
        self.idle = 0
        self._closures: list[Run] = []

    @property
    def worthwhile(self) -> bool:
        """Is there anything to fuse, or a routine of our own?"""
        return len(self.steps) > 1 or self.steps[0].kind in ("kernel", "over", "trisolve", "einsum")

    def run(self, v: Slots) -> None:
        compute = self.compute(v)
        if compute is None:
            for number in range(len(self.steps)):
                self._step(v, number)
            return
        come, table = self.used.come, v[self.place][1]
        done = compute(0, table, *[id(v[k]) for k in come])
        while done:
            self._step(v, done - 1)
            done = compute(done, table, *[id(v[k]) for k in come])

    def _step(self, v: Slots, number: int) -> None:
        """One step as NumPy does it, its result where C looks for it."""
        step = self.steps[number]
        if not self._closures:
            self._closures = [self.workspaces.closure(s) for s in self.steps]
        held = v[step.out]
        try:
            if KINDS[step.kind].into_zeros:
                held.fill(0)
            self._closures[number](v)
        except np.linalg.LinAlgError as error:
            raise StepError(str(error), step) from error
        if v[step.out] is not held:
            held[...] = v[step.out]
            v[step.out] = held

    def text(self, arrays: Mapping[int, np.ndarray], v: Slots) -> str | None:
        known = {slot: self.array(a) for slot, a in arrays.items()}
        frame = Frame(self.plan, known, self.new)
        numbers = {step.out: k for k, step in enumerate(self.steps, 1)}

        def left(step: Step) -> str:
            number = numbers[step.out]
            return f"return {number}; case {number}:;"  # C goes on behind it

        shared = Shared()
        source = Source(frame, self.dtype.char, left, shared)
        for step in self.steps:
            source.add(step)
        body = source.body(read_by_others(self.plan))
        return self.whole(f"switch (start) {{ case 0:;\n{body}\n}}", "p", shared)


class CompiledTiles(_CFunction):
    """A loop over tiles of rows; what exists in it only is memory for one tile.

    Parameters
    ----------
    scratch : int
        The slot with temporaries in buffers.
    other : Run
        The loop as it is run for arrays that no function is written for.
    """

    def __init__(self, workspaces: Workspaces, tiling: Tiling, scratch: int, other: Run) -> None:
        super().__init__(workspaces)
        self.tiling, self.loop, self.scratch, self.other = tiling, tiling.loop, scratch, other
        self.steps = tiling.computing
        self.views = {s.out: (s.args[0], workspaces.closure(s)) for s in tiling.views}
        self.inside = {s.out for s in self.steps if s.out not in self.loop.kept}
        self.sums = {slot: prod(self.plan.shapes[slot]) for slot in sorted(self.loop.sums)}
        self.cut = self._cut()
        self.place = workspaces.place(self.table)

    def slots(self) -> set[int]:
        return {a for step in self.loop.steps for a in (step.out, *step.args)}

    def outside(self, slot: int) -> bool:
        return slot not in self.views and self.plan.owner[slot] not in self.inside

    def table(self, slots: Slots) -> Any:
        """Addresses of what stays, of sums of chunks, and of each thread's memory for a tile."""
        stay = [slots[k] for k in self.used.stay]
        held = [self._temporaries(slots[self.scratch])]
        sums = []
        if self.cut is not None:
            sums = [np.empty((self.cut.chunks, n), self.dtype) for n in self.sums.values()]
            for _ in range(1, self.workspaces.threads):
                held.append(self._temporaries(temporaries(self.tiling, self.dtype)))
        return self._addresses([*stay, *sums, *[a for own in held for a in own.values()]])

    def _temporaries(self, scratch: Sequence[tuple[Sliced, np.ndarray]]) -> dict[int, np.ndarray]:
        """Memory for a tile, by slot; of kernels' results too, which NumPy allocates itself."""
        found = {sliced.slot: array for sliced, array in scratch}
        for sliced in self.tiling.returned_by_tile:
            shape = sliced.shape(self.plan.shapes[sliced.slot], self.loop.tile)
            found[sliced.slot] = np.empty(shape, self.dtype)
        return found

    def run(self, v: Slots) -> None:
        for slot in self.tiling.returned:
            v[slot] = np.empty(self.plan.shapes[slot], self.dtype)
        compute = self.compute(v)
        if compute is None:
            self.other(v)
            return
        compute(0, v[self.place][1], *[id(v[k]) for k in self.used.come])
        for source, bind in self.views.values():
            if self.plan.owner[source] not in self.inside:
                bind(v)

    def text(self, arrays: Mapping[int, np.ndarray], v: Slots) -> str | None:
        tile, loop, itemsize = self.loop.tile, self.loop, self.dtype.itemsize
        held: dict[int, np.ndarray] = self._temporaries(v[self.scratch])
        own = list(held)
        # A function of the table's memory: sharing is the same in all workspaces.
        places = {slot: ("tile", a.ctypes.data) for slot, a in held.items()}
        starts = [f"real *p{slot} = q{slot};" for slot in own]
        for slot, array in arrays.items():
            cut = self.tiling.cut(slot)
            held[slot] = cut.part(array, 0, tile) if cut else array
            step = cut.ratio * array.strides[cut.axis] // itemsize if cut else 0
            starts.append(f"real *p{slot} = q{slot} + r * {step}L;")
        slots: Slots = [held.get(k) for k in range(len(v))]
        for slot, (source, bind) in self.views.items():
            bind(slots)
            held[slot] = slots[slot]
            apart = (held[slot].ctypes.data - held[source].ctypes.data) // itemsize
            starts.append(f"real *p{slot} = p{source} + {apart}L;")
        known = {slot: self._moving(slot, a) for slot, a in held.items()}
        frame = Frame(self.plan, known, (), loop.sums, places)
        written = Source(frame, self.dtype.char, lambda step: "")
        for computing in self.steps:
            written.add(computing)
        if written.leaves:
            return None
        body = [*starts, written.body(read_by_others(self.plan)), "}"]
        return self._over_rows(body, own)

    def _over_rows(self, body: Sequence[str], held: Sequence[int]) -> str:
        """The loop around its body, whose rows threads share where that is worth it."""
        rows, tile, shared = self.loop.rows, self.loop.tile, Shared()
        zeros = [f"memset(q{slot}, 0, {n} * sizeof(real));" for slot, n in self.sums.items()]
        if self.cut is None:
            head = [
                f"for (long r = 0; r < {rows}; r += {tile}) {{",
                f"long t = {rows} - r < {tile} ? {rows} - r : {tile};",
            ]
            return self.whole("\n".join([*zeros, *head, *body]), "q", shared, held)
        first = 1 + len(self.used.stay)
        parts = {slot: f"((real *)table[{first + k}])" for k, slot in enumerate(self.sums)}
        own = [f"real *q{k} = {parts[k]} + chunk * {n}L;" for k, n in self.sums.items()]
        begin = first + len(parts)
        places = [f"{begin + k} + worker * {len(held)}" for k in range(len(held))]
        own += [f"real *q{k} = (real *)table[{at}];" for k, at in zip(held, places, strict=True)]
        head = [
            f"for (long r = first; r < last; r += {tile}) {{",
            f"long t = last - r < {tile} ? last - r : {tile};",
        ]
        blas = any(step.kind in CALLS for step in self.steps)
        work = "\n".join([*own, *zeros, *head, *body])
        call = shared.call(self.cut, work, [("table", "char **")], blas)
        sums = [(f"q{slot}", parts[slot], n, "=") for slot, n in self.sums.items()]
        return self.whole("\n".join([f"{call};", *joined(sums, self.cut.chunks)]), "q", shared)

    def _cut(self) -> Cut | None:
        """The rows in chunks of whole tiles, as many as there is room for their sums."""
        work = sum([step.flops + prod(step.shape) for step in self.steps])
        most = min(MOST, int(work / max(1, 8 * sum(self.sums.values()))))
        return cut(self.loop.rows, work, most, self.loop.tile)

    def _moving(self, slot: int, array: np.ndarray) -> StridedArray:
        found, cut = self.array(array), self.tiling.cut(slot)
        if cut is None:
            return found
        shape = list(found.shape)
        shape[cut.axis] = Count(self.loop.tile, cut.ratio)
        return found._replace(shape=tuple(shape))
