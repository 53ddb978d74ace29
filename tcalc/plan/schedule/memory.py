"""Lifetimes to memory: which slots share a block of the workspace, and the peak of a call.

And what a call may take: the memory of the machine, or a limit that somebody set.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from copy import copy
from math import prod

import numpy as np

from ...graph.extents import show_shape
from ...support.arrays import Sizes
from ...support.byte_counts import show_bytes
from ...support.errors import MemoryLimitError, ShapeError
from ...support.machine import machine_memory
from ...support.records import NamedTuple
from ..builder import Builder
from ..kinds.table import KINDS
from ..steps import BUFFER, RESULT, VIEW, Output, Plan, Step, TiledLoop, Unit, returned, steps_of

_ALIGN = 64
#: How many times larger a block is that waits for another array.
WASTEFUL = 16
#: What NumPy can address, and how many axes its arrays have at most.
_MAX_BYTES, _MAX_AXES = int(np.iinfo(np.intp).max), 64


class Memory(NamedTuple):
    """Homes of slots: block k of the workspace as k, output k as -1 - k, None elsewhere."""

    home: list[int | None]
    blocks: tuple[int, ...]
    last_use: dict[int, int]
    peak_bytes: int


def lifetimes(b: Builder, units: Sequence[Unit], outputs: Sequence[Output]) -> dict[int, int]:
    """The last unit that reads each slot's memory, by owner of the memory."""
    end = len(units)
    last = {b.owner[o.slot]: end for o in outputs}
    for time in range(end - 1, -1, -1):
        for step in reversed(steps_of(units[time])):
            until = last.setdefault(b.owner[step.out], time)
            until = until if KINDS[step.kind].may_return(step.params) else time
            for slot in step.args:
                owner = b.owner[slot]
                last[owner] = max(last.get(owner, time), until)
    return last


def assign(b: Builder, units: Sequence[Unit], outputs: Sequence[Output], itemsize: int) -> Memory:
    """Blocks for all buffers; a block is free again after the last use of what it holds."""
    last, shared = lifetimes(b, units, outputs), _shared(b, units)
    group: dict[int, int] = {}
    until: dict[int, int] = {}
    for time, unit in enumerate(units):
        for place, step in enumerate(steps_of(unit)):
            slot = step.out
            if b.origin[slot] is not BUFFER or slot in b.fixed or _passing(unit, slot):
                continue
            over = _overwritten(b, unit, place, last, time, shared)
            group[slot] = slot if over is None else group[over]
            until[group[slot]] = last[slot]
    homes: dict[int, int] = {}
    for number, output in enumerate(outputs):
        owner = b.owner[output.slot]
        if owner in group:
            homes[group[owner]] = -1 - number
    waiting = _waiting(b, units, group, homes)
    # Where no output's memory waits, both ways are one.
    placed = [
        _blocks(b, units, group, until, homes, list(map(copy, waiting)), itemsize, first)
        for first in ((True, False) if waiting else (True,))
    ]
    homes, blocks = min(placed, key=lambda found: sum(found[1]))
    home: list[int | None] = [None] * len(b.shapes)
    for slot, owner in enumerate(b.owner):
        if owner in group and b.origin[slot] is BUFFER:
            home[slot] = homes[group[owner]]
    written = [o.slot for o in outputs if b.origin[o.slot] is BUFFER]
    once = [step.out for step in b.steps if step.out in b.fixed and b.origin[step.out] is not VIEW]
    held = sum([prod(b.shapes[slot]) for slot in written + once]) * itemsize
    peak = sum(blocks) + held + _other_peak(b, units, last, itemsize)
    return Memory(home, blocks, last, peak)


def _passing(unit: Unit, slot: int) -> bool:
    """Does the slot exist for one tile of a loop only?"""
    return isinstance(unit, TiledLoop) and slot not in unit.kept


def _shared(b: Builder, units: Sequence[Unit]) -> dict[int, set[int]]:
    """By owner: the others in whose memory it may lie, as steps may return operands."""
    found: dict[int, set[int]] = {}
    for owner, others in returned([s for unit in units for s in steps_of(unit)], b.owner).items():
        found[owner] = {*others}.union(*[found.get(other, ()) for other in others])
    return found


def _overwritten(
    b: Builder,
    unit: Unit,
    place: int,
    last: dict[int, int],
    time: int,
    shared: Mapping[int, set[int]],
) -> int | None:
    """The owner of an operand that this step may overwrite with its result."""
    steps = steps_of(unit)
    step = steps[place]
    candidates = KINDS[step.kind].written_over(len(step.args))
    if not candidates:
        return None
    later = steps[place + 1 :]
    owners = [b.owner[slot] for slot in step.args]
    read_later = {b.owner[slot] for other in later for slot in other.args} if later else ()
    for slot, owner in [(step.args[k], owners[k]) for k in candidates]:
        if (
            b.origin[slot] is BUFFER
            and last[owner] == time
            and owner not in b.fixed
            and owner not in read_later
            and not _passing_here(unit, owner, steps)
            and b.shapes[slot] == step.shape
            and _read_by_rows(b, unit, slot)
            and all(other == slot for other, o in zip(step.args, owners, strict=True) if o == owner)
            and not any(owner in shared.get(o, ()) for o in owners)
        ):
            return owner
    return None


def _read_by_rows(b: Builder, unit: Unit, slot: int) -> bool:
    """Does no tile of a loop read what another one may have overwritten?"""
    if not isinstance(unit, TiledLoop):
        return True
    reads = [a for step in unit.steps for a in step.args if b.owner[a] == b.owner[slot]]
    return unit.modes.get(slot) in ("rows", "columns") and all(a == slot for a in reads)


