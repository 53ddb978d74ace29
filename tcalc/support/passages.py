"""Text made of pieces of another one, in which mistakes are told where they stand there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import SupportsIndex, overload


class Passage(str):
    """A piece of a whole text, or several with other words between them.

    Slices and parts of it are passages of the same whole.

    Attributes
    ----------
    whole : str
    places : sequence of int
        Where each character stands in the whole, and what comes behind the last one.
    """

    whole: str
    places: Sequence[int]

    def __new__(
        cls, text: str, whole: str | None = None, places: Sequence[int] | None = None
    ) -> Passage:
        made = super().__new__(cls, text)
        made.whole = text if whole is None else whole
        made.places = range(len(text) + 1) if places is None else places
        return made

    @overload
    def __getitem__(self, key: SupportsIndex) -> str: ...

    @overload
    def __getitem__(self, key: slice) -> Passage: ...

    def __getitem__(self, key: slice | SupportsIndex) -> str:
        found = super().__getitem__(key)
        if not isinstance(key, slice):
            return found
        start, stop, _ = key.indices(len(self))
        return Passage(found, self.whole, self.places[start : max(start, stop) + 1])

    @property
    def original(self) -> str:
        """What stands in the whole from its first character to its last."""
        return self.whole[self.places[0] : self.places[-1]]

    def strip(self, chars: str | None = None) -> Passage:
        start = len(self) - len(super().lstrip(chars))
        return self[start : start + len(super().strip(chars))]

    def partition(self, sep: str) -> tuple[Passage, str, Passage]:
        at = self.find(sep)
        if at < 0:
            return self, "", self[len(self) :]
        return self[:at], sep, self[at + len(sep) :]

    def with_words(self, words: Iterable[tuple[int, int, str]]) -> Passage:
        """Words in the places of what stands from one offset to another, in order."""
        text, places, at = "", list[int](), 0
        for start, stop, word in words:
            text += super().__getitem__(slice(at, start)) + word
            places += [*self.places[at:start], *[self.places[start]] * len(word)]
            at = stop
        text += super().__getitem__(slice(at, None))
        return Passage(text, self.whole, [*places, *self.places[at:]])


def lines(passages: Sequence[Passage]) -> Passage:
    """Passages of one whole, each on a line of its own."""
    places = [place for passage in passages for place in passage.places]
    return Passage("\n".join(passages), passages[0].whole, places)


def in_whole(text: str, offset: int) -> tuple[str, int]:
    """The text that a passage is of, and the place of an offset there."""
    if not isinstance(text, Passage):
        return text, offset
    return text.whole, text.places[min(offset, len(text))]
