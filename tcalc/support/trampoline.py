"""Recursion on an explicit stack, so that the depth of a text costs no stack of Python's."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from .limits import spend

#: Steps that a call takes besides its own work.
_CALLED = 4
#: A function that yields calls of itself (as generators), is sent their results, and returns one.
Steps = Generator[Any, Any, Any]


def run(steps: Steps) -> Any:
    """The result of a generator, every generator that it yields replaced by its result."""
    stack, result = [steps], None
    while stack:
        spend("steps", _CALLED)
        try:
            inner = stack[-1].send(result)
        except StopIteration as stop:
            stack.pop()
            result = stop.value
        else:
            stack.append(inner)
            result = None
    return result
