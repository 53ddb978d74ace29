"""The marks of a language of typesetting: scripts, fractions, fences, words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from .notation import Rope
from .style import Style
from .symbols import Symbols

#: Comparisons whose signs are not those of text.
SIGNS = {"<=": r" \leq ", ">=": r" \geq ", "==": " = ", "!=": r" \ne "}


class Marks(Style, ABC):
    """A style whose text is made of marks."""

    dot: Rope  #: between numbers
    times: Rope  #: between extents
    entrywise: Rope  #: before exponents of powers entry by entry
    top: Rope  #: the exponent of transposes
    one: Rope  #: of vectors of ones
    infinity: Rope

    def __init__(self) -> None:
        self.symbols = Symbols(self.symbol, self.exact_symbol)
        self.reserved: set[str] = set()  #: dimensions in conditions on indices, no index's letters
        self.heights: dict[int, tuple[Rope, bool]] = {}

    def tall(self, rope: Rope) -> bool:
        """Is a rope higher than a line? Of each that is made of others this is asked once."""
        found = self._known(rope)
        stack = [rope] if found is None else []
        while stack:
            parts = stack[-1]
            known = [self._known(part) for part in parts]
            if None in known:
                stack += [part for part, k in zip(parts, known, strict=True) if k is None]
            else:
                self.heights[id(parts)] = parts, any(known)
                stack.pop()
        return bool(self._known(rope) if found is None else found)

    def _known(self, rope: Rope) -> bool | None:
        found = self.high(rope)
        known = self.heights.get(id(rope)) if found is None else None
        return found if known is None else known[1]

    # --- marks ---

    @staticmethod
    @abstractmethod
    def symbol(name: str) -> str: ...

    @staticmethod
    @abstractmethod
    def exact_symbol(name: str) -> str: ...

    @abstractmethod
    def high(self, rope: Rope) -> bool | None:
        """Is a mark higher than a line? None for a rope made of others."""

    @abstractmethod
    def superscript(self, base: Rope, above: Rope) -> Rope: ...

    @abstractmethod
    def subscript(self, base: Rope, below: Rope) -> Rope: ...

    @abstractmethod
    def over(self, above: Rope, below: Rope) -> Rope:
        """A fraction."""

    @abstractmethod
    def fenced(self, left: str, rope: Rope, right: str) -> Rope:
        """Something in fences as high as it is."""

    @abstractmethod
    def words(self, text: str) -> Rope:
        """Words in roman type."""

    @abstractmethod
    def beside(self, ropes: Sequence[Rope]) -> Rope:
        """Symbols and numbers multiplied."""

    @abstractmethod
    def indices(self, letters: str) -> Rope: ...

    @abstractmethod
    def summation(self, letters: str) -> Rope:
        """The sign of a sum over indices."""

    @abstractmethod
    def limits(self, sign: Rope, low: Rope, high: Rope) -> Rope:
        """A large sign with what stands below and above it."""

    @abstractmethod
    def applied(self, name: str, inside: Rope) -> Rope:
        """A function by its name, of what stands in parentheses."""

    @abstractmethod
    def typeset(self, parts: Sequence[Rope]) -> Rope:
        """A template: LaTeX, and in every second place a part that is written already."""

    def sign(self, sign: str) -> Rope:
        return self.typeset([SIGNS.get(sign, f" {sign} ")])
