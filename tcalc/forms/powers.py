"""Powers: factors as a base with an exponent, and what is written for them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from ..graph.factors import LabelledExpr
from ..graph.nodes import Apply, Expr, Labels
from ..graph.normal import add, terms_of
from ..graph.operators import TABLE
from ..graph.products import numeral, numeric_value
from ..ops.elementwise import power, reciprocal, sqrt

RECIPROCAL, SQRT, POWER = TABLE["reciprocal"], TABLE["sqrt"], TABLE["power"]
MAX_UNITS = 6


def degree_of(e: Expr) -> tuple[Expr, Fraction, Expr | None]:
    """The base, the number in its exponent and the rest of the exponent."""
    if isinstance(e, Apply) and e.op is RECIPROCAL:
        base, degree, rest = degree_of(e.args[0])
        return base, -degree, None if rest is None else -rest
    if isinstance(e, Apply) and e.op is SQRT:
        base, degree, rest = degree_of(e.args[0])
        if rest is None:
            return base, degree / 2, None
    if isinstance(e, Apply) and e.op is POWER:
        base, exponent = e.args
        value = numeric_value(exponent)
        if value is None:
            shift = [numeric_value(t) for t in terms_of(exponent)]
            known = sum([Fraction(v) for v in shift if v is not None and math.isfinite(v)])
            return base, Fraction(known), add([exponent, numeral(-float(known), exponent.shape)])
        if math.isfinite(value):
            inner, degree, rest = degree_of(base)
            if rest is None:
                return inner, degree * Fraction(value), None
    return e, Fraction(1), None


def powers(base: Expr, degree: Fraction, rest: Expr | None) -> list[Expr]:
    """Factors whose product is a power."""
    if rest is not None:
        exponent = add([rest, numeral(float(degree), rest.shape)]) if degree else rest
        return [power(base, exponent)]
    if degree < 0:
        if degree.denominator == 1 and degree > -3:
            return [reciprocal(base)] * int(-degree)
        return [reciprocal(f) for f in powers(base, -degree, None)]
    if degree.denominator == 1 and degree < 3:
        return [base] * int(degree)
    if degree == Fraction(1, 2):
        return [sqrt(base)]
    return [power(base, float(degree))]


def in_units(e: Expr, word: Labels) -> list[LabelledExpr]:
    """A factor as factors of the degrees 1, 1/2, -1 and -1/2, which other terms may share."""
    base, degree, rest = degree_of(e)
    whole, half = divmod(abs(degree), 1)
    if base is e or rest is not None or half not in (0, Fraction(1, 2)) or whole > MAX_UNITS:
        return [(e, word)]
    units = [base] * int(whole) + [sqrt(base)] * bool(half)
    return [(reciprocal(f) if degree < 0 else f, word) for f in units]


def divisors(factors: Iterable[LabelledExpr]) -> list[LabelledExpr]:
    """What a product is divided by: bases of which more stand below the line than above it."""
    found: dict[tuple[int, Labels], tuple[Expr, Fraction]] = {}
    for op, word in factors:
        base, degree, rest = degree_of(op)
        if rest is None:
            before = found.get((id(base), word), (base, Fraction(0)))[1]
            found[id(base), word] = base, before + degree
    return [(base, word) for (_, word), (base, degree) in found.items() if degree <= -1]
