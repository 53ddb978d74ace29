"""Compressed tensors on a device: where cores and results lie, and that numbers are the same."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tcalc as tc
from tcalc.structured.tensor import Structured
from tcalc.structured.terms.numeric_terms import Terms
from tcalc.support.namespaces import on_device, on_host
from tests import (
    test_solvers_several,
    test_sparse_patterns,
    test_structured,
    test_structured_blocks,
)
from tests.cupy_device import DEVICE
from tests.cupy_stand_in import has_device, some_device
from tests.test_solvers import close, dense_of, structures
from tests.test_structured import derived
from tests.test_structured_blocks import flat

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("device")]
stand_in_only = pytest.mark.skipif(has_device(), reason="counts what the stand-in is asked for")

RNG = np.random.default_rng(5)


def cupy() -> Any:
    return importlib.import_module("cupy")


def uploaded(tree: Any) -> Any:
    if isinstance(tree, tuple):
        return tuple(map(uploaded, tree))
    return cupy().asarray(tree)


def downloaded(tree: Any) -> Any:
    """As NumPy's; what lies elsewhere already is an error."""
    if isinstance(tree, tuple):
        return tuple(map(downloaded, tree))
    assert on_device(tree)
    return on_host(tree)


# --- any structure --------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(structures(), st.booleans(), st.integers(0, 2))
def test_any_structure_is_the_dense_tensor(terms: Terms, symmetric: bool, further: int) -> None:
    with some_device():
        on_there = Structured(Terms(terms.layout, list(map(uploaded, terms.cores)), terms.coefs))
        held = on_there + on_there.T if symmetric else on_there
        n, shape, dtype = terms.layout.size, terms.layout.column_shape, held.dtype
        dense = dense_of(terms)
        matrix = dense.reshape(n, n)
        matrix = matrix + matrix.T if symmetric else matrix
        close(on_host(held.tomatrix()), matrix, dtype)
        close(on_host(held.diagonal()), np.diag(matrix).reshape(shape), dtype)
        assert on_host(held.blocks()).dtype == dtype
        v = RNG.normal(size=shape + (2, 3)[:further]).astype(dtype)
        expected = (matrix @ v.reshape(n, -1 if n else int(np.prod((2, 3)[:further])))).reshape(
            v.shape
        )
        product = held @ v
        assert isinstance(product, np.ndarray | np.generic)
        close(product, expected, dtype, 10)
        close(downloaded(held @ uploaded(v)), expected, dtype, 10)
        close(held.tosparse().toarray(), matrix, dtype)
        damped, damping = matrix + 5 * np.eye(n), 5.0
        condition = float(np.linalg.cond(damped)) if n else 1.0
        if condition < 1e3:
            _check_solves(held, damped, damping, v, condition)


