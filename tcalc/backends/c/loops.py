"""A loop in C: one function runs all steps, Python is not entered between them.

What it is given for each input and output is where the first step finds it and how far the next row
is. Every so often it comes back, so that Python can look whether it was interrupted.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from ...plan.steps import Plan, Step
from ...support.arrays import Array
from ...support.rows import Rows
from ..interface import Sweep
from ..numpy.program import bind
from .library import functions
from .loop_layout import Whole
from .loop_memory import LoopMemory, asking
from .loop_text import LEFT, Level, Track, moves
from .objects import HEAD, INTEGER, spelled
from .sharing import NAME
from .together import POINTERS, Together

#: Operations, and entries written, after which a loop lets Python look for interrupts: a fraction
#: of a second.
PAUSE = 1e8
#: Workspaces above this size are freed after every call.
KEPT_BYTES = 1 << 28
#: The numbers that a function is told of each array.
NUMBERS = 4


class Loops:
    """The loops of one program, which are compiled as one library when the first of them runs.

    Where that is done in the background, they run as on NumPy until they are there.
    """

    def __init__(self, dtype: np.dtype[Any], together: Together) -> None:
        self.dtype, self._together = dtype, together
        self._wanted = False
        self._loops: list[CompiledLoop] = []
        self._lock = threading.Lock()

    def loop(self, step: Step) -> CompiledLoop:
        """One more loop."""
        made = CompiledLoop(step, self)
        self._loops.append(made)
        return made

    def compile(self) -> None:
        """Have the functions made that are not there yet."""
        if not self._wanted:
            self._together.do(self._compile)
            self._wanted = True

    def _compile(self) -> None:
        with self._lock:
            missing = [loop for loop in self._loops if loop.made is None]
            wholes = [Whole(self.dtype) for _ in missing]
            pairs = list(zip(missing, wholes, strict=True))
            texts = [_written(loop.plan, whole, loop.conditional) for loop, whole in pairs]
            made = functions(texts, self.dtype.char, POINTERS)
            for (loop, whole), run in zip(pairs, made, strict=True):
                loop.made = run, whole


class CompiledLoop:
    """The plan of a loop's steps as one function, which is a `Sweep`."""

    def __init__(self, step: Step, together: Loops) -> None:
        op, *params, _, read, plan = step.params
        self.plan, self.dtype, self._together = plan, together.dtype, together
        self.conditional = op.iteration(tuple(params), read).until is not None
        self.made: tuple[Any, Whole] | None = None
        self._other: Sweep | None = None
        self._stretch = max(1, int(PAUSE / (1 + cost_of(plan))))
        self._pool: list[LoopMemory] = []

    def sweep(
        self,
        count: int,
        fixed: Mapping[str, Array],
        moving: Mapping[str, Rows],
        into: Sequence[Rows],
        ends: Rows | None = None,
    ) -> int:
        """Run `count` times, as `tcalc.backends.interface.Sweep` says."""
        if not count:
            return 0
        if self.made is None:
            self._together.compile()
        if self.made is None:
            return self._by_numpy().sweep(count, fixed, moving, into, ends)
        run, whole = self.made
        tracks = self._tracks(count, fixed, moving, [*into, *([] if ends is None else [ends])])
        try:
            memory = self._pool.pop()
        except IndexError:
            memory = LoopMemory(whole)
        numbers = [number for _, numbers in tracks for number in numbers]
        given = (ctypes.c_ssize_t * (2 + len(numbers)))(0, 0, *numbers)
        for first in range(0, count, self._stretch):
            given[0], given[1] = first, min(first + self._stretch, count)
            if run(0, memory.address, ctypes.addressof(given)):
                raise memory.answers.failed(count)
            if ends is not None and memory.times[0] < given[1]:
                count = int(memory.times[0])
                break
        if whole.bytes <= KEPT_BYTES:
            self._pool.append(memory)
        return count

    def _tracks(
        self,
        count: int,
        fixed: Mapping[str, Array],
        moving: Mapping[str, Rows],
        into: Sequence[Rows],
    ) -> list[tuple[Array, Sequence[int]]]:
        """For each input and output its array, and what the function is told of it."""
        found: list[tuple[Array, Sequence[int]]] = []
        for slot, name in enumerate(self.plan.inputs):
            dtype = INTEGER if slot in self.plan.integers else self.dtype
            rows = moving.get(name)
            if rows is None:
                array = np.asarray(fixed[name], dtype, order="C")
                found.append((array, (id(array), 0, 0, 0)))
            else:
                found.append(_track(rows, dtype, count))
        found += [_track(rows, self.dtype, count) for rows in into]
        return found

    def _by_numpy(self) -> Sweep:
        if self._other is None:
            self._other = bind(self.plan, self.dtype, swept=True)
        return self._other


def cost_of(plan: Plan) -> float:
    """Operations, and entries written, of one step of a loop."""
    return sum([inner.flops + prod(inner.shape) for inner in plan.steps])


def _written(plan: Plan, whole: Whole, conditional: bool) -> str:
    """The function in C, which leaves the number of steps where it looks for conditions."""
    level = Level(whole, plan)
    tracks = []
    for k in range(len(plan.inputs) + len(plan.outputs) + conditional):
        kind = spelled(INTEGER) if k in plan.integers and k < len(plan.inputs) else "real"
        array, first, apart, mask = [f"given[{2 + NUMBERS * k + j}]" for j in range(NUMBERS)]
        still = k in plan.fixed and k < len(plan.inputs)
        start = f"*({kind} **)({array} + {HEAD}) + {first}"
        tracks.append(Track(start, "" if still else apart, mask))
    inputs = len(plan.inputs)
    ends = tracks.pop() if conditional else None
    after = ["times[0] = t;"] if conditional else []
    body = level.loop(tracks[:inputs], tracks[inputs:], ("given[0]", "given[1]"), ends, after)
    return (
        f"\nint {NAME}(int start, char *w, const long *given)\n"
        f"{{\n{asking(whole)}\n{body.replace(LEFT, 'return 1;')}\nreturn 0;\n}}\n"
    )


def _track(rows: Rows, dtype: np.dtype[Any], count: int) -> tuple[Array, Sequence[int]]:
    """The array object, entries before the first row, entries to the next one, and the mask."""
    array = np.asarray(rows.array, dtype, order="C")
    first, apart, mask = moves(rows.order, count)
    size = array.strides[0] // array.itemsize
    return array, (id(array), first * size, apart * size, mask)
