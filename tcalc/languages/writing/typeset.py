"""Formulas in two dimensions: what LaTeX and MathML share.

A language of typesetting says how its marks are written: scripts, fractions, fences, words.
What a formula consists of is decided here, once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...graph.extents import Coef, Extent, Shape, show_shape
from ...graph.operators import Op
from .by_entries import ByEntries
from .constants import LATEX
from .layout import FormulaLayout
from .notation import (
    ATOM,
    COMPARE,
    MAX_SHOWN,
    POINTWISE,
    POWER,
    PRODUCT,
    Fragment,
    Parts,
    Rope,
    fragment_size,
    join_ropes,
)
from .row_templates import CLOSING, LEADING_NAME, OPENING, template
from .style import MIRRORED

#: Whole numbers up to this are written without a point.
EXACT = 1e15

#: The template of inverses, of which transposes have an exponent of their own.
INVERSE = [("", "0"), ("^{-1}", "")]
#: A function of a matrix along axis 0 is one of each column.
SIDES = {0: "columns", 1: "rows"}


class Typeset(ByEntries):
    """Mathematical notation, from the marks of one language."""

    rows = False  # Iverson's brackets say the same

    def name(self, name: str) -> Fragment:
        return Fragment(self.symbols[name])

    def numeral(self, text: str) -> Rope:
        """A number; constants by their symbols."""
        if text in LATEX:
            return self.typeset([LATEX[text]])
        if text in ("inf", "nan"):
            return self.infinity if text == "inf" else self.words("nan")
        digits, _, exponent = text.partition("e")
        return (digits, self.dot, self.superscript("10", str(int(exponent)))) if exponent else text

    def array(self, value: np.ndarray) -> Fragment:
        if not value.ndim:
            return Fragment(self.numeral(repr(value.item())))
        if value.ndim > 2 or value.size > MAX_SHOWN:
            return Fragment(self.subscript(self.words("const"), self.sizes(value.shape)))
        rows = [[self.signed_number(n) for n in row] for row in np.atleast_2d(value).tolist()]
        if value.ndim == 1:
            text = self.fenced("(", join_ropes(", ", rows[0]), ")")
            return Fragment(self.superscript(text, self.top), POWER, 2 * value.size)
        parts: list[Rope] = [r"\begin{matrix} "]
        for row in rows:
            for n in row:
                parts += [n, " & "]
            parts[-1] = r" \\ "
        parts[-1] = r" \end{matrix}"
        return Fragment(self.fenced("[", self.typeset(parts), "]"), ATOM, 2 * value.size)

    def signed_number(self, value: float) -> Rope:
        whole = math.isfinite(value) and float(value).is_integer() and abs(value) < EXACT
        text = self.numeral(repr(int(abs(value)) if whole else abs(value)))
        return ("-", text) if math.copysign(1, value) < 0 and value == value else text

    def spread(self, p: Fragment, ndim: int, row: bool) -> Fragment:
        """A scalar times vectors of ones."""
        if p.numeral and p.text == "0":
            return p
        ones = self.ones(None)
        if ndim == 2:
            ones = self.chain([ones, self.transpose(self.ones(None))])
        elif row:
            ones = self.transpose(ones)
        one = p.numeral and p.text == "1"
        found = self.scale(ones, Coef(), [] if one else [p._replace(negative=False)])
        return found._replace(negative=p.negative)

    def sizes(self, shape: Sequence[Extent]) -> Rope:
        return join_ropes(self.times, list(map(self.extent, shape)))

    def dimension(self, name: str) -> Fragment:
        shown = self.extent(name)
        return Fragment(shown if name.isidentifier() else ("(", shown, ")"))

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
        ndim, inner = body.entry

        def entry(out: str, taken: str) -> Fragment:
            one = super(Typeset, self).scale(inner(out, taken), coef, above, below)
            return one._replace(negative=False)

        return scaled._replace(entry=(ndim, self.once(entry)))

    def raised(self, p: Fragment) -> Rope:
        if p.inverted is not None:
            return self.superscript(p.inverted, self.signed(Fragment(self.top, negative=True)))
        return self.superscript(self.inside(p, ATOM), self.top)

    def power(self, p: Fragment, k: int, scalar: bool) -> Rope:
        if scalar and p.inverted is not None:
            return self.superscript(p.inverted, self.signed(Fragment(str(k), negative=True)))
        above = str(k) if scalar else (self.entrywise, str(k))
        return self.superscript(self.inside(p, ATOM), above)

    def multiplied(self, parts: Parts) -> Fragment | None:
        numbers = [p._replace(text=self.numeral(p.text)) if p.numeral else p for p in parts.numbers]
        return super().multiplied(parts._replace(numbers=numbers))

    def fraction(self, above: Parts, below: Parts, entrywise: bool) -> Fragment:
        """Entry by entry on one line; else with a line, above which an array stands alone only."""
        bottom = self.multiplied(below)
        if entrywise and above.body is None:
            above = above._replace(body=self.ones(None))
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

    def along(self, name: str, p: Fragment, axis: int | None) -> Fragment:
        if axis not in SIDES:
            return self.function(name, [p])
        below = self.subscript(self.words(name), self.words(SIDES[axis]))
        return Fragment((below, self.listed([p])), ATOM, *fragment_size([p], 5))

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
        if op.spelling.infix in MIRRORED:
            return self.compared(op.spelling.infix, *args)
        if op.spelling.infix == ".^":
            base, exponent = args
            several = exponent.level < POINTWISE and not all(scalar)
            above = self.parenthesised(self.signed(exponent)) if several else self.signed(exponent)
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
            if field == "function":
                ropes.append(self.mapping(extra[0][1]))
                extra = ()
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
        named = LEADING_NAME.match(parts[0][0])
        if extra and (op.core or named):
            ropes = self.with_parameters(ropes, extra)
            level = min(level, POWER if named else ATOM)
        size, flips = fragment_size(args, 2)
        if level == COMPARE and op.meaning.truth:
            return self.truth(self.typeset(ropes), size, flips)
        inverted = ropes[1] if parts == INVERSE else None
        return Fragment(self.typeset(ropes), level, size, flips, inverted=inverted)

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

    def mapping(self, value: Any) -> Rope:
        """A function of one number that is a parameter."""
        inner = FormulaLayout(type(self)()).text(value.expr)
        return (self.symbols.pretty("x"), self.maps_to, inner)

    def parameter(self, key: str, value: Any) -> Rope:
        """A parameter of an operator as part of its subscript; axes are the last ones."""
        if key == "axis":
            if value in SIDES:
                return self.words(SIDES[value])
            count = len(value) if isinstance(value, tuple) else 1
            return self.words("last axis" if count == 1 else f"last {count} axes")
        if isinstance(value, bool):
            return self.words(str(value))
        if isinstance(value, tuple):
            value = show_shape(value).replace("*", " ")
        named = isinstance(value, str) and value.isidentifier()
        shown = self.symbols.pretty(value) if named else str(value)
        return (self.words(key), "=", shown) if key else shown
