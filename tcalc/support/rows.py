"""Rows of arrays in the order in which the steps of a loop read and write them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle, repeat

from .arrays import AnyArray
from .records import NamedTuple


class Rows:
    """One row of an array for each step: in this order, which is begun again where it ends."""

    def __init__(self, array: AnyArray, order: range) -> None:
        self.array, self.order = array, order

    def __iter__(self) -> Iterator[AnyArray]:
        """Rows without end, arrays even where they have no axes."""
        return map(self.array.__getitem__, zip(cycle(self.order), repeat(...)))


class StateRows(NamedTuple):
    """Which rows of an array hold the values of a state: all of them, or those around a step.

    Row t is the state before step t and after step t - 1; in a loop that runs backward it is the
    state after step t and before step t - 1. Where the history is not kept there are two rows, of
    which steps read the one and write the other by turns.
    """

    steps: int
    kept: bool
    backward: bool

    @property
    def held(self) -> int:
        return self.steps + 1 if self.kept else min(self.steps, 1) + 1

    @property
    def before(self) -> range:
        """The rows that steps read; the first one holds the initial state."""
        rows = range(self.held)
        return rows[::-1] if self.backward else rows

    @property
    def after(self) -> range:
        """The rows that steps write."""
        return self.before[1:] if self.kept else self.before[::-1]

    def row(self, done: int) -> int:
        """The row of the state after so many steps."""
        return self.before[done if self.kept else done % 2]

    @property
    def last(self) -> int:
        """The row of the state after all steps."""
        return self.row(self.steps)

    @property
    def histories(self) -> tuple[slice, slice]:
        """The values after every step, and those before it, where they are kept."""
        early, late = slice(None, -1), slice(1, None)
        return (early, late) if self.backward else (late, early)
