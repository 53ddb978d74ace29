"""One model in several spellings: the same numbers, planned at the same cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcalc as tc
from benchmarks.problems import gp
from tcalc.plan.kinds.table import KINDS
from tcalc.plan.lowering.traces import traced
from tcalc.rules.distances import by_differences

D = 4
X, y, th = tc.var("X", ("n", D)), tc.var("y", "n"), tc.var("th", D + 2)
w, s, t = tc.var("w", D), tc.var("s"), tc.var("t")


def process(squared: str, w: Any, s: Any, t: Any) -> Any:
    if squared == "differences":
        distances = (X[:, None, :] - X[None, :, :]) ** 2 @ tc.exp(w)
    else:
        scaled = X * tc.exp(w / 2)
        lengths = tc.sum(scaled * scaled, axis=1)
        distances = lengths[:, None] + lengths[None, :] - 2 * scaled @ scaled.T
    kernel = tc.exp(s - distances / 2) + tc.exp(t) * tc.eye("n")
    factor = tc.linalg.cholesky(kernel)
    white = tc.linalg.solve_triangular(factor, y, lower=True)
    return white @ white / 2 + tc.linalg.sumlogdiag(factor)


SPELLINGS = [(squared, apart) for squared in ("differences", "gram") for apart in (True, False)]


def hessian_of(squared: str, apart: bool) -> Any:
    if apart:
        return tc.hessian(process(squared, w, s, t), (w, s, t))
    return tc.hessian(process(squared, th[:D], th[D], th[D + 1]), th)


def products(plan: Any, n: int) -> float:
    """Operations of matrix products and factorisations, in products of n x n matrices."""
    speeds = ("gemm", "factorisation")
    return sum(step.flops for step in plan.steps if KINDS[step.kind].speed in speeds) / (2 * n**3)


@pytest.mark.parametrize(("squared", "apart"), SPELLINGS)
def test_hessians_of_a_gaussian_process_are_the_experts(squared: str, apart: bool) -> None:
    data = dict(gp.of_size(150, D).load(np.random.default_rng(0)))
    data["th"] = np.concatenate([data["w"], [data["s"], data["t"]]])
    found = tc.compile(hessian_of(squared, apart), backend="numpy")(**data)
    wanted = gp.hessian(data)

    def whole(blocks: Any) -> np.ndarray:
        sizes = (D, 1, 1)
        rows = [[np.reshape(b, (m, k)) for b, k in zip(row, sizes, strict=True)]
                for row, m in zip(blocks, sizes, strict=True)]  # fmt: skip
        return np.block(rows)

    found = whole(found) if apart else found
    np.testing.assert_allclose(found, whole(wanted), rtol=1e-9, atol=1e-9)


def test_hessians_of_a_gaussian_process_cost_the_same_in_all_spellings() -> None:
    n = 1000
    plans = [tc.compile(hessian_of(*spelling)).plan_for(n=n) for spelling in SPELLINGS]
    assert all(products(plan, n) < 5.2 for plan in plans)
    flops = [plan.flops for plan in plans]
    assert max(flops) < 1.02 * min(flops)


# --- parts of variables ---------------------------------------------------------------------------

Z, r = tc.var("Z", ("m", 7)), tc.var("r", "m")


def mixture(a: Any, b: Any, c: Any) -> Any:
    """Logits by a matrix, offsets and a scale, as most models have them."""
    scores = tc.exp(c) * (Z @ a) + b
    return tc.sum(tc.logsumexp(scores, axis=1)) + r @ tc.tanh(Z @ a) @ b


def test_a_hessian_by_a_vector_is_planned_as_by_its_parts() -> None:
    a, b, c = tc.var("a", (7, 3)), tc.var("b", 3), tc.var("c")
    v = tc.var("v", 25)
    apart = tc.compile(tc.hessian(mixture(a, b, c), (a, b, c)))
    together = tc.compile(tc.hessian(mixture(v[:21].reshape(7, 3), v[21:24], v[24]), v))
    m = 30_000
    assert together.plan_for(m=m).flops < 1.02 * apart.plan_for(m=m).flops
    rng = np.random.default_rng(0)
    data = {"Z": rng.normal(size=(m, 7)), "r": rng.normal(size=m), "v": rng.normal(size=25) / 4}
    data |= {"a": data["v"][:21].reshape(7, 3), "b": data["v"][21:24], "c": data["v"][24]}
    blocks = apart(**data)
    sizes = (21, 3, 1)
    rows = [
        [np.reshape(e, (i, k)) for e, k in zip(row, sizes, strict=True)]
        for row, i in zip(blocks, sizes, strict=True)
    ]
    np.testing.assert_allclose(together(**data), np.block(rows), rtol=1e-10, atol=1e-10)


def test_parts_that_overlap_or_are_read_whole_are_no_parts() -> None:
    v, M = tc.var("v", 40), tc.var("M", (40, 40))
    f = tc.sum(tc.exp(M[:20, :20] @ v[:20]) * v[10:30]) + tc.sum(tc.sin(M @ v))
    data = {"v": np.linspace(-1, 1, 40), "M": np.random.default_rng(0).normal(size=(40, 40)) / 40}
    found, step = tc.hessian(f, v)(**data), 1e-6
    gradient = tc.grad(f, v)
    ahead = gradient(M=data["M"], v=data["v"] + step * np.eye(40)[3])
    back = gradient(M=data["M"], v=data["v"] - step * np.eye(40)[3])
    np.testing.assert_allclose(found[3], (ahead - back) / (2 * step), atol=1e-7)


# --- distances ------------------------------------------------------------------------------------

A, B, q = tc.var("A", ("n", "k")), tc.var("B", ("m", "k")), tc.var("q", "k")


def squares(e: Any) -> Any:
    return tc.sum(e * e, axis=1)


@pytest.mark.parametrize(
    "e",
    [
        squares(A)[:, None] + squares(B)[None, :] - 2 * A @ B.T,
        3 - 0.5 * (squares(A * q)[:, None] + squares(B * q)[None, :]) + (A * q) @ (B * q).T,
        A @ B.T - squares(A)[:, None] / 2 - squares(B) / 2,
    ],
)
def test_inner_products_are_read_as_squared_differences(e: Any) -> None:
    (found,) = by_differences([tc.simplify(e)])
    assert found is not e
    rng = np.random.default_rng(0)
    data = {"A": rng.normal(size=(5, 3)), "B": rng.normal(size=(4, 3)), "q": rng.normal(size=3)}
    given = {name: data[name] for name in e.variables}
    np.testing.assert_allclose(found(**given), e(**given), rtol=1e-12, atol=1e-12)
    far = {**given, "A": 1e6 + given["A"], "B": 1e6 + given["B"]}
    if "q" not in given and not found(**given).min() < 0:
        near = ((far["A"][:, None] - far["B"]) ** 2).sum(2)
        np.testing.assert_allclose(found(**far), near, rtol=1e-12)


@pytest.mark.parametrize(
    "e",
    [
        squares(A)[:, None] + squares(B)[None, :] - A @ B.T,
        squares(A)[:, None] - squares(B)[None, :] - 2 * A @ B.T,
        squares(A)[:, None] + squares(B * q)[None, :] - 2 * A @ B.T,
    ],
)
def test_other_sums_are_no_distances(e: Any) -> None:
    e = tc.simplify(e)
    assert by_differences([e])[0] is e


# --- traces ---------------------------------------------------------------------------------------

S = tc.var("S", ("n", "n"), positive_definite=True)
F, G = tc.var("F", ("n", "n", 3)), tc.var("G", ("n", "n"))
c = tc.var("c")
P = tc.linalg.inv(S + tc.exp(c) * tc.eye("n"))
Q = tc.linalg.inv(2 * S + tc.exp(s) * tc.eye("n"))


@pytest.mark.parametrize(
    "e",
    [
        tc.einsum("ab,bcp,cd,daq->pq", P, F, P, F),
        tc.einsum("ab,bcp,cd,da->p", P, F, P, G),
        tc.einsum("ab,bd,dap->p", P, P, F),
        tc.einsum("ab,bc,cd,dap->p", P, S, P, F),
        tc.einsum("ab,bc,cd,da->", P, S, P, S),
        tc.einsum("ab,bc,ac->", Q, S, G),
        tc.einsum("ab,ab->", G, P @ (G + S - tc.einsum("a,b->ab", P @ y, y)) @ P),
    ],
)
def test_traces_with_inverses_keep_their_values(e: Any) -> None:
    e = tc.simplify(e)
    (found,) = traced([e])
    assert found is not e
    rng = np.random.default_rng(0)
    n = 5
    root = rng.normal(size=(n, n))
    data = {"S": root @ root.T + np.eye(n), "F": rng.normal(size=(n, n, 3)), "c": 0.3, "s": 0.2,
            "G": rng.normal(size=(n, n)), "y": rng.normal(size=n)}  # fmt: skip
    given = {name: data[name] for name in e.variables}
    np.testing.assert_allclose(found(**given), e(**given), rtol=1e-10, atol=1e-12)
