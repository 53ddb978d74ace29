"""The functions of one program, compiled together: at once, or in the background."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ...plan.steps import VIEW
from ...support.arrays import Sizes
from ..host.slots import Slots
from ..host.workspaces import Workspaces
from .background import BACKGROUND
from .library import functions
from .objects import INTEGER, calls

Compute = Callable[[int, int, int], int]

#: Pointers that a function takes: to addresses of arrays that stay, and of objects that come.
POINTERS = 2


class Function(Protocol):
    """One function of C, for every set of strides that it was called with."""

    @property
    def workspaces(self) -> Workspaces: ...

    def missing(self, v: Slots) -> bool:
        """Is there no function for arrays that lie so, but room for one?"""

    def written(self, v: Slots) -> str | None:
        """The function in C for arrays that lie so; None where NumPy does the work."""

    def keep(self, v: Slots, made: Compute | None) -> None:
        """From now on arrays that lie so are given to this function, or to NumPy."""


class Together:
    """The functions of one program, in the order of their calls, compiled when they are missed."""

    def __init__(self) -> None:
        self.parts: list[Function] = []
        self.lock = threading.Lock()

    def missed(self, part: Function, v: Slots) -> None:
        """A function for arrays that lie so is to be called, and there is none."""
        compile_together(*self.wanted(part, v))

    def do(self, compile: Callable[[], None]) -> None:
        """Compile something when this program's functions are compiled: now."""
        compile()

    def wanted(self, part: Function, v: Slots) -> tuple[list[Function], Slots]:
        """What is missing from a function on, and how arrays lie, or will most likely."""
        seen = foreseen(part.workspaces, v)
        behind = self.parts[self.parts.index(part) :]
        return [part for part in behind if part.missing(seen)], seen


class Beside(Together):
    """Functions that are compiled in the background; until they are there NumPy does their work."""

    def missed(self, part: Function, v: Slots) -> None:
        missing, seen = self.wanted(part, v)
        for other in missing:
            other.keep(seen, None)
        lying = [lying_as(a) if isinstance(a, np.ndarray) else a for a in seen]
        for step in part.workspaces.views.values():
            if isinstance(lying[step.args[0]], np.ndarray):
                part.workspaces.closure(step)(lying)
        self.do(lambda: compile_together(missing, lying))

    def do(self, compile: Callable[[], None]) -> None:
        """In the background."""
        BACKGROUND.put(compile)


def compile_together(parts: Sequence[Function], v: Slots) -> None:
    """The functions for arrays that lie so, compiled at once."""
    texts = [(part, part.written(v)) for part in parts]
    wanted = [(part, text) for part, text in texts if text is not None]
    made = (
        functions([text for _, text in wanted], parts[0].workspaces.dtype.char, POINTERS)
        if parts
        else []
    )
    calls()  # which is compiled once, and now
    for part, _ in texts:
        part.keep(v, None)
    for (part, _), compute in zip(wanted, made, strict=True):
        part.keep(v, compute)


def foreseen(workspaces: Workspaces, v: Slots) -> Slots:
    """Slots whose missing arrays are there, without memory, as they will most likely lie."""
    plan, found = workspaces.plan, list(v)
    integers = plan.integral
    views = {s.out: s for s in plan.steps if plan.origin[s.out] is VIEW and s.kind != "part"}
    for slot, shape in enumerate(plan.shapes):
        if found[slot] is None and slot in views:
            workspaces.closure(views[slot])(found)
        elif found[slot] is None:
            found[slot] = unmade(shape, INTEGER if slot in integers else workspaces.dtype)
    return found


def unmade(shape: Sizes, dtype: np.dtype[Any]) -> np.ndarray:
    """An array without memory that lies as new ones do."""
    strides = [prod(shape[k + 1 :]) * dtype.itemsize for k in range(len(shape))]
    return as_strided(np.empty(1, dtype), shape, strides)


def lying_as(a: np.ndarray) -> np.ndarray:
    """An array without memory that lies as another does."""
    return as_strided(np.empty(1, a.dtype), a.shape, a.strides)
