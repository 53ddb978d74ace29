"""One step of a loop, as plans and printers read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..support.records import NamedTuple
from .extents import Extent
from .nodes import Expr, Var


class Iteration(NamedTuple):
    """One step of a loop.

    Attributes
    ----------
    following : mapping
        The next values of the states that are needed, by the state's number.
    states, slices, fixed : tuple of Var
        What stands for the operands in the step, in this order: for the states, for one slice of
        each scanned operand, and for operands that are the same in all steps.
    times : int or str
        The number of steps; if there is a bound, of those that may be made.
    backward : bool
        Does the last slice come first?
    entries : callable
        ``entries(sizes)`` is the number of entries that the kernel holds.
    bound : Var or None
        The last state: the loop ends before the first step at which it is not 0. One of `fixed`:
        the number of steps that are made, those of the first slices. None: all steps are made.
    until : Expr or None
        The condition on the other states that such a state holds. It is no output of the loop; the
        number of steps is one, behind those of the other states.
    """

    following: Mapping[int, Expr]
    states: tuple[Var, ...]
    slices: tuple[Var, ...]
    fixed: tuple[Var, ...]
    times: Extent
    backward: bool
    entries: Callable[[Mapping[str, int]], int]
    bound: Var | None = None
    until: Expr | None = None

    @property
    def variables(self) -> tuple[Var, ...]:
        return self.states + self.slices + self.fixed

    @property
    def results(self) -> int:
        """The number of states that are outputs."""
        return len(self.states) - (self.until is not None)

    @property
    def counter(self) -> int | None:
        """The operand that is the number of steps."""
        first = len(self.states) + len(self.slices)
        return next((k for k, v in enumerate(self.fixed, first) if v is self.bound), None)
