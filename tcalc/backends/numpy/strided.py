"""NumPy kernels of shifted reads: strided views, zeros around arrays, entries placed into zeros."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product as combinations
from math import prod
from typing import Any

import numpy as np

from ...plan.kinds.views import AffinePlace
from ...plan.steps import Step
from ..host.slots import Run, Slots
from .matrices import Maker


def _window(step: Step, dtype: np.dtype[Any]) -> Run:
    """Entries at affine places, which lie inside the array."""
    (a,), o, forms, shape = step.args, step.out, step.params, step.shape
    keys = _slices(forms, shape)
    if keys is not None:

        def sliced(v: Slots) -> None:
            v[o] = v[a][keys]

        return sliced
    corner = tuple([slice(start, None) for start, _ in forms])

    def strided(v: Slots) -> None:
        array = v[a]
        strides = [
            sum([c[k] * s for (_, c), s in zip(forms, array.strides, strict=True)])
            for k in range(len(shape))
        ]
        v[o] = np.lib.stride_tricks.as_strided(array[corner], shape, strides, writeable=False)

    return strided


def _slices(forms: Sequence[AffinePlace], shape: Sequence[int]) -> tuple[Any, ...] | None:
    """The window as a slice, where every axis is read by one label of its own, in order."""
    keys: list[Any] = []
    axis = 0
    for start, coefs in forms:
        used = [k for k, c in enumerate(coefs) if c]
        if not used:
            keys.append(start)
        elif used != [axis]:
            return None
        else:
            c = coefs[axis]
            stop = start + c * shape[axis]
            keys.append(slice(start, stop if stop >= 0 else None, c))
            axis += 1
    return (*keys, ...)  # a view even where all keys are numbers


def _pad(step: Step, dtype: np.dtype[Any]) -> Run:
    (a,), o, margins = step.args, step.out, step.params
    inside = tuple([slice(m, n - k) for (m, k), n in zip(margins, step.shape, strict=True)])
    edges = []
    for axis, ((before, after), n) in enumerate(zip(margins, step.shape, strict=True)):
        ahead = inside[:axis]
        edges += [(*ahead, slice(before))] * bool(before)
        edges += [(*ahead, slice(n - after, n))] * bool(after)

    def run(v: Slots) -> None:
        out = v[o]
        for edge in edges:
            out[edge] = 0
        out[inside] = v[a]

    return run


def _place(step: Step, dtype: np.dtype[Any]) -> Run:
    """Writes into zeros, which the program provides; entries outside of it are left out."""
    (a,), o, (counts, forms) = step.args, step.out, step.params
    pieces = regions(counts, forms, step.shape)
    whole = _broadcast(counts, forms, step.shape)

    def run(v: Slots) -> None:
        out = v[o]
        array = whole(v[a], out.shape)
        for target, source, order in pieces:
            out[target] = array[source].transpose(order)

    return run


def _place_add(step: Step, dtype: np.dtype[Any]) -> Run:
    (onto, a), o, (counts, forms) = step.args, step.out, step.params
    pieces = regions(counts, forms, step.shape)
    whole = _broadcast(counts, forms, step.shape)

    def run(v: Slots) -> None:
        out = v[o]
        array = whole(v[a], out.shape)
        if v[onto] is not out:
            np.copyto(out, v[onto])
        for target, source, order in pieces:
            out[target] += array[source].transpose(order)

    return run


def _broadcast(
    counts: Sequence[int], forms: Sequence[AffinePlace], shape: Sequence[int]
) -> Callable[[np.ndarray, Sequence[int]], np.ndarray]:
    """The operand with all its labels, of which one may be short: on a tile of the result."""
    alone = {
        axis: coefs.index(1)
        for axis, (start, coefs) in enumerate(forms)
        if not start and sum(map(bool, coefs)) == 1 and 1 in coefs
    }

    def whole(array: np.ndarray, found: Sequence[int]) -> np.ndarray:
        extents = counts
        if found != shape:
            extents = list(counts)
            for axis, label in alone.items():
                extents[label] = found[axis] if found[axis] != shape[axis] else extents[label]
        given = tuple(extents)
        return array if array.shape == given else np.broadcast_to(array, given)

    return whole


#: Where in the result, where in the array, and the order of axes in which they agree.
Region = tuple[tuple[Any, ...], tuple[Any, ...], tuple[int, ...]]


def regions(
    counts: Sequence[int], forms: Sequence[AffinePlace], shape: Sequence[int]
) -> list[Region]:
    """Slices of the result and of the array that agree.

    Labels that stand together with another one on some axis are taken value by value, few of them
    and those with few values.
    """
    found: list[Region] = []
    order = _fixed(counts, forms)
    for values in combinations(*[range(counts[k]) for k in order]):
        at = dict(zip(order, values, strict=True))
        piece = _piece(counts, forms, shape, at)
        if piece is not None:
            found.append(piece)
    return found


def slices(counts: Sequence[int], forms: Sequence[AffinePlace]) -> int:
    """How many regions there are at most."""
    return prod([counts[k] for k in _fixed(counts, forms)])


def _fixed(counts: Sequence[int], forms: Sequence[AffinePlace]) -> list[int]:
    """Labels that are taken value by value."""
    single: set[int] = set()
    fixed: set[int] = set()
    for k in sorted(range(len(counts)), key=lambda k: -counts[k]):
        axes = [c for _, c in forms if c[k]]
        free = all(not any(c[j] for j in single) for c in axes) and len(axes) == 1
        (single if free else fixed).add(k)
    return sorted(fixed)


def _piece(
    counts: Sequence[int], forms: Sequence[AffinePlace], shape: Sequence[int], at: dict[int, int]
) -> Region | None:
    target: list[Any] = []
    source: list[Any] = [at.get(k, slice(None)) for k in range(len(counts))]
    order: list[int] = []
    for (constant, coefs), n in zip(forms, shape, strict=True):
        start = constant + sum([coefs[k] * value for k, value in at.items()])
        free = [k for k, c in enumerate(coefs) if c and k not in at]
        if not free:
            if not 0 <= start < n:
                return None
            target.append(start)
            continue
        (k,) = free
        c = coefs[k]
        low, high = _inside(start, c, n, counts[k])
        if low > high:
            return None
        first, last = start + c * low, start + c * high
        stop = last + (1 if c > 0 else -1)
        target.append(slice(first, stop if stop >= 0 else None, c))
        source[k] = slice(low, high + 1)
        order.append(k)
    ranks = sorted(order)
    return tuple(target), tuple(source), tuple([ranks.index(k) for k in order])


def _inside(start: int, c: int, n: int, count: int) -> tuple[int, int]:
    """The first and the last value from 0 to count - 1 with 0 <= start + c * value < n."""
    if c > 0:
        return max(0, -(start // c)), min(count - 1, (n - 1 - start) // c)
    return max(0, -((n - 1 - start) // -c)), min(count - 1, start // -c)


#: How each kind of step is run.
WINDOWS: dict[str, Maker] = {
    "window": _window,
    "pad": _pad,
    "place": _place,
    "place_add": _place_add,
}
