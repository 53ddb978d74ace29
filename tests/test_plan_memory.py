"""What plans hold at once: memory of outputs before they are made, products that are there."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tcalc as tc

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
