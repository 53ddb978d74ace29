"""Rows of the operator table as the einsum language calls them: by name, with their parameters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...graph.applications import apply, apply_all
from ...graph.extents import Extent, affine_extent, form_of
from ...graph.nodes import Const, Expr
from ...graph.operators import TABLE, Indicator, Loop, Op, Selection
from ...graph.variables import const_node
from ...integers.affine import Congruence, Constraint, Guard
from ...ops.indicator import CheckedAccess
from ...ops.matrix.spectral import spectral_row, trace_row
from ..reading.lexer import WORDS

_DERIVED = re.compile(r"(\w+)_frechet(\d?)")
_WHOLE = re.compile(r"[+-]?\d{1,18}")
_COMPARED = re.compile(r"(.*?)(==|>=)(.*)")
_MODULO = re.compile(r"(.*) mod (\d+) == 0")
_INSIDE = re.compile(r"0 <= (.*) < (.*)")


spectral_row(0)  # members of families are made when they are asked for
trace_row()


class _FormulaText(str):
    """A parameter that is a function of one number, as text."""


class RowCall(NamedTuple):
    """A row, and which of its results a name means: -1 where there is one."""

    op: Op
    part: int

    @property
    def parameters(self) -> bool:
        """Has it parameters behind its operands? Elementwise rows have none."""
        return not (self.op.elementwise and self.op.core)


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


def called_row(row: RowCall, operands: Sequence[Expr], texts: Sequence[str], scalar: Any) -> Expr:
    """The row applied.

    Parameters
    ----------
    row : RowCall
    operands : sequence of Expr
    texts : sequence of str
        Its parameters as they are written.
    scalar : callable
        Reads a parameter that is a formula: ``scalar(text, order)``.

    Raises
    ------
    ValueError
        Where a parameter is none; ShapeError where operands do not fit.
    """
    op = row.op
    if len(operands) != len(op.core):
        raise ValueError(f"it has {len(op.core)} operands, not {len(operands)}")
    if isinstance(op, Indicator):
        return apply(op, params=_conditions(texts))
    if isinstance(op, Selection):
        operands = [_integers(e) for e in operands]
    params = [_axes(text) if text.startswith("axis") else _parameter(text) for text in texts]
    if op.core and op.core[0] == -1 and not (texts and texts[0].startswith("axis")):
        params = [operands[0].ndim, *params]
    elif op.core and op.core[0] == 1 and texts and texts[0].startswith("axis"):
        params = params[1:]
    order = len(operands) - 3
    params = [scalar(p, order) if isinstance(p, _FormulaText) else p for p in params]
    try:
        whole = (
            [apply(op, *operands, params=tuple(params))]
            if row.part < 0
            else (apply_all(op, *operands, params=tuple(params)))
        )
    except IndexError:
        raise ValueError("further parameters are needed behind its operands") from None
    found = whole[max(0, row.part)]
    if any(isinstance(extent, int) and extent < 0 for extent in found.shape):
        raise ValueError("an extent is negative")
    return found


def _integers(e: Expr) -> Expr:
    """Constant integers as an index has them."""
    return const_node(e.value.astype("int64")) if isinstance(e, Const) else e


def _axes(text: str) -> int:
    """How many of the last axes a text such as `axis=(-2, -1)` names."""
    return max(1, text.count("-"))


def _parameter(text: str) -> Any:
    """The value of a parameter as it is printed."""
    if text in WORDS:
        return WORDS[text]
    if _WHOLE.fullmatch(text):
        return int(text)
    if text.startswith("(") and text.endswith(")") and "," in text:
        parts = [part.strip().strip("'") for part in text[1:-1].split(",")]
        return tuple([_parameter(part) for part in parts if part])
    try:
        return affine_extent(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return _FormulaText(text)


def option(text: str) -> tuple[str, Any]:
    """What a function of the library takes by name, such as `axis=-1`."""
    name, equals, value = text.partition("=")
    found = _parameter(value.strip())
    if not equals or isinstance(found, _FormulaText):
        raise ValueError(f"expected a parameter by its name, such as axis=0, not `{text}`")
    return name.strip(), found


def _conditions(texts: Sequence[str]) -> tuple[Any, ...]:
    """The extents, conditions and accesses of an indicator."""
    shape: list[Extent] = []
    guards: list[Guard] = []
    accesses: list[CheckedAccess] = []
    names: dict[str, str] = {}
    for text in texts:
        letter, equals, extent = text.partition("=")
        if equals and letter.strip().isidentifier() and not extent.startswith("="):
            names[letter.strip()] = f"#{len(shape)}"
            shape.append(affine_extent(extent.strip()))
        elif (found := _INSIDE.fullmatch(text)) is not None:
            form = form_of(found[1]).substitute(names)
            accesses.append(CheckedAccess(form, affine_extent(found[2]), text))
        elif (found := _MODULO.fullmatch(text)) is not None:
            guards.append(Congruence(form_of(found[1]).substitute(names), int(found[2])))
        elif (found := _COMPARED.fullmatch(text)) is not None:
            form = form_of(found[1].strip()) - form_of(found[3].strip())
            guards.append(Constraint(form.substitute(names), found[2] == "=="))
        else:
            raise ValueError(f"`{text}` is no condition")
    return tuple(shape), tuple(guards), tuple(accesses)
