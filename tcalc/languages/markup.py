"""Elements of MathML Core as ropes; text that is not markup is tokenised and escaped."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from html import escape
from typing import Any

from .writing.notation import Rope, rope_text

APPLY, TIMES, COMMA = "\u2061", "\u2062", "\u2063"  #: invisible operators
TOKEN = re.compile(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?|[^\W\d]\w*|\.\.|//|\S")
THIN = "0.1667em"
#: Operators of formulas in one line as they are set.
SIGNS = {"-": "\u2212", "*": TIMES, "..": "\u2026", "'": "\u2032"}
FENCES = "()[]{}|‖⌊⌋⌈⌉"
CLOSE = {"lspace": "0", "rspace": "0"}  #: without space around


class Markup(str):
    """Markup of one element, or a tag; what is no markup is plain text, and safe to take in."""

    __slots__ = ()


class Box(tuple[Any, ...]):
    """A rope that is one element.

    Attributes
    ----------
    tag : str
        The element's name.
    tall : bool
        Is it higher than a line, so that fences around it grow?
    """

    tag: str
    tall: bool


def attributes(given: dict[str, str]) -> str:
    return "".join([f' {name}="{escape(value)}"' for name, value in given.items()])


@lru_cache(4096)
def leaf(tag: str, text: str, **given: str) -> Markup:
    """An element that holds text."""
    return Markup(f"<{tag}{attributes(given)}>{escape(text)}</{tag}>")


@lru_cache(4096)
def tags(tag: str, **given: str) -> tuple[Markup, Markup]:
    """Where an element begins, and where it ends."""
    return Markup(f"<{tag}{attributes(given)}>"), Markup(f"</{tag}>")


def box(tag: str, *children: Rope, tall: bool = False, **given: str) -> Box:
    """An element that holds ropes."""
    start, end = tags(tag, **given)
    found = Box((start, *children, end))
    found.tag, found.tall = tag, tall
    return found


def sign(text: str, **given: str) -> Markup:
    """An operator; fences as high as a line."""
    fence = {"stretchy": "false"} if text in FENCES else {}
    return leaf("mo", SIGNS.get(text, text), **fence, **given)


def word(text: str) -> Markup:
    """Text in roman type: a name, or several words."""
    if " " in text:
        return leaf("mtext", text)
    return leaf("mi", text, **({"mathvariant": "normal"} if len(text) == 1 else {}))


def single(rope: Rope) -> Rope:
    """The rope as one element."""
    while type(rope) is tuple and len(rope) == 1:
        (rope,) = rope
    if isinstance(rope, Box | Markup):
        return rope
    token = isinstance(rope, str) and len(TOKEN.findall(rope)) == 1
    return rope if token else box("mrow", rope)


def leaves(rope: Rope) -> Iterator[str]:
    """The strings of a rope, from the first on."""
    stack = [rope]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
        else:
            stack.extend(reversed(item))


def written(rope: Rope, name: Callable[[str], str]) -> Markup:
    """The markup of a rope, names in plain text by their symbols."""

    def token(text: str, before: str) -> str:
        if text[0].isdecimal():
            return leaf("mn", text)
        if text.isidentifier():
            return name(text)
        unary = text == "-" and before in ("", ":", ",", "(")
        given = {"form": "prefix"} if unary else CLOSE if text == ":" else {}
        return sign(text, **given)

    def markup(text: str) -> str:
        if isinstance(text, Markup):
            return text
        before = text[: len(text) - len(text.lstrip())]
        found = []
        for item in TOKEN.findall(text):
            found.append(token(item, before))
            before = item
        return "".join(found)

    return Markup(rope_text(rope, markup))
