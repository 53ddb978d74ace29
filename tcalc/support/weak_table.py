"""A table whose values are held by others: one that nobody holds any more is gone from it.

`weakref.WeakValueDictionary` does that too. This one has only what the constructor of nodes calls,
without a Python function for looking up, and takes half the time.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any, Generic, TypeVar

T = TypeVar("T")

__all__: list[str] = []


class _Held(weakref.ref[T]):
    """A reference that knows its key."""

    __slots__ = ("key",)
    key: Any


class WeakTable(Generic[T]):
    """Values by key."""

    __slots__ = ("_lock", "find", "rows")

    def __init__(self) -> None:
        self.rows: dict[Any, _Held[T]] = {}
        #: The reference to the value of a key, None where there is none.
        self.find = self.rows.get
        self._lock = threading.RLock()  # what is collected meanwhile may be this table's

    def put(self, key: Any, value: T) -> T:
        """The value that the table has under this key, which is this one if there was none."""
        new = _Held(value, self._gone)
        new.key = key
        with self._lock:
            known = self.rows.setdefault(key, new)
            if known is not new:
                there = known()
                if there is not None:
                    return there
                self.rows[key] = new
        return value

    def _gone(self, held: _Held[T]) -> None:
        with self._lock:
            if self.rows.get(held.key) is held:
                del self.rows[held.key]
