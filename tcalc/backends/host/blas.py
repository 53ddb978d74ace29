"""How many threads the BLAS of NumPy or of SciPy uses, where it is OpenBLAS, and to say so."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from itertools import product
from threading import Lock
from typing import Any

from ...support.records import NamedTuple

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


class _OneThread:
    """Calls that want a BLAS to have one thread: the first says so, the last takes it back."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.count = self.before = 0


_ONE = _OneThread()


@contextmanager
def one_thread() -> Iterator[None]:
    """Within it NumPy's BLAS has one thread, as several of ours call it."""
    found = blas_threads(OF_NUMPY)
    if found is None:
        yield
        return
    with _ONE.lock:
        if not _ONE.count:
            _ONE.before = found.asked()
            found.told(1)
        _ONE.count += 1
    try:
        yield
    finally:
        with _ONE.lock:
            _ONE.count -= 1
            if not _ONE.count:
                found.told(_ONE.before)
