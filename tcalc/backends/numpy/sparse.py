"""NumPy kernels of products with sparse matrices: SciPy's."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...plan.steps import Step
from ..host.slots import Run, Slots
from .matrices import Maker


def _dot(step: Step, dtype: np.dtype[Any]) -> Run:
    (m, a), o, shape = step.args, step.out, step.shape
    axis, _ = step.params

    def run(v: Slots) -> None:
        array = v[a]
        matrix = v[m] if axis else v[m].T
        columns = array if array.ndim < 3 else array.reshape(len(array), prod(array.shape[1:]))
        v[o] = np.asarray(matrix @ columns).reshape(shape)

    return run


def _gram(step: Step, dtype: np.dtype[Any]) -> Run:
    (x, y, *weights), o = step.args, step.out
    axis, across, *_ = step.params

    def run(v: Slots) -> None:
        left = v[x] if axis else v[x].T
        right = v[y].T if across else v[y]
        if weights:
            right = _weighted(right.tocsr(), v[weights[0]])
        v[o] = (left @ right).toarray()

    return run


def _weighted(matrix: Any, weights: np.ndarray[Any, Any]) -> Any:
    """The matrix with its rows multiplied."""
    found = matrix.copy()
    found.data = matrix.data * np.repeat(weights, np.diff(matrix.indptr))
    return found


def _inner(step: Step, dtype: np.dtype[Any]) -> Run:
    (m, a), o = step.args, step.out

    def run(v: Slots) -> None:
        array, held = v[a], v[m].tocoo()
        if isinstance(array, np.ndarray):
            v[o] = np.asarray(held.data @ array[held.row, held.col])
        else:
            v[o] = np.asarray(held.multiply(array).sum())

    return run


SPARSE: dict[str, Maker] = {"sparse_dot": _dot, "sparse_gram": _gram, "sparse_inner": _inner}
