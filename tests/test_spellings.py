"""One model in several spellings: the same numbers, planned at the same cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcalc as tc
from benchmarks import spellings
from benchmarks.problems import gp
from tcalc.plan.lowering.traces import traced
from tcalc.rules.distances import by_differences

y, s = tc.var("y", "n"), tc.var("s")


@pytest.mark.parametrize("model", spellings.MODELS, ids=lambda model: model.name)
def test_all_spellings_of_a_model_cost_the_same_within_a_tenth(model: Any) -> None:
    n = {"gp": 1000, "mixture": 30_000}[model.name]
    hessians = [tc.hessian(f, wrt) for f, wrt in model.spellings().values()]
    flops = [tc.compile(hessian).plan_for(n=n).flops for hessian in hessians]
    assert max(flops) < 1.1 * min(flops)


@pytest.mark.parametrize("name", spellings.processes())
def test_hessians_of_a_gaussian_process_are_the_experts(name: str) -> None:
    f, wrt = spellings.processes()[name]
    compiled, n = tc.compile(tc.hessian(f, wrt), backend="numpy"), 150
    assert spellings.products(compiled.plan_for(n=1000), 1000) < 5.2
    data = spellings.MODELS[0].data(n)
    found = compiled(**{k: a for k, a in data.items() if k in f.variables})
    apart = spellings.processes()["gram, apart"][1]
    wanted = spellings.flat(gp.hessian(data), apart, data)
    np.testing.assert_allclose(spellings.flat(found, wrt, data), wanted, rtol=1e-9, atol=1e-9)


def test_spellings_are_checked_and_counted() -> None:
    rows = spellings.rows(100)
    assert {row["model"] for row in rows} == {"gp", "mixture"}
    assert all(row["operations"] > 0 for row in rows)


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
