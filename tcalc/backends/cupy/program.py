"""Plans on CuPy: what a call enqueues on CuPy's current stream, and what it waits for.

Data and constants are uploaded once, and what depends on nothing else is computed once. Results
come back as NumPy's arrays, all in one wait, unless an argument was on the device already.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np

from ...plan.failures import StepError
from ...plan.steps import INPUT, Output, Plan, Step
from ...support.arrays import AnyArray
from ...support.conditions import collecting
from ...support.machine import COMMON_FORMS, Machine
from ...support.namespaces import is_sparse, on_device
from ..interface import BackEnd
from .conditions import Conditions
from .factorisations import Doubt
from .fusion import FusedSteps, FusedSum, KernelText
from .library import CuPy, available, free_memory, library
from .pieces import Layout, Piece, SingleStep, Values, of_host, together
from .schedule import Schedule
from .sparse import uploaded

#: A device has many more multiply-adds than numbers to read, and no cache that tiles stay in.
MACHINE = Machine(gemm=16.0, forms=COMMON_FORMS - {"gram", "half", "tile"})


class DeviceProgram:
    """A plan bound to a dtype; calling it gives a list of fresh outputs.

    Parameters
    ----------
    stay : bool
        Do outputs stay on the device, wherever the arguments are?
    """

    entries = None

    def __init__(self, plan: Plan, dtype: np.dtype[Any], xp: CuPy, stay: bool = False) -> None:
        self.plan, self.dtype, self.xp, self._stay = plan, dtype, xp, stay
        self._layout = layout = Layout(plan)
        once = [s for s in plan.steps if s.out in plan.fixed]
        each = [s for s in plan.steps if s.out not in plan.fixed]
        returned = {layout.holder(output.slot) for output in plan.outputs}
        lasting = returned | {layout.holder(a) for step in each for a in step.args}
        self._once = self._pieces(once, lasting)
        self._each = self._pieces(each, returned)
        self._drops = _drops(self._each, returned)
        self._lasting = {k for k in lasting if k in plan.fixed or k in plan.consts}
        #: What calls share, by the number of the device.
        self._kept: dict[int, Values] = {}
        self._lock = threading.Lock()

    def _pieces(self, steps: Sequence[Step], returned: set[int]) -> list[Piece]:
        schedule = Schedule(self._layout, self.dtype, self.xp, self._single, returned)
        return together(schedule.of(steps), self.xp)

    def _single(self, step: Step) -> SingleStep:
        loop = step.kind == "loop"
        inner = DeviceProgram(step.params[-1], self.dtype, self.xp) if loop else None
        return SingleStep(self._layout, step, self.dtype, self.xp, inner)

    @property
    def kernels(self) -> list[KernelText]:
        """The kernels of its own, those in steps of loops too."""
        found = []
        for piece in (*self._once, *self._each):
            if isinstance(piece, FusedSteps | FusedSum):
                found.append(piece.text())
            elif isinstance(piece, SingleStep) and piece.inner is not None:
                found += piece.inner.kernels
        return found

    # --- calls ------------------------------------------------------------------------------------

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        try:
            return self._called(arrays, "ignore")
        except Doubt:
            return self._called(arrays, "raise")

    def _called(self, arrays: Sequence[Any], failures: str) -> list[Any]:
        """The outputs; what CuPy does about factorisations that fail is said."""
        conditions, xp = Conditions(self.xp), self.xp
        stay = self._stay or any(map(on_device, arrays))
        with xp.failures(failures), collecting(conditions.collect):
            try:
                values = self._computed(arrays, conditions)
            except Exception as error:  # perhaps because of what an earlier condition is about
                self._settle(conditions)
                if isinstance(error, np.linalg.LinAlgError):
                    raise StepError(str(error), conditions.step) from error
                raise
            results = [self._result(values, output) for output in self.plan.outputs]
        if stay:
            self._settle(conditions)
            return [self._own(a, k) for k, a in enumerate(results)]
        found = xp.on_host([*results, *conditions.flags()])
        conditions.look(*found[len(results) :])
        return [a[()] for a in found[: len(results)]]

    def _computed(self, arrays: Sequence[Any], conditions: Conditions) -> Values:
        """Arrays by slot: those that outputs are read from, and a few more."""
        device = self.xp.cuda.get_device_id()
        with self._lock:
            if device not in self._kept:
                found = self._fixed(arrays, conditions)
                self._settle(conditions)
                self.xp.cuda.get_current_stream().synchronize()  # other streams read them too
                self._kept[device] = found
        values = self._kept[device] | self._given(arrays, fixed=False)
        for piece, drops in zip(self._each, self._drops, strict=True):
            conditions.at(piece.step)
            piece.run(values, conditions)
            for slot in drops:
                del values[slot]
        return values

    def _settle(self, conditions: Conditions) -> None:
        """Raise the error of a condition that holds."""
        conditions.look(*self.xp.on_host(conditions.flags()))

    def _given(self, arrays: Sequence[Any], fixed: bool) -> Values:
        """Arguments that never change, or those that do, on the device; integers where they are."""
        integers, known = self.plan.integers, self.plan.fixed
        return {
            k: a if k in integers else uploaded(a) if is_sparse(a) else self.xp.asarray(a)
            for k, a in enumerate(arrays)
            if (k in known) == fixed
        }

    def _fixed(self, arrays: Sequence[Any], conditions: Conditions) -> Values:
        """Constants, data, and what is computed of them alone, as far as calls read it."""
        plan, values = self.plan, self._given(arrays, fixed=True)
        for slot, array in plan.consts.items():
            integral = slot in plan.integers
            values[slot] = array if integral else self.xp.asarray(array, self.dtype)
        for piece in self._once:
            conditions.at(piece.step)
            piece.run(values, conditions)
        return {k: a for k, a in values.items() if k in self._lasting}

    # --- results ----------------------------------------------------------------------------------

    def _result(self, values: Values, output: Output) -> AnyArray:
        array = self._layout.read(self.xp, values, output.slot)
        array = array.toarray() if is_sparse(array) else self.xp.asarray(array)
        return array if output.perm is None else self.xp.transpose(array, output.perm)

    def _own(self, array: AnyArray, number: int) -> AnyArray:
        """An output that nobody else holds, but where an input is lent."""
        lent = self.plan.origin[self.plan.outputs[number].slot] is INPUT
        return array if lent else self.xp.array(array)

    # --- loops ------------------------------------------------------------------------------------

    def stepper(self, conditions: Conditions, times: int) -> Callable[..., list[AnyArray]]:
        """Runs an iteration of a loop of so many, given arrays by name, each time it is called."""
        numbers = count(1)
        kept: Values | None = None

        def step(named: Mapping[str, AnyArray]) -> list[AnyArray]:
            nonlocal kept
            arrays = [named[name] for name in self.plan.inputs]
            conditions.times.append(f", at step {next(numbers)} of {times} of a loop")
            if kept is None:
                kept = self._fixed(arrays, conditions)
            values = kept | self._given(arrays, fixed=False)
            for piece, drops in zip(self._each, self._drops, strict=True):
                piece.run(values, conditions)
                for slot in drops:
                    del values[slot]
            conditions.times.pop()
            return [self._result(values, output) for output in self.plan.outputs]

        return step


def _drops(pieces: Sequence[Piece], returned: set[int]) -> list[set[int]]:
    """What each piece is the last to read, or nobody reads."""
    found: list[set[int]] = []
    later = set(returned)
    for piece in reversed(pieces):
        found.append({*piece.reads, *piece.makes} - later)
        later |= found[-1]
    return found[::-1]


def bind(plan: Plan, dtype: np.dtype[Any], threads: int = 1) -> DeviceProgram:
    """The plan on the device, which decides about threads itself."""
    return DeviceProgram(plan, dtype, library())


def bind_lent(plan: Plan, dtype: np.dtype[Any], threads: int = 1) -> DeviceProgram:
    """The plan on the device, where its outputs stay."""
    return DeviceProgram(plan, dtype, library(), stay=True)


def hosted(plan: Plan) -> list[str]:
    """The operators that the host computes, in steps of loops too."""
    found: dict[str, None] = {}
    for step in plan.steps:
        if step.kind == "loop":
            found |= dict.fromkeys(hosted(step.params[-1]))
        elif of_host(step):
            found[step.params[0].name] = None
    return list(found)


def remark(plan: Plan) -> str:
    """What of a plan runs on the host."""
    names = hosted(plan)
    return f"computed by the host: {', '.join(names)}" if names else ""


BACKEND = BackEnd(
    bind, available, MACHINE, memory=free_memory, device=True, remark=remark, bind_lent=bind_lent
)
