"""Calls of rows in languages of whole arrays, their parameters read from text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any

from ...graph.applications import apply
from ...graph.extents import Extent, affine_extent, form_of
from ...graph.nodes import Expr
from ...graph.normal import view
from ...graph.operators import Indicator
from ...graph.orientation import inverse_permutation
from ...graph.variables import check_extent
from ...integers.affine import Affine, Congruence, Constraint, Guard, factors_of
from ...ops.arithmetic import chosen_axes
from ...ops.indicator import CheckedAccess
from ...ops.matrix.eigh import eigh
from .lexer import WORDS
from .parameters import takes_function
from .rows import RowCall, applied_row

_WHOLE = re.compile(r"[+-]?\d{1,18}")
_COMPARED = re.compile(r"(.*?)(==|>=)(.*)")
_MODULO = re.compile(r"(.*) mod (\d+) == 0")
_OPTION = re.compile(r"\w+\s*=(?!=)")
_WORD = re.compile(r"[^\W\d]\w*")
_INSIDE = re.compile(r"0 <= (.*) < (.*)")


#: What parameters are that functions take by these names: a test, and words for it.
_SORTS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "axis": (lambda v: v is None or _is_axes(v), "a whole number, or several in parentheses"),
    "keepdims": (lambda v: isinstance(v, bool), "True or False"),
    "ddof": (lambda v: isinstance(v, int | float) and not isinstance(v, bool), "a number"),
}


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
    if isinstance(row.op, Indicator):
        return apply(row.op, params=_conditions(texts))
    named = bool(texts) and texts[0].startswith("axis")
    given = [_parameter(text) for text in texts[named:]]
    if given and takes_function(row.op):
        function = texts[-1]  # powers of x may be extents, too
        alone = function.isidentifier() and function != "x"
        given[-1] = _FormulaText(f"{function}(x)" if alone else function)
    params = [formula(p) if isinstance(p, _FormulaText) else p for p in given]
    other = next((text for text in texts[named:] if _OPTION.match(text)), None)
    if other is not None:
        raise ValueError(f"it takes no `{other}`")
    if not named:
        whole = [operands[0].ndim] if row.op.core[:1] == (-1,) else []
        return applied_row(row, operands, [*whole, *params])
    return _along(row, operands, texts[0], params)


def _along(row: RowCall, operands: Sequence[Expr], text: str, params: Sequence[Any]) -> Expr:
    """The row applied along axes of its operands, which are those of one shape."""
    name, axes = _option(text)
    if not operands:
        raise ValueError("it has operands, and none is given")
    core, ndim = row.op.core[:1], operands[0].ndim
    given = axes if isinstance(axes, tuple) else (axes,)
    count = len(given)
    if (
        name != "axis"
        or not _is_axes(axes)
        or core not in ((-1,), (1,))
        or (core == (1,) and count > 1)
    ):
        raise ValueError(f"it takes no `{text}`")
    last = chosen_axes(given, ndim, row.op.name)
    order = [k for k in range(ndim) if k not in last] + sorted(last)
    moved = [view(e, order) if e.ndim == ndim else e for e in operands]
    found = applied_row(row, moved, [count, *params] if core == (-1,) else params)
    return view(found, inverse_permutation(order)) if found.ndim == ndim else found


def _parameter(text: str) -> Any:
    """The value of a parameter as it is printed."""
    if text in WORDS:
        return WORDS[text]
    if text == "-inf":
        return -WORDS["inf"]
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


def _is_axes(value: Any) -> bool:
    """Is this the place of an axis, or several?"""
    places = value if isinstance(value, tuple) else (value,)
    return all(isinstance(axis, int) and not isinstance(axis, bool) for axis in places)


def _option(text: str) -> tuple[str, Any]:
    """A parameter by its name, such as `axis=-1`."""
    name, equals, value = map(str.strip, text.partition("="))
    if not equals or not name.isidentifier():
        raise ValueError(f"expected a parameter by its name, such as axis=0, not `{text}`")
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
    found = value[1:-1] if quoted else None if value == "None" else _parameter(value)
    fits, wanted = _SORTS.get(
        name, (lambda v: not isinstance(v, _FormulaText), "a number or a word")
    )
    if not fits(found):
        raise ValueError(f"{name}= is {wanted}, not `{value}`")
    return name, found


def options(function: Callable[..., Any], texts: Sequence[str]) -> dict[str, Any]:
    """What a function of the library is given by name; ValueError where it takes no such."""
    found: dict[str, Any] = {}
    for text in texts:
        name, value = _option(text)
        try:
            signature(function).bind_partial(**{name: value})
        except TypeError:
            known = [f"{key}=" for key, p in signature(function).parameters.items() if p.kind > 0]
            known = [key for key in known[1:] if key != "out="]
            hint = f"; by name it takes {', '.join(known)}" if known else ""
            raise ValueError(f"it takes no `{text}`{hint}") from None
        if name in found:
            raise ValueError(f"{name}= is given twice")
        found[name] = value
    return found


def _conditions(texts: Sequence[str]) -> tuple[Any, ...]:
    """The extents, conditions and accesses of an indicator."""
    shape: list[Extent] = []
    guards: list[Guard] = []
    accesses: list[CheckedAccess] = []
    names: dict[str, str] = {}
    for text in texts:
        letter, equals, extent = map(str.strip, text.partition("="))
        if equals and letter.isidentifier() and not extent.startswith("="):
            if letter in names:
                raise ValueError(f"the index {letter} is named twice")
            names[letter] = f"#{len(shape)}"
            shape.append(check_extent(affine_extent(extent), f"the index {letter}"))
        elif (found := _INSIDE.fullmatch(text)) is not None:
            form = _condition_form(found[1], names)
            accesses.append(CheckedAccess(form, affine_extent(found[2]), text))
        elif (found := _MODULO.fullmatch(text)) is not None and int(found[2]):
            guards.append(Congruence(_condition_form(found[1], names), int(found[2])))
        elif " mod " not in text and (found := _COMPARED.fullmatch(text)) is not None:
            form = _condition_form(found[1], names) - _condition_form(found[3], names)
            guards.append(Constraint(form, found[2] == "=="))
        else:
            raise ValueError(
                f"`{text}` is no condition; these are of the forms i >= j, i == j, "
                "i mod 2 == 0 and 0 <= i < n"
            )
    return tuple(shape), tuple(guards), tuple(accesses)


def _condition_form(text: str, names: Mapping[str, str]) -> Affine:
    """An affine form in indices, which have these names, and dimensions."""
    try:
        form = form_of(text.strip())
    except ValueError:
        raise ValueError(f"`{text.strip()}` is no affine form of indices and dimensions") from None
    for name in form.names:
        factors = factors_of(name)
        read = [word for factor in factors for word in _WORD.findall(factor) if word in names]
        if len(read) > 1 or not set(read) <= set(factors):
            raise ValueError(f"`{text.strip()}` is not affine in the indices")
    return form.substitute(names)
