"""The names and statements of one function, in any language.

Names are letters, digits and underscores of ASCII, which all languages read as one word.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Set
from typing import Any

from ...graph.extents import Extent
from ...graph.nodes import Var
from ...support.records import NamedTuple

#: Integers of 64 bits end here.
LARGE = 2**63


class Place(NamedTuple):
    """An axis of an array by its name in the source."""

    array: str
    axis: int


class FunctionScope:
    """Statements so far, and what is named: parameters, temporaries, dimensions.

    Parameters
    ----------
    variables : mapping
        The variables by the names of the parameters.
    reserved : collection of str
        What no name may be.
    prefix : str
        Temporaries are this and a number, behind further letters where that is taken.
    start : str
        What stands before names that begin with none of the letters of ASCII.
    dims : iterable of str
        The dimensions that may be named.

    Attributes
    ----------
    lines : list of str
        The statements.
    free : list of str
        Names of dimensions that no array has.
    bound : dict
        Names of dimensions that are read off an axis of an array.
    name : str
        Of the function of the module.
    checks : bool
        Does the program check itself?
    functions : list of list of str
        Functions that stand beside it, in languages without functions inside functions.
    known : mapping
        Sizes of dimensions at which the program is to be fast.
    refused : list of str
        Statements before these, which refuse extents.
    large : set of str
        Temporaries beside which all else takes little memory.
    """

    def __init__(
        self,
        variables: Mapping[str, Var],
        reserved: Collection[str],
        prefix: str,
        start: str,
        dims: Iterable[str] = (),
    ) -> None:
        self.lines: list[str] = []
        self.refused: list[str] = []
        self.free: list[str] = []
        self.bound: dict[str, Place] = {}
        self.sizes: dict[str, str] = {}
        self.name, self.checks = "", False
        self.functions: list[list[str]] = []
        self.known: Mapping[str, int] = {}
        self.large: Set[str] = frozenset()
        self.variables = variables
        self.start = start
        self.taken = {*variables, *reserved}
        self.prefix = unlike(prefix, {*self.taken, *[plain(dim, start) for dim in dims]}, "t")
        self.temporaries: dict[str, int] = {}  # where the statements of each begin

    def fresh(self) -> str:
        """The name of a temporary."""
        name = f"{self.prefix}{len(self.temporaries) + 1}"
        self.temporaries[name] = len(self.lines)
        return name

    def drop_unread(self, text: str) -> None:
        """Drop statements that give temporaries values that nothing behind them reads."""
        defined = {k: name for name, k in self.temporaries.items()}
        words, kept = set(re.findall(r"\w+", text)), list[str]()
        for k, line in reversed([*enumerate(self.lines)]):
            name = defined.get(k, "")
            if not name or name in words or not line.startswith(f"{name} = "):
                words.update(re.findall(r"\w+", line.removeprefix(f"{name} = ")))
                kept.append(line)
        self.lines[:] = kept[::-1]

    def within(self, outer: FunctionScope) -> None:
        """This function stands inside another one."""
        self.name, self.functions = outer.name, outer.functions

    def extent(self, extent: Extent) -> str:
        """An extent in the names of this function: a number or a form, ``//`` and ``min`` in it."""
        if isinstance(extent, int):
            return str(extent)
        if not re.fullmatch(r"[\w+*/\- (),]+", extent):
            raise ValueError(f"the extent {extent!r} has no source")
        return re.sub(r"[^\W\d]\w*\b(?!\()", lambda m: self.dimension(m.group()), extent)

    def dimension(self, dim: str) -> str:
        """The name of a dimension."""
        if dim not in self.sizes:
            name = unlike(plain(dim, self.start), self.taken.union(self.sizes.values()), "_")
            self.sizes[dim] = name
            array = next((p for p, v in self.variables.items() if dim in v.shape), None)
            if array is None:
                self.free.append(name)
            else:
                self.bound[name] = Place(array, self.variables[array].shape.index(dim))
        return self.sizes[dim]

    def read(self, texts: Iterable[str]) -> dict[str, Place]:
        """The bound dimensions that stand in the statements or in further texts."""
        words = set(re.findall(r"\w+", "\n".join([*self.refused, *self.lines, *texts])))
        return {name: place for name, place in self.bound.items() if name in words}


def parameters(found: Iterable[str], reserved: Collection[str], start: str) -> dict[str, str]:
    """Names of parameters by those of the variables."""
    known, names = sorted(found), dict[str, str]()
    for name in known:
        shown = plain(name, start)
        while shown in reserved or (shown != name and (shown in known or shown in names.values())):
            shown += "_"
        names[name] = shown
    return names


_numbered = re.compile(r"\d*").fullmatch


def unlike(name: str, taken: Collection[str], suffix: str) -> str:
    """A name that is not taken, nor its numbered forms."""
    while any(other.startswith(name) and _numbered(other[len(name) :]) for other in taken):
        name += suffix
    return name


def plain_key(key: Any) -> str | int | float | bool:
    """The key of an output as a value of Python's own types, which is text in any language.

    Raises
    ------
    TypeError
        For keys that are no strings and numbers, or have no text that reads back as the same key.
    """
    if isinstance(key, bool):
        return key
    if isinstance(key, str):
        return str.__str__(key)
    if isinstance(key, int) and abs(place := int.__index__(key)) < LARGE:
        return place
    if isinstance(key, float) and (number := float.__float__(key)) == number:
        return number
    raise TypeError("keys of outputs in source are strings and numbers, not nan or huge integers")


def plain(name: str, start: str) -> str:
    """A name in ASCII: several spellings of other letters are read as one name.

    Underscores in front get the letters `start` before them.
    """
    if not name.isascii():
        name = "".join([ch if ch.isascii() else "_" for ch in name]) + "_"
    return start + name if name[0] == "_" else name
