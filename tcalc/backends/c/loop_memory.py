"""The memory of loops in C, which one call at a time uses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...support.arrays import Array
from .asked import ASK, Answers
from .held import Memory
from .loop_layout import LoopStates, Place, Whole


class LoopMemory(Memory):
    """Constants are there from the start, and what C asks Python with.

    Parameters
    ----------
    whole : Whole
        All of it is laid out.
    states : LoopStates, optional
        Of a loop in a step, whose outputs are `memory[number]`.

    Attributes
    ----------
    times : numpy.ndarray
        The current step of every loop that runs, the outermost first; C writes them.
    answers : Answers
    """

    def __init__(self, whole: Whole, states: LoopStates | None = None) -> None:
        asked, times = whole.ends
        memory = np.empty(whole.bytes + 64, np.uint8)
        start = -memory.ctypes.data % 64
        self.array = memory[start : start + whole.bytes]
        for place, array in whole.constants:
            self.array[place : place + array.nbytes] = array.reshape(-1).view(np.uint8)
        self.times = self._at(times, (whole.depth,))
        self.times.fill(0)
        self.answers = Answers(whole.questions, self.times)
        self._at(asked, ())[...] = self.answers.address or 0
        parts = {} if states is None else states.parts
        self._parts = {k: self._at(place, array.shape) for k, (place, array) in parts.items()}

    def _at(self, place: Place, shape: Sequence[int]) -> Array:
        return np.ndarray(shape, place.dtype, self.array, place.at)

    def __getitem__(self, number: int) -> Array:
        return self._parts[number]

    def take(self, made: Sequence[Array]) -> None:
        for number, part in self._parts.items():
            part[...] = made[number]


def asking(whole: Whole) -> str:
    """C for what steps ask Python with, where all memory is laid out."""
    asked, times = whole.ends
    kind, name = ASK.replace("(*)", "(**)"), ASK.replace("(*)", "(*ask)")
    return f"{name} = *({kind})(w + {asked.at}L);\nlong *times = {times};"
