"""Where all that the steps of a loop hand to each other lies: in one workspace of its function.

The places are known when the function is written, so that its text has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from ...plan.steps import BUFFER, CONST, INPUT, VIEW, Plan, Step
from ...support.arrays import Array, Sizes
from ...support.records import NamedTuple
from ...support.rows import StateRows
from ..numpy.kernels import KERNELS
from .asked import Question
from .frames import Frame, StridedArray
from .objects import INTEGER, spelled

_ALIGN = 64


def strided(a: Array) -> StridedArray:
    return StridedArray(a.shape, tuple([s // a.itemsize for s in a.strides]))


class Place(NamedTuple):
    """Where an array begins, in bytes from where the workspace does; as text, in C."""

    at: int
    dtype: np.dtype[Any]

    def __str__(self) -> str:
        return f"({spelled(self.dtype)} *)(w + {self.at}L)"

    def behind(self, entries: int) -> Place:
        """So many entries further."""
        return self._replace(at=self.at + entries * self.dtype.itemsize)


class Whole:
    """What all loops in one function share.

    Attributes
    ----------
    bytes : int
        The size of the workspace.
    constants : list
        Places in it, and what stands there from the start.
    questions : list of Question
        What is left to Python.
    depth : int
        How many loops stand in one another.
    """

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype
        self.bytes = self.depth = 0
        self.constants: list[tuple[int, Array]] = []
        self.questions: list[Question] = []

    def place(self, entries: int, dtype: np.dtype[Any]) -> Place:
        """New memory in the workspace."""
        found = Place(self.bytes, dtype)
        self.bytes += -(-max(1, entries) * dtype.itemsize // _ALIGN) * _ALIGN
        return found

    def memory(self, entries: int, dtype: np.dtype[Any]) -> str:
        """C for new memory in the workspace."""
        return str(self.place(entries, dtype))

    @cached_property
    def ends(self) -> tuple[Place, Place]:
        """Behind all else: the address of what answers questions, and the step of every loop."""
        return self.place(1, INTEGER), self.place(self.depth, INTEGER)

    def constant(self, array: Array) -> str:
        self.constants.append((self.bytes, array))
        return self.memory(array.size, array.dtype)


class Layout:
    """The slots of one plan.

    Attributes
    ----------
    arrays : dict of int to numpy.ndarray
        By slot an array that lies as it does, in memory that is never touched. Behind the plan's
        own slots come, from `first` on, the rows that its outputs are wanted in.
    places : dict of int to str
        C for where they begin, but of inputs and these rows.
    integral : frozenset of int
        Slots that hold integers.
    states : dict of int to LoopStates
        By the slot of an inner loop.
    """

    def __init__(self, plan: Plan, whole: Whole) -> None:
        self.plan, self.whole, self.first = plan, whole, len(plan.shapes)
        self.arrays: dict[int, Array] = {}
        self.places: dict[int, str] = {}
        self.states: dict[int, LoopStates] = {}
        self._parts: dict[int, dict[int, tuple[object, Array]]] = {}
        self._blocks: dict[int, str] = {}
        self._apart: dict[int, Any] = {}
        self._own = _Sharing(plan, whole)
        self.integral = plan.integral
        self._lay()
        self.frame = Frame(
            plan,
            {k: strided(a) for k, a in self.arrays.items()},
            places=self._apart,
            in_steps=True,
            computed=plan.steps,
        )

    def kind(self, slot: int) -> str:
        return spelled(self.arrays[slot].dtype)

    def parts(self, slot: int) -> list[Array]:
        """Of a step with several results, arrays that lie as they do, in order."""
        return [array for _, array in self._parts.get(slot, {}).values()]

    def direct(self, number: int) -> bool:
        """Does a step write an output where it is wanted?"""
        slot, perm = self.plan.outputs[number]
        home = self.plan.home[self.plan.owner[slot]]
        return perm is None and home == -1 - number and self.plan.origin[slot] is BUFFER

    def _lay(self) -> None:
        plan, dtype = self.plan, self.whole.dtype
        used = {a for step in plan.steps for a in (step.out, *step.args)}
        used |= {output.slot for output in plan.outputs}
        used |= {plan.owner[slot] for slot in used}
        for slot in sorted(used):
            if plan.origin[slot] is INPUT:
                self.arrays[slot] = np.empty(plan.shapes[slot], self._dtype(slot))
            elif plan.origin[slot] is CONST:
                array = np.array(plan.consts[slot], self._dtype(slot), order="C")
                self.arrays[slot], self.places[slot] = array, self.whole.constant(array)
        for k, (slot, perm) in enumerate(plan.outputs):
            shape = plan.shapes[slot]
            shape = shape if perm is None else tuple([shape[axis] for axis in perm])
            self.arrays[self.first + k] = np.empty(shape, dtype)
        aliases: dict[int, list[int]] = {}
        for slot in sorted(used):
            if plan.owner[slot] != slot and plan.origin[slot] is BUFFER:
                aliases.setdefault(plan.owner[slot], []).append(slot)
        for number, step in enumerate(plan.steps):
            if plan.origin[step.out] is VIEW:
                self._view(step)
            elif step.kind == "loop":
                self._loop(step)
            elif step.kind == "kernel" and not step.args:
                self._constant(step)
            else:
                self._put(step.out, self._result(step))
            for slot in aliases.get(step.out, ()):
                self._put(slot, f"p{step.out}")
            self._own.end(number)

    def _constant(self, step: Step) -> None:
        """The result of an operator without operands, which is there from the start."""
        slots: Any = {}
        KERNELS[step.kind](step, self.whole.dtype)(slots)
        array = np.ascontiguousarray(slots[step.out], self.whole.dtype).reshape(step.shape)
        self.arrays[step.out], self.places[step.out] = array, self.whole.constant(array)

    def _dtype(self, slot: int) -> np.dtype[Any]:
        return INTEGER if slot in self.integral else self.whole.dtype

    def _put(self, slot: int, place: str) -> None:
        self.places[slot] = place
        self.arrays[slot] = np.empty(self.plan.shapes[slot], self._dtype(slot))

    def _result(self, step: Step) -> str:
        """C for the memory of a step's result."""
        plan, dtype, slot = self.plan, self._dtype(step.out), step.out
        home = plan.home[slot]
        if step.kind == "kernels":
            self._several(step)
        if home is None:
            self._apart[slot], place = self._own.memory(slot, prod(step.shape), dtype)
            return place
        if home < 0 and self.direct(-1 - home):
            return f"p{self.first - 1 - home}"
        if home not in self._blocks:
            size = plan.blocks[home] // dtype.itemsize if home >= 0 else prod(step.shape)
            self._blocks[home] = self.whole.memory(size, dtype)
        return self._blocks[home]

    def _several(self, step: Step) -> None:
        """The results of a step, one behind the other."""
        op, *params = step.params
        shapes = op.meaning.shape(tuple(params), *[self.plan.shapes[a] for a in step.args])
        found, done = self._parts.setdefault(step.out, {}), 0
        for index, shape in enumerate(shapes):
            found[index] = f"p{step.out} + {done}L", np.empty(shape, self.whole.dtype)
            done += prod(shape)

    def _loop(self, step: Step) -> None:
        shapes = [self.plan.shapes[a] for a in step.args]
        self.states[step.out] = LoopStates.of(step, shapes, self.whole)

    def _view(self, step: Step) -> None:
        source = step.args[0]
        if step.kind == "part":
            parts: Any = self._parts.get(source) or self.states[source].parts
            place, self.arrays[step.out] = parts[step.params[0]]
            self.places[step.out] = str(place)
            return
        slots: Any = {source: self.arrays[source]}
        KERNELS[step.kind](step, self.whole.dtype)(slots)
        array = self.arrays[step.out] = slots[step.out]
        self.places[step.out] = f"p{source} + {_apart(array, self.arrays[source])}L"


