"""Docstrings of public functions: the sections that follow from names of parameters.

A parameter has one meaning in all functions, as in NumPy; it is described here once. Where a
function's docstring has a section of its own, that one stays.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import CO_VARARGS
from typing import Any

from ..support.records import NamedTuple


class Parameter(NamedTuple):
    """What a docstring says of a parameter: its type, and what it is for."""

    type: str
    meaning: str


_OPERAND = Parameter("expression or array_like", "An operand.")
_FLAG, _NUMBER = "bool, optional", "number, optional"
_AXES = "int, tuple of int or None, optional"

#: By the parameter's name.
PARAMETERS = {
    "a": Parameter(
        "expression or array_like",
        "The operand; of linear algebra: matrices in the last two axes, leading axes are a batch.",
    ),
    **dict.fromkeys(("b", "c", "x", "y", "z"), _OPERAND),
    "N": Parameter("int or str, optional", "How many powers; by default as many as entries."),
    "alpha": Parameter(_NUMBER, "What the product is multiplied by."),
    "arrays": Parameter("sequence of expressions and arrays", "The parts."),
    "axes": Parameter("int or sequence of int, optional", "The axes, as NumPy's."),
    "axis": Parameter(_AXES, "Negative ones count from the last axis; None is all of them."),
    "axis1": Parameter("int, optional", "The axis of rows."),
    "axis2": Parameter("int, optional", "The axis of columns."),
    "beta": Parameter(_NUMBER, "What the term that is added is multiplied by."),
    "condition": Parameter("expression or array_like", "Where it is not 0, x is taken, else y."),
    "ddof": Parameter("int, optional", "What is taken from the number of entries to divide by."),
    "degenerate": Parameter(
        '{"raise", "nan", "epsilon"} or float, optional',
        "Derivatives of eigenvectors at equal eigenvalues; a number is the least gap.",
    ),
    "factor": Parameter("expression or array_like", "A triangular factor of Cholesky's."),
    "high": Parameter("expression, array_like or None", "The upper bound; None leaves it open."),
    "k": Parameter("int, optional", "Above the main diagonal, or below it where negative."),
    "increasing": Parameter(_FLAG, "Do the powers rise from 0 on?"),
    "keepdims": Parameter(_FLAG, "Leave the axes in place, with extent 1."),
    "low": Parameter("expression, array_like or None", "The lower bound; None leaves it open."),
    "lower": Parameter(_FLAG, "Is it the lower triangle, not the upper?"),
    "m": _OPERAND,
    "more": Parameter("int", "Further axes, where these are not given as one sequence."),
    "n": Parameter("int or str", "An extent, or of `matrix_power` the exponent."),
    "offset": Parameter("int, optional", "Above the main diagonal, or below it where negative."),
    "p": Parameter("expression or array_like", "Coefficients, that of the highest power first."),
    "ord": Parameter('{None, "fro", "nuc", 1, 2, inf}, optional', "The norm, as NumPy's."),
    "rightside": Parameter(_FLAG, "Does the matrix stand on the right of b?"),
    "shape": Parameter("int, str or tuple of these", "Extents; names are dimensions."),
    "shift": Parameter("int", "By how many places."),
    "trans": Parameter("int or str, optional", '1 or "T": the transposed matrix.'),
    "transpose": Parameter(_FLAG, "Is the matrix transposed?"),
    "transpose_a": Parameter(_FLAG, "Is the first matrix transposed?"),
    "transpose_b": Parameter(_FLAG, "Is the second matrix transposed?"),
    **dict.fromkeys(
        ("append", "prepend"),
        Parameter(
            "expression or array_like, optional", "What stands behind or before the entries."
        ),
    ),
    **dict.fromkeys(("arr", "ary", "val", "x1", "x2"), _OPERAND),
    **dict.fromkeys(
        ("axisa", "axisb", "axisc"),
        Parameter("int, optional", "The axis of the vectors in a, in b, in the result."),
    ),
    "bias": Parameter(_FLAG, "Divide by the number of observations, not by one less?"),
    "choicelist": Parameter("list of expressions and arrays", "A choice for each condition."),
    "condlist": Parameter("list of expressions and arrays", "Conditions, the first one counts."),
    "decimals": Parameter("int, optional", "How many digits behind the point."),
    "default": Parameter("expression or array_like, optional", "The choice where none holds."),
    "destination": Parameter("int or sequence of int", "The places of these axes in the result."),
    "dx": Parameter(_NUMBER, "The distance of neighbours, where x is not given."),
    "endpoint": Parameter(_FLAG, "Is the last value `stop`?"),
    "fill_value": Parameter("expression or array_like", "What broadcasts to the shape."),
    "indexing": Parameter('{"xy", "ij"}, optional', "Do columns come first, or rows?"),
    "indices": Parameter("array of integers, or integer variable", "Places along the axis."),
    "indices_or_sections": Parameter(
        "int or sequence of int", "How many equal parts, or where parts start."
    ),
    "kth": Parameter("int", "The place that must hold its entry."),
    "method": Parameter('{"linear"}, optional', "What lies between two entries."),
    **dict.fromkeys(("nan", "neginf", "posinf"), Parameter(_NUMBER, "What stands for it.")),
    "num": Parameter("int, optional", "How many values."),
    "q": Parameter("array_like of numbers", "The levels; their axes come first in the result."),
    "reps": Parameter("int or sequence of int", "How many times, by axis."),
    "rowvar": Parameter(_FLAG, "Is every row a variable, not every column?"),
    "source": Parameter("int or sequence of int", "The axes that are moved."),
    "sparse": Parameter(_FLAG, "Leave axes along which nothing changes with extent 1?"),
    **dict.fromkeys(
        ("start", "stop"),
        Parameter("expression or array_like", "The end of a range, or, of `rollaxis`, an axis."),
    ),
    "values": _OPERAND,
    "weights": Parameter("expression or array_like, optional", "How much each entry counts."),
    "xi": Parameter("expressions or arrays", "Vectors of coordinates."),
    "v": Parameter("expression or array_like", "Vectors in the last axis."),
}

#: Sections that stand behind those of parameters and results.
_BEHIND = ("Raises", "Notes", "References", "Examples")


def documented(
    function: Callable[..., Any], parameters: tuple[str, ...] | None = None, returns: str = ""
) -> None:
    """Give a docstring its sections Parameters and Returns, where it has none.

    Parameters
    ----------
    function : callable
        Parameters that `PARAMETERS` does not know are left to its own docstring.
    parameters : tuple of str, optional
        Their names, where these are not those of its code.
    returns : str, optional
        What the result is.
    """
    text = function.__doc__
    if not text:  # Python may leave docstrings out
        return
    code = function.__code__
    named = code.co_argcount + code.co_kwonlyargcount
    several = 1 if code.co_flags & CO_VARARGS else 0
    names = code.co_varnames[: named + several] if parameters is None else parameters
    sections = []
    if "Parameters\n" not in text and names:
        rows = [(name, PARAMETERS[name]) for name in names if name in PARAMETERS]
        sections.append(_section("Parameters", [_entry(name, *row) for name, row in rows]))
    if "Returns\n" not in text:
        kind = str(function.__annotations__.get("return", "Expr"))
        sections.append(_section("Returns", [kind + (f"\n    {returns}" if returns else "")]))
    lines = text.rstrip().split("\n")
    heads = [k for k, line in enumerate(lines) if line.strip() in _BEHIND]
    place = heads[0] if heads else len(lines)
    before = "\n".join(lines[:place]).rstrip()
    indent = "    " if heads and lines[place].startswith(" ") else _margin(lines)
    added = "\n\n".join(sections)
    shown = "\n".join([f"{indent}{line}" if line else "" for line in added.split("\n")])
    behind = "\n\n" + "\n".join(lines[place:]) if heads else ""
    function.__doc__ = before + (f"\n\n{shown}" if sections else "") + behind + "\n" + indent


def _entry(name: str, kind: str, meaning: str) -> str:
    return f"{name} : {kind}\n    {meaning}"


def _section(title: str, entries: list[str]) -> str:
    return "\n".join([title, "-" * len(title), *entries])


def _margin(lines: list[str]) -> str:
    """The indentation of a docstring's lines behind the first."""
    rest = [line for line in lines[1:] if line.strip()]
    return min([line[: len(line) - len(line.lstrip())] for line in rest], key=len, default="    ")
