"""Data bound by ``data=``: results never change with the caller's arrays, and parts that depend on
nothing else are computed once.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.plan.steps import VIEW, Plan, Step

X, y, w = tc.var("X", ("m", "n")), tc.var("y", "m"), tc.var("w", "n")
S = tc.var("S", ("n", "n"))
k = tc.var("k", "m", integer=True)
LOSS = tc.sum(tc.log(1 + tc.exp(-y * (X @ w)))) + tc.sum(w[k])

GIVEN: dict[str, Callable[[np.ndarray], Any]] = {
    "array": lambda a: a,
    "single": lambda a: a.astype(np.float32),
    "integers": lambda a: (8 * a).astype(np.int64),
    "fortran": np.asfortranarray,
    "strided": lambda a: np.repeat(a, 2, axis=0)[::2],
    "reversed": lambda a: a[::-1],
    "read-only view": lambda a: np.broadcast_to(a, a.shape),
    "list": lambda a: a.tolist(),
    "swapped bytes": lambda a: a.astype(">f8"),
}


def overwritten(given: Any) -> None:
    """Other numbers in the caller's memory."""
    if isinstance(given, list):
        for row in given:
            if isinstance(row, list):
                row[:] = [3.0] * len(row)
        given[:] = [2.0] * len(given) if not isinstance(given[0], list) else given[::-1]
        return
    while not given.flags.writeable:
        given = given.base
    given[...] = 3


@pytest.mark.parametrize("kind", GIVEN)
@pytest.mark.parametrize("backend", ["numpy", "c", "functional"])
def test_results_do_not_change_with_the_callers_data(kind: str, backend: str) -> None:
    rng = np.random.default_rng(0)
    data = {"X": rng.normal(size=(6, 3)), "y": rng.normal(size=6)}
    given = {name: GIVEN[kind](a) for name, a in data.items()}
    given["k"] = np.array([0, 2, 1, 1, 0, 2])
    at = np.ones(3)
    wanted = [LOSS, tc.grad(LOSS, w)]
    H = tc.hessian(LOSS, w)
    before = tc.compile(wanted, backend=backend)(**given, w=at)
    hessian = H(**given, w=at)
    both = tc.compile(wanted, data=given, backend=backend)
    dense = tc.compile(H, data=given, structured=True)
    flat = tc.scipy_functions(LOSS, w, data=given)
    early = both(w=at)
    for value in given.values():
        overwritten(value)
    for function in (both, pickle.loads(pickle.dumps(both))):
        for found in (function(w=at), early):
            for one, other in zip(found, before, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-6)
    for structured in (dense, pickle.loads(pickle.dumps(dense))):
        np.testing.assert_allclose(structured(w=at).todense(), hessian, rtol=1e-5)
    np.testing.assert_allclose(flat.fun(at), before[0], rtol=1e-6)
    np.testing.assert_allclose(flat.hess(at), hessian, rtol=1e-5)


def test_cores_that_are_bound_data_cannot_be_written_to() -> None:
    given = np.arange(6.0).reshape(3, 2)
    function = tc.compile(tc.jacobian(X @ w, w), data={"X": given}, structured=True)
    found = function(w=np.ones(2))
    given[...] = 0
    for core in found.cores:
        with pytest.raises(ValueError, match="read-only"):
            core[...] = 0
    np.testing.assert_array_equal(function(w=np.ones(2)).todense(), np.arange(6.0).reshape(3, 2))


def test_outputs_that_are_bound_data_are_the_callers_own() -> None:
    function = tc.compile([X, 2 * X], data={"X": np.ones((2, 2))})
    one, two = function()
    one[...], two[...] = 7, 7
    for found, expected in zip(function(), (1, 2), strict=True):
        np.testing.assert_array_equal(found, np.full((2, 2), expected))


def test_a_minimum_is_that_of_the_data_that_were_bound() -> None:
    given = np.array([1.0, 2.0, 3.0])
    flat = tc.scipy_functions(tc.sum((w - tc.var("c", "n")) ** 2), w, data={"c": given})
    given[:] = 0
    np.testing.assert_allclose(flat.jac(np.zeros(3)), [-2, -4, -6])


# --- what is computed once ------------------------------------------------------------------------

M, N = 200, 60
SHAPES = {"X": (M, N), "y": (M,), "S": (N, N)}

PREPARED: dict[str, Any] = {
    "a function of data": tc.sum(tc.exp(-abs(X)) @ w),
    "a product": w @ X.T @ X @ w,
    "a product in another order": y @ (X @ (S @ w)),
    "a triple product": w @ S.T @ (X.T @ (X @ (S @ w))),
    "distances": tc.sum(tc.exp(-tc.sum((X[:, None] - X[None]) ** 2, axis=2)) @ y) * tc.sum(w),
    "a factor": w @ tc.linalg.solve(S @ S.T + tc.eye("n"), w),
    "a determinant": tc.linalg.logdet(S @ S.T + tc.eye("n")) * tc.sum(w),
    "logistic": tc.sum(tc.log(1 + tc.exp(-y * (X @ w)))),
}


def often(plan: Plan) -> list[Step]:
    """What every call runs."""
    return [s for s in plan.steps if s.out not in plan.fixed and plan.origin[s.out] is not VIEW]


@pytest.mark.parametrize("name", PREPARED)
@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_fewer_steps_a_call_where_data_are_bound(name: str, backend: str) -> None:
    e = PREPARED[name]
    rng = np.random.default_rng(0)
    data = {v: rng.normal(size=SHAPES[v]) / 8 for v in e.variables if v != "w"}
    outputs = [e, tc.grad(e, w)]
    bound = tc.compile(outputs, data=data, backend=backend)
    free = tc.compile(outputs, backend=backend)
    before = often(free.plan_for(**{v: SHAPES[v] for v in data}))
    after = often(bound.plan)
    assert len(after) < len(before)
    assert sum(s.flops for s in after) < sum(s.flops for s in before)
    for seed in range(3):
        at = np.random.default_rng(seed).normal(size=N)
        for one, other in zip(bound(w=at), free(w=at, **data), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def test_large_products_are_made_of_data_once() -> None:
    shapes = {"X": (2000, 100)}
    e = tc.sum((X @ w) ** 2)
    plan = tc.compile([e, tc.grad(e, w)], data={"X": np.ones(shapes["X"])}).plan
    assert sum(s.flops for s in often(plan)) < 2.1 * 100**2


def test_products_of_data_that_are_larger_than_data_are_not_made() -> None:
    few, many = 4, 500
    p = tc.compile(tc.grad(tc.sum((X @ w) ** 2), w), data={"X": np.ones((few, many))}).plan
    assert max(np.prod(s.shape) for s in p.steps) <= few * many


def test_operations_of_a_loop_count_what_is_the_same_in_all_steps_once() -> None:
    e = tc.fold(lambda s, i: tc.tanh(S @ S @ S @ s), w, 1000)
    n = 40
    flops = tc.compile(e).plan_for(S=(n, n)).flops
    assert flops < 1000 * (2 * n * n + 20 * n) + 5 * n**3
