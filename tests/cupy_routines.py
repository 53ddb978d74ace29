"""Routines of cuBLAS and cuSOLVER for the stand-in for CuPy: LAPACK's and BLAS's, on addresses."""

from __future__ import annotations

import ctypes
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.linalg import blas, lapack

HANDLE = 1
LEFT, RIGHT, LOWER, UPPER, PLAIN, TURNED = 0, 1, 0, 1, 0, 1
NUMBERS = {"d": ctypes.c_double, "s": ctypes.c_float}


def at(letter: str, address: int, m: int, n: int, apart: int) -> np.ndarray:
    """A matrix column by column."""
    assert apart >= m
    memory = (NUMBERS[letter] * (apart * n)).from_address(address)
    return np.ctypeslib.as_array(memory).reshape(n, apart).T[:m]


def potrf(
    letter: str, handle: int, half: int, n: int, a: int, lda: int, work: int, size: int, status: int
) -> None:
    """What it leaves of a matrix that has no factor is nobody's promise."""
    assert handle == HANDLE
    matrix = at(letter, a, n, n, lda)
    found, info = getattr(lapack, f"{letter}potrf")(matrix, lower=half == LOWER, clean=False)
    matrix[...] = found if not info else 77
    ctypes.c_int32.from_address(status).value = info


def trsm(
    letter: str, handle: int, side: int, half: int, turn: int, unit: int, m: int, n: int,
    alpha: int, a: int, lda: int, b: int, ldb: int,
) -> None:  # fmt: skip
    assert handle == HANDLE
    rows = m if side == LEFT else n
    triangle, sides = at(letter, a, rows, rows, lda), at(letter, b, m, n, ldb)
    factor = NUMBERS[letter].from_address(alpha).value
    sides[...] = getattr(blas, f"{letter}trsm")(
        factor, triangle, sides, side=side, lower=half == LOWER, trans_a=turn, diag=unit
    )


CUSOLVER = SimpleNamespace(
    **{f"{letter}potrf": partial(potrf, letter) for letter in NUMBERS},
    **{f"{letter}potrf_bufferSize": lambda handle, half, n, a, lda: 8 for letter in NUMBERS},
)
CUBLAS = SimpleNamespace(
    CUBLAS_SIDE_LEFT=LEFT, CUBLAS_SIDE_RIGHT=RIGHT, CUBLAS_FILL_MODE_LOWER=LOWER,
    CUBLAS_FILL_MODE_UPPER=UPPER, CUBLAS_OP_N=PLAIN, CUBLAS_OP_T=TURNED, CUBLAS_DIAG_NON_UNIT=0,
    **{f"{letter}trsm": partial(trsm, letter) for letter in NUMBERS},
)  # fmt: skip
HANDLES = SimpleNamespace(get_cublas_handle=lambda: HANDLE, get_cusolver_handle=lambda: HANDLE)


def as_attributes() -> dict[str, Any]:
    """Modules in `cupy.cuda`."""
    return {"cusolver": CUSOLVER, "cublas": CUBLAS, "device": HANDLES}