def _passing_here(unit: Unit, owner: int, steps: Sequence[Step]) -> bool:
    return (
        isinstance(unit, TiledLoop)
        and any(s.out == owner for s in steps)
        and owner not in unit.kept
    )


class _Waiting:
    """Memory of a large output before the output is made, where other arrays may stand.

    Attributes
    ----------
    place : int
    size : int
        Entries.
    born : int
        The unit that first writes the output there.
    free : int
        The first unit at which nothing else stands there.
    """

    def __init__(self, place: int, size: int, born: int) -> None:
        self.place, self.size, self.born, self.free = place, size, born, 0

    def takes(self, size: int, start: int, until: int) -> bool:
        """Stands an array of so many entries here from a unit to another one?"""
        fits = size == self.size and self.free <= start and until < self.born
        self.free = until + 1 if fits else self.free
        return fits


def _waiting(
    b: Builder, units: Sequence[Unit], group: dict[int, int], homes: dict[int, int]
) -> list[_Waiting]:
    """Memory of outputs, but for those that begin with new pages of zeros."""
    found: dict[int, _Waiting | None] = {}
    for time, unit in enumerate(units):
        for step in steps_of(unit):
            place, size = homes.get(group.get(step.out, -1)), prod(step.shape)
            if place is not None and place not in found and size >= b.machine.large:
                zeros = KINDS[step.kind].into_zeros
                found[place] = None if zeros else _Waiting(place, size, time)
    return [memory for memory in found.values() if memory is not None]


def _blocks(
    b: Builder,
    units: Sequence[Unit],
    group: dict[int, int],
    until: dict[int, int],
    homes: Mapping[int, int],
    waiting: Sequence[_Waiting],
    itemsize: int,
    first: bool,
) -> tuple[dict[int, int], tuple[int, ...]]:
    """Homes and blocks: best fit that is not much too large, else where an output will be, the
    first array too or only where a block is as large at least, else the largest free block grows,
    else a new one.
    """
    place, blocks = dict(homes), list[int]()
    largest = 0
    free: list[tuple[int, int]] = []
    ends: dict[int, list[int]] = {}
    for time, unit in enumerate(units):
        for step in steps_of(unit):
            head = group.get(step.out)
            if head == step.out and head not in place:
                entries = prod(step.shape)
                need = -(-entries * itemsize // _ALIGN) * _ALIGN
                at = bisect_left(free, (need, -1))
                if at == len(free) and (first or need <= largest):
                    here = next((w for w in waiting if w.takes(entries, time, until[head])), None)
                    if here is not None:
                        place[head] = here.place
                        continue
                wasted = at < len(free) and free[at][0] > WASTEFUL * need
                if free and not wasted:
                    _, block = free.pop(min(at, len(free) - 1))
                    blocks[block] = max(blocks[block], need)
                else:
                    block = len(blocks)
                    blocks.append(need)
                largest = max(largest, need)
                place[head] = block
                ends.setdefault(until[head], []).append(block)
        for block in ends.pop(time, ()):
            insort(free, (blocks[block], block))
    return place, tuple(blocks)


def _other_peak(b: Builder, units: Sequence[Unit], last: dict[int, int], itemsize: int) -> int:
    """Peak of the arrays that kernels allocate themselves, and of tiles."""
    live = peak = 0
    ends: dict[int, int] = {}
    for time, unit in enumerate(units):
        tiles = 0
        for step in steps_of(unit):
            size = prod(step.shape) * itemsize
            if _passing(unit, step.out) and isinstance(unit, TiledLoop):
                tiles += size * unit.tile // unit.rows if b.origin[step.out] is not VIEW else 0
            elif b.origin[step.out] is RESULT and step.out not in b.fixed:
                live += size
                ends[last[step.out]] = ends.get(last[step.out], 0) + size
        peak = max(peak, live + tiles)
        live -= ends.pop(time, 0)
    return peak


# --- limits ---------------------------------------------------------------------------------------


def allowed(limit: int | None, memory: int | None = None) -> int | None:
    """The bytes that a call may take: the limit, or without one what there is."""
    if limit is not None:
        return limit
    return machine_memory() if memory is None else memory


def check_fits(plan: Plan, limit: int | None, memory: int | None = None) -> None:
    """Refuse a plan that needs more than the limit, or without one more than there is.

    The `memory` there is: that of a machine; None for what this process may have.
    """
    for slot, perm in plan.outputs:
        shape = plan.shapes[slot]
        shape = shape if perm is None else tuple([shape[k] for k in perm])
        _check_array(shape, plan.itemsize, "the result is an array")
    for step in plan.steps:
        _check_array(step.shape, plan.itemsize, "a step needs an array")
    most = allowed(limit, memory)
    if most is None or plan.peak_bytes <= most:
        return
    whose, hint = "allowed", ""
    if limit is None:
        whose, hint = "available", "; compile(memory_limit=) sets another limit"
    raise MemoryLimitError(
        f"{show_bytes(plan.peak_bytes)} needed, {show_bytes(most)} {whose}; "
        f"the largest step is {plan.largest}{hint}"
    )


def _check_array(shape: Sizes, itemsize: int, what: str) -> None:
    """Refuse a shape that no array can have."""
    if len(shape) > _MAX_AXES:
        raise ShapeError(
            f"{what} of shape {show_shape(shape)}: {len(shape)} axes, arrays have up to {_MAX_AXES}"
        )
    # NumPy leaves out empty axes when it looks whether the others fit.
    if prod([n for n in shape if n]) * itemsize > _MAX_BYTES:
        raise ShapeError(f"{what} of shape {show_shape(shape)}: no array can be as large")
