"""Plans step by step, each by the reference of its kind: nothing is written twice.

There are no buffers, no tiles and no arrays that are kept between calls, so any namespace with
NumPy's functions will do, and what is computed here is what a plan means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...plan.failures import StepError, without_entries
from ...plan.kinds.kind import Result
from ...plan.kinds.table import KINDS
from ...plan.steps import INPUT, Output, Plan, Step
from ...support.arrays import AnyArray
from ...support.machine import NOMINAL_MACHINE
from ...support.namespaces import NUMPY
from ..interface import BackEnd


class FunctionalProgram:
    """A plan bound to a dtype and an array namespace; calling it gives a list of fresh outputs."""

    entries = None

    def __init__(self, plan: Plan, dtype: np.dtype[Any], xp: Any = NUMPY) -> None:
        self.plan, self.dtype, self.xp = plan, dtype, xp
        self._loops = {
            step.out: FunctionalProgram(step.params[-1], dtype, xp)
            for step in plan.steps
            if step.kind == "loop"
        }

    def __call__(self, arrays: Sequence[AnyArray]) -> list[AnyArray]:
        with np.errstate(all="ignore"):
            values = self._computed(arrays)
            return [self._own(values, output) for output in self.plan.outputs]

    def by_name(self, arrays: Mapping[str, AnyArray]) -> list[AnyArray]:
        """The outputs of an iteration of a loop, which nobody writes to."""
        values = self._computed([arrays[name] for name in self.plan.inputs])
        return [self._returned(values, output) for output in self.plan.outputs]

    def _computed(self, arrays: Sequence[AnyArray]) -> dict[int, AnyArray]:
        """Arrays by slot."""
        plan, xp = self.plan, self.xp
        values = {slot: xp.asarray(_written_out(array)) for slot, array in enumerate(arrays)}
        for slot, array in plan.consts.items():
            values[slot] = xp.asarray(array, None if slot in plan.integers else self.dtype)
        for step in plan.steps:
            values[step.out] = self._run(step, [self._read(values, slot) for slot in step.args])
        return values

    def _run(self, step: Step, arrays: Sequence[AnyArray]) -> AnyArray:
        params, result = step.params, Result(step.shape, self.dtype)
        if step.out in self._loops:
            params = (*params[:-1], self._loops[step.out].by_name)
        try:
            return KINDS[step.kind].reference(self.xp, result, params, *arrays)
        except np.linalg.LinAlgError as error:
            raise StepError(str(error), step) from error
        except ValueError as error:
            empty = without_entries(step, arrays)
            if empty is None:
                raise
            raise empty from error

    def _read(self, values: Mapping[int, AnyArray], slot: int) -> AnyArray:
        """An array, perhaps one that was made under another shape."""
        if slot in values:
            return values[slot]
        return self.xp.reshape(values[self.plan.owner[slot]], self.plan.shapes[slot])

    def _returned(self, values: Mapping[int, AnyArray], output: Output) -> AnyArray:
        array = self._read(values, output.slot)
        return array if output.perm is None else self.xp.transpose(array, output.perm)

    def _own(self, values: Mapping[int, AnyArray], output: Output) -> AnyArray:
        """An output that nobody else holds, but where an input is lent."""
        array = self._returned(values, output)
        lent = self.plan.origin[output.slot] is INPUT
        return array if lent else self.xp.array(array)[()]


#: The plans of NumPy, so that all kinds have their references computed.
def bind(plan: Plan, dtype: np.dtype[Any], threads: int = 1) -> FunctionalProgram:
    """The plan as functions of NumPy, which decide about threads themselves."""
    return FunctionalProgram(plan, dtype)


BACKEND = BackEnd(bind, available=lambda: None, machine=NOMINAL_MACHINE)


def _written_out(array: Any) -> AnyArray:
    """A sparse matrix of SciPy's as an array; any other array as it is."""
    found: AnyArray = array.toarray() if hasattr(array, "tocsr") else array
    return found
