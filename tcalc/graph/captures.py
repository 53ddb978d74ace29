"""Arrays that a traced function closes over: inputs of the trace, not constants in it.

So the plan that was made for one minibatch serves the next one.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..support.digests import blake2b
from .nodes import Var, intern
from .properties import INTEGERS

#: Begins the names of variables that stand for arrays: no name that users can give does.
MARK = "@"

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
            name = f"{MARK}{kind}{len(self.arrays)}"
            v: Var = intern(Var, (name, array.shape, properties))
            self.arrays[v] = array
            self._known[id(value)] = value, v
        return self._known[id(value)][1]

    def stacked(self, rows: Sequence[Var]) -> Var | None:
        """The variable of these arrays along a leading axis; None where one was not captured."""
        if not all(v in self.arrays for v in rows):
            return None
        names = blake2b(" ".join([v.name for v in rows]).encode(), digest_size=8).hexdigest()
        shape = (len(rows), *rows[0].shape)
        v: Var = intern(Var, (f"{MARK}r{names}", shape, rows[0].properties))
        if v not in self.arrays:
            self.arrays[v] = np.stack([self.arrays[row] for row in rows])
        return v


def is_captured(v: Var) -> bool:
    """Does the variable stand for an array that a traced function closes over?"""
    return v.name.startswith(MARK)


def current() -> Captures | None:
    """What collects at the moment."""
    found: Captures | None = getattr(_thread, "open", None)
    return found


@contextmanager
def without_captures() -> Iterator[None]:
    """A context in which arrays are constants: for rules, whose arrays are no inputs."""
    before = current()
    _thread.open = None
    try:
        yield
    finally:
        _thread.open = before


def captured(value: object, array: np.ndarray) -> Var | None:
    """The variable of an array while a function is traced; None otherwise, or for one number."""
    found = current()
    return None if found is None or not array.ndim else found.held(value, array)
