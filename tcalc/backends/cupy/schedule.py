"""Which steps of a plan are one kernel."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from ...plan.steps import Step
from ..c.spelling import entry_of
from .fusion import REACH, FusedSteps, FusedSum
from .library import CuPy
from .pieces import Layout, Piece, Single


class Schedule:
    """Steps of one program as pieces, in an order in which they can be run.

    Parameters
    ----------
    single : callable
        A step as a piece of its own.
    returned : collection of int
        Slots that others than these steps read.
    """

    def __init__(
        self,
        layout: Layout,
        dtype: np.dtype[Any],
        xp: CuPy,
        single: Single,
        returned: Collection[int],
    ) -> None:
        self._layout, self._dtype, self._xp = layout, dtype, xp
        self._single, self._returned = single, returned
        self._pieces: list[Piece] = []
        #: For every slot the piece that makes it, and the steps that read it.
        self._made: dict[int, int] = {}
        self._readers: dict[int, list[Step]] = {}

    def of(self, steps: Sequence[Step]) -> list[Piece]:
        for step in steps:
            for a in step.args:
                self._readers.setdefault(self._layout.holder(a), []).append(step)
        for step in steps:
            if self._entrywise(step):
                self._join(step)
            else:
                self._append(self._inner(step) or self._single(step), step)
        pieces = [self._with_run(piece) for piece in self._pieces]
        absorbed = {id(p.before) for p in pieces if isinstance(p, FusedSum)}
        found = [p for p in pieces if id(p) not in absorbed]
        for piece in found:
            if isinstance(piece, FusedSteps):
                piece.stored = [s.out for s in piece.steps if self._read_outside(s.out, piece)]
        return found

    def _read_outside(self, slot: int, run: FusedSteps) -> bool:
        own = {id(step) for step in run.steps}
        return slot in self._returned or any(id(r) not in own for r in self._readers.get(slot, ()))

    def _append(self, piece: Piece, step: Step) -> None:
        self._made[step.out] = len(self._pieces)
        self._pieces.append(piece)

    # --- entrywise steps --------------------------------------------------------------------------

    def _entrywise(self, step: Step) -> bool:
        """Is an entry of the result spelled by entries of arrays of reals?"""
        if step.kind in ("factor", "fill") or not entry_of(step, ""):
            return False
        return bool(step.args) and not any(map(self._layout.integral, step.args))

    def _join(self, step: Step) -> None:
        """Put a step into the last run of its shape behind all that it reads."""
        first = max([self._made.get(self._layout.holder(a), -1) for a in step.args], default=-1)
        least = max(first, len(self._pieces) - REACH, 0)
        for k in reversed(range(least, len(self._pieces))):
            piece = self._pieces[k]
            if not isinstance(piece, FusedSteps) or piece.shape != step.shape:
                continue
            if piece.takes(step) and (k > first or self._inside(piece, step.args)):
                piece.steps.append(step)
                self._made[step.out] = k
                return
        piece = FusedSteps(self._layout, step.shape, self._dtype, self._xp)
        piece.steps.append(step)
        self._append(piece, step)

    def _inside(self, run: FusedSteps, args: Sequence[int]) -> bool:
        """Is what is read of a run an entry that it makes, and not its array in another shape?"""
        made = run.all_made
        return all(a in made or self._layout.holder(a) not in made for a in args)

    # --- sums -------------------------------------------------------------------------------------

    def _inner(self, step: Step) -> FusedSum | None:
        """An inner product as the sum of products, which are never stored."""
        shapes = [self._layout.plan.shapes[a] for a in step.args]
        vectors = step.kind == "dot" and all(len(shape) == 1 for shape in shapes)
        if not (step.kind == "vecdot" or vectors) or any(map(self._layout.integral, step.args)):
            return None
        shape = np.broadcast_shapes(*shapes)
        piece = FusedSteps(self._layout, shape, self._dtype, self._xp)
        piece.steps.append(step._replace(kind="multiply", shape=shape))
        return FusedSum(step, piece, (len(shape) - 1,))

    def _with_run(self, piece: Piece) -> Piece:
        """A sum with the run before it, where nothing else reads what that makes."""
        if isinstance(piece, FusedSum):
            operands, after, axes = piece.step.args, piece.before.steps, piece.axes
        elif piece.step.kind == "sum" and not isinstance(piece, FusedSteps):
            operands, after, axes = piece.step.args, [], tuple(piece.step.params)
        else:
            return piece
        run = self._run_before(piece.step, operands)
        if run is None:
            return piece
        run.steps += after
        return FusedSum(piece.step, run, axes)

    def _run_before(self, step: Step, operands: Sequence[int]) -> FusedSteps | None:
        """The one run that makes entries which this step alone reads, each as it is made."""
        places = {self._made[a] for a in operands if a in self._made}
        runs = [p for k in places if isinstance(p := self._pieces[k], FusedSteps)]
        if len(runs) != 1:
            return None
        (run,) = runs
        own = {id(one) for one in (*run.steps, step)}
        whole = np.broadcast_shapes(*[self._layout.plan.shapes[a] for a in operands])
        alone = all(
            s.out not in self._returned and all(id(r) in own for r in self._readers.get(s.out, ()))
            for s in run.steps
        )
        direct = all(
            a in run.all_made or self._layout.holder(a) not in run.all_made for a in operands
        )
        last = run.steps[-1].out in operands or len(operands) > 1
        return run if alone and direct and last and run.shape == whole and run.steps else None
