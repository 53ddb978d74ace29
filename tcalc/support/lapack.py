"""Functions of BLAS and LAPACK that SciPy brings, by address, and memory for them to work in."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np


def addresses(library: str, names: Sequence[str]) -> list[int]:
    """Where functions of SciPy's "blas" or "lapack" stand, which take pointers, as Fortran's do."""
    found = import_module(f"scipy.linalg.cython_{library}").__pyx_capi__
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]

    def address(capsule: object) -> int:
        place: int = api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule))
        return place

    return [address(found[name]) for name in names]


def workspace(size: int, dtype: np.dtype[Any]) -> np.ndarray:
    """Memory that the system has back as soon as nobody holds it.

    What is given back to malloc it may keep, tens of MiB, where arrays of other sizes do not fit.
    """
    return np.frombuffer(mmap.mmap(-1, size * dtype.itemsize), dtype)


def syevd(a: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Eigenvalues, eigenvectors over a symmetric matrix, by rows, and LAPACK's complaint."""
    n, char = len(a), "s" if a.dtype == np.float32 else "d"
    w, places = np.empty(n, a.dtype), np.empty(3 + 5 * n, np.intc)
    work = workspace(1 + 6 * n + 2 * n * n, a.dtype)
    (place,) = addresses("lapack", [f"{char}syevd"])
    rows, size, count, failed = [ctypes.c_int(k) for k in (n, work.size, places.size, 0)]
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 11)(place)
    matrix, values, held, integers = [x.ctypes.data for x in (a, w, work, places)]
    at = ctypes.byref
    function(
        b"V", b"U", at(rows), matrix, at(rows), values, held, at(size), integers, at(count),
        at(failed),
    )  # fmt: skip
    return w, a.T, failed.value