class LoopStates(NamedTuple):
    """Memory of a loop in a step: for its states, and what each of its outputs is of that.

    Attributes
    ----------
    histories : dict
        For each of its states, by number, C and an array.
    ended : dict
        Outputs that it leaves when it ends, because it depends on the number of steps where they
        lie.
    parts : dict
        For each output that is read, by number, C and an array.
    """

    histories: dict[int, tuple[Place, Array]]
    ended: dict[int, Place]
    parts: dict[int, tuple[Place, Array]]

    @staticmethod
    def of(step: Step, shapes: Sequence[Sizes], whole: Whole) -> LoopStates:
        """New memory, for operands of these shapes."""
        op, *params, _, read, _ = step.params
        once = op.iteration(tuple(params), read)
        n, dtype = once.results, whole.dtype
        found = LoopStates({}, {}, {})
        histories, ended, parts = found
        for k, at in rows_of(step).items():
            array = np.empty((at.held, *shapes[k]), dtype)
            place = whole.place(array.size, dtype)
            histories[k] = place, array
            if k == n:
                ended[3 * n] = whole.place(1, dtype)
                parts[3 * n] = ended[3 * n], np.empty((), dtype)
                continue
            pieces = {k: array[at.last, ...]}
            if once.bound is not None:
                ended[k] = whole.place(array[0].size, dtype)
                parts[k], pieces = (ended[k], np.empty(array.shape[1:], dtype)), {}
            if at.kept:
                after, before = at.histories
                pieces |= {n + k: array[after], 2 * n + k: array[before]}
            for index, piece in pieces.items():
                parts[index] = place.behind(_apart(piece, array)), piece
        return found


