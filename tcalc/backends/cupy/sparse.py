"""Products with sparse matrices on a device: cuSPARSE's, by CuPy's names.

A product of two sparse matrices is waited for, to know how many entries it has; others are not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from math import prod
from typing import Any

from ...plan.kinds.kind import Params, Result
from ...support.arrays import AnyArray
from ...support.namespaces import on_device
from .library import CuPy


def uploaded(matrix: Any) -> Any:
    """A sparse matrix on the device, of SciPy's or there already; each entry stands once."""
    if on_device(matrix):
        return matrix
    found = import_module("cupyx.scipy.sparse").csr_matrix(matrix)
    found.has_canonical_format = True  # as bound data have, and CuPy waits to find out
    return found


def _dot(xp: CuPy, result: Result, params: Params, matrix: Any, array: AnyArray) -> AnyArray:
    held = matrix if params[0] else matrix.T
    if not (held.nnz and array.size):
        return xp.zeros(result.shape, result.dtype)
    columns = array if array.ndim < 3 else array.reshape(len(array), prod(array.shape[1:]))
    return (held @ columns).reshape(result.shape)


def _gram(
    xp: CuPy, result: Result, params: Params, one: Any, other: Any, *weights: AnyArray
) -> AnyArray:
    axis, across, *_ = params
    if not (one.nnz and other.nnz):
        return xp.zeros(result.shape, result.dtype)
    left, right = one if axis else one.T, other.T if across else other
    if weights:
        right = right.tocsr().copy()
        right.data = right.data * weights[0][right.tocoo().row]
    return (left @ right).toarray()


def _inner(xp: CuPy, result: Result, params: Params, matrix: Any, array: Any) -> AnyArray:
    if not hasattr(array, "tocsr"):
        held = matrix.tocoo()
        return (held.data * array[held.row, held.col]).sum()
    if array is matrix:
        return (matrix.data * matrix.data).sum()
    return matrix.multiply(array).sum()


SPARSE: Mapping[str, Callable[..., Any]] = {
    "sparse_dot": _dot,
    "sparse_gram": _gram,
    "sparse_inner": _inner,
}
