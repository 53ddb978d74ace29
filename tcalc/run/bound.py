"""Programs bound to extents and dtypes, as calls find them again."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np

from ..backends.interface import Entry, Given, Program
from ..plan.lowering.memo import Known
from ..support.arrays import Array
from ..support.errors import MemoryLimitError

#: Entries that are made for one program: of arguments that lie otherwise each time there is no end.
MAX_ENTRIES = 2
#: Calls in which what a plan presumes is wrong, and was never right, until nothing is presumed.
DOUBTS = 3
#: How often all patience has ended.
_ended = 0


def end_patience() -> None:
    """Have the next call of every program that is not the best one look for that."""
    global _ended
    _ended += 1


class Bound:
    """A program for arrays of some extents and dtypes.

    Parameters
    ----------
    program : Program
    take : list of int or None
        The arguments it takes, of those given at a call and then those held; None: all in order.
    dtype : dtype
        That of floats.
    held : list of Array
        Data that were bound before, in this dtype.
    patience : float, optional
        Seconds that its calls may take until a better one is made; None for the best.
    known : dict
        What its plan has in common with that one's (`Known`).
    presumes : bool
        Whether its plan presumes what factorisations in it find out: where they fail, `otherwise`
        runs, which presumes nothing.
    parts : sequence of (int, str)
        Further arguments: of which of the arguments that are sparse, and what of its entries.
    """

    def __init__(
        self,
        program: Program,
        take: list[int] | None,
        dtype: np.dtype[Any],
        held: list[Array],
        patience: float | None = None,
        known: Known | None = None,
        presumes: bool = False,
        parts: Sequence[tuple[int, str]] = (),
    ) -> None:
        self.program, self.take, self.dtype, self.held = program, take, dtype, held
        self.patience, self.known = patience, known or {}
        self._since = _ended
        self.presumes, self.parts = presumes, parts
        self.otherwise: Bound | None = None
        self._right, self._wrong = False, 0
        self._calls = self._entries = 0

    def entry(self, given: Sequence[Given], unread: Sequence[Given]) -> Entry | None:
        """One for further calls with such arguments, in the order of those that are not held.

        Who calls once needs none, nor the memory that it keeps.
        """
        self._calls += 1
        if self._calls < 2 or self.parts:
            return None
        makes = self.program.entries
        inputs = [*given, *[Given("", a) for a in self.held]]
        take = range(len(inputs)) if self.take is None else self.take
        if makes is None or self._entries == MAX_ENTRIES:
            return None
        others = [one for k, one in enumerate(given) if k not in take]
        found = makes([inputs[k] for k in take], [*others, *unread])
        self._entries += found is not None
        return found

    def due(self) -> bool:
        """Is a better one to be made, as its calls have taken as long as that may take?"""
        return self.patience is not None and (self.patience <= 0 or self._since != _ended)

    def run(self, arrays: list[Array]) -> list[Any]:
        """The results, given the arguments that are not held."""
        start = 0.0 if self.patience is None else perf_counter()
        try:
            if self.take is None:
                results = self.program(arrays + self.held)
            else:
                given = [in_dtype(a, self.dtype) for a in arrays] + self.held
                given += [_entries_of(given[k], part) for k, part in self.parts]
                results = self.program([given[k] for k in self.take])
        except MemoryError as error:
            raise MemoryLimitError(f"the memory of this process is used up: {error}") from error
        self._right = True
        if self.patience is not None:
            self.patience -= perf_counter() - start
        return results

    def wrong(self) -> bool:
        """What it presumes was wrong in this call; was it so several times, and right never?"""
        self._wrong += 1
        return self._wrong >= DOUBTS and not self._right


def in_dtype(a: Array, dtype: np.dtype[Any]) -> Array:
    """Floats in this dtype; integers as they are."""
    return a.astype(dtype, copy=False) if a.dtype.kind == "f" else a


def _entries_of(matrix: Any, part: str) -> Array:
    """The numbers of all entries of a matrix in compressed rows, their rows or columns, or its
    diagonal, where the matrix lies.
    """
    if part in ("data", "diagonal"):
        numbers: Array = matrix.data if part == "data" else matrix.diagonal()
        return numbers
    places = matrix.tocoo(copy=False)
    found: Array = (places.row if part == "row" else places.col).astype(np.intp, copy=False)
    return found