def rows_of(step: Step) -> dict[int, StateRows]:
    """Where the states of an inner loop lie, by number."""
    op, *params, count, read, _ = step.params
    once = op.iteration(tuple(params), read)
    n = once.results
    kept = {k % n for k in read if n <= k < 3 * n}
    return {k: StateRows(count, k in kept, once.backward) for k in once.following}


def _apart(view: Array, whole: Array) -> int:
    """Entries between where two arrays begin."""
    found: int = (view.ctypes.data - whole.ctypes.data) // whole.itemsize
    return found


class _Sharing:
    """Memory of the workspace for results that the plan does not place.

    Those of equal size that are not needed together share it.
    """

    def __init__(self, plan: Plan, whole: Whole) -> None:
        self._plan, self._whole = plan, whole
        self._last: dict[int, int] = {}
        for number, step in enumerate(plan.steps):
            for slot in (step.out, *step.args):
                self._last[plan.owner[slot]] = number
        for output in plan.outputs:
            self._last[plan.owner[output.slot]] = len(plan.steps)
        self._ending: dict[int, list[int]] = {}
        self._free: dict[Any, list[tuple[Any, str]]] = {}
        self._held: dict[int, tuple[Any, tuple[Any, str]]] = {}

    def memory(self, slot: int, entries: int, dtype: np.dtype[Any]) -> tuple[Any, str]:
        """What tells the memory apart, and C for it."""
        key = entries, dtype
        # What is computed once, before the first step, may not lie where a step writes.
        waiting = None if slot in self._plan.fixed else self._free.get(key)
        found = waiting.pop() if waiting else (("own", slot), self._whole.memory(entries, dtype))
        if slot not in self._plan.fixed:
            self._held[slot] = key, found
            self._ending.setdefault(self._last[slot], []).append(slot)
        return found

    def end(self, number: int) -> None:
        """A step is done."""
        for slot in self._ending.pop(number, ()):
            key, found = self._held.pop(slot)
            self._free.setdefault(key, []).append(found)
