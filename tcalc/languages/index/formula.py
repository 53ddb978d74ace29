"""Formulas in indices, typeset: texts of the index language as LaTeX and MathML.

What matrix notation could only say by unit matrices with conditions, as sums over neighbours and
convolutions, is set as it is written by hand: sums with bounds, entries with subscripts.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from ...graph.factors import indicates
from ...graph.nodes import Einsum, Expr, postorder
from ...graph.normal import bare
from ...ops.indicator import INDICATOR
from ...support.errors import ParseError, UnsupportedError
from ...support.records import NamedTuple
from ..reading.rows import row_named
from ..reading.tree import Node, Positions, SyntaxStatement
from ..writing.constants import LATEX
from ..writing.layout import FormulaLayout
from ..writing.notation import (
    ATOM,
    POINTWISE,
    POWER,
    Fragment,
    Parts,
    Rope,
    fragment_size,
    join_ropes,
)
from ..writing.style import MIRRORED, Style
from ..writing.typeset import Typeset
from ..writing.where import formula_text
from .grammar import IndexTree
from .print import to_index
from .syntax import index_syntax_tree

#: Binders that are set by a sign or a word of their own.
SIGNS = {"sum": r"\sum", "prod": r"\prod", "max": r"\max", "min": r"\min"}


def typeset(e: Expr, style: Typeset, where: bool = False) -> str:
    """The formula in matrix notation, or in indices where that had to write indicators."""
    found = _in_indices(e, style)
    return formula_text(e, style, where) if found is None else found


def legible(e: Expr) -> str:
    """The text in matrices, or in indices where that had to write indicators."""
    with suppress(UnsupportedError):
        return to_index(e) if _has_indicators(bare(e)) else str(e)
    return str(e)


def _has_indicators(e: Expr) -> bool:
    """Are they more than the whole, a bracket that matrices have too?"""
    if not isinstance(e, Expr):
        return False
    inner = e.args[0] if isinstance(e, Einsum) and len(e.args) == 1 else e
    some = not indicates(inner) and any(map(indicates, postorder([e])))
    return some and f"{INDICATOR.name}(" in FormulaLayout(Style()).text(e)


def _in_indices(e: Expr, style: Typeset) -> str | None:
    if not _has_indicators(e):
        return None
    try:
        tree = index_syntax_tree(to_index(e))
    except (UnsupportedError, ParseError):  # no words for it, or a loop, which is a text in a text
        return None
    for v in e.variables:
        style.name(v)  # before other names get symbols
    return IndexFormula(tree, style).text()


class _Terms(NamedTuple):
    """A sum, or a product: what is added, or stands above and below a line."""

    sign: str
    first: list[Fragment]
    second: list[Fragment]


class IndexFormula:
    """A text of the index language in a style of typesetting.

    Parameters
    ----------
    tree : IndexTree
        As `to_index` writes it.
    style : Typeset
    """

    def __init__(self, tree: IndexTree, style: Typeset) -> None:
        self.tree, self.style = tree, style
        self.parts: dict[int, Fragment] = {}
        self.open: dict[int, _Terms] = {}

    def text(self) -> str:
        for place, node in enumerate(self.tree.nodes):
            self.parts[place] = getattr(self, node.kind)(node, place)
        *named, last = [(s.name, self.bracketed(s)) for s in self.tree.statements]
        return self.style.statements(named, last[1])

    def bracketed(self, statement: SyntaxStatement) -> Fragment:
        """An array by its entries, with the ranges of its indices."""
        p, style = self.parts[statement.root], self.style
        if not statement.indices:
            return p
        body = style.fenced("[", style.argument(p), "]")
        return Fragment(self.ranged(body, statement.indices), POWER, p.size)

    # --- integers and ranges ---

    def ranges(self, indices: Positions) -> tuple[Rope, Rope]:
        """What stands below and above a sign or a bracket."""
        low = [(self.index_name(k), "=", self.bound(self.tree.indices[k].low)) for k in indices]
        high = [self.bound(self.tree.indices[k].high) for k in indices]
        return join_ropes(",", low), join_ropes(",", high)

    def ranged(self, base: Rope, indices: Positions) -> Rope:
        """A bracket or a word with the ranges of indices."""
        low, high = self.ranges(indices)
        return self.style.superscript(self.style.subscript(base, low), high)

    def signs(self, name: str, indices: Positions) -> Rope:
        """A sign for each index, which reaches to the right."""
        sign = self.style.typeset([SIGNS[name]])
        return tuple([(self.style.limits(sign, *self.ranges((k,))), " ") for k in indices])

    def bound(self, place: int) -> Rope:
        return self.style.signed(self.parts[place])

    def index_name(self, k: int) -> Rope:
        return self.style.symbols.pretty(self.tree.indices[k].name)

    # --- nodes, by their kinds ---

    def number(self, node: Node, place: int) -> Fragment:
        return Fragment(node.name, numeral=True)

    def name(self, node: Node, place: int) -> Fragment:
        if node.name in LATEX:
            return Fragment(self.style.numeral(node.name))
        return self.style.name(node.name)

    def index(self, node: Node, place: int) -> Fragment:
        return Fragment(self.index_name(node.indices[0]))

    def access(self, node: Node, place: int) -> Fragment:
        style = self.style
        whole = self.parts[node.indices[0]] if node.indices else style.name(node.name)
        ropes = [style.signed(self.parts[k]) for k in node.args]
        short = all(self.tree.nodes[k].kind == "index" for k in node.args)
        letters = "".join([self.tree.nodes[k].name for k in node.args])
        plain = short and len(letters) == len(ropes)
        below = style.indices(letters) if plain else join_ropes(",", ropes)
        size, flips = fragment_size([whole], 1 + len(ropes))
        return Fragment(style.subscript(style.inside(whole, ATOM), below), ATOM, size, flips)

    def call(self, node: Node, place: int) -> Fragment:
        args, found = [self.parts[k] for k in node.args], row_named(node.name)
        if found is None or not found.op.elementwise or len(args) != found.operands:
            return self.style.function(node.name, args)
        return self.style.call(found.op, [], args, [True] * len(args))

    def binder(self, node: Node, place: int) -> Fragment:
        """A reduction over indices, each with its own sign."""
        style, (body,) = self.style, [self.parts[k] for k in node.args]
        size, flips = fragment_size([body], 2 + 3 * len(node.indices))
        if node.name == "norm2":
            squared = style.superscript(style.inside(body, ATOM), "2")
            text = style.typeset([r"\sqrt{", (self.signs("sum", node.indices), squared), "}"])
            return Fragment(text, ATOM, size, flips)
        if node.name not in SIGNS:
            inside = style.fenced("(", style.argument(body), ")")
            text = (self.ranged(style.words(node.name), node.indices), inside)
            return Fragment(text, ATOM, size, flips)
        negative = body.negative and node.name == "sum"
        body = body._replace(negative=body.negative and not negative)
        text = (self.signs(node.name, node.indices), style.inside(body, POINTWISE))
        return Fragment(text, POINTWISE, size, flips, negative, joins=True)

    def guard(self, node: Node, place: int) -> Fragment:
        """Conditions in brackets, 1 where they hold."""
        held = [self.condition(k) for k in node.args]
        size, flips = fragment_size([self.parts[k] for k in node.args], 2)
        return self.style.truth(join_ropes(", ", held), size, flips)

    def condition(self, place: int) -> Rope:
        p = self.parts[place]
        return self.style.signed(p) if p.condition is None else p.condition

    def prefix(self, node: Node, place: int) -> Fragment:
        (p,) = [self.parts[k] for k in node.args]
        if node.name == "~":
            held = self.style.parenthesised(self.condition(*node.args))
            text = (self.style.typeset([r"\neg "]), held)
            return Fragment(text, POWER, *fragment_size([p], 1), condition=text)
        return p._replace(negative=p.negative ^ (node.name == "-"))

    def infix(self, node: Node, place: int) -> Fragment:
        left, right = node.args
        if node.name in "+-":
            return self.added(node.name, left, right, place)
        if node.name in "*/":
            return self.multiplied(node.name, left, right, place)
        style, a, b = self.style, self.parts[left], self.parts[right]
        size, flips = fragment_size([a, b], 1)
        if node.name == "^":
            text = style.superscript(style.inside(a, ATOM), style.signed(b))
            return Fragment(text, POWER, size, flips)
        if node.name in MIRRORED:
            return style.compared(node.name, a, b)
        sign = style.typeset([r" \wedge " if node.name == "&" else r" \vee "])
        return style.truth((self.condition(left), sign, self.condition(right)), size, flips)

    def added(self, sign: str, left: int, right: int, place: int) -> Fragment:
        """A sum, further terms of a sum on its left beside those."""
        before = self.open.get(left)
        terms = before.first if before and before.sign == "+" else [self.parts[left]]
        last = self.parts[right]
        terms = [*terms, last._replace(negative=last.negative ^ (sign == "-"))]
        self.open[place] = _Terms("+", terms, [])
        return self.style.add(terms)

    def multiplied(self, sign: str, left: int, right: int, place: int) -> Fragment:
        """A product with everything that divides below one line."""
        before = self.open.get(left)
        above, below = [self.parts[left]], list[Fragment]()
        if before is not None and before.sign == "*":
            above, below = before.first, before.second
        side = [self.parts[right]]
        above, below = (above + side, below) if sign == "*" else (above, below + side)
        self.open[place] = _Terms("*", above, below)
        negative = sum([p.negative for p in (*above, *below)]) % 2 == 1
        made = self.style.fraction(self.factors(above, True), self.factors(below), False)
        return made._replace(negative=negative)

    def factors(self, fragments: Sequence[Fragment], above: bool = False) -> Parts:
        """Numbers and dimensions first; a sum with its sign last, as it takes what is behind it."""
        plain = [p._replace(negative=False) for p in fragments]
        numbers = [p for p in plain if p.numeral]
        rest = [p for p in plain if not p.numeral]
        joined = [p for p in rest if p.joins and p.level == POINTWISE] if above else []
        body = joined[-1] if joined else None
        return Parts(numbers, [p for p in rest if p is not body], body)
