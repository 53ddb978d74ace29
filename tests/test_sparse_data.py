"""Sparse matrices as data: the same numbers as written out, and never written out."""

from __future__ import annotations

import pickle
import tracemalloc
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import tcalc as tc
from tcalc.plan.kinds.sparse import TAKING_SPARSE
from tcalc.plan.lowering.make import make_plan

X, Y = tc.var("X", ("m", "n")), tc.var("Y", ("m", "k"))
w, y, W = tc.var("w", "n"), tc.var("y", "m"), tc.var("W", ("n", "k"))
T = tc.var("T", ("m", "n"))
RNG = np.random.default_rng(0)
M, N, K = 7, 5, 3
LOSS = tc.sum(tc.softplus(-y * (X @ w))) + w @ w
L = tc.var("L", ("m", "k"))
SOFTMAX = tc.sum(tc.logsumexp(X @ W, axis=1)) - tc.sum((X @ W) * L)
DENSE: dict[str, Any] = {
    "X": np.where(RNG.random((M, N)) < 0.4, RNG.normal(size=(M, N)), 0),
    "Y": np.where(RNG.random((M, K)) < 0.5, RNG.normal(size=(M, K)), 0),
    "w": RNG.normal(size=N), "y": np.sign(RNG.normal(size=M)), "W": RNG.normal(size=(N, K)),
    "T": RNG.normal(size=(M, N)), "L": RNG.normal(size=(M, K)),
}  # fmt: skip
EXPRESSIONS = {
    "product": X @ w,
    "turned product": X.T @ y,
    "several columns": X @ W,
    "three axes": tc.einsum("ij,jkl->kil", X, tc.einsum("jk,l->jkl", W, y)),
    "loss": LOSS,
    "gradient": tc.grad(LOSS, w),
    "Hessian": tc.hessian(LOSS, w),
    "third derivative along": tc.hvp(tc.hvp(LOSS, w, w) @ w, w, w),
    "product with the Hessian": tc.hvp(LOSS, w, w),
    "softmax regression": SOFTMAX,
    "its gradient": tc.grad(SOFTMAX, W),
    "its Hessian along": tc.hvp(SOFTMAX, W, W),
    "normal equations": X.T @ X,
    "weighted": tc.einsum("ij,i,ik->jk", X, y, X),
    "other way round": X @ X.T,
    "weighted other way round": tc.einsum("ij,j,kj->ik", X, w, X),
    "two sparse": X.T @ Y,
    "chain": X @ (X.T @ y) * 3,
    "row sums": tc.sum(X, axis=1),
    "column sums": tc.sum(X, axis=0),
    "total": tc.sum(X),
    "mean": tc.mean(X) * w,
    "bilinear": y @ X @ w,
    "with an array": tc.sum(X * T),
    "squares": tc.sum(X * X),
    "norm": tc.trace(X.T @ X),
    "scaled": (2 * X) @ w - X @ (3 * w),
    "by the vector": tc.grad(tc.sum(tc.tanh(X @ w) * y), y),
}
FORMATS = ["csr", "csc", "coo"]


def sparse(data: dict[str, Any], form: str = "csr", dtype: Any = np.float64) -> dict[str, Any]:
    """The data with X and Y sparse."""
    found = {name: np.asarray(a, dtype) for name, a in data.items()}
    return found | {k: scipy.sparse.csr_array(found[k]).asformat(form) for k in "XY"}


@pytest.mark.parametrize("backend", ["numpy", "c", "functional", "cupy"])
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_values_are_those_of_the_matrix_written_out(name: str, backend: str) -> None:
    step = tc.compile(EXPRESSIONS[name], backend=backend)
    wanted = step(DENSE)
    for form in FORMATS:
        np.testing.assert_allclose(step(sparse(DENSE, form)), wanted, rtol=1e-12, atol=1e-13)
    found = step(sparse(DENSE, dtype=np.float32))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def empty(shape: tuple[int, int]) -> dict[str, np.ndarray]:
    """Data whose matrices have no entries that are not zero."""
    m, n = shape
    data = DENSE | {"X": np.zeros(shape), "Y": np.zeros((m, K)), "w": np.ones(n), "y": np.ones(m)}
    return data | {"W": np.ones((n, K)), "T": np.zeros(shape)}


@pytest.mark.parametrize("shape", [(0, 5), (7, 0), (1, 1)])
@pytest.mark.parametrize("name", ["gradient", "Hessian", "two sparse", "row sums", "total"])
def test_empty_matrices(name: str, shape: tuple[int, int]) -> None:
    data = empty(shape)
    wanted = EXPRESSIONS[name](data)
    np.testing.assert_allclose(EXPRESSIONS[name](sparse(data)), wanted)


