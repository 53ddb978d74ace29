"""Affine forms in integer labels and dimensions, and the conditions they are put under.

An access `x[i+2*k-1]` has an affine form as its index; boxes of labels and ranges of sums are
conditions on such forms (Urban and van der Smagt 2017, section 4). Numbers are Python's integers,
so nothing overflows. All values are immutable, hashable and in a canonical order.

A name may be a product of names, `m*n`: where axes are merged, a label's coefficient is the extent
of another. Substituting numbers for the dimensions makes such forms affine; whoever solves or
bounds forms before that takes a product as one more unknown.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from ..support.limits import spend, within
from ..support.records import record
from ..support.whole_numbers import whole_number

#: An integer, or an array of integers.
IntegerValue = int | np.ndarray[Any, Any]

_INT64_END = 2**63
#: Steps that a form takes besides its terms.
_MADE = 4
#: Names whose forms are kept.
_NAMES = 4096
#: Terms, or factors, below which a form is short, whatever the limits on them.
_FEW = 16


@lru_cache(4096)
def split_top(text: str, mark: str) -> tuple[str, ...]:
    """The parts of a text between marks that stand outside of parentheses."""
    parts, depth = [""], 0
    for piece in re.split(rf"([()]|{re.escape(mark)})", text):
        depth += (piece == "(") - (piece == ")")
        if piece == mark and not depth:
            parts.append("")
        else:
            parts[-1] += piece
    return tuple(parts)


def factors_of(name: str) -> tuple[str, ...]:
    """The names whose product a name is: itself, unless it is one."""
    if "*" not in name or len(split_top(name, "//")) > 1:
        return (name,)
    return tuple([_unwrapped(part) for part in split_top(name, "*")])


def _unwrapped(part: str) -> str:
    return part[1:-1] if part[0] == "(" else part


def product_of(names: Iterable[str]) -> str:
    """The name of a product of names."""
    parts = sorted(f for name in names for f in factors_of(name))
    if len(parts) > _FEW:
        within("factors", len(parts))
    spend("steps", sum(map(len, parts)))
    if len(parts) == 1:
        return parts[0]
    return "*".join([f"({f})" if "//" in f and f[-1] != ")" else f for f in parts])


@record(frozen=True, order=True)
class Affine:
    """An integer linear combination of names, plus a constant.

    Parameters
    ----------
    terms : iterable of (name, coefficient)
        In any order; a name may repeat. Stored sorted by name, without zeros.
    constant : int

    Examples
    --------
    >>> i, k = Affine.of("i"), Affine.of("k")
    >>> print(i + 2 * k - 1)
    i+2*k-1
    >>> print((i + 2 * k - 1).substitute({"i": 3 - 2 * k}))
    2
    """

    terms: tuple[tuple[str, int], ...] = ()
    constant: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "constant", whole_number(self.constant))
        if self.terms:
            object.__setattr__(self, "terms", _collected(self.terms))

    @classmethod
    def of(cls, value: Affine | int | str) -> Affine:
        """A name or a number as a form."""
        if isinstance(value, Affine):
            return value
        return _of_name(value) if isinstance(value, str) else cls((), value)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.terms)

    @property
    def content(self) -> int:
        """The greatest common divisor of the coefficients, without the constant; 0 if none."""
        return math.gcd(*(c for _, c in self.terms))

    def coefficient(self, name: str) -> int:
        return next((c for other, c in self.terms if other == name), 0)

    def without(self, names: Iterable[str]) -> Affine:
        """The form less the terms in `names`."""
        dropped = frozenset(names)
        return Affine(tuple(t for t in self.terms if t[0] not in dropped), self.constant)

    def __add__(self, other: Affine | int) -> Affine:
        other = Affine.of(other)
        return Affine(self.terms + other.terms, self.constant + other.constant)

    __radd__ = __add__

    def __mul__(self, factor: int) -> Affine:
        return Affine(tuple((n, factor * c) for n, c in self.terms), factor * self.constant)

    __rmul__ = __mul__

    def __neg__(self) -> Affine:
        return self * -1

    def __sub__(self, other: Affine | int) -> Affine:
        return self + -Affine.of(other)

    def __rsub__(self, other: int) -> Affine:
        return -self + other

    def times(self, other: Affine) -> Affine:
        """The product of two forms, its terms in products of names."""
        if not self.terms or not other.terms:
            return self * other.constant if not other.terms else other * self.constant
        crossed = [
            (product_of((one, two)), c * d) for one, c in self.terms for two, d in other.terms
        ]
        more = [(n, c * other.constant) for n, c in self.terms]
        more += [(n, c * self.constant) for n, c in other.terms]
        return Affine((*crossed, *more), self.constant * other.constant)

    def divided(self, divisor: int) -> Affine:
        """Coefficients over a number that divides them; the constant is rounded down."""
        terms = tuple((name, c // divisor) for name, c in self.terms)
        return Affine(terms, self.constant // divisor)

    def substitute(self, values: Mapping[str, Affine | int | str]) -> Affine:
        """Forms, numbers or other names in place of names, all at once."""
        if all(name not in values and "*" not in name for name, _ in self.terms):
            return self
        parts = [(_substituted(name, values), c) for name, c in self.terms]
        terms = tuple((name, c * d) for part, c in parts for name, d in part.terms)
        return Affine(terms, self.constant + sum(part.constant * c for part, c in parts))

    def evaluate(self, values: Mapping[str, IntegerValue]) -> IntegerValue:
        """The number, or the array of numbers, at integers or broadcasting integer arrays.

        Arrays compute in 64 bits where that cannot overflow, and in Python's integers otherwise.
        """
        given = [
            (c, values[name] if name in values else math.prod(values[f] for f in factors_of(name)))
            for name, c in self.terms
        ]
        dtype = _wide_enough(given, self.constant)
        total: IntegerValue = self.constant
        for c, value in given:
            total = total + c * (
                value.astype(dtype) if isinstance(value, np.ndarray) else whole_number(value)
            )
        return total

    def __str__(self) -> str:
        if not any(c > 0 for _, c in self.terms) and (self.constant > 0 or not self.terms):
            parts = [str(self.constant)] + [_term(n, c) for n, c in self.terms]
        else:
            ordered = sorted(self.terms, key=lambda t: (t[1] < 0, -t[0].count("*"), t[0]))
            parts = [_term(n, c) for n, c in ordered]
            parts += [f"{self.constant:+d}"] if self.constant else []
        return "".join(parts).removeprefix("+")


@lru_cache(_NAMES)
def _of_name(name: str) -> Affine:
    return Affine(((name, 1),))


def _collected(terms: Collection[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    """Terms sorted by name, each name once, without zeros."""
    spend("steps", _MADE + len(terms))
    sums: dict[str, int] = {}
    for name, coefficient in terms:
        number = whole_number(coefficient)
        sums[name] = sums[name] + number if name in sums else number
    found = [term for term in sums.items() if term[1]]
    if len(found) > 1:
        found.sort()
        if len(found) > _FEW:
            within("terms", len(found))
    return tuple(found)


def _substituted(name: str, values: Mapping[str, Affine | int | str]) -> Affine:
    """The form in place of a name, or of what it is a product of."""
    if name in values or "*" not in name:
        return Affine.of(values.get(name, name))
    found = Affine((), 1)
    for factor in factors_of(name):
        found = found.times(Affine.of(values.get(factor, factor)))
    return found


def _term(name: str, coefficient: int) -> str:
    sign = "-" if coefficient < 0 else "+"
    return f"{sign}{name}" if abs(coefficient) == 1 else f"{sign}{abs(coefficient)}*{name}"


def _wide_enough(
    given: list[tuple[int, IntegerValue]], constant: int
) -> type[np.int64] | type[object]:
    """The dtype in which no partial sum overflows: int64, or Python's integers as objects."""
    bound = abs(constant)
    for c, value in given:
        if not isinstance(value, np.ndarray):
            bound += abs(c * whole_number(value))
        elif value.dtype.kind not in "iuO":
            raise TypeError(f"labels are integers, not {value.dtype}")
        elif value.size:
            bound += abs(c) * max(abs(int(value.max())), abs(int(value.min())), 1)
    return np.int64 if bound < _INT64_END else object


