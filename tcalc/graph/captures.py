"""Arrays that a traced function reads from outside: inputs of the trace, not parts of it.

So a plan that was made for one minibatch is the plan of the next one.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .nodes import Var, intern
from .properties import INTEGERS

_thread = threading.local()


class Captures:
    """The arrays that are met while this is open, by the variables that stand for them.

    Inside of another one, that one takes them.
    """

    def __init__(self) -> None:
        self.arrays: dict[Var, np.ndarray] = {}
        self._known: dict[int, tuple[Any, Var]] = {}

    def __enter__(self) -> Captures:
        self._before: Captures | None = getattr(_thread, "open", None)
        found = self if self._before is None else self._before
        _thread.open = found
        return found

    def __exit__(self, *_: object) -> None:
        _thread.open = self._before

    def held(self, value: object, array: np.ndarray) -> Var:
        """The variable of an array; `value` is the object that it was read from."""
        if id(value) not in self._known:
            kind, properties = ("k", INTEGERS) if array.dtype.kind in "iu" else ("c", ())
            name = f"@{kind}{len(self.arrays)}"  # no name that users can give
            v: Var = intern(Var, (name, array.shape, properties))
            self.arrays[v] = array
            self._known[id(value)] = value, v
        return self._known[id(value)][1]


@contextmanager
def closed() -> Iterator[None]:
    """Arrays that are met meanwhile are constants: those of rules, not of a traced function."""
    before: Captures | None = getattr(_thread, "open", None)
    _thread.open = None
    try:
        yield
    finally:
        _thread.open = before


def captured(value: object, array: np.ndarray) -> Var | None:
    """The variable for an array where a function is traced; None elsewhere."""
    found: Captures | None = getattr(_thread, "open", None)
    return None if found is None or not array.ndim else found.held(value, array)
