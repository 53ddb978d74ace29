"""Vectors of low rank: as many as their span has dimensions, however the derivative spells them."""

from __future__ import annotations

import numpy as np
import pytest

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


@pytest.mark.parametrize("n", [2, 3, 5, 6, 7, 9, 4000])
@pytest.mark.parametrize("name", ["logsumexp", "variance"])
def test_a_base_that_its_update_cancels_is_singular(name: str, n: int) -> None:
    """diag(p) - pp' and n I - 11' map ones to zero: what is left of 1 - 1 are a few roundings."""
    x = tc.var("x", "n")
    f = tc.logsumexp(x) if name == "logsumexp" else n * tc.sum(x**2) / 2 - tc.sum(x) ** 2 / 2
    p = np.random.default_rng(n).dirichlet(np.ones(n))
    held = tc.compile(tc.hessian(f, x), structured=True)(x=np.log(p))
    with pytest.raises(tc.LinAlgError, match=f"the {n} x {n} matrix is singular"):
        held.solve(np.arange(n) * 1.0)
    damped = held.todense() + 0.1 * np.eye(n)
    wanted = np.linalg.solve(damped, np.arange(n))
    np.testing.assert_allclose(held.solve(np.arange(n), damping=0.1), wanted, rtol=1e-9)


def test_what_an_update_leaves_of_one_item_is_judged_by_that_item() -> None:
    """One of two blocks is singular, though another is larger by far."""
    x, c = tc.var("x", (2, 5)), tc.var("c", (2,))
    e = tc.einsum("i,ij,ij->", c, x, x) / 2 - tc.einsum("i,ij,ik->", c, x, x) / 10
    H = tc.compile(tc.hessian(e + tc.sum(c * tc.sum(x, axis=1) ** 2) / 20, x), structured=True)
    good = H(c=np.array([1.0, 1e-9]))
    whole = good.tomatrix()
    b = np.arange(10.0).reshape(2, 5)
    np.testing.assert_allclose(good.solve(b).ravel(), np.linalg.solve(whole, b.ravel()), 1e-9)
    flat = tc.compile(tc.hessian(e, x), structured=True)(c=np.array([1.0, 1e9]))
    with pytest.raises(tc.LinAlgError, match="singular"):
        flat.solve(b)
