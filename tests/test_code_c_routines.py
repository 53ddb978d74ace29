"""Routines that printed C carries along: sizes and ends of domains that no table of cases has."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np
import pytest
import scipy.linalg
from numpy.lib.stride_tricks import sliding_window_view

import tcalc as tc
from tests.c_programs import Job, blas, built, called, compiled, needs_compiler, printed

pytestmark = needs_compiler

la = tc.linalg
A, E = tc.var("A", ("n", "n")), tc.var("E", ("n", "n"))


def run(e: Any, arrays: dict[str, np.ndarray], folder: Path) -> tuple[int, Any]:
    """The status and the results of one program."""
    job = Job("f", e, arrays, {"n": len(next(iter(arrays.values())))})
    source = printed(job, 0)
    return called(built(source, folder), source, "f0", job)


def general(n: int, spread: float, seed: int = 0) -> np.ndarray:
    """A matrix with complex eigenvalues, away from the negative axis."""
    a = np.random.default_rng(seed).normal(size=(n, n)) / np.sqrt(n)
    return a * spread + 1.5 * spread * np.eye(n)


MATRICES: dict[str, Callable[[int], np.ndarray]] = {
    "general": lambda n: general(n, 1.0),
    "symmetric": lambda n: np.cov(np.random.default_rng(0).normal(size=(n, 3 * n))),
    "small": lambda n: general(n, 1e-3) - 1e-3 * np.eye(n),
    "large": lambda n: general(n, 40.0),
    "defective": lambda n: 2 * np.eye(n) + np.diag(np.ones(n - 1), 1),
    "rotations": lambda n: np.kron(np.eye(n // 2), [[1.0, -3.0], [3.0, 1.0]]),
}
REFERENCES = {"expm": scipy.linalg.expm, "sqrtm": scipy.linalg.sqrtm, "logm": scipy.linalg.logm}


@pytest.mark.parametrize("name", REFERENCES)
def test_functions_of_matrices_of_all_kinds(name: str, tmp_path: Path) -> None:
    """Values against SciPy, and the block triangle's function is its derivative."""
    value = getattr(la, name)(A)
    source = printed(Job("f", (value, tc.jvp(value, A, E)), {}, {}), 0)
    library = built(source, tmp_path, "-O1")
    for kind, make in MATRICES.items():
        n = 24
        a, e = make(n), np.random.default_rng(1).normal(size=(n, n))
        job = Job("f", (value, tc.jvp(value, A, E)), {"A": a, "E": e}, {"n": n})
        status, found = called(library, source, "f0", job)
        assert status == 0, kind
        block = np.block([[a, e], [np.zeros((n, n)), a]])
        with warnings.catch_warnings(action="ignore"):  # SciPy doubts its logarithm
            whole = np.real(REFERENCES[name](block))
        for mine, other in zip(found, (whole[:n, :n], whole[:n, n:]), strict=True):
            size = np.abs(other).max()
            near = 1e-7 if kind == "defective" else 1e-11
            np.testing.assert_allclose(mine, other, rtol=0, atol=near * size, err_msg=kind)


NILPOTENT, ZERO = np.diag([1.0, 0.0], 1), np.zeros((3, 3))
NEGATIVE = np.array([[1.0, 2.0, 0.0], [0.0, -1.0, 1.0], [0.0, 0.0, 3.0]])


