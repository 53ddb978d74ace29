"""Loops on NumPy: the kernels of the steps, run over a few rows at a time."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...plan.kinds.table import KINDS
from ...plan.steps import BUFFER, RESULT, VIEW, Loop, Plan, Step
from .kernels import KERNELS
from .matrices import Array, Run, Slots


class _Sliced(NamedTuple):
    """A slot of which a tile sees a part: `ratio` entries of the first axis for every row."""

    slot: int
    ratio: int
    columns: bool

    def part(self, array: Array, low: int, high: int) -> Array:
        low, high = low * self.ratio, high * self.ratio
        return array[..., low:high] if self.columns else array[low:high]


class Tiles:
    """A loop of a plan at a dtype.

    Attributes
    ----------
    written : list of Step
        Steps whose results need memory of the whole, made before the loop runs.
    """

    def __init__(self, plan: Plan, loop: Loop, dtype: np.dtype[Any]) -> None:
        self.plan, self.loop, self.dtype = plan, loop, dtype
        made = {step.out for step in loop.steps}
        self.passing = [
            step
            for step in loop.steps
            if plan.origin[step.out] is BUFFER and step.out not in loop.kept
        ]
        inside = {step.out for step in self.passing}
        views = {step.out for step in loop.steps if plan.origin[step.out] is VIEW}
        results = {s.out for s in loop.steps if plan.origin[s.out] is RESULT}
        self.results = sorted(results & loop.kept)
        self.outside = [
            self._sliced(slot)
            for slot in sorted(loop.modes)
            if loop.modes[slot] != "whole"
            and slot not in views | results
            and plan.owner[slot] not in inside
            and (slot not in made or slot in loop.kept)
        ]
        self.aliases = [
            self._sliced(slot)
            for slot in sorted(loop.modes)
            if plan.owner[slot] in inside and slot not in views
        ]

    def _sliced(self, slot: int) -> _Sliced:
        columns = self.loop.modes[slot] == "columns"
        length = self.plan.shapes[slot][-1 if columns else 0]
        return _Sliced(slot, length // self.loop.rows, columns)

    def temporaries(self) -> list[tuple[_Sliced, Array]]:
        """Arrays for one tile of everything that exists in the loop only."""
        plan, loop = self.plan, self.loop
        memory = _shared_rows(plan, loop, self.passing)
        held: dict[int, Array] = {}
        shaped: dict[tuple[int, tuple[int, ...]], Array] = {}
        found = []
        for sliced in self.aliases:
            owner = plan.owner[sliced.slot]
            place = memory[owner]
            if place not in held:
                held[place] = np.empty(
                    prod(plan.shapes[owner]) // loop.rows * loop.tile, self.dtype
                )
            shape = plan.shapes[sliced.slot]
            tile = loop.tile * sliced.ratio
            shape = (*shape[:-1], tile) if sliced.columns else (tile, *shape[1:])
            if (place, shape) not in shaped:
                shaped[place, shape] = held[place].reshape(shape)
            found.append((sliced, shaped[place, shape]))
        return found

    def run(self, scratch: int) -> Run:
        """The loop as one closure; slot `scratch` holds its temporaries."""
        plan, loop, dtype = self.plan, self.loop, self.dtype
        runs = [self._closure(step) for step in loop.steps]
        views = [KERNELS[s.kind](s, dtype) for s in loop.steps if plan.origin[s.out] is VIEW]
        copied = [(self._sliced(slot), plan.shapes[slot]) for slot in self.results]
        outside, sums, rows, tile = self.outside, sorted(loop.sums), loop.rows, loop.tile

        def run(v: Slots) -> None:
            whole = [(sliced, v[sliced.slot]) for sliced in outside]
            parts = _together(whole)
            tiles = _together(v[scratch])
            results = [(sliced, np.empty(shape, dtype)) for sliced, shape in copied]
            for slot in sums:
                v[slot].fill(0)
            size = 0
            for low in range(0, rows, tile):
                high = min(low + tile, rows)
                for sliced, array, slots in parts:
                    part = sliced.part(array, low, high)
                    for slot in slots:
                        v[slot] = part
                for sliced, array, slots in tiles if high - low != size else ():
                    part = sliced.part(array, 0, high - low)
                    for slot in slots:
                        v[slot] = part
                size = high - low
                for step in runs:
                    step(v)
                for sliced, array in results:
                    sliced.part(array, low, high)[...] = v[sliced.slot]
            for sliced, array in whole + results:
                v[sliced.slot] = array
            for view in views:
                view(v)

        return run

    def _closure(self, step: Step) -> Run:
        loop = self.loop
        if step.out in loop.sums:
            return _accumulated(step, self.dtype)
        run = KERNELS[step.kind](step, self.dtype)
        if step.kind == "dot" and loop.modes[step.out] == "columns":
            return _spaced(step)
        if KINDS[step.kind].into_zeros and step.out not in loop.kept:
            return _cleared_first(step.out, run)
        return run


def _together(
    found: Sequence[tuple[_Sliced, Array]],
) -> list[tuple[_Sliced, Array, list[int]]]:
    """Slots that are the same array are the same part of it, which steps in place recognise."""
    groups: dict[tuple[int, bool], tuple[_Sliced, Array, list[int]]] = {}
    for sliced, array in found:
        key = id(array), sliced.columns
        groups.setdefault(key, (sliced, array, []))[2].append(sliced.slot)
    return list(groups.values())


def _spaced(step: Step) -> Run:
    """A product into columns, which are not contiguous."""
    (a, b), o = step.args, step.out

    def run(v: Slots) -> None:
        np.matmul(v[a], v[b], out=v[o])

    return run


def _cleared_first(slot: int, run: Run) -> Run:
    def both(v: Slots) -> None:
        v[slot].fill(0)
        run(v)

    return both


def _shared_rows(plan: Plan, loop: Loop, passing: Sequence[Step]) -> dict[int, int]:
    """Which arrays of a tile share memory: those of equal size that are not needed together."""
    last: dict[int, int] = {}
    for place, step in enumerate(loop.steps):
        for slot in (step.out, *step.args):
            last[plan.owner[slot]] = place
    inside = {step.out for step in passing}
    free: dict[int, list[int]] = {}
    memory: dict[int, int] = {}
    for place, step in enumerate(loop.steps):
        over = next(
            (
                slot
                for slot in step.args[:1]
                if KINDS[step.kind].in_place
                and slot in inside
                and last[slot] == place
                and plan.shapes[slot] == step.shape
                and all(other == slot or plan.owner[other] != slot for other in step.args)
            ),
            None,
        )
        if step.out in inside:
            waiting = free.setdefault(prod(step.shape), [])
            memory[step.out] = (
                memory[over] if over is not None else waiting.pop() if waiting else step.out
            )
        ending = {plan.owner[slot] for slot in step.args} & inside
        for owner in sorted(ending):
            if last[owner] == place and (owner != over or step.out not in inside):
                free.setdefault(prod(plan.shapes[owner]), []).append(memory[owner])
    return memory


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
