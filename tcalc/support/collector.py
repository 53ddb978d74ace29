"""Python's collector of cycles, at rest while expressions and plans are made, and in imports."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def resting_collector(lasting: bool = False) -> Iterator[None]:
    """No cycles are looked for inside: also a decorator.

    Expressions and steps of plans hold no cycles and are many, all of which the collector would
    visit again and again as their number grows: a quarter of the time of long chains. What lasts
    as long as the process, as modules do, it does not even visit at the end: a tenth of an import.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
        if lasting and not gc.get_freeze_count():
            gc.freeze()  # out of all generations, and into the oldest one
            gc.unfreeze()
    finally:
        gc.enable()
