"""Definitions behind a formula, ``A*r where r = x - y, …``, read as statements before it."""

from __future__ import annotations

from collections.abc import Sequence

from .lexer import Token

WHERE = "where"


def definitions_first(tokens: Sequence[Token]) -> list[Token]:
    """The tokens with definitions behind the last formula as statements in front of it.

    They keep their places in the text, to which errors point. ``where(`` is a function as ever.
    """
    depth = start = 0
    for k, token in enumerate(tokens[:-3]):
        depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
        if depth == 0 and (token.kind == "newline" or token.text == ";"):
            start = k + 1
        defines = tokens[k + 1].kind == "name" and tokens[k + 2].text == "="
        if depth == 0 and token.kind == "name" and token.text == WHERE and defines and k > start:
            return [*tokens[:start], *_statements(tokens[k + 1 : -1]), *tokens[start:k], tokens[-1]]
    return list(tokens)


def _statements(tokens: Sequence[Token]) -> list[Token]:
    """Definitions with semicolons for the commas between them."""
    found: list[Token] = []
    depth = 0
    for k, token in enumerate(tokens):
        depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
        defines = [t.text for t in tokens[k + 2 : k + 3]] == ["="]
        ends = depth == 0 and token.text == "," and defines
        found.append(token._replace(kind="op", text=";") if ends else token)
    last = tokens[-1]
    return [*found, Token("op", ";", last.end, last.end)]
