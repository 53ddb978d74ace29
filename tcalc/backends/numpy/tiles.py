"""Loops on NumPy: the kernels of the steps, run over a few rows at a time."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from math import prod

import numpy as np

from ...plan.kinds.table import KINDS
from ...plan.steps import Step, TiledLoop
from ...plan.tiles import Sliced, Tiling
from ...support.arrays import Array
from ...support.blas import OF_NUMPY, one_thread
from ...support.products import Product
from ..host.pool import POOL
from ..host.slots import Closures, Run, Slots
from ..host.tiles import temporaries
from ..host.workspaces import Workspaces
from .matrices import product_for

#: Kinds of steps that call BLAS.
CALLS_BLAS = frozenset({"dot", "matmul", "vecdot"})
#: Work of a loop, in additions, from which threads share it, most pieces that it has, and work of a
#: piece for every entry that it sums.
LEAST, PIECES, SUMMED = 1 << 20, 16, 64


def tiled(tiling: Tiling, workspaces: Workspaces, scratch: int) -> Run:
    """The loop as one closure; slot `scratch` holds its temporaries."""
    plan, loop, dtype, closure = tiling.plan, tiling.loop, workspaces.dtype, workspaces.closure
    multiply = product_for(plan)
    runs = [_run(tiling, step, closure, multiply) for step in loop.steps]
    views = [closure(step) for step in tiling.read_behind]
    copied = [(tiling.sliced(slot), plan.shapes[slot]) for slot in tiling.returned]
    outside, sums, rows, tile = tiling.whole, sorted(loop.sums), loop.rows, loop.tile
    work = sum([step.flops + prod(step.shape) for step in tiling.computing])
    length = _length(loop, work, sum([prod(plan.shapes[slot]) for slot in sums]))
    pieces = range(0, rows, length)
    threads = workspaces.threads if work >= LEAST else 1
    of_others = workspaces.place(lambda slots: [])
    multiplies = threads > 1 and any(s.kind in CALLS_BLAS for s in tiling.computing)

    def run(v: Slots) -> None:
        whole = [(sliced, v[sliced.slot]) for sliced in outside]
        parts = _together(whole)
        results = [(sliced, np.empty(shape, dtype)) for sliced, shape in copied]
        totals = {slot: v[slot] for slot in sums}
        added = [totals]  # those of the first piece, to which the others' are added
        for total in totals.values():
            total.fill(0)
        for _ in pieces[1:]:
            added.append({slot: np.zeros_like(total) for slot, total in totals.items()})
        held, own = [_together(v[scratch])], [v]
        while len(v[of_others]) < threads - 1:
            v[of_others].append(temporaries(tiling, dtype))
        for other in v[of_others]:
            held.append(_together(other))
            own.append(v.copy())

        def piece(number: int, worker: int) -> None:
            slots = own[worker]
            for slot in sums:
                slots[slot] = added[number][slot]
            first, size = pieces[number], 0
            last = min(first + length, rows)
            for low in range(first, last, tile):
                high = min(low + tile, last)
                for sliced, array, same in parts:
                    _bind(slots, same, sliced.part(array, low, high))
                for sliced, array, same in held[worker] if high - low != size else ():
                    _bind(slots, same, sliced.part(array, 0, high - low))
                size = high - low
                for step in runs:
                    step(slots)
                for sliced, array in results:
                    sliced.part(array, low, high)[...] = slots[sliced.slot]

        with one_thread(OF_NUMPY) if multiplies else nullcontext():
            POOL.share(piece, len(pieces), threads)
        for sliced, array in whole + results:
            v[sliced.slot] = array
        for slot, total in totals.items():
            v[slot] = total
            for others in added[1:]:  # in order, whoever made them
                np.add(total, others[slot], total)
        for view in views:
            view(v)

    return run


def _length(loop: TiledLoop, work: float, summed: int) -> int:
    """Rows of a piece, which are whole tiles: what is summed does not depend on the threads.

    Pieces of which each has so many sums are fewer.
    """
    tiles = -(-loop.rows // loop.tile)
    most = min(PIECES, 1 + int(work / (1 + SUMMED * summed)))
    return -(-tiles // most) * loop.tile


def _bind(slots: Slots, same: Sequence[int], part: Array) -> None:
    for slot in same:
        slots[slot] = part


def _run(tiling: Tiling, step: Step, closure: Closures, multiply: Product) -> Run:
    """A step on one tile."""
    loop = tiling.loop
    if step.out in loop.sums:
        return _accumulated(step, closure, multiply)
    if step.kind == "dot" and loop.modes[step.out] == "columns":
        return _spaced(step, multiply)
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


def _spaced(step: Step, multiply: Product) -> Run:
    """A product into columns, which are not contiguous."""
    (a, b), o = step.args, step.out

    def run(v: Slots) -> None:
        multiply(v[a], v[b], v[o])

    return run


def _cleared_first(slot: int, run: Run) -> Run:
    def both(v: Slots) -> None:
        v[slot].fill(0)
        run(v)

    return both


def _accumulated(step: Step, closure: Closures, multiply: Product) -> Run:
    """A sum over rows, one tile of them after the other."""
    o = step.out
    if step.kind == "weighted":
        run = closure(step)

        def apart(v: Slots) -> None:
            total = v[o]
            v[o] = np.empty_like(total)
            run(v)
            np.add(total, v[o], total)
            v[o] = total

        return apart
    if step.kind == "dot":
        a, b = step.args

        def dot(v: Slots) -> None:
            total = v[o]
            found = np.empty_like(total)
            multiply(v[a], v[b], found)
            np.add(total, found, total)

        return dot
    (x,), axes = step.args, step.params

    def total(v: Slots) -> None:
        np.add(v[o], np.add.reduce(v[x], axes), v[o])

    return total
