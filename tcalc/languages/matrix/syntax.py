"""The matrix language, first phase: text to a syntax tree with offsets.

Nodes are those of `reading.calls`, and size, literal, index and postfix.
"""

from __future__ import annotations

import re
from typing import Any

from ...graph.extents import affine_extent
from ...support.errors import ParseError
from ..reading.calls import ArrayParser, ArrayTree
from ..reading.foreign import TRANSPOSED
from ..reading.lexer import WORDS, Lexicon, excerpt, literal
from ..reading.parser import BRACKETS, COMPARISON, OR, POWER, PRODUCT, SUM, Grammar, Open
from ..reading.tree import Node, Positions, SyntaxTree
from ..reading.where import definitions_first
from .functions import FRACTIONS, signature_of
from .spellings import called

#: The precedence of this language's operators between two operands.
LEVELS = {
    **dict.fromkeys(("<", "<=", ">", ">=", "==", "!="), COMPARISON),
    **dict.fromkeys(("+", "-"), SUM),
    **dict.fromkeys(("*", ".*", "/", "./", "\\", "⊗"), PRODUCT),
    **dict.fromkeys(("^", ".^"), POWER),
}
TRANSPOSES = ("'", ".'")
#: Exponents in superscript, which bind as ^ does.
SUPERSCRIPTS = {"²": "2", "³": "3", "⁻¹": "-1"}

#: A literal argument: a whole number, a word, or what is quoted; and an index that is no operand.
FRACTION = re.compile(r"[+-]?[0-9]{1,15}\.[0-9]{1,15}")
LITERAL = re.compile(rf"[+-]?(?:[0-9]{{1,15}}|{'|'.join(WORDS)})|'[a-z]*'|\"[a-z]*\"")
KEY = re.compile(r"[+-]?[0-9]{1,15}|(?:[+-]?[0-9]{1,15})?(?: *: *(?:[+-]?[0-9]{1,15})?){1,2}")

LEXICON = Lexicon(
    operators=(*LEVELS, *TRANSPOSES, *SUPERSCRIPTS, *'()[],;=#:"', "//"),
    comments="#%",
    synonyms={"⊙": ".*", "⊘": "./", "·": "*", "−": "-", "ᵀ": "'"},
    hints={
        "**": "a power of entries is .^, of a scalar or a square matrix ^",
        "//": "write floor(a ./ b)",
        "@": "a product of matrices and vectors is *",
        "&&": "write logical_and(a, b)",
        "||": "write norm(a) for a norm, and logical_or(a, b) for one or the other",
        "&": "write logical_and(a, b)",
        "|": "write logical_or(a, b), and abs(a) for a magnitude",
        "~=": "write !=",
        "~": "write logical_not(a)",
        "!": "write logical_not(a)",
        **dict.fromkeys(TRANSPOSED, "a transpose is '"),
        ":": "slices stand in brackets and count from 0: A[0, :]",
        "×": "a product of matrices and vectors is *, of entries .*",
        "≤": "write <=",
        "≥": "write >=",
        "≠": "write !=",
        "∑": "write sum(x)",
    },
)

GRAMMAR = Grammar(
    LEXICON,
    LEVELS,
    signs=("+", "-"),
    whole="an expression",
    statement="name = expression",
    chained="nest where(…) for each",
    bracket="parenthesis",
    brackets="parentheses",
    closing={"(": ")", "[": "]"},
)


def matrix_syntax_tree(text: str) -> ArrayTree:
    """The syntax tree of a text of the matrix language. ParseError where it is none."""
    return _MatrixParser(text).tree()


def factor_source(tree: SyntaxTree, place: int) -> str:
    """A node as written, in parentheses where an operator behind it would bind to a part only."""
    node = tree.nodes[place]
    shown = node.name if node.kind == "number" else tree.source(place)
    enclosed = tree.text[node.start] == "(" and tree.text[node.end - 1] == ")"
    return f"({shown})" if node.kind in ("infix", "prefix") and not enclosed else shown


