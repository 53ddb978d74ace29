"""How often a loop of a program runs."""

from __future__ import annotations

from ...graph.extents import Extent
from ...graph.iterations import Iteration
from ...support.records import NamedTuple


class Turns(NamedTuple):
    """The steps of a loop.

    Attributes
    ----------
    times : int or str
        How many may be made.
    backward : bool
        Does the last slice come first?
    until : bool
        Does the loop end before the first step at which its last state is not 0? That state is no
        result; the number of steps is one, behind all others.
    made : int or None
        Which of what all steps share is the number of steps, those of the first slices.
    """

    times: Extent
    backward: bool
    until: bool = False
    made: int | None = None

    @property
    def bounded(self) -> bool:
        """May fewer steps be made than there are slices? Further rows of results are 0."""
        return self.until or self.made is not None

    @staticmethod
    def of(loop: Iteration) -> Turns:
        before = len(loop.states) + len(loop.slices)
        made = None if loop.counter is None else loop.counter - before
        return Turns(loop.times, loop.backward, loop.until is not None, made)
