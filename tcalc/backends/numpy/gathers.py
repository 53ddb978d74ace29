"""NumPy kernels of products with selection tensors: taking entries, adding them by segments."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...ops.selection import checked
from ...plan.steps import Step
from ...support.arrays import Array
from ..host.slots import Run, Slots
from .matrices import Maker


def _index(step: Step, dtype: np.dtype[Any]) -> Run:
    (a,), o, (extent, what) = step.args, step.out, step.params

    def run(v: Slots) -> None:
        v[o] = checked(v[a], extent, what)

    return run


def _integers(step: Step, dtype: np.dtype[Any]) -> Run:
    args, o, (form,) = step.args, step.out, step.params

    def run(v: Slots) -> None:
        v[o] = np.asarray(form(*[v[a] for a in args]))  # of numbers it is a scalar, no array

    return run


def _joint(step: Step, dtype: np.dtype[Any]) -> Run:
    """Places in the C order of several axes; an axis without integers has its own label's."""
    args, o, shape = step.args, step.out, step.shape
    factors = [
        (extent, place, (-1,) + (1,) * (behind - 1)) for extent, place, behind in step.params
    ]

    def run(v: Slots) -> None:
        total = np.zeros(shape, np.intp)
        for extent, place, column in factors:
            total *= extent
            total += np.arange(extent).reshape(column) if place < 0 else v[args[place]]
        v[o] = total

    return run


def _take(step: Step, dtype: np.dtype[Any]) -> Run:
    (a, i), o, (axis,) = step.args, step.out, step.params
    before = (slice(None),) * axis

    def run(v: Slots) -> None:
        array, index = v[a], v[i]
        if array.flags.c_contiguous:
            np.take(array, index, axis, v[o], "clip")  # in range: it has been checked
        else:  # which NumPy would copy as a whole
            v[o][...] = array[(*before, index)]

    return run


def _segments(step: Step, dtype: np.dtype[Any]) -> Run:
    (a, i), o, (axis,) = step.args, step.out, step.params
    count = step.shape[0]

    def run(v: Slots) -> None:
        array, index, out = v[a], v[i].reshape(-1), v[o]
        columns = prod(out.shape[1:])
        if columns == 1:
            out.reshape(-1)[...] = np.bincount(index, array.reshape(-1), count)
        else:
            values = np.moveaxis(array, axis, 0).reshape(len(index), columns)
            out[...] = _places(index, count, dtype).dot(values).reshape(out.shape)

    return run


def _places(index: Array, count: int, dtype: np.dtype[Any]) -> Any:
    """The sparse matrix with column k all zeros but for a one in row index[k]."""
    from scipy.sparse import csc_array

    items = len(index)
    return csc_array((np.ones(items, dtype), index, np.arange(items + 1)), shape=(count, items))


def _count(step: Step, dtype: np.dtype[Any]) -> Run:
    (i,), o, count = step.args, step.out, step.shape[0]

    def run(v: Slots) -> None:
        v[o][...] = np.bincount(v[i].reshape(-1), minlength=count)

    return run


def _onehot(step: Step, dtype: np.dtype[Any]) -> Run:
    (i,), o = step.args, step.out

    def run(v: Slots) -> None:
        index, out = v[i].reshape(-1), v[o]
        out.fill(0)
        if out.size:
            out.reshape(len(index), -1)[np.arange(len(index)), index] = 1

    return run


def _add_at(step: Step, dtype: np.dtype[Any]) -> Run:
    """Adds a number at one place for every entry of the indices; no place is met twice."""
    (a, *integers), o, (coef, places) = step.args, step.out, step.params
    columns = [
        None if place >= 0 else np.arange(extent).reshape((-1,) + (1,) * (behind - 1))
        for extent, (place, behind) in zip(step.shape, places, strict=True)
    ]

    def run(v: Slots) -> None:
        target = v[o]
        if v[a] is not target:
            np.copyto(target, v[a])
        index = [
            v[integers[place - 1]] if column is None else column
            for column, (place, _) in zip(columns, places, strict=True)
        ]
        target[tuple(index)] += coef

    return run


#: How each kind of step is run.
TABLES: dict[str, Maker] = {
    "integers": _integers,
    "index": _index,
    "joint": _joint,
    "take": _take,
    "segments": _segments,
    "count": _count,
    "onehot": _onehot,
    "add_at": _add_at,
}
