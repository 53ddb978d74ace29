"""What runs inside of a task: the plan of one part of the rows, and combining of parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..graph.nodes import Expr
from ..graph.operators import Op
from ..partition.combinations import COMBINATIONS, Part
from ..run.compiled import Compiled
from ..support.arrays import Array
from ..support.records import NamedTuple

#: Programs that a process keeps: others are made again.
MAX_PROGRAMS = 64


class Settings(NamedTuple):
    """What all programs of a compiled function have in common."""

    limit: int | None
    check: bool
    threads: int


class PartWork:
    """What is computed of each part of the rows.

    Its pickle is small: the expressions, no arrays and no plans. A process that has seen it keeps
    its program, with the plans for all sizes that came.

    Attributes
    ----------
    outputs : tuple of Expr
        Of one part of the rows.
    groups : tuple of (Op or None, int)
        What combines them, so many together; empty where results stay by rows.
    names : tuple of str
        The variables of the blocks, in their order.
    settings : Settings
    """

    def __init__(
        self,
        outputs: Sequence[Expr],
        groups: Sequence[tuple[Op | None, int]],
        names: Sequence[str],
        settings: Settings,
    ) -> None:
        self.outputs, self.groups, self.names = tuple(outputs), tuple(groups), tuple(names)
        self.settings = settings

    def __reduce__(self) -> tuple[Any, ...]:
        return _kept, (self.outputs, self.groups, self.names, self.settings)

    @cached_property
    def program(self) -> Compiled:
        limit, check, threads = self.settings
        return Compiled(list(self.outputs), None, "numpy", None, limit, check, threads)

    def combined(self, items: Iterable[list[Part]]) -> list[Part]:
        """What parts give, one after the other, as what all of them give.

        Each is asked for when those before it are one; none of them is written to.
        """
        rest = iter(items)
        whole, own = next(rest), False
        for more in rest:
            whole = [
                COMBINATIONS[op].combine(one, other, own)
                for (op, _), one, other in zip(self.groups, whole, more, strict=True)
            ]
            own = True
        return whole


class PartCall:
    """The work on each part of the rows, at values of all variables but those of the blocks.

    Floats are computed with in one dtype, that of all data, whatever a part reads of them.
    """

    def __init__(self, work: PartWork, known: Mapping[str, Any], dtype: np.dtype[Any]) -> None:
        self.work, self._dtype = work, dtype
        self._known = {name: in_dtype(value, dtype) for name, value in known.items()}

    def of_block(self, block: Sequence[Any]) -> list[Array]:
        """The outputs for one part of the rows, given its blocks."""
        rows = [in_dtype(a, self._dtype) for a in block]
        named = dict(zip(self.work.names, rows, strict=True))
        found: list[Array] = self.work.program({**self._known, **named})
        return found

    def of_blocks(self, blocks: Sequence[Sequence[Any]]) -> list[Part]:
        """The outputs for parts that follow each other, combined."""
        return self.work.combined(map(self._parts, blocks))

    def _parts(self, block: Sequence[Any]) -> list[Part]:
        outputs = iter(self.of_block(block))
        return [tuple([next(outputs) for _ in range(size)]) for _, size in self.work.groups]


_works: dict[Any, PartWork] = {}


def _kept(outputs: tuple[Expr, ...], *others: Any) -> PartWork:
    """The work that this process has kept, or a new one: equal expressions are one object."""
    key = (tuple(map(id, outputs)), *others)
    found = _works.get(key)
    if found is None:
        if len(_works) >= MAX_PROGRAMS:
            _works.pop(next(iter(_works)), None)
        found = _works[key] = PartWork(outputs, *others)
    return found


def in_dtype(value: Any, dtype: np.dtype[Any]) -> Any:
    """Floats in this dtype; integers, and numbers of Python's, as they are."""
    kind = getattr(value, "dtype", None)
    if kind is None or kind.kind != "f" or kind == dtype:
        return value
    return value.astype(dtype)
