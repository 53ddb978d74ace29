"""Compressed tensors as SciPy's sparse arrays: entries where they belong, structure found once.

What is over several variables is compared with complex steps through the same functions on NumPy.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import tcalc as tc
from tcalc.structured.terms import patterns
from tcalc.structured.terms.numeric_terms import Terms
from tcalc.structured.terms.tensor_layout import CoreProduct, TableIndex, TensorLayout

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


def test_entries_that_lie_from_the_last_to_the_first_are_turned() -> None:
    """One core over rows b, i and columns b, at[j], for places from the last to the first."""
    core, at = RNG.normal(size=(6, 2, 3)), np.array([2, 1, 0])
    term = CoreProduct(((0, (0, 1, 2)),), (0, 1, 0, TableIndex(1, (2,))), (6, 2, 3))
    layout = TensorLayout((6, 2, 6, 3), 2, [term])
    wanted = np.zeros((6, 2, 6, 3))
    for b in range(6):
        wanted[b, :, b] = core[b][:, ::-1]
    for held in (core, core[:, :, ::-1].copy()[:, :, ::-1], core[::-1].copy()[::-1]):
        found = patterns.assembled([[Terms(layout, [held, at], [1.0])]])
        np.testing.assert_array_equal(found.toarray(), wanted.reshape(12, 18))


@pytest.mark.parametrize("turned", [False, True])
def test_entries_that_stand_as_they_belong_are_copied_as_they_stand(
    turned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of a core in another order are put where they belong."""
    put: list[Any] = []
    monkeypatch.setattr(
        patterns.Pattern, "_put", lambda self, data, values, places: put.append(values)
    )
    core = RNG.normal(size=(3, 4))
    held = np.asfortranarray(core) if turned else core
    layout = TensorLayout((3, 4), 1, [CoreProduct(((0, (0, 1)),), (0, 1), (3, 4))])
    found = patterns.assembled([[Terms(layout, [held], [1.0])]])
    assert len(put) == turned
    if not turned:
        np.testing.assert_array_equal(found.toarray(), core)
        assert not np.shares_memory(found.data, core)


# --- Jacobians over several variables, whose cores lie side by side -------------------------------


class Model(NamedTuple):
    """A function of arrays of NumPy's or expressions, and how many rows have joined cores."""

    of: Callable[[Any, Any], Any]
    wrt: tuple[str, ...]
    joined: int


def projected(xp: Any, v: Any) -> Any:
    """Of every observation two numbers, of the rows of A and B that it takes and of its weight."""
    a, b = v["A"][v["i"]], v["B"][v["j"]]
    pairs = a[:, None, :, None] * b[:, None, None, :] * v["Z"][:, :, None, None]
    return v["u"][:, None] * xp.sum(xp.sin(pairs), axis=(2, 3))


MODELS = {
    "tables": Model(projected, ("A", "B", "u"), 1),
    "another order": Model(projected, ("u", "B", "A"), 1),
    "one table for two": Model(lambda xp, v: xp.sin(v["x"][v["i"]] * v["C"][v["i"], 0]), "xC", 1),
    "entries that stand alone": Model(lambda xp, v: v["x"] * xp.exp(v["y"] * v["x"]), "xy", 1),
    "blocks that share nothing": Model(
        lambda xp, v: xp.sum(xp.sin(v["C"] * v["y"][:, None]), axis=1) + xp.exp(v["x"]), "xCy", 1
    ),
    "a core that lacks an axis": Model(
        lambda xp, v: (xp.sin(v["x"])[:, None] * v["C"]) * xp.exp(v["y"])[:, None], "xCy", 0
    ),
    "a factor in all entries": Model(lambda xp, v: v["x"] * xp.exp(v["y"]) * v["c"], "xy", 0),
    "from the last to the first": Model(
        lambda xp, v: v["x"][::-1] * xp.exp(v["y"]) + v["C"][::-1, 0] ** 2, "xyC", 1
    ),
    "slices in steps": Model(lambda xp, v: v["x"][6:0:-2] * v["y"][1:7:2] ** 2, "xy", 1),
    "reversed within rows": Model(
        lambda xp, v: xp.sum(v["C"][v["i"]][:, ::-1] ** 3, axis=1) * v["u"], ("C", "u"), 1
    ),
    "one that is not read": Model(lambda xp, v: xp.sin(v["x"] * v["c"]) * v["y"], "xyA", 0),
    "several terms": Model(
        lambda xp, v: xp.sin(v["x"][v["i"]]) * v["x"][v["j"]] + v["u"] ** 2, "xu", 0
    ),
    "one slope for two": Model(lambda xp, v: xp.sin(v["x"] + v["y"]), "xy", 0),
    "slopes of one": Model(lambda xp, v: v["x"][v["i"]] + xp.exp(v["u"]), "xu", 0),
    "several outputs": Model(
        lambda xp, v: {"a": xp.sin(v["A"][v["i"], 0]) * v["u"], "b": v["u"] * v["A"][v["i"], 1]},
        "Au", 2,
    ),
}  # fmt: skip
SHAPES = {"x": "n", "y": "n", "A": ("n", 3), "B": ("m", 2), "C": ("n", 3), "u": "o", "Z": ("o", 2)}
VARIABLES = {name: tc.var(name, shape) for name, shape in SHAPES.items()}
VARIABLES |= {name: tc.var(name, "o", integer=True) for name in "ij"} | {"c": tc.var("c")}


