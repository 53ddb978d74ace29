"""Integers that drive loops: states that are indices, and numbers of steps that are data."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.nodes import Expr
from tcalc.graph.normal import bare
from tests.source_runs import computed

BACKENDS = ("numpy", "c", "functional")
LANGUAGES: list[tuple[Callable[[Any], str], Callable[..., Expr]]] = [
    (str, tc.parse),
    (tc.to_einsum, tc.parse_einsum),
    (tc.to_index, tc.parse_index),
]
x, X = tc.var("x", "n"), tc.var("X", ("n", 2))
after, start = tc.var("after", "n", integer=True), tc.var("start", integer=True)
both, count = tc.var("both", 2, integer=True), tc.var("count", integer=True)
RNG = np.random.default_rng(0)
DATA: dict[str, Any] = {
    "x": RNG.uniform(0.2, 1.0, 4),
    "X": RNG.uniform(0.2, 1.0, (4, 2)),
    "after": np.array([2, 0, 3, 1]),
    "start": 1,
    "both": np.array([3, 1]),
    "count": 3,
}


class Walk(NamedTuple):
    """A loop of which one state is an index: the same step for expressions and for arrays."""

    name: str
    step: Callable[[Any, Any], tuple[Any, Any]]
    first: Callable[[Any], tuple[Any, Any]]
    target: str


WALKS = [
    Walk(
        "pointers",
        lambda s, d: (d.after[s[0]], d.tanh(s[1] + d.x[s[0]] * d.x[s[0]])),
        lambda d: (d.start, 0.5),
        "x",
    ),
    Walk("counter", lambda s, d: (s[0] + 1, s[1] * d.sin(d.x[s[0]])), lambda d: (0, 1.0), "x"),
    Walk(
        "from the end",
        lambda s, d: (s[0] - 1, d.sin(s[1] + d.x[s[0]])),
        lambda d: (-1, 1.0),
        "x",
    ),
    Walk(
        "rows",
        lambda s, d: (d.after[s[0]], d.sin(s[1] * d.X[s[0]])),
        lambda d: (d.start, d.X[0]),
        "X",
    ),
    Walk(
        "several places",
        lambda s, d: (d.after[s[0]], d.sin(s[1] + d.x[s[0]])),
        lambda d: (d.both, d.X[1]),
        "x",
    ),
    Walk(
        "affine in a state",
        lambda s, d: (2 - s[0], d.tanh(s[1] + d.x[s[0] + 1] * d.x[2 * s[0] - 1])),
        lambda d: (1, 0.3),
        "x",
    ),
]
IDS: dict[str, Any] = {"argvalues": WALKS, "ids": lambda walk: walk.name}


class _Names(SimpleNamespace):
    """The functions and the data that a step reads."""

    def __init__(self, functions: Any, values: dict[str, Any]) -> None:
        super().__init__(tanh=functions.tanh, sin=functions.sin, **values)


VARIABLES = {"x": x, "X": X, "after": after, "start": start, "both": both}


def loop(walk: Walk, steps: Any = 3) -> Expr:
    names = _Names(tc, VARIABLES)
    found: Expr = tc.fold(lambda s, i: walk.step(s, names), walk.first(names), steps)[1]
    return tc.sum(found) if found.ndim else found


def plain(walk: Walk, value: Any, steps: int = 3) -> Any:
    names = _Names(jnp, {**DATA, "after": jnp.asarray(DATA["after"]), walk.target: value})
    state = walk.first(names)
    for _ in range(steps):
        state = walk.step(state, names)
    return jnp.sum(state[1])


def given(e: Expr) -> dict[str, Any]:
    return {name: DATA[name] for name in e.variables}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("walk", **IDS)
def test_states_are_indices_on_every_back_end(walk: Walk, backend: str) -> None:
    e, at = loop(walk), DATA[walk.target]
    oracle = lambda value: plain(walk, value)  # noqa: E731
    found = tc.compile(e, backend=backend)(**given(e))
    np.testing.assert_allclose(found, oracle(at), rtol=1e-12)
    for mode in ("forward", "reverse"):
        g = tc.jacobian(e, walk.target, mode=mode)
        np.testing.assert_allclose(
            tc.compile(g, backend=backend)(**given(g)), jax.grad(oracle)(at), rtol=1e-11, atol=1e-13
        )
    h = tc.hessian(e, walk.target)
    np.testing.assert_allclose(
        tc.compile(h, backend=backend)(**given(h)), jax.hessian(oracle)(at), rtol=1e-10, atol=1e-12
    )


@pytest.mark.parametrize("language", ["numpy", "jax", "torch"])
@pytest.mark.parametrize("walk", **IDS)
def test_states_are_indices_in_printed_programs(walk: Walk, language: str) -> None:
    """The loop is written once: a second one, of integers, would cut off what it reads."""
    e = loop(walk)
    g = tc.grad(e, walk.target)
    with jax.enable_x64(True):
        found = computed((e, g), given(g), language)
    for value, wanted in zip(found, tc.compile((e, g))(**given(g)), strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-11, atol=1e-13)
    assert len(re.findall("def step", tc.to_code(g, language))) <= 2


@pytest.mark.parametrize("walk", **IDS)
def test_indices_in_loops_read_back(walk: Walk) -> None:
    e = loop(walk)
    for root in (e, tc.grad(e, walk.target)):
        for write, read in LANGUAGES:
            found = read(write(root), **root.variables)
            if bare(found) is not bare(root):
                np.testing.assert_allclose(found(given(root)), root(given(root)), rtol=1e-12)


def test_histories_and_last_states_of_integers_are_indices() -> None:
    path = tc.fold(lambda s, i: after[s], start, 5, history=True)
    expected, state = [], DATA["start"]
    for _ in range(5):
        state = DATA["after"][state]
        expected.append(state)
    e = x[path]
    np.testing.assert_array_equal(e(given(e)), DATA["x"][expected])
    g = tc.grad(tc.sum(e * e), x)
    weights = np.bincount(expected, minlength=4)
    np.testing.assert_allclose(g(given(g)), 2 * weights * DATA["x"])
    inner = tc.fold(lambda s, i: tc.sin(s + x[path[1]]), 0.0, 2)
    value = np.sin(np.sin(DATA["x"][expected[1]]) + DATA["x"][expected[1]])
    np.testing.assert_allclose(inner(given(inner)), value)


def test_integers_that_a_loop_reads_stay_integers() -> None:
    """Slices and captured ones; states are held as floats."""
    at, free = tc.var("at", "m", integer=True), tc.var("free", integer=True)
    loops = [
        (tc.fold(lambda s, k: tc.sin(s * s[at[k]]), x, "m"), False),
        (tc.fold(lambda s, k: tc.sin(s * s[free]), x, 3), False),
        (tc.fold(lambda s, k: tc.sin(s + tc.sum(s[at])), x, 3), False),
        (tc.fold(lambda s, k: (after[s[0]], tc.sin(s[1] * x[s[0]])), (start, 0.5), 3)[1], True),
    ]
    for e, converted in loops:
        for root in (e, tc.grad(tc.sum(e), x)):
            assert ("= integers(" in str(tc.compile(root).plan)) == converted


def test_states_as_indices_are_batched() -> None:
    batch = tc.vmap(lambda row: tc.fold(
        lambda s, i: (after[s[0]], tc.sin(s[1] + row[s[0]])), (start, 0.0), 3)[1]
    )(X.T)  # fmt: skip
    found = batch(given(batch))
    for k in range(2):
        column = plain(Walk("", lambda s, d: (d.after[s[0]], d.sin(s[1] + d.x[s[0]])),
                            lambda d: (d.start, 0.0), "x"), DATA["X"][:, k])  # fmt: skip
        np.testing.assert_allclose(found[k], column, rtol=1e-12)


def test_indices_out_of_range_are_said_at_evaluation() -> None:
    e = tc.fold(lambda s, i: (s[0] + 2, s[1] * x[s[0]]), (0, 1.0), 3)[1]
    for backend in BACKENDS:
        with pytest.raises(tc.ShapeError, match="out of range for an axis of extent 4"):
            tc.compile(e, backend=backend)(x=DATA["x"])


def test_arrays_of_integers_are_indices_to_begin_with() -> None:
    """From NumPy or as text, in values, derivatives and C; others are numbers as any."""
    x, at = tc.var("x", 5), np.array([0, 2])
    _, total = tc.fold(lambda s, i: (s[0] + 1, s[1] + x[s[0]] ** 2), (at, np.zeros(2)), 3)
    again = tc.parse(str(total), x=5)
    values = np.arange(5.0)
    for e in (total, again):
        np.testing.assert_array_equal(e(x=values), [5, 29])
        slope = tc.derivative(e, x if e is total else "x")
        np.testing.assert_array_equal(slope(x=values), [[0, 2, 4, 0, 0], [0, 0, 4, 6, 8]])
    np.testing.assert_array_equal(tc.compile(total, backend="c")(x=values), [5, 29])
    near = tc.fold(
        lambda s, i: (s[0] + 1, s[1] + 1), (at, 0), until=lambda s: x[s[0]].sum() > 4, limit=9
    )
    np.testing.assert_array_equal(near[0][0](x=values), [2, 4])
    np.testing.assert_array_equal(tc.fold(lambda s, i: s / 2 + x[1], at, 2)(x=values), [1.5, 2])
    huge = np.array([2**64 - 1, 0], np.uint64)
    np.testing.assert_array_equal(tc.fold(lambda s, i: s / 2, huge, 1)(), [2.0**63, 0])
    np.testing.assert_array_equal(tc.parse("fold(s -> s/2, [inf, 4], i=0..1)")(), [np.inf, 1])
    with pytest.raises(TypeError, match="state 0 is used as an index"):
        tc.fold(lambda s, i: (s[0] / 2, s[1] + x[s[0]]), (at, np.zeros(2)), 3)


@pytest.mark.parametrize(
    ("step", "first"),
    [
        (lambda s, i: x[s], 0),
        (lambda s, i: (s[0] + 0.5, s[1] * x[s[0]]), (0, 1.0)),
        (lambda s, i: (s[2], s[1] * x[s[0]], s[2] / 2), (0, 1.0, 4)),
        (lambda s, i: (s[0], s[1] * x[s[0]]), (0.5, 1.0)),
        (lambda s, i: (s[0], s[1] * x[s[1]]), (0, 1.5)),
    ],
)
def test_indices_must_stay_integers(step: Any, first: Any) -> None:
    with pytest.raises(TypeError, match="integer"):
        tc.fold(step, first, 3)


def test_a_first_state_that_is_a_whole_number_is_derived_as_any_other() -> None:
    newton = tc.fold(lambda s, i: s - tc.grad((s - x[0]) ** 2, s) / 2, 0, 3)
    np.testing.assert_allclose(newton(x=DATA["x"]), DATA["x"][0])


# --- numbers of steps -----------------------------------------------------------------------------


def _decay(steps: Any) -> Expr:
    e: Expr = tc.fold(lambda s, i: tc.tanh(s * x[0]) + x[1] / (1 + i), x[2], steps)
    return e


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_the_number_of_steps_is_data(backend: str, mode: str) -> None:
    mean = _decay(count) / (1 + count)
    run = tc.compile((mean, tc.jacobian(mean, x, mode=mode)), backend=backend)
    for steps in (0, 1, 5, 2):

        def oracle(at: Any, steps: int = steps) -> Any:
            state = at[2]
            for i in range(steps):
                state = jnp.tanh(state * at[0]) + at[1] / (1 + i)
            return state / (1 + steps)

        value, slope = run(x=DATA["x"], count=steps)
        np.testing.assert_allclose(value, oracle(DATA["x"]), rtol=1e-12)
        np.testing.assert_allclose(slope, jax.grad(oracle)(DATA["x"]), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("steps", [-1, 1.5, None, "two", [1, 2]])
def test_numbers_of_steps_are_whole(steps: Any, alone: bool) -> None:
    e = _decay(count) if alone else _decay(count) * count
    values = {"x": DATA["x"]} | ({} if steps is None else {"count": steps})
    with pytest.raises((TypeError, tc.ShapeError), match="count"):
        e(values)


def test_numbers_of_steps_are_bound_once_and_read_back() -> None:
    e = _decay(count) * count
    expected = _decay(4)(x=DATA["x"]) * 4
    np.testing.assert_allclose(tc.compile(e, data={"count": 4})(x=DATA["x"]), expected)
    assert tc.compile(e).plan_for(x=(4,), count=()) is not None
    for write, read in LANGUAGES:
        found = read(write(e), **e.variables)
        np.testing.assert_allclose(found(x=DATA["x"], count=4), expected)


def test_numbers_of_steps_are_variables_of_one_number() -> None:
    for wrong in (x[0], tc.var("k"), tc.var("k", 2, integer=True)):
        with pytest.raises(TypeError, match="the number of steps is one integer"):
            _decay(wrong)
    with pytest.raises(TypeError, match="say limit="):
        _decay(count + 1)


@pytest.mark.parametrize("states", [1, 2, 3])
def test_numbers_of_steps_that_a_condition_leaves_are_indices(states: int) -> None:
    """Of every number of states: the entry that is picked, and its derivative."""
    first = (x[0], *[0.5 + k for k in range(1, states)])
    ending = tc.fold(
        lambda s, i: tuple(2 * value for value in s), first, until=lambda s: s[0] > 2.5, limit=3
    )
    picked = tc.sin(x[ending.steps]) * x[1]
    g = tc.grad(picked, x)
    reached = set()
    for start in (0.2, 0.4, 0.7, 1.3, 3.0):
        at = np.array([start, 0.3, 0.8, 1.1])
        steps = next((k for k in range(3) if start * 2**k > 2.5), 3)
        reached.add(steps)
        np.testing.assert_allclose(picked(x=at), np.sin(at[steps]) * at[1], rtol=1e-14)
        wanted = np.zeros(4)
        wanted[steps] += np.cos(at[steps]) * at[1]
        wanted[1] += np.sin(at[steps])
        np.testing.assert_allclose(g(x=at), wanted, rtol=1e-13)
    assert reached == {0, 1, 2, 3}
    with pytest.raises(TypeError, match="integer"):
        x[ending.state[0]]
