"""Text to tokens with offsets for the text languages, and errors that point into the text."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from ...graph.variables import canonical_name
from ...support.errors import ParseError
from ...support.limits import spend
from ...support.records import NamedTuple
from .foreign import FOREIGN, fenced

MAX_TEXT = 2**22
MAX_DEPTH = 100_000

#: A dot belongs to a number only where it does not start an operator or a range: 1./x, 0..4.
_NUMBER = r"(?:[0-9]+(?:\.(?![.*/^'])[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_NAME = r"[^\W\d²³¹ᵀ][^\W²³¹ᵀ]*"
#: How an einsum form begins: #('ij,jk->ik', which is no comment and no transpose; or einsum('….
_FORM = r"""(?:#|einsum)(?=\([ \t]*['"])"""
_QUOTED = re.compile(r"""[ \t]*('[^'\n]*'|"[^"\n]*")""")

#: Words that literals may be.
WORDS = {"True": True, "False": False, "inf": math.inf}


class Token(NamedTuple):
    """Part of the text: `text` is its plain spelling.

    `kind` is number, name, op, newline, end or, of an einsum form, quoted.
    """

    kind: str
    text: str
    start: int
    end: int


class Lexicon:
    """The words of one language.

    Parameters
    ----------
    operators : tuple of str
        Operators and punctuation; with `#` among them einsum forms ``#('ij->ji', …)`` are read.
    comments : str
        Characters that start a comment, which ends with the line.
    synonyms : mapping
        Other spellings of operators.
    hints : mapping
        What other languages write, and what is written here instead, beside what is foreign to
        all languages; of operators, where they cannot stand.
    """

    def __init__(
        self,
        operators: tuple[str, ...],
        comments: str,
        synonyms: Mapping[str, str],
        hints: Mapping[str, str] | None = None,
    ) -> None:
        self.synonyms = dict(synonyms)
        self.hints = {**FOREIGN, **(hints or {})}
        comment = f"|[{re.escape(comments)}][^\\n]*" if comments else ""
        self.comment = re.compile(rf"(?!{_FORM}){comment[1:]}" if comments else "(?!)")
        words = sorted([*operators, *synonyms], key=lambda word: (-len(word), word))
        marks = [w for w in self.hints if w not in words and not re.fullmatch(_NAME, w)]
        foreign = "|".join(map(_alone, sorted(marks, key=len, reverse=True)))
        self.pattern = re.compile(
            rf"(?P<form>{_FORM if '#' in words else '(?!)'})|(?P<hint>{foreign})|(?P<newline>\n)"
            rf"|(?P<blank>[ \t\r\u00a0]+{comment})"
            rf"|(?P<number>{_NUMBER})|(?P<name>{_NAME})|(?P<op>{'|'.join(map(re.escape, words))})"
        )

    def misused(self, word: str, text: str, place: int, begins: bool = False) -> ParseError:
        """The error for a word of another language, which may begin an operand."""
        written = fenced(text, place) if begins else ""
        advice = f"write {written}" if written else self.hints[word]
        return ParseError(f"there is no `{word}` here; {advice}", text, place)

    def tokens(self, text: str) -> list[Token]:
        """All tokens, newlines inside brackets left out, closed by a token `end`."""
        if len(text) > MAX_TEXT:
            raise ParseError(f"a text has at most {MAX_TEXT} characters", text, MAX_TEXT)
        found: list[Token] = []
        place = depth = 0
        while place < len(text):
            match = self.pattern.match(text, place)
            if match is None:
                raise ParseError(f"unexpected character {_shown(text[place])}", text, place)
            kind, word = str(match.lastgroup), match.group()
            if kind == "hint":
                raise self.misused(word, text, place, not found or not _ends(found[-1]))
            start, place = place, match.end()
            if kind == "form":
                found += [Token("op", "#", start, place), Token("op", "(", place, place + 1)]
                found.append(_quoted(text, place + 1))
                place, depth = found[-1].end, depth + 1
                continue
            if kind == "blank" or (kind == "newline" and depth):
                continue
            if kind == "op":
                word = self.synonyms.get(word, word)
                depth = max(0, depth + (word in ("(", "[")) - (word in (")", "]")))
                if depth > MAX_DEPTH:
                    raise ParseError(f"more than {MAX_DEPTH} nested brackets", text, start)
            elif kind == "number":
                _check_number(word, text, start)
            elif kind == "name" and not word.isidentifier():
                bad = next(k for k in range(len(word)) if not word[: k + 1].isidentifier())
                raise ParseError(f"unexpected character {_shown(word[bad])}", text, start + bad)
            elif kind == "name":
                word = canonical_name(word)
            found.append(Token(kind, word, start, place))
        found.append(Token("end", "", place, place))
        spend("steps", len(found))
        return found


def _quoted(text: str, place: int) -> Token:
    """The quoted letters of an einsum form; its text is what stands between the quotes."""
    found = _QUOTED.match(text, place)
    if found is None:
        at = place + len(text[place:]) - len(text[place:].lstrip(" \t"))
        raise ParseError("this quote is never closed on its line", text, at)
    return Token("quoted", found.group(1)[1:-1], *found.span(1))


def _ends(token: Token) -> bool:
    """Does an operand end with this token?"""
    return token.kind in ("number", "name", "quoted") or token.text in (")", "]", "'")


def _alone(word: str) -> str:
    """The pattern of a word that is no part of a longer name, of a comparison or of an operator."""
    if word in ("!", "~"):
        return f"{word}(?!=)"
    behind = r"\b" if word[-1].isalpha() else "(?=[a-z])" if word[-1] == "." else ""
    return re.escape(word) + behind


def _shown(character: str) -> str:
    """A character as a message can show it: lone surrogates and controls are escaped."""
    return ascii(character) if not character.isprintable() else f"'{character}'"


def _check_number(word: str, text: str, offset: int) -> None:
    value = float(word)
    if math.isinf(value):
        raise ParseError("this number is too large for double precision", text, offset)
    if value == 0 and re.match(r"[0.]*[1-9]", word):
        raise ParseError("this number is too small for double precision", text, offset)


def literal(text: str) -> Any:
    """The value of a literal: a signed number, one of `WORDS`, or what is quoted."""
    if text[:1] in ("'", '"'):
        return text[1:-1]
    word = text.lstrip("+-")
    value = WORDS[word] if word in WORDS else float(word) if "." in word else int(word)
    return -value if text.startswith("-") else value


def excerpt(text: str, start: int, end: int, width: int = 32) -> str:
    """Part of the user's text on one line, for a message."""
    read = min(end, start + 4 * width)  # of a long text the rest is not looked at
    part = text[start:read]
    if not part.isprintable():
        part = "".join(c if c.isprintable() else " " for c in part)
    shown = " ".join(part.split())
    return shown if len(shown) <= width and read == end else f"{shown[: width - 1]}…"


def line_and_column(text: str, offset: int) -> str:
    """A place in a text as messages name it, both numbers counted from 1."""
    line, column = text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)
    return f"{line}:{column}"
