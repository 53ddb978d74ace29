"""Long functions of C in parts: compilers take more than twice as long for twice as many lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from ...support.records import record
from .c_nests import Array, Call, Line, Node, flat, lines, stored, targets

#: Lines of a function that stays whole, and from which a part ends.
WHOLE, ENDED = 200, 100


@record(frozen=True)
class Part:
    """Statements that are a function of their own.

    Attributes
    ----------
    name : str
    given : list of str
        What it reads and writes, by the names in the function that it is a part of.
    nodes : list of Node
    fails : bool
        Does it return whether a routine failed?
    """

    name: str
    given: list[str]
    nodes: list[Node]
    fails: bool

    @property
    def call(self) -> Call:
        written = [name for line in flat(self.nodes) for name in targets(line)]
        status = "1" if self.fails else ""
        return Call(f"{self.name}({', '.join(self.given)})", tuple(written), status)


def parted(
    name: str, nodes: Sequence[Node], known: Sequence[str]
) -> tuple[list[Part], list[Array]]:
    """The parts of a function, and numbers that several of them name, which become arrays.

    Parameters
    ----------
    name : str
        What names of parts begin with.
    nodes : sequence of Node
        The statements of the function.
    known : sequence of str
        All parameters and arrays of the function, in the order in which parts take them.
    """
    made = {node.written: node for node in nodes if isinstance(node, Line) and node.kind}
    copied = {w: line for w, line in made.items() if re.match(r"static|.*\*$", line.kind)}
    rest = [node for node in nodes if not any(node is line for line in copied.values())]
    groups = _groups(rest)
    named = [frozenset[str]().union(*[n.names for n in group]) for group in groups]
    numbers = [
        Array(w, (), line.kind.removeprefix("const "))
        for w, line in made.items()
        if w not in copied and sum([w in words_ for words_ in named]) > 1
    ]
    entries = {a.name: f"{a.name}[0]" for a in numbers}
    parts = []
    for k, (group, words_) in enumerate(zip(groups, named, strict=True), 1):
        own: list[Node] = [line for w, line in copied.items() if w in words_]
        mine = [*own, *[stored(node, entries) for node in group]]
        given = [w for w in [*known, *entries] if w in words_]
        fails = any(isinstance(node, Call) and node.status for node in flat(mine))
        parts.append(Part(f"{name}{k}", given, mine, fails))
    return parts, numbers


def _groups(nodes: Sequence[Node]) -> list[list[Node]]:
    """The statements, in groups of some length."""
    ends, count = [0], 0
    for k, node in enumerate(nodes, 1):
        count += len(lines([node]))
        if count >= ENDED:
            ends.append(k)
            count = 0
    return [[*nodes[a:b]] for a, b in pairwise([*ends, len(nodes)]) if a < b]