#: What is asked of a matrix, and the status.
REFUSED = [
    (la.expm(A), np.full((3, 3), np.nan), 1),
    (la.expm(A), np.diag([1.0, np.inf, 0.0]), 1),
    (la.sqrtm(A), NEGATIVE, 1),
    (la.sqrtm(A), NILPOTENT, 1),
    (la.sqrtm(A), ZERO, 0),
    (la.sqrtm(A), np.diag([4.0, 0.0, 0.0]), 0),
    (la.sqrtm(A), np.array([[4.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]), 0),
    (tc.jvp(la.sqrtm(A), A, A), np.diag([4.0, 0.0, 1.0]), 1),
    (la.logm(A), NEGATIVE, 1),
    (la.logm(A), ZERO, 1),
    (la.adj(A), ZERO, 0),
]


def test_matrices_are_refused_as_by_plans(tmp_path: Path) -> None:
    jobs = [Job(f"{e} {status}", e, {"A": a}, {"n": len(a)}) for e, a, status in REFUSED]
    for program, (e, a, status) in zip(compiled(jobs, tmp_path), REFUSED, strict=True):
        found, results = program()
        assert found == status, program.job.name
        if status:
            with pytest.raises(tc.LinAlgError):
                e(A=a)
        else:
            np.testing.assert_allclose(results[0], e(A=a), atol=1e-13, err_msg=program.job.name)


@pytest.mark.parametrize("flags", [(), ("-DCBLAS",)], ids=["loops", "CBLAS"])
def test_factors_and_inverses_of_all_sizes(flags: tuple[str, ...], tmp_path: Path) -> None:
    """By halves from 33 rows on, and by further halves from 65 on."""
    P, b = tc.var("P", ("n", "n"), positive_definite=True), tc.var("b", "n")
    inverse = tc.inv(P)
    tree = (la.cholesky(P), la.tri_inverse(P), inverse, inverse @ b, tc.grad(tc.logdet(P), P))
    source = printed(Job("f", tree, {}, {}), 0)
    library = built(source, tmp_path, "-O1", *(blas(tmp_path) if flags else ()))
    for n in (0, 1, 2, 32, 33, 64, 65, 66, 131, 260):
        a = np.cov(np.random.default_rng(n).normal(size=(n, 2 * n + 2))) + np.eye(n)
        job = Job("f", tree, {"P": a.reshape(n, n), "b": np.arange(1.0, n + 1)}, {"n": n})
        status, found = called(library, source, "f0", job)
        assert status == 0
        for mine, other in zip(found, job.expected(), strict=True):
            size = np.abs(other).max(initial=1)
            np.testing.assert_allclose(mine, other, rtol=0, atol=1e-11 * size, err_msg=str(n))


def solved() -> dict[str, tuple[Any, str, Callable[..., Any]]]:
    """Expressions, the routine that computes them, and what they are of arrays a, y, b, t, k and x.

    Here k = a a' + 1 is definite, x the inverse of its factor, t a stack of symmetric matrices.
    """
    K, y = A @ A.T + tc.eye("n"), tc.var("y", "n")
    B, T = tc.var("B", ("n", "m")), tc.var("T", ("p", "n", "n"))
    S = (T + tc.transpose(T, (0, 2, 1))) / 2
    lower, X = la.tri_inverse(A), la.tri_inverse(la.cholesky(K))
    both = tc.einsum("ij,pjk,lk->pil", X, S, X)
    inv, tril = np.linalg.inv, np.tril
    return {
        "a triangle": (lower @ y, "solve_lower", lambda a, y, *_: inv(tril(a)) @ y),
        "transposed": (lower.T @ y, "solve_lower", lambda a, y, *_: inv(tril(a)).T @ y),
        "columns": (lower @ B, "solve_lower", lambda a, y, b, *_: inv(tril(a)) @ b),
        "rows": (B.T @ lower, "solve_lower", lambda a, y, b, *_: b.T @ inv(tril(a))),
        "definite": (tc.inv(K) @ y, "solve_definite", lambda a, y, b, t, k, x: inv(k) @ y),
        "definite, columns": (
            tc.inv(K) @ B, "solve_definite", lambda a, y, b, t, k, x: inv(k) @ b,
        ),
        "definite, a stack": (
            tc.einsum("ij,pjk->pik", tc.inv(K), T), "solve_definite",
            lambda a, y, b, t, k, x: inv(k) @ t,
        ),
        "general": (tc.inv(A) @ B, "eliminated", lambda a, y, b, *_: inv(a) @ b),
        "general, both ways": (
            (tc.inv(A) @ y, y @ tc.inv(A)), "eliminated",
            lambda a, y, *_: (inv(a) @ y, y @ inv(a)),
        ),
        "a congruence": (
            X @ (A + A.T) @ X.T, "congruence", lambda a, y, b, t, k, x: x @ (a + a.T) @ x.T,
        ),
        "of a stack": (both, "congruence", lambda a, y, b, t, k, x: x @ t @ x.T),
        "and its operand": (
            (both, S), "congruence", lambda a, y, b, t, k, x: (x @ t @ x.T, t),
        ),
    }  # fmt: skip


@pytest.mark.parametrize("flags", [(), ("-DCBLAS",), ("-DSINGLE",)], ids=str)
def test_solutions_of_all_sizes_make_no_inverse(flags: tuple[str, ...], tmp_path: Path) -> None:
    """By halves from 17 rows on, and vectors from 33 on; what cannot be solved is refused."""
    rng, rows = np.random.default_rng(0), solved()
    real, near = (np.float32, 2e-4) if "-DSINGLE" in flags else (np.float64, 1e-11)
    jobs = [Job(name, tree, {}, {}) for name, (tree, _, _) in rows.items()]
    given = blas(tmp_path) if "-DCBLAS" in flags else flags
    for program, (_, routine, meaning) in zip(
        compiled(jobs, tmp_path, "-O1", *given), rows.values(), strict=True
    ):
        _, _, body = program.source.rpartition(f"\nint {program.name}(")
        assert f"{routine}(" in body, program.job.name
        assert not any(word in body for word in (" inv(", "tri_inverse(", "inverse_definite("))
        assert body.count("lu(") == (routine == "eliminated")
        for n, m in ((0, 2), (1, 1), (2, 3), (16, 1), (17, 20), (33, 65), (70, 0), (131, 3)):
            a = rng.normal(size=(n, n)) / max(1, n) ** 0.5 + 3 * np.eye(n)
            b, t = rng.normal(size=(n, m)), rng.normal(size=(2, n, n))
            arrays = {"A": a, "y": rng.normal(size=n), "B": b, "T": t + t.transpose(0, 2, 1)}
            job = program.job._replace(arrays=arrays, sizes={"n": n, "m": m, "p": 2})
            status, found = called(program.library, program.source, program.name, job, real)
            assert status == 0
            k = a @ a.T + np.eye(n)
            expected = meaning(*arrays.values(), k, np.linalg.inv(np.linalg.cholesky(k)))
            wanted = expected if isinstance(expected, tuple) else (expected,)
            for mine, other in zip(found, wanted, strict=True):
                size = np.abs(other).max(initial=1)
                text = f"{job.name} {n} {m}"
                np.testing.assert_allclose(mine, other, rtol=0, atol=near * size, err_msg=text)
        if routine in ("solve_lower", "eliminated"):
            zero = {**arrays, "A": np.zeros((131, 131))}
            job = job._replace(arrays=zero)
            assert called(program.library, program.source, program.name, job, real)[0] == 1


def test_what_a_routine_overwrites_is_read_before(tmp_path: Path) -> None:
    """Matrices of a stack that others read too are held once, as what is made of them."""
    T, y = tc.var("T", ("p", "n", "n")), tc.var("y", "n")
    X = la.tri_inverse(la.cholesky(A @ A.T + tc.eye("n")))
    S = tc.exp(T + tc.transpose(T, (0, 2, 1)))
    both = tc.einsum("ij,pjk,lk->pil", X, S, X)
    tree = (tc.einsum("pij,qij->pq", both, both), tc.einsum("pij,i,j->p", S, y, tc.inv(A) @ y))
    source = tc.to_code(tree, "c", "f0", sizes={"n": 300, "p": 3})
    (total,) = re.findall(r"return \(size_t\)\((.*)\) \* sizeof", source)
    assert [sorted(size.split(" * ")) for size in total.split(" + ")].count(["n", "n", "p"]) == 1
    rng = np.random.default_rng(0)
    a, t, v = rng.normal(size=(40, 40)), rng.normal(size=(3, 40, 40)), rng.normal(size=40)
    job = Job("f", tree, {"A": a, "T": t, "y": v}, {"n": 40, "p": 3})
    status, found = called(built(source, tmp_path), source, "f0", job)
    assert status == 0
    s, x = np.exp(t + t.transpose(0, 2, 1)), np.linalg.inv(np.linalg.cholesky(a @ a.T + np.eye(40)))
    c = (x @ s @ x.T).reshape(3, -1)
    for mine, other in zip(found, (c @ c.T, s @ np.linalg.solve(a, v) @ v), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-8)


def test_minors_at_matrices_of_any_rank(tmp_path: Path) -> None:
    """Derivatives of a determinant exist where no inverse does."""
    v = tc.var("v", "n")
    tree = tuple([tc.derivative(la.det(tc.diag(v) + A), v, k) for k in range(1, 5)])
    source = printed(Job("f", tree, {}, {}), 0)
    library = built(source, tmp_path)
    for rank in range(4):
        given = {"A": np.diag([2.0, -3.0, 5.0, 7.0] * (np.arange(4) < rank)), "v": np.zeros(4)}
        status, found = called(library, source, "f0", Job("f", tree, given, {"n": 4}))
        assert status == 0
        for mine, e in zip(found, tree, strict=True):
            np.testing.assert_allclose(mine, e(given), atol=1e-12)


def test_equal_eigenvalues_have_divided_differences(tmp_path: Path) -> None:
    e = tc.hvp(tc.sum(E * la.matrix_function(A, lambda x: tc.tanh(x) * x)), A, E)
    spread = np.diag([0.0, 0.0, 1e-9, 1e-5, 1e-2, 1.0, 1.0 + 1e-12])
    q, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(7, 7)))
    given = {"A": q @ spread @ q.T, "E": np.random.default_rng(1).normal(size=(7, 7))}
    status, (found,) = run(e, given, tmp_path)
    assert status == 0
    np.testing.assert_allclose(found, e(given), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", ["even", "uneven", "cancelling"])
def test_products_of_all_windows(kind: str, tmp_path: Path) -> None:
    """One line's with themselves and with another's, more of them and fewer than their entries."""
    x, w, y, u = tc.var("x", "n"), tc.var("w", "m"), tc.var("y", "n-m+1"), tc.var("u", "m")
    z = tc.var("z", "n+1")
    one = tc.parse_index("sum[i](y[i]*0 + sum[k](x[i+k]*w[k])^2/2)", x=x, w=w, y=y)
    two = tc.parse_index(
        "sum[i]((y[i]*0 + sum[k](x[i+k]*w[k]))*sum[k](z[i+k+1]*u[k]))", x=x, w=w, y=y, z=z, u=u
    )
    tree = (tc.hessian(one, w), tc.jacobian(tc.grad(two, w), u))
    source = printed(Job("f", tree, {}, {}), 0)
    assert source.count(" lags(") == 1 + len(tree)
    library = built(source, tmp_path, "-O1")
    rng = np.random.default_rng(0)
    for n, m in ((40, 5), (9, 5), (5, 5), (3, 2)):
        found = {"x": rng.standard_normal(n), "z": rng.standard_normal(n + 1)}
        if kind == "uneven":
            found = {name: a / 10.0 ** np.arange(len(a)) for name, a in found.items()}
        if kind == "cancelling":
            found["x"][: n // 2] *= 1e8
        found |= {"y": np.zeros(n - m + 1), "w": np.zeros(m), "u": np.zeros(m)}
        job = Job("f", tree, found, {"n": n, "m": m})
        status, results = called(library, source, "f0", job)
        assert status == 0
        one_line, other_line = (
            sliding_window_view(a, n - m + 1) for a in (found["x"], found["z"][1:])
        )
        wanted = (one_line @ one_line.T, one_line @ other_line.T)
        for mine, other in zip(results, wanted, strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-9, atol=1e-13 * abs(other).max())


# --- Bessel functions -----------------------------------------------------------------------------

ORDERS = [0, 1, 2, 20, 0.5, 1 / 3, 7.3, 0.4999, 100.5, -0.5, -1.5, -1, -2, -2.3]
POINTS = [1e-8, 1e-3, 0.1, 0.7, 1.99, 2.0, 2.5, 5, 9.7, 17, 24.9, 25.1, 40, 120, 700]
BESSEL = {
    "jv": mp.besselj, "yv": mp.bessely, "iv": mp.besseli, "kv": mp.besselk,
    "ive": lambda v, x: mp.exp(-abs(x)) * mp.besseli(v, x),
}  # fmt: skip


def test_bessel_functions_of_all_orders(tmp_path: Path) -> None:
    """Relative to the value, of functions that oscillate to how far they do."""
    v, x = tc.var("v", "n"), tc.var("x", "n")
    at = np.array([(order, p) for order in ORDERS for p in POINTS])
    tree = {name: getattr(tc, name)(v, x) for name in BESSEL}
    status, found = run(tree, {"v": at[:, 0], "x": at[:, 1]}, tmp_path)
    assert status == 0
    with mp.workdps(30):
        for (name, function), values in zip(BESSEL.items(), found, strict=True):
            for (order, p), value in zip(at.tolist(), values.tolist(), strict=True):
                exact = function(mp.mpf(order), mp.mpf(p))
                wave = mp.sqrt(2 / (mp.pi * p)) if name in ("jv", "yv") and p > abs(order) else 0
                if 1e-290 < abs(exact) < 1e290:
                    error = abs(value - exact) / max(abs(exact), wave)
                    assert error < 1e-12, (name, order, p)


def test_bessel_functions_where_they_end(tmp_path: Path) -> None:
    v, x = tc.var("v", "n"), tc.var("x", "n")
    tree = {name: getattr(tc, name)(v, x) for name in BESSEL} | {"sinc": tc.sinc(x)}
    orders, points = [0, 1, 2, -1, 0.5, 1.3], [0.0, -1.0, -30.0, np.nan, 1e4]
    at = np.array([(order, p) for order in orders for p in points])
    given = {"v": at[:, 0], "x": at[:, 1]}
    status, found = run(tree, given, tmp_path)
    assert status == 0
    for e, mine in zip(tree.values(), found, strict=True):
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(mine, e(given), rtol=1e-10, atol=1e-13)
