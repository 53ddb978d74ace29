"""Conditions under which numbers are errors, of arrays that it takes a while to ask.

Who computes with arrays of a device does not wait for each condition: it collects them, and looks
at all when results are there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from .arrays import AnyArray

#: Raises the error of a condition that holds somewhere, given it as an array of NumPy's.
Raises = Callable[[Any], None]
#: Takes a condition that is looked at later; False for one that costs nothing to look at now.
Collector = Callable[[AnyArray, Raises], bool]

_COLLECTOR: ContextVar[Collector | None] = ContextVar("collector", default=None)


@contextmanager
def collecting(collector: Collector) -> Iterator[None]:
    """Within it conditions go to a collector."""
    token = _COLLECTOR.set(collector)
    try:
        yield
    finally:
        _COLLECTOR.reset(token)


def looked_at_later(bad: AnyArray, raises: Raises) -> bool:
    """Does somebody else look whether it holds, and raise the error?"""
    collector = _COLLECTOR.get()
    return collector is not None and collector(bad, raises)


def known(condition: AnyArray) -> bool:
    """Does it hold for all entries? False where one had to wait to find out."""
    return _COLLECTOR.get() is None and bool(condition.all())