def _check_solves(
    held: Structured, damped: np.ndarray, damping: float, v: np.ndarray, condition: float
) -> None:
    n, dtype = len(damped), held.dtype
    scale = 10 * condition
    columns = v.reshape(n, -1) if n else v.reshape(0, 1 if v.size else 0)
    expected = np.linalg.solve(damped, columns).reshape(v.shape) if v.size else v
    found = held.solve(v, damping=damping)
    assert isinstance(found, np.ndarray | np.generic)
    close(found, expected, dtype, scale)
    close(downloaded(held.solve(uploaded(v), damping=damping)), expected, dtype, scale)
    if held.factor(damping).definite:
        assert not n or np.linalg.eigvalsh(damped).min() > 0
    both = held + damping * tc.identity_like(held)
    sign, log = np.linalg.slogdet(damped)
    assert both.slogdet()[0] == sign
    close(both.logdet(), log, dtype, scale)
    inverse = both.inverse()
    close(on_host(inverse.tomatrix()), np.linalg.inv(damped), dtype, scale)
    diagonal = np.diag(np.linalg.inv(damped)).reshape(v.shape[: len(inverse.shape) // 2])
    close(on_host(inverse.diagonal()), diagonal, dtype, scale)


# --- the tables -----------------------------------------------------------------------------------


@pytest.mark.parametrize("case", test_structured.CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_compressed_derivatives(case: test_structured.Case, dtype: Any) -> None:
    e, D = derived(case)
    data = test_structured.data_for(e, D, dtype=dtype)
    tolerance = 1e-12 if dtype is np.float64 else 1e-5
    wanted = tc.compile(D, structured=True)(**data)
    held = tc.compile(D, structured=True, backend="cupy")(**data)
    assert all(map(on_device, held.cores))
    assert held.nbytes == wanted.nbytes
    np.testing.assert_allclose(on_host(held.todense()), wanted.todense(), tolerance, tolerance)
    v = RNG.normal(size=(*wanted.terms.layout.column_shape, 2)).astype(dtype)
    expected = wanted @ v
    np.testing.assert_allclose(held @ v, expected, 20 * tolerance, 20 * tolerance)


@pytest.mark.parametrize(("kind", "text", "way"), test_structured_blocks.SUBSPACES)
def test_variables_with_properties(kind: str, text: str, way: str) -> None:
    n = test_structured_blocks.N
    S = tc.var("S", ("n", "n"), **{kind: True})
    H = tc.hessian(tc.parse(text, S=S, x=("n",), B=("n", "n")), S)
    point = test_structured_blocks.spd()
    point = {"lower": np.tril, "upper": np.triu}.get(kind, lambda a: a)(point)
    point = np.diag(np.diag(point)) if kind == "diagonal" else (
        point if kind in ("lower", "upper") else (point + point.T) / 2
    )  # fmt: skip
    data = {"S": point, "x": RNG.normal(size=n), "B": test_structured_blocks.spd()}
    data = {k: data[k] for k in H.variables}
    wanted = tc.compile(H, structured=True)(data)
    held = tc.compile(H, structured=True, backend="cupy")(data)
    g = RNG.normal(size=(n, n, 2))
    np.testing.assert_allclose(held @ g, wanted @ g, 1e-9, 1e-9)
    np.testing.assert_allclose(held.solve(g), wanted.solve(g), 1e-8, 1e-8)
    assert way in held.explain()
    assert held.slogdet() == pytest.approx(wanted.slogdet(), rel=1e-9)
    pairs = [(held.inverse(), wanted.inverse()), (held, wanted)]
    for found, other in pairs:
        np.testing.assert_allclose(downloaded(found.todense()), other.todense(), 1e-8, 1e-8)
        np.testing.assert_allclose(downloaded(found.diagonal()), other.diagonal(), 1e-8, 1e-8)


@pytest.mark.parametrize(
    ("build", "way"),
    test_solvers_several.CASES,
    ids=[c[0].__name__ for c in test_solvers_several.CASES],
)
def test_several_variables(build: Callable[[], test_solvers_several.Problem], way: str) -> None:
    f, data, names = build()
    H = tc.hessian(f, tuple(names))
    wanted = tc.compile(H, structured=True)(data)
    held = tc.compile(H, structured=True, backend="cupy")(data)
    assert all(map(on_device, held.cores))
    g = tuple(RNG.normal(size=(*np.shape(data[name]), 2)) for name in names)
    for apply in (lambda h, v: h @ v, lambda h, v: h.solve(v), lambda h, v: h.inverse() @ v):
        expected = flat(apply(wanted, g))
        np.testing.assert_allclose(flat(apply(held, g)), expected, 1e-8, 1e-8)
        there = downloaded(apply(held, uploaded(g)))
        np.testing.assert_allclose(flat(there), expected, 1e-8, 1e-8)
    assert way in held.explain()
    assert held.slogdet() == pytest.approx(wanted.slogdet(), rel=1e-9)
    assert held.factor(0.5).definite == wanted.factor(0.5).definite
    for found, other in ((held, wanted), (held.inverse(), wanted.inverse())):
        np.testing.assert_allclose(flat(downloaded(found.diagonal())), flat(other.diagonal()), 1e-8)
        np.testing.assert_allclose(downloaded(found.todense()), other.todense(), 1e-8, 1e-8)


@pytest.mark.parametrize("name", test_sparse_patterns.MODELS)
def test_jacobians_over_several_variables(name: str) -> None:
    model = test_sparse_patterns.MODELS[name]
    step = test_sparse_patterns.compiled(model, backend="cupy")
    for seed in range(2):
        data = test_sparse_patterns.drawn(seed)
        found, wanted = step(data), test_sparse_patterns.slopes(model, data)
        assert all(map(on_device, found.cores))
        near = {"rtol": 1e-12, "atol": 1e-12}
        np.testing.assert_allclose(downloaded(found.todense()), wanted, **near)
        columns = wanted.shape[1]
        np.testing.assert_allclose(found.to_scipy() @ np.eye(columns), wanted, **near)


# --- what the host does, what is waited for, errors -----------------------------------------------

x, X, y, w = tc.var("x", "n"), tc.var("X", ("m", "n")), tc.var("y", "m"), tc.var("w", "n")
LOGISTIC = tc.sum(tc.softplus(-y * (X @ w))) + tc.sum(w * w) / 2


def test_sparse_matrices_are_factored_by_the_host_and_that_is_told() -> None:
    n = 300
    f = tc.sum((x[1:] - x[:-1]) ** 4) + tc.sum(x**2) + x[0] ** 2 * x[-1] ** 2
    i, j = tc.var("i", "k", integer=True), tc.var("j", "k", integer=True)
    f = f + tc.sum(tc.cosh(x[i] - x[j]))
    data = {"x": RNG.normal(size=n), "i": RNG.integers(0, n, 40), "j": RNG.integers(0, n, 40)}
    wanted = tc.compile(tc.hessian(f, x), structured=True)(data)
    held = tc.compile(tc.hessian(f, x), structured=True, backend="cupy")(data)
    assert "by the host" in held.explain()
    np.testing.assert_allclose(held.solve(data["x"]), wanted.solve(data["x"]), 1e-9)
    assert "by the host" in held.explain()
    there = downloaded(held.solve(uploaded(data["x"])))
    np.testing.assert_allclose(there, wanted.solve(data["x"]), 1e-9)
    assert held.logdet() == pytest.approx(wanted.logdet())


def test_matrices_without_an_inverse_are_refused_as_on_the_host() -> None:
    A = tc.var("A", ("n", "n"))
    D, G = tc.hessian(x @ A @ x, x), tc.jacobian(A @ x, x)
    for e, a in ((D, np.ones((3, 3))), (G, np.arange(9.0).reshape(3, 3)), (G, np.zeros((3, 3)))):
        for backend in ("numpy", "cupy"):
            given = {k: v for k, v in {"A": a, "x": np.ones(3)}.items() if k in e.variables}
            held = tc.compile(e, structured=True, backend=backend)(given)
            with pytest.raises(tc.LinAlgError, match="singular"):
                held.solve(np.ones(3))
    held = tc.compile(tc.hessian(tc.sum(x**4), x), structured=True, backend="cupy")(x=np.zeros(2))
    with pytest.raises(tc.LinAlgError, match=r"the diagonal has an entry 0 at \(0,\)"):
        held.solve(np.ones(2))


def test_definite_matrices_are_told_from_nearly_singular_ones() -> None:
    """By the pivots of each one, whatever the scale of others in the batch is."""
    A, X = tc.var("A", ("k", "n", "n")), tc.var("X", ("k", "n"))
    H = tc.hessian(tc.einsum("ka,kab,kb", X, A, X) / 2, X)
    tiny = np.finfo(float).eps
    nearly = np.array([[1.0, 1.0], [1.0, 1.0 + tiny]])
    good = np.array([[2.0, 1.0], [1.0, 3.0]])
    for backend in ("numpy", "cupy"):
        step = tc.compile(H, structured=True, backend=backend)
        held = step(A=np.stack([good, 1e-9 * good, 1e9 * good]))
        assert held.factor().definite
        sign, log = held.slogdet()
        assert sign == 1
        assert float(log) == pytest.approx(3 * np.log(5), rel=1e-12)  # of 5, 5e-18 and 5e18
        found = held.solve(np.ones((3, 2)))
        wanted = np.linalg.solve(good, np.ones(2)) * np.array([[1.0], [1e9], [1e-9]])
        np.testing.assert_allclose(found, wanted, 1e-12)
        for bad in ([good, nearly, good], [nearly]):
            with pytest.raises(tc.LinAlgError, match="singular"):
                step(A=np.stack(bad)).solve(np.ones((len(bad), 2)))
    alone = tc.hessian(x @ tc.var("B", ("n", "n")) @ x / 2, x)
    for backend in ("numpy", "cupy"):
        held = tc.compile(alone, structured=True, backend=backend)(B=nearly)
        with pytest.raises(tc.LinAlgError, match="singular"):
            held.solve(np.ones(2))


@stand_in_only
def test_products_wait_for_nothing_and_nothing_is_uploaded() -> None:
    data = {"X": RNG.normal(size=(8, 3)), "y": np.sign(RNG.normal(size=8)), "w": RNG.normal(size=3)}
    H = tc.compile(tc.hessian(LOGISTIC, w), structured=True, backend="cupy", data=data)()
    v = uploaded(data["w"])
    before = DEVICE.waits
    DEVICE.uploads.clear()
    for _ in range(3):
        v = H @ v
    H.diagonal(), H.todense(), H.inverse
    assert (DEVICE.waits, DEVICE.uploads) == (before, [])
    H.solve(v)
    before = DEVICE.waits
    H.solve(v)
    assert DEVICE.waits == before


@stand_in_only
def test_dense_arrays_are_within_the_devices_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    H = tc.compile(tc.hessian(tc.logsumexp(x), x), structured=True, backend="cupy")
    monkeypatch.setattr(cupy().cuda.runtime, "memGetInfo", lambda: (1 << 16, 1 << 31))
    pool = SimpleNamespace(free_bytes=lambda: 0)
    monkeypatch.setattr(cupy(), "get_default_memory_pool", lambda: pool)
    H(x=np.zeros(80)).todense()
    with pytest.raises(tc.MemoryLimitError, match="64 KiB allowed"):
        H(x=np.zeros(120)).todense()


def test_newton_solves_on_the_device() -> None:
    rng = np.random.default_rng(2)
    data = {"X": rng.normal(size=(40, 3)), "y": np.sign(rng.normal(size=40))}
    start = {"w": np.zeros(3)}
    wanted = tc.newton(LOGISTIC, start, data=data)
    for held in (data, {k: uploaded(a) for k, a in data.items()}):
        found = tc.newton(LOGISTIC, start, data=held, backend="cupy")
        assert found.success
        np.testing.assert_allclose(found.x["w"], wanted.x["w"], rtol=1e-9)
        assert all(map(on_device, found.hess.cores))
        spread = downloaded(found.hess.inverse().diagonal())
        np.testing.assert_allclose(spread, wanted.hess.inverse().diagonal(), rtol=1e-6)
