"""Runs of steps that are computed tile by tile, a few rows at a time, so that tiles stay in cache.

Rows are entries of the first axis, or of a long last one: then a tile has a few of its columns.
Inside a loop, what nobody outside reads exists for one tile only; sums over rows are accumulated.
Large arrays that are cheap to make from small ones are made again in every loop that reads them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from math import prod

from ..builder import Builder
from ..kinds.kind import StepAccess
from ..kinds.table import KINDS
from ..steps import BUFFER, VIEW, Step, TiledLoop
from .order import beside_each_other, delay_in_place, hasten_integers, hasten_reductions, is_large

#: Postponed steps that are looked past for more steps of one loop.
WINDOW = 64


def reading(b: Builder, step: Step) -> tuple[int, dict[int, str], str] | None:
    """How a tile of the step's rows sees its slots; None where it cannot run on a few rows.

    The number of rows, the mode of each operand, and that of the result.
    """
    tiles = KINDS[step.kind].tiles
    shapes = tuple([b.shapes[a] for a in step.args])
    turned = [a in b.turned and n[1] >= n[0] for a, n in zip(step.args, shapes, strict=True)]
    found = tiles and tiles(StepAccess(step.shape, shapes, step.params, tuple(turned), b.machine))
    if not found:
        return None
    length, read, result = found
    modes: dict[int, str] = {}
    for a, mode in zip(step.args, read, strict=True):
        if modes.setdefault(a, mode) != mode:  # not to be seen in two ways
            return None
    return length, modes, result


class _Growing:
    """A loop that takes in one step after the other."""

    def __init__(self, b: Builder) -> None:
        self.b = b
        self.rows = 0
        self.steps: list[Step] = []
        self.modes: dict[int, str] = {}
        self.written: set[int] = set()
        self.owners: set[int] = set()
        self.sums: set[int] = set()

    def add(self, step: Step) -> bool:
        """Take the step in, if it can run here."""
        found = reading(self.b, step)
        if found is None:
            return False
        length, modes, mode = found
        rows = self.common(length)
        if rows < 2 or not all(self.readable(a, mode) for a, mode in modes.items()):
            return False
        self.rows = rows
        self.steps.append(step)
        self.modes.update(modes)
        self.written.add(step.out)
        self.owners.add(self.b.owner[step.out])
        if mode == "sum":
            self.sums.add(step.out)
        else:
            self.modes[step.out] = mode
        return True

    def common(self, length: int) -> int:
        """Rows for what is there and an array of this length; 0 if there are none."""
        if not self.rows or self.rows % length == 0:
            return length
        return self.rows if length % self.rows == 0 else 0

    def readable(self, slot: int, mode: str) -> bool:
        """Does every tile find the operand as it needs it?"""
        owner = self.b.owner[slot]
        if owner in self.sums or self.modes.get(slot, mode) != mode:
            return False
        if owner not in self.owners:
            return True
        if slot in self.written or self.b.origin[slot] is VIEW:
            return slot in self.written
        if mode == "whole":
            return False
        # Memory under another shape: its tile has the same entries in the same order.
        alias, made = [self._apart(s, m) for s, m in ((slot, mode), (owner, self.modes[owner]))]
        return alias == made

    def _apart(self, slot: int, mode: str) -> int:
        """Pieces of memory that a tile of an array is made of."""
        return prod(self.b.shapes[slot][:-1]) if mode == "columns" else 1

    def row_entries(self) -> int:
        """Entries of the longest row."""
        shapes = self.b.shapes
        sliced = [a for a, mode in self.modes.items() if mode != "whole"]
        return max([1, *[prod(shapes[a]) // self.rows for a in sliced]])

    def _is_short(self) -> bool:
        """Are there wide arrays, and all of few rows?"""
        shapes, machine = self.b.shapes, self.b.machine
        wide = [shapes[a] for a in self.written if self.modes.get(a) == "columns"]
        rows = [shape[0] for shape in wide if machine.is_wide(shape)]
        return bool(rows) and max(rows) < machine.across

    @property
    def worthwhile(self) -> bool:
        computing = [s for s in self.steps if self.b.origin[s.out] is not VIEW]
        fewest = 2 + self.b.machine.turned * self._turned()
        return len(computing) >= fewest and self.rows * self.row_entries() >= self.b.machine.large

    def _turned(self) -> int:
        """Large transposed matrices of others that are read, of which a tile is slow to read."""
        return sum([
            step.kind == "transpose"
            and step.out in self.modes
            and self.b.owner[step.out] not in self.owners
            and prod(step.shape) >= self.b.machine.large
            for step in self.b.steps
        ])  # fmt: skip

    def finished(self, read: set[int]) -> TiledLoop:
        """The loop, given the owners of memory that others read."""
        machine = self.b.machine
        size = machine.wide_tile if self._is_short() else machine.tile
        tile = min(self.rows, max(1, size // self.row_entries()))
        tile = -(-self.rows // -(-self.rows // tile))  # of equal lengths
        return TiledLoop(
            self.rows,
            tile,
            tuple(beside_each_other(self.steps)),
            self.modes,
            frozenset(self.sums),
            frozenset(self._kept(self.owners & read)),
        )

    def _kept(self, kept: set[int]) -> set[int]:
        """What is read elsewhere, and what one of these is written over: it needs no tile."""
        owner, readers = self.b.owner, dict[int, list[Step]]()
        for step in self.steps:
            for slot in {owner[a] for a in step.args}:
                readers.setdefault(slot, []).append(step)
        for step in reversed(self.steps):
            found = readers.get(step.out, [])
            if self.b.origin[step.out] is BUFFER and len(found) == 1 and found[0].out in kept:
                (reader,) = found
                over = [reader.args[k] for k in KINDS[reader.kind].written_over(len(reader.args))]
                once = [owner[a] for a in reader.args].count(step.out) == 1
                same = self.modes.get(step.out) == self.modes.get(reader.out)
                whole = [a for a in over if a != step.out and self._is_whole(a, reader, kept)]
                if step.out in over and once and same and not whole and step.shape == reader.shape:
                    kept.add(step.out)
        return kept

    def _is_whole(self, slot: int, reader: Step, kept: Set[int]) -> bool:
        """Could a step be written over this slot instead, which a block holds in any case?"""
        home = self.b.owner[slot]
        held = home in kept or home not in self.owners
        return held and self.b.origin[slot] is BUFFER and self.b.shapes[slot] == reader.shape


# --- grouping -------------------------------------------------------------------------------------


def grouped(b: Builder, results: Sequence[int]) -> list[Step | TiledLoop]:
    """The steps of a plan in an order of execution, runs of them as loops."""
    delay_in_place(b)
    large = b.machine.large
    if "tile" not in b.machine.forms or not any(prod(s.shape) >= large for s in b.steps):
        return list(b.steps)
    hasten_integers(b)
    hasten_reductions(b)
    eras = _eras(b)
    wide = [step for step in b.steps if b.machine.is_wide(step.shape)]
    lengths = {step.shape[-1] for step in wide if is_large(b, step)}
    units: list[Step | _Growing] = []
    waiting, order = list(b.steps), {step.out: k for k, step in enumerate(b.steps)}
    while waiting:
        loop, before, waiting = _next_loop(b, waiting, eras, lengths)
        if loop.worthwhile:
            units += [*before, loop]
        else:  # in the order that they had: operands of what waits are held for longer
            before = sorted(before + loop.steps, key=lambda step: order[step.out])
            units += before
    units = _without_unused(b, _Copies(b).made_again(units), results)
    read = {b.owner[slot] for slot in results} | _read_elsewhere(b, units)
    return [unit.finished(read) if isinstance(unit, _Growing) else unit for unit in units]


def _eras(b: Builder) -> dict[int, int]:
    """A large step that cannot run in a loop ends an era; loops do not reach over its end."""
    eras, era = {}, 0
    for step in b.steps:
        era += is_large(b, step) and reading(b, step) is None
        eras[step.out] = era
    return eras


def _without_unused(
    b: Builder, units: Sequence[Step | _Growing], results: Sequence[int]
) -> list[Step | _Growing]:
    """The units without steps that nobody reads; the builder's steps become theirs."""
    b.steps = [s for unit in units for s in _steps_of(unit)]
    b.drop_unused(results)
    used = {step.out for step in b.steps}
    kept: list[Step | _Growing] = []
    for unit in units:
        steps = [step for step in _steps_of(unit) if step.out in used]
        loop = _loop_of(b, steps) if isinstance(unit, _Growing) else None
        kept += [loop] if loop is not None and loop.worthwhile else steps
    return kept


