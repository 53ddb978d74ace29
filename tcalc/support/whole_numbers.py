"""Whole numbers of any size, as far as they can be computed with and written."""

from __future__ import annotations

import math
from operator import index
from typing import SupportsIndex

from .limits import within

#: Bits below which a number is not long, whatever the limit on digits.
SHORT = 64
_LONG = 1 << SHORT


def whole_number(value: SupportsIndex) -> int:
    """The integer that a value is, not longer than the limit `digits`.

    Raises
    ------
    TypeError
        For what is no integer.
    LimitError
        For one with too many digits.
    """
    if type(value) is int and -_LONG < value < _LONG:
        return value
    number = index(value)
    bits = number.bit_length()
    if bits > SHORT:
        within("digits", int(bits * 0.30103) + 1)
    return number


def spelled_number(digits: str) -> int:
    """The integer that decimal digits spell, not longer than the limit `digits`.

    Raises
    ------
    LimitError
        Of more digits.
    """
    within("digits", len(digits))
    return int(digits)


def as_float(number: float) -> float:
    """The number as a float: infinite where an integer is too large for one."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def clipped_repr(value: object, width: int = 60) -> str:
    """How a value looks in a message; of integers too long to be written only their type."""
    try:
        return f"{value!r:.{width}}"
    except ValueError:
        return f"a long {type(value).__name__}"
