"""NumPy's arrays that bodies of loops close over, at an index.

An array cannot be told what an index of a loop is: where it is asked, the body is called again with
constants in place of the arrays that it reads from around it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import CellType, CodeType, FunctionType
from typing import Any

import numpy as np

from ..ops.arithmetic import as_expr
from ..ops.indexing import index_expr
from ..support.errors import TraceError

__all__: list[str] = []


def called(body: Callable[..., Any], *arguments: Any) -> Any:
    """What a body gives; where an array that it closes over is indexed, by that as a constant."""
    try:
        return body(*arguments)
    except TraceError:
        other = _Constants().of(body)
        if other is body:
            raise
        return other(*arguments)


class _Constants:
    """Functions with constants in place of arrays; of those that read none, themselves."""

    def __init__(self) -> None:
        self._known: dict[int, Any] = {}

    def of(self, value: Any) -> Any:
        if isinstance(value, np.ndarray) and value.ndim and value.dtype.kind in "biuf":
            return index_expr(value) if value.dtype.kind in "iu" else as_expr(value)
        if not isinstance(value, FunctionType):
            return value
        if id(value) not in self._known:
            self._known[id(value)] = value  # of what calls itself, as it is
            self._known[id(value)] = self._function(value)
        return self._known[id(value)]

    def _function(self, f: FunctionType) -> FunctionType:
        cells = dict(zip(f.__code__.co_freevars, f.__closure__ or (), strict=True))
        closed = self._changed(
            {name: cell.cell_contents for name, cell in cells.items() if _full(cell)}
        )
        named = {name: f.__globals__[name] for name in _names(f.__code__) & f.__globals__.keys()}
        around = self._changed({k: v for k, v in named.items() if isinstance(v, np.ndarray)})
        given = [self.of(value) for value in f.__defaults__ or ()]
        by_name = self._changed(f.__kwdefaults__ or {})
        moved = any(new is not old for new, old in zip(given, f.__defaults__ or (), strict=True))
        if not (closed or around or by_name or moved):
            return f
        closure = tuple(
            [CellType(closed[name]) if name in closed else cell for name, cell in cells.items()]
        )
        read = f.__globals__ | around if around else f.__globals__
        made = FunctionType(f.__code__, read, f.__name__, tuple(given), closure)
        made.__kwdefaults__ = {**(f.__kwdefaults__ or {}), **by_name}
        return made

    def _changed(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Those of the values that are others as constants."""
        found = {name: self.of(value) for name, value in values.items()}
        return {name: new for name, new in found.items() if new is not values[name]}


def _full(cell: CellType) -> bool:
    """Has a cell a value yet?"""
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _names(code: CodeType) -> set[str]:
    """The global names that code reads, that of functions in it included."""
    inner = [_names(part) for part in code.co_consts if isinstance(part, CodeType)]
    return set(code.co_names).union(*inner)