@record(frozen=True, order=True)
class Quotient:
    """A form over a positive number, in lowest terms, rounded by `floor` or `ceil`."""

    form: Affine
    divisor: int = 1

    def __post_init__(self) -> None:
        if self.divisor == 0:
            raise ZeroDivisionError("a form divided by zero")
        common = math.gcd(self.form.content, self.form.constant, self.divisor)
        common = -common if self.divisor < 0 else common
        if common != 1:
            object.__setattr__(self, "form", self.form.divided(common))
            object.__setattr__(self, "divisor", self.divisor // common)

    def floor(self, values: Mapping[str, IntegerValue]) -> IntegerValue:
        return _floor(self.form.evaluate(values), self.divisor)

    def ceil(self, values: Mapping[str, IntegerValue]) -> IntegerValue:
        return -_floor(-self.form.evaluate(values), self.divisor)

    def substitute(self, values: Mapping[str, Affine | int | str]) -> Quotient:
        return Quotient(self.form.substitute(values), self.divisor)

    def show(self, rounding: str = "") -> str:
        """The text, within the name of a rounding function where there is something to round."""
        if self.divisor == 1:
            return str(self.form)
        single = len(self.form.terms) == 1 and not self.form.constant
        text = f"{self.form}/{self.divisor}" if single else f"({self.form})/{self.divisor}"
        return f"{rounding}({text})" if rounding else text

    def __str__(self) -> str:
        return self.show()


def _floor(value: IntegerValue, divisor: int) -> IntegerValue:
    if isinstance(value, np.ndarray) and divisor >= _INT64_END:
        value = value.astype(object)
    return value // divisor


@record(frozen=True, order=True)
class Constraint:
    """`form >= 0` or, with `equality`, `form == 0`, over the integers.

    Stored with coprime coefficients, which may tighten the constant: 2*i-1 >= 0 is i >= 1. What
    always holds becomes 0 >= 0, what never does -1 >= 0. Equalities start with a positive term.
    """

    form: Affine
    equality: bool = False

    def __post_init__(self) -> None:
        form, equality = self.form, self.equality
        common = form.content
        if common == 0:
            holds = form.constant == 0 or (not equality and form.constant > 0)
            form, equality = Affine((), 0 if holds else -1), False
        elif equality and form.constant % common:
            form, equality = Affine((), -1), False
        elif equality and form.terms[0][1] < 0:
            form = form.divided(-common)
        elif common > 1:
            form = form.divided(common)
        object.__setattr__(self, "form", form)
        object.__setattr__(self, "equality", equality)

    @property
    def trivial(self) -> bool:
        """Does it hold everywhere?"""
        return not self.form.terms and self.form.constant == 0

    @property
    def impossible(self) -> bool:
        """Does it hold nowhere?"""
        return not self.form.terms and self.form.constant < 0

    def holds(self, values: Mapping[str, IntegerValue]) -> Any:
        """A bool, or an array of them where values are arrays."""
        value = self.form.evaluate(values)
        return value == 0 if self.equality else value >= 0

    def substitute(self, values: Mapping[str, Affine | int | str]) -> Constraint:
        return Constraint(self.form.substitute(values), self.equality)

    def __str__(self) -> str:
        left = Affine(tuple(t for t in self.form.terms if t[1] > 0), max(self.form.constant, 0))
        return f"{left} {'==' if self.equality else '>='} {left - self.form}"


@record(frozen=True, order=True)
class Congruence:
    """`form` is divisible by the positive number `modulus`.

    Stored with coefficients from 0 to modulus - 1 that have no divisor in common with it; the first
    coefficient is 1 where it can be inverted. What always holds is 0 modulo 1.
    """

    form: Affine
    modulus: int

    def __post_init__(self) -> None:
        form, modulus = self.form, abs(self.modulus)
        if modulus == 0:
            raise ZeroDivisionError("divisibility by zero is an equality")
        common = math.gcd(form.content, modulus)
        if form.constant % common:
            form, modulus = Affine((), 1), 2
        else:
            form, modulus = form.divided(common), modulus // common
            first = form.terms[0][1] if form.terms else 1
            unit = pow(first, -1, modulus) if math.gcd(first, modulus) == 1 else 1
            terms = tuple((name, c * unit % modulus) for name, c in form.terms)
            form = Affine(terms, form.constant * unit % modulus)
        object.__setattr__(self, "form", form)
        object.__setattr__(self, "modulus", modulus)

    @property
    def trivial(self) -> bool:
        """Does it hold everywhere?"""
        return self.modulus == 1

    @property
    def impossible(self) -> bool:
        """Does it hold nowhere?"""
        return not self.form.terms and not self.trivial

    def holds(self, values: Mapping[str, IntegerValue]) -> Any:
        """A bool, or an array of them where values are arrays."""
        value = self.form.evaluate(values)
        return value - self.modulus * _floor(value, self.modulus) == 0

    def substitute(self, values: Mapping[str, Affine | int | str]) -> Congruence:
        return Congruence(self.form.substitute(values), self.modulus)

    def __str__(self) -> str:
        plain = len(self.form.terms) == 1 and not self.form.constant
        plain = plain and self.form.terms[0][1] == 1
        return f"{self.form if plain else f'({self.form})'} % {self.modulus} == 0"


#: A condition on names; a sum under guards is zero where one of them fails.
Guard = Constraint | Congruence
