"""Compressed Hessians of sparse data hold entries: they are solved with as sparse matrices are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import tcalc as tc

RNG = np.random.default_rng(7)
z, y, w = tc.var("z", "n"), tc.var("y", "n"), tc.var("w", "n")
S = tc.var("S", ("n", "n"), symmetric=True)
D, P, v, lam = tc.var("D", ("k", "n")), tc.var("P", ("n", "n")), tc.var("v", "k"), tc.var("lam")


def differences(k: int, n: int) -> Any:
    """Second differences; below them rows of the identity where there are more rows."""
    found = scipy.sparse.diags([1.0, -2.0, 1.0], [0, 1, 2], shape=(min(k, n), n))
    return scipy.sparse.vstack([found, scipy.sparse.eye(n).tocsr()[: max(0, k - n)]]).tocsr()


OBJECTIVES = {
    "smoother": tc.sum(w * (y - z) ** 2) + lam * tc.sum((D @ z) ** 2),
    "weighted differences": tc.sum(w * (y - z) ** 2) + lam * tc.sum(v * (D @ z) ** 2),
    "counts": tc.sum(tc.exp(z) - w * z) + lam * tc.sum((D @ z) ** 2),
    "curved differences": tc.sum(w * z**2) + lam * tc.sum(tc.softplus(D @ z)),
    "a penalty": tc.sum(w * (y - z) ** 2) + lam * (z @ P @ z),
    "three times a penalty": tc.sum(w * (y - z) ** 2) + 3 * (z @ P @ z) / 2,
    "a symmetric penalty": tc.sum(w * (y - z) ** 2) + 3 * (z @ S @ z),
    "a symmetric penalty alone": z @ S @ z + tc.sum(z**2) / 8,
    "both": tc.sum(w * z**2) + z @ P @ z + lam * tc.sum((D @ z) ** 2),
    "a penalty of counts": tc.sum(tc.exp(z) - w * z) + lam * (z @ P @ z),
}


@pytest.mark.parametrize("n", [120, 3])
@pytest.mark.parametrize("rows", [-2, 0, 40])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_tensors_are_those_of_the_matrix_written_out(name: str, rows: int, n: int) -> None:
    f = OBJECTIVES[name]
    d = differences(max(1, n + rows), n)
    given = {
        "D": d, "P": (d.T @ d).tocsr(), "S": (d.T @ d).tocsr(), "lam": 0.7,
        "v": RNG.uniform(1, 2, d.shape[0]),
        "y": RNG.normal(size=n), "w": RNG.uniform(1, 2, n), "z": RNG.normal(size=n),
    }  # fmt: skip
    given = {key: value for key, value in given.items() if key in f.variables}
    written = {k: a.toarray() if scipy.sparse.issparse(a) else a for k, a in given.items()}
    wanted = tc.hessian(f, z)(**written)
    found = tc.compile(tc.hessian(f, z), structured=True)(**given)
    b = RNG.normal(size=n)
    np.testing.assert_allclose(found.todense(), wanted, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found @ b, wanted @ b, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found.solve(b), np.linalg.solve(wanted, b), rtol=1e-8)
    np.testing.assert_allclose(found.logdet(), np.linalg.slogdet(wanted)[1], rtol=1e-9)
    np.testing.assert_allclose(found.diagonal(), np.diag(wanted), rtol=1e-12)
    inverse = np.diag(np.linalg.inv(wanted))
    np.testing.assert_allclose(found.inverse().diagonal(), inverse, rtol=1e-8)
    if n > 100:
        assert "2 axes by tables" in found.explain()


def test_bound_data_and_memory_limits() -> None:
    n = 5000
    d, ones = differences(n, n), np.ones(n)
    f = OBJECTIVES["smoother"]
    bound = tc.compile(tc.hessian(f, z), structured=True, data={"D": d}, memory_limit="20 MB")
    found = bound(w=ones, lam=100.0, y=ones, z=ones)
    assert found.nbytes < 40 * n * 8
    x = found.solve(ones)
    np.testing.assert_allclose(2 * (x + 100 * d.T @ (d @ x)), ones, rtol=1e-9)


def test_newton_smooths_a_long_series() -> None:
    n = 20_000
    d, t = differences(n - 2, n), np.linspace(0, 20, n)
    data = {"D": d, "w": np.ones(n), "lam": 100.0, "y": np.sin(t)}
    found = tc.newton(OBJECTIVES["smoother"], {"z": np.zeros(n)}, data=data)
    assert found.success
    from scipy.sparse.linalg import spsolve

    wanted = spsolve((scipy.sparse.eye(n) + 100 * d.T @ d).tocsc(), np.sin(t))
    np.testing.assert_allclose(found.x["z"], wanted, atol=1e-9)


def test_products_that_are_full_are_arrays() -> None:
    counts = scipy.sparse.random_array((2000, 30), density=0.1, rng=RNG).tocsr()
    X, b, s = tc.var("X", ("m", "p")), tc.var("b", "p"), tc.var("s", "m")
    f = tc.sum(tc.softplus(-s * (X @ b))) + b @ b / 2
    given = {"s": np.sign(RNG.normal(size=2000)), "b": np.zeros(30)}
    found = tc.compile(tc.hessian(f, b), structured=True)(X=counts, **given)
    wanted = tc.hessian(f, b)(X=counts.toarray(), **given)
    assert "dense: one 30 x 30 matrix" in found.explain()
    np.testing.assert_allclose(found.todense(), wanted, rtol=1e-12)


def test_few_rows_of_many_entries_stay_vectors() -> None:
    rows = scipy.sparse.random_array((3, 400), density=0.9, rng=RNG).tocsr()
    found = tc.compile(tc.hessian(OBJECTIVES["smoother"], z), structured=True)(
        D=rows, w=np.ones(400), lam=2.0, y=np.ones(400), z=np.ones(400)
    )
    assert "low rank: 3 vectors" in found.explain()
    wanted = 2 * np.eye(400) + 4 * (rows.T @ rows).toarray()
    np.testing.assert_allclose(found.todense(), wanted, rtol=1e-12)


def test_symmetric_data_are_checked() -> None:
    d = differences(5, 5)
    f = tc.compile(z @ S @ z)
    np.testing.assert_allclose(f(S=d.T @ d, z=np.arange(5.0)), ((d @ np.arange(5.0)) ** 2).sum())
    for wrong in (d, differences(5, 5)[:4]):
        with pytest.raises((tc.DeclarationError, tc.ShapeError)):
            f(S=wrong, z=np.arange(5.0))
    positive = tc.var("Q", ("n", "n"), positive_definite=True)
    with pytest.raises(TypeError, match=r"or symmetric: pass \.toarray"):
        (z @ positive @ z)(Q=(d.T @ d).tocsr(), z=np.ones(5))


def test_many_pairs_of_entries_are_counted() -> None:
    """A row of 70,000 entries has more pairs of these than integers of 32 bits count."""
    n = 70_000
    row = scipy.sparse.csr_array(np.ones((1, n)))
    given = {"w": np.ones(n), "lam": 2.0, "y": np.ones(n), "z": np.ones(n)}
    found = tc.compile(tc.hessian(OBJECTIVES["smoother"], z), structured=True)(D=row, **given)
    assert "low rank: 1 vector" in found.explain()
    np.testing.assert_allclose(found @ np.ones(n), 2 + 4 * n, rtol=1e-12)
