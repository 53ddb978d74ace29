"""Products of which one half is wanted, in C: each half of its own, with and without triangles."""

from __future__ import annotations

import numpy as np
import pytest

import tcalc as tc

N = 130
A, B = tc.var("A", ("n", "n")), tc.var("B", ("n", "n"))
S = tc.var("S", ("n", "n"), positive_definite=True)
factor = tc.linalg.cholesky(S)
RNG = np.random.default_rng(3)
ROOT = RNG.standard_normal((N, N))
DATA = {"A": ROOT + 1, "B": RNG.standard_normal((N, N)), "S": ROOT @ ROOT.T / N + np.eye(N)}
L = np.linalg.cholesky(DATA["S"])
#: Products, and what they are.
PRODUCTS = {
    "of any matrices": (A @ B, DATA["A"] @ DATA["B"]),
    "from a triangle": (factor @ B, L @ DATA["B"]),
    "from its transpose": (factor.T @ B, L.T @ DATA["B"]),
    "by a triangle": (A @ factor, DATA["A"] @ L),
    "by its transpose": (A @ factor.T, DATA["A"] @ L.T),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("side", ["lower", "upper"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_halves(name: str, side: str, threads: int) -> None:
    product, wanted = PRODUCTS[name]
    triangle, mask = (factor, L) if side == "lower" else (factor.T, L.T)
    root = triangle * product + 1.0
    f = tc.compile(root, backend="c", threads=threads)
    plan = f.plan_for(**dict.fromkeys(root.variables, (N, N)))
    halves = {step.params[0] for step in plan.steps if step.kind == "dot" and step.params}
    assert halves & {"lower", "upper"}  # of the product, or of its transpose
    found = f(**{k: DATA[k] for k in root.variables})
    np.testing.assert_allclose(found, mask * wanted + 1, rtol=1e-10, atol=1e-10)
