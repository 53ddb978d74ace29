"""Memory that printed programs take: slices, windows, products and gathers as plans take it."""

from __future__ import annotations

import ast
import inspect
import re
import tracemalloc
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.extents import extent_of
from tests import cases
from tests.shared import run_source

x, w, X = tc.var("x", "n"), tc.var("w", "n"), tc.var("X", ("m", "n"))
A, B = tc.var("A", (30, 30)), tc.var("B", (20, 20))
g = tc.var("g", "k", integer=True)
variation = tc.sum((x[1:] - x[:-1]) ** 2)
line = tc.parse_index("y[i=0..n-p] = sum[k](w[k]*x[i+k])", x="n", w="p")
area = tc.parse_index(
    "y[i=0..m-p,j=0..n-q] = sum[k,l](w[k,l]*x[i+k,j+l])", x=("m", "n"), w=("p", "q")
)
y, weighted = tc.var("y", "m"), tc.var("d", "m")
logistic = tc.sum(tc.log(1 + tc.exp(-y * (X @ w))))
T, U, V = tc.var("T", ("m", "n")), tc.var("U", ("m", "p")), tc.var("V", ("n", "p"))
factors = tc.sum((T - U @ V.T) ** 2)
by_line, by_area = tc.var("u", "n-p+1"), tc.var("u", ("m-p+1", "n-q+1"))

W, S = tc.var("W", (4, 4)), tc.var("S", ("n", 4))
last = tc.fold(lambda s, t: tc.tanh(W @ s + S[t]), tc.zeros(4), "n")
#: Expressions, and the extent n.
CASES: dict[str, tuple[tc.Expr, int]] = {
    "differences": (variation, 4000),
    "gradient of differences": (tc.grad(variation, x), 4000),
    "backwards": (tc.sum(x[::-1] * w), 4000),
    "gradient of backwards": (tc.grad(tc.sum(x[::-1] * w**2), x), 4000),
    "strides": (tc.grad(tc.sum(tc.exp(X[::2, 1:])), X), 300),
    "roll": (tc.roll(x, 3), 4000),
    "pad": (tc.pad(x, 2), 4000),
    "concatenate": (tc.concatenate([x, w]), 4000),
    "convolution": (line, 4000),
    "its gradient by what is filtered": (tc.vjp(line, "x", by_line), 4000),
    "its gradient by the filter": (tc.vjp(line, "w", by_line), 4000),
    "convolution of images": (area, 300),
    "its gradient by the image": (tc.vjp(area, "x", by_area), 300),
    "its gradient by the mask": (tc.vjp(area, "w", by_area), 300),
    "Kronecker": (tc.linalg.kron(A, B), 0),
    "gradient of Kronecker": (tc.grad(tc.sum(tc.linalg.kron(A, B) ** 2), A), 0),
    "gather": (X[:, g], 300),
    "gradient of a gather": (tc.grad(tc.sum(tc.exp(x[g])), x), 4000),
    "logistic regression": (logistic, 300),
    "its gradient": (tc.grad(logistic, w), 300),
    "its Hessian": (tc.hessian(logistic, w), 300),
    "Hessian of a factorisation": (tc.hessian(factors, U), 60),
    "Hessian of a loop": (tc.hessian(last @ last, W), 10),
    "products for all places of an axis": (
        tc.einsum("aijk,akl->ijla", tc.var("P", (10, 4, 4, 4)), tc.var("Q", (10, 4, 4))),
        0,
    ),
    "Hessian of a gather": (tc.hessian(tc.sum(tc.exp(x[g])), x), 300),
}
#: What Python's own objects take.
OBJECTS = 8192


@pytest.mark.parametrize("name", CASES)
def test_peaks_are_those_of_plans(name: str) -> None:
    e, n = CASES[name]
    rng, sizes = np.random.default_rng(0), {"n": n, "m": 200, "p": 7, "q": 5, "k": 1000}
    data: dict[str, Any] = {}
    for v in e.variables.values():
        shape = tuple([extent_of(extent, sizes) for extent in v.shape])
        data[v.name] = rng.integers(0, n, shape) if v.integral else rng.normal(size=shape)
    source = tc.to_code(e)
    assert "arange" not in source or name == "roll"  # by any number of places: these are listed
    scope: dict[str, Any] = {}
    exec(source, scope)
    given = {p: data.get(p, sizes.get(p)) for p in inspect.signature(scope["f"]).parameters}
    scope["f"](**given)
    tracemalloc.start()
    found = scope["f"](**given)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    step = tc.compile(e)
    np.testing.assert_allclose(found, step(data), rtol=1e-10, atol=1e-10)
    plan = step.plan_for(**{name: a.shape for name, a in data.items()})
    assert peak <= 1.5 * plan.peak_bytes + OBJECTS


