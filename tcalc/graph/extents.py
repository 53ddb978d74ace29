"""Extents of indices and the scalar coefficients of products.

An extent is an int, the name of a dimension that arrays bind at evaluation, or the text of an
affine form in such names: `n-1` after a slice, `(n+1)//2` with a stride. Equal forms have one text.
A coefficient is a number times a monomial in extents: the trace of the identity is n, a mean
divides by n.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from decimal import Context, Decimal
from functools import lru_cache
from typing import NamedTuple

from ..integers.affine import Affine, Quotient
from ..support.errors import ShapeError

#: Extent assumed for every dimension that no array has bound.
NOMINAL = 100

Extent = int | str
#: A Decimal only where a double would be 0, infinite or short of digits.
Number = int | float | Decimal
Shape = tuple[Extent, ...]

_EXACT = 2**53
_SMALLEST, _LARGEST = sys.float_info.min, sys.float_info.max
#: Decimals beyond are 0 or infinite.
_NARROWEST, _WIDEST = Decimal("1e-9000"), Decimal("1e9000")
_WIDE = Context(prec=34, traps=[])


def canonical_number(value: Number) -> Number:
    """One Python object type per value; a Decimal that a double can be is one."""
    if not isinstance(value, Decimal):
        return canonical_double(value)
    normal = _SMALLEST <= float(value.copy_abs()) <= _LARGEST
    return value if not normal and _NARROWEST < value.copy_abs() < _WIDEST else _double(value)


def canonical_double(value: int | float) -> int | float:
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


def _double(value: Number) -> int | float:
    return canonical_double(float(value) if isinstance(value, Decimal) else value)


def size_of(value: Number) -> Number:
    return value.copy_abs() if isinstance(value, Decimal) else abs(value)


def product_of(a: Number, b: Number) -> Number:
    """a * b, without rounding to 0 or infinity what a later factor brings back."""
    if not isinstance(a, Decimal) and not isinstance(b, Decimal):
        value: float = a * b
        normal = min(abs(a), abs(b), abs(value)) >= _SMALLEST and abs(value) <= _LARGEST
        if normal or not (a and b) or _infinite(a, b):
            return canonical_double(value)
    return canonical_number(_WIDE.multiply(_decimal(a), _decimal(b)))


def sum_of(a: Number, b: Number) -> Number:
    if not isinstance(a, Decimal) and not isinstance(b, Decimal):
        value: float = a + b
        if abs(value) <= _LARGEST or _infinite(a, b):
            return canonical_double(value)
    return canonical_number(_WIDE.add(_decimal(a), _decimal(b)))


def inverse_of(a: Number) -> Number:
    """1 / a of a number other than 0."""
    if not isinstance(a, Decimal):
        value = 1 / a
        if _SMALLEST <= abs(value) <= _LARGEST or _infinite(a, a):
            return canonical_double(value)
    return canonical_number(_WIDE.divide(Decimal(1), _decimal(a)))


def doubles_of(value: Number) -> list[int | float]:
    """Numbers whose product is `value`, none of them a Decimal."""
    found: list[int | float] = []
    while isinstance(value, Decimal):
        found.append(1e300 if value.copy_abs() > 1 else 1e-300)
        value = canonical_number(_WIDE.divide(value, _decimal(found[-1])))
    return [value, *found]


def _decimal(a: Number) -> Decimal:
    """A double is taken as it is written, 1e-308 * 1e308 is 1; below as it is stored."""
    if isinstance(a, Decimal):
        return a
    return Decimal(repr(float(a))) if abs(a) >= 1e-308 else Decimal(a)


def _infinite(a: Number, b: Number) -> bool:
    return not (math.isfinite(a) and math.isfinite(b))


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
        value = product_of(self.value, other.value)
        return Coef(value, tuple(sorted(times)), tuple(sorted(over)))

    @property
    def zero(self) -> bool:
        return self.value == 0

    def evaluate(self, sizes: Mapping[str, int]) -> int | float:
        """The number once dimensions have extents; 0/0 is nan as for a mean of nothing."""
        above, below = self.value, 1
        for name in self.times:
            above = product_of(above, extent_of(name, sizes))
        for name in self.over:
            below *= extent_of(name, sizes)
        if below == 0:
            return math.nan
        if isinstance(above, Decimal):
            return _double(_WIDE.divide(above, Decimal(below)))
        return canonical_double(above / below) if below != 1 else above

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


# --- affine extents -------------------------------------------------------------------------------

_TOKEN = re.compile(r"\s*(//|[^\W\d]\w*|\d+|[-+*()])")


def form_of(extent: Extent) -> Affine:
    """The affine form that an extent is, in names and in quotients rounded down."""
    if isinstance(extent, int):
        return Affine((), extent)
    return Affine.of(extent) if extent.isidentifier() else _parsed(extent)


def extent_from(form: Affine) -> Extent:
    """The extent of this form: its number, or its one text."""
    return _text(form) if form.terms else form.constant


def _text(form: Affine) -> str:
    """The form as Python reads it, quotients with a factor in parentheses."""
    shown = {n: f"({n})" for n, c in form.terms if c != 1 and not n.isidentifier()}
    return str(form.substitute(shown))


def floor_divided(form: Affine, divisor: int) -> Affine:
    """A form over a positive number, rounded down: what divides goes in front."""
    inner = Quotient(form, divisor)
    form, divisor = inner.form, inner.divisor
    whole = Affine(tuple((n, c // divisor) for n, c in form.terms), form.constant // divisor)
    rest = form - whole * divisor
    if not rest.terms:
        return whole
    (name, one), *others = rest.terms
    atom = _atoms(name) if one == 1 and not others else None
    if atom is not None:  # a quotient of a quotient
        return whole + floor_divided(atom[0] + rest.constant * atom[1], atom[1] * divisor)
    single = len(rest.terms) == 1 and not rest.constant and rest.terms[0][1] == 1
    single = single and rest.names[0].isidentifier()
    shown = _text(rest)
    return whole + Affine.of(f"{shown}//{divisor}" if single else f"({shown})//{divisor}")


def affine_extent(text: str) -> Extent:
    """The extent that a user spells; ValueError where it is no affine form in names."""
    return extent_from(form_of(text))


@lru_cache(1024)
def _parsed(text: str) -> Affine:
    found = _TOKEN.findall(text)
    if "".join(found) != "".join(text.split()) or not found:
        raise ValueError(text)
    tokens = iter([*found, ""])
    form, last = _sum(tokens, text)
    if last:
        raise ValueError(text)
    return form


def _sum(tokens: Iterator[str], text: str) -> tuple[Affine, str]:
    """A sum of terms, and the token behind it."""
    token = next(tokens)
    sign = -1 if token == "-" else 1
    total, token = _term(next(tokens) if token in ("+", "-") else token, tokens, text, sign)
    while token in ("+", "-"):
        sign = -1 if token == "-" else 1
        term, token = _term(next(tokens), tokens, text)
        total += term * sign
    return total, token


def _term(token: str, tokens: Iterator[str], text: str, sign: int = 1) -> tuple[Affine, str]:
    """A product of numbers and at most one other form, perhaps divided; the token behind it."""
    term, operator = Affine((), sign), "*"
    while True:
        if token == "(":
            factor, token = _sum(tokens, text)
            if token != ")":
                raise ValueError(text)
        elif token and (token.isdecimal() or token.isidentifier()):
            factor = Affine((), int(token)) if token.isdecimal() else Affine.of(token)
        else:
            raise ValueError(text)
        if operator == "//":
            if factor.terms or factor.constant < 1:
                raise ValueError(text)
            term = floor_divided(term, factor.constant)
        elif term.terms and factor.terms:
            raise ValueError(text)
        else:
            term = term * factor.constant if not factor.terms else factor * term.constant
        operator = next(tokens)
        if operator not in ("*", "//"):
            return term, operator
        token = next(tokens)


@lru_cache(1024)
def _atoms(name: str) -> tuple[Affine, int] | None:
    """The form and the divisor of a quotient among the names of a form; None for a plain name."""
    if name.isidentifier():
        return None
    inside, _, divisor = name.rpartition("//")
    return form_of(inside), int(divisor)


def never_larger(form: Affine) -> Affine | None:
    """A form in names alone that is never larger; None where quotients have other factors."""
    found = Affine((), form.constant)
    for name, c in form.terms:
        atom = _atoms(name)
        if atom is None:
            found += Affine.of(name) * c
        elif c % atom[1] or not all(n.isidentifier() for n in atom[0].names):
            return None
        else:
            least = atom[0] - (atom[1] - 1) if c > 0 else atom[0]
            found += least * (c // atom[1])
    return found


def extent_names(extents: Iterable[Extent]) -> set[str]:
    """The names of dimensions in extents."""
    found: set[str] = set()
    waiting = [e for e in extents if isinstance(e, str)]
    while waiting:
        extent = waiting.pop()
        if extent.isidentifier():
            found.add(extent)
            continue
        for name in form_of(extent).names:
            atom = _atoms(name)
            waiting += [name] if atom is None else [_text(atom[0])]
    return found


def value_of(form: Affine, sizes: Mapping[str, int]) -> int:
    """The number that a form is once dimensions have extents; it may be negative."""
    total = form.constant
    for name, coefficient in form.terms:
        atom = _atoms(name)
        value = sizes[name] if atom is None else value_of(atom[0], sizes) // atom[1]
        total += coefficient * value
    return total


def extent_of(extent: Extent, sizes: Mapping[str, int]) -> int:
    """The number that an extent is once dimensions have extents.

    Raises
    ------
    ShapeError
        Where it would be negative.
    """
    if isinstance(extent, int):
        return extent
    if extent in sizes:
        return sizes[extent]
    value = value_of(form_of(extent), sizes)
    if value < 0:
        given = ", ".join(f"{name} = {sizes[name]}" for name in sorted(extent_names([extent])))
        raise ShapeError(f"an index has extent {extent}, which is {value} for {given}")
    return value


def nominal(extent: Extent) -> int:
    """An extent where nothing is known of its dimensions."""
    return max(1, value_of(form_of(extent), dict.fromkeys(extent_names([extent]), NOMINAL)))
