"""What runs inside of a task: the plan of one part of the rows, and combining of parts."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..graph.nodes import Expr
from ..graph.operators import Op
from ..partition.combinations import COMBINATIONS, Part
from ..run.compiled import Compiled
from ..support.arrays import Array

#: Programs that a process keeps, by the bytes that they come as: others are made again.
MAX_PROGRAMS = 64


class Settings(NamedTuple):
    """What all programs of a compiled function have in common."""

    limit: int | None
    check: bool
    threads: int


class PartWork:
    """What is computed of each part of the rows.

    Its pickle is small: the expressions, no arrays and no plans; a process that has seen it has its
    program, with the plans for all sizes that came.

    Parameters
    ----------
    outputs : sequence of Expr
        Of one part of the rows.
    groups : sequence of (Op or None, int)
        What combines them, so many together; empty where results stay by rows.
    names : sequence of str
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
        self.payload = pickle.dumps((list(outputs), tuple(groups), tuple(names), settings))

    @property
    def program(self) -> Compiled:
        return _opened(self.payload)[0]

    def with_known(self, known: Mapping[str, Any], dtype: np.dtype[Any]) -> PartCall:
        """The work at values of all variables but those of the blocks."""
        return PartCall(self.payload, {k: in_dtype(v, dtype) for k, v in known.items()}, dtype)


class PartCall:
    """The work on each part of the rows, at values of all other variables.

    Floats are computed with in one dtype, that of all data, whatever a part reads of them.
    """

    def __init__(self, payload: bytes, known: Mapping[str, Any], dtype: np.dtype[Any]) -> None:
        self._payload, self._known, self._dtype = payload, known, dtype

    def of_block(self, block: Sequence[Any]) -> list[Array]:
        """The outputs for one part of the rows, given its blocks."""
        program, _, names = _opened(self._payload)
        rows = [in_dtype(a, self._dtype) for a in block]
        found: list[Array] = program({**self._known, **dict(zip(names, rows, strict=True))})
        return found

    def of_blocks(self, blocks: Sequence[Sequence[Any]]) -> list[Part]:
        """The outputs for parts that follow each other, combined."""
        _, groups, _ = _opened(self._payload)
        found = []
        for block in blocks:
            outputs = iter(self.of_block(block))
            found.append([tuple([next(outputs) for _ in range(size)]) for _, size in groups])
        return self.combined(found)

    def combined(self, items: Sequence[list[Part]]) -> list[Part]:
        """What parts give, one after the other, as what all of them give."""
        _, groups, _ = _opened(self._payload)
        whole = items[0]
        for more in items[1:]:
            whole = [
                COMBINATIONS[op].combine(one, other)
                for (op, _), one, other in zip(groups, whole, more, strict=True)
            ]
        return whole


@lru_cache(MAX_PROGRAMS)
def _opened(payload: bytes) -> tuple[Compiled, tuple[tuple[Op | None, int], ...], tuple[str, ...]]:
    outputs, groups, names, settings = pickle.loads(payload)
    limit, check, threads = settings
    return Compiled(outputs, None, "numpy", None, limit, check, threads), groups, names


def in_dtype(value: Any, dtype: np.dtype[Any]) -> Any:
    """Floats in this dtype; integers, and numbers of Python's, as they are."""
    kind = getattr(value, "dtype", None)
    if kind is None or kind.kind != "f" or kind == dtype:
        return value
    return value.astype(dtype)