def _steps_of(unit: Step | _Growing) -> list[Step]:
    return unit.steps if isinstance(unit, _Growing) else [unit]


def _loop_of(b: Builder, steps: Sequence[Step]) -> _Growing | None:
    """The loop of these steps, if they all can run in one."""
    loop = _Growing(b)
    return loop if all(map(loop.add, steps)) else None


def _next_loop(
    b: Builder, steps: list[Step], eras: Mapping[int, int], lengths: Collection[int]
) -> tuple[_Growing, list[Step], list[Step]]:
    """A loop of steps of one era, the steps before it, and the steps after it."""
    loop = _Growing(b)
    before: list[Step] = []
    after: list[Step] = []
    late: set[int] = set()
    read: set[int] = set()  # what later steps read, which others wait for
    for k, step in enumerate(steps):
        if len(after) > WINDOW:
            return loop, before, after + steps[k:]
        owners = {b.owner[a] for a in step.args}
        inside = bool(owners & loop.owners)
        computes = inside or is_large(b, step) or _along(b, step, lengths)
        wanted = computes and step.out not in b.fixed
        same = not loop.steps or eras[step.out] == eras[loop.steps[0].out]
        if same and wanted and not owners & late and loop.add(step):
            continue
        waits = KINDS[step.kind].waits and b.owner[step.args[0]] in read
        if owners & late or inside or waits or (loop.steps and wanted and reading(b, step)):
            after.append(step)
            late.add(b.owner[step.out])
            read |= owners
        else:
            before.append(step)
    return loop, before, after


