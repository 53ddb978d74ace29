"""A batch axis in front: every node kind and every row equals a loop over the items."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.calculus.batching import with_batch_axis
from tcalc.graph.applications import apply, apply_all
from tcalc.graph.operators import TABLE, Op, Selection
from tcalc.ops.matrix_cores import symmetric_part
from tcalc.support.errors import RangeError
from tests.cases import BY_NAME, CASES, EXTENTS
from tests.test_operators import close, differentiable

RNG = np.random.default_rng(0)
SIZES = (0, 1, 3)
#: Cases in which the first variable stands.
PRESENT = [c.name for c in CASES if c.name != "no-dependence"]
ROWS = sorted(
    (
        row
        for row in TABLE.values()
        if row.core and not isinstance(row, Selection)
        if not row.spelling.shown  # operands that follow from others cannot be drawn freely
    ),
    key=str,
)
MODES = ["forward", "reverse", "cross-country"]

Arrays = dict[str, np.ndarray]


def looped(e: tc.Expr, arrays: Arrays, names: set[str], count: int) -> np.ndarray:
    """e of every item by itself, stacked; `names` have the batch as their leading axis."""
    items = [{k: a[t] if k in names else a for k, a in arrays.items()} for t in range(count)]
    return np.stack([e(**item) for item in items])


def agrees(e: Any, arrays: Arrays, names: set[str], count: int, size: Any, tol: float) -> None:
    found = tc.vmap(e, dict.fromkeys(names, 0), size)(**arrays)
    extents = [n for n in e.shape if isinstance(n, int)]
    if count:
        close(found, looped(e, arrays, names, count), tol)
    else:
        assert found.size == 0
        assert found.shape[0] == 0
        assert len(extents) < e.ndim or found.shape[1:] == e.shape


# --- every row ------------------------------------------------------------------------------------


def with_row(row: Op) -> tuple[tuple[tc.Expr, ...], list[tc.Expr], Callable[[int], Arrays]]:
    """Outputs of the row on one item, its variables, and data of a batch of them."""
    params = row.admitted[0]
    cores = row.cores(params)
    variables = [tc.var(f"x{k}", (3,) * axes) for k, axes in enumerate(cores)]

    def data(count: int) -> Arrays:
        rng = np.random.default_rng(3)
        arrays = {}
        for v, axes, (low, high) in zip(variables, cores, row.domain, strict=True):
            arrays[v.name] = rng.uniform(low, high, size=(count, *v.shape))
            if axes == 2:
                arrays[v.name] += 3 * np.eye(3)
        return arrays

    operands = [symmetric_part(v) for v in variables] if row.meaning.symmetric else variables
    if row.parts:
        return apply_all(row, *operands, params=params), variables, data
    return (apply(row, *operands, params=params),), variables, data


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_rows(row: Op) -> None:
    """Batches of all operands and of each alone, literal and named, and first derivatives."""
    outputs, variables, data = with_row(row)
    names = [v.name for v in variables]
    some = [set(c) for k in range(1, len(names) + 1) for c in itertools.combinations(names, k)]
    for chosen, count in itertools.product(some, SIZES):
        arrays = {k: a if k in chosen else a[0] for k, a in data(max(count, 1)).items()}
        arrays = {k: a[:count] if k in chosen else a for k, a in arrays.items()}
        for e in outputs:
            agrees(e, arrays, chosen, count, count, 1e-11)
            agrees(e, arrays, chosen, count, "B", 1e-11)
            if count == 3:
                for v in [variables[k] for k in differentiable(row)]:
                    agrees(tc.jacobian(e, v), arrays, chosen, count, None, 1e-10)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_derivatives_of_batched_rows(row: Op, mode: str) -> None:
    """The Jacobian of a batch is that of every item on the diagonal of the batch."""
    outputs, variables, data = with_row(row)
    arrays = data(2)
    for e, v in itertools.product(outputs, [variables[k] for k in differentiable(row)]):
        batch = tc.vmap(e, {u: 0 for u in variables}, 2)  # noqa: C420
        found = tc.jacobian(batch, v.name, mode=mode)(**arrays)
        wanted = np.zeros((2, *e.shape, 2, *v.shape))
        for t in range(2):
            at = (t, *[slice(None)] * e.ndim, t)
            wanted[at] = tc.jacobian(e, v)(**{k: a[t] for k, a in arrays.items()})
        close(found, wanted, 1e-9)


# --- every node kind ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PRESENT)
@pytest.mark.parametrize("order", [0, 1, 2])
def test_cases(name: str, order: int) -> None:
    """Values and derivatives of the table of cases, all variables batched, and one of them."""
    c = BY_NAME[name]
    e = tc.derivative(c.expression(), c.targets[0], order)
    stacks = {v: np.stack([c.sample(seed)[v] for seed in range(3)]) for v in c.shapes}
    agrees(e, stacks, set(stacks), 3, "batch", 1e-10)
    first = c.targets[0]
    agrees(e, {**c.sample(), first: stacks[first]}, {first}, 3, 3, 1e-10)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("c", [BY_NAME[n] for n in PRESENT], ids=lambda c: c.name)
def test_derivatives_of_batched_cases(c: Any, mode: str) -> None:
    e, v = c.expression(), c.targets[0]
    batch = tc.vmap(e, dict.fromkeys(c.shapes, 0), 2)
    arrays = {u: np.stack([c.sample(seed)[u] for seed in range(2)]) for u in c.shapes}
    for order in (1, 2) if e.ndim < 2 else (1,):
        found = tc.derivative(batch, v, order, mode)(**arrays)
        x = len(c.shapes[v])
        shape = [2, *[EXTENTS.get(n, n) for n in e.shape]]
        wanted = np.zeros(shape + [2, *[EXTENTS.get(n, n) for n in c.shapes[v]]] * order)
        for t in range(2):
            at = (t, *[slice(None)] * e.ndim, *(t, *[slice(None)] * x) * order)
            wanted[at] = tc.derivative(e, v, order)(**{u: a[t] for u, a in arrays.items()})
        close(found, wanted, 1e-9)


GATHERED = {
    "gather": lambda x, w, idx: tc.exp(x)[idx] * w,
    "segments": lambda x, w, idx: tc.segment_sum(w * x[idx], idx, "n") * x,
    "selected twice": lambda x, w, idx: tc.outer(x[idx], w[idx[idx]]),
    "slices": lambda x, w, idx: tc.exp(x[1:] - x[:-1]) * tc.sum(w[::-1]),
    "convolution": lambda x, w, idx: tc.concatenate([x, w])[2:-1] * x[0],
    "shifted diagonals": lambda x, w, idx: tc.diag(x, 1) @ tc.exp(tc.diag(w, -1)),
    "segments of a cumulative sum": lambda x, w, idx: tc.segment_sum(tc.cumsum(x), idx, 4),
    "arange": lambda x, w, idx: x * tc.arange("n") + tc.where(tc.arange("n") < 2, w, x),
}


@pytest.mark.parametrize("chosen", [{"x"}, {"idx"}, {"x", "idx"}, {"x", "w", "idx"}], ids=sorted)
@pytest.mark.parametrize("name", GATHERED)
def test_gathers_and_indicators(name: str, chosen: set[str]) -> None:
    x, w, idx = tc.var("x", "n"), tc.var("w", "n"), tc.var("idx", "n", integer=True)
    e = GATHERED[name](x, w, idx)
    rng = np.random.default_rng(4)
    for count in SIZES:
        arrays: Arrays = {v: rng.normal(size=(count, 4) if v in chosen else 4) for v in ("x", "w")}
        arrays["idx"] = rng.integers(0, 4, size=(count, 4) if "idx" in chosen else 4)
        present = chosen & e.variables.keys()
        if not present:
            continue
        given = {k: arrays[k] for k in e.variables}
        agrees(e, given, present, count, "B", 1e-11)
        for order in (1, 2):
            agrees(tc.derivative(e, x, order), given, present, count, count, 1e-10)


# --- structure ------------------------------------------------------------------------------------


def test_jacobian_is_block_diagonal() -> None:
    x, A = tc.var("x", "n"), tc.var("A", ("n", "n"))
    rows = tc.vmap(tc.sin(A @ x), {x: 0}, "B")
    J = tc.jacobian(rows, "x")
    compressed = tc.compress(J)
    assert str(compressed).count("delta") == 1
    held = tc.compile(J, structured=True)(x=np.ones((1000, 4)), A=np.eye(4))
    assert held.shape == (1000, 4, 1000, 4)
    assert held.nbytes <= 8 * 1000 * 16
    H = tc.hessian(tc.sum(tc.vmap(tc.logsumexp(A @ x), {x: 0}, "B")), "x")
    solved = tc.compile(H, structured=True)(x=np.ones((50, 4)), A=np.eye(4))
    assert "block" in solved.explain()


def test_batch_of_a_product_is_the_product() -> None:
    A, x, X = tc.var("A", ("m", "n")), tc.var("x", "n"), tc.var("x", ("B", "n"))
    assert tc.vmap(A @ x, {"x": 0}, "B") is X @ A.T
    assert tc.vmap(A @ x, {"x": 1}, "B") is tc.var("x", ("n", "B")).T @ A.T
    assert tc.vmap(tc.outer(x, x), {"x": 0}, "B") is X[:, :, None] * X[:, None, :]


def test_chains_are_linear_and_shared() -> None:
    x = tc.var("x", "n")
    e: tc.Expr = x
    for _ in range(5_000):
        e = tc.sin(e) + x
    assert tc.vmap(e, {"x": 0}, "B").shape == ("B", "n")


def test_nests_axes_and_variables_that_cancel() -> None:
    x, y = tc.var("x", "n"), tc.var("y", "n")
    found = tc.vmap({"a": x * y, "b": (tc.sum(x), y)}, {"x": 1, y: None}, "B")
    values = found(x=np.arange(6.0).reshape(2, 3), y=np.ones(2))
    np.testing.assert_array_equal(values["a"], np.arange(6.0).reshape(2, 3).T)
    np.testing.assert_array_equal(values["b"][0], [3, 5, 7])
    np.testing.assert_array_equal(values["b"][1], np.ones((3, 2)))
    constant = tc.vmap(tc.grad(tc.sum(2 * x), x), {"x": 0})
    np.testing.assert_array_equal(constant(x=np.zeros((3, 2))), np.full((3, 2), 2))
    assert tc.vmap(tc.var("u", "B") * 2, {"u": -1}).shape == ("B1", "B")


def test_properties_stay() -> None:
    S = tc.var("S", ("n", "n"), symmetric=True)
    batch = tc.vmap(tc.linalg.logdet(S), {"S": 0}, "B")
    assert batch.variables["S"].properties == ("symmetric",)
    a = np.array([[2.0, 0.5], [0.5, 1.0]])
    np.testing.assert_allclose(tc.jacobian(batch, "S")(S=[a])[0, 0], np.linalg.inv(a))


@pytest.mark.parametrize("length", ["n", 3])
def test_what_is_the_same_for_all_and_nodes_that_vary(length: Any) -> None:
    """In one pass: also below a node that varies as a whole, and in loops."""
    x, w, c = tc.var("x", "m"), tc.var("w", ("m", "m")), tc.var("c", "m")
    A, b, y = tc.var("A", ("m", "m")), tc.var("b", "m"), tc.var("y", (length, "m"))
    inner, plain = tc.tanh(w @ x + c), tc.exp(w @ c)
    loop = tc.fold(lambda s, t: tc.sin(w @ s) + x, c, 4)
    roots = [inner * x + c, loop * inner, x @ w @ plain, plain]
    rng = np.random.default_rng(3)
    arrays = {name: rng.normal(size=(3, 2)[-n:]) for name, n in (("b", 1), ("y", 2))}
    arrays["A"] = rng.normal(size=(2, 2))
    at_w, at_c = arrays["A"] + arrays["A"].T, np.exp(arrays["b"])

    def expected(row: np.ndarray, replaced: bool) -> list[Any]:
        z, p, s = np.sin(row) if replaced else np.tanh(at_w @ row + at_c), np.exp(at_w @ at_c), at_c
        for _ in range(4):
            s = np.sin(at_w @ s) + row
        return [z * row + at_c, s * z, row @ at_w @ p, p]

    nodes: dict[tc.Expr, tc.Expr]
    for nodes in ({x: y}, {x: y, inner: tc.sin(y)}):
        found = with_batch_axis(roots, nodes, length, {w: A + A.T, c: tc.exp(b)})
        rows = [expected(row, len(nodes) > 1) for row in arrays["y"]]
        for e, root, values in zip(found, roots, zip(*rows, strict=True), strict=True):
            assert e.shape == (length, *root.shape)
            given = {name: arrays[name] for name in e.variables}
            given |= {"n": 3} if length == "n" and "y" not in given else {}  # type: ignore[dict-item]
            close(e(**given), np.stack(values), 1e-12)


def test_errors() -> None:
    x, S = tc.var("x", "n"), tc.var("S", ("n", "n"), symmetric=True)
    with pytest.raises(TypeError, match=r"z is no variable of the expression \(x\)"):
        tc.vmap(x, {"z": 0})
    with pytest.raises(TypeError, match="in_axes is a mapping"):
        tc.vmap(x, 0)
    with pytest.raises(tc.ShapeError, match="axis 2 of x is out of range for 2 axes"):
        tc.vmap(x, {"x": 2})
    with pytest.raises(tc.ShapeError, match="S is symmetric in its last two axes"):
        tc.vmap(S, {"S": 2})
    with pytest.raises(tc.ShapeError, match="extent -1 is negative"):
        tc.vmap(x, {"x": 0}, -1)
    with pytest.raises(tc.ShapeError, match=r"a batch of x has shape \(n,\), expected \(3, n\)"):
        with_batch_axis([x], {x: x}, 3)


# --- integers along axes --------------------------------------------------------------------------


def test_affine_integers_are_relabelled() -> None:
    """What `i` picks, when `i` runs over a range, is a transposition, a diagonal or a slice."""
    i, j = (tc.var(name, integer=True) for name in "ij")
    M, x = tc.var("M", ("m", "n")), tc.var("x", "n")
    rows = with_batch_axis([M[j, i]], {j: tc.arange("m")}, "m")
    assert with_batch_axis(rows, {i: tc.arange("n")}, "n")[0] is M.T
    square = tc.var("A", ("n", "n"))
    assert with_batch_axis([square[i, i]], {i: tc.arange("n")}, "n")[0] is tc.diagonal(square)
    idx = tc.var("idx", "k", integer=True)
    assert with_batch_axis([x[idx[i]]], {i: tc.arange("k")}, "k")[0] is x[idx]


def test_out_of_range_integers() -> None:
    i = tc.var("i", integer=True)
    with pytest.raises(RangeError, match="index 4 is out of range for an axis of extent 4"):
        with_batch_axis([tc.var("x", 4)[i]], {i: tc.arange(5)}, 5)
    late = with_batch_axis([tc.var("x", "n")[i]], {i: tc.arange("m")}, "m")[0]
    np.testing.assert_array_equal(late(x=np.arange(4.0), m=3), np.arange(3.0))
    with pytest.raises(RangeError, match=r"an index \[i\]: index 4 is out of range"):
        late(x=np.arange(4.0), m=5)


def test_integers_that_are_expressions_stay_indices() -> None:
    x, places = np.array([2.0, 3.0, 5.0, 7.0]), np.array([[0, 1], [2, 3]])
    rows = tc.vmap(lambda r: tc.vmap(lambda k: tc.take(x, k))(r))(places)
    np.testing.assert_array_equal(rows, x[places])
    picked = tc.compile(lambda ks, x: tc.vmap(lambda k: x[k])(ks))
    np.testing.assert_array_equal(picked(places[0], x), x[places[0]])


# --- where the axis stands in results -------------------------------------------------------------


def test_the_axis_of_results_is_where_it_is_wanted() -> None:
    x, A = tc.var("x", "n"), tc.var("A", ("n", "n"))
    data = {"x": RNG.normal(size=(4, 3)), "A": RNG.normal(size=(3, 3))}
    e = A * x * x
    rows = tc.vmap(e, {"x": 0})(data)
    for axis in (0, 1, 2, -1, -3):
        moved = tc.vmap(e, {"x": 0}, out_axes=axis)
        np.testing.assert_array_equal(moved(data), np.moveaxis(rows, 0, axis))
        assert moved.shape[axis] == "B"
    several = tc.vmap({"a": e, "b": (x, tc.sum(x))}, {"x": 0}, out_axes={"a": 2, "b": (1, 0)})
    assert several["a"].shape == ("n", "n", "B")
    assert [part.shape for part in several["b"]] == [("n", "B"), ("B",)]
    assert tc.grad(tc.sum(several["a"]), "x").shape == ("B", "n")


def test_the_axis_of_results_of_functions() -> None:
    def several(v: Any) -> Any:
        return {"a": 2 * v, "b": [np.outer(v, v), np.sum(v)]}

    given = RNG.normal(size=(4, 3))
    plain = tc.vmap(several)(given)
    moved = tc.vmap(several, out_axes={"a": 1, "b": [-1, 0]})(given)
    np.testing.assert_array_equal(moved["a"], plain["a"].T)
    np.testing.assert_array_equal(moved["b"][0], np.moveaxis(plain["b"][0], 0, 2))
    np.testing.assert_array_equal(moved["b"][1], plain["b"][1])
    upper = tc.vmap(several, out_axes={"a": 1, "b": 0})(given)
    np.testing.assert_array_equal(upper["b"][0], plain["b"][0])
    again = tc.vmap(several)(given)
    np.testing.assert_array_equal(again["a"], plain["a"])
    slopes = tc.vmap(tc.grad(lambda v: np.sum(v**3)), out_axes=1)(given)
    np.testing.assert_allclose(slopes, 3 * given.T**2)


@pytest.mark.parametrize(
    ("out_axes", "error", "words"),
    [
        (2, tc.ShapeError, "vmap: out_axes: axis 2 is out of range for 2 axes"),
        (None, tc.ShapeError, "vmap: out_axes: axis None is out of range"),
        ([0, 1], TypeError, r"out_axes=\[0, 1\] for results of shapes \{'a': \(3,\)\}"),
        ({"b": 0}, TypeError, r"out_axes=\{'b': 0\} for results"),
    ],
)
def test_axes_that_results_do_not_have(out_axes: Any, error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        tc.vmap(lambda v: {"a": 2 * v}, out_axes=out_axes)(np.ones((2, 3)))