class _MatrixParser(ArrayParser):
    def __init__(self, text: str) -> None:
        super().__init__(text, GRAMMAR)
        self.tokens = definitions_first(self.tokens)
        self.operators["["] = self.indexed
        self.operators |= dict.fromkeys(SUPERSCRIPTS, self.superscript)
        self.operators |= dict.fromkeys(TRANSPOSES, self.transposed)

    def juxtaposed(self) -> ParseError:
        node, power = self.nodes[self.values[-1]], ""
        if node.kind == "index" and self.at("(") and self.is_function(node.args[0]):
            return self.binds(node.args[0])
        if node.kind == "infix" and node.name in ("^", ".^"):
            node, power = self.nodes[node.args[0]], self.nodes[node.args[1]].name
        if node.kind != "name" or signature_of(node.name) is None:
            return super().juxtaposed()
        first = self.token
        if self.at("("):
            self.place += 1
            found = self.verbatim()
        else:
            found = excerpt(self.text, first.start, first.end)
        written = called(node.name, power, found)
        return self.fail(
            f"the argument of a function is in parentheses: write {written}", node.start
        )

    def misplaced(self) -> ParseError:
        top = self.stack[-1] if self.stack else None
        if top and top.kind == "index" and self.is_function(self.values[top.base]):
            return self.binds(self.values[top.base])
        return super().misplaced()

    def is_function(self, place: int) -> bool:
        """Is this the name of a function that stands without arguments?"""
        return self.nodes[place].kind == "name" and signature_of(self.nodes[place].name) is not None

    def binds(self, place: int) -> ParseError:
        """The error for a function with indices behind it."""
        name, at = self.nodes[place].name, self.nodes[place].start
        return self.fail(f"{name}[…](…) is of the index language: read by parse_index", at)

    # --- powers and transposes --------------------------------------------------------------------

    def superscript(self) -> bool:
        token = self.token
        self.unchained()
        word, at = SUPERSCRIPTS[token.text], (token.start, token.start, token.end)
        self.push("number", word.lstrip("-"), (), at)
        if word.startswith("-"):
            self.push("prefix", "-", (self.values.pop(),), at)
        exponent, base = self.values.pop(), self.values.pop()
        span = (token.start, self.nodes[base].start, token.end)
        self.push("infix", "^", (base, exponent), span)
        self.powered = True
        self.place += 1
        return False

    def transposed(self) -> bool:
        token, operand = self.token, self.values.pop()
        span = (token.start, self.nodes[operand].start, token.end)
        self.push("postfix", token.text, (operand,), span)
        self.powered = False
        self.place += 1
        return False

    # --- functions --------------------------------------------------------------------------------

    def applied(self) -> bool:
        if not self.at("[", 1):
            return super().applied()
        self.named()
        self.place += 1
        self.complete()
        return False

    def argued(self) -> bool:
        call = self.stack[-1]
        if self.token.kind == "name" and self.at("=", 1):
            return self.rest()
        found, given = signature_of(call.name), len(self.values) - call.base
        if found is None or self.at(")"):
            return True
        if found.open and given >= found.least:
            return self.rest()
        if given >= min(found.sizes, found.literals):
            return self.written("size" if given >= found.sizes else "literal", call.name)
        return True

    def written(self, kind: str, name: str) -> bool:
        """An argument that is read as it is written: an extent, or a literal."""
        start = self.token.start
        text = self.verbatim()
        if kind == "size" and not _is_extent(text):
            message = f"a size of {name} is an int or the name of a dimension"
            raise self.fail(message, start)
        fits = LITERAL.fullmatch(text) or (name in FRACTIONS and FRACTION.fullmatch(text))
        if kind == "literal" and not fits:
            message = f"the second and third argument of {name} are whole numbers"
            raise self.fail(f"{message} or one of {', '.join(WORDS)}", start)
        self.push(kind, text, (), (start, start, start + len(text)))
        if not self.at(","):
            return self.close()
        self.place += 1
        return self.argued()

    # --- indices ----------------------------------------------------------------------------------

    def indexed(self) -> bool:
        """The bracket behind an operand: its keys are slices, whole numbers, or operands."""
        self.open("index", "[", self.token.start, operands_before=1)
        self.behind.append([])
        self.place += 1
        return self.key()

    def key(self) -> bool:
        """Read a key that is no operand; does an operand follow?"""
        first, text = self.place, self.verbatim(brackets=False)
        if self.token.text in BRACKETS or not KEY.fullmatch(text):
            self.place = first
            self.behind[-1].append("")
            return True
        self.behind[-1].append(text)
        if not self.at(","):
            return self.close()
        self.place += 1
        return self.key()

    def comma(self) -> bool:
        self.reduce(OR)
        if not self.stack or self.stack[-1].kind != "index":
            return super().comma()
        self.place += 1
        return self.key()

    def closed(self, bracket: Open, args: Positions) -> None:
        if bracket.kind != "index":
            super().closed(bracket, args)
            return
        self.parameters[len(self.nodes)] = tuple(self.behind.pop())
        self.push("index", "[", args, (bracket.at, self.nodes[args[0]].start, self.token.end))


def argument(node: Node) -> Any:
    """The value of an argument that is no operand: an extent or a literal; None for operands."""
    if node.kind == "size":
        return affine_extent(node.name)
    return literal(node.name) if node.kind == "literal" else None


def _is_extent(text: str) -> bool:
    """Is this an int, a dimension, or an affine form in these?"""
    if text in WORDS or (text.isdecimal() and len(text) > 15):
        return False
    try:
        affine_extent(text)
    except ValueError:
        return False
    return True
