"""Forms in names of dimensions, their atoms, and their text.

A form is a sum of integer multiples of atoms: names, products of atoms (`m*n`), quotients rounded
down (`(n+1)//2`) and minima (`min(m,n)`). Atoms are their text, so that equal forms have one text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache, reduce
from itertools import product
from math import prod

from ..integers.affine import Affine, Constraint, Quotient, factors_of, product_of, split_top
from ..support.errors import LimitError
from ..support.limits import spend
from ..support.records import NamedTuple
from ..support.whole_numbers import spelled_number

#: Terms up to which products are multiplied out.
MAX_TERMS = 1000
#: Exponents that are multiplied out.
MAX_POWER = 1000
#: Residues up to which a quotient is tried for being exact.
MAX_RESIDUES = 4096
#: Parentheses inside of each other in the text of a form.
MAX_DEPTH = 100
#: Steps of comparing two forms, and of reading a token.
_COMPARED, _READ = 100, 8

_TOKEN = re.compile(r"\s*(//|\*\*|[^\W\d]\w*|\d+|[-+*/^(),])")


# --- atoms ----------------------------------------------------------------------------------------


class Floor(NamedTuple):
    """A form over a positive number, rounded down."""

    form: Affine
    divisor: int


class Least(NamedTuple):
    """The least of several forms."""

    forms: tuple[Affine, ...]


@lru_cache(4096)
def atom_of(name: str) -> Floor | Least | None:
    """The quotient or the minimum that an atom is; None for names, of indices too, and products."""
    if name.isidentifier() or name[0] in "#?" or len(factors_of(name)) > 1:
        return None
    inside, *over = split_top(name, "//")
    if over:
        return Floor(parsed(inside), int(over[-1]))
    return Least(tuple([parsed(part) for part in split_top(name[4:-1], ",")]))


def atoms_in(form: Affine) -> Iterator[str]:
    """The atoms of a form, products taken apart."""
    for name in form.names:
        yield from factors_of(name)


def times(one: Affine, two: Affine) -> Affine:
    """The product of forms.

    Raises
    ------
    LimitError
        Where it has too many terms.
    """
    if len(one.terms) * len(two.terms) > MAX_TERMS:
        raise LimitError(f"a product of extents has more than {MAX_TERMS} terms")
    return one.times(two)


def floor_divided(form: Affine, divisor: int) -> Affine:
    """A form over a positive number, rounded down: what divides goes in front."""
    inner = Quotient(form, divisor)
    form, divisor = inner.form, inner.divisor
    whole = Affine(tuple((n, c // divisor) for n, c in form.terms), form.constant // divisor)
    rest = form - whole * divisor
    if not rest.terms:
        return whole
    (name, one), *others = rest.terms
    atom = atom_of(name) if one == 1 and not others else None
    if isinstance(atom, Floor):  # a quotient of a quotient
        return whole + floor_divided(atom[0] + rest.constant * atom[1], atom[1] * divisor)
    return whole + Affine.of(_over(rest, divisor))


def _over(form: Affine, divisor: int) -> str:
    shown = text_of(form)
    return f"{shown}//{divisor}" if shown.isidentifier() else f"({shown})//{divisor}"


def least(forms: Iterable[Affine]) -> Affine:
    """The least of forms; those that are never less than others are left out."""
    kept: list[Affine] = []
    for form in sorted(set(forms)):
        spend("steps", _COMPARED * len(kept))
        if not any(_never_less(form, other) for other in kept):
            kept = [*[other for other in kept if not _never_less(other, form)], form]
    if len(kept) == 1:
        return kept[0]
    return Affine.of(f"min({','.join(sorted(text_of(form) for form in kept))})")


def _never_less(form: Affine, other: Affine) -> bool:
    rest = form - other
    return is_nonnegative(rest) if rest.terms else rest.constant >= 0


# --- exact quotients ------------------------------------------------------------------------------


def settled(form: Affine) -> Affine:
    """The form with multiples of exact quotients, 2*(n*(n-1)//2), multiplied out."""
    for name, c in form.terms:
        atom = atom_of(name)
        if isinstance(atom, Floor) and c % atom.divisor == 0 and is_exact(*atom):
            return settled(form - Affine.of(name) * c + atom.form * (c // atom.divisor))
    return form


@lru_cache(1024)
def is_exact(form: Affine, divisor: int) -> bool:
    """Is the form divisible for all values of its names?"""
    names = sorted(set(atoms_in(form)))
    if not all(map(str.isidentifier, names)) or divisor ** len(names) > MAX_RESIDUES:
        return False
    spend("steps", divisor ** len(names) * len(form.terms))
    return all(
        not form.evaluate(dict(zip(names, values, strict=True))) % divisor
        for values in product(range(divisor), repeat=len(names))
    )


# --- text -----------------------------------------------------------------------------------------


def text_of(form: Affine) -> str:
    """The form as Python reads it."""
    joined = _one_quotient(form - form.constant)
    if joined is not None:
        rest = f"{form.constant:+d}" if form.constant else ""
        return f"{_factored(joined.form)}//{joined.divisor}{rest}"
    shown = {
        n: Affine.of(f"({n})") for n, c in form.terms if c != 1 and len(split_top(n, "//")) > 1
    }
    return str(form.substitute(shown) if shown else form)


def _one_quotient(form: Affine) -> Floor | None:
    """The form as one quotient, where that has a factor to show: n*(n-1)//2."""
    for name, c in form.terms:
        atom = atom_of(name) if c == 1 else None
        if isinstance(atom, Floor) and not atom.form.constant:
            whole = (form - Affine.of(name)) * atom.divisor + atom.form
            if _common(whole) and len(whole.terms) > 1:
                return Floor(whole, atom.divisor)
    return None


def _common(form: Affine) -> str:
    """A name that is a factor of all terms."""
    if form.constant or not form.terms:
        return ""
    shared = set.intersection(*[set(factors_of(name)) for name in form.names])
    return min((n for n in shared if n.isidentifier()), default="")


def _factored(form: Affine) -> str:
    """The form as a product by a common factor."""
    common = _common(form)
    terms = []
    constant = 0
    for name, c in form.terms:
        rest = list(factors_of(name))
        rest.remove(common)
        if rest:
            text = product_of(rest)
            quotient = c != 1 and len(split_top(text, "//")) > 1
            terms.append((f"({text})" if quotient else text, c))
        else:
            constant += c
    return f"{common}*({Affine(tuple(terms), constant)})"


@lru_cache(1024)
def parsed(text: str) -> Affine:
    """The form that a text spells.

    Raises
    ------
    ValueError
        Where the text is none, or a quotient by `/` is not exact.
    """
    found = _TOKEN.findall(text)
    if "".join(found) != "".join(text.split()) or not found:
        raise ValueError(text)
    spend("steps", _READ * len(found))
    reader = _Reader(text, [*found, ""])
    form = reader.sum()
    if reader.token:
        raise ValueError(text)
    return settled(form)


class _Reader:
    """Reads forms by recursive descent; `token` is the one in front."""

    def __init__(self, text: str, tokens: list[str]) -> None:
        self.text, self.tokens, self.place, self.depth = text, tokens, 0, 0

    @property
    def token(self) -> str:
        return self.tokens[self.place]

    def take(self, *wanted: str) -> str:
        """The token in front, if it is one of these, else nothing."""
        token = self.token if self.token in wanted else ""
        self.place += bool(token)
        return token

    def expect(self, wanted: str) -> None:
        if not self.take(wanted):
            raise ValueError(self.text)

    def sum(self) -> Affine:
        sign = -1 if self.take("-", "+") == "-" else 1
        total = self.term(sign)
        while operator := self.take("+", "-"):
            term = self.term(1)
            total += -term if operator == "-" else term
        return total

    def term(self, sign: int) -> Affine:
        form = self.power() * sign
        while operator := self.take("*", "//", "/"):
            factor = self.power()
            form = times(form, factor) if operator == "*" else self.over(form, factor, operator)
        return form

    def over(self, form: Affine, factor: Affine, operator: str) -> Affine:
        divisor = factor.constant
        if factor.terms or divisor < 1 or (operator == "/" and not is_exact(form, divisor)):
            raise ValueError(self.text)
        return floor_divided(form, divisor)

    def power(self) -> Affine:
        base = self.primary()
        if not self.take("^", "**"):
            return base
        exponent = self.take(self.token)
        if not exponent.isdecimal():
            raise ValueError(self.text)
        if spelled_number(exponent) > MAX_POWER:
            raise LimitError(f"a power in an extent is beyond {MAX_POWER}: {exponent}")
        found = Affine((), 1)
        for _ in range(int(exponent)):
            found = times(found, base)
        return found

    def primary(self) -> Affine:
        token = self.token
        if self.take("("):
            (form,) = self.inside()
            return form
        if not (token.isdecimal() or token.isidentifier()):
            raise ValueError(self.text)
        self.place += 1
        if token.isdecimal():
            return Affine((), spelled_number(token))
        if token != "min" or not self.take("("):
            return Affine.of(token)
        return least(self.inside(","))

    def inside(self, between: str = ")") -> list[Affine]:
        """Forms between marks, to the closing parenthesis."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise LimitError(f"an extent has more than {MAX_DEPTH} parentheses in each other")
        forms = [self.sum()]
        while between != ")" and self.take(between):
            forms.append(self.sum())
        self.expect(")")
        self.depth -= 1
        return forms


# --- values and bounds ----------------------------------------------------------------------------


def never_larger(form: Affine) -> Affine | None:
    """A form in names alone that is never larger; None where quotients have other factors."""
    found = Affine((), form.constant)
    for name, c in form.terms:
        if all(map(str.isidentifier, factors_of(name))):
            found += Affine.of(name) * c
            continue
        atom = atom_of(name)
        bound = None if atom is None else _atom_bound(atom, c, form)
        if bound is None:
            return None
        found += bound
    return found


def _atom_bound(atom: Floor | Least, c: int, form: Affine) -> Affine | None:
    """A form in names that is never larger than a multiple of an atom of `form`."""
    if isinstance(atom, Least):
        if c > 0:
            return Affine() if all(map(is_nonnegative, atom.forms)) else None
        return max(atom.forms, key=lambda f: sum(n in form.names for n in f.names)) * c
    if not all(map(str.isidentifier, atoms_in(atom.form))):
        return None
    if c % atom.divisor:
        positive = c > 0 and min(atom.form.constant, *[k for _, k in atom.form.terms]) >= 0
        return Affine() if positive else None
    return (atom.form - (atom.divisor - 1) if c > 0 else atom.form) * (c // atom.divisor)


def is_nonnegative(form: Affine) -> bool:
    """Is a form known not to be negative, for all extents of its names?"""
    least_value = never_larger(form)
    return (
        least_value is not None
        and least_value.constant >= 0
        and all(c > 0 for _, c in least_value.terms)
    )


def facts(names: Iterable[str]) -> list[Constraint]:
    """What holds of the quotients and minima among atoms, besides that names are not negative."""
    found: list[Constraint] = []
    for name in names:
        atom, value = atom_of(name), Affine.of(name)
        if isinstance(atom, Least):
            found += [Constraint(form - value) for form in atom.forms]
        elif atom is not None:
            rest = atom.form - value * atom.divisor
            found += [Constraint(rest), Constraint(atom.divisor - 1 - rest)]
    return found


def signs(names: Iterable[str]) -> list[Constraint]:
    """That names, those inside atoms too, are not negative; a minimum, as of 0 and 3-n, may be."""
    waiting, found = list(names), set[str]()
    while waiting:
        name = waiting.pop()
        atom = atom_of(name)
        if name not in found and atom is not None:
            inner = atom.forms if isinstance(atom, Least) else (atom.form,)
            waiting += [n for form in inner for n in form.names]
        found.add(name)
    return [Constraint(form) for n in sorted(found) if is_nonnegative(form := Affine.of(n))]


def never_less(form: Affine) -> Affine:
    """A form that is never less than a given one, nor than 0, for all extents of its names."""
    total = Affine((), max(0, form.constant))
    for name, c in form.terms:
        atom = atom_of(name)
        if all(is_nonnegative(Affine.of(factor)) for factor in factors_of(name)):
            total += Affine.of(name) * max(0, c)
        elif atom is None:
            sizes = [never_less(f) + never_less(-f) for f in map(Affine.of, factors_of(name))]
            total += reduce(Affine.times, sizes) * abs(c)
        elif isinstance(atom, Least):
            for bound in atom.forms[:1] if c > 0 else [-f for f in atom.forms]:
                total += never_less(bound) * abs(c)
        else:
            total += never_less(atom.form if c > 0 else atom.divisor - 1 - atom.form) * abs(c)
    return total


def value_of(form: Affine, value: Mapping[str, int]) -> int:
    """The number that a form is at values of its names; it may be negative."""
    total = form.constant
    for name, c in form.terms:
        total += c * (value[name] if name in value else prod(_atoms_at(name, value)))
    return total


def _atoms_at(name: str, value: Mapping[str, int]) -> Iterator[int]:
    for factor in factors_of(name):
        atom = atom_of(factor)
        if isinstance(atom, Floor):
            yield value_of(atom.form, value) // atom.divisor
        elif isinstance(atom, Least):
            yield min(value_of(form, value) for form in atom.forms)
        else:
            yield value[factor]
