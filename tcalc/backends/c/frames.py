"""What all C of one function knows: where arrays lie, and how items of batches are reached."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from math import prod
from typing import Any

from ...plan.steps import VIEW, Plan, Step
from ...support.arrays import Sizes
from ...support.records import NamedTuple
from .loopnests import Nest
from .sharing import BATCH, items
from .statements import COperand, CStatement, aligned


class StridedArray(NamedTuple):
    """An array as the function finds it; strides in entries."""

    shape: Sizes
    strides: Sizes


class Frame:
    """What a function knows.

    Attributes
    ----------
    arrays : mapping
        All slots that are read and written.
    cleared : collection of int
        Results of `embed` that are zero from the start.
    adding : collection of int
        Sums that are added to what is there.
    places : mapping
        What tells memory apart that the plan does not place.
    in_steps : bool
        Is it a step of a loop?
    computed : iterable of Step
        Those of this function, whose results have memory of their own.
    held : collection of int
        Slots that are no single arrays.
    """

    def __init__(
        self,
        plan: Plan,
        arrays: Mapping[int, StridedArray],
        cleared: Collection[int] = (),
        adding: Collection[int] = (),
        places: Mapping[int, Any] | None = None,
        in_steps: bool = False,
        computed: Iterable[Step] = (),
        held: Collection[int] = (),
    ) -> None:
        self.plan, self.arrays, self.held = plan, arrays, held
        self.cleared, self.adding, self.places = cleared, adding, places or {}
        self._in_steps = in_steps
        self._computed = {step.out for step in computed}
        self._loops = {step.out for step in plan.by_kind.get("loop", ())}

    def memory(self, slot: int) -> Any:
        """What tells memory apart: a block of the workspace, an output, or an array."""
        owner = self.plan.owner[slot]
        home = self.plan.home[owner]
        return self.places.get(owner, ("array", owner)) if home is None else home

    def touched(self, slots: Iterable[int]) -> set[Any]:
        """The memory that slots lie in, or may lie in where Python's steps may return operands."""
        found: set[int] = set()
        waiting = [self.plan.owner[slot] for slot in slots]
        while waiting:
            owner = waiting.pop()
            if owner not in found:
                found.add(owner)
                waiting += () if owner in self._computed else self.plan.returned.get(owner, ())
        return set(map(self.memory, found))

    def alone(self, slot: int) -> bool:
        """Does the slot begin where its memory begins, which nothing else has?"""
        owner = self.plan.owner[slot]
        own = owner in self._computed or owner not in self.plan.returned
        return own and self.plan.origin[slot] is not VIEW

    def product(self, step: Step) -> str:
        """The routine that multiplies, another one in steps and for what steps left."""
        left = self._loops.intersection([self.plan.owner[a] for a in step.args])
        return "product_of_step" if self._in_steps or left else "product"

    def shape(self, step: Step) -> Sizes:
        return self.arrays[step.out].shape

    def result(self, step: Step) -> COperand:
        return self.operand(step.out, self.shape(step))

    def operand(self, slot: int, shape: Sizes) -> COperand:
        """A slot that is broadcast to a shape."""
        found = self.arrays[slot]
        return COperand(slot, aligned(shape, found.shape, found.strides))

    def copied(self, source: int, step: Step) -> str:
        """Loops that copy an array over a step's result, nothing where it is there already."""
        if self.memory(source) == self.memory(step.out):
            return ""
        shape = self.shape(step)
        copy = CStatement(self.result(step), "{0}", (self.operand(source, shape),))
        return Nest(shape, [copy], {step.out}).text()


def lies(a: StridedArray) -> bool:
    """Can BLAS read the matrix, or the vector as one?"""
    if len(a.shape) == 1:
        return a.shape[0] == 1 or a.strides[0] >= 1
    (m, n), (r, c) = a.shape, a.strides
    by_rows = (n == 1 or c == 1) and (m == 1 or r >= n)
    return by_rows or ((m == 1 or r == 1) and (n == 1 or c >= m))


def strides(a: StridedArray) -> str:
    """Row and column strides, where an axis of one entry takes whatever fits."""
    (m, n), (r, c) = a.shape, a.strides
    if (n == 1 or c == 1) and (m == 1 or r >= n):
        return f"{max(r, int(n)) if m == 1 else r}, 1"
    return f"1, {max(c, int(m)) if n == 1 else c}"


def start_of(slot: int, strides: Sizes) -> str:
    """A pointer to an item of a batch, whose indices are i0, i1 and so on."""
    return " + ".join([f"p{slot}", *[f"i{k} * {s}L" for k, s in enumerate(strides) if s]])


def over_all(lead: Sizes) -> str:
    return items(lead[0], lead[1:]) if lead else ""


def checked(lead: Sizes, call: str) -> str:
    """A call for every item, which is 1 where the step is left to Python."""
    loops = over_all(lead).removeprefix(BATCH)
    return f"{BATCH}{{ int bad = 0; {loops}bad |= {call}; if (bad) {{ FAIL; }} }}"


def full(shape: Sizes) -> Sizes:
    """The strides of an array whose entries lie one after the other, in entries."""
    return tuple([prod(shape[k + 1 :]) for k in range(len(shape))])
