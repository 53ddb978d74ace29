"""Loops as steps of functions, beside other steps: on memory of a workspace, for one entry of C.

Loops that take long, or much memory, are functions of their own, which Python looks after.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ...plan.steps import BUFFER, CONST, Plan, Step
from ...support.arrays import Array
from .frames import Frame
from .held import HeldStep
from .loop_layout import LoopStates, Whole
from .loop_memory import LoopMemory, asking
from .loop_text import LEFT, InnerLoop
from .loops import PAUSE, cost_of

#: Bytes of a loop's memory up to which a workspace holds it.
MOST_BYTES = 1 << 22


class EmbeddedLoop(HeldStep):
    """A loop as a step of a function."""

    def __init__(self, plan: Plan, step: Step, dtype: np.dtype[Any]) -> None:
        self._step, self._whole = step, Whole(dtype)
        arrays = [np.empty(plan.shapes[a]) for a in step.args]
        self._states = LoopStates.of(step, [a.shape for a in arrays], self._whole)
        self._loop = InnerLoop(step, self._states, self._whole)
        integers = plan.integral
        anyhow = [
            k
            for k, (a, v) in enumerate(zip(step.args, self._loop.once.variables, strict=True))
            if plan.origin[a] not in (BUFFER, CONST) or (a in integers) != v.integral
        ]
        self._loop.copied(anyhow, arrays)
        self._asking = asking(self._whole)
        self.bytes = self._whole.bytes

    def memory(self) -> LoopMemory:
        return LoopMemory(self._whole, self._states)

    def text(self, frame: Frame, given: Sequence[Array], number: int) -> str:
        body = self._loop.text(given)
        w = f"char *w = (char *)p{self._step.out};"
        return "\n".join(["{", w, self._asking, body.replace(LEFT, f"return {number};"), "}"])

    def failed(self, memory: LoopMemory) -> BaseException:
        return memory.answers.failed(self._loop.count)


def embedded(plan: Plan, dtype: np.dtype[Any]) -> dict[int, EmbeddedLoop]:
    """By slot, the loops of a plan that are steps of functions."""
    return {
        step.out: loop
        for step in plan.steps
        if step.kind == "loop" and step.out not in plan.fixed and _short(plan, step)
        if (loop := EmbeddedLoop(plan, step, dtype)).bytes <= MOST_BYTES
    }


def _short(plan: Plan, step: Step) -> bool:
    """Does Python not need to be looked after while it runs?"""
    *_, count, _, inner = step.params
    held = prod(plan.shapes[step.out]) * plan.itemsize
    return 0 < count * cost_of(inner) <= PAUSE and held <= MOST_BYTES
