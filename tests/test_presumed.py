"""Symmetric matrices that plans take as positive definite, and what is done where they are not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.rules.presumed import LEAST, PRESUMES
from tcalc.run.bound import DOUBTS

N = LEAST + 3


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def matrices(rng: np.random.Generator) -> dict[str, np.ndarray]:
    a = rng.normal(size=(N, N))
    return {"definite": a @ a.T / N + np.eye(N), "indefinite": a + a.T}


def form(A: tc.Expr, b: tc.Expr) -> tc.Expr:
    return b @ tc.linalg.solve(A, b) + tc.logdet(A)


def gradients(A: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    inverse = np.linalg.inv(A)
    return inverse - np.outer(inverse @ b, inverse @ b), 2 * inverse @ b


def factorisations(compiled: Any) -> set[str]:
    return {kind for kind in ("cholesky", "'lu'") if kind in str(compiled.plan)}


@pytest.mark.parametrize("backend", ["numpy", "c", "auto"])
@pytest.mark.parametrize("kinds", ["definite indefinite definite", "indefinite " * 5 + "definite"])
def test_indefinite_matrices_have_the_values_of_a_general_inverse(
    rng: np.random.Generator, backend: str, kinds: str
) -> None:
    A, b = tc.var("A", (N, N), symmetric=True), tc.var("b", (N,))
    compiled = tc.compile(tc.grad(form(A, b), (A, b)), backend=backend)
    known, v = matrices(rng), rng.normal(size=N)
    for kind in kinds.split() * 2:
        results = compiled(A=known[kind], b=v)
        for found, expected in zip(results, gradients(known[kind], v), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    assert factorisations(compiled) == {"cholesky"}
    assert PRESUMES in compiled.plan.note


def test_second_derivatives_at_indefinite_matrices(rng: np.random.Generator) -> None:
    A, s = tc.var("A", (N, N), symmetric=True), tc.var("s")
    f = tc.logdet(A + s * tc.eye(N))
    compiled = tc.compile(tc.hessian(f, s))
    for matrix in [*matrices(rng).values()] * 2:
        inverse = np.linalg.inv(matrix + 0.3 * np.eye(N))
        np.testing.assert_allclose(compiled(A=matrix, s=0.3), -np.sum(inverse * inverse), rtol=1e-9)


def test_determinants_keep_their_sign(rng: np.random.Generator) -> None:
    A = tc.var("A", (N, N), symmetric=True)
    both = tc.compile({"det": tc.linalg.det(A), "sign": tc.linalg.slogdet(A).sign})
    alone = tc.compile(tc.linalg.det(A))
    for matrix in matrices(rng).values():
        sign, size = np.linalg.slogdet(matrix)
        for found in (both(A=matrix)["det"], alone(A=matrix)):
            np.testing.assert_allclose(found, sign * np.exp(size), rtol=1e-9)
        assert both(A=matrix)["sign"] == sign
    assert factorisations(alone) == {"cholesky"}
    assert factorisations(both) == {"'lu'"}, "a matrix whose sign is asked for is factored once"


def test_singular_and_undefined_matrices_are_told_as_before(rng: np.random.Generator) -> None:
    A, b = tc.var("A", (N, N), symmetric=True), tc.var("b", (N,))
    compiled, v = tc.compile(form(A, b)), rng.normal(size=N)
    for _ in range(DOUBTS + 2):
        with pytest.raises(tc.LinAlgError, match=r"singular, in inv\(A\)"):
            compiled(A=np.zeros((N, N)), b=v)
    assert np.isnan(compiled(A=np.full((N, N), np.nan), b=v))


def test_what_was_never_right_is_presumed_no_more(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    A, b = tc.var("A", (N, N), symmetric=True), tc.var("b", (N,))
    known, v = matrices(rng), rng.normal(size=N)
    tried: list[int] = []
    factor = np.linalg.cholesky

    def counted(a: np.ndarray) -> np.ndarray:
        tried.append(len(a))
        return factor(a)

    monkeypatch.setattr(np.linalg, "cholesky", counted)
    compiled, counts = tc.compile(form(A, b), backend="numpy"), []
    for _ in range(2 * DOUBTS):
        compiled(A=known["indefinite"], b=v)
        counts.append(len(tried))
    assert counts[0] > 0
    assert len(set(counts)) == DOUBTS
    compiled, counts = tc.compile(form(A, b), backend="numpy"), []
    for _ in range(2 * DOUBTS):
        compiled(A=known["definite"], b=v)
        compiled(A=known["indefinite"], b=v)
        counts.append(len(tried))
    assert len(set(counts)) == 2 * DOUBTS, "it is right now and then, and tried each time"


@pytest.mark.parametrize("n", [2, LEAST - 1])
def test_small_matrices_are_taken_as_they_are(rng: np.random.Generator, n: int) -> None:
    A, b = tc.var("A", (n, n), symmetric=True), tc.var("b", (n,))
    assert "cholesky" not in str(tc.compile(form(A, b)).plan)


# --- arrays that functions read ------------------------------------------------------------------


def squared(X: np.ndarray) -> np.ndarray:
    found: np.ndarray = (X[:, None, :] - X[None, :, :]) ** 2
    return found


def likelihood(kernel: Callable[[Any], Any], y: np.ndarray) -> Callable[[Any], Any]:
    def value(th: Any) -> Any:
        K = kernel(th) + np.exp(th[1]) * np.eye(len(y))
        return y @ np.linalg.solve(K, y) + np.linalg.slogdet(K)[1]

    return value


@pytest.mark.parametrize("kernel", ["of matrices", "of squares", "stacked"])
def test_kernels_of_captured_distances_are_symmetric(rng: np.random.Generator, kernel: str) -> None:
    X, y = rng.normal(size=(N, 3)), rng.normal(size=N)
    D = squared(X)
    kernels: dict[str, Callable[[Any], Any]] = {
        "of matrices": lambda th: np.exp(-np.exp(th[0]) * D.sum(-1)),
        "of squares": lambda th: np.exp(-np.sum(np.exp(th[0]) * D, axis=-1)),
        "stacked": lambda th: np.exp(-np.sum(np.exp(th[0]) * np.moveaxis(D, -1, 0), axis=0)),
    }
    f = likelihood(kernels[kernel], y)
    th, h = np.array([-1.0, -2.0]), 1e-6
    found = tc.grad(f)(th)
    expected = [(f(th + h * e) - f(th - h * e)) / (2 * h) for e in np.eye(2)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    compiled = tc.compile(tc.grad(f))
    np.testing.assert_allclose(compiled(th), found, rtol=1e-10)
    np.testing.assert_allclose(tc.hessian(f)(th), tc.hessian(f)(th).T, rtol=1e-10)


@pytest.mark.parametrize("axes", [(0, 1), (1, 2)])
def test_an_array_that_is_symmetric_no_more_is_another_input(
    rng: np.random.Generator, axes: tuple[int, int]
) -> None:
    D = np.moveaxis(squared(rng.normal(size=(9, 3))), (0, 1), axes)
    W = rng.normal(size=D.shape)

    def f(s: Any) -> Any:
        return np.sum(np.exp(-s * D) * W) + np.sum(np.sin(s * np.swapaxes(D, *axes)) * W)

    def slope(s: float) -> float:
        turned = np.swapaxes(D, *axes)
        return float(np.sum((-D * np.exp(-s * D) + turned * np.cos(s * turned)) * W))

    for change in (0.0, 0.0, 0.7, 0.0, -0.7):
        D[(3, 5, 1) if axes == (0, 1) else (1, 3, 5)] += change
        np.testing.assert_allclose(tc.grad(f)(0.4), slope(0.4), rtol=1e-10)


def test_an_array_that_changes_while_it_is_read(rng: np.random.Generator) -> None:
    D = squared(rng.normal(size=(9, 3)))
    W = rng.normal(size=D.shape)

    def f(s: Any) -> Any:
        before = np.sum(np.exp(-s * D) * W)
        D[2, 4, 0] += 1.0
        return before + np.sum(np.cos(s * D) * W)

    first = D.copy()
    found = tc.grad(f)(0.4)
    expected = np.sum(-first * np.exp(-0.4 * first) * W) - np.sum(D * np.sin(0.4 * D) * W)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("axes", [(0, 1), (1, 2)])
def test_constants_are_symmetric_by_their_numbers(
    rng: np.random.Generator, axes: tuple[int, int]
) -> None:
    D = np.moveaxis(squared(rng.normal(size=(9, 3))), (0, 1), axes)
    for change, symmetric in ((0.0, True), (0.5, False)):
        D[(3, 5, 1) if axes == (0, 1) else (1, 3, 5)] += change
        a = tc.const(D)
        assert (tc.swapaxes(a, *axes) is a) == symmetric
        np.testing.assert_array_equal(tc.swapaxes(a, *axes)(), np.swapaxes(D, *axes))
