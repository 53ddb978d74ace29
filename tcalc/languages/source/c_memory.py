"""Arrays in less memory: slices that one turn of a loop fills and reads, and memory used again."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from .c_fusion import places
from .c_nests import (
    Array,
    Call,
    Line,
    Loop,
    Node,
    flat,
    mapped,
    place,
    replaced,
    targets,
)


def narrowed(nodes: Sequence[Node], arrays: dict[str, Array], kept: Collection[str]) -> list[Node]:
    """Arrays without the axes of loops of which each turn reads only what it has filled itself.

    `arrays` has their new extents.
    """
    return _narrowed(nodes, arrays, arrays.keys() - kept)


def _narrowed(
    nodes: Sequence[Node], arrays: dict[str, Array], names: Collection[str]
) -> list[Node]:
    """The same of arrays that nothing else names."""
    users = Counter(name for node in nodes for name in node.names)
    found: list[Node] = []
    for node in nodes:
        own = {name for name in node.names if users[name] == 1 and name in names}
        if isinstance(node, Loop) and own:
            for name in sorted(own):
                node = _without_axis(node, arrays, name)
            node = node.around(_narrowed(node.body, arrays, own))
        found.append(node)
    return found


def _without_axis(loop: Loop, arrays: dict[str, Array], name: str) -> Loop:
    """The loop and an array without the axis along which each turn has a slice of its own."""
    shape = arrays[name].shape
    if len(shape) < 2:
        return loop
    form = re.escape(place(["INDEX"] * len(shape), shape)).replace("INDEX", r"(\w+)")
    given = [re.fullmatch(form, at) if at else None for at in loop.accesses[name]]
    rows = [found.groups() for found in given if found]
    axes = [k for k in range(len(shape)) if all(row[k] == loop.index for row in rows)]
    if len(rows) < len(given) or not axes:
        return loop
    axis = axes[0]

    def kept(entries: Sequence[str]) -> list[str]:
        return [*entries[:axis], *entries[axis + 1 :]]

    arrays[name] = replace(arrays[name], shape=tuple(kept(shape)))
    word = re.compile(rf"\b{name}\[{form}\]")

    def text(old: str) -> str:
        return word.sub(lambda m: f"{name}[{place(kept(m.groups()), kept(shape))}]", old)

    return loop.around([mapped(n, text) if name in n.names else n for n in loop.body])


def reused(nodes: Sequence[Node], arrays: Mapping[str, Array], kept: Sequence[str]) -> list[Node]:
    """Arrays in the memory of others of their size that nothing reads any more.

    Those of one entry each read where the other is written are in place. What is `kept` has memory
    of its own, in which others lie before it is written.
    """
    numbers = {line.written for line in flat(nodes) if isinstance(line, Line) and line.kind}
    lives: dict[str, list[int]] = {}
    for k, node in enumerate(nodes):
        for name in (node.names & arrays.keys()) - numbers:
            lives.setdefault(name, []).append(k)
    names: dict[str, str] = {}
    ends: dict[str, int] = {}
    for name, at in sorted(lives.items(), key=lambda item: (item[1][0], len(item[0]), item[0])):
        for owner, end in ends.items():
            mine, other = arrays[name], arrays[owner]
            if (mine.size, mine.kind) != (other.size, other.kind):
                continue
            if end < at[0] or (end == at[0] and _in_place(nodes[end], owner, name, names)):
                if name in kept:
                    names |= {n: name for n, o in (*names.items(), (owner, owner)) if o == owner}
                    del ends[owner]
                else:
                    names[name] = owner
                    ends[owner] = at[-1]
                break
        else:
            if name not in kept:
                ends[name] = at[-1]
    return _moving(replaced(nodes, names))


def _moving(nodes: Sequence[Node]) -> list[Node]:
    """The nodes without copies of entries to where they are."""
    found: list[Node] = []
    for node in nodes:
        body = _moving(node.body) if isinstance(node, Loop) else []
        still = isinstance(node, Line) and (node.sign, node.value) == ("=", node.target)
        if not (still or (isinstance(node, Loop) and not body)):
            found.append(node.around(body) if isinstance(node, Loop) else node)
    return found


def _in_place(node: Node, owner: str, name: str, names: Mapping[str, str]) -> bool:
    """May an array be filled where those in its owner's memory are read, entry by entry?"""
    older = [owner, *[n for n, o in names.items() if o == owner]]
    reads: list[int] = []
    writes: list[int] = []
    at: set[str | None] = set()
    depth: int | None = None
    for k, (line, loops) in enumerate(_in_loops(node, ())):
        for old in (*older, name):
            found = list(places(old, [line]))
            if found and isinstance(line, Call):  # it may read on where it has written
                return False
            at.update(found)
            if found and old != name:
                reads.append(k)
                if old in targets(line):
                    return False
            if found and old == name:
                depth = loops if depth is None else max(depth, loops)
                if old in targets(line):
                    writes.append(k)
    if len(at) != 1 or None in at or not reads or not writes:
        return False
    (text,) = at
    assert text is not None
    indices = re.findall(r"(?<!\w)_\d+", text)
    once = depth == len(indices) == len(set(indices)) and "[" not in text
    return once and max(reads) <= min(writes)


def _in_loops(node: Node, outer: tuple[str, ...]) -> Iterator[tuple[Line | Call, int]]:
    """Lines, and in how many loops they stand."""
    if isinstance(node, Loop):
        for inner in node.body:
            yield from _in_loops(inner, (*outer, node.index))
    else:
        yield node, len(outer)
