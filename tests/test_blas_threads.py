"""Threads of BLAS beside ours: one while ours call it, as many as before when a call is over."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.backends.c import pool
from tcalc.backends.numpy import tiles
from tcalc.backends.numpy.program import KERNELS
from tcalc.support import blas
from tests.shared import in_turn

X, Y, v = tc.var("X", ("m", "n")), tc.var("Y", ("m", "n")), tc.var("v", "n")
IN_TILES = tc.exp(X @ tc.tanh(v)) @ Y


@pytest.fixture
def several_of_blas() -> Iterator[list[blas.BlasThreads]]:
    """NumPy's and SciPy's BLAS with three threads each; afterwards they still have them."""
    found = [blas.blas_threads(module) for module in (blas.OF_NUMPY, blas.OF_SCIPY)]
    known = [one for one in found if one is not None]
    if len(known) < 2:
        pytest.skip("a BLAS that does not tell its threads")
    before = [one.asked() for one in known]
    for one in known:
        one.told(3)
    yield known
    after = [one.asked() for one in known]
    for one, threads in zip(known, before, strict=True):
        one.told(threads)
    assert after == [3, 3]


M, N = tc.var("M", ("m", "k")), tc.var("N", ("k", "n"))
PRODUCTS = {
    "of rows": (M @ N, (900, 200), (200, 150)),
    "of columns": (M @ N, (90, 200), (200, 1500)),
    "of few rows": (M @ N, (30, 4000), (4000, 40)),
    "of turned": (tc.exp(tc.var("N", ("n", "m"))) @ M, (300, 170), (1100, 300)),
    "turned": (tc.exp(N.T @ M.T).T, (300, 170), (170, 1100)),
    "of a row": (M @ N, (1, 3000), (3000, 501)),
    "of a column": (M @ N, (2003, 700), (700, 1)),
    "of a column, turned": (M.T @ tc.var("N", ("m", "n")), (700, 2003), (700, 1)),
    "with itself": (tc.exp(M) @ tc.exp(M).T, (403, 300), ()),
    "with itself, turned": (M.T @ M, (90, 801), ()),
    "of many terms": (M @ N, (13, 30_000), (30_000, 21)),
    "of many terms, turned": (M.T @ tc.var("N", ("m", "n")), (30_001, 7), (30_001, 33)),
    "of many terms with a vector": (M @ N, (1, 80_000), (80_000, 9)),
    "of many terms with itself": (M.T @ M, (30_003, 21), ()),
    "weighted": (M.T * tc.exp(M[:, 0]) @ M, (1203, 150), ()),
    "weighted, turned": (M * tc.exp(M[0]) @ M.T, (150, 1203), ()),
    "weighted with both signs": (M.T * M[:, 0] @ M, (1203, 150), ()),
    "weighted with fewer rows": (M.T * tc.maximum(M[:, 0], 0) @ M, (1203, 150), ()),
    "weighted by less than 0": (M.T * -tc.exp(M[:, 0]) @ M, (1203, 150), ()),
}


def shared_by_threads(e: Any, given: dict[str, Any]) -> Any:
    """What two threads compute, of which the pool has shared something."""
    step = tc.compile(e, backend="c", threads=2)
    step(**given)
    before = pool.counts()
    found = step(**given)
    assert pool.counts().shared > before.shared
    return found


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.usefixtures("several_of_blas")
def test_large_products_in_parts(name: str, dtype: Any) -> None:
    """Threads of the pool multiply them where BLAS would use threads of its own."""
    e, left, right = PRODUCTS[name]
    rng = np.random.default_rng(0)
    data = {"M": rng.normal(size=left), "N": rng.normal(size=right)}
    given = {k: (a / 10).astype(dtype) for k, a in data.items() if k in e.variables}
    found = shared_by_threads(e, given)
    wanted = tc.compile(e, backend="functional")({k: a.astype(float) for k, a in given.items()})
    size = np.abs(wanted).max()
    np.testing.assert_allclose(found, wanted, rtol=0, atol=500 * np.finfo(dtype).eps * size)


@pytest.mark.parametrize("name", [name for name in PRODUCTS if "many terms" in name])
def test_many_terms_are_the_same_sums_for_any_number_of_threads(
    name: str, several_of_blas: Sequence[blas.BlasThreads]
) -> None:
    """Added to what is there, too."""
    e, left, right = PRODUCTS[name]
    rng = np.random.default_rng(0)
    data = {"M": rng.normal(size=left), "N": rng.normal(size=right)}
    given = {k: a for k, a in data.items() if k in e.variables}
    found = []
    for threads in (1, 2, 3):
        for one in several_of_blas:
            one.told(threads)
        found.append(tc.compile((e, e + tc.exp(e)), backend="c", threads=threads)(**given))
    for other in found[1:]:
        np.testing.assert_array_equal(found[0][0], other[0])
        np.testing.assert_array_equal(found[0][1], other[1])


#: What triangles are made and read by, with a matrix and columns to solve for.
T, B = tc.var("T", ("n", "n"), lower=True), tc.var("B", ("n", "k"))
S = tc.var("S", ("n", "n"), positive_definite=True)
TRIANGLES = {
    "solve": (tc.linalg.solve_triangular(T, B, lower=True), 700, 300),
    "transposed solve": (tc.linalg.solve_triangular(T.T, B), 203, 801),
    "solve with a row of columns": (tc.linalg.solve_triangular(T, B, lower=True), 900, 129),
    "factor": (tc.linalg.cholesky(S), 601, 0),
    "inverse": (tc.inv(S), 517, 0),
    "inverse of a triangle": (tc.inv(T), 430, 0),
    "gradient by a factor": (tc.grad(tc.sum(tc.linalg.cholesky(S) ** 3), S), 390, 0),
    "between triangles": (tc.inv(T) @ S @ tc.inv(T).T, 300, 0),
}


@pytest.mark.parametrize(("name", "dtype"), in_turn(list(TRIANGLES), [np.float64, np.float32]))
@pytest.mark.usefixtures("several_of_blas")
def test_large_triangles_in_parts(name: str, dtype: Any) -> None:
    """Columns of a solve and panels of half a product are shared, at edges that fit no part too."""
    e, n, k = TRIANGLES[name]
    rng = np.random.default_rng(0)
    square = rng.normal(size=(n, n)) / n
    data = {"T": np.tril(square) + np.eye(n), "S": square @ square.T + np.eye(n)}
    data["B"] = rng.normal(size=(n, k))
    given = {v: data[v].astype(dtype) for v in e.variables}
    found = shared_by_threads(e, given)
    wanted = tc.compile(e, backend="numpy")({v: a.astype(float) for v, a in given.items()})
    np.testing.assert_allclose(found, wanted, rtol=0, atol=500 * np.finfo(dtype).eps)


def test_small_products_are_left_to_one_thread(several_of_blas: Any) -> None:
    step = tc.compile(M @ N, backend="c", threads=2)
    step(M=np.ones((20, 20)), N=np.ones((20, 20)))
    before = pool.counts()
    assert step(M=np.ones((20, 20)), N=np.ones((20, 20)))[0, 0] == 20
    assert pool.counts() == before


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_blas_has_its_threads_after_calls_and_errors(
    backend: str, several_of_blas: Sequence[blas.BlasThreads], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several at once, some of which fail, in loops, in batches and in steps of NumPy's."""
    monkeypatch.setattr(tiles, "LEAST", 1)
    S, A = tc.var("S", ("k", 8, 8)), tc.var("A", ("m", "m"))
    loop = tc.compile(IN_TILES, backend=backend, threads=3)
    batch = tc.compile(tc.linalg.cholesky(S @ S), backend=backend, threads=3)
    whole = tc.compile(tc.linalg.cholesky(A), backend=backend, threads=3)
    rng = np.random.default_rng(0)
    data = {"X": rng.normal(size=(500, 300)), "Y": rng.normal(size=(500, 300))}
    data["v"] = rng.normal(size=300)
    bad = np.zeros((2000, 8, 8))
    definite = np.eye(400) + 1

    def called(k: int) -> bool:
        loop(**data)
        whole(A=definite)
        with pytest.raises(tc.LinAlgError):
            (batch if k % 2 else whole)(**({"S": bad} if k % 2 else {"A": definite - 3}))
        return True

    called(0), called(1)
    assert [one.asked() for one in several_of_blas] == [3, 3]
    with ThreadPoolExecutor(4) as several:
        assert all(several.map(called, range(12)))


