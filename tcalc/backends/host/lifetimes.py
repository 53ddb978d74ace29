"""When the slots of a plan get their memory and lose it; nothing is allocated here."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...plan.kinds.table import KINDS
from ...plan.steps import BUFFER, RESULT, VIEW, Plan, Step
from .slots import Run, allocation, cleared, given

#: Arrays made by kernels are dropped early from this size on.
_DROP_BYTES = 1 << 14


class Lifetimes:
    """What happens to the slots of a plan, step by step: asked in the order of execution.

    Attributes
    ----------
    swept : bool
        Do results go into arrays of the caller?
    members : dict of int to list of int
        Slots in the memory of a block (k) or an output (-1 - k).
    held : set of int
        Slots whose results, of several arrays, are memory of the workspace.
    drops : dict of int to list of int
        Slots with memory of their own that can be forgotten, by the unit after which.
    """

    def __init__(self, plan: Plan, dtype: np.dtype[Any], swept: bool) -> None:
        self.plan, self.dtype, self.swept = plan, dtype, swept
        self.members: dict[int, list[int]] = {}
        for slot, place in enumerate(plan.home):
            if place is not None:
                self.members.setdefault(place, []).append(slot)
        self.drops = self._drops()
        self.held: set[int] = set()
        self._born: set[int] = set()
        self._static: set[int] = set()

    def is_static(self, step: Step) -> bool:
        """A view of the workspace, or of such a view: bound once for every workspace."""
        plan = self.plan
        owner = plan.owner[step.out]
        place = plan.home[owner]
        here = owner in self.held or (place is not None and place >= 0)
        if plan.origin[step.out] is not VIEW or not here:
            return False
        static = all(plan.origin[a] is not VIEW or a in self._static for a in step.args)
        if static:
            self._static.add(step.out)
        return static

    def stays(self, slot: int) -> bool:
        """Is the slot the same array in all calls that use one workspace?"""
        plan = self.plan
        if plan.origin[slot] is VIEW and slot not in plan.fixed:
            return slot in self._static
        home = plan.home[slot]
        if home is not None:
            return home >= 0
        an_input = plan.owner[slot] < len(plan.inputs)
        return slot in plan.fixed and not an_input and (not self.swept or slot in plan.consts)

    def birth(self, step: Step) -> list[Run]:
        """Makes the array of an output, zero where the step needs it, before its first writer."""
        place = self.plan.home[step.out]
        if place is None or place >= 0 or place in self._born:
            return []
        self._born.add(place)
        zeros, number = KINDS[step.kind].into_zeros, -1 - place
        shapes, slot = self.plan.shapes, self.plan.outputs[number].slot
        others = [other for other in self.members[place] if other != slot]
        if self.swept:
            source = len(shapes) + number
            return [given(slot, source, shapes, others), *([cleared(source)] if zeros else [])]
        # Pages of zeros come from the system unwritten, where a unit tensor is mostly zeros.
        return [allocation(slot, shapes, others, np.zeros if zeros else np.empty, self.dtype)]

    def ready(self, step: Step) -> list[Run]:
        """What a step that writes into its slot finds done: new memory, or zeros in the old."""
        return self.birth(step) or ([cleared(step.out)] if KINDS[step.kind].into_zeros else [])

    def fixed(self, step: Step) -> list[Run]:
        """Makes the array of a step that is run once, where its kernel makes none."""
        plan, slot = self.plan, step.out
        if plan.origin[slot] is not BUFFER:
            return []
        aliases = [k for k in plan.fixed if plan.owner[k] == slot != k and plan.origin[k] is BUFFER]
        return [allocation(slot, plan.shapes, aliases, np.empty, self.dtype)]

    def _drops(self) -> dict[int, list[int]]:
        plan = self.plan
        ends: dict[int, list[int]] = {}
        for slot, owner in enumerate(plan.owner):
            if plan.origin[owner] is not RESULT or owner in plan.fixed:
                continue
            large = prod(plan.shapes[owner]) * plan.itemsize >= _DROP_BYTES
            if large and plan.last_use.get(owner, len(plan.units)) < len(plan.units):
                ends.setdefault(plan.last_use[owner], []).append(slot)
        return ends
