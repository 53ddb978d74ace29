"""The order of a nest's loops: where its entries cost least, and copies that lie along a loop.

Costs are guesses, in additions: innermost loops pay for being entered, and what does not lie along
them is read number by number, by which compilers make no vectors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple

from .c_nests import Line, atom, nest
from .c_writer import Writer

#: What entering an innermost loop costs, what that of a sum.
ENTERED, SUMMED = 10.0, 15.0
#: An operation on numbers in vectors.
VECTOR = 0.25
#: Operations of which a number is sooner made again than kept.
AGAIN = 2
#: How much less another order must cost than the one as spelled.
WORTH = 0.8
#: Results of a sum that stay in cache while they are added to.
KEPT = 4096

_ACCESS = re.compile(r"(\(real\))?\b([A-Za-z_]\w*)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]")


class Access(NamedTuple):
    """An entry of an array in a text; of integers that are read as numbers if `cast`."""

    text: str
    name: str
    index: str
    cast: bool

    def along(self, i: str) -> int:
        """How entries lie along a loop: the same one (0), next to each other (1), apart (2)."""
        if not re.search(rf"\b{i}\b", self.index):
            return 0
        terms = [term for term in _terms(self.index) if re.search(rf"\b{i}\b", term)]
        return 1 if terms == [i] else 2

    def turned(self, i: str, over: Mapping[str, str]) -> str:
        """The column of a matrix in memory of which a loop runs through the rows, if it is one."""
        found = re.fullmatch(r"(\w+) \* (.+) \+ (\w+)", self.index)
        if found is None or self.cast or found[1] != i or found[3] not in over:
            return ""
        spelled = found[2] == atom(over[found[3]])
        return found[3] if spelled and len(over) > 2 and found[3] != i else ""


def window(text: str, shape: Sequence[str]) -> str:
    """Where a line begins in memory, windows of which have this entry; empty where none has."""
    found = [a for a in accesses(text) if a.text == text and not a.cast]
    terms = _terms(found[0].index) if found else []
    if (
        not found
        or "-" in found[0].index
        or "1" in shape
        or terms.count("_0") * terms.count("_1") != 1
    ):
        return ""
    start = [term for term in terms if term not in ("_0", "_1")]
    if any("_0" in term or "_1" in term for term in start):
        return ""
    return " + ".join([found[0].name, *start])


def accesses(text: str) -> list[Access]:
    found = _ACCESS.finditer(text)
    return list(dict.fromkeys([Access(f"{m[2]}[{m[3]}]", m[2], m[3], bool(m[1])) for m in found]))


def _terms(index: str) -> list[str]:
    """The terms of a sum of integers, without signs."""
    found, depth, start = list[str](), 0, 0
    for k, character in enumerate(index):
        depth += (character in "([") - (character in ")]")
        if not depth and index.startswith((" + ", " - "), k):
            found.append(index[start:k])
            start = k + 3
    return [*found, index[start:]]


def cheap(text: str, ndim: int) -> bool:
    """Is an entry sooner made of smaller arrays than read, where it is one of an array?"""
    bare = _ACCESS.sub("x", text)
    simple = not re.search(r"\w\(| [/?] ", bare) and operations(text) <= AGAIN
    read = [set(re.findall(r"\b_\d+\b", a.index)) for a in accesses(text)]
    return simple and bool(read) and all(len(indices) < ndim for indices in read)


def operations(text: str) -> int:
    """The operations on entries in a text; calls count as many."""
    bare = _ACCESS.sub("x", text)
    return len(re.findall(r" [-+*/?] ", bare)) + 10 * len(re.findall(r"\w\(", bare))


def cost(
    body: str, target: str, inner: str, over: Mapping[str, str], loops: Mapping[str, int]
) -> float:
    """Of one entry, where a loop is innermost."""
    found = accesses(body)
    lie = [a.along(inner) for a in found]
    turned = [k == 2 and bool(a.turned(inner, over)) for a, k in zip(found, lie, strict=True)]
    kept = [a.along(inner) for a in accesses(target)]
    vectors = kept != [2] and all(k < 2 or t for k, t in zip(lie, turned, strict=True))
    each = VECTOR if vectors else 1.0
    read = each * (1 + (loops[inner] > KEPT / 2))  # longer rows do not stay in the first cache
    entered = ENTERED if any(kept) else SUMMED
    reads = len([k for k in lie if k]) + 2 * any(kept)
    works = operations(body) + 2 * (not any(kept))
    return read * reads + each * works + entered / loops[inner]


def ordered(
    body: str, target: str, out: Sequence[str], summed: Sequence[str], over: Mapping[str, str],
    loops: Mapping[str, int],
) -> list[str]:  # fmt: skip
    """The loops, outermost first.

    Parameters
    ----------
    body : str
        What is added up.
    target : str
        The entry that it is added to.
    out, summed : sequence of str
        The loops over entries of the result, and those of the sum.
    over : mapping
        Their extents.
    loops : mapping
        Guesses of how often they run.
    """
    spelled = as_spelled(body, out, summed)
    if not spelled:
        return []
    costs = {i: cost(body, target, i, over, loops) for i in spelled}
    inner = min(spelled, key=lambda i: costs[i])
    if costs[inner] > WORTH * costs[spelled[-1]]:
        inner = spelled[-1]
    rows, sums = [i for i in out if i != inner], [i for i in summed if i != inner]
    if inner in out or not (sums and rows):
        return [*rows, *sums, inner]
    few = prod([loops[i] for i in out]) <= min(KEPT, prod([loops[i] for i in summed]))
    again = any(not any(map(a.along, out)) and any(map(a.along, sums)) for a in accesses(body))
    return [*sums, *rows, inner] if few and again else [*rows, *sums, inner]


def as_spelled(body: str, out: Sequence[str], summed: Sequence[str]) -> list[str]:
    """The order in which innermost runs along memory, where one can, whatever the extents are."""
    if not out or not summed:
        return [*out, *summed]
    found = accesses(body)
    rows = {i: sum([a.along(i) == 1 for a in found]) for i in (*out, *summed)}
    apart = {i: sum([a.along(i) == 2 for a in found]) for i in (*out, *summed)}
    fast = [i for i in out if not apart[i] and rows[i]]
    if fast:
        return [*[i for i in out if i != fast[-1]], *summed, fast[-1]]
    last = max(summed, key=lambda i: (rows[i] - apart[i], summed.index(i)))
    return [*out, *[i for i in summed if i != last], last]


def along_rows(language: Writer, body: str, inner: str, over: Mapping[str, str]) -> str:
    """The text, reading copies of matrices that are turned so as to lie along the inner loop."""
    for a in accesses(body):
        column = a.turned(inner, over) if a.along(inner) == 2 else ""
        if not column or all(a.along(i) for i in over):
            continue
        shape = over[column], over[inner]
        key = (a.name, *shape)
        if key not in language.copies:
            array, copy = language.storage(shape)
            line = Line(copy.entry([column, inner]).text, "=", a.text)
            language.emit(*nest([column, inner], shape, [line]), made=[array])
            language.copies[key] = copy
        body = body.replace(a.text, language.copies[key].entry([column, inner]).text)
    return body
