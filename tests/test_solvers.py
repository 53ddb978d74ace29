"""Solving with compressed tensors: every structure against its dense matrix."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import tcalc as tc
from tcalc.structured.tensor import Structured
from tcalc.structured.terms.numeric_terms import Terms
from tcalc.structured.terms.tensor_layout import CoreProduct, TableIndex, TensorLayout

# --- any structure --------------------------------------------------------------------------------


def dense_of(terms: Terms) -> np.ndarray:
    """The dense tensor, entry by entry: an oracle that shares no code with the package."""
    layout = terms.layout
    whole = np.zeros(layout.shape)
    for term, coef in zip(layout.terms, terms.coefs, strict=True):
        for index in np.ndindex(*term.extents):
            value = coef
            for core, word in term.factors:
                value *= terms.cores[core][tuple(index[i] for i in word)]
            place = tuple(
                terms.cores[item.core][tuple(index[i] for i in item.labels)]
                if isinstance(item, TableIndex)
                else index[item]
                for item in term.out
            )
            whole[place] += value
    return whole


def pruned(term: CoreProduct) -> CoreProduct:
    """The term with labels numbered anew, those in use."""
    used = [i for _, w in term.factors for i in w]
    for item in term.out:
        used += item.labels if isinstance(item, TableIndex) else (item,)
    place = {label: k for k, label in enumerate(dict.fromkeys(used))}

    def words(word: Any) -> Any:
        return tuple(place[i] for i in word)

    out = tuple(
        TableIndex(i.core, words(i.labels)) if isinstance(i, TableIndex) else place[i]
        for i in term.out
    )
    factors = tuple((k, words(w)) for k, w in term.factors)
    return CoreProduct(factors, out, tuple(term.extents[label] for label in place))


@st.composite
def structures(draw: Any) -> Terms:
    """A square tensor of a few random terms: ties, outer and Kronecker products, tables."""
    rank = draw(st.integers(1, 3))
    shape = tuple(draw(st.lists(st.integers(0, 3), min_size=rank, max_size=rank)))
    shape = tuple(max(1, n) for n in shape) if draw(st.integers(0, 4)) else shape
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    dtype = draw(st.sampled_from([np.float64, np.float64, np.float32]))
    cores: list[np.ndarray] = []
    products = []
    for _ in range(draw(st.integers(1, 3))):
        extents = [*shape, *shape, 2, 3]
        out: list[Any] = list(range(2 * rank))
        for k in range(rank):
            way = draw(st.sampled_from(["tied", "tied", "free", "crossed", "table", "read"]))
            if way == "tied":
                out[rank + k] = out[k]
            elif way == "crossed":
                same = [j for j in range(2 * rank) if extents[j] == shape[k]]
                out[rank + k] = draw(st.sampled_from(same))
            elif way in ("table", "read") and shape[k]:
                cores.append(rng.integers(0, shape[k], 3))
                out[k] = TableIndex(len(cores) - 1, (2 * rank + 1,))
                if way == "table":
                    out[rank + k] = out[k]
        plain = [i for i in out if not isinstance(i, TableIndex)]
        labels = sorted({*plain, 2 * rank, 2 * rank + 1})
        factors = []
        for _ in range(draw(st.integers(0, 3))):
            word = tuple(draw(st.lists(st.sampled_from(labels), max_size=3, unique=True)))
            if cores and draw(st.booleans()):
                fitting = [
                    k for k, c in enumerate(cores)
                    if c.dtype.kind == "f" and c.shape == tuple(extents[i] for i in word)
                ]  # fmt: skip
                if fitting:
                    factors.append((fitting[-1], word))
                    continue
            cores.append(rng.normal(size=[extents[i] for i in word]).astype(dtype))
            factors.append((len(cores) - 1, word))
        products.append(pruned(CoreProduct(tuple(factors), tuple(out), tuple(extents))))
    coefs = rng.normal(size=len(products))
    return Terms(TensorLayout(shape + shape, rank, products), cores, coefs)


def close(found: Any, expected: Any, dtype: Any, scale: float = 1.0) -> None:
    eps = 1e-11 if dtype == np.float64 else 1e-4
    bound = eps * max(1.0, float(np.abs(expected).max(initial=0))) * scale
    np.testing.assert_allclose(found, expected, atol=bound, rtol=eps * scale)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(structures(), st.integers(0, 2))
def test_algebra_of_any_structure_is_that_of_the_dense_tensor(terms: Terms, further: int) -> None:
    held, dense = Structured(terms), dense_of(terms)
    dtype, shape = held.dtype, terms.layout.column_shape
    n = terms.layout.size
    matrix = dense.reshape(n, n)
    close(held.todense(), dense, dtype)
    assert held.todense().dtype == dtype
    close(held.T.tomatrix(), matrix.T, dtype)
    close(held.diagonal(), np.diag(matrix).reshape(shape), dtype)
    close(held.trace(), np.trace(matrix), dtype, 10)
    v = np.random.default_rng(0).normal(size=shape + (2, 3)[:further]).astype(dtype)
    product = held @ v
    assert product.dtype == dtype
    assert product.flags.writeable
    assert not np.shares_memory(product, v)
    close(product, np.tensordot(dense, v, len(shape)), dtype, 10)
    both = 2 * held - held.T / 3 + tc.identity_like(held)
    close(both.tomatrix(), 2 * matrix - matrix.T / 3 + np.eye(n), dtype, 10)
    close(held.tosparse().toarray(), matrix, dtype)
    close(held.operator() @ np.ones(n), matrix.sum(axis=1), dtype, 10)
    assert pickle.loads(pickle.dumps(held)).todense().shape == dense.shape
    assert "solve: " in held.explain()
    tied = terms.layout.tied
    inner = [k for k in range(len(shape)) if k not in tied]
    blocks = held.blocks()
    for index in np.ndindex(*shape, *(shape[k] for k in inner)):
        row = list(index[: len(shape)])
        column = list(row)
        for k, place in zip(inner, index[len(shape) :], strict=True):
            column[k] = place
        expected = dense[(*row, *column)]
        place = [row[k] for k in tied] + [row[k] for k in inner] + [column[k] for k in inner]
        close(blocks[tuple(place)], expected, dtype)


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(structures(), st.booleans(), st.integers(0, 2))
def test_solves_of_any_structure_are_those_of_the_dense_tensor(
    terms: Terms, symmetric: bool, further: int
) -> None:
    held = Structured(terms)
    if symmetric:
        held = held + held.T
    n, shape, dtype = terms.layout.size, terms.layout.column_shape, held.dtype
    damping = 5.0
    matrix = dense_of(held.terms).reshape(n, n) + damping * np.eye(n)
    condition = float(np.linalg.cond(matrix)) if n else 1.0
    assume(condition < 1e3)
    rng = np.random.default_rng(1)
    g = rng.normal(size=shape + (2, 3)[:further]).astype(dtype)
    flat = g.reshape(n, -1) if n else g.reshape(n, int(np.prod((2, 3)[:further])))
    x = held.solve(g, damping=damping)
    assert x.shape == g.shape
    assert x.dtype == dtype
    close(x, np.linalg.solve(matrix, flat).reshape(g.shape), dtype, 10 * condition)
    factor = held.factor(damping)
    close(factor.solve(g), x, dtype, condition)
    if factor.definite:
        assert np.allclose(matrix, matrix.T, 1e-4, 1e-4)
        assert not n or np.linalg.eigvalsh(matrix).min() > 0
    damped = held + damping * tc.identity_like(held)
    sign, log = np.linalg.slogdet(matrix)
    found = damped.slogdet()
    assert found[0] == sign
    close(found[1], log, dtype, 10 * condition)
    close(damped.logdet(), log, dtype, 10 * condition)
    inverse = damped.inverse()
    close(inverse.tomatrix(), np.linalg.inv(matrix), dtype, 10 * condition)
    expected = np.diag(np.linalg.inv(matrix)).reshape(shape)
    close(inverse.diagonal(), expected, dtype, 10 * condition)


# --- Hessians -------------------------------------------------------------------------------------


def spd(rng: np.random.Generator, n: int) -> np.ndarray:
    a = rng.normal(size=(n, n + 2))
    return a @ a.T + np.eye(n)


def parsed(text: str, wrt: Any, **shapes: Any) -> tuple[tc.Expr, Any]:
    return tc.parse(text, **shapes), wrt


def rows_of_softmax() -> tuple[tc.Expr, Any]:
    x = tc.var("X", ("n", "k"))
    return tc.sum(tc.logsumexp(x, axis=1)) + tc.sum(x**2), "X"


def population() -> tuple[tc.Expr, Any]:
    f = tc.parse("sum(exp(X*B)) + c*norm2(B)^2", X=("m", "n"), B=("n", "k"), c=())
    return f, "B"


def gathered() -> tuple[tc.Expr, Any]:
    x, idx = tc.var("x", ("n", "k")), tc.var("idx", ("m",), integer=True)
    return tc.sum(tc.logsumexp(x[idx], axis=1)) + tc.sum(x**4), "x"


def differences() -> tuple[tc.Expr, Any]:
    x = tc.var("x", ("n",))
    i, j = (tc.var(name, ("m",), integer=True) for name in "ij")
    return tc.sum(tc.exp(x[i] - x[j])) + tc.sum(x**4), "x"


MATRICES = {"A": ("m", "m"), "B": ("n", "n"), "X": ("m", "n"), "C": ("m", "n"), "c": ()}
WAYS: list[tuple[str, Callable[[], tuple[tc.Expr, Any]], str]] = [
    ("one block", lambda: parsed("norm2(C - X*B)^2", "X", **MATRICES), "one block for all"),
    ("blocks", lambda: parsed(
        "sum(((C - U*V') .* W).^2)", "U", C=("n", "m"), W=("n", "m"), U=("n", "k"), V=("m", "k")
    ), "blocks of 3 x 3"),
    ("softmax of rows", rows_of_softmax, "block"),
    ("diagonal", lambda: parsed("sum(x.^4)", "x", x=("n",)), "diagonal: division"),
    ("diagonal and rank one", lambda: parsed("logsumexp(x) + x'*x", "x", x=("n",)), "low rank: 1 "),
    ("two outer products", lambda: parsed(
        "sum(x.^4)/4 + sum(x)^2*(a'*x)", "x", x=("n",), a=("n",)), "low rank: 2 "),
    ("few data", lambda: parsed(
        "sum(log(1 + exp(-y .* (D*x)))) + c*x'*x", "x", D=("k", "n"), y=("k",), x=("n",), c=()
    ), "low rank: 3 "),
    ("dense", lambda: parsed("sum(exp(D*x))", "x", D=("q", "n"), x=("n",)), "dense"),
    ("blocks and rank one", lambda: parsed(
        "sum(((C - U*V') .* W).^2) + sum(U)^2", "U",
        C=("n", "m"), W=("n", "m"), U=("n", "k"), V=("m", "k"),
    ), "low rank: 1 vector on top of [block diagonal over axis 0: 6 blocks of 3 x 3"),
    ("population", population, "low rank: 4 "),
    ("Kronecker", lambda: parsed("norm2(A*X*B)^2", "X", **MATRICES), "Kronecker: "),
    ("Kronecker and identity", lambda: parsed(
        "norm2(A*X*B)^2 + c*norm2(X)^2", "X", **MATRICES), "Kronecker sum: "),
    ("Kronecker sum", lambda: parsed(
        "norm2(A*X)^2 + 3*norm2(X*B)^2", "X", **MATRICES), "Kronecker sum: "),
    ("twisted Kronecker", lambda: parsed("-logdet(B)", "B", **MATRICES), "Kronecker: "),
    ("Sylvester", lambda: parsed("norm2(A*X - X*B)^2", "X", **MATRICES), "dense"),
    ("gathered rows", gathered, "blocks of 3 x 3"),
    ("gathered differences", differences, "dense"),
]  # fmt: skip
SIZES = {"n": 6, "m": 4, "k": 3}


def bound(e: tc.Expr, rng: np.random.Generator, **sizes: int) -> dict[str, np.ndarray]:
    known = {**SIZES, **sizes}
    found = {}
    for name, v in e.variables.items():
        shape = [eval_extent(extent, known) for extent in v.shape]
        if "integer" in v.properties:
            found[name] = rng.integers(0, known["n"], shape)
        elif "positive_definite" in v.properties:
            found[name] = spd(rng, shape[0])
        else:
            found[name] = rng.uniform(0.5, 1.5, shape) * rng.choice([-1, 1], shape)
        if "symmetric" in v.properties:
            found[name] = (found[name] + found[name].T) / 2
    return found


def eval_extent(extent: Any, sizes: dict[str, int]) -> int:
    return extent if isinstance(extent, int) else sizes.get(extent, 12)


@pytest.mark.parametrize(("build", "way"), [w[1:] for w in WAYS], ids=[w[0] for w in WAYS])
@pytest.mark.parametrize("single", [False, True])
def test_hessians_solve_the_way_their_structure_allows(
    build: Callable[[], tuple[tc.Expr, Any]], way: str, single: bool
) -> None:
    f, wrt = build()
    rng = np.random.default_rng(5)
    data = bound(f, rng)
    if single:
        data = {k: v.astype(np.float32) if v.dtype == float else v for k, v in data.items()}
    H = tc.hessian(f, wrt)
    held, dense = tc.compile(H, structured=True)(**data), H(**data)
    assert way in held.explain()
    shape = held.shape[: held.ndim // 2]
    n = int(np.prod(shape))
    matrix = dense.astype(float).reshape(n, n)
    np.testing.assert_allclose(held.todense(), dense, 1e-3 if single else 1e-11, 1e-3)
    if single:
        assert held.solve(np.ones(shape)).dtype == np.float32
        return
    condition = float(np.linalg.cond(matrix))
    g = rng.normal(size=(*shape, 2))
    x = held.solve(g)
    eps = 1e-13 * condition
    solved = np.linalg.solve(matrix, g.reshape(n, 2)).reshape(g.shape)
    np.testing.assert_allclose(x, solved, eps, eps * np.abs(solved).max())
    assert "(factored)" in held.explain()
    assert way in held.explain()
    assert held.slogdet() == pytest.approx(np.linalg.slogdet(matrix), rel=1e-10, abs=1e-10)
    inverse, exact = held.inverse(), np.linalg.inv(matrix)
    np.testing.assert_allclose(inverse.tomatrix(), exact, eps, eps * np.abs(exact).max())
    np.testing.assert_allclose(
        inverse.diagonal().ravel(), np.diag(exact), eps, eps * np.abs(exact).max()
    )
    values = np.linalg.eigvalsh(matrix)
    gap = int(np.diff(values).argmax())
    for shift in (1 - values[0], -values[-1] - 1, -(values[gap] + values[gap + 1]) / 2):
        definite = bool(values[0] + shift > 0)
        assert held.factor(shift).definite == definite
    damped = held.solve(g[..., 0], damping=0.7)
    expected = np.linalg.solve(matrix + 0.7 * np.eye(n), g[..., 0].ravel())
    np.testing.assert_allclose(damped.ravel(), expected, 1e-8, 1e-8)


def test_the_inverse_keeps_structure() -> None:
    f, wrt = parsed("norm2(C - X*B)^2", "X", **MATRICES)
    held = tc.compile(tc.hessian(f, wrt), structured=True)(
        **bound(f, np.random.default_rng(0), m=100_000)
    )
    inverse = held.inverse()
    assert inverse.nbytes == held.nbytes
    assert inverse.diagonal().shape == (100_000, 6)
    np.testing.assert_allclose(inverse @ (held @ np.ones((100_000, 6))), 1, 1e-9)


@pytest.mark.parametrize("small", [0.0, 1e-17, 1e-9])
def test_a_base_that_is_nearly_singular_goes_another_way(small: float) -> None:
    x, a = tc.var("x", "n"), tc.var("a", "n")
    H = tc.hessian(tc.sum(a * x**2) / 2 + tc.exp(tc.sum(x)), x)
    data = {"x": np.linspace(-1, 1, 30), "a": np.arange(1.0, 31)}
    data["a"][4] = small
    held = tc.compile(H, structured=True)(**data)
    assert "low rank: 1 vector" in held.explain()
    dense, g = held.todense(), np.sin(np.arange(30.0))
    np.testing.assert_allclose(held.solve(g), np.linalg.solve(dense, g), 1e-6, 1e-9)
    assert held.slogdet() == pytest.approx(np.linalg.slogdet(dense))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_graphs_are_sparse_matrices(dtype: Any) -> None:
    x = tc.var("x", "n")
    i, j = (tc.var(name, "m", integer=True) for name in "ij")
    H = tc.hessian(tc.sum((x[i] - x[j]) ** 2) + tc.sum(tc.cosh(x)), x)
    rng = np.random.default_rng(2)
    n = 300
    data = {"x": rng.normal(size=n).astype(dtype), "i": np.arange(n), "j": rng.permutation(n)}
    held = tc.compile(H, structured=True)(**data)
    assert "sparse: " in held.explain()
    assert held.to_scipy().nnz <= 3 * n
    dense = held.todense().astype(float)
    g = rng.normal(size=(n, 2)).astype(dtype)
    exact = 1e-9 if dtype is np.float64 else 1e-3
    np.testing.assert_allclose(held.solve(g), np.linalg.solve(dense, g), exact, exact)
    assert held.solve(g).dtype == dtype
    assert held.slogdet() == pytest.approx(np.linalg.slogdet(dense), rel=exact)
    assert (-held + 8.0 * tc.identity_like(held)).slogdet() == pytest.approx(
        np.linalg.slogdet(8 * np.eye(n) - dense), rel=10 * exact
    )
    np.testing.assert_allclose(held.inverse().todense(), np.linalg.inv(dense), exact, exact)
    with pytest.raises(tc.LinAlgError, match=r"sparse.*singular"):
        (0.0 * held).solve(g)
