"""The order of a nest's loops: where its entries cost least, and copies that lie along a loop.

Costs are guesses, in additions: innermost loops pay for being entered, and what does not lie along
them is read number by number, by which compilers make no vectors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import prod

from ...support.limits import spend
from ...support.records import NamedTuple
from .c_nests import CHARACTERS_A_STEP, Line, atom, nest
from .c_values import Value, in_memory
from .c_writer import Writer

#: Steps that it takes to tell the cost of a loop as the innermost one.
COSTED = 15
#: What entering an innermost loop costs, what that of a sum.
ENTERED, SUMMED = 10.0, 15.0
#: An operation on numbers in vectors.
VECTOR = 0.25
#: Operations of which a number is sooner made again than kept.
AGAIN = 3
#: How much less another order must cost than the one as spelled.
WORTH = 0.8
#: Copying an entry to where those of another axis lie.
TURNED = 2.0
#: Results of a sum that stay in cache while they are added to.
KEPT = 4096

_ACCESS = re.compile(r"(\(real\))?\b([A-Za-z_]\w*)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]")


class Access(NamedTuple):
    """An entry of an array in a text; of integers that are read as numbers if `cast`."""

    text: str
    name: str
    place: str
    cast: bool

    def along(self, i: str) -> int:
        """How entries lie along a loop: the same one (0), next to each other (1), apart (2)."""
        return _lying(self.place).get(i, 0)

    def axes(self, over: Mapping[str, str]) -> list[str]:
        """The loops of its indices, where they are different ones, row by row; else none."""
        found = [] if self.cast else _places(self.place, over)
        return found if len(set(found)) == len(found) else []


@lru_cache(4096)
def _lying(place: str) -> Mapping[str, int]:
    """How entries at a place lie along the loops of its indices: 1 next to each other, 2 apart."""
    found: dict[str, int] = {}
    for term in _terms(place):
        for word in set(re.findall(r"\w+", term)):
            found[word] = 1 if term == word and word not in found else 2
    return found


def _places(index: str, over: Mapping[str, str]) -> list[str]:
    """The loops in a place that `c_nests.place` wrote; none where it is another one."""
    if index in over:
        return [index]
    head, _, last = index.rpartition(" + ")
    behind = f" * {atom(over[last])}" if last in over else ""
    if not behind or not head.endswith(behind):
        return []
    head = head.removesuffix(behind)
    before = _places(head[1:-1] if head.startswith("(") else head, over)
    return [*before, last] if before else []


def window(text: str, shape: Sequence[str]) -> str:
    """Where a line begins in memory, windows of which have this entry; empty where none has."""
    found = [a for a in accesses(text) if a.text == text and not a.cast]
    terms = _terms(found[0].place) if found else []
    if (
        not found
        or "-" in found[0].place
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
    read = [set(re.findall(r"\b_\d+\b", a.place)) for a in accesses(text)]
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
    copies = [a for a, k in zip(found, lie, strict=True) if k == 2 and copied(a, over)]
    kept = [a.along(inner) for a in accesses(target)]
    vectors = kept != [2] and lie.count(2) == len(copies)
    each = VECTOR if vectors else 1.0
    read = each * (1 + (loops[inner] > KEPT / 2))  # longer rows do not stay in the first cache
    entered = ENTERED if any(kept) else SUMMED
    reads = len([k for k in lie if k]) + 2 * any(kept)
    works = operations(body) + 2 * (not any(kept))
    again = [prod([n for i, n in loops.items() if not a.along(i)]) for a in copies]
    turning = sum([TURNED / times for times in again]) * vectors
    return read * reads + each * works + entered / loops[inner] + turning


def copied(a: Access, over: Mapping[str, str]) -> bool:
    """May the array be copied with its axes in another order, as several turns read each entry?"""
    return 1 < len(a.axes(over)) < len(over)


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
    spend("steps", len(spelled) * (COSTED + 3 * len(body) // CHARACTERS_A_STEP))
    costs = {i: cost(body, target, i, over, loops) for i in spelled}
    inner = min(spelled, key=lambda i: costs[i])
    if costs[inner] > WORTH * costs[spelled[-1]]:
        inner = spelled[-1]
    rows, sums = [i for i in out if i != inner], [i for i in summed if i != inner]
    if inner in out or not (sums and rows):
        return [*rows, *sums, inner]
    few = prod([loops[i] for i in out]) <= min(KEPT, prod([loops[i] for i in summed]))
    again = any(not all(map(a.along, out)) and any(map(a.along, sums)) for a in accesses(body))
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


def along_rows(
    language: Writer, body: str, inner: str, over: Mapping[str, str], made: Mapping[str, Value]
) -> str:
    """The text, reading copies of matrices that are turned so as to lie along the inner loop.

    Arrays that are still to be made are filled so at once.
    """
    turned = set[str]()
    for a in accesses(body):
        if a.along(inner) < 2 or not copied(a, over):
            continue
        found = a.axes(over)
        axes = [*[i for i in found if i != inner], inner]
        shape = tuple([over[i] for i in axes])
        if a.name in made:
            given = made[a.name]
            if len(found) < len(given.shape):  # along an axis one entry is read
                continue
            language.filled(given.shape, given, a.name, order=[found.index(i) for i in axes])
            turned.add(a.name)
            body = body.replace(a.text, in_memory(a.name, shape).entry(axes).text)
            continue
        key = (a.name, str(found.index(inner)), *shape)
        if key not in language.copies:
            array, copy = language.storage(shape)
            line = Line(copy.entry(axes).text, "=", a.text)
            language.emit(*nest(axes, shape, [line]), made=[array])
            language.copies[key] = copy
        body = body.replace(a.text, language.copies[key].entry(axes).text)
    as_they_lie(language, {name: v for name, v in made.items() if name not in turned})
    return body


def as_they_lie(language: Writer, made: Mapping[str, Value]) -> None:
    """Fill arrays row by row."""
    for name, v in made.items():
        language.filled(v.shape, v, name, order=range(len(v.shape)))
