"""Extents of indices and the scalar coefficients of products.

An extent is an int, the name of a dimension that arrays bind at evaluation, or the text of a form
in such names: `n-1` after a slice, `(n+1)//2` with a stride, `m*n` where axes are merged,
`min(m,n)` along a diagonal. Equal forms have one text.
A coefficient is a number times a monomial in extents: the trace of the identity is n, a mean
divides by n.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache

from ..integers.affine import Affine, factors_of
from ..support.errors import ShapeError
from ..support.limits import within
from ..support.records import NamedTuple
from ..support.whole_numbers import as_float, whole_number
from .extent_forms import (
    Least,
    atom_of,
    atoms_in,
    least,
    parsed,
    settled,
    text_of,
    times,
    value_of,
)

#: Extent assumed for every dimension that no array has bound.
NOMINAL = 100

Extent = int | str
#: A Decimal only where a double would be 0, infinite or short of digits.
Number = int | float | Decimal
Shape = tuple[Extent, ...]

_EXACT = 2**53
#: Names below which a monomial is short, whatever the limit on factors.
_FEW = 16
_SMALLEST, _LARGEST = sys.float_info.min, sys.float_info.max
#: Decimals beyond are 0 or infinite.
_NARROWEST, _WIDEST = Decimal("1e-9000"), Decimal("1e9000")
_WIDE = Context(prec=34, traps=[])
#: Denominators of the fractions that doubles are taken to stand for.
_LARGEST_DENOMINATOR = 100
#: Numerators of what doubles are taken to be square roots of, and what they may be off by in units
#: of their last place, as some operations have rounded them.
_LARGEST_ROOTED, _ROUNDED = 10_000, 2


def canonical_number(value: Number) -> Number:
    """One Python object type per value; a Decimal that a double can be is one."""
    if not isinstance(value, Decimal):
        return canonical_double(value)
    if value.is_nan():  # decimals that are none have no order
        return math.nan
    normal = _SMALLEST <= float(value.copy_abs()) <= _LARGEST
    return value if not normal and _NARROWEST < value.copy_abs() < _WIDEST else _double(value)


def canonical_double(value: int | float) -> int | float:
    """One Python object type per value: integral floats become ints, -0.0 stays a float."""
    if isinstance(value, int):
        value = int(value)
        if -_EXACT <= value <= _EXACT:
            return value
        return as_float(value)
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
            whole = isinstance(a, int) and isinstance(b, int)
            return canonical_double(value if whole else _product_of_doubles(a, b))
    return canonical_number(_WIDE.multiply(_decimal(a), _decimal(b)))


def sum_of(a: Number, b: Number) -> Number:
    if not isinstance(a, Decimal) and not isinstance(b, Decimal):
        value: float = a + b
        if abs(value) <= _LARGEST or _infinite(a, b):
            return canonical_double(value if isinstance(value, int) else _sum_of_doubles(a, b))
    return canonical_number(_WIDE.add(_decimal(a), _decimal(b)))


def _product_of_doubles(a: int | float, b: int | float) -> float:
    """a * b, of what both stand for: 10 (1/3) is 10/3, and sqrt(5) sqrt(5) is 5."""
    one, other = _square(a), _square(b)
    if one is None or other is None:
        return a * b
    return math.copysign(_root(one * other), a * b)


def _sum_of_doubles(a: int | float, b: int | float) -> float:
    """a + b, of what both stand for: 2/3 - 1 is -1/3, with no digit lost."""
    one, other = _square(a), _square(b)
    ratio = None if one is None or other is None else _whole_root(one / other)
    if other is None or ratio is None:
        return a + b
    times = (ratio if a > 0 else -ratio) + (1 if b > 0 else -1)
    return math.copysign(_root(times * times * other), times) if times else 0.0


@lru_cache(4096, typed=True)
def _square(value: int | float) -> Fraction | None:
    """The square of the fraction, or of the root of one, whose double a number is, or None.

    Both have small denominators; -0.0 is none.
    """
    if not value or not 1 / _EXACT < abs(value) < _EXACT:
        return None
    near = Fraction(value).limit_denominator(_LARGEST_DENOMINATOR)
    if float(near) == value:
        return near * near
    found = Fraction(value * value).limit_denominator(_LARGEST_DENOMINATOR)
    close = abs(math.sqrt(found) - abs(value)) <= _ROUNDED * math.ulp(value)
    return found if close and found.numerator < _LARGEST_ROOTED else None


def _root(square: Fraction) -> float:
    whole = _whole_root(square)
    return math.sqrt(square) if whole is None else float(whole)


def _whole_root(square: Fraction) -> Fraction | None:
    """The root, where it is a fraction."""
    above, below = math.isqrt(square.numerator), math.isqrt(square.denominator)
    same = above * above == square.numerator and below * below == square.denominator
    return Fraction(above, below) if same else None


def _quotient_of_doubles(a: int | float, b: int | float) -> float:
    """a / b, of what both stand for."""
    one, other = _square(a), _square(b)
    if one is None or other is None:
        return a / b
    return math.copysign(_root(one / other), a / b)


def quotient_of(a: Number, b: Number) -> Number:
    """a / b, where b is not 0."""
    if not isinstance(a, Decimal) and not isinstance(b, Decimal):
        value = _quotient_of_doubles(a, b)
        if _SMALLEST <= abs(value) <= _LARGEST or not a or _infinite(a, b):
            return canonical_double(value)
    return canonical_number(_WIDE.divide(_decimal(a), _decimal(b)))


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
        if len(times) + len(over) > _FEW:
            within("factors", len(times) + len(over))
        for name in set(times).intersection(over):
            for _ in range(min(times.count(name), over.count(name) - 1)):
                times.remove(name)
                over.remove(name)
        value = product_of(self.value, other.value)
        return Coef(value, tuple(sorted(times)), tuple(sorted(over)))

    def inverse(self) -> Coef:
        """What undoes it; the number is not 0."""
        return Coef(quotient_of(1, self.value), self.over, self.times)

    @property
    def zero(self) -> bool:
        return self.value == 0

    def evaluate(self, sizes: Mapping[str, int]) -> int | float:
        """The number once dimensions have extents; 0/0 is nan as for a mean of nothing."""
        above = self.value
        below: Number = 1
        for name in self.times:
            above = product_of(above, extent_of(name, sizes))
        for name in self.over:
            below = product_of(below, extent_of(name, sizes))
        if below == 0:
            return math.nan
        return _double(quotient_of(above, below) if below != 1 else above)

    def key(self) -> tuple[str, str, tuple[str, ...], tuple[str, ...]]:
        """Exact key: distinguishes 0.0 from -0.0 and joins all NaNs."""
        if self is ONE:
            return _ONE_KEY
        value = self.value
        text = value.hex() if isinstance(value, float) else str(value)
        return (type(value).__name__, text, self.times, self.over)


ONE = Coef()
_ONE_KEY = ("int", "1", (), ())


def number(value: Number) -> Coef:
    return ONE if value == 1 else Coef(canonical_number(value))


def extent_coef(extent: Extent) -> Coef:
    """Multiplication by an extent: a summed index that no operand has."""
    if isinstance(extent, int):
        return Coef(extent)
    value, names = _monomial(extent)
    return Coef(value, names)


def inverse_extent(extent: Extent) -> Coef:
    """Division by an extent, as a mean does."""
    if isinstance(extent, int):
        return Coef(canonical_number(1 / extent) if extent else math.nan)
    value, names = _monomial(extent)
    return Coef(canonical_number(1 / value), (), names)


def _monomial(extent: str) -> tuple[int, tuple[str, ...]]:
    """A number and the factors that an extent is a product of."""
    form = Affine() if extent.isidentifier() else form_of(extent)
    if len(form.terms) != 1 or form.constant:
        return 1, (extent,)
    ((name, value),) = form.terms
    return value, tuple(sorted(factors_of(name)))


def show_shape(shape: Shape) -> str:
    """`(m, n)`, the way shapes appear in messages."""
    return "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


# --- extents as forms -----------------------------------------------------------------------------


def form_of(extent: Extent) -> Affine:
    """The form that an extent is."""
    if isinstance(extent, int):
        return Affine((), extent)
    return Affine.of(extent) if extent.isidentifier() else parsed(extent)


def extent_from(form: Affine) -> Extent:
    """The extent of this form: its number, or its one text."""
    form = settled(form)
    return text_of(form) if form.terms else form.constant


def extent_product(extents: Iterable[Extent]) -> Extent:
    """How many entries axes of these extents have."""
    whole = Affine((), 1)
    for extent in extents:
        whole = times(whole, form_of(extent))
    return extent_from(whole)


def least_extent(*extents: Extent) -> Extent:
    """The smallest of extents."""
    return extent_from(least(map(form_of, extents)))


def affine_extent(text: str) -> Extent:
    """The extent that a user spells; ValueError where it is no form in names."""
    return extent_from(form_of(text))


def extent_names(extents: Iterable[Extent]) -> set[str]:
    """The names of dimensions in extents."""
    found: set[str] = set()
    waiting = [e for e in extents if isinstance(e, str)]
    while waiting:
        extent = waiting.pop()
        if extent.isidentifier():
            found.add(extent)
            continue
        for name in atoms_in(form_of(extent)):
            atom = atom_of(name)
            if atom is None:
                found.add(name)
            else:
                waiting += map(text_of, atom.forms if isinstance(atom, Least) else atom[:1])
    return found


def extent_of(extent: Extent, sizes: Mapping[str, int]) -> int:
    """The number that an extent is once dimensions have extents.

    Raises
    ------
    ShapeError
        Where it would be negative.
    LimitError
        Where it would have more digits than an extent may have.
    """
    if isinstance(extent, int):
        return extent
    if extent in sizes:
        return sizes[extent]
    value = whole_number(value_of(form_of(extent), sizes))
    if value < 0:
        given = ", ".join(f"{name} = {sizes[name]}" for name in sorted(extent_names([extent])))
        raise ShapeError(f"an index has extent {extent}, which is {value} for {given}")
    return value


def nominal(extent: Extent, sizes: Mapping[str, int] | None = None) -> int:
    """An extent where nothing is known of its dimensions but these sizes."""
    known = {**dict.fromkeys(extent_names([extent]), NOMINAL), **(sizes or {})}
    return max(1, value_of(form_of(extent), known))


def solved_for(extent: Extent, value: int, sizes: Mapping[str, int]) -> dict[str, int]:
    """The one dimension that is not known yet, where the extent is a number at one value of it.

    ShapeError where it is that at no value, as an even extent is not 3.
    """
    missing = extent_names([extent]) - sizes.keys()
    if len(missing) != 1:
        return {}
    (name,) = missing
    form = form_of(extent)

    def at(n: int) -> int:
        return value_of(form, {**sizes, name: n})

    low, high = 0, 1
    while at(high) < value:
        if high > _EXACT:
            return {}
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if at(middle) >= value else (middle + 1, high)
    near = [at(n) for n in range(max(0, low - 1), low + 2)]
    if value not in near and near == sorted(near):
        raise ShapeError(f"{value} is {extent} for no whole number {name}")
    return {name: low} if at(low) == value and near.count(value) == 1 else {}
