"""Fragments of text with their precedence.

Text is kept as ropes (nested tuples), so that no fragment is ever copied and shared parts cost
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, count
from typing import Any

from ...graph.extents import Extent
from ...graph.operators import Op
from ...support.limits import exceeded, largest, spend
from ...support.records import NamedTuple

Rope = Any  #: str, or a tuple of ropes

#: Precedence: what has a higher level binds more tightly.
COMPARE, SUM, POINTWISE, PRODUCT, POWER, QUOTE, ATOM = range(7)
MAX_SIZE = 10**9
MAX_SHOWN = 64
SHORT = 16
#: Parameters of factorisations that their functions in text do not take by themselves.
CONTINUATIONS = ("nan", "epsilon", "spectral", "nuclear")
INDEX_LETTERS = "ijklmnpqrstuvwxyzabcdefghoABCDEFGHIJKLMNOPQRSTUVWXYZ"


def index_letters() -> Iterator[str]:
    """Names of indices: Latin letters, then Greek ones and what follows them."""
    return chain(INDEX_LETTERS, filter(str.isalpha, map(chr, count(ord("α")))))


class Fragment(NamedTuple):
    """A part of the printed text.

    Attributes
    ----------
    text : rope
        Without the sign, which consumers write where it reads best.
    level : int
        Precedence of the outermost operator.
    size : int
        Tokens when everything shared is written out (bounded).
    flips : int
        Transposes in the text, around products and under exponents more than one; of two spellings
        the one with fewer is chosen.
    negative : bool
        A minus sign belongs in front.
    joins : bool
        A product that takes a further factor on its left without parentheses.
    chained : tuple of (Fragment, int)
        The powers in a product of matrices, which needs no parentheses as a factor of another.
    ratio : tuple or None
        What stands above and below the line of a quotient entry by entry.
    numeral : bool
        A number without a sign.
    condition : rope or None
        A comparison as it is written where a condition is expected.
    inverted : rope or None
        What this is the inverse of, where that is written as a power.
    diagonal : bool
        A matrix by its diagonal.
    terms : tuple of Fragment
        Of a sum.
    entry : tuple or None
        Of an array given by its entries: the number of axes, and what writes one entry without its
        sign, given the letters of the axes and all that are taken.
    """

    text: Rope
    level: int = ATOM
    size: int = 1
    flips: int = 0
    negative: bool = False
    joins: bool = False
    chained: tuple[Any, ...] = ()
    ratio: tuple[Any, Any] | None = None
    numeral: bool = False
    condition: Rope = None
    entry: tuple[int, Callable[[str, str], Any]] | None = None
    inverted: Rope = None
    diagonal: bool = False
    terms: tuple[Any, ...] = ()

    @property
    def mixed(self) -> bool:
        """Is it a sum in which something is subtracted, and not of names alone?"""
        subtracts = any(p.negative for p in self.terms)
        return subtracts and any(p.level < ATOM for p in self.terms)

    @property
    def digits(self) -> bool:
        """Is it a number, and no dimension?"""
        return self.numeral and isinstance(self.text, str) and self.text[0].isdigit()


def rope_text(rope: Rope, leaf: Callable[[str], str] = str) -> str:
    """The text of a rope, each string in it as `leaf` writes it; LimitError where what is shared
    makes it too long.
    """
    parts: list[str] = []
    stack = [rope]
    length, allowed = 0, largest("characters")
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            parts.append(leaf(item))
            length += len(parts[-1])
            if length > allowed:
                raise exceeded("characters", allowed)
        else:
            stack.extend(reversed(item))
    spend("steps", len(parts))
    return "".join(parts)


def fragment_size(fragments: Sequence[Fragment], extra: int = 1) -> tuple[int, int]:
    """Size and flips of a fragment made of fragments."""
    return (
        min(MAX_SIZE, sum([p.size for p in fragments]) + extra),
        min(MAX_SIZE, sum([p.flips for p in fragments])),
    )


def join_ropes(separator: str, ropes: Sequence[Rope]) -> Rope:
    found: list[Rope] = []
    for rope in ropes:
        if found:
            found.append(separator)
        found.append(rope)
    return tuple(found)


class Parts(NamedTuple):
    """What stands on one side of a line.

    Attributes
    ----------
    numbers, scalars : list of Fragment
        Numbers and dimensions; and what else is one number.
    body : Fragment or None
        The array that they multiply.
    """

    numbers: list[Fragment]
    scalars: list[Fragment]
    body: Fragment | None


class EinsumSpec(NamedTuple):
    """An einsum form: letters of each operand, of the result, sizes of letters no operand has."""

    words: tuple[str, ...]
    out: str
    sizes: tuple[tuple[str, Extent], ...]


def takes_condition(op: Op, k: int) -> bool:
    """Is operand k only asked whether it is 0? Such operands have no derivative."""
    partials = op.meaning.partials  # empty for loops
    undifferentiated = k < len(partials) and partials[k] is None
    return undifferentiated and (any(partials) or op.meaning.range == (0.0, 1.0))
