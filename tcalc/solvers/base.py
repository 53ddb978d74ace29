"""What every solver offers and is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..contract import Array
from ..terms import Terms


class Unsuitable(Exception):
    """The numbers are not what a way of solving needs; the next way is tried."""


class Solver(Protocol):
    """A factored square tensor.

    Right-hand sides have the row shape and one more axis, solutions the column shape and that axis.
    """

    def solve(self, b: Array) -> Array: ...

    def slogdet(self) -> tuple[float, float]: ...

    def inverse(self) -> Terms:
        """The inverse as terms."""
        ...


class Way(NamedTuple):
    """One way to solve: what it is, its operations and bytes, and what makes a `Solver`."""

    text: str
    flops: float
    bytes: float
    build: Callable[[Terms], Any]


def numbers(value: Any, what: str) -> Array:
    """A right-hand side as an array of floats."""
    try:
        found = np.asarray(value)
    except ValueError:
        raise TypeError(f"{what}: an array of numbers was expected") from None
    if found.dtype.kind not in "fiub":
        raise TypeError(f"{what}: real numbers were expected, not {found.dtype}")
    if found.dtype.char in "fd":
        return found
    return found.astype(np.float64)


def damping_of(value: Any) -> float:
    """What is added to the diagonal, checked."""
    try:
        found = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"damping= is a number, not {value!r:.60}") from None
    if not np.isfinite(found):
        raise ValueError(f"damping={found} is not finite")
    return found
