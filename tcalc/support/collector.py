"""Python's collector of cycles, at rest while expressions and plans are made."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def resting_collector() -> Iterator[None]:
    """No cycles are looked for inside: also a decorator.

    Expressions and steps of plans hold no cycles and are many, all of which the collector would
    visit again and again as their number grows: a quarter of the time of long chains.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
