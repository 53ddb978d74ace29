"""Entries in order: `argsort` and `argmax` are integers, by which all others gather.

The order is locally constant, so the derivative of a sorted array is the selection that sorts it;
of equal entries the first comes first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..graph.applications import apply
from ..graph.extents import ONE, Shape, show_shape
from ..graph.nodes import Expr
from ..graph.normal import einsum, view
from ..graph.operators import Kernels, Meaning, Op
from ..graph.orientation import inverse_permutation
from ..graph.spelling import Spelling
from ..support.errors import ShapeError, UnsupportedError
from .arithmetic import Axis, as_expr, check_axis, chosen_axes, keep, mean, public, subtract
from .indexing import getitem, index_expr
from .reductions import max, min
from .reshape import ravel, reshape
from .selection import selection

__all__ = [
    "argmax",
    "argmin",
    "argsort",
    "median",
    "partition",
    "percentile",
    "ptp",
    "quantile",
    "sort",
    "take_along_axis",
]


def _places(name: str, kernel: Callable[..., Any], shape: Callable[..., Shape]) -> Op:
    """A row of integers along the last axis; its derivative is zero."""
    return Op(
        name, (1,),
        Meaning((None,), shape=shape, places=True),
        Kernels(kernel, flops=10),
        Spelling(rf"\operatorname{{{{{name}}}}}({{0}})"),
    )  # fmt: skip


def _argsort(xp: Any, params: tuple[Any, ...], x: Any) -> Any:
    return xp.argsort(x, axis=-1, stable=True)


#: What to do about an extent that has a name.
NUMBERED = "declare it as a number, or trace a function of arrays, whose extents are known"

ARGSORT = _places("argsort", _argsort, lambda params, s: s)
ARGMAX = _places("argmax", lambda xp, p, x: xp.argmax(x, axis=-1), lambda params, s: s[:-1])
ARGMIN = _places("argmin", lambda xp, p, x: xp.argmin(x, axis=-1), lambda params, s: s[:-1])


def _last(e: Expr, axis: int) -> Expr:
    return view(e, [*[k for k in range(e.ndim) if k != axis], axis])


def _back(e: Expr, axis: int) -> Expr:
    order = [*[k for k in range(e.ndim) if k != axis], axis]
    return view(e, inverse_permutation(order))


def _line(a: object, axis: int | None, what: str) -> tuple[Expr, int]:
    """The array and a valid axis; without an axis, its entries in C order."""
    e = ravel(a) if axis is None else as_expr(a)
    return e, check_axis(0 if axis is None else axis, e.ndim, what)


@public
def argsort(a: object, axis: int | None = -1) -> Expr:
    """The places of the entries along an axis in ascending order: integers, which may index."""
    e, place = _line(a, axis, "argsort")
    return _back(apply(ARGSORT, _last(e, place)), place)


def _extreme(row: Op, a: object, axis: int | None, keepdims: bool) -> Expr:
    e, place = _line(a, axis, row.name)
    found = keep(apply(row, _last(e, place)), [place], keepdims)
    return reshape(found, (1,) * as_expr(a).ndim) if keepdims and axis is None else found


@public
def argmax(a: object, axis: int | None = None, keepdims: bool = False) -> Expr:
    """The place of the largest entry along an axis, the first of equal ones: an integer."""
    return _extreme(ARGMAX, a, axis, keepdims)


@public
def argmin(a: object, axis: int | None = None, keepdims: bool = False) -> Expr:
    """The place of the smallest entry along an axis, the first of equal ones: an integer."""
    return _extreme(ARGMIN, a, axis, keepdims)


@public
def take_along_axis(arr: object, indices: object, axis: int | None = -1) -> Expr:
    """Entries at integers that go along with the other axes, as `numpy.take_along_axis`."""
    e, place = _line(arr, axis, "take_along_axis")
    index = index_expr(indices)
    rest = (*e.shape[:place], *e.shape[place + 1 :])
    if index.ndim != e.ndim or (*index.shape[:place], *index.shape[place + 1 :]) != rest:
        raise ShapeError(
            f"take_along_axis: indices of shape {show_shape(index.shape)} for "
            f"{show_shape(e.shape)} along axis {place}"
        )
    word = list(range(e.ndim))
    out = [e.ndim if k == place else k for k in word]
    return einsum([e, selection(index, e.shape[place])], [word, (*out, place)], out, ONE)


@public
def sort(a: object, axis: int | None = -1) -> Expr:
    """The entries along an axis in ascending order, as `numpy.sort`."""
    e, place = _line(a, axis, "sort")
    return take_along_axis(e, argsort(e, place), place)


@public
def partition(a: object, kth: int, axis: int | None = -1) -> Expr:
    """`sort`, whose entry `kth` is in its place, smaller ones before it and larger ones behind."""
    e, place = _line(a, axis, "partition")
    extent = e.shape[place]
    if isinstance(extent, int):
        check_axis(kth, extent, "partition")
    return sort(e, place)


@public
def ptp(a: object, axis: Axis = None, keepdims: bool = False) -> Expr:
    """The largest less the smallest entry over axes."""
    return subtract(max(a, axis, keepdims), min(a, axis, keepdims))


# --- quantiles ------------------------------------------------------------------------------------


@public
def quantile(
    a: object, q: object, axis: Axis = None, method: str = "linear", keepdims: bool = False
) -> Expr:
    """Quantiles over axes by linear interpolation of the sorted entries, as `numpy.quantile`.

    Parameters
    ----------
    a : expression or array
        The axes must have literal extents.
    q : array_like of numbers from 0 to 1
        Its axes come first in the result.
    axis : int or tuple of int, optional
    method : {"linear"}
    keepdims : bool
    """
    e, levels = as_expr(a), np.asarray(q, float)
    if method != "linear":
        raise UnsupportedError(f"quantile: method {method!r}; there is 'linear'")
    if levels.size and not (levels.min() >= 0 and levels.max() <= 1):
        raise ValueError("quantile: levels lie between 0 and 1")
    axes = chosen_axes(axis, e.ndim, "quantile")
    rest = [k for k in range(e.ndim) if k not in axes]
    line = view(e, rest + axes)
    count = 1
    for extent in line.shape[len(rest) :]:
        if isinstance(extent, str):
            raise UnsupportedError(
                f"quantile over an axis of the named extent {extent}; {NUMBERED}"
            )
        count *= extent
    if not count:
        raise ShapeError("quantile of no entries")
    ordered = sort(reshape(line, (*line.shape[: len(rest)], count)))
    places = levels * (count - 1)
    low = np.floor(places).astype(int)
    high = np.minimum(low + 1, count - 1)
    below, above = (getitem(ordered, (..., at)) for at in (low, high))
    found = below + (above - below) * (places - low)
    found = view(found, [*range(len(rest), found.ndim), *range(len(rest))])
    return keep(found, [k + levels.ndim for k in axes], keepdims) if keepdims else found


@public
def percentile(
    a: object, q: object, axis: Axis = None, method: str = "linear", keepdims: bool = False
) -> Expr:
    """`quantile` of ``q / 100``."""
    return quantile(a, np.asarray(q, float) / 100, axis, method, keepdims)


@public
def median(a: object, axis: Axis = None, keepdims: bool = False) -> Expr:
    """The middle of the sorted entries, or the mean of the two in the middle, as `numpy.median`."""
    e = as_expr(a)
    axes = chosen_axes(axis, e.ndim, "median")
    rest = [k for k in range(e.ndim) if k not in axes]
    line = view(e, rest + axes)
    if len(axes) > 1:
        line = reshape(line, (*line.shape[: len(rest)], -1))
    extent = line.shape[-1] if axes else 1
    if isinstance(extent, str):
        raise UnsupportedError(f"median over an axis of the named extent {extent}; {NUMBERED}")
    if not extent:
        raise UnsupportedError("median over an axis of extent 0")
    if not axes:
        return e
    middle = slice((extent - 1) // 2, extent // 2 + 1)
    return keep(mean(getitem(sort(line), (..., middle)), -1), axes, keepdims)
