"""MathML: formulas as presentation markup, which browsers set by themselves.

Only elements and attributes of MathML Core. The notation is that of LaTeX: letters of variables
are italic, of scalars, vectors and matrices; names of several letters and capital Greek ones are
upright.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ..forms.choose import chosen
from ..graph.nodes import Expr
from ..graph.trees import Place, places
from .index.formula import typeset
from .markup import (
    APPLY,
    CLOSE,
    COMMA,
    THIN,
    TIMES,
    Box,
    Markup,
    attributes,
    box,
    leaf,
    leaves,
    sign,
    single,
    word,
    written,
)
from .matrix.print import to_text
from .templates import TemplateReader, greek, table
from .writing.nests import of_nests
from .writing.notation import Fragment, Rope, join_ropes
from .writing.symbols import GREEK, words_of
from .writing.typeset import Typeset

#: What a number may stand in at the left end of a factor.
BEFORE = {"<mrow>", "<msub>", "<msup>", "<msubsup>"}
LONG = re.compile(r"<mi>[^<&]{2,}|<mtext>|<mo[^>]*>[|‖]")
#: Columns that touch; browsers take one of two spellings in tables of formulas.
RIGHT = "text-align: right; text-align: -webkit-right; padding-right: 0"
LEFT = "text-align: left; padding-left: 0"
DISPLAYS = ("block", "inline")
WHERE = leaf("mtext", "where\u00a0")


def symbol(name: str) -> Markup:
    """A name in MathML: digits at its end and parts behind an underscore are subscripts."""
    first, *rest = map(_word, words_of(name))
    if not rest:
        return first
    comma = leaf("mo", ",", **CLOSE)
    below = rest[0] if len(rest) == 1 else f"<mrow>{comma.join(rest)}</mrow>"
    return Markup(f"<msub>{first}{below}</msub>")


def _word(text: str) -> Markup:
    if text in GREEK:
        return greek(text)
    return leaf("mn" if text.isdecimal() else "mi", text)


def exact_symbol(name: str) -> Markup:
    """A name in MathML as it is: no two names look alike."""
    return leaf("mtext", name)


class MathML(Typeset):
    """Markup of MathML Core."""

    formed = 180
    pointwise_times = " ⊙ "
    pointwise_over = " ⊘ "
    maps_to = " ↦ "
    dot = " ⋅ "
    times = " × "
    entrywise = leaf("mo", "⊙", **CLOSE)
    top = word("⊤")
    one = leaf("mi", "𝟏")
    infinity = word("∞")

    symbol = staticmethod(symbol)
    exact_symbol = staticmethod(exact_symbol)

    def high(self, rope: Rope) -> bool | None:
        if isinstance(rope, Box):
            return rope.tall
        return False if isinstance(rope, str) else None

    # --- marks ---

    def superscript(self, base: Rope, above: Rope) -> Rope:
        if isinstance(base, Markup) and base.startswith("<msub>"):
            both = Markup(base.removeprefix("<msub>").removesuffix("</msub>"))
            return box("msubsup", both, single(above))
        if isinstance(base, Box) and base.tag == "msub":
            return box("msubsup", *base[1:-1], single(above), tall=base.tall)
        return box("msup", single(base), single(above), tall=self.tall(base))

    def subscript(self, base: Rope, below: Rope) -> Rope:
        return box("msub", single(base), single(below), tall=self.tall(base))

    def over(self, above: Rope, below: Rope) -> Rope:
        return box("mfrac", single(above), single(below), tall=True)

    def fenced(self, left: str, rope: Rope, right: str) -> Rope:
        tall = self.tall(rope)
        start, end = (leaf("mo", c) if tall else sign(c) for c in (left, right))
        return box("mrow", start, single(rope), end, tall=tall)

    def words(self, text: str) -> Rope:
        return word(text)

    def keyword(self, text: str) -> Rope:
        return leaf("mtext", f"\u00a0{text}\u00a0")

    def beside(self, ropes: Sequence[Rope]) -> Rope:
        return join_ropes(leaf("mo", TIMES), ropes)

    def indices(self, letters: str) -> Rope:
        return join_ropes(leaf("mo", COMMA), [leaf("mi", letter) for letter in letters])

    def summation(self, letters: str) -> Rope:
        return box("munder", leaf("mo", "∑"), single(self.indices(letters)), tall=True)

    def limits(self, sign: Rope, low: Rope, high: Rope) -> Rope:
        return box("munderover", single(sign), single(low), single(high), tall=True)

    def applied(self, name: str, inside: Rope) -> Rope:
        return box("mrow", word(name), leaf("mo", APPLY), inside, tall=self.tall(inside))

    def typeset(self, parts: Sequence[Rope]) -> Rope:
        return TemplateReader(parts, self).read()

    def product(self, ropes: Sequence[Rope]) -> Rope:
        found: list[Rope] = []
        for k, rope in enumerate(ropes):
            if k and _numeric(rope):
                found.append(self.dot)
            elif k:
                space = {"lspace": THIN} if any(map(_long, (rope, ropes[k - 1]))) else {}
                found.append(leaf("mo", TIMES, **space))
            found.append(rope)
        return tuple(found)

    def statements(self, named: Sequence[tuple[str, Fragment]], last: Fragment) -> str:
        value = single(self.signed(last))
        if not named:
            return self.markup(value)
        rows = [(self.symbols[name], (" = ", single(self.signed(p)))) for name, p in named]
        return self.markup(equations([*rows, ("", value)]))

    def where(self, named: Sequence[tuple[str, Fragment]], last: Fragment) -> str:
        """The formula, and below it what the names in it stand for."""
        if not named:
            return self.statements(named, last)
        rows: list[tuple[Rope, Rope]] = [("", single(self.signed(last)))]
        for name, p in named:
            told = WHERE if len(rows) == 1 else ""
            rows.append(((told, self.symbols[name]), (" = ", single(self.signed(p)))))
        return self.markup(equations(rows))

    def markup(self, rope: Rope) -> Markup:
        return written(rope, self.symbols.__getitem__)


def _first(rope: Rope) -> str:
    """The first symbol of a rope."""
    return next((text for text in leaves(rope) if text and text not in BEFORE), "")


def _long(rope: Rope) -> bool:
    """Does a factor start with a word or a bar, so that it needs more space beside it?"""
    return bool(LONG.match(_first(rope)))


def _numeric(rope: Rope) -> bool:
    """Does a factor start with a number?"""
    first = _first(rope)
    return first.startswith("<mn>") if isinstance(first, Markup) else first[:1].isdecimal()


def equations(rows: Sequence[tuple[Rope, Rope]]) -> Box:
    """Lines, what stands left of the equality signs aligned to the right."""
    return table(rows, RIGHT, LEFT, displaystyle="true")


def _aligned(tree: Any, texts: Sequence[str]) -> Markup:
    style = MathML()
    pairs = zip(places(tree), texts, strict=True)
    return style.markup(equations([(_operator(at, style), Markup(text)) for at, text in pairs]))


def _operator(place: Place, style: MathML) -> Rope:
    """The derivative by variables, behind the place in a nest."""
    path = [str(k) if isinstance(k, int) else symbol(str(k)) for k in place.path]
    found: list[Rope] = [style.fenced("[", join_ropes(",", path), "]")] if path else []
    if place.wrt:
        mark = word("∂")
        above = style.superscript(mark, str(len(place.wrt))) if len(place.wrt) > 1 else mark
        below = [(mark, symbol(name)) for name in place.wrt]
        found.append(style.over(above, join_ropes(leaf("mspace", "", width=THIN), below)))
    return (tuple(found), leaf("mo", ":", rspace="1em"))


@of_nests(_aligned)
def _content(e: Expr, where: bool = False) -> str:
    return typeset(chosen(e), MathML(), where)


def to_mathml(e: Any, display: str = "block", where: bool = False) -> str:
    """The expression as presentation MathML, which browsers set without a library.

    Parameters
    ----------
    e : Expr, or a nested tuple, list or dict of Expr
        Parts of a nest stand below each other, each with its variables or its place.
    display : {"block", "inline"}
        Is the formula a paragraph of its own, or a part of a line?
    where : bool
        Name what is repeated, and tell below the formula what names stand for, where that is
        shorter.

    Returns
    -------
    str
        One element ``math`` of MathML Core. Its ``alttext`` is the expression in the matrix
        language, which screen readers and text browsers take. Names are escaped.

    Raises
    ------
    ValueError
        For another display.

    Examples
    --------
    >>> import tcalc as tc
    >>> A, x = tc.var("A", ("n", "n")), tc.var("x", ("n",))
    >>> print(tc.to_mathml(A @ x, display="inline"))
    <math display="inline" alttext="A*x"><mrow><mi>A</mi><mo>⁢</mo><mi>x</mi></mrow></math>
    """
    if display not in DISPLAYS:
        raise ValueError(f"display is {' or '.join(DISPLAYS)}, not {display!r:.60}")
    content = Markup(_content(e, where=where))
    alternative = to_text(e, where=where).replace("\n", "; ")
    head = attributes({"display": display, "alttext": alternative})
    return f"<math{head}>{content}</math>"
