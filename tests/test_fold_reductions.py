"""Loops that are reductions, searches or single changes become these, with the loop's values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.nodes import Apply, postorder
from tcalc.graph.normal import bare
from tcalc.graph.operators import Loop

x, y, z = tc.var("x", "n"), tc.var("y", "n"), tc.var("z")
X, v = tc.var("X", ("n", "m")), tc.var("v", "m")

Step = Callable[[Any, Any, Any], Any]


def loops(e: Any) -> int:
    leaves = e if isinstance(e, tuple) else (e,)
    nodes = postorder([bare(leaf) for leaf in leaves])
    return sum(isinstance(node, Apply) and isinstance(node.op, Loop) for node in nodes)


class Arrays:
    """NumPy under the names that steps use."""

    where, maximum, minimum = np.where, np.maximum, np.minimum
    logaddexp, sin, equal = np.logaddexp, np.sin, np.equal


#: Name: step(module, arrays, state, i), the first state; arrays are (x, y, z, X, v).
CASES: dict[str, tuple[Any, Any]] = {
    "sum": (lambda t, a, s, i: s + a[0][i] * a[1][i], lambda a: a[2]),
    "sum where": (lambda t, a, s, i: t.where(a[1][i] > 0, s + a[0][i], s), lambda a: 0.0),
    "prod": (lambda t, a, s, i: s * a[0][i], lambda a: 1.0),
    "prod of two": (lambda t, a, s, i: 2 * a[0][i] * s * a[1][i], lambda a: a[2]),
    "prod where": (lambda t, a, s, i: t.where(a[1][i] > 0, s * a[0][i], s), lambda a: a[2]),
    "prod of rows": (lambda t, a, s, i: s * a[3][i], lambda a: a[4]),
    "max": (lambda t, a, s, i: t.maximum(s, a[0][i]), lambda a: -np.inf),
    "max from data": (lambda t, a, s, i: t.maximum(a[0][i] * a[1][i], s), lambda a: a[2]),
    "max of three": (
        lambda t, a, s, i: t.maximum(t.maximum(s, a[0][i]), a[1][i]), lambda a: a[2]
    ),
    "max where": (
        lambda t, a, s, i: t.where(a[1][i] > 0, t.maximum(s, a[0][i]), s), lambda a: -1.0
    ),
    "max of rows": (lambda t, a, s, i: t.maximum(s, a[3][i]), lambda a: a[4]),
    "min": (lambda t, a, s, i: t.minimum(s, a[0][i]), lambda a: 1e9),
    "logsumexp": (lambda t, a, s, i: t.logaddexp(s, a[0][i]), lambda a: -np.inf),
    "larger": (lambda t, a, s, i: t.where(a[0][i] > s, a[0][i], s), lambda a: -1e30),
    "not smaller": (lambda t, a, s, i: t.where(a[0][i] >= s, a[0][i], s), lambda a: a[2]),
    "smaller": (lambda t, a, s, i: t.where(s > a[0][i], a[0][i], s), lambda a: a[2]),
    "argmax": (
        lambda t, a, s, i: (
            t.where(a[0][i] > s[0], a[0][i], s[0]), t.where(a[0][i] > s[0], i, s[1])
        ),
        lambda a: (-1e30, -1.0),
    ),
    "last argmax": (
        lambda t, a, s, i: (
            t.where(a[0][i] >= s[0], a[0][i], s[0]), t.where(a[0][i] >= s[0], i, s[1])
        ),
        lambda a: (-np.inf, -1.0),
    ),
    "argmin and what stands there": (
        lambda t, a, s, i: (
            t.where(a[0][i] < s[0], a[0][i], s[0]), t.where(a[0][i] < s[0], a[1][i], s[1])
        ),
        lambda a: (a[2], a[2]),
    ),
    "argmax by columns": (
        lambda t, a, s, i: (
            t.where(a[3][i] > s[0], a[3][i], s[0]), t.where(a[3][i] > s[0], 2 * a[3][i], s[1])
        ),
        lambda a: (a[4], 0 * a[4]),
    ),
    "one step": (lambda t, a, s, i: t.where(t.equal(i, 3), t.sin(s), s), lambda a: a[2]),
    "one step with data": (
        lambda t, a, s, i: t.where(t.equal(i + 1, 4), t.sin(s) * a[0][i], s), lambda a: a[2]
    ),
    "one step of rows": (
        lambda t, a, s, i: t.where(t.equal(i, 2), t.sin(s) + a[3][i], s), lambda a: a[4]
    ),
}  # fmt: skip


def by_python(name: str, data: dict[str, Any]) -> Any:
    step, first = CASES[name]
    arrays = [data[k] for k in ("x", "y", "z", "X", "v")]
    state = first(arrays)
    with np.errstate(all="ignore"):
        for i in range(len(data["x"])):
            state = step(Arrays, arrays, state, i)
    return state


def folded(name: str, n: int | str) -> Any:
    step, first = CASES[name]
    arrays = (x, y, z, X, v)
    return tc.fold(lambda s, i: step(tc, arrays, s, i), first(arrays), n)


def data_of(n: int, seed: int, ties: bool = False) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    found = {"x": rng.normal(size=n), "y": rng.normal(size=n), "X": rng.normal(size=(n, 3))}
    if ties:
        found = {k: np.round(a) for k, a in found.items()}
    return {**found, "z": rng.normal(), "v": rng.normal(size=3)}


def flat(found: Any) -> list[Any]:
    return list(found) if isinstance(found, tuple) else [found]


@pytest.mark.parametrize("name", CASES)
def test_such_folds_are_no_loops(name: str) -> None:
    assert loops(folded(name, "n")) == 0


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_values_are_those_of_the_loop(name: str, n: int) -> None:
    for ties in (False, True):
        for seed in range(3):
            data = data_of(n, seed, ties)
            expected = by_python(name, data)
            found = tc.compile(folded(name, "n"))(**data, n=len(data["x"]))
            for one, other in zip(flat(found), flat(expected), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_those_of_the_loop(name: str, bad: float) -> None:
    for place in range(4):
        data = data_of(5, place)
        data["x"][place], data["X"][place, 1] = bad, bad
        expected = by_python(name, data)
        found = tc.compile(folded(name, "n"))(**data, n=len(data["x"]))
        for one, other in zip(flat(found), flat(expected), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_the_loop(name: str) -> None:
    """Away from ties; jax differentiates the steps one by one."""
    step, first = CASES[name]
    data = data_of(6, 4)

    def total(arrays: Any) -> Any:
        state = first(arrays)
        for i in range(6):
            state = step(jax.numpy, arrays, state, i)
        return sum(jax.numpy.sum(jax.numpy.asarray(s, float)) for s in flat(state))

    arrays = [data[k] for k in ("x", "y", "z", "X", "v")]
    with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
        expected = jax.grad(total)([jax.numpy.asarray(a, float) for a in arrays])
    e = sum((tc.sum(s) for s in flat(folded(name, "n"))), start=tc.const(0.0))
    for variable, wanted in zip((x, y, z, X, v), expected, strict=True):
        found = tc.grad(e, variable)(**data, n=6)
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["max", "larger", "not smaller", "max from data"])
def test_ties_share_a_derivative_evenly_as_in_reductions(name: str) -> None:
    data = {"x": np.array([1.0, 3.0, 2.0, 3.0, 3.0]), "y": np.ones(5), "z": -5.0}
    g = tc.grad(folded(name, "n"), x)
    used = {k: a for k, a in data.items() if k in g.variables}
    np.testing.assert_allclose(g(**used), [0, 1 / 3, 0, 1 / 3, 1 / 3])


def test_a_loop_of_no_steps_is_its_first_state() -> None:
    assert tc.fold(lambda s, i: tc.tanh(s) * i, z, 0) is z


def test_what_others_read_at_every_step_stays_a_loop() -> None:
    found = tc.fold(lambda s, i: (tc.maximum(s[0], x[i]), s[1] * s[0] + x[i]), (0.0, 0.0), "n")
    data = np.array([0.3, 0.7, 0.1])
    best, other = 0.0, 0.0
    for entry in data:
        best, other = max(best, entry), other * best + entry
    values = tc.compile(found)(x=data)
    np.testing.assert_allclose(values, [best, other])
    history = tc.fold(lambda s, i: tc.maximum(s, x[i]), 0.0, "n", history=True)
    np.testing.assert_allclose(history(x=data), np.maximum.accumulate(data))


def test_conditions_that_hold_more_than_once_stay_loops() -> None:
    e = tc.fold(lambda s, i: tc.where(tc.equal(y[i], 1), tc.sin(s) + 1, s), z, "n")
    assert loops(e) == 1
    np.testing.assert_allclose(e(y=np.ones(3), z=0.5), np.sin(np.sin(np.sin(0.5) + 1) + 1) + 1)


@pytest.mark.parametrize("sign", [1, -1])
def test_searches_never_choose_what_is_no_number(sign: int) -> None:
    """Not for an infinity either, which a search that takes the last of equal ones begins with."""
    x, y = tc.var("x", "n"), tc.var("y", "n")

    def reached(s: Any, i: Any) -> Any:
        return s[0] <= x[i] if sign > 0 else x[i] <= s[0]

    def step(s: Any, i: Any) -> Any:
        return tc.where(reached(s, i), x[i], s[0]), tc.where(reached(s, i), y[i], s[1])

    _, found = tc.fold(step, (-np.inf * sign, -1.0), "n")
    rng = np.random.default_rng(0)
    for _ in range(60):
        n = rng.integers(0, 5)
        data = rng.choice([np.nan, -np.inf, np.inf, 0.0, 1.0], n)
        best, beside = -np.inf * sign, -1.0
        for k in range(n):
            if best <= data[k] if sign > 0 else data[k] <= best:
                best, beside = data[k], float(k)
        assert found(x=data, y=np.arange(float(n))) == beside
