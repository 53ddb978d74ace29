"""What a program that is swept writes to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from ...plan.steps import RESULT, Plan
from ...support.arrays import Array
from .slots import Slots


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
