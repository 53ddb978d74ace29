"""A plan as data: a straight list of steps over slots.

A slot holds one array. A step reads slots and writes one; equal steps are made once. What a slot's
memory is (an input, a view, a block of the workspace, an output) is part of the plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from ..support import html
from ..support.arrays import Sizes
from ..support.byte_counts import show_bytes
from ..support.records import NamedTuple, record
from .kinds.table import KINDS

Word = tuple[int, ...]
#: A slot and the labels of its axes.
SlotWord = tuple[int, Word]
#: Words of two slots with labels numbered in order, and the numbers that are not summed.
ProductKey = tuple[tuple[Word, ...], Word]

#: Where the memory of a slot comes from.
INPUT, CONST, BUFFER, VIEW, RESULT = "input", "const", "buffer", "view", "result"


_LETTERS = "ijklmnopqrstuvwxyzabcdefgh"


def letters(word: Word) -> str:
    return "".join(_LETTERS[k] if k < len(_LETTERS) else f"<{k}>" for k in word)


def _shape_text(shape: Sizes) -> str:
    return "×".join(map(str, shape)) or "scalar"


class Step(NamedTuple):
    """One line of a plan.

    Attributes
    ----------
    kind : str
        What is done: a key of `KINDS`, and of a back end's table of kernels.
    out, args : int and tuple of int
        Slot written, slots read.
    words : tuple of tuple of int
        Index labels of every slot read and, last, of the result, for readers of the plan alone.
    shape : tuple of int
        Extents of the result.
    flops : float
        Additions and multiplications.
    params : tuple
        Whatever else the kernel needs, as the kind says: axes, a number, an operator.
    names : sequence of str
        Names of all slots of the plan.
    """

    kind: str
    out: int
    args: tuple[int, ...]
    words: tuple[Word, ...]
    shape: Sizes
    flops: float
    params: tuple[Any, ...]
    names: Sequence[str]

    def __str__(self) -> str:
        order: dict[int, int] = {}
        spelled = [
            letters(tuple([order.setdefault(label, len(order)) for label in word]))
            for word in self.words
        ]
        operands = [
            f"{self.names[a]}[{word}]" if word else self.names[a]
            for a, word in zip(self.args, spelled, strict=False)
        ]
        operands += [f"{p:.6g}" for p in self.params if isinstance(p, float)]
        operator = self.params[0] if KINDS[self.kind].operator else self.kind
        result = f"{self.names[self.out]} = {operator}({', '.join(operands)})"
        return f"{result} -> [{spelled[-1] if spelled else ''}]  {_shape_text(self.shape)}"


class TiledLoop(NamedTuple):
    """Steps that run tile by tile over the rows of their results.

    Attributes
    ----------
    rows, tile : int
        Number of rows in all and in a tile; the first axis of what is sliced is a multiple of it.
    steps : tuple of Step
    modes : mapping
        How a tile sees a slot: its "rows", the "columns" of a transposed view, or the "whole".
    sums : frozenset of int
        Slots that are accumulated over the tiles.
    kept : frozenset of int
        Owners of memory written here and read elsewhere; the rest exists for one tile.
    """

    rows: int
    tile: int
    steps: tuple[Step, ...]
    modes: Mapping[int, str]
    sums: frozenset[int]
    kept: frozenset[int]


Unit = Step | TiledLoop


def _tiled(loop: TiledLoop) -> str:
    return f"for {loop.tile} of {loop.rows} rows at a time:"


def steps_of(unit: Unit) -> tuple[Step, ...]:
    return unit.steps if isinstance(unit, TiledLoop) else (unit,)


def speed_name(step: Step) -> str:
    """The speed of its kind; a kernel of matrices for NumPy only is a call of LAPACK."""
    matrices = step.kind == "kernel" and 2 in step.params[0].core
    return "factorisation" if matrices and step.params[0].kernels.host else KINDS[step.kind].speed


class Output(NamedTuple):
    """A slot that is returned, its axes in the order `perm` (None: as they are)."""

    slot: int
    perm: Word | None


def returned(steps: Iterable[Step], owner: Sequence[int]) -> dict[int, frozenset[int]]:
    """By owner: the owners of operands whose memory the step that made it may return."""
    return {
        owner[step.out]: frozenset([owner[a] for a in step.args])
        for step in steps
        if KINDS[step.kind].may_return(step.params)
    }


@record(frozen=True, eq=False)
class Plan:
    """How numbers are computed: steps, memory, and predicted cost.

    Attributes
    ----------
    inputs : tuple of str
        Variables read; input k is slot k.
    fixed : frozenset of int
        Slots that depend on constants and bound data only, computed once.
    units : tuple of Step and TiledLoop
        In the order of execution.
    flops : float
        Predicted operations; a multiply and an add count two.
    peak_bytes : int
        Predicted peak of the memory allocated by a call: workspace and outputs, without inputs.
    """

    inputs: tuple[str, ...]
    consts: Mapping[int, np.ndarray]
    integers: frozenset[int]
    fixed: frozenset[int]
    units: tuple[Unit, ...]
    shapes: Sequence[Sizes]
    origin: Sequence[str]
    owner: Sequence[int]
    home: Sequence[int | None]
    blocks: tuple[int, ...]
    outputs: tuple[Output, ...]
    last_use: Mapping[int, int]
    names: Sequence[str]
    itemsize: int
    flops: float
    peak_bytes: int
    note: str = ""

    # Back ends ask these for every function that they write of a plan: each is one walk a plan.

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        return tuple([step for unit in self.units for step in steps_of(unit)])

    @cached_property
    def by_kind(self) -> Mapping[str, tuple[Step, ...]]:
        """The steps of each kind that there is."""
        found: dict[str, list[Step]] = {}
        for step in self.steps:
            found.setdefault(step.kind, []).append(step)
        return {kind: tuple(steps) for kind, steps in found.items()}

    @cached_property
    def integral(self) -> frozenset[int]:
        """Slots that hold integers: inputs, what is made of them, and views."""
        found = set(self.integers)
        for step in self.steps:
            view = self.origin[step.out] is VIEW and step.args[0] in found
            if view or KINDS[step.kind].integral:
                found.add(step.out)
        return frozenset(found)

    @cached_property
    def readers(self) -> Mapping[int, frozenset[int]]:
        """What is made from each slot that owns memory, or from a view of it."""
        found: dict[int, set[int]] = {}
        for step in self.steps:
            for a in step.args:
                found.setdefault(self.owner[a], set()).add(step.out)
        return {owner: frozenset(made) for owner, made in found.items()}

    @cached_property
    def returned(self) -> Mapping[int, frozenset[int]]:
        """By owner: the owners of operands whose memory the step that made it may return."""
        return returned(self.steps, self.owner)

    @cached_property
    def transposed(self) -> Mapping[int, int]:
        """Transposed slots, and what they are transposes of."""
        return {step.out: step.args[0] for step in self.by_kind.get("transpose", ())}

    @property
    def flops_once(self) -> float:
        """The operations of what depends on constants and bound data only."""
        return sum([step.flops for step in self.steps if step.out in self.fixed])

    @property
    def largest(self) -> Step | None:
        """The step with the largest result in memory of its own."""
        made = [s for s in self.steps if self.origin[s.out] is not VIEW]
        return max(made, key=lambda s: prod(s.shape), default=None)

    def __str__(self) -> str:
        lines = [self.note] if self.note else []
        lines += [
            self._inputs(),
            *[line for unit in self.units for line in self._lines(unit)],
            "return "
            + ", ".join(
                self.names[o.slot] + (f".transpose{o.perm}" if o.perm else "") for o in self.outputs
            ),
            self._total(),
        ]
        return "\n".join(lines)

    def _inputs(self) -> str:
        return f"inputs: {', '.join(self.inputs) or 'none'}"

    def _total(self) -> str:
        return f"{self.flops:.3g} operations, {show_bytes(self.peak_bytes)} at the peak"

    def _repr_html_(self) -> str:
        """For notebooks: a row for each step."""
        rows: list[Sequence[object]] = []
        for unit in self.units:
            loop = isinstance(unit, TiledLoop)
            if isinstance(unit, TiledLoop):
                rows.append((_tiled(unit), "", "", ""))
            for step in steps_of(unit):
                once = "once" if step.out in self.fixed else ""
                shown = str(step).rpartition("  ")[0]
                flops = f"{step.flops:.3g}"
                rows.append(("\u2003" * loop + shown, _shape_text(step.shape), flops, once))
        title = "; ".join([*([self.note] if self.note else []), self._inputs()])
        head = ("step", "shape", "operations", "")
        return html.table(title, head, rows, [self._total()])

    def _lines(self, unit: Unit) -> list[str]:
        if isinstance(unit, TiledLoop):
            return [_tiled(unit), *[f"    {step}" for step in unit.steps]]
        head = f"{unit}{'  once' if unit.out in self.fixed else ''}"
        inner = [p for p in unit.params if isinstance(p, Plan)]
        return [head, *[f"    {line}" for plan in inner for line in str(plan).splitlines()]]
