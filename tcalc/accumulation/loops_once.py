"""Derivatives of loops, found once for all orders of accumulation that are compared.

The orders differ in how they multiply what is around a loop; its own derivative often is the same,
and takes the longest to make.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ..graph.nodes import Apply, Expr
from ..graph.operators import Loop

Differentials = Sequence[Expr | None]

#: Derivatives of loops by what they are derivatives of, which is held as long as they are.
Derived = dict[Any, tuple[Differentials, Any]]

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
    return _once(loop.tangents, node, given)


def loop_cotangents(
    loop: Loop, node: Apply, given: Differentials, wanted: Sequence[bool]
) -> Differentials:
    """Cotangents of the wanted operands of a loop, given those of its outputs."""
    return _once(loop.cotangents, node, given, wanted)


def _once(
    derive: Callable[..., Differentials], node: Apply, given: Differentials, *wanted: Sequence[bool]
) -> Differentials:
    known = _known.get()
    if known is None:
        return derive(node, given, *wanted)
    key = (id(node), tuple(map(id, given)), *map(tuple, wanted))
    if key not in known:
        known[key] = derive(node, given, *wanted), (node, given)
    return known[key][0]
