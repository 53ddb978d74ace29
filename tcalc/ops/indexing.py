"""Indexing as NumPy's: slices, `...` and None, and gathers by integers.

An index array picks entries of one axis: the product with a selection tensor. Several arrays are
broadcast together; their axes stand where the first of them stood, or in front where a slice, an
ellipsis or None lies between them. A slice or one integer is the product with an indicator.
"""

from __future__ import annotations

import builtins
from types import EllipsisType
from typing import Any

import numpy as np

from ..graph import normal
from ..graph.arraylike import surface
from ..graph.bound_variables import readable
from ..graph.captures import captured
from ..graph.extents import ONE, Extent, Shape, show_shape
from ..graph.factors import LabelledExpr
from ..graph.nodes import Apply, Expr
from ..graph.normal import bare
from ..graph.variables import check_extent, const_node, is_masked
from ..support.errors import RangeError, ShapeError
from .affine_entries import integral
from .arithmetic import as_expr, broadcast_shapes, check_axis, public
from .reshape import ravel
from .selection import selection
from .slicing import cut, cut_operands, integer_operands, is_integer

__all__ = ["segment_sum", "take"]

IndexLabels = tuple[int, ...]


def getitem(a: Expr, key: object) -> Expr:
    """``a[key]`` by slices, `...`, None, integers, arrays of integers, and masks of numbers."""
    e = as_expr(a)
    keys = _without_masks(_complete(list(key) if isinstance(key, tuple) else [key], e), e)
    arrays = [index_expr(k) for k in keys if not _basic(k) and not is_integer(k)]
    shape = broadcast_shapes((), *[index.shape for index in arrays])
    chosen = tuple(range(e.ndim, e.ndim + len(shape)))
    extents: dict[int, Extent] = dict(zip(chosen, shape, strict=True))
    operands: list[LabelledExpr] = [(e, tuple(range(e.ndim)))]
    out: list[int] = []
    front = _apart([_basic(k) for k in keys])
    placed, axis = front or not arrays, 0
    if front:
        out += chosen
    waiting = iter(arrays)
    for k in keys:
        if k is None:
            fresh = e.ndim + len(extents)
            extents[fresh] = 1
            out.append(fresh)
            continue
        if isinstance(k, slice):
            out.append(axis)
            if (found := cut(k, e.shape[axis])) is not None:
                out[-1] = e.ndim + len(extents)
                extents[out[-1]] = found.extent
                operands += cut_operands(e, axis, k, found, out[-1])
        elif is_integer(k):
            operands += integer_operands(e, axis, k)
            if not placed:
                out += chosen
                placed = True
        else:
            index = next(waiting)
            word = (*_stretched(index.shape, shape, chosen), axis)
            operands.append((selection(index, e.shape[axis]), word))
            if not placed:
                out += chosen
                placed = True
        axis += 1
    ops, words = [op for op, _ in operands], [word for _, word in operands]
    return normal.einsum(ops, words, out, ONE, extents)


def _stretched(shape: Shape, target: Shape, labels: IndexLabels) -> IndexLabels:
    """Labels of an index array that is broadcast; a stretched axis has a label of its own."""
    skip = len(target) - len(shape)
    return tuple(
        [
            -1 - axis if extent == 1 and target[axis + skip] != 1 else labels[axis + skip]
            for axis, extent in enumerate(shape)
        ]
    )


def _complete(keys: list[Any], e: Expr) -> list[Any]:
    """The index with a slice for every axis that it leaves out."""
    wanted = builtins.sum(map(_taken, keys))
    if wanted > e.ndim:
        raise IndexError(f"{wanted} indices for shape {show_shape(e.shape)}")
    places = [k for k, item in enumerate(keys) if isinstance(item, EllipsisType)]
    if len(places) > 1:
        raise IndexError("an index has a single ellipsis ('...')")
    at = places[0] if places else len(keys)
    return [*keys[:at], *[slice(None)] * (e.ndim - wanted), *keys[at + 1 :]]


def _taken(key: object) -> int:
    """How many axes a key stands for."""
    mask = _mask(key)
    return int(key is not None and not isinstance(key, EllipsisType)) if mask is None else mask.ndim


def _mask(key: object) -> np.ndarray | None:
    """A key as a constant mask, where it is one."""
    flags = isinstance(key, list) and key and all(isinstance(k, bool | np.bool_) for k in key)
    array = np.asarray(key) if flags or isinstance(key, np.ndarray) else None
    return array if array is not None and array.ndim and array.dtype.kind == "b" else None


