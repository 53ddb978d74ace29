"""Small factorisations in C: LU factors that steps share, and results of several arrays."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import mpmath as mp
import numpy as np
import pytest
import scipy.linalg

import tcalc as tc
from tcalc.graph.applications import apply
from tcalc.graph.operators import TABLE
from tests.test_c_calls import agree, entered

A, X, p, E = tc.var("A", ("n", "n")), tc.var("X", ("m", "k")), tc.var("p", "n"), tc.var("E", (5, 5))
RNG = np.random.default_rng(0)
#: Rows of matrices: few, those that are not ours alone, LAPACK's in C, and Python's.
ROWS = (1, 3, 17, 40, 64, 65)


def matrix(n: int, dtype: Any = float) -> Any:
    found: Any = (RNG.normal(size=(n, n)) / n + 3 * np.eye(n)).astype(dtype)
    return found


def gradients(a: Any, b: Any) -> tuple[Any, Any, Any]:
    """The value and gradients of log |det A| + p' A⁻¹ p."""
    inverse = np.linalg.inv(a)
    value = np.linalg.slogdet(a)[1] + b @ inverse @ b
    by_a = inverse.T - np.outer(inverse.T @ b, inverse @ b)
    return value, by_a, inverse @ b + inverse.T @ b


LIKELIHOOD = tc.linalg.logdet(A) + p @ tc.linalg.solve(A, p)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", ROWS)
def test_factors_that_steps_share(n: int, dtype: Any) -> None:
    step = tc.compile((LIKELIHOOD, *tc.grad(LIKELIHOOD, (A, p))), backend="c")
    for k in range(3):
        a, b = matrix(n, dtype), RNG.normal(size=n).astype(dtype)
        for given in (a, np.asfortranarray(a), np.repeat(a, 2, 1)[:, ::2]):
            for one, other in zip(step(A=given, p=b), gradients(a, b), strict=True):
                tolerance = 1e-11 if dtype is float or dtype is np.float64 else 1e-4
                np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)
                assert one.dtype == dtype
        assert k == 0 or n > 64 or step._engine.entries


#: What `_small` has; rules load further rows when it is built.
SMALL = (
    "eigenvalues", "eigenvectors", "singular values", "of rows", "rows of a factor",
    "an exponential", "its second derivative", "a determinant",
)  # fmt: skip


def _small(n: int) -> dict[str, Any]:
    w, v = tc.linalg.eigh(A)
    u, s, vh = tc.linalg.svd(X, full_matrices=False)
    low, q = tc.linalg.lq(X.T @ tc.diag(tc.sum(X**2, axis=1)))
    return {
        "eigenvalues": (tc.grad(w[0] * w[-1], A), {"A": n}),
        "eigenvectors": (tc.grad(tc.sum(v[:, 0] ** 3 * w), A), {"A": n}),
        "singular values": (tc.hessian(tc.sum(s**3), X), {"X": (n, 4)}),
        "of rows": (tc.grad(tc.sum(s) + tc.sum((u[:, 0] * vh[0, 0]) ** 2), X), {"X": (4, n)}),
        "rows of a factor": (
            tc.grad(tc.sum(tc.log(tc.diag(low))) + tc.sum(q**4), X), {"X": (n, 4)},
        ),
        "an exponential": (tc.grad(tc.sum(tc.linalg.expm(A) ** 2), A), {"A": n}),
        "its second derivative": (
            tc.hessian(tc.sum(tc.linalg.expm(A[:4, :4] * 1.5)), A), {"A": n},
        ),
        "a determinant": (tc.grad(tc.linalg.det(A) * tc.trace(tc.linalg.inv(A)), A), {"A": n}),
    }  # fmt: skip


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("n", [4, 9, 20])
def test_they_are_one_entry_of_c(name: str, n: int) -> None:
    small = _small(n)
    assert set(small) == set(SMALL)
    outputs, shapes = small[name]
    values = {
        key: matrix(size) if isinstance(size, int) else RNG.normal(size=size)
        for key, size in shapes.items()
    }
    wanted = tc.compile(outputs, backend="numpy")(**values)
    step = tc.compile(outputs, backend="c")
    agree(step(**values), wanted, 1e-9)
    if "exponential" in name or "second" in name:  # of many rows it is left to Python
        return
    agree(entered(outputs, values)(**values), wanted, 1e-9)


def test_batches_and_threads() -> None:
    batch = tc.var("B", (6, 4, 4))
    w, v = tc.linalg.eigh(batch)
    found = tc.sum(w[:, 0] * v[:, 0, 0] ** 2) + tc.sum(tc.linalg.expm(batch) ** 2)
    outputs = (found, tc.grad(found, batch))
    values = RNG.normal(size=(6, 4, 4))
    wanted = tc.compile(outputs, backend="numpy")(B=values)
    step = tc.compile(outputs, backend="c", threads=2)
    agree(step(B=values), wanted, 1e-10)
    with ThreadPoolExecutor(4) as pool:
        for one in pool.map(lambda _: step(B=values), range(32)):
            agree(one, wanted, 1e-10)
    agree(pickle.loads(pickle.dumps(step))(B=values), wanted, 1e-10)


