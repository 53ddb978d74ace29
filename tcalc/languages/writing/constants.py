"""Numbers as people write them: rationals, and multiples of a few constants."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache

from ...graph.extents import Number, canonical_number, doubles_of, product_of, quotient_of
from ...support.limits import spend
from ...support.records import NamedTuple


class Constant(NamedTuple):
    """What is written for a number; LaTeX of it."""

    text: str
    value: float
    latex: str


CONSTANTS = (
    Constant("pi", math.pi, r"\pi"),
    Constant("pi^2", math.pi * math.pi, r"\pi^{2}"),
    Constant("sqrt(pi)", math.sqrt(math.pi), r"\sqrt{\pi}"),
    Constant("sqrt(2*pi)", math.sqrt(2 * math.pi), r"\sqrt{2 \pi}"),
    Constant("sqrt(2)", math.sqrt(2), r"\sqrt{2}"),
    Constant("sqrt(3)", math.sqrt(3), r"\sqrt{3}"),
    Constant("sqrt(5)", math.sqrt(5), r"\sqrt{5}"),
    Constant("log(2)", math.log(2), r"\log(2)"),
    Constant("log(10)", math.log(10), r"\log(10)"),
    Constant("log(pi)", math.log(math.pi), r"\log(\pi)"),
    Constant("log(2*pi)", math.log(2 * math.pi), r"\log(2 \pi)"),
)
VALUES = {constant.text: constant.value for constant in CONSTANTS}
LATEX = {constant.text: constant.latex for constant in CONSTANTS}
#: Multiples and parts of constants that are looked for.
LARGEST = 100
PARTS = 24
DEGREES = 180
#: Digits of a number from which on it may be a multiple of a constant.
LONG = 6
#: Steps that a candidate takes.
TRIED = 6
#: Is the number pi written by its name?
_PI: ContextVar[bool] = ContextVar("_PI", default=True)
#: What a number may be off by that several operations have rounded, in units of its last place.
ROUNDED = 4


def ratio(value: Number) -> tuple[list[str], list[str]]:
    """A positive number as factors above a line and below; as digits where it is no such ratio.

    Read back, the factors give the same double.
    """
    above, below = _ratio(value, _PI.get())
    return list(above), list(below)


@contextmanager
def named_beside(names: Container[str]) -> Iterator[None]:
    """Inside, constants are digits where a variable has the name that they are written with."""
    token = _PI.set("pi" not in names)
    try:
        yield
    finally:
        _PI.reset(token)


@lru_cache(4096, typed=True)
def _ratio(value: Number, pi: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if value == 1:
        return (), ()
    if isinstance(value, float) and 0 < value < math.inf:
        for above, below in _candidates(value):
            spend("steps", TRIED)
            if not pi and any("pi" in text for text, _ in (*above, *below)):
                continue
            if product_of(_read(above), quotient_of(1, _read(below))) == value:
                return tuple([text for text, _ in above]), tuple([text for text, _ in below])
    return tuple([repr(part) for part in doubles_of(value)]), ()


@lru_cache(4096, typed=True)
def unrounded(value: Number) -> Number:
    """The ratio, or multiple of a constant, that a number was before it was rounded; or itself."""
    if not isinstance(value, float) or not math.isfinite(value) or len(repr(value)) <= LONG:
        return value
    size = abs(value)
    for above, below in _candidates(size):
        spend("steps", TRIED)
        found = product_of(_read(above), quotient_of(1, _read(below)))
        if abs(float(found) - size) <= ROUNDED * math.ulp(size):
            return found if value > 0 else product_of(-1, found)
    return value


def irrational(value: Number) -> Number:
    """The constant, or one over it, that a number is a rational multiple of; 1 where none is."""
    above, below = _ratio(abs(value), True)
    for text in above:
        if text in VALUES:
            return VALUES[text]
    for text in below:
        if text in VALUES:
            return quotient_of(1, VALUES[text])
    return 1


def of_constants(value: Number) -> tuple[Number, list[str], list[str]] | None:
    """A positive number that is made of constants: what is above a line, its factors, and those
    below; None of others.
    """
    above, below = ratio(value)
    if not any(text in VALUES for text in (*above, *below)):
        return None
    top = _read([(text, VALUES[text] if text in VALUES else int(text)) for text in above])
    return top, above, below


_Factors = list[tuple[str, float]]


def _read(factors: _Factors) -> Number:
    """The product as text is read, from left to right."""
    found: Number = 1
    for _, value in factors:
        found = product_of(found, canonical_number(value))
    return found


def _candidates(value: float) -> Iterator[tuple[_Factors, _Factors]]:
    long = len(repr(value)) > LONG
    for k in range(2, LARGEST):
        p = round(min(value * k, LARGEST))
        if 0 < p < LARGEST and (k < 10 or long):
            yield _whole(p), _whole(k)
    if not long:
        return
    for constant in CONSTANTS:
        atom = [(constant.text, constant.value)]
        for k in (*range(1, PARTS), DEGREES):
            above = round(min(value / constant.value * k, LARGEST))
            if 0 < above < LARGEST:
                yield _whole(above) + atom, _whole(k)
            below = round(min(value * constant.value * k, LARGEST))
            if 0 < below < LARGEST:
                yield _whole(below), _whole(k) + atom


def _whole(number: int) -> _Factors:
    return [] if number == 1 else [(str(number), number)]
