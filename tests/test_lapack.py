"""Routines of LAPACK that are called by address, and the memory that they work in."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from benchmarks.memory import RESET
from tcalc.support import lapack


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("spectrum", ["spread", "clustered", "equal"])
def test_eigenvectors_are_orthonormal_and_solve(dtype: Any, order: Any, spectrum: str) -> None:
    n, rng = 150, np.random.default_rng(0)
    q, _ = np.linalg.qr(rng.normal(size=(n, n)))
    w = {
        "spread": np.linspace(-3, 5, n), "equal": np.ones(n),
        "clustered": 1 + 1e-13 * rng.normal(size=n) + (np.arange(n) > 100),
    }[spectrum]  # fmt: skip
    given = np.array((q * w) @ q.T, dtype, order=order)
    kept = given.copy()
    A = tc.var("A", ("n", "n"))
    for backend in ("numpy", "c"):
        values, v = tc.compile(tuple(tc.linalg.eigh(A)), backend=backend)(A=given)
        assert v.dtype == dtype
        np.testing.assert_array_equal(given, kept)
        eps = 10 * n * np.finfo(dtype).eps
        np.testing.assert_allclose(v.T @ v, np.eye(n), rtol=0, atol=eps)
        np.testing.assert_allclose((v * values) @ v.T, (given + given.T) / 2, rtol=0, atol=eps)
        np.testing.assert_allclose(values, np.sort(w), rtol=0, atol=eps)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scale", [None, -0.9, -0.4, 0.0, 0.4, 0.9])
@pytest.mark.parametrize("n", [1, 2, 3, 9, 16, 17, 65, 150])
def test_eigenvectors_of_any_size_and_scale(n: int, scale: float | None, dtype: Any) -> None:
    """All zero, and from the least numbers to the largest, beside NumPy's of what is not scaled."""
    a = np.random.default_rng(n).normal(size=(n, n)).astype(dtype)
    a, eps = a + a.T, np.finfo(dtype).eps
    factor = dtype(0 if scale is None else 2.0 ** round(scale * np.finfo(dtype).maxexp))
    w, v, failed = lapack.syevd(a * factor)
    assert failed == 0
    assert w.dtype == v.dtype == dtype
    plain, tolerance = a.astype(float), 20 * n * eps
    values = w.astype(float) / (float(factor) or 1)
    wanted = np.linalg.eigvalsh(plain) if factor else np.zeros(n)
    size = np.abs(plain).max()
    np.testing.assert_allclose(values, wanted, rtol=0, atol=tolerance * size)
    np.testing.assert_allclose(v.T @ v, np.eye(n), rtol=0, atol=tolerance)
    if factor:
        np.testing.assert_allclose(plain @ v, v * values, rtol=0, atol=tolerance * size)


def test_workspaces_can_be_written() -> None:
    work = lapack.workspace(1000, np.dtype(np.float32))
    work[:] = 3
    assert work.shape == (1000,)
    assert work.sum() == 3000


PEAK = """
import numpy as np, tcalc as tc
from benchmarks.memory import RESET, free, resident
A, C, c = tc.var("A", ("n", "n")), tc.var("C", ("n", "n")), tc.var("c", "n")
v, w = tc.linalg.syevd(A)
both = tc.compile(tc.value_and_grad(tc.sum(C * v) + c @ w, A), backend="c")
rng = np.random.default_rng(0)
for n in (60, 1000, 1000):
    data = {"A": np.diag(np.arange(n)) + rng.normal(size=(n, n)) / n, "C": rng.normal(size=(n, n))}
    data["c"] = rng.normal(size=n)
    free()
    RESET.write_text("5")
    before = resident("VmRSS")
    found = both(**data)
    print((resident("VmHWM") - before) / (8 * n * n))
"""


@pytest.mark.skipif(not RESET.exists(), reason="this system does not tell the peak of a process")
def test_memory_of_eigenvectors_and_their_pullback() -> None:
    """Three matrices: reflections wait as a triangle, and LAPACK's workspace is gone before."""
    done = subprocess.run(
        [sys.executable, "-c", PEAK], capture_output=True, text=True, check=True, timeout=300
    )
    assert float(done.stdout.split()[-1]) < 3
