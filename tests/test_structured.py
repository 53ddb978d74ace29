"""Compressed derivatives: which cores are held, and that they are the dense tensor."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import tcalc as tc
from tcalc.structured.tensor import Structured
from tcalc.structured.terms.array_contraction import Contraction

N, M, K = 4, 3, 2
SIZES = {"n": N, "m": M, "k": K}


class Case(NamedTuple):
    """An expression, with respect to what, of which order, and the shapes of the cores."""

    name: str
    build: Callable[[], tuple[Any, Any]]
    order: int
    cores: list[tuple[Any, ...]]


def factorisation(weighted: bool) -> tuple[Any, Any]:
    text = "sum(((T - U*V') .* W).^2)" if weighted else "norm2(T - U*V')^2"
    shapes = {"T": ("n", "m"), "W": ("n", "m"), "U": ("n", "k"), "V": ("m", "k")}
    return tc.parse(text, **shapes), "U"


def vector(text: str) -> Callable[[], tuple[Any, Any]]:
    return lambda: (tc.parse(text, x=("n",), A=("n", "n"), X=("m", "n")), "x")


def matrix(text: str, **properties: bool) -> Callable[[], tuple[Any, Any]]:
    S = tc.var("S", ("n", "n"), **properties)
    return lambda: (tc.parse(text, S=S, x=("n",), B=("n", "n")), S)


CASES = [
    Case("factorisation", lambda: factorisation(False), 2, [("k", "k")]),
    Case("weighted factorisation", lambda: factorisation(True), 2, [("n", "k", "k")]),
    Case("separable", vector("sum(x.^4)"), 2, [("n",)]),
    Case("separable, third order", vector("sum(exp(x))"), 3, [("n",)]),
    Case("diagonal and rank one", vector("logsumexp(x)"), 2, [("n",)]),
    Case("identity", vector("x'*x/2"), 2, [()]),
    Case("dense", vector("x'*A*x"), 2, [("n", "n")]),
    Case("zero", vector("sum(x)"), 2, []),
    Case("quartic", vector("(x'*x)^2"), 2, [(), ("n",)]),
    Case("Jacobian", vector("X*x"), 1, [("m", "n")]),
    Case("gradient", vector("x'*A*x"), 1, [("n",)]),
    Case("Jacobian of a diagonal", vector("sin(x)"), 1, [("n",)]),
    Case("log determinant", matrix("logdet(S)"), 2, [("n", "n")]),
    Case("inverse", matrix("inv(S)"), 1, [("n", "n")]),
    Case("trace of a product", matrix("tr(S*B*S)"), 2, [("n", "n")]),
    Case(
        "Gaussian likelihood", matrix("logdet(S)/2 + x'*inv(S)*x/2", positive_definite=True), 2,
        [("n", "n"), ("n",)],
    ),
]  # fmt: skip


def data_for(*roots: Any, dtype: Any = np.float64) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    found = {}
    for root in roots:
        for name, v in root.variables.items():
            shape = [SIZES.get(e, e) if isinstance(e, str) else e for e in v.shape]
            value = rng.uniform(0.5, 1.5, shape)
            if "positive_definite" in v.properties:
                value = value @ value.T + np.eye(N)
            found.setdefault(name, value.astype(dtype))
    return found


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> Case:
    found: Case = request.param
    return found


def derived(case: Case) -> tuple[Any, Any]:
    e, x = case.build()
    return e, tc.derivative(e, x, case.order)


def test_cores_have_the_shapes_of_what_is_not_repeated(case: Case) -> None:
    _, D = derived(case)
    found = [core.shape for core in tc.compress(D).cores]
    assert sorted(found, key=repr) == sorted(case.cores, key=repr)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_numbers_are_those_of_the_dense_tensor(case: Case, dtype: Any) -> None:
    e, D = derived(case)
    data = data_for(e, D, dtype=dtype)
    held = tc.compile(D, structured=True)(**data)
    dense = D(**data)
    tolerance = 1e-12 if dtype is np.float64 else 1e-5
    assert isinstance(held, Structured)
    assert held.shape == dense.shape
    assert held.nbytes == sum(core.nbytes for core in held.cores)
    assert all(core.dtype == dtype for core in held.cores) or case.cores in ([], [()])
    np.testing.assert_allclose(held.todense(), dense, tolerance, tolerance)
    x = data["S" if "S" in data and D.wrt[-1].name == "S" else D.wrt[-1].name]
    columns = x.ndim
    rng = np.random.default_rng(1)
    for further in ((), (3,), (2, 3)):
        v = rng.normal(size=x.shape + further).astype(dtype)
        expected = np.tensordot(dense, v, columns)
        np.testing.assert_allclose(held @ v, expected, 20 * tolerance, 20 * tolerance)


def test_printing_names_cores_and_unit_tensors() -> None:
    e, x = factorisation(False)
    text = str(tc.compress(tc.hessian(e, x)))
    assert text.splitlines() == [
        "H[i,j,k,l] = C1[j,l] * delta[i,k]   shape (n, k, n, k)",
        "  C1 = 2*V'*V  (k, k)",
    ]


def test_the_dense_tensor_is_never_needed() -> None:
    e, x = factorisation(False)
    n = 100_000
    data = {"T": np.zeros((n, 3)), "U": np.ones((n, 2)), "V": np.ones((3, 2))}
    held = tc.compile(tc.hessian(e, x), structured=True)(**data)
    assert held.shape == (n, 2, n, 2)
    assert held.nbytes == 32
    np.testing.assert_allclose(held @ data["U"], np.full((n, 2), 12.0))


def test_nests_pickles_and_plans() -> None:
    e, _ = factorisation(False)
    step = tc.compile(tc.hessian(e, ("U", "V")), structured=True)
    data = data_for(e)
    blocks = step(**data)
    dense = tc.hessian(e, ("U", "V"))(**data)
    again = pickle.loads(pickle.dumps(step))(**data)
    for i in range(2):
        for j in range(2):
            np.testing.assert_allclose(blocks[i][j].todense(), dense[i][j], 1e-12)
            copy = pickle.loads(pickle.dumps(blocks[i][j]))
            np.testing.assert_allclose(copy.todense(), again[i][j].todense())
    assert step.plan_for(T=(5, 4), U=(5, 2), V=(4, 2)).flops > 0


def test_a_product_of_the_wrong_shape_says_what_was_expected() -> None:
    e, x = factorisation(False)
    held = tc.compile(tc.hessian(e, x), structured=True)(**data_for(e))
    with pytest.raises(
        tc.ShapeError, match=r"\(4, 2, 4, 2\) times shape \(3,\).*expected \(4, 2\)"
    ):
        held @ np.ones(3)


# --- what tables, arithmetic and printing do ------------------------------------------------------


def test_selections_are_tables() -> None:
    x, idx = tc.var("x", ("n",)), tc.var("idx", ("m",), integer=True)
    w = tc.var("w", ("m",))
    J = tc.jacobian(w * x[idx], x)
    form = tc.compress(J)
    assert str(form).splitlines() == [
        "H[i,j] = C1[i] * delta[C2[i],j]   shape (m, n)",
        "  C1 = w  (m,)",
        "  C2 = idx  (m,)",
    ]
    data = {"x": np.arange(4.0), "idx": np.array([3, 0, -1]), "w": np.array([1.0, 2.0, 3.0])}
    held = tc.compile(J, structured=True)(**data)
    dense = np.array([[0, 0, 0, 1.0], [2, 0, 0, 0], [0, 0, 0, 3]])
    np.testing.assert_array_equal(held.todense(), dense)
    np.testing.assert_array_equal(held @ data["x"], dense @ data["x"])
    np.testing.assert_array_equal(held.T @ data["w"], dense.T @ data["w"])
    assert held.to_scipy().nnz == 3
    np.testing.assert_array_equal(held.to_scipy().toarray(), dense)


def test_symbolic_forms_add_and_scale() -> None:
    x = tc.var("x", "n")
    a = tc.compress(tc.hessian(tc.sum(x**4), x))
    b = tc.compress(tc.hessian(tc.sum(x) ** 2, x))
    assert str(2 * a - b).splitlines() == [
        "H[i,j] = C1[i] * delta[i,j] + C2   shape (n, n)",
        "  C1 = 24*x.^2  (n,)",
        "  C2 = -2  ()",
    ]
    with pytest.raises(tc.ShapeError, match="do not add"):
        a + tc.compress(tc.grad(tc.sum(x), x))
    with pytest.raises(TypeError):
        a * "2"


def test_few_products_stay_factors_when_sizes_say_so() -> None:
    X, w = tc.var("X", ("m", "n")), tc.var("w", "n")
    step = tc.compile(tc.hessian(tc.sum(tc.exp(X @ w)), w), structured=True)
    for m, n in ((3, 8), (8, 3)):
        data = {"X": np.random.default_rng(0).normal(size=(m, n)), "w": np.zeros(n)}
        held = step(**data)
        assert sorted(c.shape for c in held.cores) == ([(3,), (8, 3)] if m < n else [(3, 3)])
        np.testing.assert_allclose(held.todense(), data["X"].T @ data["X"], 1e-12)
        flops = step.plan_for(X=(m, n), w=(n,)).flops
        assert (flops < 2 * m * n + 60) == (m < n)


def hessian_of(text: str, wrt: str = "x", **data: Any) -> Any:
    shapes = {k: tuple(f"{k}{j}" for j in range(np.ndim(v))) for k, v in data.items()}
    shapes |= {"x": ("n",)} | ({"A": ("n", "n")} if "A" in data else {})
    return tc.compile(tc.hessian(tc.parse(text, **shapes), wrt), structured=True)(**data)


def test_arithmetic_with_numbers() -> None:
    held = hessian_of("sum(x.^4)*sum(x)", x=np.arange(1.0, 4.0))
    dense = held.todense()
    for found, expected in [
        (np.float64(2) * held, 2 * dense), (held * np.array(2.0), 2 * dense),
        (held / np.int64(2), dense / 2), (-held, -dense), (held - 2 * held, -dense),
        (held.T + held, 2 * dense),
    ]:  # fmt: skip
        np.testing.assert_allclose(found.todense(), expected)
    assert len((held + held.T - held).cores) == len(held.cores)
    for wrong in (lambda: held + 1, lambda: held * np.ones(3), lambda: held @ held,
                  lambda: np.ones((3, 3)) @ held, lambda: held / "2"):  # fmt: skip
        with pytest.raises(TypeError):
            wrong()


SINGULAR = [
    (lambda: hessian_of("sum(x.^4)", x=np.array([1.0, 0, 2])), "at \\(1,\\)"),
    (lambda: hessian_of("sum(x)^2", x=np.ones(3)), "3 x 3 matrix"),
    (lambda: hessian_of("x'*A*x", x=np.ones(3), A=np.ones((3, 3))), "3 x 3 matrix"),
    (lambda: weighted(5), "3 x 3 block at \\[2\\]"),
    (lambda: weighted(500), "3 x 3 block at \\[2\\]"),
]


def weighted(n: int) -> Any:
    f, x = factorisation(True)
    weights = np.ones((n, 4))
    weights[2, 1:] = 0
    rng = np.random.default_rng(0)
    data = {"T": np.ones((n, 4)), "W": weights, "U": np.ones((n, 3)), "V": rng.normal(size=(4, 3))}
    return tc.compile(tc.hessian(f, x), structured=True)(**data)


@pytest.mark.parametrize(("build", "place"), SINGULAR)
def test_singular_matrices_name_the_block_and_suggest_damping(
    build: Callable[[], Any], place: str
) -> None:
    held = build()
    g = np.ones(held.shape[: held.ndim // 2])
    with pytest.raises(tc.LinAlgError, match=f"{place}.*damping="):
        held.solve(g)
    if np.isfinite(held.todense()).all():
        x = held.solve(g, damping=0.5)
        np.testing.assert_allclose(held @ x + 0.5 * x, g, 1e-9)
        assert g.size > 50 or held.slogdet()[1] < -20


def test_indefinite_matrices_are_solved() -> None:
    a = np.array([[0.0, 1, 0], [1, 0, 0], [0, 0, -2]])
    held = hessian_of("x'*A*x", x=np.ones(3), A=a)
    np.testing.assert_allclose(held.solve([1.0, 2, 3]), np.linalg.solve(2 * a, [1, 2, 3]))
    assert held.slogdet() == pytest.approx(np.linalg.slogdet(2 * a))


def test_shapes_that_do_not_solve() -> None:
    x, X = tc.var("x", "n"), tc.var("X", ("m", "n"))
    J = tc.compile(tc.jacobian(X @ x, x), structured=True)(X=np.ones((3, 2)), x=np.ones(2))
    for call in (J.diagonal, J.trace, J.logdet, J.slogdet, J.inverse, J.blocks, J.factor):
        with pytest.raises(tc.ShapeError, match=r"rows have shape \(3,\), columns \(2,\)"):
            call()
    with pytest.raises(tc.ShapeError, match="square"):
        J.solve(np.ones(3))
    held = hessian_of("sum(x.^4)", x=np.ones(3))
    with pytest.raises(tc.ShapeError, match=r"shape \(4,\), expected \(3,\)"):
        held.solve(np.ones(4))
    for wrong in (["a", "b", "c"], np.ones(3) * 1j, [[1], [2, 3]]):
        with pytest.raises(TypeError):
            held.solve(wrong)
    for damping in ("x", None, np.ones(2)):
        with pytest.raises(TypeError, match="damping"):
            held.solve(np.ones(3), damping=damping)
    with pytest.raises(ValueError, match="finite"):
        held.solve(np.ones(3), damping=np.nan)


def test_dense_matrices_that_do_not_fit_are_refused() -> None:
    X, w = tc.var("X", ("m", "n")), tc.var("w", "n")
    H = tc.hessian(tc.sum(tc.exp(X @ w)), w)
    data = {"X": np.random.default_rng(0).normal(size=(20, 400)), "w": np.zeros(400)}
    held = tc.compile(H, structured=True, memory_limit="1MB")(**data)
    with pytest.raises(tc.MemoryLimitError, match=r"2\.44 MiB.*cg\(Hs\.to_scipy\(\)"):
        held.solve(data["w"])
    with pytest.raises(tc.MemoryLimitError, match=r"1\.22 MiB"):
        held.todense()
    assert "does not fit" in held.explain()
    x = held.solve(np.ones(400), damping=1)
    np.testing.assert_allclose(held @ x + x, 1, 1e-9)


def test_scalars_and_nothing() -> None:
    u, x = tc.var("u"), tc.var("x", "n")
    one = tc.compile(tc.hessian(tc.exp(u), u), structured=True)(u=1.0)
    assert isinstance(one.solve(1.0), float)
    assert one.solve(np.e) == pytest.approx(1)
    assert one.logdet() == pytest.approx(1)
    none = tc.compile(tc.hessian(tc.sum(x**4) * tc.sum(x), x), structured=True)(x=np.zeros(0))
    assert none.solve(np.zeros(0)).shape == (0,)
    assert none.slogdet() == (1.0, 0.0)
    zero = tc.compile(tc.hessian(tc.sum(x), x), structured=True)(x=np.ones(3))
    assert zero.slogdet() == (0.0, -np.inf)
    np.testing.assert_array_equal(zero.solve(np.ones(3), damping=2), 0.5)


def test_factors_are_kept_and_pickle_without_them() -> None:
    held = hessian_of("logsumexp(x) + x'*x", x=np.arange(4.0))
    g = np.arange(4.0)
    assert "(factored)" not in held.explain()
    x = held.solve(g)
    assert "(factored)" in held.explain()
    factor = held.factor()
    np.testing.assert_array_equal(factor.solve(g), x)
    assert factor.logdet() == held.logdet()
    assert "Woodbury" in repr(factor)
    copy = pickle.loads(pickle.dumps(held))
    np.testing.assert_array_equal(copy.solve(g), x)


def test_solutions_do_not_alias_and_inputs_stay() -> None:
    for text in ("x'*x/2", "sum(x.^4)", "logsumexp(x) + x'*x"):
        held = hessian_of(text, x=np.arange(1.0, 5.0))
        g = np.ones(4)
        for found in (held.solve(g), held @ g, held.diagonal(), held.blocks()):
            assert found.flags.writeable
            assert not any(np.shares_memory(found, a) for a in (g, *held.cores))
        np.testing.assert_array_equal(g, 1)


def test_arrays_are_contracted_along_the_fastest_path():
    chain = Contraction(((0, 1), (1, 2), (2,)), (0,), (50, 50, 50))
    assert [(i, j) for i, j, _ in chain.pairs] == [(1, 2), (0, 3)]
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(50, 50)), rng.normal(size=(50, 50)), rng.normal(size=50)
    np.testing.assert_allclose(chain([a, b, c]), a @ (b @ c))


@pytest.mark.parametrize("read", [False, True])
def test_extents_of_loops_alone_are_given_by_name_or_by_shapes(read: bool) -> None:
    a, x = tc.var("a"), tc.var("x", "n")
    e = tc.sin(tc.fold(lambda s, i: s / 2 + tc.tanh(a * s), 1.0, "n"))
    derivative = tc.jacobian(e * tc.sum(x) if read else e, a)
    data = {"a": 0.3, "n": 3} | ({"x": np.ones(3)} if read else {})
    wanted = derivative(data)
    step = tc.compile(derivative, structured=True)
    for found in (step(data), step(**data)):
        np.testing.assert_allclose(found.todense(), wanted, rtol=1e-12)
    if read:
        by_shape = {name: value for name, value in data.items() if name != "n"}
        np.testing.assert_allclose(step(by_shape).todense(), wanted, rtol=1e-12)
