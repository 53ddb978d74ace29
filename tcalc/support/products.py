"""Matrix products by the BLAS of NumPy, or by that of factorisations where it is another one.

Wheels of NumPy and of SciPy each bring an OpenBLAS with threads of its own, which wait busily for
more work: programs that ask both in turn take longer than with one thread.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from .arrays import Array
from .blas import OF_NUMPY, OF_SCIPY, address, blas_threads
from .lapack import called
from .triangles import mirrored

#: Writes the product of two arrays of at most two axes into a third.
Product = Callable[[Array, Array, Array], Any]

#: Multiply-adds of a product from which threads may share it.
SHARED = 1 << 13


def product(x: Array, y: Array, out: Array) -> None:
    """x @ y into `out`, by SciPy's BLAS where NumPy's would use threads of its own for it."""
    if _is_shared(x, y, out) and _has_threads() and _by_scipy(x, y, out, 1.0, 0.0):
        return
    numpy_product(x, y, out)


def numpy_product(x: Array, y: Array, out: Array) -> None:
    """x @ y into `out`, by NumPy; `numpy.dot` copies what BLAS cannot read, matmul does not."""
    if out.flags.c_contiguous:
        np.dot(x, y, out)
    else:
        np.matmul(x, y, out=out)


def take_product(x: Array, y: Array, out: Array) -> None:
    """Subtract x @ y from `out`, in place where BLAS can."""
    if not (_is_shared(x, y, out) and _by_scipy(x, y, out, -1.0, 1.0)):
        out -= x @ y


def _is_shared(x: Array, y: Array, out: Array) -> bool:
    """Is a product large enough for threads, and of numbers that BLAS has?"""
    large = x.size * y.size > SHARED * len(y)
    same = x.dtype == y.dtype == out.dtype and out.dtype.char in "fd"
    return large and same and max(x.ndim, y.ndim, out.ndim) <= 2


def _has_threads() -> bool:
    """Would NumPy's BLAS use threads that SciPy's does not?"""
    asked = _threads()
    return asked is not None and asked() > 1


@cache
def _threads() -> Callable[[], int] | None:
    """Says how many threads NumPy's BLAS has; None where it is SciPy's, or cannot be asked."""
    one, other = blas_threads(OF_NUMPY), blas_threads(OF_SCIPY)
    if one is None or other is None or address(one.told) == address(other.told):
        return None
    found: Callable[[], int] = one.asked
    return found


def _by_scipy(x: Array, y: Array, out: Array, number: float, kept: float) -> bool:
    """Add `number` times a product to `kept` times `out`; False where BLAS cannot read them."""
    if out.ndim == 0 and not kept:
        import scipy.linalg

        (dot,) = scipy.linalg.get_blas_funcs(("dot",), (x, y))
        out[...] = dot(x, y)
        return True
    if out.ndim == 1:
        matrix, vector = (x, y) if x.ndim == 2 else (y.T, x)
        stored, step = _stored(matrix), vector.strides[0] // vector.itemsize
        if stored is None or step <= 0 or out.strides[0] <= 0:
            return False
        turned, line = stored
        m, n = matrix.shape if turned == b"N" else matrix.shape[::-1]
        called(
            "blas", "gemv", turned, m, n, number, matrix, line, vector, step, kept, out,
            out.strides[0] // out.itemsize,
        )  # fmt: skip
        return True
    # Row-major memory is the transpose in column-major order, of which the factors change sides.
    first, last, whole = map(_stored, (y.T, x.T, out.T))
    if first is None or last is None or whole is None or whole[0] != b"N":
        return False
    (m, k), n = x.shape, y.shape[1]
    if kept == 0 and _is_square(x, y):
        turned = b"T" if last[0] == b"N" else b"N"
        called("blas", "syrk", b"U", turned, m, k, number, x, last[1], kept, out, whole[1])
        mirrored(out)
        return True
    called(
        "blas", "gemm", first[0], last[0], n, m, k, number, y, first[1], x, last[1], kept, out,
        whole[1],
    )  # fmt: skip
    return True


def _stored(a: Array) -> tuple[bytes, int] | None:
    """How BLAS reads a matrix, as it lies or turned, and entries from column to column there."""
    (rows, columns), (down, right) = a.shape, [step // a.itemsize for step in a.strides]
    if down == 1 or (rows == 1 and right > 0):
        return (b"N", max(right, rows)) if columns == 1 or right >= rows else None
    if right == 1 or (columns == 1 and down > 0):
        return (b"T", max(down, columns)) if rows == 1 or down >= columns else None
    return None


def _is_square(x: Array, y: Array) -> bool:
    """Is the second matrix the transpose of the first, in the same memory?"""
    same = x.ctypes.data == y.ctypes.data
    return same and x.shape == y.shape[::-1] and x.strides == y.strides[::-1]
