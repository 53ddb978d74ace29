"""Stages of passes: what is known before, what parts compute, how many blocks a task takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, prod
from typing import Any

import numpy as np

from ..graph.extents import extent_of
from ..graph.nodes import Expr, dimensions, variables
from ..graph.operators import Op
from ..partition.found import ByRows, Known
from ..partition.passes import Passes
from ..plan.lowering.make import predicted_time
from ..plan.steps import Plan
from ..run.compiled import Compiled
from ..support.lazy_arrays import dask
from ..support.machine import NOMINAL_MACHINE
from .graphs import Rows
from .tasks import PartCall, PartWork, Settings, in_dtype

#: Seconds of work that a task is worth: scheduling and moving one takes several milliseconds. Of
#: dask's configuration, and what holds where that says nothing.
SETTING, WORTH = "tcalc.task-seconds", 0.1
#: Seconds of one elementwise operation, the unit of predicted times.
SECONDS = 1e-9
#: Seconds that a block takes of its task besides the work: some 20 µs of Python are the plan's, the
#: others those of scheduler and worker, who look it up. No more than a thousand make 0.1 s.
EACH = 1e-4
#: Bytes of blocks that one task holds, where it takes more than one.
HELD = 64 << 20


def evaluator(exprs: Any, settings: Settings) -> Compiled:
    """What is computed between passes, on one machine."""
    limit, check, threads = settings
    return Compiled(exprs, None, "numpy", None, limit, check, threads)


class Stage:
    """Expressions that parts of the rows compute, after so many passes.

    Attributes
    ----------
    work : PartWork
    blocks : list of str
        The variables by rows that they read, those sliced of known values last.
    """

    def __init__(
        self,
        passes: Passes,
        outputs: Sequence[Expr],
        groups: Sequence[tuple[Op | None, int]],
        settings: Settings,
    ) -> None:
        self._passes = passes
        read = variables(outputs)
        needed = passes.needed(outputs)
        self.sliced = {v.name: passes.sliced[v] for v in needed if v in passes.sliced}
        places = [v for v in needed if v.name in self.sliced and passes.sliced[v].places]
        #: Extents that are the rows of a part, or at most these.
        self._extents = [passes.extent, *[str(v.shape[0]) for v in places]]
        own = [v.name for v in (*passes.rows, *passes.made) if v.name in read]
        self.blocks = [*own, *self.sliced]
        self._between = evaluator({v.name: passes.value_of(v).expr for v in needed}, settings)
        self._dimensions = dimensions(outputs)
        taken = {*own, *[v.name for v in needed]}
        self._given = [*[name for name in read if name not in taken], *self._dimensions]
        self.work = PartWork(outputs, groups, self.blocks, settings)
        self._plans: dict[int, Plan] = {}

    def known(self, env: Mapping[str, Any]) -> dict[str, Any]:
        """What parts of the rows are sent, and what is sliced for them."""
        found = {name: env[name] for name in self._given if name in env}
        return {**found, **self._between(env)}

    def call(self, known: Mapping[str, Any], dtype: np.dtype[Any]) -> PartCall:
        sent = {name: value for name, value in known.items() if name not in self.sliced}
        return PartCall(self.work, sent, dtype)

    def plan(self, sizes: Mapping[str, int], rows: int) -> Plan:
        """The plan of a part of so many rows."""
        if rows not in self._plans:
            known = dict(sizes) | dict.fromkeys(self._extents, rows)
            given = {name: known[name] for name in self._dimensions if name in known}
            self._plans[rows] = self.work.program.plan_for(**given)
        return self._plans[rows]

    def grouped(self, rows: Rows, sizes: Mapping[str, int]) -> list[list[int]]:
        """The numbers of the blocks that each task takes: as many as make it worth one."""
        largest = max(rows.sizes)
        time = EACH + SECONDS * predicted_time(self.plan(sizes, largest), NOMINAL_MACHINE)
        held = sum([prod(a.chunksize) * a.dtype.itemsize for a in rows.arrays.values()])
        worth = dask("config").get(SETTING, WORTH)
        count = max(1, min(ceil(worth / time), HELD // max(1, held)))
        full = [k for k, size in enumerate(rows.sizes) if size] or [0]
        return [full[k : k + count] for k in range(0, len(full), count)]


class Staged:
    """All that passes over the rows need, for one set of extents.

    Attributes
    ----------
    passes : Passes
    reducing : list of Stage
        One a pass.
    made : dict
        The stage of each value by rows that passes read.
    staying : list of (Stage, places)
        What stays by rows, by the number of passes before; the places among the outputs.
    """

    def __init__(self, passes: Passes, sizes: Mapping[str, int], settings: Settings) -> None:
        self.passes, self.sizes = passes, dict(sizes)
        self.reducing = [self._reducing(k, settings) for k in range(passes.number)]
        self.made = {v: Stage(passes, [one.expr], (), settings) for v, one in passes.made.items()}
        outputs = list(enumerate(passes.outputs))
        self.staying: list[tuple[Stage, list[int]]] = []
        for number in range(passes.number + 1):
            found = {k: o for k, o in outputs if isinstance(o, ByRows) and o.passes == number}
            exprs = [one.expr for one in found.values()]
            stage = Stage(passes, exprs, (), settings) if exprs else None
            self.staying += [(stage, list(found))] if stage else []
        self.known = [k for k, one in outputs if isinstance(one, Known)]
        self.last = evaluator([passes.outputs[k].expr for k in self.known], settings)

    def _reducing(self, number: int, settings: Settings) -> Stage:
        reductions = self.passes.reduced_in(number)
        parts = [part for r in reductions for part in r.parts]
        return Stage(self.passes, parts, [(r.op, len(r.parts)) for r in reductions], settings)

    def extended(
        self, env: Mapping[str, Any], number: int, results: Any, dtype: np.dtype[Any]
    ) -> dict[str, Any]:
        """What is known with the results of a pass."""
        reductions = self.passes.reduced_in(number)
        found = {
            v.name: in_dtype(value, dtype)
            for r, whole in zip(reductions, results, strict=True)
            for v, value in zip(r.results, whole, strict=True)
        }
        return {**env, **found}

    def shape(self, e: Expr, rows: int) -> tuple[int, ...]:
        """The shape of a value of parts, over all rows."""
        known = {**self.sizes, self.passes.extent: rows}
        return tuple([extent_of(extent, known) for extent in e.shape])
