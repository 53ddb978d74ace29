"""Vectors of low rank: as many as their span has dimensions, however the derivative spells them."""

from __future__ import annotations

import numpy as np

import tcalc as tc


def test_sums_of_standing_vectors_have_the_rank_of_their_span() -> None:
    """Diagonal plus rank two, though three vectors stand in the derivative (casadi #4002)."""
    w, c = tc.var("w", "n"), tc.var("c", "n")
    f = tc.sum((tc.sum(1 - tc.cos(w)) + c * (1 - tc.cos(w)) - tc.sin(w)) ** 2)
    rng = np.random.default_rng(3)
    values = {"w": rng.uniform(0.2, 1.2, 40), "c": np.arange(1.0, 41)}
    held = tc.compile(tc.hessian(f, w), structured=True)(**values)
    g = rng.standard_normal(40)
    dense = tc.hessian(f, w)(**values)
    np.testing.assert_allclose(held.solve(g), np.linalg.solve(dense, g), rtol=1e-9)
    np.testing.assert_allclose(held.todense(), dense, rtol=1e-12)
    assert "low rank: 2 vectors on top of [diagonal" in held.explain()
    assert held.nbytes == 3 * 40 * 8


def test_dependent_coefficients_are_reduced_to_their_rank() -> None:
    """(a + b)(a + b)' is spelled with four products of two vectors."""
    a, b, x = tc.var("a", "n"), tc.var("b", "n"), tc.var("x", "n")
    f = (a @ x) ** 2 / 2 + (b @ x) ** 2 / 2 + (a @ x) * (b @ x) + tc.sum(x**4)
    rng = np.random.default_rng(4)
    values = {name: rng.standard_normal(30) for name in "ab"} | {"x": rng.uniform(1, 2, 30)}
    held = tc.compile(tc.hessian(f, x), structured=True)(**values)
    g = rng.standard_normal(30)
    wanted = np.outer(values["a"] + values["b"], values["a"] + values["b"])
    wanted[np.diag_indices(30)] += 12 * values["x"] ** 2
    np.testing.assert_allclose(held.solve(g), np.linalg.solve(wanted, g), rtol=1e-9)
    assert "low rank: 1 vector on top of" in held.explain()
