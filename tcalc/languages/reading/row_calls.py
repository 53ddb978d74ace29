"""Calls of rows in languages of whole arrays, their parameters read from text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from ...graph.applications import apply
from ...graph.extents import Extent, affine_extent, form_of
from ...graph.nodes import Expr
from ...graph.operators import Indicator
from ...integers.affine import Congruence, Constraint, Guard
from ...ops.indicator import CheckedAccess
from ...ops.matrix.eigh import eigh
from .lexer import WORDS
from .rows import RowCall, applied_row

_WHOLE = re.compile(r"[+-]?\d{1,18}")
_COMPARED = re.compile(r"(.*?)(==|>=)(.*)")
_MODULO = re.compile(r"(.*) mod (\d+) == 0")
_INSIDE = re.compile(r"0 <= (.*) < (.*)")


class _FormulaText(str):
    """A parameter that is a function of one number, as text."""


def called_row(
    row: RowCall,
    operands: Sequence[Expr],
    texts: Sequence[str],
    formula: Callable[[str], Expr],
) -> Expr:
    """The row applied.

    Parameters
    ----------
    row : RowCall
    operands : sequence of Expr
    texts : sequence of str
        Its parameters as they are written.
    formula : callable
        Reads a parameter that is a function of one number.

    Raises
    ------
    ValueError
        Where a parameter is none; ShapeError where operands do not fit.
    """
    shown = row.op.spelling.shown
    if shown and len(operands) == len(shown):  # the others are functions of the first
        operands = [operands[0], *eigh(operands[0]), *operands[1:]]
    core = row.op.core[:1]
    if isinstance(row.op, Indicator):
        return apply(row.op, params=_conditions(texts))
    named = bool(texts) and texts[0].startswith("axis")
    params: list[Any] = [_parameter(text) for text in texts[named:]]
    if core == (-1,):
        params.insert(0, max(1, texts[0].count("-")) if named else operands[0].ndim)
    params = [formula(p) if isinstance(p, _FormulaText) else p for p in params]
    return applied_row(row, operands, params)


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
