"""What the stand-in for CuPy counts: waits, uploads, the memory of arrays."""

from __future__ import annotations

import weakref

import numpy as np


class Device:
    """What the device that there is not has done.

    Attributes
    ----------
    waits : int
        How many times it was waited for.
    uploads : list of tuple of int
        Shapes of the arrays that came from the host.
    raising : bool
        Do factorisations look whether they have failed?
    pending : list
        Copies to the host that were asked for and not waited for.
    number : int
        That of the device that is current.
    live, peak : int
        Bytes of the arrays that there are, and the most that there were.
    """

    def __init__(self) -> None:
        self.waits = 0
        self.uploads: list[tuple[int, ...]] = []
        self.raising = False
        self.pending: list[tuple[np.ndarray, np.ndarray]] = []
        self.live = self.peak = self.number = 0
        self._known: set[int] = set()

    def hold(self, array: np.ndarray) -> None:
        """Count the memory that an array lies in, until it is gone."""
        while isinstance(array.base, np.ndarray):
            array = array.base
        if id(array) not in self._known:
            self._known.add(id(array))
            self.live += array.nbytes
            self.peak = max(self.peak, self.live)
            weakref.finalize(array, self._drop, id(array), array.nbytes)

    def _drop(self, number: int, size: int) -> None:
        self._known.remove(number)
        self.live -= size

    def wait(self) -> None:
        self.waits += 1
        for target, source in self.pending:
            target[...] = source
        self.pending.clear()


DEVICE = Device()
