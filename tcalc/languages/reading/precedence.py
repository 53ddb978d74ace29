"""What the text languages' parsers share: operator precedence with an explicit stack.

The tree is a flat list, operands before the nodes that use them, so that later phases are loops and
depth costs nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

from ...support.errors import ParseError
from .lexer import Lexicon, Token, excerpt

MAX_DEPTH = 100_000

#: How tightly operators bind.
OR, AND, COMPARISON, SUM, PRODUCT, UNARY, POWER, SIGN = range(1, 9)

#: Places in the list of nodes; three offsets.
Places = tuple[int, ...]
Span = tuple[int, int, int]


class Node(NamedTuple):
    """A node of the tree; each language says which kinds it has.

    `name` is the word or operator; `args` places in the list; `at` the offset of the word or
    operator; `start` and `end` the text of the whole, parentheses around it included. `indices` are
    what the index language has besides.
    """

    kind: str
    name: str
    args: Places
    at: int
    start: int
    end: int
    indices: Places = ()


class Open(NamedTuple):
    """What the parser has begun and not ended: an operator, a bracket or a call.

    `at` is the offset of the word, `bracket` that of the bracket.
    """

    kind: str
    name: str
    at: int
    level: int = 0
    base: int = 0
    bracket: int = 0
    indices: Places = ()


class Parser(ABC):
    """`stack` holds what is open, `values` the operands that no node has taken yet."""

    def __init__(self, text: str, lexicon: Lexicon) -> None:
        self.text = text
        self.tokens = lexicon.tokens(text)
        self.place = 0
        self.nodes: list[Node] = []
        self.stack: list[Open] = []
        self.values: list[int] = []
        self.depth = 0
        self.powered = False

    @abstractmethod
    def operand(self) -> bool:
        """Read a token where an operand is expected; True once an operand is complete."""

    @abstractmethod
    def operator(self) -> bool | None:
        """Read a token behind an operand: True where one follows, False at the end, else None."""

    @property
    def token(self) -> Token:
        return self.tokens[self.place]

    def at(self, text: str, ahead: int = 0) -> bool:
        token = self.tokens[min(self.place + ahead, len(self.tokens) - 1)]
        return token.kind == "op" and token.text == text

    def fail(self, message: str, at: int | None = None) -> ParseError:
        return ParseError(message, self.text, self.token.start if at is None else at)

    def found(self) -> str:
        names = {"end": "the end of the text", "newline": "the end of the line"}
        token = self.token
        return names.get(token.kind) or f"`{excerpt(self.text, token.start, token.end)}`"

    def follows(self) -> bool:
        """Skip what separates statements; does another one follow?"""
        while self.token.kind == "newline" or self.at(";"):
            self.place += 1
        return self.token.kind != "end"

    def unused(self, root: int) -> ParseError:
        """The error for a value without a name that is not the last."""
        message = "this value is not used: only the last statement needs no name ="
        return self.fail(message, self.nodes[root].start)

    def expression(self) -> None:
        """One expression, up to the end of its statement."""
        while True:
            while not self.operand():
                pass
            while (following := self.operator()) is None:
                pass
            if not following:
                return

    def sign(self) -> None:
        top = self.stack[-1] if self.stack else None
        if top and top.level == SIGN:
            raise self.fail("an exponent has one sign; put more in parentheses")
        level = SIGN if top and top.level == POWER else UNARY
        self.stack.append(Open("prefix", self.token.text, self.token.start, level))
        self.place += 1

    def unchained(self) -> None:
        if self.powered:
            raise self.fail("powers do not chain: write (a^b)^c or a^(b^c)")

    def complete(self) -> None:
        """An operand has ended; as an exponent, it ends its power."""
        self.powered = self.reduce(POWER)

    def reduce(self, level: int) -> bool:
        """Make nodes of the open operators that bind at least as tightly."""
        stack, values = self.stack, self.values
        reduced = False
        while stack and stack[-1].level >= level:
            top = stack.pop()
            right = values.pop()
            left = values.pop() if top.kind == "infix" else right
            start = self.nodes[left].start if top.kind == "infix" else top.at
            args = (left, right) if top.kind == "infix" else (right,)
            self.push(top.kind, top.name, args, (top.at, start, self.nodes[right].end))
            reduced = True
        return reduced

    def push(self, kind: str, name: str, args: Places, span: Span, indices: Places = ()) -> None:
        """A node; its span is the offset of its word, and those of the whole."""
        self.values.append(len(self.nodes))
        self.nodes.append(Node(kind, name, args, *span, indices))
