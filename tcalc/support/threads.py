"""How many threads a call may use: what is asked for, what the environment says, or the cores."""

from __future__ import annotations

import operator
import os

import numpy as np

#: The variable that says how many threads libraries of numbers use.
VARIABLE = "OMP_NUM_THREADS"
#: More than that are no help to anybody.
MOST = 256


def checked_threads(threads: object) -> int | None:
    """A number of threads as a user gives it; None where it is left to the environment.

    Raises
    ------
    TypeError
        If it is no integer. ValueError if it is below 1.
    """
    if threads is None:
        return None
    if isinstance(threads, bool | np.bool_) or not hasattr(threads, "__index__"):
        raise TypeError(f"threads= is a number of threads, not {threads!r}")
    found = operator.index(threads)
    if found < 1:
        raise ValueError(f"threads= is at least 1, not {found}")
    return min(found, MOST)


def default_threads() -> int:
    """What OMP_NUM_THREADS says, of a list the first; else the cores that this process may use."""
    first = os.environ.get(VARIABLE, "").partition(",")[0].strip()
    if first.isdecimal() and int(first):
        return min(int(first), MOST)
    try:
        return min(len(os.sched_getaffinity(0)), MOST)
    except (AttributeError, OSError):  # not everywhere
        return min(os.cpu_count() or 1, MOST)
