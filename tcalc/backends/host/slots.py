"""Slots in this process: a list of arrays, and the runs that only bind, clear or drop them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from ...plan.failures import StepError
from ...plan.steps import Step
from ...support.arrays import Array, Sizes

#: One entry for every slot of a plan, and behind them what a program needs besides.
Slots = list[Any]
#: A step, or several, bound to numbers of slots.
Run = Callable[[Slots], None]


class Closures:
    """Runs of single steps as `made` makes them; errors of linear algebra name their step."""

    def __init__(self, made: Callable[[Step], Run]) -> None:
        self._made = made
        self._steps: dict[int, Step] = {}

    def __call__(self, step: Step) -> Run:
        run = self._made(step)
        self._steps[id(run)] = step
        return run

    def failed(self, run: Run | None, error: np.linalg.LinAlgError) -> NoReturn:
        """The error with its step, where it has none yet."""
        if isinstance(error, StepError):
            raise error
        raise StepError(str(error), self._steps.get(id(run))) from error


def allocation(
    slot: int,
    shapes: Sequence[Sizes],
    others: Sequence[int],
    new: Callable[..., Array],
    dtype: np.dtype[Any],
) -> Run:
    """Binds a slot, and others in the same memory, to a new array."""
    shape = shapes[slot]
    same = [other for other in others if shapes[other] == shape]
    reshaped = [(other, shapes[other]) for other in others if shapes[other] != shape]

    def run(v: Slots) -> None:
        array = v[slot] = new(shape, dtype)
        for other in same:
            v[other] = array
        for other, extents in reshaped:
            v[other] = array.reshape(extents)

    return run


def given(slot: int, source: int, shapes: Sequence[Sizes], others: Sequence[int]) -> Run:
    """Binds a slot, and others in the same memory, to the array that stands at `source`."""
    same = [other for other in (slot, *others) if shapes[other] == shapes[slot]]
    reshaped = [(other, shapes[other]) for other in others if shapes[other] != shapes[slot]]

    def run(v: Slots) -> None:
        array = v[source]
        for other in same:
            v[other] = array
        for other, extents in reshaped:
            v[other] = array.reshape(extents)

    return run


def cleared(slot: int) -> Run:
    def run(v: Slots) -> None:
        v[slot].fill(0)

    return run


def dropped(slots: Sequence[int]) -> Run:
    def run(v: Slots) -> None:
        for slot in slots:
            v[slot] = None

    return run
