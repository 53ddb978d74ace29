"""Kinds that place entries in larger arrays: at affine places, on diagonals, within zeros."""

from __future__ import annotations

from math import prod
from typing import Any

from ...support.arrays import AnyArray, Sizes
from . import tiles
from .gathers import totals
from .kind import Kind, Params, Result, given
from .views import AffinePlace, places

#: How entries are placed: `counts` are the extents of the array with all its labels, `forms` the
#: place on every axis of the result, a number and a coefficient for every label.
_PLACEMENT = {
    "counts": "extents of the labels of the array that is placed",
    "forms": "for every axis of the result, the place, affine in these labels; outside of it: none",
}
_PATTERN = {"pattern": "for every axis of the result, the axis of the operand that it is"}


def _scattered(
    xp: Any, result: Result, counts: Sizes, forms: tuple[AffinePlace, ...], a: AnyArray
) -> AnyArray:
    """An array's entries at their places in zeros."""
    inside, flat = xp.ones(counts, bool), xp.zeros(counts, int)
    for n, form in zip(result.shape, forms, strict=True):
        at = places(xp, counts, form)
        inside, flat = inside & (at >= 0) & (at < n), flat * n + at
    return totals(xp, result, xp.where(inside, flat, prod(result.shape)), a)


def _repeated(xp: Any, result: Result, pattern: tuple[int, ...], a: AnyArray) -> AnyArray:
    """A unit tensor's entries: labels that stand several times."""
    labels = range(max(pattern, default=-1) + 1)
    extents = dict(zip(pattern, result.shape, strict=True))
    forms = tuple([(0, tuple([int(label == k) for k in labels])) for label in pattern])
    return _scattered(xp, result, tuple([extents[k] for k in labels]), forms, a)


def _embed(xp: Any, result: Result, params: Params, a: AnyArray) -> AnyArray:
    return _repeated(xp, result, params[0], a)


def _embed_add(xp: Any, result: Result, params: Params, onto: AnyArray, a: AnyArray) -> AnyArray:
    return onto + _repeated(xp, result, params[0], a)


def _one_added(shape: Sizes, params: Params, onto: Sizes, core: Sizes) -> float:
    """One for every entry of the pattern's own axes: a number stands on a whole diagonal."""
    extents = dict(zip(params[0], shape, strict=True))
    return prod(extents.values())


def _padded(shape: Sizes, params: Params, first: Sizes) -> Sizes:
    return tuple([n + before + after for n, (before, after) in zip(first, params, strict=True)])


def _pad(xp: Any, result: Result, params: Params, a: AnyArray) -> AnyArray:
    return xp.pad(a, params)


def _one_placed(shape: Sizes, params: Params, *shapes: Sizes) -> float:
    return prod(params[0])


def _place(xp: Any, result: Result, params: Params, a: AnyArray) -> AnyArray:
    counts, forms = params
    return _scattered(xp, result, counts, forms, a)


def _place_add(xp: Any, result: Result, params: Params, onto: AnyArray, a: AnyArray) -> AnyArray:
    counts, forms = params
    return onto + _scattered(xp, result, counts, forms, a)


STRIDED = [
    Kind(
        name="embed", params=_PATTERN,
        shape=given, reference=_embed, into_zeros=True, cheap=True,
    ),
    Kind(
        name="embed_add", params=_PATTERN,
        shape=given, flops=_one_added, reference=_embed_add, in_place="first",
    ),
    Kind(
        name="pad", params={"*margins": "for every axis, zeros before and behind"},
        shape=_padded, reference=_pad,
    ),
    Kind(
        name="place", params=_PLACEMENT,
        shape=given, flops=_one_placed, reference=_place, tiles=tiles.placed,
        into_zeros=True, cheap=True,
    ),
    Kind(
        name="place_add", params=_PLACEMENT,
        shape=given, flops=_one_placed, reference=_place_add, tiles=tiles.placed,
        in_place="first",
    ),
]  # fmt: skip
