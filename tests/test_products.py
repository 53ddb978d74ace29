"""Products by the BLAS of factorisations, in every layout, beside sums that are written out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product as pairs
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.support import products
from tcalc.support.blas import OF_NUMPY, blas_threads

#: How a matrix may lie: by rows, by columns, as every second row, as part of wider rows, turned
#: around, and all of its rows the same one.
LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "every second row": lambda a: np.repeat(a, 2, axis=0)[::2],
    "part of rows": lambda a: np.concatenate([a, a], axis=1)[:, : a.shape[1]],
    "turned around": lambda a: np.ascontiguousarray(a[::-1])[::-1],
    "one row": lambda a: np.broadcast_to(a[0], a.shape),
}
SHAPES = [(70, 80, 90), (1, 200, 90), (200, 1, 90), (90, 200, 1), (300, 40, 40)]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What SciPy's BLAS is asked for while NumPy's has two threads."""
    threads, kept, found = blas_threads(OF_NUMPY), products.called, list[str]()
    if threads is None or products._threads() is None:
        pytest.skip("NumPy and SciPy have one BLAS, or none whose threads can be set")

    def called(library: str, name: str, *given: Any) -> None:
        found.append(name)
        kept(library, name, *given)

    monkeypatch.setattr(products, "called", called)
    before = threads.asked()
    threads.told(2)
    yield found
    threads.told(before)


def written_out(x: np.ndarray, y: np.ndarray) -> Any:
    labels = {(1, 1): "k,k->", (2, 1): "ik,k->i", (1, 2): "k,kj->j", (2, 2): "ik,kj->ij"}
    return np.einsum(labels[x.ndim, y.ndim], x.astype(float), y.astype(float))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", SHAPES)
def test_products_in_every_layout(shape: Any, dtype: Any, calls: list[str]) -> None:
    (m, k, n), rng, wide = shape, np.random.default_rng(0), np.zeros((shape[0], 2 * shape[2]))
    first, last, other = [rng.normal(size=s).astype(dtype) for s in ((m, k), (k, n), (m, n))]
    close = {"rtol": 0, "atol": 100 * k * np.finfo(dtype).eps}
    for one, two in pairs(LAYOUTS.values(), repeat=2):
        x, y = one(first), two(last)
        for out in (np.full((m, n), np.nan, dtype), wide.astype(dtype)[:, :n], other.copy("F")):
            products.product(x, y, out)
            np.testing.assert_allclose(out, written_out(x, y), **close)
            out[...] = other
            products.take_product(x, y, out)
            np.testing.assert_allclose(out, other - written_out(x, y), **close)
    assert set(calls) == {"gemm"}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_products_with_vectors_and_of_a_matrix_with_itself(dtype: Any, calls: list[str]) -> None:
    rng = np.random.default_rng(1)
    given = rng.normal(size=(150, 120)).astype(dtype)
    close = {"rtol": 0, "atol": 1e5 * np.finfo(dtype).eps}
    for layout in LAYOUTS.values():
        x = layout(given)
        for step in (1, 2, -1):
            v, w = [rng.normal(size=2 * n).astype(dtype)[::step][:n] for n in x.shape]
            for left, right in ((x, w), (v, x), (x, x.T), (x.T, x)):
                out = np.full(written_out(left, right).shape, np.nan, dtype)
                before = calls.count("syrk")
                products.product(left, right, out)
                np.testing.assert_allclose(out, written_out(left, right), **close)
                if calls.count("syrk") > before:
                    np.testing.assert_array_equal(out, out.T)
    assert {"gemv", "syrk"} <= set(calls)
    long = rng.normal(size=40_000).astype(dtype)
    for v, w in ((long, long), (long[::2], long[::-2])):
        total = np.array(np.nan, dtype)
        products.product(v, w, total)
        np.testing.assert_allclose(total, written_out(v, w), rtol=1e-3, atol=1e-2)


def test_small_products_and_integers_are_numpys(calls: list[str]) -> None:
    a = np.arange(12.0).reshape(3, 4)
    numbers, out = np.arange(40_000).reshape(200, 200), np.zeros((200, 200), int)
    small, none = np.empty((3, 3)), np.empty((200, 200))
    products.product(a, a.T, small)
    products.product(numbers, numbers, out)
    products.product(np.empty((200, 0)), np.empty((0, 200)), none)
    stack, rows = np.ones((100, 20, 30)), np.empty((100, 30))
    products.product(np.ones(20), stack, rows)
    np.testing.assert_array_equal(rows, np.full((100, 30), 20.0))
    np.testing.assert_array_equal(small, written_out(a, a.T))
    np.testing.assert_array_equal(out, numbers @ numbers)
    np.testing.assert_array_equal(none, np.zeros((200, 200)))
    assert not calls


def test_a_program_with_factors_has_one_blas(calls: list[str]) -> None:
    """The gradient of a log determinant and of a quadratic form, beside those of one thread."""
    X, s = tc.var("X", ("n", "m")), tc.var("s")
    K = X @ X.T + tc.exp(s) * tc.eye("n")
    e = tc.logdet(K) + tc.sum(tc.linalg.inv(K) @ X) + tc.sum(tc.sin(X @ (X.T @ X)))
    data = {"X": np.random.default_rng(2).normal(size=(200, 70)), "s": 0.5}
    found = tc.compile(tc.grad(e, (X, s)), backend="numpy")(**data)
    assert "gemm" in calls
    calls.clear()
    threads = blas_threads(OF_NUMPY)
    assert threads is not None
    threads.told(1)
    alone = tc.compile(tc.grad(e, (X, s)), backend="numpy")(**data)
    assert not set(calls) & {"syrk", "gemv"}
    for a, b in zip(found, alone, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def test_plans_without_factors_multiply_by_numpy(calls: list[str]) -> None:
    A = tc.var("A", ("n", "n"))
    a = np.random.default_rng(3).normal(size=(150, 150))
    found = tc.compile(tc.sin(A @ A), backend="numpy")(A=a)
    np.testing.assert_allclose(found, np.sin(written_out(a, a)), rtol=0, atol=1e-10)
    assert not calls
