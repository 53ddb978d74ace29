"""How fragments are composed: here in the ASCII matrix language, in subclasses otherwise.

Which names, products, sums and calls there are, `matrix_form` and `layout` decide; a style writes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from ...graph.extents import Coef, Extent, Shape, size_of
from ...graph.operators import Op
from ...ops.indicator import INDICATOR, described
from .chains import append_power, equal_ends, leading_sum, period
from .constants import ratio
from .notation import (
    ATOM,
    CONTINUATIONS,
    MAX_SHOWN,
    MAX_SIZE,
    POINTWISE,
    POWER,
    PRODUCT,
    QUOTE,
    SHORT,
    SUM,
    EinsumSpec,
    Fragment,
    Parts,
    Rope,
    fragment_size,
    join_ropes,
    rope_text,
    takes_condition,
)

#: Factors up to which products in products are opened.
MAX_CHAIN = 32
#: Comparisons with their sides exchanged.
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


class Style:
    """How fragments are composed: here in the ASCII matrix language, in subclasses otherwise."""

    pointwise_times, pointwise_over = " .* ", "./"
    quotients = True  #: Are quotients in products opened, and reciprocals factors below a line?
    maps_to = " -> "
    formed = 45  #: steps that the form of a node takes
    rows = True  #: Are indicators of slices written as rows of unit matrices?
    stated: Collection[str] = ()  #: dimensions of variables, which are no variables' names

    def name(self, name: str) -> Fragment:
        return Fragment(name)

    def array(self, value: np.ndarray) -> Fragment:
        if value.size > MAX_SHOWN:
            return Fragment(f"const({', '.join(map(str, value.shape))})")
        return Fragment(str(value.tolist()), size=2 * value.size)

    def dimensions(self, names: Sequence[str]) -> list[Fragment]:
        """Powers of dimensions."""
        powers = [(self.dimension(name), k) for name, k in sorted(Counter(names).items())]
        return [p if k == 1 else Fragment(self.power(p, k, True), POWER) for p, k in powers]

    def dimension(self, name: str) -> Fragment:
        """By its name where variables have it."""
        return Fragment(name if name in self.stated else f"extent({name})")

    def ones(self, extent: Extent | None) -> Fragment:
        """A vector of ones; its extent is None where the other factors say it."""
        return Fragment("vector(1)" if extent is None else f"vector(1, {extent})", size=4)

    def filled(self, value: Fragment, shape: Shape) -> Fragment:
        """A vector or matrix of equal entries."""
        name = "vector" if len(shape) == 1 else "matrix"
        return self.function(name, [value], list(map(str, shape)))

    def block(self, name: str, shape: Shape) -> Fragment:
        """An array of zeros or ones with more than two axes."""
        return self.function(name, [], list(map(str, shape)))

    def eye(self, extent: Extent) -> Fragment:
        return Fragment(f"eye({extent})", size=4)

    def keyword(self, text: str) -> Rope:
        return f" {text} "

    # --- parentheses and signs ---

    def inside(self, p: Fragment, level: int) -> Rope:
        """The fragment where operands must bind at least as tightly as `level`."""
        if p.negative:
            return self.parenthesised(self.signed(p))
        return p.text if p.level >= level else self.parenthesised(p.text)

    def parenthesised(self, rope: Rope) -> Rope:
        return ("(", rope, ")")

    def signed(self, p: Fragment) -> Rope:
        text = p.text if p.level > SUM or not p.negative else self.parenthesised(p.text)
        return ("-", text) if p.negative else text

    def spread(self, p: Fragment, ndim: int, row: bool) -> Fragment:
        """A scalar beside columns, rows or matrices in a sum."""
        return p

    # --- composition ---

    def product(self, ropes: Sequence[Rope]) -> Rope:
        return join_ropes("*", ropes)

    def transpose(self, p: Fragment) -> Fragment:
        text = self.raised(p._replace(negative=False) if p.negative else p)
        bare = p.level >= QUOTE or p.inverted is not None
        marks = 1 if bare else 2 if p.level == SUM else 3  # a sum rather stays together
        size = min(MAX_SIZE, p.size + marks)
        flips = p.flips + (1 if p.level >= POWER else 2)  # around a product one more to read
        return Fragment(text, QUOTE, size, flips, p.negative)

    def raised(self, p: Fragment) -> Rope:
        return (self.inside(p, QUOTE), "'")

    def chain(self, factors: Sequence[Fragment]) -> Fragment:
        """A product of matrices and vectors, from left to right; products among them are opened."""
        if len(factors) == 1:
            return factors[0]
        powers: list[tuple[Fragment, int]] = []
        for factor in factors:
            for p, k in factor.chained if not factor.negative else ():
                append_power(powers, p, k)
            if factor.negative or not factor.chained:
                append_power(powers, factor, 1)
        whole = period(powers)
        if whole:
            body = self.chain([p for p, k in powers[:whole] for _ in range(k)])
            times = len(powers) // whole
            size, flips = fragment_size([body], 2)
            text = self.power(body, times, True)
            return Fragment(text, POWER, size, flips, chained=((body, times),))
        ropes = [self.power(p, k, True) if k > 1 else self.inside(p, POWER) for p, k in powers]
        if powers[0][1] == 1:
            ropes[0] = self.inside(powers[0][0], PRODUCT)
        size, _ = fragment_size([p for p, _ in powers], len(powers))
        flips = min(MAX_SIZE, sum([k * p.flips for p, k in powers]))
        if len(powers) == 1:
            return Fragment(ropes[0], POWER, size, flips, chained=tuple(powers))
        chained = tuple(powers) if len(powers) <= MAX_CHAIN else ()
        return Fragment(self.product(ropes), PRODUCT, size, flips, joins=True, chained=chained)

    def pointwise(self, factors: Sequence[tuple[Fragment, int]], scalar: bool) -> Fragment:
        """A product entry by entry of powers; those with a negative exponent stand below a line."""
        above = [(p, k) for p, k in factors if k > 0]
        below = [(p, -k) for p, k in factors if k < 0]
        top = self.entries(above, scalar) if above else None
        if not below:
            assert top is not None
            return top
        bottom = self.entries(below, scalar)
        made = self.fraction(Parts([], [], top), Parts([], [], bottom), not scalar)
        return made._replace(ratio=(top, bottom))

    def entries(self, factors: Sequence[tuple[Fragment, int]], scalar: bool) -> Fragment:
        """A product entry by entry of powers with positive exponents."""
        ropes = [self.power(p, k, scalar) if k > 1 else self.inside(p, POWER) for p, k in factors]
        size, flips = fragment_size([p for p, _ in factors], len(factors))
        if len(factors) == 1:
            p, k = factors[0]
            return p if k == 1 else Fragment(ropes[0], POWER, size, flips)
        level = PRODUCT if scalar else POINTWISE
        text = self.product(ropes) if scalar else join_ropes(self.pointwise_times, ropes)
        return Fragment(text, level, size, flips, joins=True)

    def power(self, p: Fragment, k: int, scalar: bool) -> Rope:
        return (self.inside(p, QUOTE), "^" if scalar else ".^", str(k))

    def scale(
        self,
        body: Fragment | None,
        coef: Coef,
        above: Sequence[Fragment],
        below: Sequence[Fragment] = (),
    ) -> Fragment:
        """coef * above * body / below, where all but the body are scalars."""
        negative = math.copysign(1, coef.value) < 0 and coef.value == coef.value
        if body is not None and body.negative:
            negative, body = not negative, body._replace(negative=False)
        numbers = ratio(size_of(coef.value))
        if negative and body is None and len(above) == 1 and above[0].mixed and not numbers[0]:
            # of a number that is a difference the other one, -(a - b)/2 as (b - a)/2
            terms = [p._replace(negative=not p.negative) for p in above[0].terms]
            negative, above = False, [self.add(terms)]
        front, back = [[Fragment(text, numeral=True) for text in side] for side in numbers]
        top, bottom = (body, None) if body is None or body.ratio is None else body.ratio
        made = self.fraction(
            Parts([*front, *self.dimensions(coef.times)], self.sorted(above), top),
            Parts([*back, *self.dimensions(coef.over)], self.sorted(below), bottom),
            bottom is not None,
        )
        return made._replace(negative=negative)

    def sorted(self, scalars: Sequence[Fragment]) -> list[Fragment]:
        return sorted(scalars, key=lambda p: (p.level < POWER, p.size))

    def multiplied(self, parts: Parts) -> Fragment | None:
        """The product of what stands on one side of a line; None where nothing does."""
        numbers, scalars, body = parts
        if body is None and scalars and (scalars[0].level >= POWER or not scalars[1:]):
            *scalars, body = scalars
        fragments = [*scalars, *([body] if body is not None else [])]
        if not numbers and len(fragments) < 2:
            return body
        ropes = [self.inside(p, POWER) for p in (*numbers, *scalars)]
        level = PRODUCT if len(ropes) > 1 or body else numbers[0].level
        if body is not None:
            ropes.append(self.inside(body, POINTWISE if body.joins else POWER))
            if body.joins and body.level == POINTWISE:
                level = POINTWISE
        size, flips = fragment_size(fragments, len(numbers) + 1)
        text = self.product(ropes)
        return Fragment(text, level, size, flips, joins=True, numeral=not fragments)

    def fraction(self, above: Parts, below: Parts, entrywise: bool) -> Fragment:
        """What stands above a line over what stands below it; entry by entry, or over a scalar."""
        top, bottom = self.multiplied(above) or Fragment("1", numeral=True), self.multiplied(below)
        if bottom is None:
            return top
        sign = self.pointwise_over if entrywise else "/"
        level = POINTWISE if entrywise or top.level == POINTWISE else PRODUCT
        text = (self.inside(top, POINTWISE), sign, self.inside(bottom, POWER))
        return Fragment(text, level, *fragment_size([top, bottom]))

    def add(
        self, terms: Sequence[Fragment], ndim: int = 0, scalar: Sequence[bool] = ()
    ) -> Fragment:
        """A sum of arrays and scalars, positive terms first, subtracted numbers last.

        A sum in it has parentheses, but in front of a short text, where these would only disturb.
        """
        terms = leading_sum(terms)
        ordered = sorted(terms, key=lambda p: (p.negative, p.negative and p.digits))
        return self.in_order(ordered)._replace(terms=tuple(terms))

    def in_order(self, terms: Sequence[Fragment]) -> Fragment:
        """The sum of the terms as they come."""
        few = len(terms) == 2 and sum([p.size for p in terms]) <= SHORT
        ropes: list[Rope] = []
        for p in terms:
            first = few and not ropes and not p.negative
            body = self.inside(p._replace(negative=False), SUM if first else POINTWISE)
            if ropes:
                ropes.append(" - " if p.negative else " + ")
            elif p.negative:
                ropes.append("-")
            ropes.append(body)
        return Fragment(tuple(ropes), SUM, *fragment_size(terms, len(terms)), terms=tuple(terms))

    def together(self, terms: Sequence[Fragment]) -> Fragment:
        """A sum, factors outside with which all terms begin or end beside a diagonal matrix.

        Of expressions such products are multiplied out (see `graph.normal`).
        """
        ends = equal_ends(terms)
        if ends is None:
            return self.add(terms)
        pairs = zip(ends.rests, terms, strict=True)
        body = self.add([self.chain(rest)._replace(negative=p.negative) for rest, p in pairs])
        return self.chain([*ends.shared, body] if ends.front else [body, *ends.shared])

    def function(self, name: str, args: Sequence[Fragment], extra: Sequence[str] = ()) -> Fragment:
        ropes = [self.argument(p) for p in args] + list(extra)
        return Fragment(
            (name, "(", join_ropes(", ", ropes), ")"), ATOM, *fragment_size(args, 3 + len(ropes))
        )

    def along(self, name: str, p: Fragment, axis: int | None) -> Fragment:
        """A function of all entries, or of a matrix along an axis; -1: as it is by itself."""
        return self.function(name, [p], [] if axis in (None, -1) else [f"axis={axis}"])

    def argument(self, p: Fragment) -> Rope:
        """What stands alone between parentheses or commas."""
        return self.signed(p) if p.condition is None or p.negative else p.condition

    def named(self, op: Op) -> str:
        """The name of an operator in calls."""
        return op.spelling.printed or op.name

    def shown(self, op: Op) -> Sequence[int]:
        """The operands that calls of an operator show; empty: all."""
        return op.spelling.shown

    def output(
        self, op: Op, index: int, extra: Sequence[tuple[str, Any]], args: Sequence[Fragment]
    ) -> Fragment:
        """One output of an operator that has several."""
        unusual = any(value in CONTINUATIONS or isinstance(value, float) for _, value in extra)
        shown = [str(value) for _, value in extra] if unusual else []
        return self.function(op.parts[index], args, shown)

    def indicator(self, params: tuple[Any, ...]) -> Fragment:
        """1 where conditions on indices hold, 0 elsewhere."""
        return self.function(INDICATOR.name, [], described(params))

    def indexed(self, p: Fragment, keys: Sequence[Fragment | None]) -> Fragment:
        """An array indexed by integers, or by `:`."""
        shown = join_ropes(", ", [":" if key is None else self.signed(key) for key in keys])
        size, flips = fragment_size([p, *[key for key in keys if key is not None]], 2)
        return Fragment((self.inside(p, ATOM), "[", shown, "]"), ATOM, size, flips)

    def diag(self, p: Fragment) -> Fragment:
        return self.function("diag", [p])._replace(diagonal=True)

    def trace(self, p: Fragment) -> Fragment:
        return self.function("tr", [p])

    def total(self, p: Fragment) -> Fragment:
        return self.function("sum", [p])

    def mean(self, p: Fragment) -> Fragment:
        return self.function("mean", [p])

    # --- operators ---

    def call(
        self,
        op: Op,
        extra: Sequence[tuple[str, Any]],
        args: Sequence[Fragment],
        scalar: Sequence[bool],
    ) -> Fragment:
        """An operator: between its operands, or as a function with its parameters behind."""
        if op.spelling.infix in MIRRORED:
            return self.compared(op.spelling.infix, *args)
        if op.spelling.infix and not extra:
            return self.infix(op, args, scalar)
        shown = [f"{key}={value}" if key else str(value).replace("'", "") for key, value in extra]
        return self.function(self.named(op), self.conditions(op, args), shown)

    def conditions(self, op: Op, args: Sequence[Fragment]) -> list[Fragment]:
        """The operands, comparisons as they are written where conditions are expected."""
        return [
            p._replace(text=p.condition, negative=False)
            if p.condition and takes_condition(op, k)
            else p
            for k, p in enumerate(args)
        ]

    def compared(self, sign: str, left: Fragment, right: Fragment) -> Fragment:
        """A comparison, which is 1 or 0 where a number is expected; numbers stand on its right."""
        if left.numeral and not right.numeral:
            left, right, sign = right, left, MIRRORED[sign]
        text = (self.signed(left), self.sign(sign), self.signed(right))
        return self.truth(text, *fragment_size([left, right], 1))

    def sign(self, sign: str) -> Rope:
        return f" {sign} "

    def truth(self, condition: Rope, size: int, flips: int) -> Fragment:
        """A condition, and the number that it is."""
        return Fragment(self.parenthesised(condition), ATOM, size, flips, condition=condition)

    def infix(self, op: Op, args: Sequence[Fragment], scalar: Sequence[bool]) -> Fragment:
        sign = op.spelling.infix
        level, right = INFIX[sign.lstrip("1.")]
        if all(scalar) or (scalar[-1] and sign == "./"):
            sign = sign.replace(".", "")
        size, flips = fragment_size(args, 1)
        left = "1" if sign[0] == "1" else self.inside(args[0], QUOTE if level == POWER else level)
        text = (left, sign.lstrip("1"), self.inside(args[-1], right))
        return Fragment(text, level, size, flips)

    def einsum(self, spec: EinsumSpec, args: Sequence[Fragment]) -> Fragment:
        sizes = [f"{letter}={extent}" for letter, extent in spec.sizes]
        ropes = [f"'{','.join(spec.words)}->{spec.out}'", *[self.signed(p) for p in args], *sizes]
        return Fragment(
            ("#(", join_ropes(", ", ropes), ")"), ATOM, *fragment_size(args, 4 + len(ropes))
        )

    # --- statements ---

    def statements(self, named: Sequence[tuple[str, Fragment]], last: Fragment) -> str:
        lines = [(name, " = ", self.signed(p), "\n") for name, p in named]
        return rope_text((tuple(lines), self.signed(last)))

    def where(self, named: Sequence[tuple[str, Fragment]], last: Fragment) -> str:
        """A formula, and behind it what names in it stand for."""
        if not named:
            return self.statements(named, last)
        told = [(name, " = ", self.signed(p)) for name, p in named]
        return rope_text((self.signed(last), " where ", join_ropes(", ", told)))


#: Infix operators that are no comparisons: precedence, and that of their right operand at least.
INFIX = {"/": (POINTWISE, POWER), "*": (POINTWISE, POWER), "^": (POWER, ATOM)}
