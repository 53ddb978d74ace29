"""Loops on NumPy: a row's kernel that runs the program of one step, and what a step writes to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from ...plan.kinds.table import KINDS
from ...plan.steps import RESULT, Plan, Step
from ...support.namespaces import NUMPY
from .matrices import Array, Run, Slots


def looped(step: Step, inner: Any) -> Run:
    """The kernel of a row with the program of one step as its last parameter."""
    op, *rest, _ = step.params
    args, o, kernel, params = step.args, step.out, op.kernels.compute, (*rest, inner)

    def run(v: Slots) -> None:
        v[o] = kernel(NUMPY, params, *[v[k] for k in args])

    return run


def given(slot: int, source: int, shapes: Sequence[tuple[int, ...]], others: Sequence[int]) -> Run:
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


def zeroed(source: int) -> Run:
    def run(v: Slots) -> None:
        v[source].fill(0)

    return run


class Targets:
    """Where the results of steps go: straight into the caller's arrays, where these fit."""

    def __init__(self, plan: Plan, dtype: np.dtype[Any]) -> None:
        self.shapes = [plan.shapes[slot] for slot, _ in plan.outputs]
        self.dtype = dtype
        self.copied = [
            (k, slot, perm)
            for k, (slot, perm) in enumerate(plan.outputs)
            if perm is not None or plan.origin[slot] is RESULT
        ]

    def writes(self, into: Sequence[Iterable[Array]]) -> Iterator[tuple[Array, ...]]:
        """What each step writes to, for every output: the caller's arrays or one of our own."""
        found = list(into)
        for k, _, _ in self.copied:
            found[k] = repeat(np.empty(self.shapes[k], self.dtype))
        return zip(*found, strict=False)

    def copies(self, into: Sequence[Iterable[Array]]) -> Iterator[tuple[Array, ...]]:
        """The caller's arrays that each step's results are copied to."""
        rows = [into[k] for k, _, _ in self.copied]
        return zip(*rows, strict=False) if rows else repeat(())

    def finish(self, v: Slots, rows: Sequence[Array]) -> None:
        """Copies the results that the caller's arrays did not get."""
        for (_, slot, perm), row in zip(self.copied, rows, strict=True):
            array = v[slot]
            np.copyto(row, array if perm is None else array.transpose(perm))


def birth(plan: Plan, number: int, members: Sequence[int], kind: str) -> list[Run]:
    """What the first step that writes to an output needs."""
    source, slot = len(plan.shapes) + number, plan.outputs[number].slot
    others = [other for other in members if other != slot]
    runs = [given(slot, source, plan.shapes, others)]
    return [*runs, zeroed(source)] if KINDS[kind].into_zeros else runs
