"""Hessians over three and more variables: who is eliminated, and that solutions are the dense ones.

The inverse's diagonal is compared too, and is computed without the inverse.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import tcalc as tc
from tests.test_structured_blocks import flat, matrix_of

RNG = np.random.default_rng(11)
Problem = tuple[tc.Expr, dict[str, Any], list[str]]


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape)


def factors_and_bias() -> Problem:
    """Two factors, two biases: nothing but the own blocks is block diagonal."""
    text = "norm2(T - U*V' - a*vector(1)')^2 + 4*norm2(U)^2 + 3*norm2(V)^2 + 5*norm2(a)^2"
    f = tc.parse(text, T=("n", "m"), U=("n", "k"), V=("m", "k"), a=("n",))
    data = {"T": normal(9, 4), "U": normal(9, 2), "V": normal(4, 2), "a": normal(9)}
    return f, data, ["U", "V", "a"]


def items(n: int = 12, m: int = 6) -> Problem:
    """Every item has weights and a bias, and all share an offset."""
    X, y = tc.var("X", ("n", "m", "k")), tc.var("y", ("n", "m"))
    w, b, c = tc.var("w", ("n", "k")), tc.var("b", "n"), tc.var("c", "m")
    eta = tc.einsum("nmk,nk->nm", X, w) + b[:, None] + c
    f = tc.sum(tc.softplus(eta) - y * eta) + tc.sum(w**2) + tc.sum(b**2) + tc.sum(c**2)
    data = {"X": normal(n, m, 3), "y": normal(n, m), "w": normal(n, 3), "b": normal(n)}
    return f, {**data, "c": normal(m)}, ["c", "w", "b"]


def items_alone(n: int = 12) -> Problem:
    """The same without what is shared, and weights whose items stand last."""
    X, w, b = tc.var("X", ("n", "m", "k")), tc.var("w", ("k", "n")), tc.var("b", "n")
    eta = tc.einsum("nmk,kn->nm", X, w) + b[:, None]
    f = tc.sum(tc.softplus(eta)) + tc.sum(w**2) + tc.sum(b**2)
    return f, {"X": normal(n, 6, 3), "w": normal(3, n), "b": normal(n)}, ["w", "b"]


def views(cameras: int = 3, points: int = 14, count: int = 40) -> Problem:
    """Cameras, points, and a lens that all cameras share."""
    C, P, L = tc.var("C", ("c", 2)), tc.var("P", ("p", 2)), tc.var("L", 2)
    i, j = (tc.var(name, "o", integer=True) for name in "ij")
    seen = tc.tanh(C[i] + L * P[j])
    f = tc.sum(seen**2) + 2 * tc.sum(C**2) + 2 * tc.sum(P**2) + 2 * tc.sum(L**2)
    data = {"C": normal(cameras, 2), "P": normal(points, 2), "L": normal(2)}
    places = {"i": RNG.integers(0, cameras, count), "j": RNG.integers(0, points, count)}
    return f, {**data, **places}, ["C", "P", "L"]


def two_kinds() -> Problem:
    """Two kinds of points that only cameras couple."""
    a, b, c = tc.var("a", "n"), tc.var("b", "m"), tc.var("c", 2)
    f = tc.sum(tc.cosh(a * tc.sum(c))) + tc.sum(tc.cosh(b - c[0])) + tc.sum(a**2) + tc.sum(b**2)
    data = {"a": normal(20), "b": normal(15), "c": normal(2)}
    return f + 50 * tc.sum(c**2), data, ["a", "c", "b"]


CASES: list[tuple[Callable[[], Problem], str]] = [
    (factors_and_bias, "Schur complement: U, a eliminated by [block diagonal together: 9 blocks"),
    (items, "Schur complement: w, b eliminated by [block diagonal together: 12 blocks of 4 x 4"),
    (items_alone, "block diagonal together: 12 blocks of 4 x 4"),
    (views, "Schur complement: P eliminated"),
    (two_kinds, "Schur complement: a, b eliminated by [diagonal: division; diagonal: division]"),
]


@pytest.mark.parametrize(("build", "way"), CASES, ids=[c[0].__name__ for c in CASES])
@pytest.mark.parametrize("single", [False, True])
def test_several_variables(build: Callable[[], Problem], way: str, single: bool) -> None:
    f, data, names = build()
    matrix = matrix_of(f, names, data)
    if single:
        data = {k: np.asarray(v, np.float32) if v.dtype == float else v for k, v in data.items()}
    held = tc.compile(tc.hessian(f, tuple(names)), structured=True)(data)
    assert way in held.explain()
    n = len(matrix)
    eps = (1e-12 if not single else 1e-5) * np.linalg.cond(matrix)
    g = tuple(normal(*np.shape(data[name]), 2).astype(held.dtype) for name in names)
    columns = np.concatenate([part.reshape(-1, 2) for part in g])
    x = held.solve(g)
    assert all(part.dtype == held.dtype for part in x)
    found = np.concatenate([part.reshape(-1, 2) for part in x])
    np.testing.assert_allclose(found, np.linalg.solve(matrix, columns), eps, eps)
    assert "(factored)" in held.explain()
    assert way in held.explain()
    assert held.slogdet() == pytest.approx(np.linalg.slogdet(matrix), rel=eps)
    exact, inverse = np.linalg.inv(matrix), held.inverse()
    np.testing.assert_allclose(flat(inverse.diagonal()), np.diag(exact), eps, eps)
    assert inverse.trace() == pytest.approx(np.trace(exact), rel=eps)
    assert inverse.slogdet()[1] == pytest.approx(-np.linalg.slogdet(matrix)[1], rel=eps)
    np.testing.assert_allclose(flat(inverse @ held.diagonal()), exact @ np.diag(matrix), eps, eps)
    np.testing.assert_allclose(inverse.todense(), exact, eps, eps)
    damped = held.solve(tuple(part[..., 0] for part in g), damping=2.0)
    expected = np.linalg.solve(matrix + 2 * np.eye(n), columns[:, 0])
    np.testing.assert_allclose(flat(damped), expected, eps, eps)


def test_items_take_memory_as_their_number() -> None:
    f, data, names = items(4000, 5)
    held = tc.compile(tc.hessian(f, tuple(names)), structured=True)(data)
    g = tuple(data[name] for name in names)
    tracemalloc.start()
    x = held.solve(g)
    spread = held.inverse().diagonal()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000
    assert [part.shape for part in spread] == [part.shape for part in g]
    np.testing.assert_allclose(flat(held @ x), flat(g), 1e-8, 1e-8)


def test_the_diagonal_of_an_inverse_is_computed_by_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    f, data, names = views(3, 400, 900)
    held = tc.compile(tc.hessian(f, tuple(names)), structured=True)(data)
    whole = flat(held.inverse().diagonal())
    monkeypatch.setattr("tcalc.structured.solvers.schur.DIAGONAL_CHUNK", 100)
    np.testing.assert_allclose(flat(held.inverse().diagonal()), whole, 1e-12)
    np.testing.assert_allclose(whole, np.diag(np.linalg.inv(held.todense())), 1e-9)


PARTS = {
    "own": "norm2(a)^2 + norm2(B)^2 + norm2(c)^2 + s^2",
    "items": "sum((B*p) .* a)",
    "quartic": "sum(B.^4)",
    "all items": "sum(a)^2",
    "shared": "sum(sin(X*c) .* a)",
    "rows": "norm2(B*c2)^2",
    "scalar": "s*sum(a) + cos(s)*sum(c)",
    "weights": "norm2(B'*X*c)^2",
    "outer": "norm2(a*c' - X)^2",
}
SHAPES = {"a": "n", "B": ("n", "k"), "c": "m", "s": (), "p": "k", "X": ("n", "m"), "c2": "k"}


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sets(st.sampled_from(sorted(PARTS)), min_size=1),
    st.permutations(["a", "B", "c", "s"]),
    st.integers(2, 4),
    st.tuples(*[st.integers(0, 5)] * 3),
)
def test_any_couplings_solve_as_the_dense_matrix(
    parts: set[str], order: list[str], count: int, sizes: tuple[int, int, int]
) -> None:
    shapes = {name: (s,) if isinstance(s, str) else s for name, s in SHAPES.items()}
    f = tc.parse(" + ".join(["9*(" + PARTS["own"] + ")", *map(PARTS.get, sorted(parts))]), **shapes)
    known = dict(zip("nmk", sizes, strict=True))
    rng = np.random.default_rng(0)
    data = {name: rng.normal(size=[known[e] for e in shapes[name]]) / 2 for name in f.variables}
    names = [name for name in order if name in data][:count]
    held = tc.compile(tc.hessian(f, tuple(names)), structured=True)(data)
    matrix = matrix_of(f, names, data)
    assume(len(matrix) and np.linalg.cond(matrix) < 1e4)
    np.testing.assert_allclose(held.todense(), matrix, 1e-10, 1e-10)
    g = tuple(rng.normal(size=np.shape(data[name])) for name in names)
    np.testing.assert_allclose(flat(held.solve(g)), np.linalg.solve(matrix, flat(g)), 1e-8, 1e-8)
    assert held.slogdet() == pytest.approx(np.linalg.slogdet(matrix), rel=1e-9, abs=1e-9)
    exact, inverse = np.linalg.inv(matrix), held.inverse()
    np.testing.assert_allclose(flat(inverse.diagonal()), np.diag(exact), 1e-8, 1e-9)
    np.testing.assert_allclose(inverse.todense(), exact, 1e-8, 1e-9)
