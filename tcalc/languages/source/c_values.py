"""Values in C: functions from indices to the text of an entry.

Nothing is computed when a value is made of others. Where it gets a name, a nest of loops fills an
array with its entries.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import field, replace

from ...support.records import record
from .c_nests import atom, place
from .infix import product, total
from .language import ATOM, PRODUCT, Code

Indices = Sequence[str]
Entry = Callable[[Indices], Code]

#: What indices are called in the text of a value that has no loops yet.
SHOWN = ("i", "j", "k", "l", "p", "q", "r", "s")


@record(frozen=True)
class Strided:
    """Where entries lie in memory: from a pointer on, so far apart along every axis."""

    name: str
    start: str
    strides: tuple[str, ...]

    @property
    def pointer(self) -> str:
        return self.name if self.start == "0" else f"{self.name} + {self.start}"


@record(frozen=True)
class Value(Code):
    """An array or a number of C.

    Attributes
    ----------
    shape : tuple of str
        The extents in C; 1 where it is repeated along an axis.
    entry : callable
        The text of one entry.
    memory : Strided or None
        Where the entries lie, if they do.
    windows : Strided or None
        Where the entries of windows that overlap lie.
    parts : tuple of Value
        Several results.
    labels : tuple of str
        What several results are called.
    extent : str
        Of an extent: its text as an integer.
    whole : bool
        Does it fill an array of this function, row by row?
    """

    shape: tuple[str, ...] = ()
    entry: Entry = field(default=lambda index: Code(""), repr=False)
    memory: Strided | None = None
    windows: Strided | None = None
    parts: tuple[Value, ...] = ()
    labels: tuple[str, ...] = ()
    extent: str = ""
    whole: bool = False


def value(c: Code) -> Value:
    """The value that a code of this language is."""
    assert isinstance(c, Value)
    return c


def pulled(shape: Sequence[str], entry: Entry, weak: bool = False) -> Value:
    """An array of which every entry is this text."""
    shown = entry([SHOWN[k % len(SHOWN)] for k in range(len(shape))])
    return Value(shown.text, shown.level, weak=weak, shape=tuple(shape), entry=entry)


def scalar(text: str, level: int = ATOM, weak: bool = False) -> Value:
    """A number."""
    code = Code(text, level)
    return Value(text, level, weak=weak, entry=lambda index: code)


def in_memory(name: str, shape: Sequence[str], whole: bool = False) -> Value:
    """An array that lies row by row under a name."""
    if not shape:
        code = Code(name, name=True)
        return Value(name, name=True, entry=lambda index: code, whole=whole)
    strides = ["1"]
    for n in reversed(shape[1:]):
        strides.insert(0, atom(n) if strides[0] == "1" else f"{atom(n)} * {strides[0]}")
    return Value(
        name,
        name=True,
        shape=tuple(shape),
        entry=lambda index: Code(f"{name}[{place(along(index, shape), shape)}]"),
        memory=Strided(name, "0", tuple(strides)),
        whole=whole,
    )


def along(index: Indices, shape: Sequence[str]) -> Indices:
    """Indices of an array, which is repeated along axes of extent 1."""
    return ["0" if n == "1" else i for i, n in zip(index, shape, strict=True)]


def by_rows(v: Value) -> bool:
    """Does it lie in memory row by row, from a pointer on?"""
    rows = in_memory("", v.shape).memory
    found = v.memory
    return bool(found and rows and found.start == "0" and found.strides == rows.strides)


def common_shape(values: Sequence[Value]) -> tuple[str, ...]:
    """The shape of values that are repeated along axes that others have."""
    shape: list[str] = []
    for v in values:
        missing = len(v.shape) - len(shape)
        shape = ["1"] * missing + shape
        for k, n in enumerate(v.shape, len(shape) - len(v.shape)):
            if shape[k] == "1":
                shape[k] = n
    return tuple(shape)


def entry_of(v: Value, index: Indices) -> Code:
    """An entry of a value that may lack leading axes."""
    return v.entry(index[len(index) - len(v.shape) :])


def lifted(f: Callable[..., Code], values: Sequence[Value]) -> Value:
    """A function of entries, entry by entry."""
    return pulled(
        common_shape(values),
        lambda index: f(*[entry_of(v, index) for v in values]),
        all(v.weak for v in values),
    )


def viewed(v: Value, shape: Sequence[str], index: Callable[[Indices], Indices]) -> Value:
    """Entries of a value at other indices."""
    return pulled(shape, lambda given: v.entry(index(given)), v.weak)


def repeated(v: Value, shape: Sequence[str]) -> Value:
    """The value along axes that it has not, which are no distance in memory."""
    found = pulled(shape, lambda index: entry_of(v, index))
    if v.memory is None:
        return found
    new = len(shape) - len(v.shape)
    own = zip(v.memory.strides, v.shape, shape[new:], strict=True)
    strides = ["0" if m == "1" != n else stride for stride, m, n in own]
    return replace(found, memory=replace(v.memory, strides=("0",) * new + tuple(strides)))


def transposed(v: Value, perm: Sequence[int]) -> Value:
    """Axis k of the result is axis perm[k] of the value."""
    found = viewed(
        v,
        [v.shape[k] for k in perm],
        lambda index: [index[perm.index(k)] for k in range(len(perm))],
    )
    memory, windows = (
        at and replace(at, strides=tuple([at.strides[k] for k in perm]))
        for at in (v.memory, v.windows)
    )
    found = replace(found, memory=memory, windows=windows, overlaps=v.overlaps)
    return found


def by_columns(text: str, i: str, j: str) -> bool:
    """Do more arrays in the text of an entry lie along its first index than along its second?"""
    first, second = (text.count(f" + {k}]") for k in (i, j))
    return first > second


def along_last(text: str, index: Indices) -> bool:
    """Does an array with all indices in the text of an entry lie along the last one?"""
    places = [
        set(re.findall(r"\w+", place)) for place in re.findall(rf"\[(.*?) \+ {index[-1]}\]", text)
    ]
    return any(place.issuperset(index[:-1]) for place in places)


def lying(text: str, index: Indices) -> list[int]:
    """The order in which all arrays with all indices in the text of an entry lie, if it is one."""
    found = {
        tuple(words)
        for place in re.findall(r"\[([^\[\]]*)\]", text)
        if sorted(words := re.findall(r"(?<!\w)_\d+(?!\w)", place)) == sorted(index)
    }
    return [index.index(i) for i in found.pop()] if len(found) == 1 else []


def affine(start: str, steps: Sequence[int], index: Indices) -> str:
    """A place that is affine in indices."""
    terms = [
        product([Code(str(step)), Code(atom(i))]) if abs(step) > 1 else Code("-" * (step < 0) + i)
        for step, i in zip(steps, [atom(i) for i in index], strict=True)
        if step and i != "0"
    ]
    if start != "0" or not terms:
        terms.append(Code(start))
    signed = [replace(c, level=PRODUCT) if c.text.startswith("-") else c for c in terms]
    return total(signed).text


def added(*terms: str) -> str:
    """The sum of integers."""
    kept = [t for t in terms if t != "0"]
    return " + ".join(kept) or "0"
