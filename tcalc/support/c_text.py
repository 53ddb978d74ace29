"""C that plans and printed programs share, which each puts beside text of its own."""

from __future__ import annotations

from functools import cache
from pathlib import Path


@cache
def routines(name: str) -> str:
    """A file of `support/routines`."""
    return Path(__file__).with_name("routines").joinpath(name).read_text(encoding="utf-8")
