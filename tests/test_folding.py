"""`fold`: sums where a body only adds, loops elsewhere, and both equal to unrolled bodies."""

# ruff: noqa: E501 (a row of a table is one line)

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc import build, fold
from tcalc.graph import trees
from tcalc.ops.arithmetic import as_expr
from tests.test_operators import close

A, X, x, y = tc.var("A", ("n", "n")), tc.var("X", ("T", "n")), tc.var("x", "n"), tc.var("y", "n")
v, w = tc.var("v", "T"), tc.var("w")
idx = tc.var("idx", "T", integer=True)

# --- what only adds up is a sum -------------------------------------------------------------------

SUMS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "sum": (lambda: fold(lambda s, i: s + x[i], 0, "n"), lambda: tc.sum(x)),
    "from a start": (lambda: fold(lambda s, i: s + x[i], w, "n"), lambda: w + tc.sum(x)),
    "added in front": (lambda: fold(lambda s, i: x[i] * y[i] + s, 0, "n"), lambda: x @ y),
    "several terms": (lambda: fold(lambda s, i: s + x[i] - tc.exp(y[i]), 0, "n"), lambda: tc.sum(x - tc.exp(y))),
    "subtracted": (lambda: fold(lambda s, i: s - x[i] ** 2, 0, "n"), lambda: -(x @ x)),
    "rows": (lambda: fold(lambda s, i: s + X[i] * v[i], tc.zeros("n"), "T"), lambda: v @ X),
    "outer products": (lambda: fold(lambda s, i: s + tc.outer(X[i], X[i]), tc.zeros(("n", "n")), "T"), lambda: X.T @ X),
    "the same each time": (lambda: fold(lambda s, i: s + x, tc.zeros("n"), 4), lambda: 4 * x),
    "nothing": (lambda: fold(lambda s, i: s, x, "n"), lambda: x),
    "guard": (lambda: fold(lambda s, i: tc.where(i < 3, s + v[i] ** 2, s), 0, "T"), lambda: tc.sum(build("T", lambda i: tc.where(i < 3, v[i] ** 2, 0)))),
    "guard of one place": (lambda: build("n", lambda j: fold(lambda s, i: tc.where(i == j, s + x[i], s), 0, "n")), lambda: x),
    "guards in guards": (lambda: fold(lambda s, i: tc.where(i < 3, tc.where(v[i] > 0, s + v[i], s), s - 1), 0, "T"), lambda: tc.sum(build("T", lambda i: tc.where(i < 3, tc.where(v[i] > 0, v[i], 0), -1)))),
    "guard of a matrix": (lambda: fold(lambda s, i: tc.where(v[i] > 0, s + tc.outer(X[i], x), s), tc.zeros(("n", "n")), "T"), lambda: tc.sum(tc.where((v > 0)[:, None, None], X[:, :, None] * x, 0), 0)),
    "nested": (lambda: fold(lambda s, i: fold(lambda t, j: t + A[i, j] * x[j], s, "n"), 0, "n"), lambda: tc.sum(A @ x)),
    "tuple": (lambda: fold(lambda s, i: (s[0] + x[i], s[1] + x[i] * y[i]), (0, 0), "n"), lambda: (tc.sum(x), x @ y)),
    "history": (lambda: fold(lambda s, i: s + x[i], 0, "n", history=True), lambda: tc.cumsum(x)),
    "history from a start": (lambda: fold(lambda s, i: s + X[i], x, "T", history=True), lambda: x + tc.cumsum(X, 0)),
}  # fmt: skip


@pytest.mark.parametrize("name", SUMS)
def test_sums(name: str) -> None:
    loop, whole = SUMS[name]
    for found, wanted in zip(trees.leaves(loop()), trees.leaves(whole()), strict=True):
        assert found is wanted


