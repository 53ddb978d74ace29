"""Long entrywise chains in tiles: steps run over a few rows at a time, which stay in the cache.

A region is a run of steps whose results have the same rows as their operands. Inside it, results
that nobody else reads exist for one tile only; sums over rows are accumulated tile by tile.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from ..steps import BUFFER, RESULT, VIEW, Plan, Sizes, Step
from .numpy_kernels import KERNELS, Array, Run, Slots

#: Entries of one tile of the largest array in a region.
TILE = 1 << 14
#: Kinds whose result has an entry for every entry of the broadcast operands.
_ENTRYWISE = frozenset(
    {"scale", "shift", "minus_from", "multiply", "add", "subtract", "ufunc", "kernel"}
)


class Region:
    """Steps in plan order that can run tile by tile over the rows of their results.

    Attributes
    ----------
    rows : int
        Number of rows, 0 before the first step.
    sliced, whole : set of int
        Slots of which a tile sees its rows, and slots that every tile sees as they are.
    written : set of int
        Slots that the region writes; `sums` are those it accumulates.
    outside : dict
        Slots that it reads and does not write, by home.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.rows = 0
        self.steps: list[Step] = []
        self.sliced: set[int] = set()
        self.whole: set[int] = set()
        self.written: set[int] = set()
        self.sums: set[int] = set()
        self.outside: dict[int | None, set[int]] = {}

    def add(self, step: Step) -> bool:
        """Take the step in, if it can run here."""
        found = self._rows(step)
        if found is None:
            return False
        rows, tiled, summed = found
        if rows < 2 or self.rows not in (0, rows) or not self._readable(step, tiled):
            return False
        if not self._writable(step, tiled, summed):
            return False
        self.rows = rows
        self.steps.append(step)
        for a in step.args:
            if a not in self.written:
                self.outside.setdefault(self.plan.home[self.plan.owner[a]], set()).add(a)
        self.sliced.update(tiled)
        self.whole.update(set(step.args) - tiled)
        self.written.add(step.out)
        if summed:
            self.sums.add(step.out)
        else:
            self.sliced.add(step.out)
        return True

    def _rows(self, step: Step) -> tuple[int, set[int], bool] | None:
        """Number of rows, operands that have them, and whether they are summed over."""
        kind, shapes = step.kind, self.plan.shapes
        if kind in _ENTRYWISE and step.shape:
            if kind == "kernel" and not step.params[0].elementwise:
                return None
            rows, ndim = step.shape[0], len(step.shape)
            full = {a for a in step.args if len(shapes[a]) == ndim and shapes[a][0] == rows}
            return rows, full, False
        if kind == "insert" and step.params[0]:
            return step.shape[0], set(step.args), False
        if kind == "sum" or (kind == "dot" and not step.shape):
            summed = kind == "dot" or 0 in step.params
            return shapes[step.args[0]][0], set(step.args), summed
        return None

    def _readable(self, step: Step, tiled: set[int]) -> bool:
        """Does every tile find the operands as it needs them?"""
        for a in step.args:
            if a in self.sums or a in (self.whole if a in tiled else self.sliced):
                return False
            if a not in self.written and self.plan.owner[a] in self.written:
                return False
        return True

    def _writable(self, step: Step, tiled: set[int], summed: bool) -> bool:
        """May one tile write its rows before the next one reads its operands?"""
        plan = self.plan
        home = plan.home[plan.owner[step.out]]
        if home is None or plan.origin[step.out] is VIEW:
            return True
        for a in self.outside.get(home, set()) | (set(step.args) - self.written):
            if plan.home[plan.owner[a]] == home:
                rowwise = a in self.sliced or a in tiled
                plain = plan.origin[a] is BUFFER and plan.shapes[a] == step.shape
                if summed or not (rowwise and plain):
                    return False
        return True

    def _row(self) -> int:
        """Entries of the longest row."""
        return max([1, *[prod(self.plan.shapes[a][1:]) for a in self.sliced]])

    @property
    def worthwhile(self) -> bool:
        return (
            self.rows * self._row() >= 4 * TILE
            and len([s for s in self.steps if s.kind != "insert"]) > 1
        )

    def temporaries(self, kept: set[int], dtype: np.dtype[Any]) -> list[tuple[int, Array]]:
        """Arrays for one tile of every buffer that does not outlive it."""
        plan, count = self.plan, self._count()
        arrays: dict[tuple[int | None, Sizes], Array] = {}
        found = []
        for step in self.steps:
            slot = step.out
            if plan.origin[slot] is BUFFER and slot not in kept and slot not in self.sums:
                key = (plan.home[slot], step.shape[1:])
                if key not in arrays:
                    arrays[key] = np.empty((count, *step.shape[1:]), dtype)
                found.append((slot, arrays[key]))
        return found

    def _count(self) -> int:
        return max(1, TILE // self._row())

    def kept(self, reads: Mapping[int, int]) -> set[int]:
        """Slots written here that others read, given how often each owner's memory is read."""
        inside: dict[int, int] = {}
        for step in self.steps:
            for a in step.args:
                owner = self.plan.owner[a]
                inside[owner] = inside.get(owner, 0) + 1
        returned = {self.plan.owner[o.slot] for o in self.plan.outputs}
        owners = self.plan.owner
        return {
            slot
            for slot in self.written
            if owners[slot] in returned or reads.get(owners[slot], 0) > inside.get(owners[slot], 0)
        }

    def run(self, kept: set[int], dtype: np.dtype[Any], scratch: int) -> Run:
        """The region as one closure; slot `scratch` holds its temporaries."""
        plan, rows, count = self.plan, self.rows, self._count()
        origin, shapes = plan.origin, plan.shapes
        make = {s.out: _accumulated if s.out in self.sums else KERNELS[s.kind] for s in self.steps}
        runs = [make[s.out](s, dtype) for s in self.steps]
        views = [make[s.out](s, dtype) for s in self.steps if origin[s.out] is VIEW]
        copied = [slot for slot in kept if origin[slot] is RESULT]
        buffers = {slot for slot in kept - self.sums if origin[slot] is BUFFER}
        bound = sorted((self.sliced - self.written) | buffers)
        sums = sorted(self.sums)

        def run(v: Slots) -> None:
            whole = [(slot, v[slot]) for slot in bound]
            results = [(slot, np.empty(shapes[slot], dtype)) for slot in copied]
            for slot in sums:
                v[slot].fill(0)
            for low in range(0, rows, count):
                high = min(low + count, rows)
                for slot, array in whole:
                    v[slot] = array[low:high]
                for slot, array in v[scratch]:
                    v[slot] = array[: high - low]
                for step in runs:
                    step(v)
                for slot, array in results:
                    array[low:high] = v[slot]
            for slot, array in whole + results:
                v[slot] = array
            for view in views:
                view(v)

        return run


def _accumulated(step: Step, dtype: np.dtype[Any]) -> Run:
    """A sum over rows, one tile of them after the other."""
    o = step.out
    if step.kind == "dot":
        a, b = step.args

        def dot(v: Slots) -> None:
            np.add(v[o], np.dot(v[a], v[b]), v[o])

        return dot
    (x,), axes = step.args, step.params

    def total(v: Slots) -> None:
        np.add(v[o], np.add.reduce(v[x], axes), v[o])

    return total
