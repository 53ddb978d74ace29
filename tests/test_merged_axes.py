"""Axes of named extents merged and split: ravel, reshape, kron, vec, and subscripts n*i+j."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.graph import trees
from tcalc.graph.extents import extent_of
from tests.test_code import loaded

MODES = ("forward", "reverse", "cross-country")
SIZES = {"m": 2, "n": 3, "p": 2, "q": 2, "k": 4}
RNG = np.random.default_rng(0)
X, A, B = tc.var("X", ("m", "n")), tc.var("A", ("m", "n")), tc.var("B", ("p", "q"))
x, W, z = tc.var("x", "m*n"), tc.var("W", ("k", "m*n")), tc.var("z", "n*q")


def shape_of(e: Any) -> tuple[int, ...]:
    return tuple(extent_of(extent, SIZES) for extent in e.shape)


DATA = {v.name: RNG.uniform(0.5, 1.5, shape_of(v)) for v in (X, A, B, x, W, z)}

#: An expression, the variable it is differentiated by, and the same in NumPy.
CASES: dict[str, tuple[Any, Any, Any]] = {
    "ravel": (tc.ravel(X) ** 3, X, lambda d: d["X"].ravel() ** 3),
    "split": (tc.exp(x.reshape("m", "n")), x, lambda d: np.exp(d["x"].reshape(2, 3))),
    "vec": (tc.vec(X) * x, X, lambda d: d["X"].T.ravel() * d["x"]),
    "weights": (tc.tanh(W @ tc.ravel(X)), X, lambda d: np.tanh(d["W"] @ d["X"].ravel())),
    "kron": (tc.sin(tc.kron(A, B)), A, lambda d: np.sin(np.kron(d["A"], d["B"]))),
    "kron-product": (
        tc.exp(tc.kron(A, B) @ z), B, lambda d: np.exp(np.kron(d["A"], d["B"]) @ d["z"]),
    ),
    "power": (tc.kron(A, A), A, lambda d: np.kron(d["A"], d["A"])),
    "turned": (
        tc.ravel(x.reshape("n", "m").T ** 2), x, lambda d: d["x"].reshape(3, 2).T.ravel() ** 2,
    ),
    "reduced": (tc.logsumexp(tc.ravel(X)), X, lambda d: np.log(np.exp(d["X"]).sum())),
    "sliced": (
        tc.ravel(X)[1:] * tc.ravel(X)[:-1], X,
        lambda d: d["X"].ravel()[1:] * d["X"].ravel()[:-1],
    ),
    "read so": (
        2 * (tc.exp(x.reshape("m", "n")) * A).T + 1, x,
        lambda d: 2 * (np.exp(d["x"].reshape(2, 3)) * d["A"]).T + 1,
    ),
    "read in two shapes": (
        tc.ravel(tc.sin(x.reshape("m", "n")) @ tc.cos(x.reshape("n", "m"))), x,
        lambda d: (np.sin(d["x"].reshape(2, 3)) @ np.cos(d["x"].reshape(3, 2))).ravel(),
    ),
    "broadcast": (tc.ravel(X)[:, None] * B[0], X, lambda d: d["X"].ravel()[:, None] * d["B"][0]),
}  # fmt: skip


def values(e: Any) -> Any:
    return e({name: DATA[name] for name in e.variables} | SIZES)


@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_numpy(name: str, tmp_path: Path) -> None:
    e, _, reference = CASES[name]
    wanted = reference(DATA)
    for backend in ("numpy", "c"):
        step = tc.compile(e, backend=backend)
        found = step({k: DATA[k] for k in e.variables} | SIZES)
        np.testing.assert_allclose(found, wanted, rtol=1e-13)
    function = loaded(tc.to_code(tc.simplify(e)), tmp_path)
    data = {k: DATA[k] for k in e.variables}
    code = function.__code__
    free = {k: SIZES[k] for k in code.co_varnames[: code.co_argcount] if k in SIZES}
    np.testing.assert_allclose(function(**data, **free), wanted, rtol=1e-13)


@pytest.mark.parametrize("name", CASES)
def test_derivatives_to_the_third_order(name: str) -> None:
    """Against central differences of the order below, in all modes; structured ones are dense."""
    e, wrt, reference = CASES[name]
    at = DATA[wrt.name]

    def below(order: int, data: dict[str, Any]) -> Any:
        if not order:
            return reference(data)
        derivative = tc.derivative(e, wrt, order)
        return derivative({k: data[k] for k in derivative.variables if k in data} | SIZES)

    for order in (1, 2, 3):
        columns = []
        for step in 1e-5 * np.eye(at.size).reshape(at.size, *at.shape):
            ends = [below(order - 1, DATA | {wrt.name: at + h}) for h in (step, -step)]
            columns.append((ends[0] - ends[1]) / 2e-5)
        wanted = np.stack(columns, axis=-1).reshape(columns[0].shape + at.shape)
        for mode in MODES:
            found = values(tc.derivative(e, wrt, order, mode))
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
        held = tc.compile(tc.derivative(e, wrt, order), structured=True)
        data = {k: DATA[k] for k in e.variables} | SIZES
        np.testing.assert_allclose(held(data).todense(), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_index_text_reads_back(name: str) -> None:
    e, wrt, _ = CASES[name]
    for order, mode in itertools.product((0, 1, 2), MODES):
        whole = tc.derivative(e, wrt, order, mode) if order else e
        shapes = {v.name: v.shape for v in whole.variables.values()}
        again = tc.parse_index(tc.to_index(whole), **shapes)
        np.testing.assert_allclose(values(again), values(whole), rtol=1e-12, atol=1e-14)


def test_what_is_split_meets_what_was_merged() -> None:
    assert tc.simplify(tc.ravel(X).reshape("m", "n")) is X
    assert tc.simplify(tc.ravel(x.reshape("n", "m"))) is x
    assert tc.simplify(tc.exp(tc.ravel(X)).reshape("m", "n")) is tc.exp(X)
    assert tc.simplify(tc.sum(tc.ravel(X) * tc.ravel(A))) is tc.simplify(tc.sum(X * A))
    assert "merge" not in str(tc.compile(tc.sum(tc.exp(tc.ravel(X)))).plan)


def test_kronecker_products_are_not_formed() -> None:
    """(A ⊗ B) z takes two products with the factors."""
    flops = tc.compile(tc.kron(A, B) @ z).plan_for(A=(50, 50), B=(50, 50), z=(2500,)).flops
    assert flops <= 4 * 50**3 + 1e4
    H = tc.compress(tc.hessian(tc.sum(tc.exp(tc.kron(A, B))), A))
    assert "delta[i,k] * delta[j,l]" in str(H)


def test_derivatives_of_reshapes_are_unit_tensors() -> None:
    J = tc.compile(tc.jacobian(tc.ravel(X), X), structured=True)(X=np.ones((40, 50)))
    assert J.nbytes < 10 * 2000 * 8
    H = tc.compile(tc.hessian(tc.sum(tc.exp(x.reshape("m", "n"))), x), structured=True)
    found = H(x=np.linspace(0, 1, 2000), m=40)
    assert found.nbytes < 10 * 2000 * 8
    np.testing.assert_allclose(found.solve(np.ones(2000)), np.exp(-np.linspace(0, 1, 2000)))


def variation(U: Any) -> Any:
    right, below = U[1:, :-1] - U[:-1, :-1], U[:-1, 1:] - U[:-1, :-1]
    return tc.sum(tc.sqrt(right**2 + below**2 + 0.01)) + tc.sum(U**2)


def test_images_in_vectors_have_the_hessians_of_images() -> None:
    image, vector = tc.var("U", (12, 10)), tc.var("u", 120)
    plain = tc.compile(tc.hessian(variation(image), image))
    merged = tc.compile(tc.hessian(variation(vector.reshape(12, 10)), vector))
    at = RNG.normal(size=(12, 10))
    np.testing.assert_allclose(merged(u=at.ravel()), plain(U=at).reshape(120, 120), atol=1e-13)
    assert merged.plan.flops <= plain.plan.flops


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_small_arrays_change_their_shape_in_c(dtype: type) -> None:
    """What is left to NumPy ends a function, and is asked for at every step of a loop."""
    w, v = tc.var("w", 12), tc.var("v", (4, 3))
    moved = tc.fold(lambda s, t: tc.ravel(tc.tanh(s.reshape(3, 4).T @ v.reshape(3, 4))[:3]), w, 5)
    e = [tc.grad(tc.sum(tc.exp(w.reshape(3, 4)) @ v), (w, v)), moved, tc.ravel(v.T) * 2]
    step, plain = (tc.compile(e, backend=b) for b in ("c", "numpy"))
    values = {"w": RNG.normal(size=12), "v": RNG.normal(size=(4, 3))}
    given = {name: a.astype(dtype) for name, a in values.items()}
    strided = {"w": np.repeat(given["w"], 3)[::3], "v": np.asfortranarray(given["v"])[:, :]}
    for data in (given, given, strided, strided):
        for found, wanted in zip(trees.leaves(step(data)), trees.leaves(plain(data)), strict=True):
            assert found.dtype == dtype
            np.testing.assert_allclose(found, wanted, rtol=1e-5 if dtype is np.float32 else 1e-13)
    assert step._engine.entries


SUBSCRIPTS = {
    "f[i=0..m-1, j=0..n-1] = x[n*i+j]": lambda x: x.reshape(2, 3),
    "f[i=0..m-1, j=0..n-1] = x[i+j*m]": lambda x: x.reshape(3, 2).T,
    "f[j=0..n-1] = x[n*(m-1)+j]": lambda x: x.reshape(2, 3)[1],
    "f[i=0..m-2, j=0..n-1] = x[n*(i+1)+j] - x[n*i+j]": lambda x: np.diff(x.reshape(2, 3), axis=0),
    "f[i=0..m-1] = sum[j=0..n-2](x[n*i+j]*x[n*i+j+1])": lambda x: np.array(
        [x[0] * x[1] + x[1] * x[2], x[3] * x[4] + x[4] * x[5]]
    ),
    "f[k=0..m*n-1] = sum[i=0..m-1, j=0..n-1]([k == n*i+j]*x[n*i+j]^2)": lambda x: x**2,
    "f[k=0..m*n-1] = sum[i=0..m-1,j=0..n-1]([k==m*j+i]*x[n*i+j])": lambda x: x[[0, 3, 1, 4, 2, 5]],
}  # fmt: skip


@pytest.mark.parametrize("text", SUBSCRIPTS)
def test_subscripts_with_multiples_by_dimensions(text: str, tmp_path: Path) -> None:
    e, data = tc.parse_index(text, x="m*n"), np.arange(1.0, 7.0)
    wanted = SUBSCRIPTS[text](data)
    sizes = {"m": 2, "n": 3}
    np.testing.assert_array_equal(e(x=data, **sizes), wanted)
    again = tc.parse_index(tc.to_index(e), x="m*n")
    np.testing.assert_array_equal(again(x=data, **sizes), wanted)
    function = loaded(tc.to_code(e), tmp_path)
    np.testing.assert_array_equal(function(x=data, **sizes), wanted)
    fixed = tc.parse_index(text.replace("m", "2").replace("n", "3").replace("su2", "sum"), x=6)
    gradient = tc.grad(tc.sum(tc.sin(fixed)), "x")(x=data)
    for mode in MODES:
        found = tc.derivative(tc.sum(tc.sin(e)), "x", 1, mode)(x=data, **sizes)
        np.testing.assert_allclose(found, gradient, rtol=1e-13, atol=1e-14)


def test_subscripts_outside_are_refused_at_evaluation() -> None:
    e = tc.parse_index("f[i=0..k-1, j=0..n-1] = x[n*i+j]*y[i]", x="m*n", y="k")
    data = {"x": np.arange(6.0), "m": 2, "n": 3}
    assert e(data | {"y": np.ones(1)}).shape == (1, 3)
    with pytest.raises(tc.ShapeError, match="out of range"):
        e(data | {"y": np.ones(3)})


def test_text_of_kronecker_products_and_columns() -> None:
    shapes: dict[str, Any] = {"A": ("m", "n"), "B": ("p", "q"), "X": ("n", "p")}
    data = {
        "A": RNG.normal(size=(2, 3)),
        "B": RNG.normal(size=(4, 2)),
        "X": RNG.normal(size=(3, 4)),
    }
    left = tc.parse("kron(B', A)*vec(X)", **shapes)
    right = tc.parse("vec(A*X*B)", **shapes)
    assert left.shape == right.shape == ("m*q",)
    np.testing.assert_allclose(left(data), right(data), rtol=1e-13)
    for mode in MODES:
        found = (tc.derivative(e, "X", 1, mode)(data) for e in (left, right))
        np.testing.assert_allclose(*found, rtol=1e-13)
    assert tc.parse("A ⊗ B", **shapes) is tc.kron(A, B)
    assert tc.parse("v'*vec(A)", v="m*n", A=("m", "n")).shape == ()
    with pytest.raises(tc.ShapeError, match=r"m\*n"):
        tc.parse("v + vec(A)", v="n", A=("m", "n"))
    with pytest.raises(tc.ShapeError, match="takes a matrix"):
        tc.parse("vec(v)", v="n")


@pytest.mark.parametrize("turned", [False, True])
def test_diagonals_of_what_is_split_are_not_all_of_it(turned: bool) -> None:
    """Splits of two arrays that meet entry by entry are one sum; on their diagonal they are not."""
    a, b = tc.var("a", 9), tc.var("b", 9)
    data = {"a": np.arange(9.0), "b": np.arange(9.0) ** 2}
    A, B = (v.reshape(3, 3).T if turned else v.reshape(3, 3) for v in (a, b))
    one, two = (data[k].reshape((3, 3), order="F" if turned else "C") for k in "ab")
    for e, wanted in (
        (tc.trace(A), 12.0),
        (tc.sum(tc.diag(A) * tc.diag(B)), 64 + 512.0),
        (tc.trace(A @ B), np.trace(one @ two)),
        (tc.sum(A * B), 1296.0),
        (tc.sum(A * B.T), np.sum(one * two.T)),
        (tc.einsum("ij,ik->", A, B), np.sum(one.sum(1) * two.sum(1))),
    ):
        assert float(tc.simplify(e)({k: data[k] for k in e.variables})) == wanted