def _along(b: Builder, step: Step, lengths: Collection[int]) -> bool:
    """Does the step compute with as many rows as a large wide array has?"""
    if b.origin[step.out] is VIEW or not (b.machine.is_wide(step.shape) or len(step.shape) == 1):
        return False
    return step.shape[-1] in lengths


def _read_elsewhere(b: Builder, units: Sequence[Step | _Growing]) -> set[int]:
    """Owners of memory that is written in a loop and read outside it."""
    home = {owner: unit for unit in units if isinstance(unit, _Growing) for owner in unit.owners}
    return {
        b.owner[a]
        for unit in units
        for step in _steps_of(unit)
        for a in step.args
        if home.get(b.owner[a], unit) is not unit
    }


# --- arrays made again ----------------------------------------------------------------------------


class _Copies:
    """Large arrays made from small ones by a few quick steps: loops that read one make their own.

    Reading it from memory would take as long, and until the last loop it would be held there.
    """

    def __init__(self, b: Builder) -> None:
        self.b = b
        self.maker = {step.out: step for step in b.steps}
        self.length: dict[int, int] = {}
        self.copies: dict[int, int] = {}
        self.steps: list[Step] = []

    def made_again(self, units: Sequence[Step | _Growing]) -> list[Step | _Growing]:
        return [self.remade(unit) if isinstance(unit, _Growing) else unit for unit in units]

    def remade(self, loop: _Growing) -> _Growing:
        """The loop with such arrays of others made in it, where a tile can be made of tiles."""
        new = _Growing(self.b)
        self.copies = {}
        for step in loop.steps:
            kept, self.steps = dict(self.copies), []
            args = [a if self.b.owner[a] in loop.owners else self.copy(a) for a in step.args]
            if not all(new.add(s) for s in [*self.steps, step._replace(args=tuple(args))]):
                self.copies = kept
                if not new.add(step):
                    return loop
        return new

    def chain(self, owner: int) -> int:
        """Quick steps that make an array from small ones; more than the machine's chain if dear."""
        if owner in self.length:
            return self.length[owner]
        b, step, found = self.b, self.maker.get(owner), 1
        size = prod(b.shapes[owner])
        if step is None or not KINDS[step.kind].quick or owner in b.fixed or size < b.machine.large:
            found = b.machine.chain + 1
        else:
            for source in {b.owner[a] for a in step.args}:
                if 4 * prod(b.shapes[source]) > size:
                    found += self.chain(source)
        self.length[owner] = found
        return found

    def copy(self, slot: int) -> int:
        """The slot made again, in the same way; views and other shapes of one memory included."""
        b, owner = self.b, self.b.owner[slot]
        if self.chain(owner) > b.machine.chain:
            return slot
        if slot not in self.copies:
            step, origin = self.maker.get(slot), b.origin[slot]
            if step is None:
                new = self.copy(owner)
                self.copies[slot] = b.slot(b.shapes[slot], origin, new, b.names[new])
            else:
                args = tuple([self.copy(a) for a in step.args])
                source = args[0] if origin is VIEW else None
                new = self.copies[slot] = b.slot(step.shape, origin, source)
                if slot in b.turned:
                    b.turned.add(new)
                self.steps.append(step._replace(out=new, args=args))
        return self.copies[slot]
