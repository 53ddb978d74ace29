"""Arrays put side by side and taken apart: `vstack`, `split` and their kin, under NumPy's names."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index as whole_number

import numpy as np

from ..graph.extents import show_shape
from ..graph.nodes import Expr
from ..support.errors import ShapeError
from .arithmetic import as_expr, check_axis, public
from .axes import atleast_1d, atleast_2d, atleast_3d
from .indexing import getitem
from .joining import array, concatenate, parts
from .reshape import ravel

__all__ = [
    "append",
    "array_split",
    "column_stack",
    "dsplit",
    "dstack",
    "hsplit",
    "hstack",
    "split",
    "vsplit",
    "vstack",
]


@public
def vstack(arrays: object) -> Expr:
    """Arrays one below the other; vectors are rows."""
    return concatenate([atleast_2d(e) for e in parts(arrays, "vstack")], 0)


@public
def hstack(arrays: object) -> Expr:
    """Arrays one beside the other: along the second axis, vectors along the first."""
    exprs = [atleast_1d(e) for e in parts(arrays, "hstack")]
    return concatenate(exprs, 0 if exprs and as_expr(exprs[0]).ndim == 1 else 1)


@public
def dstack(arrays: object) -> Expr:
    """Arrays one behind the other: along the third axis."""
    return concatenate([atleast_3d(e) for e in parts(arrays, "dstack")], 2)


@public
def column_stack(arrays: object) -> Expr:
    """Vectors as columns, and matrices, one beside the other."""
    exprs = parts(arrays, "column_stack")
    return concatenate([as_expr(atleast_2d(e)).T if e.ndim < 2 else e for e in exprs], 1)


@public
def append(arr: object, values: object, axis: int | None = None) -> Expr:
    """Values behind an array, along an axis; without one, both are flattened."""
    both = array(arr), array(values)
    if axis is None:
        return concatenate([ravel(e) for e in both], 0)
    return concatenate(both, axis)


# --- taken apart ----------------------------------------------------------------------------------


@public
def array_split(ary: object, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Expr]:
    """Parts along an axis, as `numpy.array_split`.

    Parameters
    ----------
    ary : expression or array
    indices_or_sections : int or sequence of int
        How many parts, as equal as they can be (the extent must be a number); or where parts start.
    axis : int
    """
    e = as_expr(ary)
    place = check_axis(axis, e.ndim, "array_split")
    if isinstance(indices_or_sections, int | np.integer):
        starts = _equal_starts(e, place, whole_number(indices_or_sections))
    else:
        starts = [whole_number(k) for k in indices_or_sections]
    ahead = (slice(None),) * place
    ends = zip([0, *starts], [*starts, None], strict=True)
    return [getitem(e, (*ahead, slice(start, end))) for start, end in ends]


def _equal_starts(e: Expr, place: int, count: int) -> list[int]:
    """Where parts start, the first excepted; longer ones come first."""
    extent = e.shape[place]
    if isinstance(extent, str) or count <= 0:
        raise ShapeError(f"split: axis {place} of {show_shape(e.shape)} into {count} parts")
    length, longer = divmod(extent, count)
    return [k * length + min(k, longer) for k in range(1, count)]


@public
def split(ary: object, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Expr]:
    """As `array_split`, but a number of parts must divide the extent."""
    e = as_expr(ary)
    place = check_axis(axis, e.ndim, "split")
    extent, sections = e.shape[place], indices_or_sections
    if isinstance(sections, int | np.integer) and isinstance(extent, int) and sections > 0:
        count = whole_number(sections)
        if extent % count:
            raise ShapeError(f"split: {count} equal parts of an axis of extent {extent}")
    return array_split(e, sections, place)


@public
def vsplit(ary: object, indices_or_sections: int | Sequence[int]) -> list[Expr]:
    """Parts along the first axis."""
    return split(ary, indices_or_sections, 0)


@public
def hsplit(ary: object, indices_or_sections: int | Sequence[int]) -> list[Expr]:
    """Parts along the second axis, of vectors along the first."""
    e = as_expr(ary)
    return split(e, indices_or_sections, 0 if e.ndim == 1 else 1)


@public
def dsplit(ary: object, indices_or_sections: int | Sequence[int]) -> list[Expr]:
    """Parts along the third axis."""
    return split(ary, indices_or_sections, 2)