@pytest.mark.parametrize(
    ("e", "text"),
    [
        (x[1:] - x[:-1], "x[1:] - x[:-1]"),
        (x[::-1], "x[::-1]"),
        (X[:2, ::3], "X[:2, ::3]"),
        (X.T[1:], "X[:, 1:].T"),
        (x[3], "x[3]"),
        (line, "_correlate(_window(x, "),
        (tc.diag(x, 1), "_place("),
    ],
    ids=str,
)
def test_slices_are_written_as_such(e: tc.Expr, text: str) -> None:
    assert text in tc.to_code(e)


@pytest.mark.parametrize(
    ("e", "text"),
    [
        (tc.hessian(logistic, w), "t2.T @ t2"),
        (X.T @ tc.diag(tc.exp(y)) @ X, "t1.T @ t1"),
        (X.T @ tc.diag(weighted**2) @ X, "t1.T @ t1"),
        (X @ tc.diag(tc.exp(x)) @ X.T, "t1 @ t1.T"),
        (X.T @ tc.diag(weighted) @ X, "X.T * d @ X"),  # of either sign
    ],
    ids=str,
)
def test_equal_halves_of_a_product_are_one_array(e: tc.Expr, text: str) -> None:
    """BLAS has half the work where one array is multiplied by its transpose."""
    assert text in tc.to_code(e)
    rng = np.random.default_rng(3)
    sizes = {"m": 6, "n": 4}
    data = {v.name: rng.normal(size=[sizes[k] for k in v.shape]) for v in e.variables.values()}
    np.testing.assert_allclose(run_source(e, data), e(data), rtol=1e-12, atol=1e-12)


def test_unit_tensors_of_a_sum_are_one_array() -> None:
    """Each is added to its diagonal of the other terms, or of one array of zeros."""
    a, b, c = tc.var("a", ("n", "m")), tc.var("b", "n"), tc.var("c")
    D, E = tc.var("D", ("n", "n", "m", "m")), tc.var("E", ("n", "n", "m", "m"))
    one, two = tc.einsum("ij->iijj", a), tc.einsum("i->iijj", b, sizes={"j": "m"})
    rows = tc.einsum("ijk->iijk", tc.exp(a[:, :, None] * a[:, None, :]))
    eye = c * tc.einsum("->iijj", sizes={"i": "n", "j": "m"})
    cases = [
        (one - tc.exp(two), 1),
        (rows - 2 * one, 1),
        (rows + one * c + eye, 1),
        (eye - one, 1),
        (tc.exp(D) + rows - one, 0),
        (D + E - rows + eye, 0),
        (D - one - rows, 1),
        (tc.exp(D) * (D - one) + rows, 1),
        (tc.hessian(tc.sum(tc.exp(a) ** 2) + c * tc.sum(a**2) + tc.sum(tc.sum(a, 1) ** 3), a), 1),
    ]
    rng = np.random.default_rng(0)
    for e, zeros in cases:
        data = {
            v.name: rng.normal(size=[{"n": 3, "m": 2}[str(k)] for k in v.shape])
            for v in e.variables.values()
        }
        given = {name: array.copy() for name, array in data.items()}
        np.testing.assert_allclose(run_source(e, {**data, "n": 3, "m": 2}), e(data), rtol=1e-12)
        assert all(np.array_equal(data[name], array) for name, array in given.items())
        assert tc.to_code(e).count("= np.zeros(") <= zeros
        for language in ("jax", "torch", "julia", "matlab", "c"):
            tc.to_code(e, language)