def test_several_matrices_each_have_their_own() -> None:
    """What a call leaves is not what another finds; results that are returned are fresh."""
    w, v = tc.linalg.eigh(A)
    step = tc.compile([w, v, tc.linalg.eigvalsh(A.T @ A)], backend="c")
    one, two = matrix(6), matrix(6)
    first = step(A=one)
    copies = [a.copy() for a in first]
    step(A=two)
    for a, b in zip(first, copies, strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.flags.writeable
    np.testing.assert_allclose(step(A=two)[0], np.linalg.eigvalsh((two + two.T) / 2), rtol=1e-12)


@pytest.mark.parametrize("n", [5, 20, 40])
def test_singular_matrices_and_what_is_not_finite(n: int) -> None:
    step = tc.compile(tc.grad(p @ tc.linalg.solve(A, p), (A, p)), backend="c")
    good, bad, b = matrix(n), np.ones((n, n)), np.ones(n)
    step(A=good, p=b)
    for _ in range(2):
        with pytest.raises(tc.LinAlgError, match="singular"):
            step(A=bad, p=b)
        agree(step(A=good, p=b), tc.compile(step._outputs, backend="numpy")(A=good, p=b), 1e-10)
    for outputs in (
        tc.grad(tc.linalg.eigh(A)[0][0], A),
        tc.grad(tc.sum(tc.linalg.svd(A, full_matrices=False).S), A),
        tc.grad(tc.sum(tc.linalg.expm(A)), A),
    ):
        for backend in ("numpy", "c"):
            step = tc.compile(outputs, backend=backend)
            step(A=good)
            for wrong in (np.nan, np.inf):
                with pytest.raises(tc.LinAlgError, match="finite"):
                    step(A=np.where(np.eye(n) == 1, good, wrong))
            step(A=good)


def test_equal_singular_values_are_errors_of_python() -> None:
    u, s, _ = tc.linalg.svd(X, full_matrices=False)
    step = tc.compile(tc.grad(tc.sum(u**3 * s), X), backend="c")
    step(X=RNG.normal(size=(4, 3)))
    with pytest.raises(tc.LinAlgError, match="equal singular values"):
        step(X=np.eye(4)[:, :3])
    with pytest.raises(tc.LinAlgError, match="singular value of 0"):
        step(X=np.diag([3.0, 2.0, 0.0, 0.0])[:, :3])
    nuclear = tc.compile(tc.hessian(tc.norm(X, "nuc"), X), backend="c")
    plain = tc.compile(tc.hessian(tc.norm(X, "nuc"), X), backend="numpy")
    for value in (RNG.normal(size=(4, 3)), np.eye(4)[:, :3], np.eye(4)[:, :3] * 2):
        np.testing.assert_allclose(nuclear(X=value), plain(X=value), atol=1e-12)


@pytest.mark.parametrize("row", ["gaps", "svd_gaps"])
def test_equal_entries_that_lie_apart_are_seen(row: str) -> None:
    """Whatever lies between them, which is not equal."""
    w = tc.var("w", "n")
    step = tc.compile(apply(TABLE[row], w, params=("raise",)), backend="c")
    order = 1 if row == "gaps" else -1
    values = np.array([1.0, 7.0, 2.0, 7.0, 3.0])[::order]
    np.testing.assert_allclose(step(w=values[::2]), step(w=values[::2].copy()), rtol=1e-15)
    with pytest.raises(tc.LinAlgError, match="equal"):
        step(w=np.array([1.0, 5.0 * order, 1.0])[::2])


def _exponential(a: Any) -> Any:
    return mp.expm(mp.matrix(a.tolist()), method="taylor")


@pytest.mark.parametrize("size", [1e-8, 0.01, 1.0, 20.0, 80.0, 500.0])
def test_exponentials_beside_fifty_digits(size: float) -> None:
    """Of all sizes: those that are scaled, and those that are left to Python."""
    step = tc.compile([tc.linalg.expm(E), tc.jvp(tc.linalg.expm(E), E, tc.var("V", (5, 5)))],
                      backend="c")  # fmt: skip
    a, v = RNG.normal(size=(5, 5)), RNG.normal(size=(5, 5))
    a *= size / np.abs(a).sum(0).max()
    with mp.workdps(80 + int(size)):
        h = mp.mpf(10) ** -20
        wanted = _exponential(a)
        matrix_a, matrix_v = mp.matrix(a.tolist()), mp.matrix(v.tolist())
        slope = (mp.expm(matrix_a + h * matrix_v) - mp.expm(matrix_a - h * matrix_v)) / (2 * h)
        exact = [np.array(m.tolist(), float) for m in (wanted, slope)]
    for found, other in zip(step(E=a, V=v), exact, strict=True):
        error = np.abs(found - other).max() / np.abs(other).max()
        assert error < 2e-14 * (1 + size), error


def test_loops_of_steps_that_factor() -> None:
    """A state that an exponential and eigenvalues move on, step by step."""

    def states(a: Any) -> Any:
        x = np.ones(3)
        for k in range(30):
            w, v = np.linalg.eigh(a + a.T + np.outer(x, x))
            x = np.tanh(v @ (w * (v.T @ x)) / 5 + np.cos(k))
        return np.sum(x**2)

    a = matrix(3) / 4
    found = tc.compile(tc.grad(states), backend="c")(a)
    h = 1e-6
    wanted = np.zeros((3, 3))
    for i, j in np.ndindex(3, 3):
        step = np.zeros((3, 3))
        step[i, j] = h
        wanted[i, j] = (states(a + step) - states(a - step)) / (2 * h)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-7)


def test_what_is_fixed_is_computed_once() -> None:
    """Factors of bound data are Python's, made once; steps that read them are too."""
    a = matrix(20)
    step = tc.compile(tc.linalg.solve(A, p) + tc.linalg.solve(A.T, p), data={"A": a}, backend="c")
    for _ in range(3):
        b = RNG.normal(size=20)
        wanted = scipy.linalg.solve(a, b) + scipy.linalg.solve(a.T, b)
        np.testing.assert_allclose(step(p=b), wanted, rtol=1e-10, atol=1e-12)
