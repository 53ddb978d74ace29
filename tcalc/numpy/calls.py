"""Calls of NumPy's functions on expressions: found in the table, and their options translated.

Arguments are bound as NumPy binds them. What our function names is passed on, with NumPy's
defaults; other options must not change the result, or they are refused by name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import Any

import numpy as np

from ..graph.arraylike import surface
from ..graph.nodes import Expr
from ..ops.arithmetic import as_expr
from ..ops.indexing import getitem
from ..ops.joining import array, holds_expressions
from ..support.errors import TraceError
from .adapters import check_dtype
from .table import ACCUMULATE, FUNCTIONS, METHODS, REDUCE, REPLACEMENTS, SPECIAL

#: Options that say how NumPy computes or stores, not what.
HARMLESS = {
    "casting", "copy", "device", "hermitian", "kind", "like", "optimize", "order", "stable",
    "subok",
}  # fmt: skip
#: Parameters that are sequences of arrays.
SEQUENCES = {"arrays", "tup", "condlist", "choicelist"}


class Option:
    """How one parameter of NumPy's is passed on."""

    __slots__ = ("default", "known", "name", "positional", "sequence", "several")

    def __init__(self, p: inspect.Parameter, ours: Collection[str]) -> None:
        self.name, self.default = p.name, p.default
        self.several = p.kind is p.VAR_POSITIONAL
        self.positional = p.default is p.empty or p.kind is p.POSITIONAL_ONLY
        self.known = p.name in ours
        self.sequence = p.name in SEQUENCES


@cache
def _options(theirs: Callable[..., Any], ours: Callable[..., Any]) -> Any:
    """NumPy's signature and how its parameters are passed on; None where it has no signature."""
    try:
        signature = inspect.signature(theirs)
    except (TypeError, ValueError):
        return None
    known = inspect.signature(ours).parameters
    named = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    return signature, known, [Option(p, known) for p in named]


def translated(
    name: str, theirs: Callable[..., Any], ours: Callable[..., Any], args: Any, kwargs: Any
) -> Any:
    """Our function's result for a call of NumPy's.

    Raises
    ------
    TraceError
        For options that expressions do not have.
    """
    found = _options(theirs, ours)
    if found is None:
        return ours(*map(_stacked, args), **_allowed(name, kwargs))
    signature, known, options = found
    given = signature.bind(*args, **kwargs).arguments
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for option in options:
        value = given.get(option.name, option.default)
        if option.several:
            positional += map(_stacked, given.get(option.name, ()))
        elif option.positional:
            positional.append(value if option.sequence else _stacked(value))
        elif value is np._NoValue:
            continue
        elif option.known:
            named[option.name] = _stacked(value)
        elif option.name in given and value is not option.default:
            _refuse_unless_harmless(name, option.name, value)
    for key, value in given.get("kwargs", {}).items():
        if key in known:
            named[key] = value
        else:
            _refuse_unless_harmless(name, key, value)
    return ours(*positional, **named)


def _stacked(value: Any) -> Any:
    """A nested list of expressions as an expression."""
    nested = isinstance(value, list | tuple) and holds_expressions(value)
    return array(value) if nested else value


def _allowed(name: str, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Keywords without ones that change nothing; errors for others that no function of ours has."""
    found = {}
    for key, value in kwargs.items():
        if key in ("out", "dtype") or key in HARMLESS:
            _refuse_unless_harmless(name, key, value)
        else:
            found[key] = value
    return found


def _refuse_unless_harmless(name: str, option: str, value: Any) -> None:
    nothing = value is None or (isinstance(value, tuple) and all(v is None for v in value))
    if option in HARMLESS or nothing or (option == "where" and value is True):
        return
    if option == "out":
        raise TraceError(
            f"np.{name} with out=: an array cannot take a traced value in place; "
            "write a = a + x, not a += x, and stack or concatenate parts, not a[i] = x"
        )
    if option == "dtype":
        check_dtype(name, value)
        return
    raise TraceError(f"np.{name} of expressions has no option {option}={value!r:.40}")


# --- NumPy's protocols ----------------------------------------------------------------------------


def full_name(function: Any) -> str:
    """A function's name below `numpy`."""
    module = getattr(function, "__module__", None) or "numpy"
    _, _, rest = module.partition("numpy.")
    return f"{rest}.{function.__name__}" if rest in ("linalg", "fft") else function.__name__


def refusal(name: str) -> TraceError:
    """The error for a function that expressions do not have: what to write instead."""
    if name in REPLACEMENTS:
        return TraceError(f"np.{name} does not take expressions; write {REPLACEMENTS[name]}")
    if name.startswith("fft."):
        return TraceError(f"np.{name} does not take expressions: numbers are real")
    shown = f"np.{name}" if hasattr(np, name.partition(".")[0]) else name
    import difflib  # not needed by who spells well

    close = difflib.get_close_matches(name, FUNCTIONS, 1, 0.8) if shown != name else []
    hint = f"; there is np.{close[0]}" if close else ""
    return TraceError(f"{shown} does not take expressions{hint}")


def array_function(self: Expr, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
    name = full_name(function)
    if name not in FUNCTIONS:
        raise refusal(name)
    return translated(name, function, FUNCTIONS[name], args, kwargs)


def array_ufunc(self: Expr, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
    name = ufunc.__name__
    options = {
        key: value for key, value in options.items() if not (key == "where" and value is True)
    }
    ours = FUNCTIONS.get(name) or SPECIAL.get(name)
    if method == "__call__" and ours is not None:
        for key in sorted(options, key="out".__ne__):
            _refuse_unless_harmless(name, key, options[key])
        return ours(*inputs)
    if method == "outer" and ours is not None:
        left, right = (as_expr(x) for x in inputs)
        return ours(getitem(left, (..., *(None,) * right.ndim)), right)
    for known, table in (("reduce", REDUCE), ("accumulate", ACCUMULATE)):
        if method == known and name in table:
            a, *rest = inputs
            given = {"axis": 0, **dict(zip(("axis", "dtype", "out"), rest, strict=False))}
            return table[name](a, **_allowed(f"{name}.{method}", {**given, **options}))
    raise refusal(name if method == "__call__" else f"{name}.{method}")


def _method(name: str) -> Callable[..., Any]:
    """A method as NumPy's function of an expression, where there is one."""
    ours = METHODS[name]
    theirs = getattr(np, name) if FUNCTIONS.get(name) is ours else None

    def method(self: Expr, /, *args: Any, **options: Any) -> Any:
        if theirs is None or not (args or options):
            return ours(self, *args, **options)
        return translated(name, theirs, ours, (self, *args), options)

    return method


surface.update(array_ufunc=array_ufunc, array_function=array_function)
surface.update({f"ndarray.{name}": _method(name) for name in METHODS})
