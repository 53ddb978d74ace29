"""Printed programs with inverses, log-determinants and arrays that are overwritten."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tests.shared import run_source

A, B, S = tc.var("A", ("n", "n")), tc.var("B", ("n", "m")), tc.var("S", ("n", "n"))
x, y, w = tc.var("x", "n"), tc.var("y", "n"), tc.var("w", "m")
K = A @ A.T + tc.eye("n")
L = tc.linalg.cholesky(K)
white = tc.linalg.solve_triangular(L, y, lower=True)
density = white @ white / 2 + tc.linalg.sumlogdiag(L)

#: Expressions, words of their programs, and how often matrices are inverted.
CASES: dict[str, tuple[Any, tuple[str, ...], int]] = {
    "definite, a vector": (tc.inv(K) @ y, ("_solve_definite(",), 0),
    "definite, a quadratic form": (y @ tc.inv(K) @ y, ("_solve_definite(",), 0),
    "definite, a matrix": (tc.inv(K) @ B, ("_solve_definite(",), 0),
    "definite, from the right": (B.T @ tc.inv(K), ("_solve_definite(",), 0),
    "definite, a trace": (tc.trace(tc.inv(K) @ A), ("_inverse_definite(",), 1),
    "definite, in full": (tc.exp(tc.inv(K)), ("_inverse_definite(",), 1),
    "definite, both": ((tc.inv(K) @ y, tc.inv(K)), ("_solve_definite(", "_inverse_definite("), 1),
    "a log-determinant": (tc.logdet(K), ("np.log(np.diagonal(",), 0),
    "a density": (density, ("_solve_definite(", "np.log(np.diagonal("), 0),
    "its gradient": (tc.grad(density, A), ("_cholesky(", "_solve_definite(t2, A)"), 0),
    "general, a vector": (tc.inv(A) @ y, ("np.linalg.solve(A, y)",), 0),
    "general, from the left": (y @ tc.inv(A), ("np.linalg.solve(A.T, y)",), 0),
    "general, a matrix": (tc.inv(A) @ B, ("np.linalg.solve(A, B)",), 0),
    "general, a sum": (tc.inv(A) @ y + tc.inv(A) @ x, ("np.linalg.solve(A, x + y)",), 0),
    "general, twice": ((tc.inv(A) @ y, tc.inv(A) @ x), ("np.linalg.inv(A)",), 1),
    "a triangle": (tc.linalg.solve_triangular(A, y, lower=True), ("_solve_lower(A, y, False)",), 0),
    "its transpose": (y @ tc.linalg.tri_inverse(A), ("_solve_lower(A, y, True)",), 0),
    "two triangles": (
        tc.linalg.tri_inverse(A) @ tc.linalg.tri_inverse(S) @ y,
        ("_solve_lower(A, _solve_lower(S, y, False), False)",),
        0,
    ),
    "an inverse times itself": (tc.inv(K) @ tc.inv(K), ("_inverse_definite(",), 1),
    "entry by entry": (tc.inv(K) * A, ("_inverse_definite(",), 1),
    "a diagonal": (tc.diagonal(tc.inv(K)), ("_inverse_definite(",), 1),
    "columns": (tc.sum(tc.inv(K), axis=0), ("_inverse_definite(",), 1),
}
WORDS = ("_inverse_definite(t", "np.linalg.inv(A)", "np.linalg.inv(np.tril(")


def values(n: int, m: int = 3, dtype: Any = np.float64) -> dict[str, np.ndarray]:
    rng, sizes = np.random.default_rng(n), {"n": n, "m": m}
    found = {}
    for v in (A, B, S, x, y, w):
        found[v.name] = rng.normal(size=[sizes[str(k)] for k in v.shape]).astype(dtype)
        if v.ndim == 2 and v.name != "B":
            found[v.name] += 3 * np.eye(n, dtype=dtype)
        found[v.name].flags.writeable = False
    return found


@pytest.mark.parametrize("name", CASES)
def test_products_with_inverses_are_solved(name: str) -> None:
    e, words, inverses = CASES[name]
    source = tc.to_code(e)
    body = source[source.index("def f(") :]
    for word in words:
        assert word in body
    assert sum(body.count(word) for word in WORDS) == inverses
    assert body.count("_cholesky(") == ("_definite(" in body or "np.diagonal(" in body)
    for n in (0, 1, 4):
        data = values(n)
        found, expected = run_source(e, data), tc.compile(e)(data)
        for one, other in zip(flat(found), flat(expected), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11)
    single = run_source(e, values(4, dtype=np.float32))
    assert all(part.dtype == np.float32 for part in flat(single))


def flat(found: Any) -> list[np.ndarray]:
    return list(found) if isinstance(found, tuple) else [np.asarray(found)]


def test_what_is_not_definite_is_refused() -> None:
    with pytest.raises(np.linalg.LinAlgError):
        run_source(tc.linalg.cholesky(A), {"A": -np.eye(3)})
    with pytest.raises(np.linalg.LinAlgError):
        run_source(
            tc.linalg.solve_triangular(A, y, lower=True), {"A": np.zeros((2, 2)), "y": [1, 2]}
        )


@pytest.mark.parametrize(
    ("e", "lines"),
    [
        (tc.exp(A @ S - B @ B.T), ["t1 = A @ S", "t1 -= B @ B.T", "np.exp(t1, out=t1)"]),
        (S - A @ S, ["t1 = A @ S", "np.subtract(S, t1, out=t1)"]),
        (tc.exp(A @ S) * S, ["t1 = A @ S", "np.exp(t1, out=t1)", "t1 *= S"]),
        (A @ S + 2 * tc.eye("n"), ["t1 = A @ S", "t1.flat[:: len(t1) + 1] += 2"]),
    ],
    ids=str,
)
def test_arrays_that_nothing_else_reads_are_overwritten(e: tc.Expr, lines: list[str]) -> None:
    source = tc.to_code(e)
    for line in lines:
        assert f"    {line}\n" in source
    data = values(3)
    np.testing.assert_allclose(run_source(e, data), tc.compile(e)(data), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(
    "e",
    [
        (A @ S, tc.exp(A @ S)),  # both are wanted
        tc.exp(A @ S) + A @ S,
        tc.exp(A @ S).T * (A @ S),
        tc.exp((A @ S).T) + tc.sin((A @ S).T),
        tc.softplus(A @ S - S),
        tc.exp(x * y) - tc.exp(y),
        tc.sum(tc.exp(A @ S) * (A @ S)) * tc.exp(A @ S),
    ],
    ids=str,
)
def test_arrays_that_something_else_reads_are_kept(e: Any) -> None:
    data = values(3)
    expected = tc.compile(e)(data)
    for one, other in zip(flat(run_source(e, data)), flat(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_outer_products_of_many_arrays_make_small_ones_first() -> None:
    e = tc.einsum("i,j,k,l->ijkl", x, y, x, w)
    assert "(x[:, None] * y)" in tc.to_code(e)
    np.testing.assert_allclose(run_source(e, values(3)), tc.compile(e)(values(3)))


X, z, weight = tc.var("X", ("n", "k")), tc.var("z", "k"), tc.var("G", ("n", "n"))
differences = X[:, None, :] - X[None, :, :]
BY_BLOCKS = {
    "weighted distances": tc.einsum("ijk,ijk,k->ij", differences, differences, tc.exp(z)),
    "their exponential": tc.exp(-(differences**2) @ tc.exp(z) / 2),
    "by the other axis": tc.einsum("ijk,ij->jk", differences, weight),
    "a sum over both": tc.einsum("ijk,ijk,ij->k", differences, differences, weight),
    "a number": tc.einsum("ijk,ijk,ij,k->", differences, differences, weight, z),
    "a gradient": tc.grad(tc.sum(tc.exp(-(differences**2) @ tc.exp(z))), z),
}


@pytest.mark.parametrize("name", BY_BLOCKS)
def test_differences_of_all_rows_are_made_block_by_block(name: str) -> None:
    e = BY_BLOCKS[name]
    source = tc.to_code(e)
    assert "in _blocks(n, n * k)" in source
    rng = np.random.default_rng(2)
    for n, k in ((0, 3), (1, 1), (3, 0), (5, 2), (200, 40)):
        data = {"X": rng.normal(size=(n, k)), "z": rng.normal(size=k), "G": rng.normal(size=(n, n))}
        np.testing.assert_allclose(run_source(e, data), tc.compile(e)(data), rtol=1e-10, atol=1e-10)
    tracemalloc.start()
    run_source(e, data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * n * n * k / 4


@pytest.mark.parametrize("name", list("XYZAB"))
def test_differences_that_are_wanted_themselves_are_made_once(name: str) -> None:
    V = tc.var(name, ("n", "k"))
    wanted = V[:, None, :] - V[None, :, :]
    source = tc.to_code((wanted, tc.einsum("ijk,ij->k", wanted, weight)))
    assert "_blocks(" not in source
    assert source.count(f"{name}[:, None, :]") == 1


def test_what_needs_no_state_is_computed_for_all_steps_at_once() -> None:
    Y, F = tc.var("Y", ("n", "k")), tc.var("F", ("k", "k"))
    e = tc.fold(lambda s, t: s * 0.5 + tc.tanh(F @ Y[t]), tc.zeros("k"), "n")
    source = tc.to_code(e)
    step = source[source.index("def step1") : source.index("_fold(step1")]
    assert "tanh" not in step
    assert "tanh" in source
    rng = np.random.default_rng(0)
    data = {"Y": rng.normal(size=(7, 3)), "F": rng.normal(size=(3, 3))}
    np.testing.assert_allclose(run_source(e, data), tc.compile(e)(data), rtol=1e-12)


def test_loops_over_what_is_cut_off_far_away() -> None:
    """Extents are negative where dimensions are small."""
    long = tc.var("v", "n")
    e = tc.fold(lambda s, t: s * 0.5 + tc.sin(long[5000:][t]), tc.zeros(()), "n-5000")
    data = {"v": np.arange(5004.0)}
    np.testing.assert_allclose(run_source(e, data), tc.compile(e)(data), rtol=1e-12)


@pytest.mark.parametrize("word", ["ijk,kl->ijl", "ijk,jl->ikl", "ijk,li->ljk", "ijk,jl->lik"])
def test_steps_of_loops_multiply_stacks_of_matrices(word: str) -> None:
    """What each step calls takes no time but that of products."""
    F, start = tc.var("F", (3, 3)), tc.var("s", (3, 3, 3))
    e = tc.fold(lambda s, t: tc.tanh(tc.einsum(word, s, F)) + s, start, "n")
    source = tc.to_code(e)
    step = source[source.index("def step1") : source.index("_fold(step1")]
    assert " @ " in step
    assert "tensordot" not in step
    rng = np.random.default_rng(0)
    data = {"F": rng.normal(size=(3, 3)), "s": rng.normal(size=(3, 3, 3)), "n": 4}
    np.testing.assert_allclose(run_source(e, data), tc.compile(e)(**data), rtol=1e-12)
