"""How many threads the BLAS of NumPy or of SciPy uses, where it is OpenBLAS, and to say so."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from itertools import product
from threading import Lock
from typing import Any

from .records import NamedTuple

#: Modules that are linked to them.
OF_NUMPY, OF_SCIPY = "numpy.linalg._umath_linalg", "scipy.linalg.cython_blas"
#: How builds of OpenBLAS rename its functions.
_BEFORE, _BEHIND = ("scipy_", ""), ("64_", "", "_64")


class BlasThreads(NamedTuple):
    """Functions of a BLAS: its number of threads, and to set it."""

    asked: Any
    told: Any


@cache
def blas_threads(module: str) -> BlasThreads | None:
    """Those of the BLAS that a module is linked to; None where it has no such functions."""
    path = import_module(module).__file__
    try:
        library = ctypes.CDLL(path)
    except OSError:
        return None
    for before, behind in product(_BEFORE, _BEHIND):
        asked, told = [f"{before}openblas_{word}_num_threads{behind}" for word in ("get", "set")]
        if hasattr(library, asked) and hasattr(library, told):
            return BlasThreads(library[asked], library[told])
    return None


def address(function: Any) -> int:
    """Where a function of C stands."""
    found = ctypes.cast(function, ctypes.c_void_p).value
    assert found is not None
    return found


class _Count:
    """Calls that want a BLAS to have one thread: the first says so, the last takes it back.

    Where others do that too, they count for all.
    """

    def __init__(self, blas: BlasThreads) -> None:
        self.blas = blas
        self.count = self.before = 0
        self.instead: Callable[[int], Any] | None = None
        self.begin()

    def begin(self) -> None:
        """In the child of a fork nobody is at work."""
        self.lock = Lock()
        if self.count and self.instead is None:
            self.blas.told(self.before)
        self.count = 0

    def change(self, more: int) -> None:
        """One more wants it, or one less."""
        with self.lock:
            if self.instead is not None:
                self.instead(more)
                return
            if not self.count:
                self.before = self.blas.asked()
                self.blas.told(1)
            self.count += more
            if not self.count:
                self.blas.told(self.before)


#: The counts of each BLAS, by the address of what tells it.
_COUNTS: dict[int, _Count] = {}


def _count_of(blas: BlasThreads) -> _Count:
    return _COUNTS.setdefault(address(blas.told), _Count(blas))


def _begin() -> None:
    for count in _COUNTS.values():
        count.begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin)


def counted_by(
    blas: BlasThreads, begin: Callable[[int, int], None], change: Callable[[int], Any]
) -> None:
    """Others count the calls that want a BLAS to have one thread.

    Parameters
    ----------
    blas : BlasThreads
    begin : callable
        Takes how many want it already, and how many threads it had before.
    change : callable
        Takes 1 for one more, -1 for one less.
    """
    count = _count_of(blas)
    with count.lock:
        begin(count.count, count.before)
        count.count, count.instead = 0, change


@contextmanager
def one_thread(*modules: str) -> Iterator[None]:
    """Within it the BLAS of each module has one thread, as several of ours call it."""
    counts = [_count_of(blas) for blas in map(blas_threads, modules) if blas is not None]
    for count in counts:
        count.change(1)
    try:
        yield
    finally:
        for count in counts:
            count.change(-1)
