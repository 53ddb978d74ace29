"""C that plans and printed programs share, which each puts beside text of its own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).with_name("routines")
#: Files of `support/routines`.
SHARED = frozenset([path.name for path in _FOLDER.glob("*.c")])


@cache
def routines(name: str) -> str:
    """A file of `support/routines`."""
    return _FOLDER.joinpath(name).read_text(encoding="utf-8")


def indented(lines: Sequence[str]) -> list[str]:
    """Lines inside of braces; the preprocessor's begin at the margin."""
    return [line if line.startswith("#") else f"    {line}" for line in lines]
