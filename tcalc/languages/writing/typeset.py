"""Formulas in two dimensions: what LaTeX and MathML share.

A language of typesetting says how its marks are written: scripts, fractions, fences, words. What a
formula consists of is decided here, once.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from string import Formatter
from typing import Any

import numpy as np

from ...graph.extents import Coef, Extent, Shape, show_shape
from ...graph.nodes import Expr
from ...graph.operators import Op
from ...ops.elementwise_row import UNIT
from .constants import LATEX
from .layout import FormulaLayout
from .notation import (
    ATOM,
    COMPARE,
    POINTWISE,
    POWER,
    PRODUCT,
    EinsumSpec,
    Fragment,
    Rope,
    fragment_size,
    index_letters,
    join_ropes,
)
from .style import COMPARISONS, Parts, Style
from .symbols import Symbols

#: What encloses an operand in a template, before it and behind it.
OPENING = ("(", "{", "|", "[", "& ", r"\\ ", r"cases} ", ", ", r"\lfloor ", r"\lceil ")
CLOSING = (")", "}", "|", "]", r"\right", " &", r" \\", ", ", r" \rfloor", r" \rceil")
#: The function's name with which a template starts.
LEADING_NAME = re.compile(r"\\(operatorname\{\w+\}|(?!left|frac|sqrt)[a-z]+(?=\())")

#: The template of inverses, of which transposes have an exponent of their own.
INVERSE = [("", "0"), ("^{-1}", "")]

#: Comparisons whose signs are not those of text.
SIGNS = {"<=": r" \le ", ">=": r" \ge ", "==": " = ", "!=": r" \ne "}


def template(text: str) -> list[tuple[str, str]]:
    """A format string as literals, each with the field behind it; the last field is empty."""
    found, literal = [], ""
    for part, field, *_ in Formatter().parse(text):
        literal += part
        if field is not None:
            found.append((literal, field))
            literal = ""
    return [*found, (literal, "")]


class Typeset(Style, ABC):
    """Mathematical notation, from the marks of one language."""

    dot: Rope  #: between numbers
    times: Rope  #: between extents
    entrywise: Rope  #: before exponents of powers entry by entry
    top: Rope  #: the exponent of transposes
    one: Rope  #: of vectors of ones
    infinity: Rope

    def __init__(self) -> None:
        self.symbols = Symbols(self.symbol, self.exact_symbol)
        self.heights: dict[int, tuple[Rope, bool]] = {}

    def tall(self, rope: Rope) -> bool:
        """Is a rope higher than a line? Of each that is made of others this is asked once."""
        stack = [rope]
        while stack:
            parts = stack[-1]
            if self._known(parts) is None:
                waiting = [part for part in parts if self._known(part) is None]
                stack += waiting
                if waiting:
                    continue
                self.heights[id(parts)] = parts, any(map(self._known, parts))
            stack.pop()
        return bool(self._known(rope))

    def _known(self, rope: Rope) -> bool | None:
        found = self.high(rope)
        known = self.heights.get(id(rope)) if found is None else None
        return found if known is None else known[1]

    # --- marks ---

    @staticmethod
    @abstractmethod
    def symbol(name: str) -> str: ...

    @staticmethod
    @abstractmethod
    def exact_symbol(name: str) -> str: ...

    @abstractmethod
    def high(self, rope: Rope) -> bool | None:
        """Is a mark higher than a line? None for a rope made of others."""

    @abstractmethod
    def superscript(self, base: Rope, above: Rope) -> Rope: ...

    @abstractmethod
    def subscript(self, base: Rope, below: Rope) -> Rope: ...

    @abstractmethod
    def over(self, above: Rope, below: Rope) -> Rope:
        """A fraction."""

    @abstractmethod
    def fenced(self, left: str, rope: Rope, right: str) -> Rope:
        """Something in fences as high as it is."""

    @abstractmethod
    def words(self, text: str) -> Rope:
        """Words in roman type."""

    @abstractmethod
    def beside(self, ropes: Sequence[Rope]) -> Rope:
        """Symbols and numbers multiplied."""

    @abstractmethod
    def indices(self, letters: str) -> Rope: ...

    @abstractmethod
    def summation(self, letters: str) -> Rope:
        """The sign of a sum over indices."""

    @abstractmethod
    def applied(self, name: str, inside: Rope) -> Rope:
        """A function by its name, of what stands in parentheses."""

    @abstractmethod
    def typeset(self, parts: Sequence[Rope]) -> Rope:
        """A template: LaTeX, and in every second place a part that is written already."""

    # --- atoms ---

    def name(self, name: str) -> Fragment:
        return Fragment(self.symbols[name])

    def numeral(self, text: str) -> Rope:
        """A number; constants by their symbols."""
        if text in LATEX:
            return self.typeset([LATEX[text]])
        if text in ("inf", "nan"):
            return self.infinity if text == "inf" else self.words("nan")
        mantissa, _, exponent = text.partition("e")
        power = self.superscript("10", str(int(exponent))) if exponent else ""
        return (mantissa, self.dot, power) if exponent else text

    def array(self, value: np.ndarray) -> Fragment:
        if not value.ndim:
            return Fragment(self.numeral(repr(value.item())))
        return Fragment(self.subscript(self.words("const"), self.sizes(value.shape)))

    def sizes(self, shape: Sequence[Extent]) -> Rope:
        return join_ropes(self.times, list(map(self.extent, shape)))

    def extent(self, extent: Extent) -> Rope:
        """An extent, names in it by their symbols."""
        return str(extent)

    def dimensions(self, names: Sequence[str]) -> list[Rope]:
        shown = []
        for name, power in sorted(Counter(names).items()):
            base = self.extent(name) if name.isidentifier() else ("(", self.extent(name), ")")
            shown.append(base if power == 1 else self.superscript(base, str(power)))
        return shown

    def ones(self, extent: Extent | None) -> Fragment:
        return Fragment(
            self.one if extent is None else self.subscript(self.one, self.extent(extent))
        )

    def filled(self, value: Fragment, shape: Shape) -> Fragment:
        if value.text == "0":
            return value
        ones = self.ones(shape[0])
        if len(shape) == 2:
            ones = self.chain([ones, self.transpose(self.ones(shape[1]))])
        return self.scale(ones, Coef(), [value]) if value.text != "1" else ones

    def block(self, name: str, shape: Shape) -> Fragment:
        return Fragment("0" if name == "zeros" else self.subscript(self.one, self.sizes(shape)))

    def eye(self, extent: Extent) -> Fragment:
        return Fragment(self.subscript("I", self.extent(extent)))

    # --- composition ---

    def parenthesised(self, rope: Rope) -> Rope:
        return self.fenced("(", rope, ")")

    def scale(
        self,
        body: Fragment | None,
        coef: Coef,
        above: Sequence[Fragment],
        below: Sequence[Fragment] = (),
    ) -> Fragment:
        if coef.zero:
            return Fragment("0", numeral=True)
        scaled = super().scale(body, coef, above, below)
        if body is None or body.entry is None:
            return scaled
        letters, entry = body.entry
        inner = super().scale(entry, coef, above, below)
        return scaled._replace(entry=(letters, inner._replace(negative=False)))

    def raised(self, p: Fragment) -> Rope:
        if p.inverted is not None:
            return self.superscript(p.inverted, self.signed(Fragment(self.top, negative=True)))
        return self.superscript(self.inside(p, ATOM), self.top)

    def power(self, p: Fragment, k: int, scalar: bool) -> Rope:
        above = str(k) if scalar else (self.entrywise, str(k))
        return self.superscript(self.inside(p, ATOM), above)

    def multiplied(self, parts: Parts) -> Fragment | None:
        numbers = [self.numeral(part) if isinstance(part, str) else part for part in parts.numbers]
        return super().multiplied(parts._replace(numbers=numbers))

    def fraction(self, above: Parts, below: Parts, entrywise: bool) -> Fragment:
        """Entry by entry on one line; else with a line, above which an array stands alone only."""
        bottom = self.multiplied(below)
        if entrywise or bottom is None:
            return super().fraction(above, below, entrywise)
        top, behind = above, None
        if below.body is None and not below.scalars:
            top, behind = above._replace(scalars=[], body=None), above._replace(numbers=[])
        elif above.body is not None and (above.numbers or above.scalars):
            top, behind = above._replace(body=None), Parts([], [], above.body)
        over = self.multiplied(top) or Fragment("1")
        line = Fragment(
            self.over(over.text, bottom.text), POWER, *fragment_size([over, bottom]), joins=True
        )
        rest = behind and self.multiplied(behind)
        if rest is None:
            return line
        level = POINTWISE if rest.level == POINTWISE else PRODUCT
        text = self.product([line.text, self.inside(rest, POINTWISE if rest.joins else POWER)])
        return Fragment(text, level, *fragment_size([line, rest]), joins=True)

    def listed(self, fragments: Sequence[Fragment], extra: Sequence[Rope] = ()) -> Rope:
        """Arguments in parentheses."""
        ropes = [self.signed(p) for p in fragments] + list(extra)
        return self.parenthesised(join_ropes(", ", ropes))

    def function(self, name: str, args: Sequence[Fragment], extra: Sequence[str] = ()) -> Fragment:
        text = self.applied(name, self.listed(args, extra))
        return Fragment(text, ATOM, *fragment_size(args, 3 + len(args) + len(extra)))

    def output(
        self, op: Op, index: int, extra: Sequence[tuple[str, Any]], args: Sequence[Fragment]
    ) -> Fragment:
        """One output of several, by its symbol."""
        if not op.spelling.symbols:
            return super().output(op, index, extra, args)
        text = self.typeset([op.spelling.symbols[index], self.listed(args)])
        return Fragment(text, ATOM, *fragment_size(args, 4))

    def call(
        self,
        op: Op,
        extra: Sequence[tuple[str, Any]],
        args: Sequence[Fragment],
        scalar: Sequence[bool],
    ) -> Fragment:
        """The row's template, with parentheses where it has none of its own."""
        if op.spelling.infix in COMPARISONS:
            return self.compared(op.spelling.infix, args)
        if op.spelling.infix == ".^":
            base, exponent = args
            above = self.signed(exponent)
            above = above if all(scalar) else (self.entrywise, above)
            text = self.superscript(self.inside(base, ATOM), above)
            return Fragment(text, POWER, *fragment_size(args, 2))
        args = self.conditions(op, args)
        parts = template(op.spelling.latex)
        ropes: list[Rope] = []
        level = ATOM
        for k, (literal, field) in enumerate(parts):
            ropes.append(literal)
            if not field:
                continue
            after = parts[k + 1][0]
            if literal.endswith(OPENING) and after.startswith(CLOSING):
                ropes.append(self.signed(args[int(field)]))
            else:
                raised = after.startswith("^")
                level = min(level, POWER if raised else COMPARE)
                ropes.append(self.inside(args[int(field)], ATOM if raised else POINTWISE))
        if parts[0][0].endswith("^{") or parts[0][0].startswith(r"\frac"):
            level = min(level, POWER)
        if extra:
            ropes = self.with_parameters(ropes, extra)
            level = min(level, POWER)
        size, flips = fragment_size(args, 2)
        if level == COMPARE and op.meaning.range == UNIT:
            return self.truth(self.typeset(ropes), size, flips)
        inverted = ropes[1] if parts == INVERSE else None
        return Fragment(self.typeset(ropes), level, size, flips, inverted=inverted)

    def sign(self, sign: str) -> Rope:
        return self.typeset([SIGNS.get(sign, f" {sign} ")])

    def truth(self, condition: Rope, size: int, flips: int) -> Fragment:
        """Iverson's bracket."""
        text = self.fenced("[", condition, "]")
        return Fragment(text, ATOM, size, flips, condition=condition)

    def with_parameters(self, parts: list[Rope], extra: Sequence[tuple[str, Any]]) -> list[Rope]:
        """A subscript of the operator's name, or of the whole where it has none."""
        below = join_ropes(", ", [self.parameter(*item) for item in extra])
        name = LEADING_NAME.match(parts[0])
        if name is None:
            return ["", self.typeset(parts), "_{", below, "}"]
        first, *rest = parts
        return [first[: name.end()] + "_{", below, "}" + first[name.end() :], *rest]

    def parameter(self, key: str, value: Any) -> Rope:
        """A parameter of an operator as part of its subscript; axes are the last ones."""
        if key == "axis":
            count = len(value) if isinstance(value, tuple) else 1
            return self.words("last axis" if count == 1 else f"last {count} axes")
        formula = getattr(value, "expr", None)
        if isinstance(formula, Expr):
            return FormulaLayout(type(self)()).text(formula)
        if isinstance(value, bool):
            return self.words(str(value))
        if isinstance(value, tuple):
            value = show_shape(value).replace("*", " ")
        named = isinstance(value, str) and value.isidentifier()
        shown = self.symbols.pretty(value) if named else str(value)
        return (self.words(key), "=", shown) if key else shown

    def einsum(self, spec: EinsumSpec, args: Sequence[Fragment]) -> Fragment:
        """Sum and product over indices, deltas for indices that repeat in the result."""
        fresh = index_letters()
        out = "".join(islice(fresh, len(spec.out)))
        names: dict[str, str] = {}
        deltas = []
        for letter, shown in zip(spec.out, out, strict=True):
            if names.setdefault(letter, shown) != shown:
                pair = self.indices(names[letter] + shown)
                deltas.append(self.subscript(self.symbols.pretty("delta"), pair))
        for letter in "".join(spec.words):
            if letter not in names:
                names[letter] = next(fresh)
        summed = "".join([names[k] for k in names if k not in spec.out])
        words = [self.indices("".join([names[k] for k in word])) for word in spec.words]
        factors = [
            self.subscript(self.inside(p, ATOM), word) for word, p in zip(words, args, strict=True)
        ]
        body = self.beside([*factors, *deltas] or ["1"])
        if summed:
            body = (self.summation(summed), " ", body)
        entry = Fragment(body, POINTWISE, *fragment_size(args, 4 + len(deltas)), joins=True)
        return self.bracketed(out, entry) if out else entry

    def bracketed(self, out: str, entry: Fragment) -> Fragment:
        """The array with these entries."""
        text = self.subscript(self.fenced("[", entry.text, "]"), self.indices(out))
        return Fragment(text, POWER, entry.size, entry.flips, entry=(out, entry))

    def add(self, terms: Sequence[Fragment]) -> Fragment:
        """A sum; arrays given by their entries under one bracket."""
        found = [p.entry for p in terms if p.entry]
        if len(found) < len(terms) or len({out for out, _ in found}) > 1:
            return super().add(terms)
        entries = [
            entry._replace(
                negative=p.negative,
                level=entry.level if p.negative else max(entry.level, POINTWISE),
            )
            for p, (_, entry) in zip(terms, found, strict=True)
        ]
        return self.bracketed(found[0][0], super().add(entries))
