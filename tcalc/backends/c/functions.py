"""Runs of steps, and loops, of a program as functions of C: written when the strides are known."""

from __future__ import annotations

import ctypes
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from ...plan.failures import StepError
from ...plan.kinds.table import KINDS
from ...plan.steps import RESULT, VIEW, Loop, Plan, Step
from ...support.errors import Error
from ..numpy.kernels import KERNELS
from ..numpy.matrices import Run, Slots
from ..numpy.tiles import Tiles
from .library import function
from .loopnests import Count
from .matrices import Array, Frame
from .source import Source

#: Strides for which one run of steps is compiled; arrays of others are left to NumPy.
MAX_VARIANTS = 8
#: Bytes before an array object's address of its entries.
_HEAD = object.__basicsize__

Compute = Callable[..., int]


def check_addresses() -> None:
    """Raises an Error where array objects do not begin as NumPy's do in CPython."""
    if sys.implementation.name == "cpython":
        array = np.empty(1)
        if ctypes.c_void_p.from_address(id(array) + _HEAD).value == array.ctypes.data:
            return
    raise Error('backend="c" needs CPython and NumPy\'s own arrays')


class Owner(Protocol):
    """The program that parts belong to."""

    plan: Plan
    dtype: np.dtype[Any]

    @property
    def swept(self) -> bool: ...
    def stays(self, slot: int) -> bool: ...
    def closure(self, step: Step) -> Run: ...
    def place(self, made: Callable[[Slots], Any]) -> int: ...


class Used(NamedTuple):
    """Slots of a function: those that stay where they are in a workspace, those that come with a
    call, and those of these whose strides may be any."""

    stay: list[int]
    come: list[int]
    free: list[int]


