"""Kinds that take entries by integers, or add them at places that integers say."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...ops.selection import checked
from ...support.arrays import AnyArray, Sizes
from . import tiles
from .kind import Kind, Params, Result, always, given, kept, one_each, one_read


def _index(xp: Any, result: Result, params: Params, a: AnyArray) -> AnyArray:
    extent, what = params
    return xp.asarray(checked(a, extent, what))


def _integers(xp: Any, result: Result, params: Params, *arrays: AnyArray) -> AnyArray:
    return xp.asarray(params[0](*arrays))


def _own(xp: Any, extent: int, behind: int) -> AnyArray:
    """The values of a label that stands so many axes from the end."""
    return xp.reshape(xp.arange(extent), (-1,) + (1,) * (behind - 1))


def _together(shape: Sizes, params: Params, *shapes: Sizes) -> Sizes:
    own = [(extent,) + (1,) * (behind - 1) for extent, place, behind in params if place < 0]
    return np.broadcast_shapes(*shapes, *own)


def _joint_flops(shape: Sizes, params: Params, *shapes: Sizes) -> float:
    return 2 * prod(shape) * (len(params) - 1)


def _joint(xp: Any, result: Result, params: Params, *arrays: AnyArray) -> AnyArray:
    total = 0
    for extent, place, behind in params:
        total = total * extent + (_own(xp, extent, behind) if place < 0 else arrays[place])
    return xp.broadcast_to(total, result.shape)


def _taken(shape: Sizes, params: Params, array: Sizes, index: Sizes) -> Sizes:
    (axis,) = params
    return (*array[:axis], *index, *array[axis + 1 :])


def _take(xp: Any, result: Result, params: Params, a: AnyArray, index: AnyArray) -> AnyArray:
    return xp.take(a, index, axis=params[0])


def totals(xp: Any, result: Result, flat: AnyArray, values: AnyArray) -> AnyArray:
    """Values added up by places in the C order of the result; places behind its end are none."""
    size = prod(result.shape)
    weights = xp.reshape(xp.broadcast_to(values, flat.shape), (-1,))
    found = xp.bincount(xp.reshape(flat, (-1,)), weights, size + 1)[:size]
    return xp.asarray(xp.reshape(found, result.shape), result.dtype)


def _by_segment(shape: Sizes, params: Params, array: Sizes, index: Sizes) -> Sizes:
    (axis,) = params
    return (shape[0], *[n for k, n in enumerate(array) if k != axis])


def _segments(xp: Any, result: Result, params: Params, a: AnyArray, index: AnyArray) -> AnyArray:
    (axis,) = params
    index, columns = xp.reshape(index, (-1, 1)), prod(result.shape[1:])
    flat = index * columns + xp.arange(columns)
    return totals(xp, result, flat, xp.reshape(xp.moveaxis(a, axis, 0), flat.shape))


def _count(xp: Any, result: Result, params: Params, index: AnyArray) -> AnyArray:
    return totals(xp, result, index, xp.ones((), result.dtype))


def _onehot(xp: Any, result: Result, params: Params, index: AnyArray) -> AnyArray:
    values = xp.arange(prod(result.shape[index.ndim :]))
    found = xp.reshape(index, (-1, 1)) == values
    return xp.asarray(xp.reshape(found, result.shape), result.dtype)


def _selected(shape: Sizes, params: Params, array: Sizes, *integers: Sizes) -> float:
    return prod(np.broadcast_shapes(*integers))


def _add_at(xp: Any, result: Result, params: Params, a: AnyArray, *integers: AnyArray) -> AnyArray:
    coef, where = params
    flat = 0
    for n, (place, behind) in zip(result.shape, where, strict=True):
        flat = flat * n + (integers[place - 1] if place >= 0 else _own(xp, n, behind))
    return a + coef * totals(xp, result, flat, xp.ones((), result.dtype))


GATHERS = [
    Kind(
        name="integers", params={"form": "the integers as a function of others, exact in 64 bits"},
        shape=given, flops=one_each, reference=_integers, allocates=True, may_return=always,
        integral=True,
    ),
    Kind(
        name="index",
        params={"extent": "of the axis that is indexed", "what": "the index, for errors"},
        shape=kept, reference=_index, allocates=True, may_return=always, integral=True,
    ),
    Kind(
        name="joint",
        params={"*axes": "for every axis whose places in C order make one: its extent, the operand "
                         "with places on it or -1, and how far from the end its own label stands"},
        shape=_together, flops=_joint_flops, reference=_joint, allocates=True, integral=True,
    ),
    Kind(
        name="take", params={"axis": "of which entries are taken"},
        shape=_taken, flops=one_each, reference=_take, tiles=tiles.taken,
    ),
    Kind(
        name="segments", params={"axis": "whose entries are added by segment"},
        shape=_by_segment, flops=one_read, reference=_segments, tiles=tiles.segmented,
    ),
    Kind(name="count", shape=given, flops=one_read, reference=_count),
    Kind(name="onehot", shape=given, flops=one_each, reference=_onehot),
    Kind(
        name="add_at",
        params={"coef": "what is added, at no place twice",
                "places": "for every axis the operand with places on it, or -1, and how far from "
                          "the end the axis' own label stands"},
        shape=kept, flops=_selected, reference=_add_at, in_place="first",
    ),
]  # fmt: skip
