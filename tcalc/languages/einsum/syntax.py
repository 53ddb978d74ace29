"""The einsum language, first phase: text to a syntax tree with offsets.

Nodes are those of `reading.calls`, and array (numbers in brackets). What stands behind the operands
of a row's call, and behind ``name=``, are its parameters.
"""

from __future__ import annotations

from ..reading.calls import ArrayParser, ArrayTree
from ..reading.foreign import TRANSPOSED
from ..reading.lexer import Lexicon
from ..reading.parser import COMPARISON, POWER, PRODUCT, SUM, Grammar
from ..reading.rows import row_named

#: The precedence of this language's operators between two operands.
LEVELS = {
    **dict.fromkeys(("<", "<=", ">", ">=", "==", "!="), COMPARISON),
    **dict.fromkeys(("+", "-"), SUM),
    **dict.fromkeys(("*", "/", "//", "@", "@@"), PRODUCT),
    "^": POWER,
}

#: Reductions that are also functions of several operands.
FUNCTIONS_TOO = ("max", "min")

LEXICON = Lexicon(
    operators=(*LEVELS, "#", "(", ")", "[", "]", "|", ",", ";", "="),
    comments="",
    synonyms={"−": "-", "·": "*", "≤": "<=", "≥": ">=", "≠": "!=", "**": "^"},
    hints={
        ".*": "everything is entry by entry; write *",
        "./": "everything is entry by entry; write /",
        ".^": "everything is entry by entry; write ^",
        "\\": "write #('ij,j->i', inv(A), b)",
        **dict.fromkeys((*"'ᵀ", *TRANSPOSED), "a transpose is #('ij->ji', A)"),
        "∑": "write sum(x)",
        "×": "a product of entries is *",
        "||": "the magnitude of entries is |a|, a norm is norm2(a)",
        "&": "write logical_and(a, b)",
        "!": "write logical_not(a)",
        "~": "write logical_not(a)",
        "#": "a product over indices is #('ij,jk->ik', A, B)",
    },
)

GRAMMAR = Grammar(
    LEXICON,
    LEVELS,
    signs=("+", "-"),
    whole="an expression",
    statement="name = expression",
    chained="multiply them",
    bracket="parenthesis",
    brackets="parentheses",
    closing={"(": ")", "[": "]", "|": "|"},
)


def einsum_syntax_tree(text: str) -> ArrayTree:
    """The syntax tree of a text of the einsum language. ParseError where it is none."""
    return _EinsumParser(text).tree()


class _EinsumParser(ArrayParser):
    def __init__(self, text: str) -> None:
        super().__init__(text, GRAMMAR)
        self.operands["|"] = self.magnitude

    def magnitude(self) -> bool:
        """The first bar of |a|: one where an operand is expected opens, others close."""
        self.open("call", "abs", self.token.start)
        self.behind.append([])
        self.place += 1
        return True

    def applied(self) -> bool:
        if self.at("[", 1):
            message = "entries are taken by the index language"
            raise self.fail(message, self.tokens[self.place + 1].start)
        return super().applied()

    def argued(self) -> bool:
        call = self.stack[-1]
        row = row_named(call.name)
        known = row is not None and row.parameters and call.name not in FUNCTIONS_TOO
        count = len(row.op.core) if row is not None and known else len(self.tokens)
        count = 0 if call.name == "extent" else count
        given = len(self.values) - call.base
        if given < count and not (self.token.kind == "name" and self.at("=", 1)):
            return True
        return self.rest()
