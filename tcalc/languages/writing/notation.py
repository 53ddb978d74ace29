"""Fragments of text with their precedence, and how the ASCII matrix language composes them.

A style composes names, products, sums and calls of smaller fragments; which of these an expression
consists of is decided in `matrix_form`. Text is kept as ropes (nested tuples), so that no fragment
is ever copied and shared parts cost nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain, count
from typing import Any, NamedTuple

import numpy as np

from ...graph.extents import Coef, Extent, Number, Shape, doubles_of, size_of
from ...graph.operators import Op
from ...support.limits import exceeded, largest, spend

Rope = Any  #: str, or a tuple of ropes

#: Precedence: what has a higher level binds more tightly.
COMPARE, SUM, POINTWISE, PRODUCT, POWER, QUOTE, ATOM = range(7)
MAX_SIZE = 10**9
MAX_SHOWN = 64
SHORT = 16
#: Parameters of factorisations that their functions in text do not take by themselves.
CONTINUATIONS = ("nan", "epsilon", "spectral", "nuclear")
INDEX_LETTERS = "ijklmnpqrstuvwxyzabcdefghoABCDEFGHIJKLMNOPQRSTUVWXYZ"


def index_letters() -> Iterator[str]:
    """Names of indices: Latin letters, then Greek ones and what follows them."""
    return chain(INDEX_LETTERS, (chr(k) for k in count(ord("α")) if chr(k).isalpha()))


class Fragment(NamedTuple):
    """A part of the printed text.

    Attributes
    ----------
    text : rope
        Without the sign, which consumers write where it reads best.
    level : int
        Precedence of the outermost operator.
    size : int
        Tokens when everything shared is written out (bounded).
    flips : int
        Transposes in the text; of two spellings the one with fewer is chosen.
    negative : bool
        A minus sign belongs in front.
    joins : bool
        A product that takes a further factor on its left without parentheses.
    under : rope or None
        x of a fragment that reads 1/x.
    condition : rope or None
        A comparison as it is written where a condition is expected.
    entry : tuple or None
        Names of the axes and one entry without its sign, of an array given by its entries.
    """

    text: Rope
    level: int = ATOM
    size: int = 1
    flips: int = 0
    negative: bool = False
    joins: bool = False
    under: Rope = None
    condition: Rope = None
    entry: tuple[str, Any] | None = None


def rope_text(rope: Rope, leaf: Callable[[str], str] = str) -> str:
    """The text of a rope, each string in it as `leaf` writes it; LimitError where what is shared
    makes it too long.
    """
    parts: list[str] = []
    stack = [rope]
    length, allowed = 0, largest("characters")
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            parts.append(leaf(item))
            length += len(parts[-1])
            if length > allowed:
                raise exceeded("characters", allowed)
        else:
            stack.extend(reversed(item))
    spend("steps", len(parts))
    return "".join(parts)


def fragment_size(fragments: Sequence[Fragment], extra: int = 1) -> tuple[int, int]:
    """Size and flips of a fragment made of fragments."""
    return (
        min(MAX_SIZE, sum([p.size for p in fragments]) + extra),
        min(MAX_SIZE, sum([p.flips for p in fragments])),
    )


def join_ropes(separator: str, ropes: Sequence[Rope]) -> Rope:
    found: list[Rope] = []
    for rope in ropes:
        if found:
            found.append(separator)
        found.append(rope)
    return tuple(found)


class EinsumSpec(NamedTuple):
    """An einsum form: letters of each operand, of the result, sizes of letters no operand has."""

    words: tuple[str, ...]
    out: str
    sizes: tuple[tuple[str, Extent], ...]


class Style:
    """How fragments are composed: here in the ASCII matrix language, in subclasses otherwise."""

    pointwise_times = " .* "
    maps_to = " -> "
    stated: Collection[str] = ()  #: dimensions of variables, which are no variables' names

    # --- atoms ---

    def name(self, name: str) -> Fragment:
        return Fragment(name)

    def number(self, value: float) -> Fragment:
        return Fragment(repr(value))

    def array(self, value: np.ndarray) -> Fragment:
        if value.size > MAX_SHOWN:
            return Fragment(f"const({', '.join(map(str, value.shape))})")
        return Fragment(str(value.tolist()), size=2 * value.size)

    def dimensions(self, names: Sequence[str]) -> list[str]:
        """Factors or divisors that are dimensions; by their names where variables have these."""
        return [name if name in self.stated else f"extent({name})" for name in names]

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

    # --- parentheses and signs ---

    def inside(self, p: Fragment, level: int) -> Rope:
        """The fragment where operands must bind at least as tightly as `level`."""
        if p.negative:
            return self.parenthesised(self.signed(p))
        return p.text if p.level >= level else self.parenthesised(p.text)

    def parenthesised(self, rope: Rope) -> Rope:
        return ("(", rope, ")")

    def signed(self, p: Fragment) -> Rope:
        if not p.negative:
            return p.text
        return ("-", p.text if p.level > SUM else self.parenthesised(p.text))

    # --- composition ---

    def product(self, ropes: Sequence[Rope]) -> Rope:
        return join_ropes("*", ropes)

    def transpose(self, p: Fragment) -> Fragment:
        text = self.raised(p._replace(negative=False) if p.negative else p)
        size = min(MAX_SIZE, p.size + (1 if p.level >= QUOTE else 3))
        return Fragment(text, QUOTE, size, p.flips + 1, p.negative)

    def raised(self, p: Fragment) -> Rope:
        return (self.inside(p, QUOTE), "'")

    def chain(self, factors: Sequence[Fragment]) -> Fragment:
        """A product of matrices and vectors, from left to right."""
        if len(factors) == 1:
            return factors[0]
        ropes = [self.inside(factors[0], PRODUCT)]
        ropes += [self.inside(p, POWER) for p in factors[1:]]
        return Fragment(self.product(ropes), PRODUCT, *fragment_size(factors), joins=True)

    def scaling(self, left: Fragment | None, body: Fragment, right: Fragment | None) -> Fragment:
        """Diagonal matrices around a matrix."""
        factors = [p for p in (left, body, right) if p is not None]
        ropes = [self.inside(p, POWER) for p in factors]
        if body.joins and body.level == PRODUCT and not body.negative:
            ropes[0 if left is None else 1] = body.text
        return Fragment(self.product(ropes), PRODUCT, *fragment_size(factors), joins=True)

    def pointwise(self, factors: Sequence[tuple[Fragment, int]], scalar: bool) -> Fragment:
        """A product entry by entry of powers."""
        factors = self.powers(factors)
        ropes = [self.power(p, k, scalar) if k > 1 else self.inside(p, POWER) for p, k in factors]
        size, flips = fragment_size([p for p, _ in factors], len(factors))
        if len(factors) == 1:
            p, k = factors[0]
            return p if k == 1 else Fragment(ropes[0], POWER, size, flips)
        level = PRODUCT if scalar else POINTWISE
        text = self.product(ropes) if scalar else join_ropes(self.pointwise_times, ropes)
        return Fragment(text, level, size, flips, joins=True)

    def powers(self, factors: Sequence[tuple[Fragment, int]]) -> list[tuple[Fragment, int]]:
        """Powers as products of squares: x.^2 .* x, as x.^3 would be read as another operator."""
        found = []
        for p, k in factors:
            found += [(p, 2)] * (k // 2) + [(p, 1)] * (k % 2)
        return found

    def power(self, p: Fragment, k: int, scalar: bool) -> Rope:
        return (self.inside(p, QUOTE), "^" if scalar else ".^", str(k))

    def factors(self, value: Number) -> tuple[str, str]:
        """A positive number as a factor in front and a divisor behind."""
        if value == 1:
            return "", ""
        if isinstance(value, float) and 0 < value < math.inf:
            for k in range(2, 100):
                p = round(min(value * k, 100))
                if 0 < p < 100 and p * (1 / k) == value and (k < 10 or len(repr(value)) > 6):
                    return ("" if p == 1 else str(p)), str(k)
        return "*".join(map(repr, doubles_of(value))), ""

    def scale(self, body: Fragment | None, coef: Coef, scalars: Sequence[Fragment]) -> Fragment:
        """coef * scalars * body."""
        value = coef.value
        negative = math.copysign(1, value) < 0 and value == value
        front, back = self.factors(size_of(value))
        if body is not None and body.negative:
            negative, body = not negative, body._replace(negative=False)
        scalars = sorted(scalars, key=lambda p: (p.level < POWER, p.size))
        if body is None and scalars:
            body, scalars = scalars[-1], scalars[:-1]
        if not scalars and not (coef.times or coef.over or back) and body is not None:
            if not front:
                return body._replace(negative=negative)
            if body.under is not None:
                return self.quotient(front, body, negative)
        before = [front] if front else []
        before += self.dimensions(coef.times)
        ropes: list[Rope] = [*before, *[self.inside(p, POWER) for p in scalars]]
        after = [back] if back else []
        after += self.dimensions(coef.over)
        if body is not None:
            level = POINTWISE if body.joins or not ropes else POWER
            ropes.append(self.inside(body, level))
        fragments = [*scalars, *([body] if body is not None else [])]
        size, flips = fragment_size(fragments, len(before) + len(after) + 1)
        text = self.fraction(ropes, after, len(before))
        single = len(ropes) == 1 and not after
        level = PRODUCT
        if body is not None and (single or (body.joins and body.level == POINTWISE)):
            level = body.level
        return Fragment(text, ATOM if single and body is None else level, size, flips, negative,
                     joins=not after)  # fmt: skip

    def fraction(self, above: list[Rope], below: list[str], numbers: int) -> Rope:
        """Factors, the first `numbers` of them numbers, over numbers."""
        return join_ropes("/", [self.product(above or ["1"]), *below])

    def quotient(self, above: str, body: Fragment, negative: bool) -> Fragment:
        return body._replace(
            text=(above, body.text[1:]), negative=negative, under=None, size=body.size + 1
        )

    def add(self, terms: Sequence[Fragment]) -> Fragment:
        """A sum, positive terms first.

        A sum in it has parentheses, but in front of a short text, where these would only disturb.
        """
        few = len(terms) == 2 and sum([p.size for p in terms]) <= SHORT
        ordered = [p for p in terms if not p.negative] + [p for p in terms if p.negative]
        ropes: list[Rope] = []
        for p in ordered:
            first = few and not ropes and not p.negative
            body = self.inside(p._replace(negative=False), SUM if first else POINTWISE)
            if ropes:
                ropes.append(" - " if p.negative else " + ")
            elif p.negative:
                ropes.append("-")
            ropes.append(body)
        return Fragment(tuple(ropes), SUM, *fragment_size(terms, len(terms)))

    def function(self, name: str, args: Sequence[Fragment], extra: Sequence[str] = ()) -> Fragment:
        ropes = [self.signed(p) for p in args] + list(extra)
        return Fragment(
            (name, "(", join_ropes(", ", ropes), ")"), ATOM, *fragment_size(args, 3 + len(ropes))
        )

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

    def indexed(self, p: Fragment, keys: Sequence[Fragment | None]) -> Fragment:
        """An array indexed by integers, or by `:`."""
        shown = join_ropes(", ", [":" if key is None else self.signed(key) for key in keys])
        size, flips = fragment_size([p, *[key for key in keys if key is not None]], 2)
        return Fragment((self.inside(p, ATOM), "[", shown, "]"), ATOM, size, flips)

    def diag(self, p: Fragment) -> Fragment:
        return self.function("diag", [p])

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
        if op.spelling.infix and not extra:
            return self.infix(op, args, scalar)
        shown = [f"{key}={value}" if key else str(value).replace("'", "") for key, value in extra]
        taken = [
            p._replace(text=p.condition, negative=False)
            if p.condition and takes_condition(op, k)
            else p
            for k, p in enumerate(args)
        ]
        return self.function(self.named(op), taken, shown)

    def infix(self, op: Op, args: Sequence[Fragment], scalar: Sequence[bool]) -> Fragment:
        sign = op.spelling.infix
        level, right, spaced = INFIX.get(sign.lstrip("1."), (COMPARE, POINTWISE, True))
        if all(scalar) or (scalar[-1] and sign == "./"):
            sign = sign.replace(".", "")
        size, flips = fragment_size(args, 1)
        if len(args) == 1:
            text = (sign[0], sign[1:], self.inside(args[0], right))
            return Fragment(text, level, size, flips, under=text[2])
        low = QUOTE if level == POWER else SUM if level == COMPARE else level
        left, behind = self.inside(args[0], low), self.inside(args[1], right)
        text = (left, f" {sign} " if spaced else sign, behind)
        if level == COMPARE:
            return self.function(op.name, args)._replace(condition=text)
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


#: Infix operators: precedence, that of their right operand at least, and whether spaces surround.
INFIX = {
    "/": (POINTWISE, POWER, False),
    "*": (POINTWISE, POWER, False),
    "^": (POWER, ATOM, False),
}


def takes_condition(op: Op, k: int) -> bool:
    """Is operand k only asked whether it is 0? Such operands have no derivative."""
    partials = op.meaning.partials  # empty for loops
    undifferentiated = k < len(partials) and partials[k] is None
    return undifferentiated and (any(partials) or op.meaning.range == (0.0, 1.0))