def _without_masks(keys: list[Any], e: Expr) -> list[Any]:
    """The index with the places of masks, one array for each of their axes."""
    found: list[Any] = []
    axis = 0
    for key in keys:
        if (mask := _mask(key)) is None or is_masked(key):
            found.append(key)
            axis += key is not None
            continue
        own = e.shape[axis : axis + mask.ndim]
        if not all(isinstance(n, int) for n in own):
            raise TypeError(f"a mask for axes {show_shape(own)} is written where(mask, a, b)")
        if own != mask.shape:
            raise IndexError(f"a mask of shape {show_shape(mask.shape)} for axes {show_shape(own)}")
        found += np.nonzero(mask)
        axis += mask.ndim
    return found


def _basic(key: object) -> bool:
    """Is this no integer index?"""
    return key is None or isinstance(key, slice)


def _apart(basic: list[bool]) -> bool:
    """Do slices or new axes lie between integer indices?"""
    places = [k for k, flag in enumerate(basic) if not flag]
    return bool(places) and places[-1] - places[0] + 1 > len(places)


# --- integers -------------------------------------------------------------------------------------


def index_expr(key: object) -> Expr:
    """An index as an expression of integers.

    Raises
    ------
    TypeError
        For masks and for anything that is no integer variable or array of integers.
    """
    if isinstance(key, Expr):
        e = bare(key)
        _refuse_mask(isinstance(e, Apply) and e.op.meaning.range == (0.0, 1.0) and e.op.elementwise)
        if integral(e):
            return e
        raise TypeError(
            f"an index is an array of integers or of integer variables, not {readable(str(e)):.60} "
            "(declare var(..., integer=True); for a mask write where(mask, a, b))"
        )
    if is_masked(key):
        raise TypeError("a masked array is no index; fill it first")
    try:
        array = np.asarray(key)
    except ValueError as error:
        raise TypeError(f"an index is an array of integers: {error}") from None
    _refuse_mask(array.dtype.kind == "b")
    if isinstance(key, list) and not array.size:
        array = array.astype(np.intp)
    if array.dtype.kind not in "iu":
        raise TypeError(f"an index is an array of integers, not {key!r:.60}")
    if array.size and not np.can_cast(array.dtype, np.int64) and array.max() >= 2**63:
        raise RangeError(f"the index {array.max()} is larger than any extent")
    array = array.astype(np.int64, copy=False)
    held = captured(key, array)
    return const_node(array) if held is None else held


def _refuse_mask(mask: bool) -> None:
    if mask:
        raise TypeError("a boolean mask has no fixed shape; write where(mask, a, b)")


# --- functions ------------------------------------------------------------------------------------


@public
def take(a: object, indices: object, axis: int | None = None) -> Expr:
    """The entries of a at integers along an axis, as `numpy.take`.

    Parameters
    ----------
    a : expression or array
    indices : array of integers, or integer variable
        Negative entries count from the end.
    axis : int, optional
        Without one, the entries in C order.

    Raises
    ------
    IndexError
        A `RangeError`, where an entry is out of range: when built, if the indices and the extent
        are numbers, else at evaluation. TypeError for indices that are no integers.

    Examples
    --------
    >>> import tcalc as tc
    >>> x, idx = tc.var("x", "n"), tc.var("idx", "m", integer=True)
    >>> print(tc.grad(tc.sum(tc.take(x, idx) ** 2), x)(x=[1.0, 2.0, 3.0], idx=[0, 2, 2]))
    [ 2.  0. 12.]
    """
    e = as_expr(a)
    if axis is None and e.ndim != 1:
        e = ravel(e)
    place = check_axis(0 if axis is None else axis, e.ndim, "take")
    return getitem(e, (*[slice(None)] * place, index_expr(indices)))


@public
def segment_sum(a: object, segments: object, n: Extent) -> Expr:
    """The sums of entries of a with one number of a segment, as `jax.ops.segment_sum`.

    Parameters
    ----------
    a : expression or array
    segments : array of integers, or integer variable
        One number per entry of the leading axis of a, or of as many leading axes as it has.
        Negative numbers count from the end.
    n : int or str
        How many segments there are: the first extent of the result. Sums over nothing are 0.

    Examples
    --------
    >>> import tcalc as tc
    >>> r, group = tc.var("r", "m"), tc.var("group", "m", integer=True)
    >>> print(tc.segment_sum(r, group, 3)(r=[1.0, 2.0, 3.0], group=[0, 2, 2]))
    [1. 0. 5.]
    """
    e, index = as_expr(a), index_expr(segments)
    k = index.ndim
    if not k or index.shape != e.shape[:k]:
        raise ShapeError(
            f"segment_sum of shape {show_shape(e.shape)}: the segments have shape "
            f"{show_shape(index.shape)}, which is not that of its leading axes"
        )
    chosen = selection(index, check_extent(n, "the extent of segment_sum"))
    words = [range(e.ndim), (*range(k), e.ndim)]
    return normal.einsum([e, chosen], words, (e.ndim, *range(k, e.ndim)))


surface["getitem"] = getitem
