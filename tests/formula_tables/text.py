"""The matrix language read again, without the library: syntax trees."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

TOKEN = re.compile(
    r"\s*(?:#\('(?P<spec>[^']*)'|(?P<number>\d+(?:\.(?![*/^'])\d*)?(?:[eE][-+]?\d+)?)"
    r"|(?P<name>[A-Za-z]\w*)|(?P<sign>\.\*|\./|\.\^|\.'|<=|>=|==|!=|[-+*/\\^'(),<>=]))"
)
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


class Node(NamedTuple):
    """A node of the syntax tree: `head` is a sign, `call`, `name`, `number`, `sum` or `einsum`.

    The parts of a sum are its terms with `value` their signs, those of an einsum its operands with
    `value` the letters and the stated extents.
    """

    head: str
    value: Any = None
    parts: tuple[Node, ...] = ()

    def walk(self) -> Iterator[Node]:
        yield self
        for part in self.parts:
            yield from part.walk()

    def size(self) -> int:
        return 1 + sum(part.size() for part in self.parts)


class _Reader:
    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, str]] = []
        at, text = 0, text.rstrip()
        while at < len(text):
            found = TOKEN.match(text, at)
            if found is None:
                raise SyntaxError(f"{text[at:]!r} in {text!r}")
            assert found.lastgroup is not None
            self.tokens.append((found.lastgroup, found[found.lastgroup]))
            at = found.end()
        self.at = 0

    def peek(self, ahead: int = 0) -> tuple[str, str]:
        at = self.at + ahead
        return self.tokens[at] if at < len(self.tokens) else ("end", "")

    def take(self, *signs: str) -> str:
        kind, text = self.peek()
        if kind == "sign" and text in signs:
            self.at += 1
            return text
        return ""

    def need(self, sign: str) -> None:
        if not self.take(sign):
            raise SyntaxError(f"expected {sign!r}, not {self.peek()[1]!r}")

    def expression(self) -> Node:
        left = self.sum()
        while sign := self.take(*COMPARISONS):
            left = Node(sign, None, (left, self.sum()))
        return left

    def sum(self) -> Node:
        terms, signs = [self.product()], [1]
        while sign := self.take("+", "-"):
            signs.append(1 if sign == "+" else -1)
            terms.append(self.product())
        return terms[0] if len(terms) == 1 else Node("sum", tuple(signs), tuple(terms))

    def product(self) -> Node:
        left = self.unary()
        while sign := self.take("*", "/", ".*", "./", "\\"):
            left = Node(sign, None, (left, self.unary()))
        return left

    def unary(self) -> Node:
        return Node("-", None, (self.unary(),)) if self.take("-") else self.postfix()

    def postfix(self) -> Node:
        base = self.atom()
        while sign := self.take("^", ".^", "'", ".'"):
            if sign in ("'", ".'"):
                base = Node("'", None, (base,))
            elif self.take("-"):
                base = Node(sign, None, (base, Node("-", None, (self.atom(),))))
            else:
                base = Node(sign, None, (base, self.atom()))
        return base

    def atom(self) -> Node:
        kind, text = self.peek()
        self.at += 1
        if kind == "number":
            return Node("number", float(text))
        if kind == "spec":
            return self.einsum(text)
        if kind == "name":
            if not self.take("("):
                return Node("name", text)
            return Node("call", text, tuple(self.arguments()))
        if text == "(":
            inner = self.expression()
            self.need(")")
            return inner
        raise SyntaxError(f"unexpected {text!r}")

    def arguments(self) -> Iterator[Node]:
        if self.take(")"):
            return
        yield self.expression()
        while self.take(","):
            yield self.expression()
        self.need(")")

    def einsum(self, spec: str) -> Node:
        operands, extents = [], []
        while self.take(","):
            if self.peek()[0] == "name" and self.peek(1) == ("sign", "="):
                letter = self.peek()[1]
                self.at += 2
                extents.append((letter, self.expression()))
            else:
                operands.append(self.expression())
        self.need(")")
        return Node("einsum", (spec, tuple(extents)), tuple(operands))


def read(text: str) -> Node:
    """The syntax tree of a text."""
    reader = _Reader(text)
    found = reader.expression()
    if reader.peek()[0] != "end":
        raise SyntaxError(f"{reader.peek()[1]!r} behind the end of {text!r}")
    return found
