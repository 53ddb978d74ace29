"""Functions of BLAS and LAPACK that SciPy brings, by address, and memory for them to work in."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence
from contextlib import nullcontext
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from .blas import OF_SCIPY, one_thread

#: Rows from which calling LAPACK by itself, in place, is worth its overhead.
LARGE = 64
#: Columns of which LAPACK makes blocks where the workspace has room, and entries beside them.
BLOCK, BESIDE = 64, 65 * 64
#: Parts of a triangle, each of whole rows.
PANELS = 8
#: Rows from which a factor is worth threads of BLAS, which look for more work for a while.
MANY = 2500


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
    return np.frombuffer(mmap.mmap(-1, max(size, 1) * dtype.itemsize), dtype)


def has_factor(a: np.ndarray) -> bool:
    """Is a symmetric matrix positive definite: has it a Cholesky factor?"""
    held = np.array(a, np.float32 if a.dtype == np.float32 else np.float64)
    with one_thread(OF_SCIPY) if len(a) < MANY else nullcontext():
        return not (len(a) and _called("potrf", b"L", len(a), held, len(a)))


def syevd(a: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Eigenvalues, eigenvectors over a symmetric matrix, by rows, and LAPACK's complaint.

    By the three steps of LAPACK's function of this name, which holds three matrices: the
    reflections that make the matrix tridiagonal, its eigenvectors as they come, and a workspace.
    Here the reflections wait as a triangle until the workspace is free, so that there are two and
    a half.
    """
    n, dtype = len(a), a.dtype
    scale = _within_range(a)
    d, e, tau = np.empty((3, n), dtype)
    work = workspace(BLOCK * n + BESIDE, dtype)
    failed = _called("sytrd", b"L", n, a, n, d, e, tau, work, work.size)
    panels = _panels(a)
    reflections = workspace(sum([panel.size for panel in panels]), dtype)
    parts = np.split(reflections, np.cumsum([panel.size for panel in panels])[:-1])
    for part, panel in zip(parts, panels, strict=True):
        part.reshape(panel.shape)[...] = panel
    held, places = workspace(1 + 4 * n + n * n, dtype), np.empty(3 + 5 * n, np.intc)
    failed |= _called("stedc", b"I", n, d, e, a, n, held, held.size, places, places.size)
    matrix = held[: n * n].reshape(n, n)
    for part, panel in zip(parts, _panels(matrix), strict=True):
        panel[...] = part.reshape(panel.shape)
    failed |= _called("ormtr", b"L", b"L", b"N", n, n, matrix, n, tau, a, n, work, work.size)
    return d / scale, a.T, failed


def _panels(a: np.ndarray) -> list[np.ndarray]:
    """Rows of a matrix from its diagonal on, where they begin: little more than the triangle."""
    step = -(-len(a) // PANELS)
    return [a[first : first + step, first:] for first in range(0, len(a), step)]


def _within_range(a: np.ndarray) -> float:
    """Scale a matrix, in place, so that squares of its entries are numbers; by what is returned."""
    found = np.finfo(a.dtype)
    least = float(np.sqrt(found.tiny / found.eps))
    largest = float(max(a.max(initial=0), -a.min(initial=0)))
    if largest == 0 or least <= largest <= 1 / least:
        return 1.0
    scale = min(max(largest, least), 1 / least) / largest
    a *= scale
    return scale


def _called(name: str, *given: Any) -> int:
    """What LAPACK's function says in the end."""
    failed = ctypes.c_int(0)
    called("lapack", name, *given, failed)
    return failed.value


def called(library: str, name: str, *given: Any) -> None:
    """Call a function for arrays, their numbers, integers and words of one letter."""
    dtype = next(x.dtype for x in given if isinstance(x, np.ndarray))
    number, char = (ctypes.c_float, "s") if dtype == np.float32 else (ctypes.c_double, "d")
    _function(library, char + name, len(given))(*[_pointer(x, number) for x in given])


@cache
def _function(library: str, name: str, count: int) -> Any:
    (place,) = addresses(library, [name])
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * count)(place)


def _pointer(x: Any, number: Any) -> Any:
    if isinstance(x, np.ndarray):
        return x.ctypes.data
    if isinstance(x, bytes):
        return x
    kind = ctypes.c_int if isinstance(x, int) else number
    return ctypes.byref(x if isinstance(x, ctypes.c_int) else kind(x))
