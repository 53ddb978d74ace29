"""Small matrices times vectors in C: sizes around a vector, layouts, and what lies beside."""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tcalc.backends.c import library

EXTENTS = [1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 23, 31, 32, 33, 40, 63, 64, 65, 70]
Product = Callable[..., None]


def product(dtype: type) -> Product:
    """``product(alpha, x, y, beta, out)`` on arrays, as plans call it."""
    char = np.dtype(dtype).char
    real = np.ctypeslib.as_ctypes_type(dtype)
    place, long = ctypes.c_void_p, ctypes.c_long
    kinds = [real, place, long, long, place, long, long, real, place, *[long] * 4]
    address = library._routines(char)[library._names().index("product")]
    call = ctypes.CFUNCTYPE(None, *kinds)(address)

    def run(alpha: float, x: Any, y: Any, beta: float, out: Any) -> None:
        (m, k), n = x.shape, y.shape[1]
        steps = [s // x.itemsize for s in (*x.strides, *y.strides, out.strides[0])]
        data = x.ctypes.data, y.ctypes.data, out.ctypes.data
        call(alpha, data[0], *steps[:2], data[1], *steps[2:4], beta, data[2], steps[4], m, k, n)

    return run


def at_the_end(shape: tuple[int, ...], dtype: type) -> Any:
    """An array whose last byte is the last that this process may read there."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    pages = -(-size // mmap.PAGESIZE)
    held = mmap.mmap(-1, (pages + 1) * mmap.PAGESIZE)
    whole = np.frombuffer(held, np.uint8)
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    end = whole.ctypes.data + pages * mmap.PAGESIZE
    assert protect(ctypes.c_void_p(end), ctypes.c_size_t(mmap.PAGESIZE), 0) == 0
    taken = whole[pages * mmap.PAGESIZE - size : pages * mmap.PAGESIZE]
    return taken.view(dtype).reshape(shape)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("m", EXTENTS)
def test_products_with_vectors(m: int, turned: bool, dtype: type) -> None:
    """With a column and with a row, added or not; nan beside a matrix stays outside."""
    run, rng = product(dtype), np.random.default_rng(m)
    eps = np.finfo(dtype).eps
    for k in EXTENTS:
        for beside in (0, 3):
            a = at_the_end((m + beside, k + beside), dtype)
            a[...] = np.nan
            inner = a[beside:, :k]
            inner[...] = rng.standard_normal(inner.shape)
            a = inner.T if turned else inner
            x, before = rng.standard_normal(a.shape[1]), rng.standard_normal(a.shape[0])
            x, before = x.astype(dtype), before.astype(dtype)
            wide = a.astype(np.longdouble)
            for beta, start in ((0.0, np.full_like(before, np.nan)), (1.0, before)):
                wanted = 2 * (wide @ x) + (before if beta else 0)
                size = 2 * (abs(wide) @ abs(x)) + abs(before)
                column, row = start.copy()[:, None], start.copy()[None]
                run(2.0, a, x[:, None], beta, column)
                run(2.0, x[None], a.T, beta, row)
                for found in (column[:, 0], row[0]):
                    assert np.all(abs(found - wanted) <= 4 * (len(x) + 2) * eps * size), (m, k)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_vectors_with_gaps(dtype: type) -> None:
    """Vectors that are columns of other matrices, read and written."""
    run, rng = product(dtype), np.random.default_rng(0)
    a, x = rng.standard_normal((2, 20, 20)).astype(dtype)
    for matrix in (a, a.T):
        into = np.full((20, 3), 7, dtype)
        run(1.0, matrix, x[:, 4:5], 0.0, into[:, 1:2])
        np.testing.assert_allclose(into[:, 1], matrix @ x[:, 4], rtol=64 * np.finfo(dtype).eps)
        assert (into[:, [0, 2]] == 7).all()
        row = np.full((1, 20), np.nan, dtype)
        run(1.0, x[:, 4:5].T, matrix, 0.0, row)
        np.testing.assert_allclose(row[0], x[:, 4] @ matrix, rtol=64 * np.finfo(dtype).eps)


#: Distances, convolutions and products of small matrices beside sums of long doubles, which share
#: registers with MMX.
OLDER = """
import numpy as np, tcalc as tc
rng = np.random.default_rng(0)
P, C, w, k = tc.var("P", ("n", "d")), tc.var("C", ("m", "d")), tc.var("w", "r"), tc.var("k", "q")
windows = tc.build("r-q+1", lambda i: tc.sum(tc.build("q", lambda j: w[i + j] * k[j])))
data = {"P": rng.normal(size=(33, 7)), "C": rng.normal(size=(64, 7)), "w": rng.normal(size=500),
        "k": rng.normal(size=9)}
step = tc.compile([tc.sum((P[:, None] - C) ** 2, 2), windows, P @ C.T, P.T @ P], backend="c")
for dtype in ("float64", "float32"):
    p, c, x, y = [a.astype(dtype) for a in data.values()]
    found = step(P=p, C=c, w=x, k=y)
    p, c = p.astype(np.longdouble), c.astype(np.longdouble)
    wanted = [((p[:, None] - c) ** 2).sum(2), np.correlate(x, y, "valid"), p @ c.T, p.T @ p]
    for a, b in zip(found, wanted):
        assert a.dtype == dtype
        np.testing.assert_allclose(a, b.astype(float), atol=200 * np.finfo(dtype).eps)
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="another processor's instructions")
@pytest.mark.parametrize("flag", ["-mno-avx", "-mno-avx512f"])
def test_other_vectors_than_this_processor_has(flag: str, tmp_path: Path) -> None:
    environment = {**os.environ, "CC": f"cc {flag}", "TCALC_CACHE": str(tmp_path / "cache")}
    line = [sys.executable, "-c", OLDER]
    done = subprocess.run(line, env=environment, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