def test_sums_beside_a_loop() -> None:
    """What adds up stays out of a loop over the rest, unless the rest reads it."""
    total, state = fold(lambda s, i: (s[0] + v[i], tc.tanh(w * s[1] + v[i])), (0, 0.5), "T")
    assert total is tc.sum(v)
    assert state is fold(lambda s, i: tc.tanh(w * s + v[i]), 0.5, "T")
    read = fold(
        lambda s, i: {"t": s["t"] + v[i], "s": tc.sin(s["s"] * s["t"])}, {"t": 0, "s": 1}, "T"
    )
    wanted = {"t": 0.0, "s": 1.0}
    for k in (0.3, -0.2, 0.7):
        wanted = {"t": wanted["t"] + k, "s": np.sin(wanted["s"] * wanted["t"])}
    found = read(v=[0.3, -0.2, 0.7])
    assert found.keys() == wanted.keys()
    for key, number in wanted.items():
        np.testing.assert_allclose(found[key], number)


# --- loops ----------------------------------------------------------------------------------------


def unrolled(body: Callable[[Any, Any], Any], init: Any, n: int, history: bool = False) -> Any:
    state, states = init, []
    for k in range(n):
        state = body(state, k)
        states.append(trees.leaves(state))
    if not history:
        return trees.mapped(as_expr, state)
    return trees.rebuild(init, [tc.stack(column) for column in zip(*states, strict=True)])


