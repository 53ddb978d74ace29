"""Tiles of a loop: which part of every slot one sees, and what exists for one tile only."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from ..support.arrays import Sizes
from ..support.records import NamedTuple
from .kinds.table import KINDS
from .steps import BUFFER, RESULT, VIEW, Plan, Step, TiledLoop


class Sliced(NamedTuple):
    """A slot of which a tile sees a part.

    Attributes
    ----------
    slot : int
    axis : int
        The axis along which it is cut: the first one or the last.
    ratio : int
        Entries along this axis for every row of the loop.
    """

    slot: int
    axis: int
    ratio: int

    def part(self, array: np.ndarray, low: int, high: int) -> np.ndarray:
        """What rows from `low` to `high` are of the array."""
        low, high = low * self.ratio, high * self.ratio
        return array[..., low:high] if self.axis else array[low:high]

    def shape(self, whole: Sizes, rows: int) -> Sizes:
        """The shape of the part that so many rows are."""
        return (*whole[: self.axis], rows * self.ratio, *whole[self.axis + 1 :])


class Tiling:
    """What the tiles of a loop see.

    Attributes
    ----------
    views, computing : list of Step
        Steps that only look at memory of others, and the others.
    read_behind : list of Step
        Those that look at memory which is there behind the loop.
    kept, passing : list of Step
        Steps whose results others read, and those in buffers for one tile.
    returned : list of int
        Slots whose kernels return new arrays, one a tile, and which others read as a whole.
    returned_by_tile : list of Sliced
        Slots whose kernels return new arrays, which nobody else reads.
    whole : list of Sliced
        Slots that exist outside the loop.
    held : list of Sliced
        Slots in memory for one tile, under all their shapes.
    """

    def __init__(self, plan: Plan, loop: TiledLoop) -> None:
        self.plan, self.loop = plan, loop
        self.views = [s for s in loop.steps if plan.origin[s.out] is VIEW]
        self.computing = [s for s in loop.steps if plan.origin[s.out] is not VIEW]
        of_tiles = {s.out for s in self.computing if s.out not in loop.kept}
        self.read_behind = [s for s in self.views if plan.owner[s.out] not in of_tiles]
        self.kept = [s for s in loop.steps if s.out in loop.kept]
        self.passing = [
            s for s in loop.steps if plan.origin[s.out] is BUFFER and s.out not in loop.kept
        ]
        made = {s.out for s in loop.steps}
        results = {s.out for s in loop.steps if plan.origin[s.out] is RESULT}
        self.returned = sorted(results & loop.kept)
        self.returned_by_tile = [self.sliced(slot) for slot in sorted(results - loop.kept)]
        apart = results | {s.out for s in self.views}
        inside = {s.out for s in self.passing}
        cut = [slot for slot in sorted(loop.modes) if loop.modes[slot] != "whole"]
        self.whole = [
            self.sliced(slot)
            for slot in cut
            if slot not in apart
            and plan.owner[slot] not in inside
            and (slot not in made or slot in loop.kept)
        ]
        self.held = [
            self.sliced(slot) for slot in cut if plan.owner[slot] in inside and slot not in apart
        ]

    def sliced(self, slot: int) -> Sliced:
        """How a slot is cut; those that tiles see the whole of are not asked for."""
        shape = self.plan.shapes[slot]
        axis = len(shape) - 1 if self.loop.modes[slot] == "columns" else 0
        return Sliced(slot, axis, shape[axis] // self.loop.rows)

    def cut(self, slot: int) -> Sliced | None:
        """How a slot is cut, None where tiles see the whole."""
        return None if self.loop.modes.get(slot, "whole") == "whole" else self.sliced(slot)

    def memory(self) -> Mapping[int, int]:
        """By slot made for one tile, the slot whose memory it takes.

        Those of equal size that are not needed together share it.
        """
        plan, steps = self.plan, self.loop.steps
        last: dict[int, int] = {}
        for place, step in enumerate(steps):
            for slot in (step.out, *step.args):
                last[plan.owner[slot]] = place
        inside = {step.out for step in self.passing}
        free: dict[int, list[int]] = {}
        memory: dict[int, int] = {}
        for place, step in enumerate(steps):
            over = self._overwritten(step, {s for s in inside if last[s] == place})
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

    def _overwritten(self, step: Step, ending: set[int]) -> int | None:
        """The operand that a step may overwrite, of those that are read here for the last time."""
        slot, plan = step.args[0] if step.args else None, self.plan
        if slot not in ending or not KINDS[step.kind].in_place or plan.shapes[slot] != step.shape:
            return None
        if any(other != slot and plan.owner[other] == slot for other in step.args):
            return None
        return slot
