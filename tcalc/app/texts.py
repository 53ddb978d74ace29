"""Where the text of an expression is read: on the command line, in a file, from standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..support.errors import ParseError, ShapeError


def given_text(word: str) -> str:
    """The text that a word of the command line stands for.

    Parameters
    ----------
    word : str
        The text itself, `@FILE`, or `-` for what standard input holds.

    Raises
    ------
    ValueError
        Where that is no text in UTF-8; OSError where there is no such file.
    """
    if not word.startswith("@") and word != "-":
        return word
    try:
        if word == "-":
            return sys.stdin.read().strip() if sys.stdin else ""  # closed by who began the program
        return Path(word[1:].strip()).read_text("utf-8-sig").strip()
    except UnicodeDecodeError:
        shown = "standard input" if word == "-" else word[1:]
        raise ValueError(f"{shown} is no text in UTF-8") from None


@contextmanager
def files_told_apart(word: str) -> Iterator[None]:
    """Inside, a word that is no expression and the name of a file is told how it is read."""
    try:
        yield
    except (ParseError, ShapeError):
        if len(word) > 255 or "\0" in word or not Path(word).is_file():
            raise
        raise ValueError(f"{word} is a file, no expression: @{word} reads it") from None