def test_matrices_and_arrays_duplicates_and_bound_data() -> None:
    e = tc.grad(LOSS, w)
    wanted = e(DENSE)
    old = scipy.sparse.csr_matrix(DENSE["X"])
    np.testing.assert_allclose(e(DENSE | {"X": old}), wanted, rtol=1e-12)
    twice = scipy.sparse.coo_array(DENSE["X"])
    row, column = np.tile(twice.row, 2), np.tile(twice.col, 2)
    halves = np.tile(twice.data / 2, 2)
    doubled = scipy.sparse.coo_array((halves, (row, column)), shape=(M, N))
    np.testing.assert_allclose(e(DENSE | {"X": doubled}), wanted, rtol=1e-12)
    bound = tc.compile(e, data={"X": old})
    rest = {name: DENSE[name] for name in ("w", "y")}
    np.testing.assert_allclose(bound(rest), wanted, rtol=1e-12)
    old.data[:] = 0
    np.testing.assert_allclose(bound(rest), wanted, rtol=1e-12)
    np.testing.assert_allclose(pickle.loads(pickle.dumps(bound))(rest), wanted, rtol=1e-12)


@pytest.mark.parametrize("shape", [(60, 8), (8, 60)])
def test_structured_solves(shape: tuple[int, int]) -> None:
    m, n = shape
    held = scipy.sparse.random_array(shape, density=0.2, rng=RNG)
    data = {"X": held, "y": np.sign(RNG.normal(size=m)), "w": RNG.normal(size=n)}
    hess = tc.hessian(LOSS, w)
    wanted = hess(data | {"X": held.toarray()})
    found = tc.compile(hess, structured=True)(**data)
    right = RNG.normal(size=n)
    np.testing.assert_allclose(found.solve(right), np.linalg.solve(wanted, right), rtol=1e-9)
    np.testing.assert_allclose(found @ right, wanted @ right, rtol=1e-11)
    np.testing.assert_allclose(found.diagonal(), np.diagonal(wanted), rtol=1e-11)


def test_newton_and_flat_objectives() -> None:
    data = sparse(DENSE)
    given = {"X": data["X"], "y": DENSE["y"]}
    found = tc.newton(LOSS, {"w": np.zeros(N)}, data=given)
    wanted = tc.newton(LOSS, {"w": np.zeros(N)}, data={"X": DENSE["X"], "y": DENSE["y"]})
    np.testing.assert_allclose(found.x["w"], wanted.x["w"], atol=1e-8)
    flat = tc.scipy_functions(LOSS, "w", data=given)
    np.testing.assert_allclose(flat.hess(DENSE["w"]), tc.hessian(LOSS, w)(DENSE), rtol=1e-11)


def test_memory_is_that_of_the_entries() -> None:
    """A matrix of 3.2 GB written out takes part in value, gradient and Hessian products."""
    m, n = 20_000, 20_000
    held = scipy.sparse.random_array((m, n), density=1e-4, rng=RNG).tocsr()
    data = {"X": held, "y": np.ones(m), "w": np.zeros(n)}
    step = tc.compile((LOSS, tc.grad(LOSS, w), tc.hvp(LOSS, w, w)), memory_limit="20MB")
    step(data)
    tracemalloc.start()
    step(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 60 * (m + n) * 8 / 10


def test_steps_take_sparse_matrices() -> None:
    """Products with a sparse matrix are those kinds of steps, and count its entries."""
    counts = scipy.sparse.eye_array(1000, format="csr")
    step = tc.compile(tc.grad(LOSS, w))
    step(X=counts, y=np.ones(1000), w=np.ones(1000))
    engine = step._engine
    sizes, entries = {"m": 1000, "n": 1000}, {"X": counts.nnz}
    plan = make_plan([tc.grad(LOSS, w).inner], sizes, sparse=entries)
    assert {s.kind for s in plan.steps} & TAKING_SPARSE
    assert plan.flops < 100 * 1000
    assert len(engine.programs) == 1
    step(X=scipy.sparse.eye_array(1000, k=1, format="csr"), y=np.ones(1000), w=np.ones(1000))
    assert len(engine.programs) == 1  # about as many entries


@pytest.mark.parametrize(
    ("e", "word"),
    [
        (tc.exp(X), "exp"), (X + 1, "shift"), (X * X, "product"), (X - T, "subtract"),
        (tc.sum((X - T) ** 2), "X"), (X, "copy"), (tc.max(X), "max"),
        (tc.linalg.norm(X, 2), "svd"),
    ],
    ids=str,
)  # fmt: skip
def test_what_would_write_it_out_is_refused(e: tc.Expr, word: str) -> None:
    with pytest.raises(TypeError, match="X is sparse") as caught:
        e(sparse(DENSE))
    assert word in str(caught.value)


def test_wrong_data_are_refused() -> None:
    square = scipy.sparse.csr_array(np.eye(3))
    for v in (
        tc.var("S", ("n", "n"), positive_definite=True),
        tc.var("S", ("n", "n"), integer=True),
        tc.var("S", ("n", "n", "k")),
    ):
        with pytest.raises(TypeError, match="S is declared"):
            tc.sum(v)(S=square, k=1)
    with pytest.raises(TypeError, match="dtype complex"):
        (X @ w)(X=scipy.sparse.csr_array(np.eye(3) * 1j), w=np.ones(3))
    with pytest.raises(tc.ShapeError, match="n"):
        (X @ w)(X=square, w=np.ones(4))
