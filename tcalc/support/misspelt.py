"""What somebody may have meant by a name that is not known."""

from __future__ import annotations

from collections.abc import Iterable

#: Twice the letters in common over the letters of both, at least.
SIMILAR = 0.65


def closest_name(name: str, known: Iterable[str]) -> str:
    """The known name that is most similar to a misspelled one, or nothing.

    Two letters of three that are swapped are still similar; three of five that are others are not.
    """
    import difflib  # not needed by who spells well

    return next(iter(difflib.get_close_matches(name, sorted(known), 1, SIMILAR)), "")
