"""NumPy at first, C as soon as it is there: what runs where nothing else is asked for."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from ...plan.steps import Plan
from ...support.arrays import Array
from ...support.collector import resting_collector
from ...support.errors import Error
from ..interface import BackEnd, EntryMaker, Program
from ..numpy.program import BACKEND as NUMPY


class FromNumpyToC:
    """A plan on NumPy for one call, and from the second on C where there is a compiler.

    Functions are compiled in the background; NumPy does their work until they are there. Who calls
    once pays nothing for C, not even for the modules that write it, nor for the choice of a plan
    where another one is found sooner (`once` of a back end).
    """

    def __init__(self, plan: Plan, dtype: np.dtype[Any], threads: int = 1) -> None:
        self._bound, self._calls = (plan, dtype, threads), 0
        self._program: Program = NUMPY.bind(plan, dtype, threads)

    @property
    def entries(self) -> EntryMaker | None:
        return self._program.entries

    def __call__(self, arrays: Sequence[Array]) -> list[Any]:
        if self._calls < 2:
            # Of threads that are here at once several may bind it; one program is kept.
            self._calls += 1
            if self._calls >= 2:
                self._program = _in_c(*self._bound) or self._program
        return self._program(arrays)


@resting_collector()
def _in_c(plan: Plan, dtype: np.dtype[Any], threads: int) -> Program | None:
    """The plan on C, functions compiled in the background; None without a compiler."""
    c = import_module("..c.program", __package__)
    try:
        c.available()
    except Error:
        return None
    program: Program = c.bind(plan, dtype, threads, c.Beside)
    return program


def _wait(seconds: float | None) -> bool:
    """For the queue of all programs; nothing stands in it before C has been asked for."""
    background = sys.modules.get(f"{__package__.removesuffix('auto')}c.background")
    return background is None or bool(background.BACKGROUND.wait(seconds))


BACKEND = BackEnd(
    FromNumpyToC,
    available=lambda: None,
    machine=NUMPY.machine,
    refuses=NUMPY.refuses,
    wait=_wait,
    once=NUMPY.bind,
)
