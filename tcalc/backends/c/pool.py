"""The threads of this process that share loops of C: one pool, which starts with its first job."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

from ...support.records import NamedTuple
from ..host.blas import OF_SCIPY, blas_threads
from .compiler import loaded

_SYMBOLS = ("tcalc_spread", "tcalc_pool_blas", "tcalc_pool_counts")


class Counts(NamedTuple):
    """Jobs that threads shared, jobs that were done by one, and the threads that wait for jobs."""

    shared: int
    alone: int
    workers: int


@cache
def _pool() -> ctypes.CDLL:
    source = Path(__file__).with_name("routines") / "pool.c"
    library = loaded(source.read_text(encoding="utf-8"), _SYMBOLS, "-pthread")
    blas = blas_threads(OF_SCIPY)
    if blas is not None:
        library.tcalc_pool_blas(blas.asked, blas.told)
    return library


def spread() -> int:
    """The address of the function that has a job done."""
    found = ctypes.cast(_pool().tcalc_spread, ctypes.c_void_p).value
    assert found is not None
    return found


def counts() -> Counts:
    """What the pool has done in this process."""
    found = (ctypes.c_long * 3)()
    _pool().tcalc_pool_counts(found)
    return Counts(*found)
