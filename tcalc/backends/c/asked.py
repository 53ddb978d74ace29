"""What a function of C asks of Python while it runs: single steps, on arrays where C has them.

Steps without a form in C, cases that are left to NumPy, and errors, which Python raises once C has
returned.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...plan.kinds.table import KINDS
from ...plan.steps import Step
from ...support.arrays import Array, Sizes
from ...support.errors import LinAlgError
from ...support.records import NamedTuple
from ..host.slots import Run

#: In C: the number of a question, and addresses of the step's result and operands; 0 where Python
#: has done it, else C returns.
ASK = "int (*)(int, char **)"
Answer = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_size_t))


class Lying(NamedTuple):
    """How an array lies, wherever it begins; strides in bytes."""

    dtype: np.dtype[Any]
    shape: Sizes
    strides: Sizes

    @staticmethod
    def of(a: Array) -> Lying:
        return Lying(a.dtype, a.shape, a.strides)

    def at(self, address: int) -> Array:
        return np.asarray(_Memory(address, self))


class _Memory:
    def __init__(self, address: int, lying: Lying) -> None:
        self.__array_interface__ = {
            "version": 3, "data": (address, False), "typestr": lying.dtype.str,
            "shape": lying.shape, "strides": lying.strides,
        }  # fmt: skip


class Question(NamedTuple):
    """A step that C may ask for.

    Attributes
    ----------
    step : Step
    run : Run
        It as NumPy does it.
    counts : tuple of int
        The numbers of steps of the loops around it, the outermost left out.
    arrays : tuple of Lying
        Its result and its operands.
    parts : tuple of Lying
        Of a result that is several arrays, each of these, one behind the other.
    """

    step: Step
    run: Run
    counts: tuple[int, ...]
    arrays: tuple[Lying, ...]
    parts: tuple[Lying, ...] = ()


class Answers:
    """Answers for one workspace, which one call at a time uses.

    Parameters
    ----------
    questions : sequence of Question
    times : numpy.ndarray
        The current step of every loop that runs, the outermost first; C writes them.
    """

    def __init__(self, questions: Sequence[Question], times: Array) -> None:
        self._questions, self._times = questions, times
        self._error: BaseException | None = None
        self._asked: Question | None = None
        self._callback: Any = Answer(self._answer) if questions else None

    @property
    def address(self) -> int | None:
        if self._callback is None:
            return None
        return ctypes.cast(self._callback, ctypes.c_void_p).value

    def _answer(self, number: int, addresses: Any) -> int:
        question = self._questions[number]
        try:
            _done(question, addresses)
        except BaseException as error:  # C cannot raise it
            self._error, self._asked = error, question
            return 1
        return 0

    def failed(self, count: int) -> BaseException:
        """The error that C has returned for, of a loop of so many steps."""
        error, question = self._error, self._asked
        assert error is not None
        assert question is not None
        self._error = self._asked = None
        if not isinstance(error, np.linalg.LinAlgError):
            return error
        text = str(error)
        counts = (count, *question.counts)
        for time, times in zip(self._times[: len(counts)][::-1], counts[::-1], strict=True):
            text = f"{text}, at step {time + 1} of {times} of a loop"
        found = LinAlgError(text)
        found.__cause__ = error
        return found


def _done(question: Question, addresses: Any) -> None:
    """The step's result, in the memory where C looks for it."""
    step = question.step
    slots: Any = {}
    numbers = (step.out, *step.args)
    for k, (slot, lying) in enumerate(zip(numbers, question.arrays, strict=True)):
        slots[slot] = lying.at(addresses[k])
    held = slots[step.out]
    if KINDS[step.kind].into_zeros:
        held.fill(0)
    question.run(slots)
    made, at = slots[step.out], addresses[0]
    for lying, part in zip(question.parts, made if question.parts else (), strict=True):
        lying.at(at)[...] = part
        at += part.size * lying.dtype.itemsize
    if made is not held and not question.parts:
        held[...] = made
