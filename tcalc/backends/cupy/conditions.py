"""Conditions of one call: collected while steps are enqueued, looked at when results are there."""

from __future__ import annotations

from ...plan.failures import StepError
from ...plan.steps import Step
from ...support.arrays import AnyArray, Array
from ...support.conditions import Raises
from ...support.errors import LinAlgError
from ...support.namespaces import on_device
from ...support.records import NamedTuple
from .library import CuPy


class Condition(NamedTuple):
    """What may be wrong: where, the error, the step, and in words in which steps of loops."""

    bad: AnyArray
    raises: Raises
    step: Step | None
    when: str


class Conditions:
    """Those of a call that nobody has looked at.

    Attributes
    ----------
    step : Step or None
        The step that is being enqueued.
    times : list of str
        In words, the steps of the loops that it stands in, the outermost first.
    """

    def __init__(self, xp: CuPy) -> None:
        self._xp = xp
        self._held: list[Condition] = []
        self.step: Step | None = None
        self.times: list[str] = []

    def collect(self, bad: AnyArray, raises: Raises) -> bool:
        """Holds one of the device's arrays; others are for who asks."""
        if not on_device(bad):
            return False
        self._held.append(Condition(bad, raises, self.step, "".join(self.times[::-1])))
        return True

    def at(self, step: Step) -> None:
        """It is this step that is enqueued; of steps inside of a loop, the loop."""
        if not self.times:
            self.step = step

    def flags(self) -> list[AnyArray]:
        """One array that tells for each condition whether it holds somewhere; none without any."""
        held = [c.bad.any() if c.bad.ndim else c.bad for c in self._held]
        return [self._xp.stack(held)] if held else []

    def look(self, *flags: Array) -> None:
        """Raises the error of the first one that holds; forgets them."""
        held, self._held = self._held, []
        for holds, condition in zip(flags[0] if flags else (), held, strict=True):
            if holds:
                self._raise(condition)

    def _raise(self, condition: Condition) -> None:
        try:
            condition.raises(*self._xp.on_host([condition.bad]))
        except LinAlgError as error:
            raise StepError(f"{error}{condition.when}", condition.step) from error
