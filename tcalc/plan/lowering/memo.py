"""What was found out of expressions while one plan is made, and for the next plan of the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...graph.nodes import Expr
from ...support.records import NamedTuple
from ..steps import Plan
from .fusion import fused

#: Steps that may be lowered in any search, which takes less than a second.
QUICK = 4_000


class Memo(NamedTuple):
    """Roots as they were lowered, steps of loops, and roots with what one kernel computes.

    By the ids of roots and what else decides; the roots are kept with what was found.
    """

    lowered: dict[Any, tuple[Any, Any]]
    steps: dict[Any, Plan]
    kernels: dict[Any, tuple[list[Expr], Any]]

    def affords(self, steps: float, share: float) -> bool:
        """Were fewer lowered than this share of a quick search's and of so many more steps?"""
        lowered = sum([len(found.lowering.b.steps) for found, _ in self.lowered.values()])
        return lowered <= share * (QUICK + steps)

    def with_kernels(self, roots: Sequence[Expr]) -> list[Expr]:
        """The roots with what one kernel computes as one node."""
        key = tuple(map(id, roots))
        if key not in self.kernels:
            self.kernels[key] = fused(roots), roots
        return self.kernels[key][0]


#: What was found out at some sizes for a machine, by what else was given.
Known = dict[Any, Memo]
