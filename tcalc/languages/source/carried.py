"""The helpers that a program carries: those that its text names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence


def carried(texts: Sequence[str], helpers: Mapping[str, str], word: str, remark: str) -> list[str]:
    """The helpers that texts name, and those that these name.

    Parameters
    ----------
    texts : sequence of str
    helpers : mapping
        Text by name.
    word, remark : str
        Patterns: of a name in code; of comments and documentation, whose formulas call nothing.

    Returns
    -------
    list of str
        In the order of `helpers`.
    """
    found: list[str] = []
    while True:
        code = re.sub(remark, "", "\n".join([*texts, *found]))
        words = set(re.findall(word, code))
        named = [text for name, text in helpers.items() if name in words]
        if named == found:
            return found
        found = named
