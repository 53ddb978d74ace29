"""Kinds that read an array otherwise, without moving its entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...support.arrays import AnyArray, Sizes
from . import tiles
from .kind import Kind, Params, Result, given, stated

#: An affine place on an axis: a number, and a coefficient for every label.
AffinePlace = tuple[int, tuple[int, ...]]


def _transposed(shape: Sizes, params: Params, first: Sizes) -> Sizes:
    return tuple([first[axis] for axis in params])


def _transpose(xp: Any, result: Result, params: Params, a: AnyArray) -> AnyArray:
    return xp.transpose(a, params)


def _inserted(shape: Sizes, params: Params, first: Sizes) -> Sizes:
    extents = iter(first)
    return tuple([next(extents) if present else 1 for present in params])


def _reshape(xp: Any, result: Result, params: Params, a: AnyArray) -> AnyArray:
    """What `insert` does too."""
    return xp.reshape(a, result.shape)


def _broadcast(xp: Any, result: Result, params: Params, a: AnyArray) -> AnyArray:
    return xp.broadcast_to(a, result.shape)


def _crossed(shape: Sizes, params: Params, first: Sizes) -> Sizes:
    one, two = params
    return (*[n for k, n in enumerate(first) if k not in params], min(first[one], first[two]))


def _diagonal(xp: Any, result: Result, params: Params, a: AnyArray) -> AnyArray:
    one, two = params
    return xp.diagonal(a, 0, one, two)


def places(xp: Any, counts: Sizes, form: AffinePlace) -> AnyArray:
    """Where a form points to, for all values below `counts` of its labels, each on its own axis."""
    found, coefs = form
    for k, c in enumerate(coefs):
        if c:
            found = found + c * xp.reshape(
                xp.arange(counts[k]), (-1,) + (1,) * (len(coefs) - k - 1)
            )
    return found


def _window(xp: Any, result: Result, params: Sequence[AffinePlace], a: AnyArray) -> AnyArray:
    return a[tuple([places(xp, result.shape, form) for form in params])]


def _part(xp: Any, result: Result, params: Params, several: Sequence[AnyArray]) -> AnyArray:
    return several[params[0]]


VIEWS = [
    Kind(
        name="transpose",
        params={"*axes": "for every axis of the result, the axis of the operand that it is"},
        shape=_transposed, reference=_transpose, tiles=tiles.transposed, view=True,
    ),
    Kind(
        name="insert",
        params={"*present": "for every axis of the result, whether the operand has it"},
        shape=_inserted, reference=_reshape, tiles=tiles.inserted, view=True,
    ),
    Kind(
        name="reshape", params={"*shape": "the extents of the result"},
        shape=stated, reference=_reshape, view=True,
    ),
    Kind(
        name="broadcast", params={"*shape": "the extents of the result"},
        shape=stated, reference=_broadcast, view=True,
    ),
    Kind(
        name="diagonal",
        params={
            "one": "an axis of the operand",
            "two": "another one, of the same label; the result has it last",
        },
        shape=_crossed, reference=_diagonal, view=True,
    ),
    Kind(
        name="window",
        params={"*forms": "for every axis of the operand, the place that is read, affine in the "
                          "axes of the result: a number, and a coefficient for each of them"},
        shape=given, reference=_window, tiles=tiles.windowed, view=True,
    ),
    Kind(
        name="part", params={"index": "which of several results"},
        shape=given, reference=_part, view=True,
    ),
]  # fmt: skip