def test_long_programs_do_not_hold_what_nothing_reads() -> None:
    """A few arrays of many: every value is read twice by the next ones, and then no more."""
    a, b, n = x, w, 1000
    for _ in range(40):
        a, b = tc.tanh(b) * a, tc.sin(a) + b
    e = a @ a + b @ b
    source, scope = tc.to_code(e), dict[str, Any]()
    assert "del t1, " in source
    exec(source, scope)
    data = {"x": np.linspace(0, 1, n), "w": np.linspace(1, 2, n)}
    tracemalloc.start()
    found = scope["f"](**data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 24 * 8 * n
    np.testing.assert_allclose(found, e(data), rtol=1e-9)


@pytest.mark.parametrize("around", [1, 2, 3])
def test_arrays_larger_than_all_that_is_given_are_not_held(around: int) -> None:
    """Tables of three axes, each read twice, however many statements stand between them."""
    n = 40
    table, u = tc.sin(x[:, None, None] * x[:, None] * w), x
    for _ in range(6):
        table = tc.tanh(tc.einsum("ijk,kl->ijl", table, tc.sum(table, 0)))
        for _ in range(around):
            u = tc.tanh(tc.cos(u) * (w @ u) / n + tc.sin(u) * (x @ u) / n)
    u = u * tc.sum(table)
    e, scope = u @ u, dict[str, Any]()
    exec(tc.to_code(e, sizes={"n": n}), scope)
    data = {"x": np.linspace(0, 1, n), "w": np.linspace(1, 2, n)}
    tracemalloc.start()
    found = scope["f"](**data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    step = tc.compile(e)
    np.testing.assert_allclose(found, step(data), rtol=1e-9)
    assert peak <= 1.5 * step.plan_for(x=(n,), w=(n,)).peak_bytes + OBJECTS


def test_a_minus_sign_copies_no_matrix() -> None:
    assert "-(X.T @ " in tc.to_code(tc.grad(logistic, w))
    assert "return y - X @ w\n" in tc.to_code(y - X @ w)


def test_a_window_that_stands_twice_is_made_once() -> None:
    e = tc.hessian(tc.sum(area**2), "w")
    source = tc.to_code(e)
    assert source[source.index("def f(") :].count("_window(") == 1
    rng = np.random.default_rng(0)
    data = {"x": rng.normal(size=(7, 6)), "w": rng.normal(size=(3, 2))}
    np.testing.assert_allclose(run_source(e, data), e(data), rtol=1e-12)


@pytest.mark.parametrize(
    ("e", "copies"),
    [
        (tc.exp(X).T, 0),
        (tc.exp(X), 0),
        ((tc.exp(X), tc.exp(X).T), 1),
        ((tc.exp(X).T, tc.sum(tc.exp(X))), 1),
        (X.T, 1),
        ((X @ T.T).T, 0),
        (x[::-1], 1),
        (tc.reshape(X, ("m*n",)), 1),
        ((tc.exp(X), tc.exp(X)), 1),
        (tc.reshape(tc.exp(X), ("m*n",)), 0),
    ],
    ids=str,
)
def test_results_are_copied_where_something_else_has_their_memory(e: Any, copies: int) -> None:
    source = tc.to_code(e)
    assert source.count("np.array(") == copies
    rng = np.random.default_rng(0)
    data = {"X": rng.normal(size=(4, 3)), "T": rng.normal(size=(4, 3)), "x": rng.normal(size=3)}
    found = run_source(e, data)
    arrays = [*(found if isinstance(e, tuple) else [found]), *data.values()]
    for k, one in enumerate(arrays):
        assert not any(np.shares_memory(one, other) for other in arrays[:k])


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("language", ["numpy", "torch"])
def test_what_nothing_reads_is_not_computed(language: str, order: int) -> None:
    """Of every case: arrays that repeat entries are read narrow, and then not made."""
    for case in cases.CASES:
        if case.order < order:
            continue
        x = case.targets[0]
        e = tc.derivative(case.expression(), tc.var(x, case.shapes[x]), order)
        tree = ast.parse(tc.to_code(e, language))
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef) and function.name == "f":
                names = [n for n in ast.walk(function) if isinstance(n, ast.Name)]
                read = {n.id for n in names if isinstance(n.ctx, ast.Load)}
                assert {n.id for n in names if re.fullmatch(r"t+\d+", n.id)} <= read, case.name


@pytest.mark.parametrize("n", [1, 2, 3])
def test_slices_of_short_arrays(n: int) -> None:
    for e in (x[1:], x[:-1], x[::-2], tc.grad(variation, x), tc.pad(x, 1), tc.diag(x, -1)):
        scope: dict[str, Any] = {}
        exec(tc.to_code(e), scope)
        at = np.arange(1.0, n + 1)
        np.testing.assert_array_equal(scope["f"](at), e(x=at))
