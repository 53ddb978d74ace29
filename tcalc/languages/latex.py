r"""LaTeX: matrix notation, and index notation with \delta for unit tensors where that has none.

Only commands that KaTeX, MathJax and matplotlib's mathtext all know.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ..forms.choose import chosen
from ..graph.extents import Extent
from ..graph.nodes import Expr
from ..graph.trees import Place, places
from .index.formula import typeset
from .writing.nests import of_nests
from .writing.notation import Fragment, Rope, join_ropes, rope_text
from .writing.symbols import GREEK, words_of
from .writing.typeset import Typeset
from .writing.where import is_wide

NAME = re.compile(r"[^\W\d]\w*")
WORD = re.compile(r"\\(?!left|frac|sqrt|mathbf)[A-Za-z]+(?:\\left)?[({]")
TALL = re.compile(r"\\(frac|sum|prod|begin)")
PARENTHESIS = re.compile(r"((?<!\\left)\(|(?<!\\right)\))")
GROWTH = re.compile(r"\\(left|right)(?![A-Za-z])")


def symbol(name: str) -> str:
    """A name in LaTeX: digits at its end and parts behind an underscore are subscripts."""
    shown = [_word(p) for p in words_of(name)]
    return shown[0] if len(shown) == 1 else f"{shown[0]}_{{{','.join(shown[1:])}}}"


def _word(word: str) -> str:
    if word in GREEK:
        return f"\\{word}"
    plain = word.replace("_", r"\_")
    return plain if len(word) == 1 or word.isdigit() else f"\\mathrm{{{plain}}}"


def exact_symbol(name: str) -> str:
    """A name in LaTeX as it is: no two names look alike."""
    return f"\\mathrm{{{name.replace('_', chr(92) + '_')}}}"


def leading(rope: Rope) -> str:
    """The first part of a rope."""
    while not isinstance(rope, str):
        rope = next(part for part in rope if part)
    return rope


def spaced(rope: Rope) -> bool:
    """Does a factor start with a word, so that it needs more space beside it?"""
    return bool(WORD.match(leading(rope)))


class Latex(Typeset):
    """LaTeX without environments, unless statements need one."""

    formed = 110
    pointwise_times = r" \odot "
    pointwise_over = r" \oslash "
    maps_to = r" \mapsto "
    dot = r" \cdot "
    times = r" \times "
    entrywise = r"\odot "
    top = r"\top"
    one = r"\mathbf{1}"
    infinity = r"\infty"

    symbol = staticmethod(symbol)
    exact_symbol = staticmethod(exact_symbol)

    def high(self, rope: Rope) -> bool | None:
        return bool(TALL.search(rope)) if isinstance(rope, str) else None

    def superscript(self, base: Rope, above: Rope) -> Rope:
        return (base, "^{", above, "}")

    def extent(self, extent: Extent) -> Rope:
        return NAME.sub(lambda found: self.symbols[found[0]], str(extent)).replace("*", " ")

    def subscript(self, base: Rope, below: Rope) -> Rope:
        marked = isinstance(base, str) and "_" in base
        return ("{" if marked else "", base, "}_{" if marked else "_{", below, "}")

    def over(self, above: Rope, below: Rope) -> Rope:
        return (r"\frac{", above, "}{", below, "}")

    def fenced(self, left: str, rope: Rope, right: str) -> Rope:
        if not self.tall(rope):
            return (left, rope, right)
        return (rf"\left{left}", rope, rf"\right{right}")

    def words(self, text: str) -> Rope:
        return rf"\mathrm{{{text}}}".replace(" ", r"\,")

    def keyword(self, text: str) -> Rope:
        return rf" \text{{ {text} }} "

    def beside(self, ropes: Sequence[Rope]) -> Rope:
        return join_ropes(" ", ropes)

    def indices(self, letters: str) -> Rope:
        return letters

    def summation(self, letters: str) -> Rope:
        return rf"\sum_{{{letters}}}"

    def limits(self, sign: Rope, low: Rope, high: Rope) -> Rope:
        return (sign, "_{", low, "}^{", high, "}")

    def applied(self, name: str, inside: Rope) -> Rope:
        plain = name.replace("_", r"\_")
        return (rf"\operatorname{{{plain}}}", inside)

    def typeset(self, parts: Sequence[Rope]) -> Rope:
        """The template, in which fences around what is tall grow."""
        if not any(map(self.tall, parts)):
            return tuple([part if k % 2 else GROWTH.sub("", part) for k, part in enumerate(parts)])
        texts = [part if k % 2 else PARENTHESIS.split(part) for k, part in enumerate(parts)]
        opened: list[tuple[list[str], int]] = []
        high = 0  # so many of the opened ones, from the first on, hold what is tall
        for k, part in enumerate(texts):
            if k % 2:
                high = len(opened) if self.tall(part) else high
                continue
            for j in range(1, len(part), 2):
                if part[j] == "(":
                    opened.append((part, j))
                elif opened:
                    text, start = opened.pop()
                    if len(opened) < high:
                        text[start], part[j] = r"\left(", r"\right)"
                    high = min(high, len(opened))
        return tuple([part if k % 2 else "".join(part) for k, part in enumerate(texts)])

    def product(self, ropes: Sequence[Rope]) -> Rope:
        found: list[Rope] = []
        for k, rope in enumerate(ropes):
            if k and leading(rope)[:1].isdigit():
                found.append(self.dot)
            elif k:
                found.append(r" \, " if spaced(rope) or spaced(ropes[k - 1]) else " ")
            found.append(rope)
        return tuple(found)

    def statements(self, named: Sequence[tuple[str, Fragment]], last: Fragment) -> str:
        if not named:
            return rope_text(self.signed(last))
        lines: list[Rope] = [
            (self.symbols[name], " &= ", self.signed(p), r" \\ ") for name, p in named
        ]
        return rope_text(
            (r"\begin{aligned} ", tuple(lines), "& ", self.signed(last), r" \end{aligned}")
        )

    def where(self, named: Sequence[tuple[str, Fragment]], last: Fragment) -> str:
        if not named:
            return self.statements(named, last)
        told = [(self.symbols[name], " = ", self.signed(p)) for name, p in named]
        text = (self.signed(last), r" \quad\text{where } ", join_ropes(r",\; ", told))
        return rope_text(text)


class PageLatex(Latex):
    """LaTeX for a page that may be narrow: what names stand for is told below the formula."""

    def where(self, named: Sequence[tuple[str, Fragment]], last: Fragment) -> str:
        if not named:
            return self.statements(named, last)
        told = [(self.symbols[name], " &= ", self.signed(p)) for name, p in named]
        lines = join_ropes(
            r" \\ ", [("& ", self.signed(last)), (r"\text{where } ", told[0]), *told[1:]]
        )
        return rope_text((r"\begin{aligned} ", lines, r" \end{aligned}"))


def _aligned(tree: Any, texts: Sequence[str]) -> str:
    pairs = zip(places(tree), texts, strict=True)
    rows = r" \\ ".join([rf"{_operator(at)}\colon\quad & {text}" for at, text in pairs])
    return rf"\begin{{aligned}} {rows} \end{{aligned}}"


def _operator(place: Place) -> str:
    """The derivative by variables, behind the place in a nest."""
    path = ",".join([str(k) if isinstance(k, int) else symbol(str(k)) for k in place.path])
    order = f"^{{{len(place.wrt)}}}" if len(place.wrt) > 1 else ""
    below = r" \, ".join([rf"\partial {symbol(name)}" for name in place.wrt])
    by = rf"\frac{{\partial{order}}}{{{below}}}" if place.wrt else ""
    return (rf"\left[{path}\right]" if path else "") + by


@of_nests(_aligned)
def to_latex(e: Expr, where: bool = False) -> str:
    r"""The expression as LaTeX, without dollar signs.

    Parameters
    ----------
    e : Expr, or a nested tuple, list or dict of Expr
        Parts of a nest stand below each other, each with its variables or its place.
    where : bool
        Name what is repeated, and tell behind the formula what names stand for, where that is
        shorter.

    Returns
    -------
    str

    Examples
    --------
    >>> import tcalc as tc
    >>> A, x = tc.var("A", ("n", "n")), tc.var("x", ("n",))
    >>> print(tc.to_latex(x @ A @ x))
    x^{\top} A x
    """
    return typeset(chosen(e), Latex(), where)


@of_nests(_aligned)
def _of_page(e: Expr) -> str:
    form = chosen(e)
    return typeset(form, PageLatex(), is_wide(form))


def repr_latex(e: Expr) -> str:
    """For notebooks: with names for what is repeated where the formula is wider than a page."""
    return f"${_of_page(e)}$"
