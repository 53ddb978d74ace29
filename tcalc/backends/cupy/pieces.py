"""Pieces of a program: what enqueues one step, or several as one kernel."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Protocol

import numpy as np

from ...plan.failures import without_entries
from ...plan.kinds.kind import Result
from ...plan.kinds.table import KINDS
from ...plan.steps import Plan, Step
from ...support.namespaces import NUMPY, ArrayNamespace
from .conditions import Conditions
from .kernels import FINISHED, KERNELS, OF_HOST, ROWS, Kernel
from .library import BY_HOST, CuPy

#: Arrays by slot.
Values = dict[int, Any]


class Piece(Protocol):
    """Part of a program.

    Attributes
    ----------
    reads, makes : collection of int
        Slots.
    """

    @property
    def reads(self) -> Collection[int]: ...

    @property
    def makes(self) -> Collection[int]: ...

    @property
    def step(self) -> Step:
        """The one that an error is about."""

    def run(self, values: Values, conditions: Conditions) -> None:
        """Put into `values` what it makes."""


#: A step as a piece of its own.
Single = Callable[[Step], Piece]


class Layout:
    """Which slots of a plan hold arrays of their own, and the shapes of the others."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._held = {*range(len(plan.inputs)), *plan.consts, *[s.out for s in plan.steps]}
        self._integral = plan.integral

    def holder(self, slot: int) -> int:
        """The slot whose array it is, perhaps under another shape."""
        return slot if slot in self._held else self.plan.owner[slot]

    def integral(self, slot: int) -> bool:
        """Does it hold integers?"""
        return self.holder(slot) in self._integral

    def reader(self, xp: ArrayNamespace, slot: int) -> Callable[[Values], Any]:
        """What gives a slot's array of the arrays that there are."""
        if slot in self._held:
            return itemgetter(slot)
        owner, shape = self.plan.owner[slot], self.plan.shapes[slot]
        return lambda values: xp.reshape(values[owner], shape)

    def read(self, xp: ArrayNamespace, values: Values, slot: int) -> Any:
        return self.reader(xp, slot)(values)


class SingleStep:
    """One step by a kernel of the library.

    Parameters
    ----------
    bind : callable
        Gives what runs a loop's plan, of arrays by name, given how many steps a call makes.
    """

    def __init__(
        self, layout: Layout, step: Step, dtype: np.dtype[Any], xp: CuPy, inner: Any = None
    ) -> None:
        self.step, self._xp, self.inner = step, xp, inner
        self.reads = {layout.holder(a) for a in step.args}
        self.makes = {step.out}
        self._kernel = kernel_of(step)
        self._read = {id(space): [layout.reader(space, a) for a in step.args]
                      for space in (xp, NUMPY)}  # fmt: skip
        self._result = Result(step.shape, dtype)
        self._integers = [a in layout.plan.integers and step.kind not in OF_HOST for a in step.args]

    def run(self, values: Values, conditions: Conditions) -> None:
        values[self.step.out] = self.made(self._xp, values, conditions)

    def made(self, xp: ArrayNamespace, values: Values, conditions: Conditions) -> Any:
        """What it makes of arrays of a namespace, this one's or NumPy's."""
        step, params = self.step, self.step.params
        arrays = [read(values) for read in self._read[id(xp)]]
        arrays = [xp.asarray(a) if n else a for a, n in zip(arrays, self._integers, strict=True)]
        if self.inner is not None:
            params = (*params[:-1], self.inner.stepper(conditions, params[-3]))
        try:
            return self._kernel(xp, self._result, params, *arrays)
        except np.linalg.LinAlgError:
            raise
        except ValueError as error:
            empty = without_entries(step, arrays)
            if empty is None:
                raise
            raise empty from error


class HostSteps:
    """Steps that the host computes, one after the other: what they read comes in one wait."""

    def __init__(self, steps: Sequence[SingleStep], xp: CuPy) -> None:
        self.steps, self._xp = steps, xp
        self.step = steps[0].step
        self.makes = {one.step.out for one in steps}
        self.reads = {slot for one in steps for slot in one.reads} - self.makes

    def run(self, values: Values, conditions: Conditions) -> None:
        slots = sorted(self.reads)
        held = dict(zip(slots, self._xp.on_host([values[k] for k in slots]), strict=True))
        for one in self.steps:
            conditions.at(one.step)
            found = held[one.step.out] = one.made(NUMPY, held, conditions)
            several = isinstance(found, tuple)
            asarray = self._xp.asarray
            values[one.step.out] = tuple(map(asarray, found)) if several else asarray(found)


def together(pieces: Sequence[Piece], xp: CuPy) -> list[Piece]:
    """The pieces in an order in which what the host computes waits as seldom as it can.

    A piece comes after as many waits as what it reads needs; those of the host then come last.
    """
    makers: dict[int, tuple[int, bool]] = {}
    waits: list[tuple[int, bool]] = []
    for piece in pieces:
        host = isinstance(piece, SingleStep) and of_host(piece.step)
        before = [makers[slot] for slot in piece.reads if slot in makers]
        least = max([n + (made and not host) for n, made in before], default=0)
        waits.append((least, host))
        makers |= dict.fromkeys(piece.makes, waits[-1])
    found: list[Piece] = []
    order = sorted(range(len(pieces)), key=waits.__getitem__)
    for (_, host), numbers in groupby(order, waits.__getitem__):
        group = [pieces[k] for k in numbers]
        singles = [piece for piece in group if host and isinstance(piece, SingleStep)]
        found += [HostSteps(singles, xp)] if singles else group
    return found


def of_host(step: Step) -> bool:
    """Is it a step that needs NumPy's arrays, or a function of entries that only SciPy has?"""
    if not KINDS[step.kind].operator or step.kind in ("factor", "loop"):
        return False
    op = step.params[0]
    own = op.kernels.host and op.kernels.portable is None and op.name not in ROWS
    return own or op.name in BY_HOST


def kernel_of(step: Step) -> Kernel:
    """The kernel of a step: of its row, of its kind, or the kind's reference."""
    reference = KERNELS.get(step.kind, KINDS[step.kind].reference)
    if not KINDS[step.kind].operator or step.kind == "factor":
        return reference
    op = step.params[0]
    finishes = step.kind == "finish" or (step.kind == "over" and op.kernels.finish is not None)
    found = (FINISHED if finishes else ROWS).get(op.name)
    if found is None:
        return reference
    kernel: Kernel = found
    return lambda xp, result, params, *arrays: kernel(xp, params[1:], *arrays)
