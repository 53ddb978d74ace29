"""Steps of functions with results that are no single array, in memory that a workspace holds.

LU factors, which later steps share, and the arrays of factorisations that have several.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from ...plan.steps import Plan, Step
from ...support.arrays import Array, Sizes
from .frames import Frame
from .matrices import several
from .rows import FEW_ROWS, SEVERAL


class Memory(ABC):
    """A result in a workspace, which one call at a time uses.

    Attributes
    ----------
    array : numpy.ndarray
        What it lies in, from the first byte on.
    """

    array: Array

    @property
    def address(self) -> int:
        """Where C finds it."""
        found: int = self.array.ctypes.data
        return found

    @abstractmethod
    def take(self, made: Any) -> None:
        """What something else has made of the step."""


class HeldStep(ABC):
    """A step of a function, whose result every workspace has memory for.

    Attributes
    ----------
    bytes : int
        Of that memory.
    """

    bytes: int

    @abstractmethod
    def memory(self) -> Memory:
        """For one workspace; steps in Python find there what they do elsewhere."""

    @abstractmethod
    def text(self, frame: Frame, given: Sequence[Array], number: int) -> str:
        """The step in C, given its operands and the number that says that it is left to Python."""

    def failed(self, memory: Any) -> BaseException | None:
        """The error that C has returned for; None where Python is to do the step."""
        return None


# --- several arrays -------------------------------------------------------------------------------


class SeveralArrays(Memory):
    """Arrays one behind the other."""

    def __init__(self, shapes: Sequence[Sizes], dtype: np.dtype[Any]) -> None:
        self._arrays = []
        self.array = np.empty(sum(map(prod, shapes)), dtype)
        first = 0
        for shape in shapes:
            self._arrays.append(self.array[first : first + prod(shape)].reshape(shape))
            first += prod(shape)

    def __getitem__(self, number: int) -> Array:
        return self._arrays[number]

    def take(self, made: Any) -> None:
        for held, array in zip(self._arrays, made, strict=True):
            held[...] = array


class SeveralResults(HeldStep):
    """A factorisation with several results."""

    def __init__(self, plan: Plan, step: Step, dtype: np.dtype[Any]) -> None:
        op, *params = step.params
        self._step, self._dtype = step, dtype
        self._shapes = op.meaning.shape(tuple(params), *[plan.shapes[a] for a in step.args])
        self.bytes = sum(map(prod, self._shapes)) * dtype.itemsize

    def memory(self) -> SeveralArrays:
        return SeveralArrays(self._shapes, self._dtype)

    def text(self, frame: Frame, given: Sequence[Array], number: int) -> str:
        return several(frame, self._step)


# --- LU factors -----------------------------------------------------------------------------------


class Factors(Memory):
    """LU factors of a transposed matrix, exchanged rows, and the first zero on the diagonal of U.

    They are read as the tuple of what SciPy makes, in which rows are counted from 0.
    """

    def __init__(self, n: int, dtype: np.dtype[Any]) -> None:
        entries = n * n * dtype.itemsize
        self.array = np.empty(entries + (n + 1) * np.dtype(np.intc).itemsize, np.uint8)
        self._lu = self.array[:entries].view(dtype).reshape(n, n)
        self._rows = self.array[entries:].view(np.intc)

    def __iter__(self) -> Iterator[Any]:
        return iter((self._lu.T, self._rows[:-1] - 1, int(self._rows[-1])))

    def take(self, made: Any) -> None:
        self._lu.T[...], rows, self._rows[-1] = made
        self._rows[:-1] = rows + 1


class HeldFactors(HeldStep):
    """LU factors that several steps read."""

    def __init__(self, plan: Plan, step: Step, dtype: np.dtype[Any]) -> None:
        self._step, self._n, self._dtype = step, plan.shapes[step.args[0]][-1], dtype
        self.bytes = self._n * (self._n + 1) * dtype.itemsize

    def memory(self) -> Factors:
        return Factors(self._n, self._dtype)

    def text(self, frame: Frame, given: Sequence[Array], number: int) -> str:
        (a,) = self._step.args
        r, c = frame.arrays[a].strides
        return f"if (factor_lu(p{a}, {r}, {c}, p{self._step.out}, {self._n})) {{ FAIL; }}"


def held(plan: Plan, dtype: np.dtype[Any]) -> dict[int, HeldStep]:
    """By slot, the factorisations of a plan that are steps of functions."""
    found: dict[int, HeldStep] = {}
    for step in plan.steps:
        if step.kind not in ("factor", "kernels") or step.out in plan.fixed:
            continue
        shape = plan.shapes[step.args[0]]
        if not prod(shape) or max(shape[-2:]) > FEW_ROWS:
            continue
        if step.kind == "factor":
            found[step.out] = HeldFactors(plan, step, dtype)
        elif step.params[0].name in SEVERAL:
            found[step.out] = SeveralResults(plan, step, dtype)
    return found
