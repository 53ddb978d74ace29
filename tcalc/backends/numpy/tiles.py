"""Loops on NumPy: the kernels of the steps, run over a few rows at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...plan.kinds.table import KINDS
from ...plan.steps import Step
from ...plan.tiles import Sliced, Tiling
from ...support.arrays import Array
from ..host.slots import Closures, Run, Slots
from ..host.workspaces import Workspaces


def tiled(tiling: Tiling, workspaces: Workspaces, scratch: int) -> Run:
    """The loop as one closure; slot `scratch` holds its temporaries."""
    plan, loop, dtype, closure = tiling.plan, tiling.loop, workspaces.dtype, workspaces.closure
    runs = [_run(tiling, step, closure) for step in loop.steps]
    views = [closure(step) for step in tiling.views]
    copied = [(tiling.sliced(slot), plan.shapes[slot]) for slot in tiling.returned]
    outside, sums, rows, tile = tiling.whole, sorted(loop.sums), loop.rows, loop.tile

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


def _run(tiling: Tiling, step: Step, closure: Closures) -> Run:
    """A step on one tile."""
    loop = tiling.loop
    if step.out in loop.sums:
        return _accumulated(step)
    if step.kind == "dot" and loop.modes[step.out] == "columns":
        return _spaced(step)
    run = closure(step)
    if KINDS[step.kind].into_zeros and step.out not in loop.kept:
        return _cleared_first(step.out, run)
    return run


def _together(
    found: Sequence[tuple[Sliced, Array]],
) -> list[tuple[Sliced, Array, list[int]]]:
    """Slots that are the same array are the same part of it, which steps in place recognise."""
    groups: dict[tuple[int, int], tuple[Sliced, Array, list[int]]] = {}
    for sliced, array in found:
        key = id(array), sliced.axis
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


def _accumulated(step: Step) -> Run:
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
