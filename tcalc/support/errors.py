"""Every error tcalc raises on purpose; all of them are `tcalc.Error`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .passages import in_whole


class Error(Exception):
    """Base of all errors raised by tcalc itself."""


class ShapeError(Error, ValueError):
    """Shapes, dimension names or declarations of one name that do not fit together."""


class RangeError(ShapeError, IndexError):
    """An index that lies outside of its axis."""


class TraceError(Error, TypeError):
    """An expression was used where only numbers can stand."""


class DeclarationError(Error, ValueError):
    """Data without a property that their variable declares."""


class PartitionError(Error, TypeError):
    """A value that cannot be computed from parts of the data, each by itself."""


class UnsupportedError(Error, NotImplementedError):
    """Something NumPy has that expressions do not offer."""


class LinAlgError(Error, np.linalg.LinAlgError):
    """A matrix without the property an operation needs."""


class MemoryLimitError(Error, MemoryError):
    """A plan needs more memory than the caller allows."""


class LimitError(Error, RuntimeError):
    """Work that grows beyond a limit (see `tcalc.limits`).

    Attributes
    ----------
    limit : str
        The name of the limit in `tcalc.limits`; empty where it is fixed.
    """

    def __init__(self, message: str, limit: str = "") -> None:
        self.limit = limit
        super().__init__(message)


class ParseError(Error, ValueError):
    """Text that is not in the language.

    Attributes
    ----------
    line, column : int
        Place of the mistake, both counted from 1.
    """

    def __init__(self, message: str, text: str, offset: int) -> None:
        text, offset = in_whole(text, offset)
        self._given = message, text, offset
        before = text[:offset]
        self.line = before.count("\n") + 1
        self.column = offset - (before.rfind("\n") + 1) + 1
        lines = text.split("\n")
        shown, column = clip(lines[self.line - 1], self.column)
        caret = " " * (column - 1) + "^"
        super().__init__(f"{self.line}:{self.column}: {message}\n  {shown}\n  {caret}")

    def __reduce__(self) -> tuple[type[ParseError], tuple[str, str, int]]:
        return type(self), self._given


def retold(error: Error, words: Callable[[str], str]) -> Error:
    """The error with what it says in other words, its place and the text there as they are."""
    if isinstance(error, ParseError):
        message, text, offset = error._given
        return ParseError(words(message), text, offset)
    first, *lines = str(error).split("\n")
    return type(error)("\n".join([words(first), *lines]))


def clip(line: str, column: int, width: int = 76) -> tuple[str, int]:
    """The part of `line` around `column` that fits a terminal, and the column inside it."""
    line = "".join(c if c.isprintable() else " " for c in line)
    if len(line) <= width:
        return line, column
    start = min(max(0, column - 1 - width // 2), len(line) - width)
    return line[start : start + width], column - start


# Where users find them, which tracebacks and pickles name.
for _public in (
    Error, ShapeError, DeclarationError, TraceError, PartitionError, UnsupportedError, LinAlgError,
    MemoryLimitError, LimitError, ParseError,
):  # fmt: skip
    _public.__module__ = "tcalc"