def drawn(seed: int, n: int = 8, m: int = 8, o: int = 12) -> dict[str, Any]:
    draw, sizes = np.random.default_rng(seed), {"n": n, "m": m, "o": o}
    shapes = {k: v.shape for k, v in VARIABLES.items() if k in SHAPES}
    made = {k: draw.normal(size=[sizes.get(e, e) for e in shape]) for k, shape in shapes.items()}
    tables = {"i": draw.integers(0, max(n, 1), o), "j": draw.integers(0, max(min(m, n), 1), o)}
    return {**made, **tables, "c": np.float64(0.7)}


def slopes(model: Model, data: dict[str, Any]) -> np.ndarray:
    """The Jacobian as one matrix, column by column by complex steps through NumPy."""
    wide = {k: v.astype(float) if v.dtype.kind == "f" else v for k, v in data.items()}
    columns = []
    for name in model.wrt:
        for k in range(data[name].size):
            step = np.zeros(data[name].size, complex)
            step[k] = 1e-30j
            found = model.of(np, wide | {name: wide[name] + step.reshape(data[name].shape)})
            parts = list(found.values()) if isinstance(found, dict) else [found]
            columns.append(np.concatenate([part.imag.ravel() for part in parts]) / 1e-30)
    whole = model.of(np, wide)
    rows = sum(np.size(part) for part in (whole.values() if isinstance(whole, dict) else [whole]))
    return np.array(columns).reshape(len(columns), rows).T


def compiled(model: Model, **options: Any) -> Any:
    made = tc.jacobian(model.of(tc, VARIABLES), tuple(VARIABLES[name] for name in model.wrt))
    return tc.compile(made, structured=True, **options)


def agrees(found: Any, wanted: np.ndarray, rtol: float = 1e-12) -> None:
    near = {"rtol": rtol, "atol": rtol}
    np.testing.assert_allclose(found.todense(), wanted, **near)
    sparse = found.to_scipy()
    np.testing.assert_allclose(sparse @ np.eye(wanted.shape[1]), wanted, **near)
    right = np.random.default_rng(1).normal(size=wanted.shape[1])
    np.testing.assert_allclose(sparse @ right, wanted @ right, **near)
    if hasattr(sparse, "indices"):
        held = sparse.copy()
        held.has_canonical_format = held.has_sorted_indices = False
        held.sum_duplicates()
        np.testing.assert_array_equal(held.indices, sparse.indices)


