"""NumPy kernels of shifted reads: strided views, zeros around arrays, entries placed into zeros."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product as combinations
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ...plan.kinds.views import AffinePlace
from ...plan.steps import Step
from ...support.arrays import AnyArray
from ...support.records import NamedTuple
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
        v[o] = as_strided(array[corner], shape, strides, writeable=False)

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
        for region in pieces:
            region.of(out)[...] = array[region.source].transpose(region.order)

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
        for region in pieces:
            entries = region.of(out)
            entries += array[region.source].transpose(region.order)

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


#: ``strided(a, shape, strides)`` is a view of an array.
Strided = Callable[..., Any]


class Region(NamedTuple):
    """Where entries of an array come to lie in a result.

    Attributes
    ----------
    target : tuple
        A key of the result.
    labels : tuple of int
        The labels of its axes then: of those that stand twice it is the diagonal.
    source : tuple
        A key of the array.
    order : tuple of int
        The array's axes in the order of the diagonal's.
    """

    target: tuple[Any, ...]
    labels: tuple[int, ...]
    source: tuple[Any, ...]
    order: tuple[int, ...]

    def of(self, out: AnyArray, strided: Strided = as_strided) -> AnyArray:
        """The entries of a result, as a view."""
        found = out[(*self.target, ...)]  # a view even where all keys are numbers
        kept = tuple(dict.fromkeys(self.labels))
        if len(kept) == len(self.labels):
            return found
        axes = [[k for k, other in enumerate(self.labels) if other == label] for label in kept]
        shape = tuple([found.shape[k] for k, *_ in axes])
        return strided(found, shape, tuple([sum([found.strides[k] for k in own]) for own in axes]))


def regions(
    counts: Sequence[int], forms: Sequence[AffinePlace], shape: Sequence[int]
) -> list[Region]:
    """Parts of the result and of the array that agree.

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
        free = bool(axes) and all(not any(c[j] for j in single) for c in axes)
        (single if free else fixed).add(k)
    return sorted(fixed)


def _piece(
    counts: Sequence[int], forms: Sequence[AffinePlace], shape: Sequence[int], at: dict[int, int]
) -> Region | None:
    starts = [constant + sum([coefs[k] * v for k, v in at.items()]) for constant, coefs in forms]
    free = [[k for k, c in enumerate(coefs) if c and k not in at] for _, coefs in forms]
    ends = {k: (0, n - 1) for k, n in enumerate(counts) if k not in at}
    for start, labels, (_, coefs), n in zip(starts, free, forms, shape, strict=True):
        if not labels and not 0 <= start < n:
            return None
        for k in labels:
            low, high = _inside(start, coefs[k], n, counts[k])
            ends[k] = max(low, ends[k][0]), min(high, ends[k][1])
    if any(low > high for low, high in ends.values()):
        return None
    target: list[Any] = []
    for start, labels, (_, coefs) in zip(starts, free, forms, strict=True):
        if not labels:
            target.append(start)
            continue
        (k,) = labels
        c, (low, high) = coefs[k], ends[k]
        stop = start + c * high + (1 if c > 0 else -1)
        target.append(slice(start + c * low, stop if stop >= 0 else None, c))
    order = [k for labels in free for k in labels]
    kept = list(dict.fromkeys(order))
    source = [at[k] if k in at else slice(ends[k][0], ends[k][1] + 1) for k in range(len(counts))]
    ranks = sorted(kept)
    return Region(tuple(target), tuple(order), tuple(source), tuple([ranks.index(k) for k in kept]))


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
