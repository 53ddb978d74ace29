"""What loops are made of: extents, arrays as they are read and written, and statements."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ...support.arrays import Sizes
from ...support.records import NamedTuple

#: Entries of a row from which loops over rows do as much at once as loops over all entries.
NARROW = 8


class Count(int):
    """An extent that is a multiple of the rows of a tile, of which the last one may have fewer."""

    ratio: int

    def __new__(cls, tile: int, ratio: int) -> Count:
        found = super().__new__(cls, tile * ratio)
        found.ratio = ratio
        return found

    def times(self, n: int) -> Count:
        return Count(int(self) // self.ratio, self.ratio * n)

    def __format__(self, spec: str) -> str:
        return "t" if self.ratio == 1 else f"(t * {self.ratio})"


class COperand(NamedTuple):
    """A slot as loops read or write it.

    Attributes
    ----------
    slot : int
    strides : tuple of int
        Along every axis of the loops, in entries.
    start : int
        Where the entry of the first labels lies, which may be outside of the slot.
    guards : tuple of (int, int, int)
        Axes along which there are entries from one label to before another, and zeros elsewhere.
    """

    slot: int
    strides: Sizes
    start: int = 0
    guards: tuple[tuple[int, int, int], ...] = ()

    def as_made(self, strides: Sizes) -> bool:
        """Is it read entry by entry as it is made, or as another is read?"""
        return self.strides == strides and not self.start and not self.guards


class CStatement(NamedTuple):
    """One step: an entry of the result from entries of operands.

    Attributes
    ----------
    out : COperand
        Stride 0 along axes that are summed.
    entry : str
        C with operands as ``{0}``.
    args : tuple of COperand
    summed : frozenset of int
        Axes over which entries are added up.
    adding : bool
        Is that added to what is there?
    """

    out: COperand
    entry: str
    args: tuple[COperand, ...]
    summed: frozenset[int] = frozenset()
    adding: bool = False


def aligned(shape: Sizes, own: Sizes, strides: Sizes) -> Sizes:
    """Strides along the axes of `shape` of an array that is broadcast to it."""
    missing = len(shape) - len(own)
    return (0,) * missing + tuple([s if n > 1 else 0 for n, s in zip(own, strides, strict=True)])


def alike(one: Sizes, two: Sizes) -> bool:
    """Are two shapes the same, moving axes included?"""
    return one == two and all(
        isinstance(m, Count) == isinstance(n, Count) for m, n in zip(one, two, strict=True)
    )


def moves(operand: COperand, axis: int) -> bool:
    """Is another entry read along this axis?"""
    return operand.strides[axis] != 0 or any(k == axis for k, *_ in operand.guards)


def together(extents: Sequence[int]) -> int:
    """How many entries axes have, the first of which may be a tile's."""
    if not extents:
        return 1
    first, rest = extents[0], prod(extents[1:])
    return first.times(rest) if isinstance(first, Count) else first * rest


def merged(shape: Sizes, statements: Sequence[CStatement]) -> tuple[Sizes, list[CStatement]]:
    """Without axes of one entry, and with axes as one that all arrays run through as one."""
    operands = [o for s in statements for o in (s.out, *s.args)]
    guarded = {axis for o in operands for axis, *_ in o.guards}

    def run_on(left: int, right: int) -> bool:
        return (
            not isinstance(shape[right], Count)
            and not guarded & {left, right}
            and all((left in s.summed) == (right in s.summed) for s in statements)
            and all(o.strides[left] == o.strides[right] * shape[right] for o in operands)
        )

    groups: list[list[int]] = []
    for axis, extent in enumerate(shape):
        if extent == 1 and axis not in guarded:
            continue
        if groups and run_on(groups[-1][-1], axis):
            groups[-1].append(axis)
        else:
            groups.append([axis])
    extents = tuple([together([shape[k] for k in group]) for group in groups])

    place = {axis: k for k, group in enumerate(groups) for axis in group}

    def strided(o: COperand) -> COperand:
        guards = tuple([(place[axis], low, high) for axis, low, high in o.guards])
        return COperand(o.slot, tuple([o.strides[g[-1]] for g in groups]), o.start, guards)

    def stated(s: CStatement) -> CStatement:
        summed = frozenset([k for k, group in enumerate(groups) if group[0] in s.summed])
        return s._replace(out=strided(s.out), args=tuple(map(strided, s.args)), summed=summed)

    return extents, [stated(s) for s in statements]


def keep_rows(shape: Sizes, statements: Sequence[CStatement]) -> bool:
    """Do functions of entries go by rows that are too short, as a sum tells these apart?"""
    last = len(shape) - 1
    if last < 1 or isinstance(shape[last], Count) or shape[last] >= NARROW:
        return False
    entries = [s for s in statements if not s.summed or last in s.summed]
    if len(entries) in (0, len(statements)) or not any("quick_" in s.entry for s in entries):
        return False
    return len(merged(shape, entries)[0]) < 2