@pytest.mark.parametrize("backend", ["numpy", "functional", "c", "auto"])
@pytest.mark.parametrize("name", MODELS)
def test_joined_cores_are_the_slopes_call_by_call(name: str, backend: str) -> None:
    model = MODELS[name]
    step, kept = compiled(model, backend=backend), []
    for seed in range(3):
        data = drawn(seed)
        found, wanted = step(data), slopes(model, data)
        agrees(found, wanted)
        kept.append((found, found.to_scipy(), wanted))
        tc.wait_for_compiler()
    for found, sparse, wanted in kept:  # nothing is written over by the calls that follow
        agrees(found, wanted)
        np.testing.assert_allclose(sparse @ np.eye(wanted.shape[1]), wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_cores_of_a_row_lie_side_by_side(name: str) -> None:
    model = MODELS[name]
    step = compiled(model, backend="numpy")
    assert len(step._default.cores.rows) == model.joined
    found = step(drawn(0))
    rows = found.rows if model.joined else []
    for row in rows:
        bases = {id(block.terms.cores[0].base) for block in row}
        assert len(bases) == 1, name
        for block in row:
            assert not any(
                np.shares_memory(block.terms.cores[0], other.terms.cores[0])
                for other in row
                if other is not block
            )


@pytest.mark.parametrize("name", ["tables", "another order", "blocks that share nothing"])
def test_what_lies_in_order_is_the_data_of_the_matrix(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patterns.Pattern, "_put", lambda *_: pytest.fail("entries were moved"))
    data = drawn(4)
    agrees(compiled(MODELS[name])(data), slopes(MODELS[name], data))


@pytest.mark.parametrize(
    "sizes", [(8, 8, 0), (0, 8, 0), (1, 1, 1), (0, 0, 0), (8, 1, 5), (1, 8, 5)]
)
@pytest.mark.parametrize("name", ["tables", "blocks that share nothing", "several outputs"])
def test_joined_cores_of_any_extents(name: str, sizes: tuple[int, int, int]) -> None:
    step = compiled(MODELS[name], backend="numpy")
    for at in (sizes, (8, 8, 12), sizes):
        data = drawn(5, *at)
        agrees(step(data), slopes(MODELS[name], data))


@pytest.mark.parametrize("narrow", ["ABCxyuZc", "Au", "x"])
@pytest.mark.parametrize("name", ["tables", "blocks that share nothing", "several outputs"])
def test_joined_cores_of_narrow_data(name: str, narrow: str) -> None:
    model, data = MODELS[name], drawn(6)
    data |= {k: data[k].astype(np.float32) for k in narrow}
    for backend in ("numpy", "c"):
        found = compiled(model, backend=backend)(data)
        read = set(model.of(tc, VARIABLES).variables) if name != "several outputs" else {"A", "u"}
        kinds = {data[k].dtype for k in read - {"i", "j"}}
        assert found.dtype == np.result_type(*kinds)
        assert found.to_scipy().dtype == found.dtype
        agrees(found, slopes(model, data), 1e-5 if found.dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("name", ["tables", "several outputs"])
def test_joined_cores_pickle(name: str) -> None:
    data = drawn(7)
    step = compiled(MODELS[name])
    again = pickle.loads(pickle.dumps(step))
    agrees(again(data), slopes(MODELS[name], data))
    agrees(pickle.loads(pickle.dumps(step(data))), slopes(MODELS[name], data))


@pytest.mark.parametrize("name", ["tables", "blocks that share nothing"])
def test_data_of_any_order_in_memory_and_data_that_are_bound(name: str) -> None:
    data, model = drawn(8), MODELS[name]
    wanted, turned = slopes(model, data), {}
    for k, v in data.items():
        back = (slice(None, None, -1),) * np.ndim(v)
        turned[k] = np.asfortranarray(v[back])[back] if np.ndim(v) else v
    step = compiled(model)
    agrees(step(turned), wanted)
    agrees(step(data), wanted)
    bound = compiled(model, data={k: data[k] for k in "Ai" if k in step._taken()})
    agrees(bound({k: v for k, v in data.items() if k not in "Ai"}), wanted)


def test_other_results_may_read_what_is_joined() -> None:
    model, data = MODELS["tables"], drawn(9)
    e, wrt = model.of(tc, VARIABLES), tuple(VARIABLES[name] for name in model.wrt)
    outputs = {"J": tc.jacobian(e, wrt), "e": e, "by one": tc.jacobian(e, wrt[0])}
    found = tc.compile(outputs, structured=True)(data)
    wanted = slopes(model, data)
    agrees(found["J"], wanted)
    np.testing.assert_allclose(found["by one"].tomatrix(), wanted[:, :24], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found["e"].todense(), projected(np, data), rtol=1e-12)
