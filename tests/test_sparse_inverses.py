"""Inverses of sparse matrices are never dense, and their diagonals are those of dense inverses."""

from __future__ import annotations

import pickle
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import splu

import tcalc as tc
from tcalc.structured.solvers.selected import inverse_diagonal
from tcalc.structured.solvers.sparse import Sparse
from tcalc.support.namespaces import on_host
from tests.cupy_stand_in import some_device

RNG = np.random.default_rng(7)


# --- matrices -------------------------------------------------------------------------------------


def lattice(p: int, q: int) -> Any:
    a, b = (sp.diags_array([-1, 2.1, -1], offsets=[-1, 0, 1], shape=(n, n)) for n in (p, q))
    return sp.kron(a, sp.eye_array(q)) + sp.kron(sp.eye_array(p), b)


def noise(n: int, density: float) -> Any:
    return sp.random_array((n, n), density=density, rng=RNG, data_sampler=RNG.normal)


def bordered(n: int) -> Any:
    edge = sp.csr_array(RNG.normal(size=(3, n)))
    return sp.block_array([[sp.diags_array(RNG.uniform(1, 2, n)), edge.T], [edge, sp.eye_array(3)]])


def saddle(n: int, m: int) -> Any:
    return sp.block_array([[lattice(n // 10, 10), (c := noise(n, 0.05)[:m]).T], [c, None]])


def tree(n: int) -> Any:
    k = np.arange(1, n)
    links = sp.coo_array((-RNG.uniform(size=n - 1), (k, RNG.integers(0, k))), shape=(n, n))
    return links + links.T + sp.diags_array(np.full(n, 0.1) - (links + links.T).sum(axis=0))


def banded(n: int, below: int, above: int) -> Any:
    offsets = range(-below, above + 1)
    return sp.diags_array([RNG.normal(size=n - abs(k)) for k in offsets], offsets=offsets)


MATRICES: dict[str, Callable[[], Any]] = {
    "one": lambda: sp.csr_array([[-3.0]]),
    "two, exchanged": lambda: sp.csr_array([[0.0, 2], [3, 0]]),
    "diagonal": lambda: sp.diags_array(RNG.normal(size=60) + 3),
    "lattice": lambda: lattice(17, 23),
    "indefinite lattice": lambda: lattice(17, 23) - 4 * sp.diags_array(RNG.normal(size=17 * 23)),
    "cancelling": lambda: sp.csr_array([[1.0, 1, 1, 0], [1, 2, 1, 0], [1, 1, 3, 1], [0, 0, 1, 5]]),
    "tridiagonal": lambda: banded(500, 1, 1),
    "wide band": lambda: banded(300, 40, 3) + 9 * sp.eye_array(300),
    "bordered": lambda: bordered(200),
    "tree": lambda: tree(300),
    "saddle point": lambda: saddle(200, 30),
    "unsymmetric": lambda: noise(300, 0.01) + sp.diags_array(RNG.normal(size=300)),
    "without a diagonal": lambda: sp.block_array([[None, lattice(9, 9)], [lattice(9, 9).T, None]]),
    "nearly dense": lambda: noise(80, 0.3),
}


@pytest.mark.parametrize("order", ["COLAMD", "MMD_AT_PLUS_A", "NATURAL"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", MATRICES)
def test_selected_entries_are_those_of_the_inverse(name: str, dtype: Any, order: str) -> None:
    """However pivots are chosen; where none are found it says so."""
    matrix = sp.csc_array(MATRICES[name]()).astype(dtype)
    matrix.sum_duplicates()
    dense = matrix.toarray().astype(np.float64)
    found = inverse_diagonal(matrix.tocoo(), splu(matrix, order))
    wanted = np.diag(exact := np.linalg.inv(dense))
    if found is None:
        assert dtype == np.float32
        return
    assert found.dtype == dtype
    eps = 30 * float(np.finfo(dtype).eps) * np.linalg.cond(dense)
    np.testing.assert_allclose(found, wanted, eps, eps * np.abs(exact).max())


# --- tensors --------------------------------------------------------------------------------------


def compiled(f: Any, wrt: Any, data: dict[str, Any], **options: Any) -> Any:
    return tc.compile(tc.hessian(f, wrt), structured=True, **options)(data)


def chain(n: int, dtype: Any = np.float64, low: bool = False, **options: Any) -> Any:
    x = tc.var("x", "n")
    f = tc.sum((x[1:] - x[:-1]) ** 4) + tc.sum(tc.cosh(x)) + low * tc.sum(x) ** 2
    return compiled(f, x, {"x": RNG.normal(size=n).astype(dtype)}, **options)


def grid(n: int, dtype: Any = np.float64) -> Any:
    x = tc.var("x", ("p", "q"))
    f = tc.sum((x[1:] - x[:-1]) ** 4) + tc.sum((x[:, 1:] - x[:, :-1]) ** 4) + tc.sum(x**2)
    return compiled(f, x, {"x": RNG.normal(size=(n // 10, 10)).astype(dtype)})


def graph(n: int, dtype: Any = np.float64) -> Any:
    x, (i, j) = tc.var("x", "n"), (tc.var(k, "m", integer=True) for k in "ij")
    data = {"x": RNG.normal(size=n).astype(dtype), "i": np.arange(n), "j": RNG.permutation(n)}
    return compiled(tc.sum((x[i] - x[j]) ** 4) + tc.sum(x**2), x, data)


def indefinite(n: int, dtype: Any = np.float64) -> Any:
    held = graph(n, dtype)
    return held - 7.3 * tc.identity_like(held)


def unsymmetric(n: int, dtype: Any = np.float64) -> Any:
    e = tc.parse_index("g[i] = 3*sinh(x[i]) + where(i < n-2, x[i+2], 0)^2", x=("n",))
    return tc.compile(tc.jacobian(e, "x"), structured=True)(x=RNG.normal(size=n).astype(dtype))


def gathered(n: int, dtype: Any = np.float64) -> Any:
    x, i = tc.var("x", "n"), tc.var("i", "n", integer=True)
    e = tc.jacobian(tc.sinh(x[i]) + 3 * x[i] + x / 9, x)
    data = {"x": RNG.normal(size=n).astype(dtype), "i": RNG.permutation(n)}
    return tc.compile(e, structured=True)(data)


BUILDS = [chain, lambda n, dtype: chain(n, dtype, True), grid, graph, indefinite, unsymmetric,
          gathered]  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("build", BUILDS)
def test_an_inverse_by_factors_is_the_inverse(build: Any, dtype: Any) -> None:
    held = build(260, dtype)
    n, shape = 260, held.terms.layout.column_shape
    assert "sparse" in held.explain()
    matrix = held.tomatrix().astype(np.float64)
    wanted, inverse = np.linalg.inv(matrix), held.inverse()
    tol = 50 * float(np.finfo(dtype).eps) * np.linalg.cond(matrix)

    def check(found: Any, expected: Any) -> None:
        bound = tol * np.abs(wanted).max() * max(1.0, float(np.abs(matrix).max()))
        np.testing.assert_allclose(found, expected, tol, bound)

    v = RNG.normal(size=(*shape, 2)).astype(dtype)
    flat = v.reshape(n, 2)
    for found in (inverse, pickle.loads(pickle.dumps(inverse))):
        assert found.terms.is_factored
        assert found.dtype == dtype == found.diagonal().dtype == (found @ v).dtype
        assert held.nbytes / 9 < found.nbytes < n * n
        check(found.diagonal(), np.diag(wanted).reshape(shape))
        check(found.trace(), np.trace(wanted))
        check((found @ v).reshape(n, 2), wanted @ flat)
        check((found.T @ v).reshape(n, 2), wanted.T @ flat)
        assert found.slogdet() == (held.slogdet()[0], -held.logdet())
        np.testing.assert_array_equal(found.solve(v), held @ v)
        np.testing.assert_array_equal(found.inverse().todense(), held.todense())
        assert found.factor().definite == held.factor().definite
        check(found.tomatrix(), wanted)
        check(found.tosparse().toarray(), wanted)
    more = 2 * inverse.T - (held - inverse)
    check((more @ v).reshape(n, 2), (2 * wanted.T - matrix + wanted) @ flat)
    check(more.diagonal().ravel(), np.diag(3 * wanted - matrix))
    check(more.tomatrix(), 2 * wanted.T - matrix + wanted)
    check(pickle.loads(pickle.dumps(more)).tomatrix(), more.tomatrix())
    check(
        inverse.solve(v, damping=0.5).reshape(n, 2), np.linalg.solve(wanted + np.eye(n) / 2, flat)
    )
    shifted = inverse + tc.identity_like(inverse)
    assert shifted.dtype == dtype == (shifted @ v).dtype == shifted.todense().dtype
    check((shifted @ v).reshape(n, 2), (wanted + np.eye(n)) @ flat)
    inverse.diagonal()[...] = np.nan
    assert np.isfinite(inverse.diagonal()).all()


def test_where_the_pattern_fills_in_columns_are_cheaper(monkeypatch: pytest.MonkeyPatch) -> None:
    """A diagonal that is moved all over the lattice is no part of what factors tell."""
    matrix = sp.csc_array(lattice(70, 80).tocsr()[RNG.permutation(5600)])
    assert inverse_diagonal(matrix.tocoo(), splu(matrix)) is None
    monkeypatch.setattr("tcalc.structured.solvers.inverses.CHUNK", 1000)
    monkeypatch.setattr("tcalc.structured.solvers.selected.MAX_GROWTH", 0)
    for held in (graph(150), chain(150), gathered(150)):
        solver = held.factor().solver
        assert isinstance(solver, Sparse)
        assert solver._selected() is None
        wanted = np.linalg.inv(held.todense())
        np.testing.assert_allclose(held.inverse().diagonal(), np.diag(wanted), 1e-10, 1e-14)


def test_where_digits_are_lost_columns_keep_them() -> None:
    """Pivots that grow: rows of the matrix and columns of the selected inverse tell it."""
    matrix = sp.csc_array(banded(300, 40, 3))
    assert np.linalg.cond(matrix.toarray()) > 1e12
    assert inverse_diagonal(matrix.tocoo(), splu(matrix, "NATURAL")) is None


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_few_rows(n: int) -> None:
    inverse = chain(n).inverse()
    wanted = np.linalg.inv(chain(n).todense()) if n else np.zeros((0, 0))
    assert inverse.todense().shape == wanted.shape
    assert inverse.diagonal().shape == (n,)


def test_a_large_inverse_is_never_dense() -> None:
    """Whatever is asked of it takes memory in proportion to the matrix, or is refused."""
    n = 50_000
    held = chain(n, memory_limit="1GB")
    tracemalloc.start()
    inverse = held.inverse()
    spread, product = inverse.diagonal(), inverse @ np.ones(n)
    assert "by its factors" in inverse.T.explain() + inverse._repr_html_() + repr(inverse)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2000 * n
    np.testing.assert_allclose(held @ product, np.ones(n), 1e-9)
    unit = np.zeros((n, 3))
    unit[places := [0, n // 2, n - 1], range(3)] = 1
    np.testing.assert_allclose(spread[places], np.diag((inverse @ unit)[places]), 1e-10)
    for call in (
        inverse.todense, inverse.tomatrix, inverse.tosparse, inverse.blocks,
        (2 * inverse + held).todense, (inverse.T - held).tosparse,
    ):  # fmt: skip
        with pytest.raises(
            tc.MemoryLimitError, match=r"\(50000, 50000\) takes 18\.6 GiB, .* allowed"
        ):
            call()
    with pytest.raises(tc.MemoryLimitError, match=r"dense 50000 x 50000 matrix"):
        inverse.solve(product, damping=1)


def test_singular_matrices_have_no_inverse() -> None:
    for held in (0.0 * graph(80), 0.0 * chain(80)):
        for call in (held.inverse, lambda h=held: h.solve(np.ones(80))):
            with pytest.raises(tc.LinAlgError, match=r"sparse 80 x 80 matrix is singular"):
                call()


# --- several variables ----------------------------------------------------------------------------


def effects(n: int, k: int, **options: Any) -> tuple[Any, dict[str, Any]]:
    """A chain whose places have one of k levels, and another chain that nothing is coupled with."""
    x, z, u = tc.var("x", "n"), tc.var("z", "k"), tc.var("u", "n")
    level = tc.var("level", "n", integer=True)
    f = tc.sum((x[1:] - x[:-1]) ** 4) + tc.sum((x - z[level]) ** 4) + tc.sum(x**2) + tc.sum(z**2)
    f = f + tc.sum((u[1:] - u[:-1]) ** 2) + tc.sum(u**2)
    data = {"x": RNG.normal(size=n), "z": RNG.normal(size=k), "u": RNG.normal(size=n),
            "level": np.arange(n) % k}  # fmt: skip
    return compiled(f, (x, z, u), data, **options), data


def test_inverses_of_blocks_with_sparse_ones() -> None:
    held, _ = effects(90, 4)
    assert "Schur" in "".join(held.explain()) or "groups" in held.explain()
    matrix, inverse = held.todense(), held.inverse()
    wanted = np.linalg.inv(matrix)
    v = tuple(RNG.normal(size=n) for n in (90, 4, 90))
    for found in (inverse, pickle.loads(pickle.dumps(inverse))):
        np.testing.assert_allclose(np.concatenate(found.diagonal()), np.diag(wanted), 1e-9)
        np.testing.assert_allclose(np.concatenate(found @ v), wanted @ np.concatenate(v), 1e-9)
        np.testing.assert_allclose(np.concatenate(found.solve(v)), matrix @ np.concatenate(v), 1e-9)
        assert found.logdet() == pytest.approx(-np.linalg.slogdet(matrix)[1])
        assert found[0][0].terms.is_factored
        assert found[2][2].terms.is_factored
        np.testing.assert_allclose(found[0][0].diagonal(), np.diag(wanted)[:90], 1e-9)
        np.testing.assert_allclose(found[0][0].todense(), wanted[:90, :90], 1e-9, 1e-12)
        np.testing.assert_allclose(found.todense(), wanted, 1e-9, 1e-12)
        assert "products with what" in found.explain()
        assert found.nbytes < matrix.nbytes
        np.testing.assert_allclose(found.inverse().todense(), matrix)


def test_large_inverses_of_blocks_are_never_dense() -> None:
    held, _ = effects(40_000, 5, memory_limit="200MB")
    inverse = held.inverse()
    spread = inverse.diagonal()
    assert [part.shape for part in spread] == [(40_000,), (5,), (40_000,)]
    np.testing.assert_allclose(inverse[2][2].diagonal(), spread[2])
    for call in (inverse.todense, inverse[2][2].todense, inverse[0][0].todense):
        with pytest.raises(tc.MemoryLimitError, match=r"GiB, .*MiB allowed"):
            call()
    pair, _ = effects(8_000, 400, memory_limit="20MB")
    with pytest.raises(tc.MemoryLimitError):
        pair.inverse()


def test_parts_of_the_inverse_that_do_not_fit_are_refused() -> None:
    """Sparse couplings, of which the inverse makes dense blocks."""
    U, w, i, j = tc.var("U", "n"), tc.var("w", "k"), *(tc.var(s, "m", integer=True) for s in "ij")
    f = tc.sum((U[i] * w[j] - 1) ** 2) + 50 * tc.sum(U**2) + 50 * tc.sum(w**2)
    n, k, m = 30_000, 300, 60_000
    data = {"U": RNG.normal(size=n), "w": RNG.normal(size=k), "i": RNG.integers(0, n, m),
            "j": RNG.integers(0, k, m)}  # fmt: skip
    inverse = compiled(f, (U, w), data, memory_limit="50MB").inverse()
    assert inverse.diagonal()[0].shape == (n,)
    with pytest.raises(
        tc.MemoryLimitError, match=r"\(30000, 300\) takes 68\.7 MiB, 47\.7 MiB allowed"
    ):
        inverse[0][0]


@pytest.mark.gpu
def test_on_a_device_the_host_has_the_factors() -> None:
    x, i, j = tc.var("x", "n"), *(tc.var(k, "m", integer=True) for k in "ij")
    H = tc.hessian(tc.sum((x[i] - x[j]) ** 4) + tc.sum(x**2), x)
    data = {"x": RNG.normal(size=90), "i": np.arange(90), "j": RNG.permutation(90)}
    wanted = np.linalg.inv(H(data))
    with some_device():
        held = tc.compile(H, structured=True, backend="cupy")(**data)
        inverse = held.inverse()
        g = RNG.normal(size=90)
        np.testing.assert_allclose(on_host(inverse.diagonal()), np.diag(wanted), 1e-9)
        np.testing.assert_allclose(inverse @ g, wanted @ g, 1e-9, 1e-12)
        np.testing.assert_allclose(on_host((inverse + held).diagonal()),
                                   np.diag(wanted) + np.diag(H(data)), 1e-9)  # fmt: skip
        np.testing.assert_allclose(inverse.solve(g), H(data) @ g, 1e-9)
        np.testing.assert_allclose(on_host(inverse.todense()), wanted, 1e-9, 1e-12)
