"""Sparse data beside more than weights of rows and columns: what their entries alone need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import tcalc as tc

M, Q, P = tc.var("M", ("n", "m")), tc.var("Q", ("n", "m")), tc.var("P", ("n", "n"))
S = tc.var("S", ("n", "n"), symmetric=True)
u, v, y, idx = tc.var("u", "n"), tc.var("v", "m"), tc.var("y", "n"), tc.var("k", "n", integer=True)
U, V = tc.var("U", ("n", "r")), tc.var("V", ("m", "r"))
apart = y[:, None] - y[None, :]

#: Of one value each, whose gradients are found too.
VALUES = {
    "a Laplacian": tc.sum(P * apart**2) / 2,
    "a symmetric Laplacian": tc.sum(S * apart**2),
    "robust differences": tc.sum(P * tc.sqrt(1 + apart**2)),
    "weights beside": tc.sum(M * Q * u[:, None]),
    "factors of what is there": tc.sum(tc.where(M != 0, (M - U @ V.T) ** 2, 0)),
    "a sampled product": tc.sum(M * tc.exp(-(U @ V.T))),
    "Poisson": tc.sum(tc.where(M > 0, M * (u[:, None] + v) - tc.log(M), 0)) - tc.sum(tc.exp(u)),
    "logarithms of sums": tc.sum(tc.log(1.5 + tc.sum(M * tc.sin(Q), axis=1))),
    "functions of entries": tc.sum(tc.abs(M) * Q) + tc.sum(tc.sin(M) ** 2 * Q),
    "and its transpose": y @ ((P + P.T) @ y) + tc.sum((2 * P - P.T) @ y),
    "a diagonal": tc.sum(y * tc.diag(P)) + tc.trace(P) ** 2,
    "a masked matrix by a vector": tc.sum(tc.sin((M * tc.cos(Q)) @ v)),
    "columns": tc.sum(tc.exp(tc.sum(M * Q, axis=0) / 9)),
    "taken elsewhere": tc.sum(P * (y[idx][:, None] + y) ** 2),
    "twice": tc.sum(M**2 * Q) + tc.sum(M * Q**2),
    "batches": tc.sum(tc.einsum("ij,ik,jk->k", M, U, V) ** 2),
    "functions of sums of rows": tc.sum(tc.tanh(tc.sum(tc.abs(P), axis=1)[:, None] * y)),
    "and of entries": tc.sum(tc.tanh(tc.sum(tc.abs(P), axis=1)[:, None] * P * y)),
    "a slice": tc.sum(tc.sin(M[1:] @ v)),
    "products of sums": tc.sum((M * (u[:, None] + v)) @ (v + 1)),
}
#: Zero where the data are zero everywhere, but not where one entry is: no case of entries.
REFUSED = {
    "of transposes": tc.sum(tc.abs(P.T) * tc.tanh(P)),
    "of all": tc.sum(tc.exp(M) * Q),
    "a difference": tc.sum((M - Q) ** 2),
    "a maximum": tc.max(M),
    "a result as large as the matrix": M * u[:, None],
}


def data(n: int, m: int, density: float, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)

    def held(rows: int, columns: int) -> Any:
        return scipy.sparse.random_array((rows, columns), density=density, rng=rng, format="csr")

    half = held(n, n)
    return {
        "M": held(n, m), "P": held(n, n), "S": (half + half.T).tocsr(),
        "Q": rng.standard_normal((n, m)), "u": rng.standard_normal(n),
        "v": rng.standard_normal(m), "y": rng.standard_normal(n), "k": rng.integers(0, n, n),
        "U": rng.standard_normal((n, 2)), "V": rng.standard_normal((m, 2)),
    }  # fmt: skip


def both(f: Callable[..., Any], e: tc.Expr, given: dict[str, Any]) -> None:
    """The same with sparse data, and with these written out."""
    used = {k: given[k] for k in e.variables}
    dense = {k: a.toarray() if scipy.sparse.issparse(a) else a for k, a in used.items()}
    np.testing.assert_allclose(f(**used), e(**dense), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("name", VALUES)
def test_values_and_gradients(name: str, backend: str) -> None:
    e = VALUES[name]
    floats = [k for k in e.variables if k not in ("M", "P", "S", "k")]
    for root in (e, *[tc.grad(e, k) for k in floats]):
        f = tc.compile(root, backend=backend)
        for n, m, density in ((7, 5, 0.4), (7, 5, 0.1), (1, 1, 1.0), (6, 3, 0.0), (7, 5, 0.4)):
            both(f, root, data(n, m, density, seed=n))


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_all_entries_is_refused(name: str) -> None:
    e = REFUSED[name]
    given = data(5, 4, 0.4)
    with pytest.raises(TypeError, match=r"is sparse, and .* would need all of its entries"):
        e(**{k: given[k] for k in e.variables})


@pytest.mark.parametrize(
    "e", [M * Q, 2 * M * Q * u[:, None], tc.grad(tc.sum(M * Q), Q), tc.abs(M) * tc.exp(Q)]
)
def test_results_beside_arrays_of_their_shape_are_arrays(e: tc.Expr) -> None:
    both(e, e, data(6, 4, 0.3))


def test_data_that_are_bound_once() -> None:
    given = data(7, 5, 0.4)
    for name in ("a Laplacian", "weights beside", "a diagonal"):
        e = VALUES[name]
        held = {k: given[k] for k in e.variables if k in ("M", "P")}
        f = tc.compile(e, data=held)
        for seed in (1, 2):
            rest = {k: a for k, a in data(7, 5, 0.4, seed).items() if k in e.variables}
            rest = {k: a for k, a in rest.items() if k not in held}
            wanted = e(**{k: a.toarray() for k, a in held.items()}, **rest)
            np.testing.assert_allclose(f(**rest), wanted, rtol=1e-12)


def test_single_precision_stays() -> None:
    given = data(7, 5, 0.4)
    e = tc.grad(VALUES["robust differences"], y)
    found = e(P=given["P"].astype(np.float32), y=given["y"].astype(np.float32))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, e(P=given["P"].toarray(), y=given["y"]), rtol=1e-4, atol=1e-5)


def test_explicit_zeros_and_entries_that_stand_twice() -> None:
    rows, columns = [0, 0, 1, 2, 2], [1, 1, 0, 2, 0]
    held = scipy.sparse.coo_array(([1.0, 2.0, 0.0, -1.0, 4.0], (rows, columns)), shape=(3, 3))
    given = {"P": held, "y": np.array([0.3, -1.0, 2.0])}
    for e in (
        VALUES["a Laplacian"],
        VALUES["a diagonal"],
        tc.grad(VALUES["robust differences"], y),
    ):
        both(e, e, given)


def test_nothing_as_large_as_the_matrix_is_made() -> None:
    """20,000 nodes: 3.2 GB, if all pairs were there."""
    n = 20_000
    rng = np.random.default_rng(1)
    graph = scipy.sparse.random_array((n, n), density=2e-4, rng=rng, format="csr")
    at = rng.standard_normal(n)
    f = tc.compile(tc.grad(VALUES["robust differences"], y), memory_limit=2**26)
    rows, columns = graph.nonzero()
    off = at[rows] - at[columns]
    slope = graph.data * off / np.sqrt(1 + off**2)
    wanted = np.bincount(rows, slope, n) - np.bincount(columns, slope, n)
    np.testing.assert_allclose(f(P=graph, y=at), wanted, rtol=1e-10, atol=1e-12)
