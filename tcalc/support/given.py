"""What users give where numbers or expressions are wanted: arrays of it, or why it is none."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from inspect import Parameter, signature
from typing import Any

import numpy as np

from .arrays import Array


def array_of(value: Any) -> Array:
    """The array of data, where whole numbers may be of any size.

    Raises
    ------
    TypeError, ValueError
        Where it gives none, as tensors that record what is done with them.
    """
    try:
        array: Array = np.asarray(value)
    except RuntimeError as error:
        raise TypeError(str(error)) from None
    plain = array.dtype.kind == "O" and isinstance(value, int | list | tuple)
    if plain and all(type(entry) in (int, float, bool) for entry in array.flat):
        with suppress(OverflowError):
            return array.astype(np.float64)
    return array


def as_numbers(array: Array) -> str:
    """How an array of objects or text becomes one of numbers, or what stops it; for a message."""
    if array.dtype.kind not in "OUS":
        return ""
    try:
        array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        return f": {error}"
    return "; .astype(float) makes numbers of it"


def no_expression(given: object) -> str:
    """What stands where an expression is wanted: its type, and how a function gives one."""
    name = type(given).__name__
    if not callable(given) or isinstance(given, type):
        return name
    called = getattr(given, "__name__", "f").replace("<lambda>", "f")
    return f"{name}; a function gives one of variables: {called}({_variables(given)})"


def _variables(function: Callable[..., Any]) -> str:
    """A variable for every argument that a function needs."""
    try:
        parameters = signature(function).parameters.values()
    except (TypeError, ValueError):
        return "…"
    places = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    needed = [p.name for p in parameters if p.kind in places and p.default is Parameter.empty]
    return ", ".join([f'tc.var("{name}", "n")' for name in needed]) or "…"
