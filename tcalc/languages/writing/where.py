"""Formulas with names for what is repeated in them: ``A'*r + B'*r where r = A*x - y``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import count

from ...graph.nodes import Expr
from ...support.limits import attempted
from .layout import FormulaLayout
from .sharing import used_twice
from .style import Style

#: Names by the number of axes: scalars, vectors, matrices, other arrays.
LETTERS = ("cbadefg", "rsuvwzpqh", "MNRSKBC", "TUVW")
WIDE = 80  #: characters of what fills a line of a page
MAX_TRIED = 16
MAX_TOKENS = 2_000  #: beyond which what is repeated is told in lines of its own
MAX_STEPS = 300_000  #: beyond them those names stay that are found


class WhereLayout(FormulaLayout):
    """One expression in one style, some of its parts as names that are told behind it."""

    least = 2

    def new_name(self, node: Expr) -> str:
        taken = {*self.names.taken, *[name for name, _ in self.named]}
        return next(name for name in _names(node.ndim) if name not in taken)

    def written(self, nodes: Sequence[Expr], parts: set[int]) -> str:
        """The text with these nodes named."""
        self.shared = parts
        last = self.run(nodes)
        return self.style.where(self.named, last)


def _names(ndim: int) -> Iterator[str]:
    letters = LETTERS[min(ndim, len(LETTERS) - 1)]
    yield from letters
    for k in count(1):
        yield from [f"{letter}{k}" for letter in letters]


def repeated_parts(e: Expr) -> set[int]:
    """The nodes whose names make the text in the matrix language shorter, by their ids."""
    chosen: set[int] = set()
    attempted(partial(_choose, e, chosen), MAX_STEPS)
    return chosen


def _choose(e: Expr, chosen: set[int]) -> None:
    """Put nodes into `chosen`, one after the other."""
    layout = WhereLayout(Style())
    nodes = layout.prepared(e)
    if layout.run(nodes).size > MAX_TOKENS:
        return
    twice = used_twice(nodes)
    sizes = {id(node): layout.forms[id(node)].plain.size for node in nodes if id(node) in twice}
    waiting = sorted(sizes, key=lambda key: -sizes[key])[:MAX_TRIED]
    shortest = len(layout.written(nodes, chosen))
    while waiting:
        lengths = [len(layout.written(nodes, {*chosen, key})) for key in waiting]
        if min(lengths) >= shortest:
            break
        shortest = min(lengths)
        chosen.add(waiting.pop(lengths.index(shortest)))


def with_where(e: Expr, style: Style) -> str:
    """The text of an expression in a style, with names for what is repeated, where it is shorter.

    Names are free: no variable, dimension or index has one of them.
    """
    parts = repeated_parts(e)
    if not parts:
        return FormulaLayout(style).text(e)
    layout = WhereLayout(style)
    nodes = layout.prepared(e)
    return layout.written(nodes, parts)


def formula_text(e: Expr, style: Style, where: bool = False) -> str:
    """The text of an expression in a style."""
    return with_where(e, style) if where else FormulaLayout(style).text(e)


def is_wide(e: Expr) -> bool:
    """Does the expression's text in the matrix language need more than a line of a page?"""
    return len(FormulaLayout(Style()).text(e)) > WIDE
