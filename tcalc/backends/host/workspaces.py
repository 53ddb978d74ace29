"""Memory that calls share: blocks, views of them bound once, and what is computed once.

A workspace serves one call at a time and then waits in a pool for the next.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ...plan.steps import VIEW, Plan, TiledLoop, Unit
from ...support.arrays import Array
from .lifetimes import Lifetimes
from .slots import Closures, Run, Slots

#: Views of what is no array, or of arrays that may have to be copied.
_OF_THEIR_OWN = ("part", "reshape")
#: Workspaces above this size are freed after every call.
KEPT_BYTES = 1 << 28


class Workspaces:
    """The workspaces of a plan at a dtype.

    Attributes
    ----------
    lives : Lifetimes
    closure : Closures
        Runs of single steps.
    once : list of Run
        What depends on constants and bound data only.
    views : dict of int to Step
        The steps by slot whose results always lie in their operand.
    give_back : callable
        Ends the use of a workspace that was taken.
    threads : int
        How many threads a call may use.
    """

    def __init__(
        self, plan: Plan, dtype: np.dtype[Any], swept: bool, closure: Closures, threads: int = 1
    ) -> None:
        self.plan, self.dtype, self.closure, self.threads = plan, dtype, closure, threads
        self.lives = Lifetimes(plan, dtype, swept)
        self.once: list[Run] = []
        self.views = {
            step.out: step
            for step in plan.steps
            if plan.origin[step.out] is VIEW and step.kind not in _OF_THEIR_OWN
        }
        self._views: list[Run] = []
        self._made: list[Callable[[Slots], Any]] = []
        self._taken = len(plan.shapes) + (len(plan.outputs) if swept else 0)
        self._pool: list[Slots] = []
        kept = sum(plan.blocks) <= KEPT_BYTES
        self.give_back: Callable[[Slots], None] = self._pool.append if kept else _forget
        self._template: Slots | None = None
        self._lock = threading.Lock()

    def takes(self, unit: Unit) -> bool:
        """Is the unit no part of calls, but run here: once, or once for every workspace?"""
        if isinstance(unit, TiledLoop):
            return False
        if unit.out in self.plan.fixed:
            self.once += [*self.lives.fixed(unit), self.closure(unit)]
        elif self.lives.is_static(unit):
            self._views.append(self.closure(unit))
        else:
            return False
        return True

    def hold(self, slot: int, made: Callable[[], Any]) -> None:
        """Every workspace has such a result of several arrays, which stay there: its parts too."""
        self.lives.held.add(slot)

        def run(v: Slots) -> None:
            v[slot] = made()

        self._views.append(run)

    def place(self, made: Callable[[Slots], Any]) -> int:
        """A further slot with what is made for every workspace."""
        self._made.append(made)
        return self._taken + len(self._made) - 1

    def take(self, arrays: Sequence[Array]) -> Slots:
        """A workspace that no other call uses; what is computed once reads these inputs."""
        try:
            return self._pool.pop()
        except IndexError:
            return self._new(arrays)

    def _new(self, arrays: Sequence[Array]) -> Slots:
        plan, dtype = self.plan, self.dtype
        with self._lock:
            if self._template is None:
                self._template = self._fixed(arrays)
        slots = self._template.copy()
        blocks = [np.empty(size, np.uint8) for size in plan.blocks]
        bound: dict[Any, Array] = {}
        for place, members in self.lives.members.items():
            for slot in members if place >= 0 else ():
                shape = plan.shapes[slot]
                if (place, shape) not in bound:
                    size = prod(shape) * dtype.itemsize
                    bound[place, shape] = blocks[place][:size].view(dtype).reshape(shape)
                slots[slot] = bound[place, shape]
        for run in self._views:
            run(slots)
        slots += [None] * (self._taken - len(slots))
        for made in self._made:
            slots.append(made(slots))
        return slots

    def _fixed(self, arrays: Sequence[Array]) -> Slots:
        """Constants, and what is computed once; all that later steps do not read is dropped, but
        what their operands are views of.

        Of a program that is swept, constants alone: what is fixed is so in one sweep.
        """
        plan, count = self.plan, len(self.plan.inputs)
        slots: Slots = [None] * len(plan.shapes)
        for slot, array in plan.consts.items():
            slots[slot] = array if slot in plan.integers else array.astype(self.dtype)
        if self.lives.swept:
            return slots
        slots[:count] = arrays
        run = None
        try:
            for run in self.once:
                run(slots)
        except np.linalg.LinAlgError as error:
            self.closure.failed(run, error)
        read = {a for step in plan.steps if step.out not in plan.fixed for a in step.args}
        for step in reversed(plan.steps):
            if step.out in read and plan.origin[step.out] is VIEW:
                read.update(step.args)
        return [a if k in read and k >= count else None for k, a in enumerate(slots)]


def _forget(workspace: Slots) -> None:
    """A workspace that is too large to wait for a next call."""
