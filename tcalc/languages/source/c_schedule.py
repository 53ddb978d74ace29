"""The order of statements around arrays that a routine works on in place.

Where all else that reads the array can come before, it needs no copy; and what reads the result
comes right behind it, so that its memory serves others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...support.limits import spend
from .c_nests import Array, Call, Statement, flat, targets
from .c_routine_rows import ROUTINES

#: Axes from which an array is worth that.
AXES = 3
#: Routines that work in place.
OVERWRITING = frozenset([
    row.call.partition("(")[0] for row in ROUTINES.values() if row.over is not None
])  # fmt: skip
#: Statements of a program up to which they are ordered, and pairs that are compared in a step.
ORDERED, PAIRS_A_STEP = 400, 16


class _Named:
    """A statement: what it names, and what of that it writes."""

    def __init__(self, statement: Statement) -> None:
        self.statement = statement
        self.names = frozenset[str]().union(*[n.names for n in statement.nodes])
        self.writes = frozenset(name for node in flat(statement.nodes) for name in targets(node))

    def meets(self, other: _Named) -> bool:
        """Must the two stay in their order?"""
        return bool(self.writes & other.names or other.writes & self.names)


def in_place_last(
    statements: Sequence[Statement], arrays: Mapping[str, Array]
) -> Sequence[Statement]:
    """The statements in the order in which large arrays need not be copied for such routines.

    Each copy is moved once: of two copies of an array only one comes behind the other.
    """
    large = {name for name, array in arrays.items() if len(array.shape) >= AXES}
    if not large or len(statements) > ORDERED:
        return statements
    found, k = [_Named(s) for s in statements], 0
    moved = set[_Named]()
    while k + 1 < len(found):
        copy, call = found[k : k + 2]
        made = copy.writes if len(copy.writes) == 1 and copy.writes <= call.writes else frozenset()
        calls = any(isinstance(n, Call) and _overwrites(n) for n in flat(call.statement.nodes))
        movable = calls and made <= large and copy not in moved
        for source in sorted(copy.names & large - copy.writes) if movable else ():
            moved.add(copy)
            found, k = _ordered(found, k, source)
        k += 1
    return [s.statement for s in found]


def _overwrites(call: Call) -> bool:
    """Is it one of a routine that works in place?"""
    return call.text.partition("(")[0] in OVERWRITING


def _ordered(found: list[_Named], k: int, source: str) -> tuple[list[_Named], int]:
    """Other readers of an array before what copies it and overwrites the copy, at its new place."""
    copy, call = found[k : k + 2]
    begun = max([j for j in range(k) if source in found[j].writes], default=-1) + 1
    before, after = found[begun:k], found[k + 2 :]
    readers = [s for s in (*before, *after) if source in s.names]
    given = [s for s in before if s.meets(copy) or s.meets(call)]
    needed = _needed([*before, *after], [*readers, *given])
    if any(s.meets(copy) or s.meets(call) for s in needed if s in after):
        return found, k
    if any(source in s.writes for s in needed):
        return found, k
    rest = [s for s in (*before, *after) if s not in needed]
    behind, others = list[_Named](), list[_Named]()
    for s in rest:
        first = s.names & copy.writes and not any(s.meets(other) for other in others)
        (behind if first else others).append(s)
    new = [*found[:begun], *needed, copy, call, *behind, *others]
    return new, begun + len(needed)


def _needed(statements: Sequence[_Named], wanted: Sequence[_Named]) -> list[_Named]:
    """The wanted ones, and those that must come before them."""
    spend("steps", len(statements) ** 2 // PAIRS_A_STEP)
    kept: list[_Named] = []
    for s in reversed(statements):
        if s in wanted or any(s.meets(other) for other in kept):
            kept.insert(0, s)
    return kept
