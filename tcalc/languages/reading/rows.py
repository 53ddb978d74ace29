"""Rows of the operator table as texts call them: by name, with parameters behind their operands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ...graph.applications import apply, apply_all
from ...graph.nodes import Const, Expr
from ...graph.operators import TABLE, Loop, Op, Selection
from ...graph.variables import const_node
from ...ops.matrix.divided_differences import Scalar
from ...ops.matrix.spectral import spectral_row, trace_row
from ...support.records import NamedTuple
from .parameters import as_stated, fault

_DERIVED = re.compile(r"(\w+)_frechet(\d?)")

spectral_row(0)  # members of families are made when they are asked for
trace_row()


class RowCall(NamedTuple):
    """A row, and which of its results a name means: -1 where there is one."""

    op: Op
    part: int

    @property
    def parameters(self) -> bool:
        """Has it parameters behind its operands? Elementwise rows have none."""
        return not (self.op.elementwise and self.op.core)

    @property
    def operands(self) -> int:
        """How many operands formulas show."""
        return len(self.op.spelling.shown or self.op.core)


def row_named(name: str) -> RowCall | None:
    """The row that a name means, alone or as one of its results; None for other names."""
    op = TABLE.get(name) or _member(name)
    if op is not None and op.outputs == 1:
        return RowCall(op, -1)
    rows = [op for op in TABLE.values() if name in op.parts and not isinstance(op, Loop)]
    return RowCall(rows[0], rows[0].parts.index(name)) if rows else None


def _member(name: str) -> Op | None:
    """The row of a derivative, which may not have been made before."""
    found = _DERIVED.fullmatch(name)
    first = TABLE.get(found[1]) if found else None
    if found is None or first is None or not first.family:
        return None
    maker, *given, _ = first.family
    made: Op = maker(*given, int(found[2] or 1))
    return made


def applied_row(row: RowCall, operands: Sequence[Expr], params: Sequence[Any]) -> Expr:
    """The row applied.

    Parameters
    ----------
    row : RowCall
    operands : sequence of Expr
    params : sequence
        Its parameters, functions of one number ``x`` as expressions.

    Raises
    ------
    ValueError
        Where one is none of this row; ShapeError where operands do not fit.
    """
    op = row.op
    if not (params or op.spelling.parameters or not op.params):
        (params, *_) = op.params  # formulas do not write them
    if len(operands) != len(op.core):
        raise ValueError(f"it has {len(op.core)} operands, not {len(operands)}")
    row = next((kin for kin in _kin(row) if not fault(kin.op, params)), row)
    op = row.op
    if problem := fault(op, params):
        raise ValueError(problem)
    for e, core in zip(operands, op.cores(tuple(params)), strict=True):
        if not 0 <= core <= e.ndim:
            raise ValueError(f"it takes arrays of at least {core} axes, not {e.ndim}")
    if isinstance(op, Selection):
        operands = [_integers(e) for e in operands]
    order = max(0, len(operands) - 3)  # of the derivative: A, its eigenvalues, its eigenvectors
    given = tuple([Scalar(p, order) if isinstance(p, Expr) else p for p in as_stated(op, params)])
    if row.part < 0:
        found = apply(op, *operands, params=given)
    else:
        found = apply_all(op, *operands, params=given)[row.part]
    if any(isinstance(extent, int) and extent < 0 for extent in found.shape):
        raise ValueError("an extent is negative")
    return found


def _kin(row: RowCall) -> list[RowCall]:
    """The row, and those that have a result of the same name."""
    if row.part < 0:
        return [row]
    name = row.op.parts[row.part]
    kin = [op for op in TABLE.values() if name in op.parts and len(op.core) == len(row.op.core)]
    return [row, *[RowCall(op, op.parts.index(name)) for op in kin]]


def _integers(e: Expr) -> Expr:
    """Constant integers as an index has them."""
    return const_node(e.value.astype("int64")) if isinstance(e, Const) else e