class _Compiled(ABC):
    """One function of C for every set of strides."""

    def __init__(self, program: Owner) -> None:
        self.program = program
        self.steps: list[Step] = []
        self.place = 0
        self._used: Used | None = None
        self._variants: dict[Any, Compute | None] = {}
        self._lock = threading.Lock()

    @property
    def used(self) -> Used:
        if self._used is None:
            read = {slot for slot in self.slots() if self.outside(slot)}
            stay = sorted([slot for slot in read if self.program.stays(slot)])
            come = sorted(read.difference(stay))
            made = {step.out for step in self.steps}
            # Arrays of a caller may lie anyhow.
            free = [slot for slot in come if self.program.swept or slot not in made]
            self._used = Used(stay, come, free)
        return self._used

    def slots(self) -> set[int]:
        return {a for step in self.steps for a in (step.out, *step.args)}

    def outside(self, slot: int) -> bool:
        """Does the slot exist outside of the function?"""
        return True

    def table(self, slots: Slots) -> Any:
        """Addresses of the arrays that stay, for one workspace, and what keeps them alive."""
        return _addresses([slots[k] for k in self.used.stay])

    def compute(self, v: Slots) -> Compute | None:
        """The function for arrays that lie as these do, None where NumPy does the work."""
        key = tuple([v[k].strides for k in self.used.free])
        try:
            return self._variants[key]
        except KeyError:
            with self._lock:
                if key not in self._variants and len(self._variants) < MAX_VARIANTS:
                    self._variants[key] = self._compiled(v)
                return self._variants.get(key)

    def _compiled(self, v: Slots) -> Compute | None:
        dtype = self.program.dtype
        arrays = {slot: v[slot] for slot in (*self.used.stay, *self.used.come)}
        entries = all(
            array.dtype == dtype and not any(s % dtype.itemsize for s in array.strides)
            for array in arrays.values()
        )
        straight = all(arrays[s.out].flags.c_contiguous for s in self.steps if s.out in arrays)
        text = self.text(arrays, v) if entries and straight else None
        if text is None:
            return None
        made: Compute = function(text, dtype.char, 1 + len(self.used.come))
        return made

    @abstractmethod
    def text(self, arrays: Mapping[int, np.ndarray], v: Slots) -> str | None:
        """The function in C, given the arrays outside; None where it cannot be written."""

    def whole(self, body: str, name: str, held: Sequence[int] = ()) -> str:
        """The function around its body; addresses of arrays get a name and their slot's number."""
        stay, come, _ = self.used
        names = [f"real *{name}{k} = (real *)table[{n}];" for n, k in enumerate((*stay, *held))]
        names += [f"real *{name}{k} = *(real **)(o{k} + {_HEAD});" for k in come]
        given = "".join([f", char *o{k}" for k in come])
        lines = [
            "",
            f"int run(int start, char **table{given})",
            "{",
            *names,
            body,
            "return 0;",
            "}",
        ]
        return "\n".join(lines) + "\n"

    def array(self, a: np.ndarray) -> Array:
        return Array(a.shape, tuple([s // self.program.dtype.itemsize for s in a.strides]))

    def read_by_others(self) -> Callable[[int, set[int]], bool]:
        """Do other steps than the one that makes a slot and these read it, or the caller?"""
        plan = self.program.plan
        readers: dict[int, set[int]] = {}
        for step in plan.steps:
            for a in step.args:
                readers.setdefault(plan.owner[a], set()).add(step.out)
        returned = {plan.owner[output.slot] for output in plan.outputs}

        def read(slot: int, made: set[int]) -> bool:
            owner = plan.owner[slot]
            return owner in returned or bool(readers.get(owner, set()) - made)

        return read


def _addresses(arrays: Sequence[np.ndarray]) -> tuple[Any, int]:
    found = np.array([a.ctypes.data for a in arrays], np.uintp)
    return (found, arrays), found.ctypes.data


class Part(_Compiled):
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

    def __init__(self, program: Owner) -> None:
        super().__init__(program)
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
            self._by_numpy(v, 0)
            return
        come, table = self.used.come, v[self.place][1]
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
            self._closures = [self.program.closure(s) for s in self.steps]
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
        frame = Frame(self.program.plan, known, self.new)
        source = Source(frame, self.steps, self.program.dtype.char)
        body = source.body(self.read_by_others())
        return self.whole(f"switch (start) {{ case 0:;\n{body}\n}}", "p")


class TiledPart(_Compiled):
    """A loop over tiles of rows; what exists in it only is memory for one tile."""

    def __init__(self, program: Owner, loop: Loop) -> None:
        super().__init__(program)
        plan, self.loop = program.plan, loop
        self.steps = [s for s in loop.steps if plan.origin[s.out] is not VIEW]
        views = [s for s in loop.steps if plan.origin[s.out] is VIEW]
        self.views = {s.out: (s.args[0], KERNELS[s.kind](s, program.dtype)) for s in views}
        self.tiles = tiles = Tiles(plan, loop, program.dtype)
        results = {s.out for s in self.steps if plan.origin[s.out] is RESULT}
        self.passing = sorted(results.difference(tiles.results))
        self.inside = {s.out for s in tiles.passing} | set(self.passing)
        self.scratch = program.place(lambda slots: tiles.temporaries())
        self.tiled = tiles.run(self.scratch)
        self.place = program.place(self.table)

    def slots(self) -> set[int]:
        return {a for step in self.loop.steps for a in (step.out, *step.args)}

    def outside(self, slot: int) -> bool:
        return slot not in self.views and self.program.plan.owner[slot] not in self.inside

    def table(self, slots: Slots) -> Any:
        stay = [slots[k] for k in self.used.stay]
        return _addresses([*stay, *self._temporaries(slots).values()])

    def _temporaries(self, slots: Slots) -> dict[int, np.ndarray]:
        """Memory for a tile, by slot; of kernels' results too, which NumPy allocates itself."""
        found = {sliced.slot: array for sliced, array in slots[self.scratch]}
        for slot in self.passing:
            shape = list(self.program.plan.shapes[slot])
            axis = self._axis(slot, len(shape))
            shape[axis] = shape[axis] // self.loop.rows * self.loop.tile
            found[slot] = np.empty(shape, self.program.dtype)
        return found

    def _axis(self, slot: int, ndim: int) -> int:
        """The axis along which a tile has a part of the array, or -1."""
        mode = self.loop.modes.get(slot, "whole")
        return {"rows": 0, "columns": ndim - 1, "whole": -1}[mode]

    def run(self, v: Slots) -> None:
        shapes, dtype = self.program.plan.shapes, self.program.dtype
        for slot in self.tiles.results:
            v[slot] = np.empty(shapes[slot], dtype)
        compute = self.compute(v)
        if compute is None:
            self.tiled(v)
            return
        compute(0, v[self.place][1], *[id(v[k]) for k in self.used.come])
        for source, bind in self.views.values():
            if self.program.plan.owner[source] not in self.inside:
                bind(v)

    def text(self, arrays: Mapping[int, np.ndarray], v: Slots) -> str | None:
        tile, loop, plan = self.loop.tile, self.loop, self.program.plan
        itemsize = self.program.dtype.itemsize
        held: dict[int, np.ndarray] = self._temporaries(v)
        temporaries = list(held)
        # A function of the table's memory: sharing is the same in all workspaces.
        places = {slot: ("tile", a.ctypes.data) for slot, a in held.items()}
        starts = [f"real *p{slot} = q{slot};" for slot in temporaries]
        for slot, array in arrays.items():
            axis = self._axis(slot, array.ndim)
            held[slot] = part = array if axis < 0 else _first(array, axis, loop.rows, tile)
            step = 0 if axis < 0 else part.shape[axis] // tile * array.strides[axis] // itemsize
            starts.append(f"real *p{slot} = q{slot} + r * {step}L;")
        slots: Slots = [held.get(k) for k in range(len(v))]
        for slot, (source, bind) in self.views.items():
            bind(slots)
            held[slot] = slots[slot]
            apart = (held[slot].ctypes.data - held[source].ctypes.data) // itemsize
            starts.append(f"real *p{slot} = p{source} + {apart}L;")
        known = {slot: self._moving(slot, a) for slot, a in held.items()}
        frame = Frame(plan, known, (), loop.sums, places)
        written = Source(frame, self.steps, self.program.dtype.char)
        if written.returns:
            return None
        sizes = {slot: arrays[slot].size for slot in sorted(loop.sums)}
        lines = [f"memset(q{slot}, 0, {n} * sizeof(real));" for slot, n in sizes.items()]
        lines += [
            f"for (long r = 0; r < {loop.rows}; r += {tile}) {{",
            f"long t = {loop.rows} - r < {tile} ? {loop.rows} - r : {tile};",
            *starts,
            written.body(self.read_by_others()),
            "}",
        ]
        return self.whole("\n".join(lines), "q", temporaries)

    def _moving(self, slot: int, array: np.ndarray) -> Array:
        found, axis = self.array(array), self._axis(slot, array.ndim)
        if axis < 0:
            return found
        count = Count(self.loop.tile, array.shape[axis] // self.loop.tile)
        return found._replace(shape=(*found.shape[:axis], count, *found.shape[axis + 1 :]))


def _first(array: np.ndarray, axis: int, rows: int, tile: int) -> np.ndarray:
    """The part of an array that the first tile sees."""
    stop = array.shape[axis] // rows * tile
    return array[:stop] if axis == 0 else array[..., :stop]
