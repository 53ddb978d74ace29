"""Compressed tensors as SciPy's sparse arrays: entries where they belong, structure found once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.structured.terms import patterns

RNG = np.random.default_rng(0)
x, A, u = tc.var("x", "n"), tc.var("A", ("n", 3)), tc.var("u", "m")
i, j = tc.var("i", "m", integer=True), tc.var("j", "m", integer=True)
DATA: dict[str, Any] = {
    "x": RNG.normal(size=8),
    "A": RNG.normal(size=(8, 3)),
    "u": RNG.normal(size=12),
    "i": RNG.integers(0, 8, 12),
    "j": RNG.integers(0, 8, 12),
}
#: Jacobians: with unit tensors, gathers, entries that meet, several variables, blocks of zeros.
MAPS: dict[str, tuple[Any, Any]] = {
    "a diagonal": (tc.sin(x), x),
    "rows that are taken": (tc.exp(A[i]) * u[:, None], A),
    "terms that meet": (tc.sin(x[i]) * tc.exp(x[j]) + 3 * x[i], x),
    "sums that meet": (tc.segment_sum(tc.sin(u) * x[i], j, "n"), (x, u)),
    "several variables": (A[i] * u[:, None] - x[j][:, None], (A, x, u)),
    "several outputs": ({"a": tc.sin(A[i, 0]) * u, "b": x * x}, (x, A, u)),
    "bands": (x[1:] * x[:-1] + tc.exp(x[:-1]), x),
}


def of(e: Any, wrt: Any, **options: Any) -> tuple[Any, dict[str, Any]]:
    made = tc.jacobian(e, wrt)
    step = tc.compile(made, **options)
    names = {"x", "A", "u", "i", "j"}
    return step, {name: DATA[name] for name in names}


@pytest.mark.parametrize("name", MAPS)
def test_entries_are_those_of_the_dense_matrix(name: str) -> None:
    step, data = of(*MAPS[name], structured=True)
    found = step(data)
    sparse = found.tosparse() if hasattr(found, "tosparse") else found.to_scipy()
    dense = found.tomatrix()
    np.testing.assert_allclose(sparse.toarray(), dense, rtol=1e-13, atol=1e-13)
    assert sparse.format == "csr"
    held = sparse.copy()
    held.has_canonical_format = held.has_sorted_indices = False
    held.sum_duplicates()
    assert held.nnz == sparse.nnz
    np.testing.assert_array_equal(held.indices, sparse.indices)


@pytest.mark.parametrize("name", MAPS)
def test_structure_is_found_once_until_indices_change(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    step, data = of(*MAPS[name], structured=True)
    patterns._held.cache_clear()
    made: list[Any] = []
    build = patterns.Pattern.__init__
    monkeypatch.setattr(
        patterns.Pattern, "__init__", lambda self, grid: (made.append(grid), build(self, grid))[1]
    )

    def matrix(**others: Any) -> Any:
        found = step({**data, **others})
        return (found.tosparse() if hasattr(found, "tosparse") else found.to_scipy()), found

    matrix()
    once = len(made)
    again, found = matrix(x=data["x"] * 2, u=-data["u"], A=data["A"] + 1)
    assert len(made) == once
    np.testing.assert_allclose(again.toarray(), found.tomatrix(), rtol=1e-13, atol=1e-13)
    moved, found = matrix(i=data["i"][::-1].copy(), j=(data["j"] + 1) % 8)
    np.testing.assert_allclose(moved.toarray(), found.tomatrix(), rtol=1e-13, atol=1e-13)


def test_matrices_share_nothing() -> None:
    step, data = of(*MAPS["several variables"], structured=True)
    found = step(data)
    first, wanted = found.to_scipy(), found.todense()
    for array in (first.data, first.indices, first.indptr):
        assert array.flags.writeable
        array[...] = 0
    np.testing.assert_allclose(found.to_scipy().toarray(), wanted)
    np.testing.assert_allclose(found.todense(), wanted)


def test_places_in_equal_steps_are_one_strided_copy() -> None:
    """Rows that hold one entry of u, three of A and one of x each, wherever these stand."""
    step, data = of(*MAPS["several variables"], structured=True)
    grid = [[block.unprojected() for block in row] for row in step(data).rows]
    assert all(places.steps is not None for places in patterns.Pattern(grid).places)
