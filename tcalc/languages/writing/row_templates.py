"""Templates of the operator table: LaTeX with operands as ``{0}``, ``{1}``."""

from __future__ import annotations

import re
from string import Formatter

#: What encloses an operand in a template, before it and behind it.
OPENING = ("(", "{", "|", "[", "& ", r"\\ ", r"cases} ", ", ", r"\lfloor ", r"\lceil ")
CLOSING = (")", "}", "|", "]", r"\right", " &", r" \\", ", ", r" \rfloor", r" \rceil")
#: The function's name with which a template starts.
LEADING_NAME = re.compile(r"\\(operatorname\{\w+\}|(?!left|frac|sqrt)[a-z]+(?=\())")


def template(text: str) -> list[tuple[str, str]]:
    """A format string as literals, each with the field behind it; the last field is empty."""
    found, literal = [], ""
    for part, field, *_ in Formatter().parse(text):
        literal += part
        if field is not None:
            found.append((literal, field))
            literal = ""
    return [*found, (literal, "")]
