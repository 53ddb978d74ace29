"""Which equalities of a compressed derivative become places of its cores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcalc as tc


def _cores(e: tc.Expr) -> list[int]:
    return [core.ndim for core in tc.compress(e).cores]


def test_neighbours_are_a_band() -> None:
    """The Hessian of an autoregression is three diagonals; none of its cores has two axes."""
    f = tc.parse_index("sum[t=1..n-1]((x[t] - a*x[t-1])^2)/2", x=("n",), a=())
    hessian = tc.hessian(f, "x")
    assert max(_cores(hessian)) == 1
    data = {"x": np.arange(6.0), "a": 0.5}
    held = tc.compile(hessian, structured=True)(**data)
    expected = np.diag([0.25] + [1.25] * 4 + [1.0]) - 0.5 * (np.eye(6, k=1) + np.eye(6, k=-1))
    np.testing.assert_allclose(held.todense(), expected, 1e-14)
    goal = np.arange(1.0, 7)
    with pytest.raises(tc.LinAlgError, match="singular"):  # growth by 1/a costs nothing
        held.solve(goal)
    solution = np.linalg.solve(expected + np.eye(6), goal)
    np.testing.assert_allclose(held.solve(goal, damping=1), solution, 1e-10)


@pytest.mark.parametrize("wrt", ["x", "w"])
def test_a_convolution_is_held_in_less_than_its_windows(wrt: str) -> None:
    """In the kernel the Hessian is as small as it is; the sums behind it are not held."""
    f = tc.parse_index("sum[i]((sum[k](x[i+k]*w[k]) - y[i])^2)/2",
                       x=("n",), w=("m",), y=("n-m+1",))  # fmt: skip
    hessian = tc.hessian(f, wrt)
    plan = tc.compile(hessian, structured=True).plan_for(x=(10000,), w=(16,))
    assert plan.peak_bytes < 4 * 8 * 10000 * 16
    rng = np.random.default_rng(0)
    data = {"x": rng.standard_normal(30), "w": rng.standard_normal(4)}
    held = tc.compile(hessian, structured=True)(**data)
    np.testing.assert_allclose(held.todense(), tc.compile(hessian)(**data), 1e-12, 1e-12)


@pytest.mark.parametrize(("order", "terms"), [(1, 4), (2, 9), (3, 16)])
def test_differences_of_differences_are_bands(order: int, terms: int) -> None:
    """D' diag D for D with binomial coefficients: a term for each two of a difference's entries."""
    x = tc.var("x", "n")
    hessian = tc.hessian(tc.sum(tc.diff(x, order) ** 4), x)
    assert len(tc.compress(hessian).terms) == terms
    data = np.random.default_rng(order).normal(size=20)
    held = tc.compile(hessian, structured=True)(x=data)
    by = np.diff(np.eye(20), order, axis=0)
    expected = 12 * by.T @ np.diag(np.diff(data, order) ** 2) @ by
    np.testing.assert_allclose(held.todense(), expected, 1e-12, 1e-12)
    goal = np.linspace(-1, 1, 20)
    solution = np.linalg.solve(expected + np.eye(20), goal)
    np.testing.assert_allclose(held.solve(goal, damping=1), solution, 1e-9)
    plan = tc.compile(hessian, structured=True).plan_for(x=(100_000,))
    assert plan.peak_bytes < 100 * 8 * 100_000


DIFFERENCES = {
    "first": lambda x: x[1:] - x[:-1],
    "second": lambda x: x[2:] - 2 * x[1:-1] + x[:-2],
    "third": lambda x: x[3:] - 3 * x[2:-1] + 3 * x[1:-2] - x[:-3],
    "of differences": lambda x: (x[2:] - x[1:-1]) - (x[1:-1] - x[:-2]),
    "decaying": lambda x: x[1:] - tc.var("rate") * x[:-1],
}
ROUGHNESS = {
    "squares": lambda d: tc.sum(d**2),
    "weighted": lambda d: tc.var("weight") * tc.sum(d**2),
    "twice weighted": lambda d: tc.var("weight") * (tc.sum(d**2) / tc.var("rate") + tc.sum(d)),
    "exponentials": lambda d: tc.var("weight") * tc.sum(tc.exp(d)),
    "robust": lambda d: tc.sum(tc.sqrt(1 + tc.var("weight") * d**2)),
}


@pytest.mark.parametrize("roughness", ROUGHNESS.values(), ids=ROUGHNESS.keys())
@pytest.mark.parametrize("difference", DIFFERENCES.values(), ids=DIFFERENCES.keys())
def test_smoothing_is_solved_as_a_sparse_matrix(difference: Any, roughness: Any) -> None:
    """However a difference is spelled and weighted, no core has two axes."""
    x, y = tc.var("x", "n"), tc.var("y", "n")
    f = tc.sum((x - y) ** 2) + roughness(difference(x))
    hessian = tc.hessian(f, x)
    assert max(_cores(hessian)) <= 1
    rng = np.random.default_rng(1)
    n = 500
    data = {"x": rng.normal(size=n) / 9, "y": rng.normal(size=n), "weight": 0.7, "rate": 0.9}
    data = {name: data[name] for name in hessian.variables} | (
        {} if hessian.variables else {"n": n}
    )
    held = tc.compile(hessian, structured=True)(**data)
    dense = tc.compile(hessian)(**data)
    np.testing.assert_allclose(held.todense(), dense, 1e-12, 1e-12)
    assert "sparse" in held.explain()
    goal = rng.normal(size=n)
    np.testing.assert_allclose(held.solve(goal), np.linalg.solve(dense, goal), 1e-10)
    assert "diagonals, Cholesky" in held.explain()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("level", [4.0, -0.1])
@pytest.mark.parametrize("symmetric", [True, False])
def test_a_matrix_near_its_diagonal_is_factored_by_diagonals(
    symmetric: bool, level: float, dtype: Any
) -> None:
    x, a = tc.var("x", "n"), tc.var("a", "n")
    e = tc.hessian(tc.sum(a * tc.cosh(x)) + tc.sum(x[1:] * x[:-1]), x)
    if not symmetric:
        flow = "g[i] = a[i]*sinh(x[i]) + where(i > 0, x[i-1]^2, 0) + where(i < n-2, x[i+2], 0)"
        e = tc.jacobian(tc.parse_index(flow, a=("n",), x=("n",)), "x")
    rng = np.random.default_rng(3)
    n = 300
    data = {"a": level + rng.random(n), "x": rng.normal(size=n) / 2}
    held = tc.compile(e, structured=True)(**{k: v.astype(dtype) for k, v in data.items()})
    dense = tc.compile(e)(**data)
    g = rng.normal(size=(n, 2)).astype(dtype)
    factor = held.factor()
    rtol = (1e-13 if dtype is np.float64 else 1e-5) * np.linalg.cond(dense)
    wanted = np.linalg.solve(dense, g)
    np.testing.assert_allclose(factor.solve(g), wanted, rtol, rtol * np.abs(wanted).max())
    assert factor.definite == (symmetric and np.linalg.eigvalsh(dense)[0] > 0)
    assert factor.definite == (symmetric and level > 0)
    assert held.slogdet() == pytest.approx(np.linalg.slogdet(dense), rel=rtol)
    inverse = np.linalg.inv(dense)
    np.testing.assert_allclose(
        held.inverse().todense(), inverse, rtol, rtol * np.abs(inverse).max()
    )
    kind = "3 diagonals, " + ("Cholesky" if factor.definite else "LU")
    assert (kind if symmetric else "4 diagonals, LU") in held.explain()


def test_diagonals_of_a_singular_matrix_are_told() -> None:
    x, a = tc.var("x", "n"), tc.var("a", "n")
    e = tc.hessian(tc.sum(a * x**2) + tc.sum((x[1:] - x[:-1]) ** 4), x)
    held = tc.compile(e, structured=True)(x=np.zeros(80), a=np.arange(80.0))
    with pytest.raises(tc.LinAlgError, match=r"sparse 80 x 80 matrix is singular"):
        held.solve(np.ones(80))


SHOWN = {
    "C1[i] * delta[i,j] + C2[i] * delta[i+1,j]": lambda x: x[1:] ** 2 - x[:-1] ** 3,
    "C1[i] * delta[n-i-1,j]": lambda x: tc.sin(x[::-1]),
    "sum[o](C1[o] * delta[o+i,j])": lambda x: tc.parse_index(
        "c[i=0..n-m] = sum[k](x[i+k]*w[k])", x=x, w=("m",)
    ),
    "C1[i] * delta[C2[i],j]": lambda x: x[tc.var("places", "k", integer=True)] ** 2,
}


@pytest.mark.parametrize("text", SHOWN)
def test_places_are_shown_as_a_person_writes_them(text: str) -> None:
    x = tc.var("x", "n")
    assert str(tc.compress(tc.jacobian(SHOWN[text](x), x))).startswith(f"H[i,j] = {text}   shape")


NESTED: dict[str, Callable[[tc.Expr], tc.Expr]] = {
    "second differences": lambda x: tc.sum(tc.exp(tc.diff(x, 2))),
    "neighbours in a ring": lambda x: tc.sum((tc.roll(x, 1) - x) ** 4),
    "a ring by parts": lambda x: tc.sum(tc.exp(tc.concatenate([x[1:], x[:1]]) - x)),
    "central differences": lambda x: tc.sum(tc.exp(tc.gradient(x))),
    "slices of slices": lambda x: tc.sum(tc.exp(x[1:])[:-2] * tc.sin(x[2:-1])),
}


@pytest.mark.parametrize("name", NESTED)
def test_bands_inside_of_bands_are_bands(name: str) -> None:
    x = tc.var("x", "n")
    H = tc.hessian(NESTED[name](x), x)
    for n in (4, 5, 9):
        at = np.random.default_rng(n).normal(size=n)
        held = tc.compile(H, structured=True)(x=at)
        np.testing.assert_allclose(held.todense(), numerical_hessian(NESTED[name], at), atol=1e-5)
    large = tc.compile(H, structured=True)(x=np.linspace(0, 1, 20_000))
    assert large.nbytes < 20_000 * 8 * 50


def numerical_hessian(build: Callable[[tc.Expr], tc.Expr], at: np.ndarray) -> np.ndarray:
    """Differences of gradients, which are no matrices."""
    gradient = tc.grad(build(tc.var("x", "n")), "x")
    steps = 1e-5 * np.eye(len(at))
    return np.array([(gradient(x=at + h) - gradient(x=at - h)) / 2e-5 for h in steps])
