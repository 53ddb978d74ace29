"""What the languages of whole arrays share: names, calls, numbers in brackets, einsum forms.

An einsum form is ``#('ij,j->i', A, x)``; what stands behind the operands of a call, and behind
``name=``, are its parameters.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np

from ...graph.extents import Extent
from ...graph.variables import check_extent
from ...support.errors import ShapeError
from ...support.limits import spend
from ...support.records import NamedTuple, record
from .lexer import Token
from .numbers import NUMBERS
from .parser import BRACKETS, OR, Grammar, Open, Parser
from .tree import Node, Positions, SyntaxTree

#: Operators of sums.
ADDING = ("+", "-")


def _adds(node: Node) -> bool:
    return node.kind == "infix" and node.name in ADDING


class EinsumForm(NamedTuple):
    """The letters of each operand and of the result; extents of letters that no operand has."""

    words: tuple[str, ...]
    out: str
    sizes: Mapping[str, Extent]

    @property
    def text(self) -> str:
        return f"{','.join(self.words)}->{self.out}"


@record(frozen=True)
class ArrayTree(SyntaxTree):
    """A tree with nodes of kind `einsum`, and calls with parameters: both by their positions."""

    forms: Mapping[int, EinsumForm]
    parameters: Mapping[int, tuple[str, ...]]

    @property
    def continued(self) -> set[int]:
        """The sums that are the first operand of another one without parentheses around them."""
        firsts = [node.args[0] for node in self.nodes if _adds(node)]
        inner = [(place, self.nodes[place]) for place in firsts if _adds(self.nodes[place])]
        return {place for place, node in inner if node.start == self.nodes[node.args[0]].start}

    def numbers(self, node: Node) -> np.ndarray:
        """The array of a node of kind `array`, of integers where all are written as such.

        ParseError where its text is none.
        """
        try:
            text = node.name.replace("nan", "NaN").replace("inf", "Infinity")
            found = np.asarray(json.loads(text))
            whole = found.dtype == np.int64 or not found.size
            return found.astype(np.int64 if whole else np.float64)
        except (ValueError, TypeError, RecursionError):
            message = "expected numbers in nested brackets of equal lengths, such as [[1, 2]]"
            raise self.error(message, node.at) from None


class ArrayParser(Parser):
    """Nodes are number, array, name, use (of a statement), call, einsum, prefix and infix.

    Attributes
    ----------
    used : set of str
        The names that were read before a statement gave them a value.
    forms, parameters : dict
        The einsum forms, and the texts of parameters of calls, by the positions of their nodes.
    """

    def __init__(self, text: str, grammar: Grammar) -> None:
        super().__init__(text, grammar)
        self.used: set[str] = set()
        self.forms: dict[int, EinsumForm] = {}
        self.parameters: dict[int, tuple[str, ...]] = {}
        self.behind: list[list[str]] = []  # parameters of the calls that are open
        self.quoted: list[tuple[Token, dict[str, Extent]]] = []  # forms that are open
        self.operands |= {"#": self.form, "[": self.numbers}

    def tree(self) -> ArrayTree:
        """The tree of the text. ParseError where it is not in the language."""
        self.run()
        return ArrayTree(self.text, self.nodes, self.statements, self.forms, self.parameters)

    def argued(self) -> bool:
        """Behind the bracket or a comma of a call: does an operand follow?"""
        return True

    # --- names ------------------------------------------------------------------------------------

    def left_side(self, name: str) -> None:
        if name in NUMBERS:
            raise self.fail(f"`{name}` is a number already; choose another name")
        super().left_side(name)

    def defined(self, name: str, at: int) -> Positions:
        if name in self.used:
            message = f"`{name}` is used before it is given a value here; choose another name"
            raise self.fail(message, at)
        return ()

    def named(self) -> None:
        token = self.token
        root = self.assigned.get(token.text)
        if root is None:
            self.used.add(token.text)
        kind, args = ("name", ()) if root is None else ("use", (root,))
        self.push(kind, token.text, args, (token.start, token.start, token.end))

    # --- functions --------------------------------------------------------------------------------

    def applied(self) -> bool:
        token = self.token
        self.place += 1
        self.open("call", token.text, token.start)
        self.behind.append([])
        self.place += 1
        return self.argued()

    def rest(self) -> bool:
        """Read all that is left of a call as parameters."""
        while not self.at(")"):
            self.behind[-1].append(self.verbatim())
            if not self.at(","):
                break
            self.place += 1
        return self.close()

    def wanted(self, bracket: Open) -> str:
        if bracket.kind == "einsum":
            return "an operand of #(…), or the extent of a letter, such as i=n"
        empty = bracket.kind == "call" and self.token.text == ")"
        return f"an argument of {bracket.name}" if empty else ""

    def comma(self) -> bool:
        self.reduce(OR)
        if not self.stack or self.stack[-1].kind not in ("call", "einsum"):
            wanted = "expected )" if self.stack else "expected an operator or the end"
            raise self.fail(f"a comma stands between arguments of a function only; {wanted}")
        self.place += 1
        return self.argued() if self.stack[-1].kind == "call" else self.extents()

    def closed(self, bracket: Open, args: Positions) -> None:
        if bracket.kind == "call":
            if parameters := self.behind.pop():
                self.parameters[len(self.nodes)] = tuple(parameters)
            self.push("call", bracket.name, args, (bracket.at, bracket.at, self.token.end))
            return
        quoted, sizes = self.quoted.pop()
        self.forms[len(self.nodes)] = self.fitted(quoted, sizes, len(args))
        self.push("einsum", "#", args, (bracket.at, bracket.at, self.token.end))

    def numbers(self) -> bool:
        """An array as numbers in nested brackets, which is read as a whole."""
        start, depth = self.place, 0
        while True:
            if self.token.kind == "end":
                raise self.fail("this [ is never closed; expected ]", self.tokens[start].start)
            depth += self.at("[") - self.at("]")
            self.place += 1
            if not depth:
                break
        first, end = self.tokens[start].start, self.tokens[self.place - 1].end
        self.push("array", self.text[first:end], (), (first, first, end))
        self.complete()
        return False

    # --- einsum forms -----------------------------------------------------------------------------

    def form(self) -> bool:
        """Open an einsum form and read its letters; does an operand follow?"""
        at = self.token.start
        if self.tokens[min(self.place + 2, len(self.tokens) - 1)].kind != "quoted":
            raise self.grammar.lexicon.misused("#", self.text, at)
        self.place += 1
        self.open("einsum", "#", at)
        self.quoted.append((self.tokens[self.place + 1], {}))
        self.place += 2
        if self.at(")") or self.token.kind == "end":
            return self.close()
        if not self.at(","):
            raise self.fail(f"expected ) or , behind the letters, found {self.found()}")
        self.place += 1
        return self.extents()

    def extents(self) -> bool:
        """Read what extents are stated behind a comma of a form; does an operand follow?"""
        sizes = self.quoted[-1][1]
        while self.token.kind == "name" and self.at("=", 1):
            letter, at = self.token.text, self.token.start
            if letter in sizes:
                raise self.fail(f"the extent of {letter} is stated already")
            self.place += 2
            sizes[letter] = self.extent(at)
            if not self.at(","):
                return self.close()
            self.place += 1
        if sizes:
            raise self.fail("the extents of letters stand behind all operands of #(…)")
        return True

    def extent(self, at: int) -> Extent:
        """The extent that stands up to the next comma, or to the end of the form."""
        text = self.verbatim()
        try:
            return check_extent(int(text) if text.isdecimal() and len(text) < 16 else text, "#")
        except (ShapeError, ValueError):
            message = "the extent of a letter is an int, a dimension or an affine form in these"
            raise self.fail(f"{message}, not `{text}`", at) from None

    def verbatim(self, brackets: bool = True) -> str:
        """The text up to the comma or the bracket that ends an argument; or up to one in it."""
        first, depth = self.place, 0
        while self.token.kind != "end" and (depth or self.token.text not in (",", ")", "]")):
            if self.token.text in BRACKETS and not brackets:
                break
            depth += (self.token.text in BRACKETS) - (self.token.text in BRACKETS.values())
            self.place += 1
        spend("steps", self.place - first)
        return self.text[self.tokens[first].start : self.tokens[self.place].start].strip()

    def fitted(self, quoted: Token, sizes: dict[str, Extent], count: int) -> EinsumForm:
        """The form that letters spell for so many operands. ParseError where they spell none."""
        left, right = self.letters(quoted)
        words = tuple(left.split(",")) if left or count else ()
        if len(words) != count:
            operands = "1 operand" if count == 1 else f"{count} operands"
            message = f"these letters are for {len(words)}, and #(…) has {operands}"
            raise self.fail(message, quoted.start)
        inside = {letter for word in words for letter in word}
        for letter in right:
            if letter not in inside and letter not in sizes:
                message = f"no operand has index {letter}: state its extent behind the operands"
                raise self.fail(f"{message}, such as {letter}=n", quoted.start)
        for letter in sizes:
            if letter not in inside and letter not in right:
                raise self.fail(f"`{letter}` is none of the letters '{quoted.text}'", quoted.start)
        return EinsumForm(words, right, sizes)

    def letters(self, quoted: Token) -> tuple[str, str]:
        """The letters on both sides of the arrow, without blanks."""
        left, arrow, right = quoted.text.partition("->")
        for k, c in enumerate(quoted.text):
            part = left if k < len(left) else arrow if k < len(left + arrow) else right
            if part is not arrow and not (
                c.isalpha() or c.isspace() or (c == "," and part is left)
            ):
                message = "indices are letters, with commas between operands and one ->"
                raise self.fail(f"{message}, such as 'ij,jk->ik'", quoted.start + 1 + k)
        if not arrow:
            message = "the letters of the result are missing; expected ->, such as 'ij,jk->ik'"
            raise self.fail(message, quoted.end - 1)
        return "".join(left.split()), "".join(right.split())
