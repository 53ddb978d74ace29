"""Functions that are traced again: what their operations give is found by what these are of.

Python runs as ever, and most of what it does is what it did at the call before. So while a function
is traced its operations are kept by their operands, which are expressions, numbers and arrays that
it captures; the same operation is then one look-up. Indices and masks are told by their entries,
and captured again as the operation itself captured them.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import BuiltinFunctionType, EllipsisType, FunctionType, NoneType
from typing import Any

import numpy as np

from ..support.digests import blake2b
from ..support.records import NamedTuple
from .arraylike import OPEN, Operation
from .captures import captured, current
from .nodes import Expr, Var, postorder

#: Operations of a function that are kept, and nodes and bytes for each, beside those of the last
#: trace; of one trace so many times as many.
MOST, NODES, BYTES, LONG = 1 << 14, 8, 1 << 12, 16
#: Bytes of an array of whole numbers or of truths, by whose entries operations are kept.
LARGEST = 1 << 16

_BY_VALUE = frozenset({int, bool, str, NoneType, EllipsisType, np.int64, np.int32, np.ufunc})
_FUNCTIONS = frozenset({type(np.sum), FunctionType, BuiltinFunctionType})
_FLOATS = frozenset({float, np.float64})
_MODULES = ("numpy", "builtins")
_REALS = frozenset({np.dtype(np.float64), np.dtype(np.float32)})


class _Unknown(Exception):
    """An operand that nothing is kept by."""


class _Operands:
    """What tells the operands of an operation: by expressions, and by arrays and lists."""

    def __init__(self) -> None:
        self.expressions: list[Expr] = []
        self.data: list[Any] = []


class _Input(NamedTuple):
    """An array that an operation captured: which of its data, its numbers, and the variable."""

    place: int
    array: np.ndarray
    variable: Var


class _Kept(NamedTuple):
    """What an operation gave; the expressions that tell it are held, as their ids are its key."""

    held: Sequence[Expr]
    inputs: Sequence[_Input]
    result: Any

    @property
    def bytes(self) -> int:
        return sum([each.array.nbytes for each in self.inputs])


class Retrace:
    """The operations of one function, kept while it is open."""

    def __init__(self) -> None:
        self._known: dict[Any, _Kept] = {}
        #: Those that were kept before, until one of them is asked for or there are too many again.
        self._past: dict[Any, _Kept] = {}
        self._names: dict[Expr, frozenset[str]] = {}
        self._bytes = 0

    def __enter__(self) -> None:
        if self._full():
            self._past, self._known = self._known, {}
            self._names.clear()
            self._bytes = 0
        self._before = getattr(OPEN, "retrace", None)
        OPEN.retrace = self

    def __exit__(self, *_: object) -> None:
        OPEN.retrace = self._before

    def result(self, operation: Operation, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """What the operation gives."""
        operands = _Operands()
        known: list[Any] = [operation]
        given: list[Any] = []
        named = options
        try:
            for value in args:
                if isinstance(value, Expr):
                    operands.expressions.append(value)
                    known.append(id(value))
                    given.append(value)
                else:
                    told, stands = _told(value, operands)
                    known.append(told)
                    given.append(stands)
            if options:
                told, named = _told(options, operands)
                known.append(told)
        except _Unknown:
            return operation(*args, **options)
        key = tuple(known)
        found = self._known.get(key)
        if found is None and key in self._past:
            found = self._known[key] = self._past.pop(key)
            self._bytes += found.bytes
        if found is not None and _captured_again(found.inputs, operands.data):
            return found.result
        try:
            result = operation(*given, **named)
        except Exception:  # of what was given itself
            return operation(*args, **options)
        self._keep(key, operands, result)
        return result

    def _keep(self, key: Any, operands: _Operands, result: Any) -> None:
        """Keep what is made of expressions that read the operands alone, and captured data."""
        found = result if type(result) is tuple else (result,)
        if self._full(LONG):
            return
        if all(isinstance(e, Expr) for e in found):
            more = self._variables(found) - self._variables(operands.expressions)
            inputs = [each for each in _inputs(operands.data) if each.variable.name in more]
            if len(inputs) == len(more):
                kept = _Kept(operands.expressions, inputs, result)
                self._known[key] = kept
                self._bytes += kept.bytes

    def _full(self, times: int = 1) -> bool:
        """Is as much kept as may be, so many times?"""
        kept = max(len(self._known), len(self._names) // NODES, self._bytes // BYTES)
        return kept >= times * MOST

    def _variables(self, roots: Sequence[Expr]) -> frozenset[str]:
        """The names of variables below the roots, each node of which is looked at once."""
        names = self._names
        for node in postorder(roots, names.__contains__):
            if node not in names:
                own = frozenset((node.name,)) if isinstance(node, Var) else frozenset()
                names[node] = _union([names[arg] for arg in node.args], own)
        return _union([names[root] for root in roots], frozenset())


def _inputs(data: Sequence[Any]) -> list[_Input]:
    """Those of the data that are captured, in the order in which they were."""
    captures = current()
    if captures is None or not data:
        return []
    order = {v: k for k, v in enumerate(captures.arrays)}
    found = {captures.known(value): place for place, value in enumerate(data)}
    inputs = [_Input(place, captures.arrays[v], v) for v, place in found.items() if v is not None]
    small = [each for each in inputs if each.array.nbytes <= LARGEST]
    return sorted(small, key=lambda each: order[each.variable])


def _captured_again(inputs: Sequence[_Input], data: Sequence[Any]) -> bool:
    """Are the variables that an operation captured of equal data the ones of these?"""
    captures = current()
    return not inputs or (
        captures is not None
        and all(captures.again(data[k], array, variable) for k, array, variable in inputs)
    )


def _told(value: Any, operands: _Operands) -> tuple[Any, Any]:
    """What tells an operand from others, and the operand, where arrays are what they stand for.

    Expressions that are told by their identity, and data that may be captured, are added to the
    operands.
    """
    kind = type(value)
    if isinstance(value, Expr):
        operands.expressions.append(value)
        return id(value), value
    if kind in _BY_VALUE:
        return (kind, value), value
    if kind in _FLOATS:
        return (kind, value.hex()), value
    if kind is tuple or kind is list:
        pairs = [_told(item, operands) for item in value]
        given = kind([given for _, given in pairs])
        operands.data.append(given)
        return (kind, *[known for known, _ in pairs]), given
    if kind is dict:
        known, pairs = _told(tuple(value.items()), operands)
        return (dict, known), dict(pairs)
    if kind is slice:
        return (slice, _told((value.start, value.stop, value.step), operands)[0]), value
    if kind is np.ndarray and value.dtype in _REALS:
        stands = captured(value, value)
        if stands is not None:
            return _told(stands, operands)
    if kind is np.ndarray and value.dtype.kind in "bi" and value.nbytes <= LARGEST:
        operands.data.append(value)
        entries = blake2b(value.tobytes(), digest_size=16).digest()
        return (kind, value.dtype.str, value.shape, entries), value
    if kind is type or (
        kind in _FUNCTIONS and (value.__module__ or "").partition(".")[0] in _MODULES
    ):
        return value, value
    raise _Unknown


def _union(sets: list[frozenset[str]], found: frozenset[str]) -> frozenset[str]:
    """All of them as one, which is one of them where that has all."""
    for one in sorted(sets, key=len, reverse=True):
        if one is not found and not one <= found:
            found = one | found if found else one
    return found
