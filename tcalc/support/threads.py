"""How many threads a call may use: what is asked for, what the environment says, or the cores."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterator
from functools import cache

import numpy as np

from ..support.machine import group_files

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
    """What OMP_NUM_THREADS says, of a list the first; else the cores that this process may use.

    Those are the ones that it runs on, or fewer where its control group has the time of fewer.
    """
    first = os.environ.get(VARIABLE, "").partition(",")[0].strip()
    if first.isdecimal() and int(first):
        return min(int(first), MOST)
    try:
        found = len(os.sched_getaffinity(0))
    except (AttributeError, OSError):  # not everywhere
        found = os.cpu_count() or 1
    return max(1, min(found, _time(), MOST))


@cache
def _time() -> int:
    return min(group_cores(), default=MOST)


def group_cores(
    membership: str | os.PathLike[str] = "/proc/self/cgroup",
    root: str | os.PathLike[str] = "/sys/fs/cgroup",
) -> Iterator[int]:
    """Cores that the control groups of this process have the time of, a last part counted whole."""
    for text in group_files("cpu.max", "cpu", "", membership, root):
        words = text.split()
        if len(words) == 2 and all(map(str.isdecimal, words)) and int(words[1]):
            yield -(-int(words[0]) // int(words[1]))
