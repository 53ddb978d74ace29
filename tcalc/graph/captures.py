"""Arrays that a traced function closes over: inputs of the trace, not constants in it.

So the plan that was made for one minibatch serves the next one.
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
    """The arrays that are read while this context is open, by the variables that stand for them.

    Where contexts nest, the outermost one collects.
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
def without_captures() -> Iterator[None]:
    """A context in which arrays are constants: for rules, whose arrays are no inputs."""
    before: Captures | None = getattr(_thread, "open", None)
    _thread.open = None
    try:
        yield
    finally:
        _thread.open = before


def captured(value: object, array: np.ndarray) -> Var | None:
    """The variable of an array while a function is traced; None otherwise, or for one number."""
    found: Captures | None = getattr(_thread, "open", None)
    return None if found is None or not array.ndim else found.held(value, array)
