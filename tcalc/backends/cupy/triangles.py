"""Triangles by routines of cuSOLVER and cuBLAS, in the order of memory that each is fastest in.

CuPy factors upper triangles, which takes two and a half times as long as lower ones, and copies one
right side, or as many as make a square, for which cuBLAS is as fast without.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ...support.arrays import AnyArray
from ...support.namespaces import ArrayNamespace


def lower_factor(xp: ArrayNamespace, a: AnyArray) -> tuple[AnyArray, AnyArray]:
    """L of a = L L' by the lower triangle of a, and where a has none such."""
    n, letter = len(a), a.dtype.char
    solver, handle = xp.cuda.cusolver, xp.cuda.device.get_cusolver_handle()
    lower = xp.cuda.cublas.CUBLAS_FILL_MODE_LOWER
    columns = xp.array(a.T, order="C")
    size = _named(solver, letter, "potrf_bufferSize")(handle, lower, n, columns.data.ptr, n)
    work, status = xp.empty(max(size, 1), a.dtype), xp.empty(1, np.int32)
    _named(solver, letter, "potrf")(
        handle, lower, n, columns.data.ptr, n, work.data.ptr, size, status.data.ptr
    )
    factor = xp.tril(columns.T)
    return factor, _no_factor(xp, a.dtype.name)(xp.diagonal(factor), status)


def solved(xp: ArrayNamespace, a: AnyArray, b: AnyArray, transposed: bool) -> AnyArray:
    """The solution of a's lower triangle, or of the transposed one, over b, row by row.

    cuBLAS has columns: to it b is transposed, but for a single column, and so is a unless it lies
    in memory column by column.
    """
    n, letter, blas = len(a), a.dtype.char, xp.cuda.cublas
    by_columns = a.flags.f_contiguous and not a.flags.c_contiguous
    if not (by_columns or a.flags.c_contiguous):
        a = xp.ascontiguousarray(a)
    triangle = blas.CUBLAS_FILL_MODE_LOWER if by_columns else blas.CUBLAS_FILL_MODE_UPPER
    count = b.size // n
    one = count == 1
    turned = by_columns == transposed if one else by_columns != transposed
    side = blas.CUBLAS_SIDE_LEFT if one else blas.CUBLAS_SIDE_RIGHT
    m, columns = (n, 1) if one else (count, n)
    _named(blas, letter, "trsm")(
        xp.cuda.device.get_cublas_handle(), side, triangle,
        blas.CUBLAS_OP_T if turned else blas.CUBLAS_OP_N, blas.CUBLAS_DIAG_NON_UNIT,
        m, columns, _number(letter).ctypes.data, a.data.ptr, n, b.data.ptr, m,
    )  # fmt: skip
    return b


def _named(module: Any, letter: str, name: str) -> Any:
    """A routine for single or double precision."""
    return getattr(module, {"f": "s", "d": "d"}[letter] + name)


@cache
def _number(letter: str) -> np.ndarray:
    """One, in the host's memory."""
    return np.ones(1, letter)


@cache
def _no_factor(xp: ArrayNamespace, kind: str) -> Any:
    """For each pivot of a factor and the status of its routine: is something wrong?"""
    return xp.ElementwiseKernel(
        f"{kind} pivot, int32 status", "bool found", "found = !(pivot > 0) || status != 0",
        name="tcalc_no_factor",
    )  # fmt: skip
