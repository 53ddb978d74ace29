"""The index language: its words and grammar, and the tree that its texts are parsed to.

Nodes are number, name, index, access, call, binder, guard, prefix or infix. Their `indices` are
positions in the list of indices or, of an access to the result of a call, the position of the call.
"""

from __future__ import annotations

from dataclasses import field

from ...support.records import record
from ..reading.foreign import TRANSPOSED
from ..reading.lexer import Lexicon
from ..reading.parser import AND, BRACKETS, COMPARISON, OR, POWER, PRODUCT, SUM, Grammar
from ..reading.tree import Node, SyntaxTree

COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
#: The precedence of this language's operators between two operands.
LEVELS = {
    "|": OR,
    "&": AND,
    **dict.fromkeys(COMPARISONS, COMPARISON),
    **dict.fromkeys(("+", "-"), SUM),
    **dict.fromkeys(("*", "/"), PRODUCT),
    "^": POWER,
}

#: Reductions, which bind indices.
BINDERS = ("sum", "prod", "max", "min", "logsumexp", "norm2")
#: Reductions that are also functions of several values.
FUNCTIONS_TOO = ("max", "min")

LEXICON = Lexicon(
    operators=(*LEVELS, "~", "(", ")", "[", "]", ",", ";", "=", ".."),
    comments="#",
    synonyms={"−": "-", "·": "*", "≤": "<=", "≥": ">=", "≠": "!=", "**": "^"},
    hints={
        "//": "write floor(a/b)",
        "@": "write sum[k](a[i,k]*b[k,j])",
        ".*": "everything is entry by entry; write *",
        "./": "everything is entry by entry; write /",
        ".^": "everything is entry by entry; write ^",
        **dict.fromkeys((*"'ᵀ", *TRANSPOSED), "a transpose is a[j,i]"),
        "×": "a product is *",
        "&&": "write &",
        "||": "write |, and norm(x) for a norm",
        "!": "write ~",
        "|": "write abs(x[i])",
        "and": "write &",
        "or": "write |",
        "not": "write ~",
        "∑": "write sum[i](…)",
        "∏": "write prod[i](…)",
        ":": "a range is 0..n - 1",
        ":=": "a statement is name[indices] = expression",
        "{": "subscripts stand in brackets, as in x[i], what belongs together in parentheses",
    },
)

GRAMMAR = Grammar(
    LEXICON,
    LEVELS,
    signs=("+", "-", "~"),
    whole="name[indices] = expression",
    statement="name[indices] = expression",
    chained="join them by &",
    bracket="bracket",
    brackets="brackets",
    closing=BRACKETS,
)


@record()
class Index:
    """An index where it is bound; `low` and `high` are positions of its bounds' nodes, -1 for none.

    `uses` are the accesses, with the axis, in which the index alone is a subscript.
    """

    name: str
    at: int
    low: int = -1
    high: int = -1
    uses: list[tuple[int, int]] = field(default_factory=list)


@record(frozen=True)
class IndexTree(SyntaxTree):
    """A tree, and the indices that are bound in it."""

    indices: list[Index]

    def named_in_bounds(self) -> set[str]:
        """The names in bounds that are no index and have no value: those of dimensions."""
        waiting = [end for index in self.indices for end in (index.low, index.high) if end >= 0]
        found: set[str] = set()
        while waiting:
            node = self.nodes[waiting.pop()]
            found.update([node.name] if node.kind == "name" else [])
            waiting += node.args
        found -= {statement.name for statement in self.statements}
        return found - {index.name for index in self.indices}

    def in_subscript(self, node: Node) -> bool:
        """Is a node in a subscript of an array?"""
        return any(
            other.kind == "access" and other.start < node.start and node.end < other.end
            for other in self.nodes
        )

    def source(self, place: int) -> str:
        """A node as the user wrote it; an access without parentheses around it."""
        text = super().source(place)
        while self.nodes[place].kind == "access" and text.startswith("("):
            text = text[1:-1].strip()
        return text


@record()
class Header:
    """The indices of a binder or, without a name, of a statement; `last` is being read."""

    name: str
    at: int
    indices: list[int] = field(default_factory=list)
    last: int = -1
