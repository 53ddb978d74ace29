"""The threads of this process that share loops of C: one pool, which starts with its first job."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

from ...support.blas import OF_SCIPY, address, blas_threads, counted_by
from ...support.records import NamedTuple
from .compiler import loaded

#: What has a job done, and says how many threads BLAS would use now.
_GIVEN = ("tcalc_spread", "tcalc_pool_of_blas")
_SYMBOLS = (*_GIVEN, "tcalc_pool_blas", "tcalc_pool_single", "tcalc_pool_counts")


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
        library.tcalc_pool_blas.argtypes = [*[ctypes.c_void_p] * 2, ctypes.c_long, ctypes.c_int]

        def begin(count: int, before: int) -> None:
            library.tcalc_pool_blas(*map(address, (blas.asked, blas.told)), count, before)

        counted_by(blas, begin, library.tcalc_pool_single)
    return library


def given() -> list[int]:
    """Addresses of the function that has a job done, and of BLAS's number of threads."""
    return [address(_pool()[name]) for name in _GIVEN]


def counts() -> Counts:
    """What the pool has done in this process."""
    found = (ctypes.c_long * 3)()
    _pool().tcalc_pool_counts(found)
    return Counts(*found)
