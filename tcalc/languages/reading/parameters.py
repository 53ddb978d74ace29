"""What parameters a row of the operator table takes, told by the samples that it states."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...graph.extents import affine_extent
from ...graph.nodes import Expr
from ...graph.operators import Op


def fault(op: Op, params: Sequence[Any]) -> str:
    """What is wrong with the parameters of a row, for a message; empty where it takes them."""
    functions = int(takes_function(op))
    counts = {len(sample) + functions for sample in op.admitted}
    if len(params) not in counts:
        hidden = int(op.core[:1] == (-1,))  # how many axes it takes, which nobody writes
        hint = "; an axis is written axis=0" if op.core[:1] in ((-1,), (1,)) else ""
        wanted = " or ".join(map(str, sorted({max(0, count - hidden) for count in counts})))
        plural = "" if wanted == "1" else "s"
        given = max(0, len(params) - hidden)
        hint = hint if len(params) > max(counts) else ""
        return f"it has {wanted} parameter{plural} behind its operands, not {given}{hint}"
    for k, value in enumerate(params):
        samples = _samples(op, k)
        if samples and not _is_as(value, samples):
            return f"a parameter behind its operands is {_sort(samples)}, not {_shown(value)}"
        if not samples and not isinstance(value, Expr):
            return f"its last parameter is a function of one number x, not {_shown(value)}"
    return ""


def as_stated(op: Op, params: Sequence[Any]) -> list[Any]:
    """Parameters of a row that it takes: whole numbers as its samples have numbers."""
    found = list(params)
    for k, value in enumerate(params):
        kinds = {type(sample) for sample in _samples(op, k)}
        if type(value) is int and float in kinds and int not in kinds:
            found[k] = float(value)
    return found


def _samples(op: Op, k: int) -> list[Any]:
    """The values of parameter k in the samples of a row."""
    return [sample[k] for sample in op.admitted if len(sample) > k]


def takes_function(op: Op) -> bool:
    """Is a function of one number the last parameter of the row?"""
    return "{function}" in op.spelling.latex


def _is_as(value: Any, samples: Sequence[Any]) -> bool:
    """Is this a parameter of the sort that samples are of?"""
    kinds = {type(sample) for sample in samples}
    if bool in kinds or type(value) is bool:
        return type(value) is bool and bool in kinds
    if tuple in kinds:
        return isinstance(value, tuple) and all(map(_is_extent, value))
    if kinds == {int, str}:
        return _is_extent(value)
    if isinstance(value, str):
        return kinds == {str} or value in samples
    if float in kinds:
        least = -math.inf if int in kinds else 0.0
        return isinstance(value, int | float) and least < value < math.inf
    return int in kinds and isinstance(value, int)


def _is_extent(value: Any) -> bool:
    if not isinstance(value, str):
        return isinstance(value, int) and not isinstance(value, bool) and value >= 0
    try:
        affine_extent(value)
    except ValueError:
        return False
    return True


def _sort(samples: Sequence[Any]) -> str:
    """What parameters are of which these are samples."""
    kinds = {type(sample) for sample in samples}
    if bool in kinds:
        return "True or False"
    if tuple in kinds:
        return "several extents, such as (2, n)"
    if kinds == {int, str}:
        return "an extent, such as 3 or n"
    if kinds == {int}:
        return "a whole number"
    if kinds == {str}:
        return f"a word, such as {samples[0]}"
    words = [sample for sample in samples if isinstance(sample, str)]
    number = "a number" if int in kinds else "a positive number"
    *others, last = [*words, *([number] if float in kinds else [])]
    return f"{', '.join(others)} or {last}" if others else last


def _shown(value: Any) -> str:
    return "a formula" if isinstance(value, Expr) else f"`{value}`"