def test_steps_of_numpys_have_one_thread_beside_loops(
    several_of_blas: Sequence[blas.BlasThreads], monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for large ones, which gain more than threads of BLAS's cost that wait for more work."""
    seen: list[list[int]] = []
    made = KERNELS["kernel"]

    def watched(step: Any, dtype: Any) -> Any:
        run = made(step, dtype)

        def watching(v: Any) -> None:
            seen.append([one.asked() for one in several_of_blas])
            run(v)

        return watching

    monkeypatch.setitem(KERNELS, "kernel", watched)
    A = tc.var("A", ("m", "m"))
    for threads, n, wanted in ((2, 80, [1, 1]), (2, 1000, [3, 3]), (1, 80, [3, 3])):
        seen.clear()
        given = np.eye(n) + 1e-3
        tc.compile(tc.linalg.inv(A), backend="c", threads=threads)(A=given)
        assert seen == [wanted]


def test_one_count_for_a_blas_of_both(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where NumPy and SciPy have one BLAS, who counts for SciPy counts for NumPy, too."""
    number, told = [4], []

    def tell(threads: int) -> None:
        told.append(threads)
        number[0] = threads

    asked = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: number[0])
    found = blas.BlasThreads(asked, ctypes.CFUNCTYPE(None, ctypes.c_int)(tell))
    other = blas.BlasThreads(asked, ctypes.CFUNCTYPE(None, ctypes.c_int)(tell))
    monkeypatch.setattr(blas, "blas_threads", lambda module: found)
    monkeypatch.setattr(blas, "_COUNTS", {})
    began, changed = [], []
    with blas.one_thread(blas.OF_NUMPY):
        blas.counted_by(other, lambda *state: began.append(state), changed.append)
        assert number == [1]
        with blas.one_thread(blas.OF_NUMPY):
            blas.counted_by(found, lambda *state: began.append(state), changed.append)
    assert began == [(0, 0), (2, 4)]
    assert changed == [-1, -1]
    assert told == [1]
    with blas.one_thread(blas.OF_NUMPY):
        assert changed == [-1, -1, 1]
    assert changed == [-1, -1, 1, -1]
