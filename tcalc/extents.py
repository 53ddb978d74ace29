"""Extents of indices and the scalar coefficients of products.

An extent is an int, or the name of a dimension that arrays bind at evaluation. A coefficient is a
number times a monomial in dimensions: the trace of the identity is n, a mean divides by n.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

Extent = int | str
Number = int | float
Shape = tuple[Extent, ...]

_EXACT = 2**53


def canonical_number(value: Number) -> Number:
    """One Python object type per value: integral floats become ints, -0.0 stays a float."""
    if isinstance(value, int):
        value = int(value)
        if -_EXACT <= value <= _EXACT:
            return value
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    value = float(value)
    if value.is_integer() and abs(value) <= _EXACT and (value != 0 or math.copysign(1, value) > 0):
        return int(value)
    return value


class Coef(NamedTuple):
    """value * prod(times) / prod(over), dimensions sorted with repetition.

    A dimension above and below the line cancels only while it stays below: n/n² is 1/n, but n/n is
    undefined at n = 0.
    """

    value: Number = 1
    times: tuple[str, ...] = ()
    over: tuple[str, ...] = ()

    def by(self, other: Coef) -> Coef:
        if other is ONE:
            return self
        if self is ONE:
            return other
        times, over = list(self.times + other.times), list(self.over + other.over)
        for name in set(times).intersection(over):
            for _ in range(min(times.count(name), over.count(name) - 1)):
                times.remove(name)
                over.remove(name)
        value = canonical_number(self.value * other.value)
        return Coef(value, tuple(sorted(times)), tuple(sorted(over)))

    @property
    def zero(self) -> bool:
        return self.value == 0

    def evaluate(self, sizes: Mapping[str, int]) -> Number:
        """The number once dimensions have extents; 0/0 is nan as for a mean of nothing."""
        above, below = self.value, 1
        for name in self.times:
            above *= sizes[name]
        for name in self.over:
            below *= sizes[name]
        if below == 0:
            return math.nan
        return canonical_number(above / below) if below != 1 else above

    def key(self) -> tuple[str, str, tuple[str, ...], tuple[str, ...]]:
        """Exact key: distinguishes 0.0 from -0.0 and joins all NaNs."""
        value = self.value
        text = value.hex() if isinstance(value, float) else str(value)
        return (type(value).__name__, text, self.times, self.over)


ONE = Coef()


def number(value: Number) -> Coef:
    return ONE if value == 1 else Coef(canonical_number(value))


def extent_coef(extent: Extent) -> Coef:
    """Multiplication by an extent: a summed index that no operand has."""
    return Coef(extent) if isinstance(extent, int) else Coef(1, (extent,))


def inverse_extent(extent: Extent) -> Coef:
    """Division by an extent, as a mean does."""
    if isinstance(extent, int):
        return Coef(canonical_number(1 / extent) if extent else math.nan)
    return Coef(1, (), (extent,))


def show_shape(shape: Shape) -> str:
    """`(m, n)`, the way shapes appear in messages."""
    return "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


def extent_of(extent: Extent, sizes: Mapping[str, int]) -> int:
    return extent if isinstance(extent, int) else sizes[extent]