Loop = Callable[..., Any]
LOOPS: dict[str, Callable[[Loop, Any, Any, Any, Any], Any]] = {
    "network": lambda f, n, x, A, v: f(lambda s, i: tc.tanh(A @ s + v[i]), x, n),
    "network with numbers": lambda f, n, x, A, v: f(lambda s, i: tc.tanh(A[i] * s + i), x, n),
    "history": lambda f, n, x, A, v: f(lambda s, i: tc.sin(s * v[i]) + x, x, n, history=True),
    "neighbours": lambda f, n, x, A, v: f(lambda s, i: s * v[i + 1] - v[i], x[0], n - 1),
    "products": lambda f, n, x, A, v: f(lambda s, i: s * v[i], x[1], n),
    "pairs": lambda f, n, x, A, v: f(lambda s, i: (s[0] + tc.sum(s[1]), s[0] * s[1] * v[i]), (x[0], x), n),
    "dicts and lists": lambda f, n, x, A, v: f(lambda s, i: {"a": [s["a"][0] * v[i]], "b": s["b"] + s["a"][0]}, {"a": [x], "b": A[0]}, n),
    "independent": lambda f, n, x, A, v: f(lambda s, i: (tc.sin(s[0] + v[i]), s[1] * v[i], s[2] * s[1]), (x, 1.5, v), n),
    "guards": lambda f, n, x, A, v: f(lambda s, i: tc.where(i < 2, s * s, tc.exp(-s) + v[i]), x, n),
    "guards of entries": lambda f, n, x, A, v: f(lambda s, i: tc.where(v[i] > 0.7, s * v[i], s), x, n),
    "state read at the index": lambda f, n, x, A, v: f(lambda s, i: s * 0.5 + tc.eye(n)[i] * tc.sin(s[i]), x, n),
    "state read beside the index": lambda f, n, x, A, v: f(lambda s, i: tc.cos(s) * s[n - 1 - i], x, n),
    "loops in loops": lambda f, n, x, A, v: f(lambda s, i: f(lambda t, j: tc.sin(t * A[i, j] + s), v[i], n), x[0], n),
    "sums in loops": lambda f, n, x, A, v: f(lambda s, i: tc.tanh(s + f(lambda t, j: t + A[i, j] * v[j], 0, n)), x, n),
    "derivatives in loops": lambda f, n, x, A, v: f(lambda s, i: s - 0.1 * tc.grad(tc.sum(tc.exp(x * v[i]) ** 2), x).subs({"x": s}), v, n),
    "steps of Newton": lambda f, n, x, A, v: f(lambda s, i: s - (s * s - v[0]) / (2 * s), x, n),
    "filters": lambda f, n, x, A, v: f(lambda s, i: (A @ s[0] + x, A @ s[1] @ A.T + tc.outer(x, x) * v[i]), (x, A), n),
    "determinants": lambda f, n, x, A, v: f(lambda s, i: tc.linalg.logdet(tc.eye(n) * 3 + s * A @ A.T) * v[i], 0.3, n),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_unrolled(name: str) -> None:
    n = 3
    rng = np.random.default_rng(2)
    given = {
        "x": rng.uniform(0.5, 1, n),
        "A": 0.4 * rng.normal(size=(n, n)),
        "v": rng.uniform(0.5, 1, n),
    }
    variables = [tc.var(k, a.shape) for k, a in given.items()]
    found = trees.leaves(LOOPS[name](fold, n, *variables))
    wanted = trees.leaves(LOOPS[name](unrolled, n, *variables))
    for e, other in zip(found, wanted, strict=True):
        at = {k: given[k] for k in e.variables}
        close(e(**at), other(**at), 1e-12)
        for target, mode in itertools.product(
            e.variables.values(), ("forward", "reverse", "cross-country")
        ):
            first = tc.derivative(e, target, 1, mode)
            close(first(**at), tc.jacobian(other, target)(**at), 1e-10)
        target = next(iter(e.variables.values()))
        if e.ndim < 2:
            second = tc.derivative(e, target, 2)(**at)
            close(second, tc.derivative(other, target, 2)(**at), 1e-9)


@pytest.mark.parametrize("count", [0, 1, 4])
def test_builds_of_loops_and_loops_of_builds(count: int) -> None:
    rows = build("T", lambda j: fold(lambda s, i: tc.tanh(w * s + X[j, i]), v[j], "n"))
    data = np.random.default_rng(0).normal(size=(2, count))
    wanted = np.array([0.5, 0.25])
    for i in range(count):
        wanted = np.tanh(0.7 * wanted + data[:, i])
    np.testing.assert_allclose(rows(X=data, w=0.7, v=[0.5, 0.25]), wanted)
    gradient = tc.grad(tc.sum(rows), "w")(X=data, w=0.7, v=[0.5, 0.25])
    h = 1e-6
    ends = [np.sum(rows(X=data, w=0.7 + e, v=[0.5, 0.25])) for e in (h, -h)]
    np.testing.assert_allclose(gradient, (ends[0] - ends[1]) / (2 * h), atol=1e-7)
    moved = fold(lambda s, i: build("n", lambda j: tc.sin(s[j] + X[i, j] * i)), x, "T")
    state = np.full(count, 0.3)
    for i in range(2):
        state = np.sin(state + data[i] * i)
    np.testing.assert_allclose(moved(X=data, x=np.full(count, 0.3)), state)


@pytest.mark.parametrize("chosen", [{"x"}, {"A"}, {"X", "x"}, {"A", "X", "x"}], ids=sorted)
@pytest.mark.parametrize("count", [0, 1, 3])
def test_batches_of_loops(chosen: set[str], count: int) -> None:
    """Every item by itself, also of histories, derivatives and nested loops."""
    loop = fold(lambda s, i: (tc.tanh(A @ s[0] + X[i]), s[1] + tc.sum(s[0])), (x, 0), "T")
    history = fold(lambda s, i: tc.sin(A @ s + X[i] * i), x, "T", history=True)
    inner = fold(lambda s, i: fold(lambda t, j: tc.cos(t * X[i, j]), s, "n"), x, "T")
    rng = np.random.default_rng(3)
    shapes = {"A": (2, 2), "X": (4, 2), "x": (2,)}
    for e in (*loop, history, inner, tc.jacobian(loop[0], x), tc.hessian(loop[1], A)):
        named = chosen & e.variables.keys()
        if not named:
            continue
        at = {
            k: rng.normal(size=(*((count,) if k in named else ()), *shapes[k])) for k in e.variables
        }
        found = tc.vmap(e, dict.fromkeys(named, 0), "B")(**at)
        assert len(found) == count
        for k, item in enumerate(found):
            close(item, e(**{v: a[k] if v in named else a for v, a in at.items()}), 1e-11)


def test_gathers_in_loops() -> None:
    found = fold(lambda s, i: tc.cos(s) + x[idx[i]] * s[idx[i]], x, "T")
    state = at = np.array([0.1, 0.4, 0.9])
    for k in (2, 0, 0, 1):
        state = np.cos(state) + at[k] * state[k]
    np.testing.assert_allclose(found(x=at, idx=[2, 0, 0, 1]), state)


def test_arrays_are_read_step_by_step() -> None:
    """The loop runs over the arrays themselves, and nothing of the size of all steps is made."""
    loss = tc.sum(fold(lambda s, i: tc.tanh(A @ s + X[i]), x, "T"))
    peak = tc.compile(loss).plan_for(A=(20, 20), X=(5000, 20), x=(20,)).peak_bytes
    assert peak < 2 * 8 * 5000 * 20


def test_derivatives_by_the_state() -> None:
    """A state is a variable of the body: gradient descent is a loop."""
    energy = lambda s, i: tc.sum(tc.exp(s) * X[i]) + s @ s  # noqa: E731
    found = fold(lambda s, i: s - 0.1 * tc.grad(energy(s, i), s), x, "T")
    state, data = np.array([0.3, -0.1]), np.random.default_rng(0).normal(size=(5, 2))
    value = found(x=state, X=data)
    for row in data:
        state = state - 0.1 * (np.exp(state) * row + 2 * state)
    np.testing.assert_allclose(value, state)
    assert tc.jacobian(found, x)(x=state, X=data).shape == (2, 2)


def test_loops_of_independent_states_are_apart() -> None:
    one = lambda s, i: tc.tanh(w * s + v[i])  # noqa: E731
    other = lambda s, i: tc.sin(s * i)  # noqa: E731
    both = fold(lambda s, i: (one(s[0], i), other(s[1], i)), (0.5, x), "T")
    assert both[0] is fold(one, 0.5, "T")
    assert both[1] is fold(other, x, "T")


# --- errors ---------------------------------------------------------------------------------------

u = tc.var("u", 4)
WRONG: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: fold(lambda s, i: (s, s), 0, 3), tc.ShapeError, "the state is one array, and after a step a tuple of 2"),
    (lambda: fold(lambda s, i: s[0], (0, 1), 3), tc.ShapeError, "is a tuple of 2, and after a step one array"),
    (lambda: fold(lambda s, i: (s[0], (s[1], 1)), (0, 1), 3), tc.ShapeError, r"the state\[1\] is one array"),
    (lambda: fold(lambda s, i: {"b": s["a"]}, {"a": 0}, 3), tc.ShapeError, "keys 'a', and after a step a dict with the keys 'b'"),
    (lambda: fold(lambda s, i: s + u, 0, 3), tc.ShapeError, r"has shape \(\), and after a step \(4,\); give"),
    (lambda: fold(lambda s, i: (s[0], s[1] + u), (0, 0), 3), tc.ShapeError, "state 1 has shape"),
    (lambda: fold(lambda s, i: s * u[i], 1, 5), IndexError, r"u\[i\]: index 4 is out of range"),
    (lambda: fold(lambda s, i: s * s[i + 1], u, 4), IndexError, "index 4 is out of range"),
    (lambda: fold(lambda s, i: s, 0, -1), tc.ShapeError, "negative"),
    (lambda: fold(lambda s, i: s, 0, 1.5), TypeError, "1.5 is neither"),
    (lambda: fold(3, 0, 1), TypeError, "the body is a function"),
    (lambda: fold(lambda s, i: None, 0, 1), TypeError, "gives expressions and numbers"),
    (lambda: fold(lambda s, i: s, None, 1), TypeError, "expressions and numbers"),
    (lambda: fold(lambda s, i: s if s > 0 else -s, 0, 1), tc.TraceError, "where"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "text"), WRONG)
def test_errors(call: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text) as caught:
        call()
    assert "$" not in str(caught.value)


def test_states_read_outside_are_refused_when_known() -> None:
    with pytest.raises(IndexError, match=r"an index \[i-1\] is out of range .* of extent n"):
        fold(lambda s, i: tc.sin(s) * s[i - 1], x, "T")
    late = fold(lambda s, i: tc.sin(s) * s[i + 1], x, "T")
    assert late(x=np.ones(3), T=2).shape == (3,)
    with pytest.raises(IndexError, match=r"an index \[i\+1\]: index 3"):
        late(x=np.ones(3), T=3)


def test_states_stay_inside() -> None:
    kept: list[Any] = []
    fold(lambda s, i: (kept.append(s), s * x[i])[1], 1, "n")
    with pytest.raises(tc.TraceError, match="state 0 is used outside of the body"):
        build("n", lambda i: x[i] * kept[0])
