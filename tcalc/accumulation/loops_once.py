"""Derivatives of loops, found once for all orders of accumulation that are compared.

The orders differ in how they multiply what is around a loop; its own derivative often is the same,
and takes the longest to make.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from ..graph.nodes import Apply, Expr
from ..graph.operators import Loop

Differentials = Sequence[Expr | None]

#: Derivatives of loops by what they are derivatives of, which is held as long as they are.
Derived = dict[object, tuple[Any, object]]

Found = TypeVar("Found")

_known: ContextVar[Derived | None] = ContextVar("_known", default=None)


def derived_loops() -> Derived | None:
    """Those that were derived around, for modes that are asked for later."""
    return _known.get()


@contextmanager
def sharing_loops(known: Derived | None = None) -> Iterator[None]:
    """Inside, a loop is derived once for the same tangents or cotangents."""
    token = _known.set({} if known is None else known)
    try:
        yield
    finally:
        _known.reset(token)


def loop_tangents(loop: Loop, node: Apply, given: Differentials) -> Differentials:
    """Tangents of all outputs of a loop, given those of its operands."""
    key = id(node), _ids(given)
    return _once(key, lambda: loop.tangents(node, given), (node, given))


def loop_cotangents(
    loop: Loop, node: Apply, given: Sequence[Differentials], wanted: Sequence[Sequence[bool]]
) -> list[Differentials]:
    """Cotangents of the wanted operands of a loop, given those of its outputs, for every row."""
    key = id(node), tuple(map(_ids, given)), tuple(map(tuple, wanted))
    return _once(key, lambda: loop.cotangents(node, given, wanted), (node, given))


def _ids(given: Differentials) -> tuple[int, ...]:
    return tuple(map(id, given))


def _once(key: object, derive: Callable[[], Found], of: object) -> Found:
    known = _known.get()
    if known is None:
        return derive()
    if key not in known:
        known[key] = derive(), of
    found: Found = known[key][0]
    return found
