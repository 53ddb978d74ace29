"""tcalc as it is where nobody names a back end: NumPy at first, C once functions are compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import tcalc as tc

from ..problem import Task
from . import Entry
from .own import entries

#: Calls after which all is asked for: a function is made for solves that come again, and one is
#: compiled that is called again.
CALLS = 3


def make(task: Task) -> Iterator[Entry]:
    return entries(task, "tcalc auto", partial(tc.compile, backend="auto"), Settled)


class Settled:
    """What is done again and again: the first time waits for the best plan, compiled."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call, self._called = call, False

    def __call__(self) -> Any:
        if not self._called:
            self._called = True
            for _ in ("of plans", "of functions"):
                for _ in range(CALLS):
                    self._call()
                tc.wait_for_compiler()
        return self._call()
