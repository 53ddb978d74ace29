"""Memory of values and gradients of matrix functions: predicted, and what a call really takes."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from benchmarks import spelled

N = 260
A, B, C = (tc.var(name, (N, N)) for name in "ABC")
L = tc.linalg

#: The objective, its variables, and how many n x n arrays a call may take at most.
CASES: dict[str, tuple[Any, tuple[Any, ...], float]] = {
    "trsm": (tc.sum(C * L.trsm(A, B)), (A, B), 3),
    "trsm transposed": (tc.sum(C * L.trsm(A, B, transpose=True)), (A, B), 3),
    "trmm": (tc.sum(C * L.trmm(A, B)), (A, B), 3),
    "potrf": (tc.sum(C * L.potrf(A)), (A,), 2.5),
    "potri": (tc.sum(C * L.potri(A)), (A,), 3),
    "gelqf": (tc.sum(C * L.gelqf(A)[0]) + tc.sum(B * L.gelqf(A)[1]), (A,), 6),
    "gelqf, L first": (tc.sum(C * L.gelqf(A)[1]) + tc.sum(B * L.gelqf(A)[0]), (A,), 6),
    "gelqf, B first": (tc.sum(B * L.gelqf(A)[1]) + tc.sum(C * L.gelqf(A)[0]), (A,), 6),
    "syevd": (tc.sum(C * L.syevd(A)[0]) + tc.sum(L.syevd(A)[1]), (A,), 3),
}


def data_of(f: Any) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    found = {name: rng.normal(size=(N, N)) for name in f.variables}
    found["A"] = found["A"] @ found["A"].T / N + 2 * np.eye(N)
    return found


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_values_and_gradients_take_a_few_matrices(name: str, backend: str) -> None:
    f, wrt, most = CASES[name]
    wanted = tc.value_and_grad(f, wrt if len(wrt) > 1 else wrt[0])
    plan = tc.compile(wanted, backend=backend).plan
    matrix, data = 8 * N * N, data_of(f)
    assert plan.peak_bytes <= 1.03 * most * matrix
    tc.compile(wanted, backend=backend)(**data)  # what is imported and compiled once is no part
    function = tc.compile(wanted, backend=backend)
    function.plan_for()
    tracemalloc.start()
    try:
        function(**data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert plan.peak_bytes / 2 <= peak <= 2 * plan.peak_bytes


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_small_matrices(name: str) -> None:
    """Masks in place say what masks that are multiplied by say: at sizes where these stay."""
    f, wrt, _ = CASES[name]
    data = data_of(f)
    for variable in wrt:
        gradient = tc.grad(f, variable)
        found = gradient(**{k: a for k, a in data.items() if k in gradient.variables})
        at = np.random.default_rng(1).normal(size=(N, N)) / N
        step = {**data, variable.name: data[variable.name] + 1e-5 * at}
        back = {**data, variable.name: data[variable.name] - 1e-5 * at}
        slope = (f(**step) - f(**back)) / 2e-5
        assert (found * at).sum() == pytest.approx(slope, rel=1e-5, abs=1e-6)


def test_no_constant_triangle_is_held() -> None:
    for f, wrt, _ in CASES.values():
        plan = tc.compile(tc.grad(f, wrt[0])).plan
        assert not any(s.out in plan.fixed and len(s.shape) == 2 for s in plan.steps)


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("name", spelled.processes())
def test_hessians_of_a_gaussian_process_take_ten_matrices_however_it_is_spelled(
    name: str, backend: str
) -> None:
    """Distances of each feature would be four of them, if they were held."""
    objective, wrt = spelled.processes()[name]
    plan = tc.compile(tc.hessian(objective, wrt), backend=backend).plan_for(n=1000)
    assert plan.peak_bytes <= 10 * 8 * 1000**2
