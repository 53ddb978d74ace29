"""What plans hold at once: memory of outputs before they are made, products that are there."""

from __future__ import annotations

import itertools
import tracemalloc
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from benchmarks.problems.gp import PROBLEM as GP
from tcalc.backends.numpy import matrices
from tcalc.graph import trees
from tcalc.plan.products import tall
from tests.test_kinds import programs

N = 300
RNG = np.random.default_rng(11)
A, B, C = (tc.var(name, ("n", "n")) for name in "ABC")
WEIGHTS = {name: RNG.normal(size=(N, N)) for name in "ABC"}
X, Y = tc.sin(A) @ B, tc.exp(A.T / 9) @ B
#: Large outputs, one after the other or each of the other, with arrays that are held between them.
OUTPUTS: dict[str, Any] = {
    "apart": [X @ C, Y @ X],
    "of each other": [X, X @ Y, (X @ Y) @ (Y @ C)],
    "a unit tensor last": [X @ Y, tc.einsum("i->ii", tc.sum(Y @ C, axis=0))],
    "turned": [(X @ Y).T, (X + Y).T @ C],
    "parts": [(X @ Y)[1:], tc.sum((Y @ C)[::2] * 2, axis=0), (C @ X)[:, None]],
    "numbers between": [tc.sum(X * Y), Y @ C, tc.sum((Y @ C) @ X)],
    "flat": [(X @ Y).reshape("n*n"), tc.tanh(X @ C)],
}


@pytest.mark.parametrize("backend", ["numpy", "c", "functional"])
@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs_are_whole_where_other_arrays_stood(name: str, backend: str) -> None:
    step = tc.compile(OUTPUTS[name], backend=backend)
    values, before = WEIGHTS, {n: x.copy() for n, x in WEIGHTS.items()}
    wanted = tc.compile(OUTPUTS[name], backend="functional")(**values)
    first, second = step(**values), step(**values)
    for found, right in zip((*first, *second), (*wanted, *wanted), strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-9, atol=1e-9 * np.abs(right).max())
    arrays = [x for x in (*first, *second) if np.ndim(x)]
    assert not any(np.shares_memory(x, y) for x, y in itertools.combinations(arrays, 2))
    assert all(np.array_equal(values[n], before[n]) for n in values)


def test_a_product_that_is_there_is_read_from_its_other_side() -> None:
    f = tc.sum(C * tc.linalg.trmm(A, B))
    for by, count in (("B", 1), (("A", "B"), 2)):
        both = tc.compile(tc.value_and_grad(f, by), backend="numpy")
        plan = both.plan_for(**dict.fromkeys("ABC", (N, N)))
        products = [s for s in plan.steps if s.kind == "dot" and len(s.shape) == 2]
        assert len(products) == count


# --- products that are written over a tall operand ------------------------------------------------

T, S, v = tc.var("T", ("k", "n")), tc.var("S", ("n", "n")), tc.var("v", "n")
TALL = {"T": RNG.normal(size=(3 * N, N)), "S": RNG.normal(size=(N, N)), "v": RNG.normal(size=N)}
E = tc.exp(T)
#: Outputs, and how many arrays of T's size a call takes; what reads the operand too, where it must.
OVER: dict[str, tuple[Any, float]] = {
    "alone": (E @ S, 1),
    "read before": ([E @ S, E @ v], 1),
    "read by a sum": ([E @ S, tc.sum(E * E)], 1),
    "an output too": ([E @ S, E], 2),
    "read with the result": ([E @ S, (E @ S) * E], 3),
    "read by what needs the result": ([E @ S, E @ tc.sum(E @ S, axis=0)], 2),
}


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("name", OVER)
def test_products_are_written_over_tall_operands_that_nobody_reads_later(
    name: str, backend: str
) -> None:
    outputs, most = OVER[name]
    step = tc.compile(outputs, backend=backend)
    given = {n: TALL[n] for n in ("T", "S", "v") if n != "v" or name == "read before"}
    wanted = tc.compile(outputs, backend="functional")(**given)
    found = step(**given)
    for one, other in zip(
        *[x if isinstance(x, list) else [x] for x in (found, wanted)], strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9 * np.abs(other).max())
    plan = step.plan_for(**{n: x.shape for n, x in given.items()})
    assert plan.peak_bytes <= 1.2 * most * TALL["T"].nbytes


def test_small_products_may_be_written_over_operands_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all programs, every product of a matrix with a square one, by panels of two rows."""
    square = lambda b, s: b.shapes[s.args[0]] == s.shape and len(s.shape) == 2  # noqa: E731
    apart = lambda b, s: b.owner[s.args[0]] != b.owner[s.args[1]]  # noqa: E731
    monkeypatch.setattr(tall, "_is_tall", lambda b, s: square(b, s) and apart(b, s))
    monkeypatch.setattr(matrices, "ROWS", 2)
    over = 0
    for outputs, arrays in programs():
        step = tc.compile(outputs, backend="numpy")
        plan = step.plan_for(**{name: np.shape(a) for name, a in arrays.items()})
        made = [s for s in plan.steps if s.kind == "dot_over"]
        if not made:
            continue
        over += sum([plan.home[s.out] == plan.home[plan.owner[s.args[0]]] for s in made])
        wanted = tc.compile(outputs, backend="functional")(**arrays)
        pairs = zip(trees.leaves(step(**arrays)), trees.leaves(wanted), strict=True)
        for one, other in pairs:
            size = np.abs(other).max(initial=1)
            np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8 * size)
    assert over > 50


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_the_hessian_of_a_gaussian_process_holds_ten_matrices(backend: str) -> None:
    """K, its derivatives by four lengths, its factor and its inverse; products over derivatives."""
    data = GP.of_size(2 * N).load(RNG)
    f = GP.expression({})
    wrt = tuple([f.variables[name] for name in GP.wrt])
    step = tc.compile(tc.hessian(f, wrt), backend=backend, threads=1)  # each has tiles of its own
    given = {name: data[name] for name in f.variables}
    plan = step.plan_for(**{name: np.shape(x) for name, x in given.items()})
    solved = tc.compile(tc.linalg.solve_triangular(A, B), backend=backend)
    solved(A=np.eye(N), B=np.eye(N))  # modules and routines that are loaded then are no arrays
    tracemalloc.start()
    try:
        step(**given)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert max(plan.peak_bytes, peak) <= 10 * 8 * (2 * N) ** 2
