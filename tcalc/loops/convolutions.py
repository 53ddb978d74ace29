"""Convolutions with kernels whose extents are numbers, computed directly: one form for all axes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count, islice
from typing import Any

import numpy as np

from ..graph.extents import Extent, extent_from, form_of
from ..graph.nodes import Expr
from ..ops.arithmetic import check_axis
from ..support.errors import ShapeError
from .build import build

#: Axes of one array, and as many of the other.
Pairs = tuple[Sequence[int], Sequence[int]]


def convolved(
    one: Any, other: Any, mode: str, axes: Pairs | None = None, dot_axes: Pairs = ((), ())
) -> Any:
    """Sums over all places of one array inside of the other, backwards; arrays of arrays.

    Parameters
    ----------
    one, other : array_like or Expr
        Of the same number of axes, unless `axes` says which are convolved.
    mode : {"full", "valid", "same"}
        All places where they meet, those where one covers the other, or as many as the first has.
    axes, dot_axes : pair of sequences of int, optional
        The axes that are convolved with each other, by default all in turn, and those that are
        summed over. The result has all others, of the first and then of the second, in front.

    Raises
    ------
    ShapeError
        Where extents of both have names, and for arrays of which neither covers the other where
        "valid". An axis whose extent has a name covers any number.
    """
    a, b = (e if isinstance(e, Expr) else np.asarray(e) for e in (one, other))
    if axes is None and a.ndim != b.ndim:
        raise ShapeError(f"convolve: arrays of {a.ndim} and {b.ndim} axes")
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"convolve: mode {mode!r} is not 'full', 'valid' or 'same'")
    if axes is None:
        axes = range(a.ndim), range(b.ndim)
    a, free, sizes = _convolved_last(a, axes[0], dot_axes[0])
    b, others, kernel = _convolved_last(b, axes[1], dot_axes[1])
    named = [n for n in kernel if isinstance(n, str)]
    back = bool(named) or (mode == "valid" and any(map(_shorter, sizes, kernel)))
    if named and (mode == "same" or any(isinstance(m, str) for m in sizes)):
        raise ShapeError(
            f"convolve needs a kernel whose extents are numbers, not {named[0]}; where both have "
            "names, write the sum as text for parse_index"
        )
    given = f"convolve: neither {sizes} nor {kernel} covers the other on all axes"
    if back:
        a, b, free, others, sizes, kernel = b, a, others, free, kernel, sizes
    if mode == "valid" and any(map(_shorter, sizes, kernel)):
        raise ShapeError(given)
    wide = [] if mode == "valid" else [int(n) - 1 for n in kernel]
    widths = [(0, 0)] * (a.ndim - len(wide)) + [(n, n) for n in wide]
    found = _valid(
        np.pad(a, widths) if any(wide) else a, b, free, others, list(map(int, kernel)), back
    )
    if mode == "same":
        cut = [slice(n // 2, n // 2 - n or None) for n in wide]
        found = found[(..., *cut)]
    return found


def _shorter(one: Extent, other: Extent) -> bool:
    """Is one of these extents a smaller number than the other?"""
    return isinstance(one, int) and isinstance(other, int) and one < other


def _convolved_last(
    a: Any, axes: Sequence[int], summed: Sequence[int]
) -> tuple[Any, int, list[Extent]]:
    """The array with the summed and then the convolved axes last; how many others; the extents."""
    chosen = [check_axis(k, a.ndim, "convolve") for k in (*summed, *axes)]
    others = [k for k in range(a.ndim) if k not in chosen]
    extents = [a.shape[k] for k in chosen[len(summed) :]]
    return np.transpose(a, others + chosen), len(others), extents


def _valid(
    a: Any, b: Any, free: int, others: int, extents: Sequence[int], back: bool = False
) -> Any:
    """Sums over all places of b inside of a: out[i] is the sum over k of a[i + n - 1 - k] b[k].

    The axes of both are those of their own, those that are summed, and those that are convolved;
    `back` puts those of b first.
    """
    n = len(extents)
    summed = a.ndim - free - n
    letters = count()
    own, their, dot, out, inner = (list(islice(letters, m)) for m in (free, others, summed, n, n))
    lead = their + own if back else own + their
    return np.einsum(
        _windows(a, extents), own + dot + out + inner, b, their + dot + inner, lead + out
    )


def _windows(a: Any, extents: Sequence[int]) -> Any:
    """What b meets: behind the axes of all places, the entries before each of them, backwards."""
    n = len(extents)
    if not n:
        return a
    if not isinstance(a, Expr):
        last = tuple(range(-n, 0))
        return np.flip(np.lib.stride_tricks.sliding_window_view(a, extents, last), last)
    places = [extent_from(form_of(a.shape[k - n]) - extents[k] + 1) for k in range(n)]

    def entry(chosen: list[Any]) -> Any:
        if len(chosen) < 2 * n:
            extent: Extent = [*places, *extents][len(chosen)]
            return build(extent, lambda i: entry([*chosen, i]))
        pairs = zip(chosen[:n], chosen[n:], extents, strict=True)
        return a[(..., *[i + (m - 1) - k for i, k, m in pairs])]

    return np.moveaxis(entry([]), range(2 * n), range(-2 * n, 0))
