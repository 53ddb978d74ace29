"""Compressed derivatives: which cores are held, and that they are the dense tensor."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import tcalc as tc
from tcalc.structured import Structured

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
    Case("diagonal and rank one", vector("logsumexp(x)"), 2, [("n",), ("n",), ("n",)]),
    Case("identity", vector("x'*x/2"), 2, [()]),
    Case("dense", vector("x'*A*x"), 2, [("n", "n")]),
    Case("zero", vector("sum(x)"), 2, []),
    Case("quartic", vector("(x'*x)^2"), 2, [(), ("n",), ("n",)]),
    Case("Jacobian", vector("X*x"), 1, [("m", "n")]),
    Case("gradient", vector("x'*A*x"), 1, [("n",)]),
    Case("Jacobian of a diagonal", vector("sin(x)"), 1, [("n",)]),
    Case("log determinant", matrix("logdet(S)"), 2, [("n", "n"), ("n", "n")]),
    Case("inverse", matrix("inv(S)"), 1, [("n", "n"), ("n", "n")]),
    Case("trace of a product", matrix("tr(S*B*S)"), 2, [("n", "n"), ("n", "n")]),
    Case(
        "Gaussian likelihood", matrix("logdet(S)/2 + x'*inv(S)*x/2", positive_definite=True), 2,
        [("n", "n"), ("n", "n"), ("n",), ("n",), ("n", "n"), ("n",), ("n",), ("n", "n")],
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
