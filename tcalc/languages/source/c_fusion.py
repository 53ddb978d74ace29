"""Nests of loops fused where that is right, and temporaries as local numbers.

Every temporary is first an array that one nest fills. Nests that run through the same axis become
one, and an array of which every entry is read where it is made becomes a number of the loop's body:
a chain of entrywise functions is one nest, with the sums inside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from ...support.limits import spend
from ...support.records import record
from .c_nests import (
    CHARACTERS_A_STEP,
    WORD,
    Array,
    Line,
    Loop,
    Node,
    after,
    atom,
    mapped,
    place,
    replaced,
    targets,
    texts,
    writes_of,
)

#: How many statements back a nest looks for one to be fused with.
BACK = 24
#: Steps that it takes to compare two nests.
COMPARED = 40
#: Texts that are searched for a name in a step.
SEARCHED_A_STEP = 3


def live(nodes: Sequence[Node], kept: Sequence[str]) -> list[Node]:
    """Without statements that only fill what nothing reads."""
    reads = list(_reads(nodes, frozenset()))
    needed = {*kept}
    while new := {w for made, read in reads if made & needed for w in read} - needed:
        needed |= new
    return _without(nodes, {name for made, _ in reads for name in made - needed})


def _reads(
    nodes: Sequence[Node], around: frozenset[str]
) -> Iterator[tuple[set[str], frozenset[str]]]:
    """What statements fill, and what they read: the ends of the loops around them too."""
    for node in nodes:
        if isinstance(node, Loop):
            ends = re.findall(WORD, f"{node.first} {node.extent} {node.going}")
            yield from _reads(node.body, around.union(ends))
        else:
            yield set(targets(node)), node.names | around


def _without(nodes: Sequence[Node], dead: set[str]) -> list[Node]:
    found: list[Node] = []
    for node in nodes:
        if isinstance(node, Loop):
            body = _without(node.body, dead)
            if body:
                found.append(node.around(body))
        elif not dead.issuperset(targets(node)):
            found.append(node)
    return found


# --- fusion ---------------------------------------------------------------------------------------


@record()
class Fusion:
    """Nests of one function.

    Parameters
    ----------
    arrays : mapping
        What is known of the shapes of arrays, by name.
    vectors : bool
        Do functions of numbers stand in loops of their own, which compilers have vectors for?
    """

    arrays: Mapping[str, Array]
    vectors: bool = True
    patterns: dict[str, re.Pattern[str]] = field(default_factory=dict)

    def fused(self, nodes: Sequence[Node]) -> list[Node]:
        """The nodes with nests that run through one axis as one."""
        out: list[Node] = []
        for node in nodes:
            out = self._with(out, node)
        found: list[Node] = []
        for n in out:
            if isinstance(n, Loop):
                body = self.fused(n.body)
                found += _apart(n.around(body)) if self.vectors else [n.around(body)]
            else:
                found.append(n)
        return found

    def _with(self, out: list[Node], node: Node) -> list[Node]:
        """The nodes and one more: as a part of an earlier loop, and that of one before it."""
        at = self._partner(out, node) if isinstance(node, Loop) and node.plain else None
        if at is None:
            return [*out, node]
        other, between = out[at], out[at + 1 :]
        assert isinstance(other, Loop)
        assert isinstance(node, Loop)
        needed = _needed(between, node)
        rest = [n for n in between if all(n is not m for m in needed)]
        merged = other.followed_by(_named_alike(node, other))
        return [*self._with([*out[:at], *needed], merged), *rest]

    def _partner(self, out: list[Node], node: Loop) -> int | None:
        """The place of an earlier loop that this one may be part of."""
        between: list[Node] = []
        for at in range(len(out) - 1, max(-1, len(out) - 1 - BACK), -1):
            other = out[at]
            spend("steps", COMPARED)
            if isinstance(other, Loop) and other.plain and other.extent == node.extent:
                needed = _needed(between, node)
                movable = not any(conflict(n, other) for n in needed)
                if movable and self._together(other, _named_alike(node, other)):
                    return at
            between.insert(0, other)
        return None

    def _together(self, first: Loop, second: Loop) -> bool:
        """May each turn of the second follow the same one of the first, and is that worth it?"""
        shared = (first.writes & second.names) | (second.writes & first.names)
        common = {name for name in first.names & second.names if name in self.arrays}
        if not shared and not common:
            return False
        for name in shared:
            found = first.accesses[name] | second.accesses[name]
            rows = {row_of(self.arrays.get(name), access) for access in found}
            if rows == {first.index}:
                continue
            entries = {self._entry(name, access) for access in found}
            entry = entries.pop()
            if entries or entry is None or first.index not in entry:
                return False
        return True

    def _entry(self, name: str, access: str | None) -> tuple[str, ...] | None:
        """The indices of all axes, where they are different indices of loops."""
        array = self.arrays.get(name)
        if array is None or access is None or not array.shape:
            return None
        if name not in self.patterns:
            text = re.escape(place(["INDEX"] * len(array.shape), array.shape))
            self.patterns[name] = re.compile(text.replace("INDEX", r"(\w+)"))
        found = self.patterns[name].fullmatch(access)
        groups = found.groups() if found else ()
        return groups if groups and len(set(groups)) == len(groups) else None


def _apart(loop: Loop) -> list[Loop]:
    """The loop, and as one of its own what follows on loops in it, if that calls functions.

    Compilers have vectors of functions in loops without others inside.
    """
    ends = [k for k, n in enumerate(loop.body) if not isinstance(n, Line)]
    at = ends[-1] + 1 if ends else len(loop.body)
    first, rest = loop.body[:at], loop.body[at:]
    local = any(isinstance(n, Line) and n.kind for n in loop.body)
    if not loop.plain or local or not calls_functions(rest):
        return [loop]
    return [loop.around(body) for body in (first, rest)]


def calls_functions(nodes: Sequence[Node]) -> bool:
    """Are there functions of numbers in it?"""
    return any(re.search(r"\b(?!index_)\w+\(", text) for text in texts(nodes))


def _named_alike(node: Loop, other: Loop) -> Loop:
    """The loop with the index of another one."""
    if node.index == other.index:
        return node
    swapped = {node.index: other.index, other.index: node.index}
    (found,) = replaced([node], swapped)
    assert isinstance(found, Loop)
    return found


def _needed(between: Sequence[Node], node: Node) -> list[Node]:
    """What of these statements must stand before the node, in order."""
    found: list[Node] = []
    for other in reversed(between):
        if conflict(other, node) or any(conflict(other, n) for n in found):
            found.insert(0, other)
    return found


def conflict(a: Node, b: Node) -> bool:
    """Does one write what the other names?"""
    return bool(writes_of(a) & b.names or writes_of(b) & a.names)


def places(name: str, nodes: Sequence[Node]) -> Iterator[str | None]:
    """The places at which an array is read or written; None: wherever."""
    word, searched = re.compile(rf"\b{name}\b"), list(texts(nodes))
    spend("steps", len(searched) // SEARCHED_A_STEP)
    for text in searched:
        if name in text:
            spend("steps", len(text) // CHARACTERS_A_STEP)
            yield from [after(text, found.end()) for found in word.finditer(text)]


def first_index(access: str, shape: Sequence[str]) -> str | None:
    """The word by which a place begins, where it is the index of the first axis.

    Of a place in the first row the index 0 is not written: then fewer extents are multiplied.
    """
    found = re.match(r"\(*(\w+) \* ", access)
    by = re.findall(r"(?:^\(*\w+|\)) \* (\w+|\([^()]*\))", access)
    whole = [_factors(n) for n in by] == [_factors(atom(n)) for n in shape[1:]]
    rows = len(by) == 1 and _factors(by[0]) == " * ".join([_factors(atom(n)) for n in shape[1:]])
    return found.group(1) if found and (whole or rows) else None


def row_of(array: Array | None, access: str | None) -> str | None:
    """The index of an array's first axis at a place, where that is one loop's index."""
    if array is None or access is None or not array.shape:
        return None
    if len(array.shape) == 1:
        return access if access.isidentifier() else None
    return first_index(access, array.shape)


def _factors(text: str) -> str:
    """An atom, a product without its parentheses."""
    return text if re.search(r"[+-]", text) else text.strip("()")


# --- numbers instead of arrays --------------------------------------------------------------------


def localised(nodes: list[Node], arrays: Mapping[str, Array], kept: Sequence[str]) -> list[Node]:
    """Entries that one turn of a loop fills and reads as local numbers.

    They are stored where others read them too: other statements, or the caller (`kept`).
    """
    count: dict[str, int] = dict.fromkeys(kept, 1 << 30)
    for text in texts(nodes):
        for word in re.findall(WORD, text):
            count[word] = count.get(word, 0) + 1
    return _localised(nodes, arrays, count)


def _localised(
    nodes: Sequence[Node], arrays: Mapping[str, Array], count: Mapping[str, int]
) -> list[Node]:
    found = [
        n.around(_localised(n.body, arrays, count)) if isinstance(n, Loop) else n for n in nodes
    ]
    start = 0
    while start < len(found):
        node = found[start]
        if isinstance(node, Line) and node.sign == "=" and "[" in node.target:
            found = _local(found, start, node, arrays, count)
        start += 1
    return found


def _local(
    nodes: list[Node],
    start: int,
    line: Line,
    arrays: Mapping[str, Array],
    count: Mapping[str, int],
) -> list[Node]:
    """The nodes with one entry as a number, where nothing else of its array is named here."""
    name, rest = line.written, nodes[start + 1 :]
    array = arrays.get(name)
    if array is None:
        return nodes
    inside = line.target[len(name) + 1 : -1]
    naming = [k for k, n in enumerate(rest) if name in n.names]
    found = list(places(name, [rest[k] for k in naming]))
    if not found or any(access != inside for access in found):
        return nodes
    adding = [k for k in naming if name in writes_of(rest[k])]
    stored = count[name] > 1 + len(found)
    local = f"{name}_" if stored else name
    names = {line.target: local}
    kind = array.kind if adding else f"const {array.kind}"
    for k in naming:
        rest[k] = mapped(rest[k], lambda text: _substituted(text, names))
    if stored:
        rest.insert(adding[-1] + 1 if adding else 0, Line(line.target, "=", local))
    return [*nodes[:start], Line(local, "=", line.value, kind), *rest]


def _substituted(text: str, names: Mapping[str, str]) -> str:
    for old, new in names.items():
        text = re.sub(rf"\b{re.escape(old)}", new, text)
    return text
