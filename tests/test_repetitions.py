"""Loops of random steps are laid side by side where all are equal, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.loops.rolling import rolled
from tests.test_rolled_loops import ROWS, STEPS, W, loops_in

#: What a step does with its state: `v` is a number, `k` a place, `c` an array of this step.
MOVES: list[Callable[..., Any]] = [
    lambda xp, s, w, x, v, k, c: xp.sin(s) + v * w[0],
    lambda xp, s, w, x, v, k, c: xp.cos(s) - s * v,
    lambda xp, s, w, x, v, k, c: w @ s + x[k],
    lambda xp, s, w, x, v, k, c: xp.tanh(w.T @ s),
    lambda xp, s, w, x, v, k, c: s * x[k] - c,
    lambda xp, s, w, x, v, k, c: xp.array(c) * xp.exp(-s * s),
    lambda xp, s, w, x, v, k, c: (s @ w[1]) * x[k] * v,
    lambda xp, s, w, x, v, k, c: w[1] * s + xp.sum(s) * v,
    lambda xp, s, w, x, v, k, c: xp.where(s > v, s, 0.5 * s) + w[0],
    lambda xp, s, w, x, v, k, c: s[::-1] + c * s,
    lambda xp, s, w, x, v, k, c: xp.cumsum(s) * 0.3,
    lambda xp, s, w, x, v, k, c: xp.maximum(s, x[k]) - xp.minimum(s, w[0]),
    lambda xp, s, w, x, v, k, c: xp.where(xp.arange(3) >= k % 3, s, w[0]),
]


def random_loop(seed: int) -> tuple[Callable[..., Any], bool]:
    """A loop whose steps are a few of the moves, and whether they are all alike.

    Where they are not, one step has another move; else numbers, arrays and places may differ, or
    those of the first steps.
    """
    rng = np.random.default_rng(seed)
    moves = [MOVES[m] for m in rng.choice(len(MOVES), rng.integers(2, 4), replace=False)]
    other, odd, place = MOVES[rng.integers(len(MOVES))], rng.integers(4, STEPS - 4), len(moves) - 1
    alike = bool(rng.random() < 0.6) or other is moves[place]
    turned, kept = rng.random(2) < 0.5
    latest = (0, STEPS, STEPS // 2)[rng.integers(3)]
    values, arrays = rng.normal(size=STEPS), rng.normal(size=(STEPS, 3))

    def program(xp: Any, w: Any, x: Any) -> Any:
        s, r, left = x[2], x[3], 0.0
        for t in range(STEPS):
            n = min(t, latest)
            k = STEPS - 1 - n if turned else n
            for m, move in enumerate(moves):
                chosen = other if not alike and t == odd and m == place else move
                s = 0.8 * xp.tanh(chosen(xp, s, w, x, values[n], k, arrays[n])) + 0.1 * r
            r, left = s, left + xp.sum(xp.sin(s)) if kept else left
        return xp.sum(s) + left + r[1]

    return program, alike


@pytest.mark.parametrize("seed", range(40))
def test_random_loops_are_those_that_python_runs(seed: int) -> None:
    """A step that differs is no other step: values are NumPy's, of equal steps by one fold."""
    program, alike = random_loop(seed)
    w, x = tc.var("W", (3, 3)), tc.var("x", (STEPS, 3))
    e = program(tc.numpy, w, [x[t] for t in range(STEPS)])
    (found,) = rolled([e], lambda rows: None)
    given = {v.name: {"W": W, "x": ROWS}[v.name] for v in e.variables.values()}
    wanted = program(np, W, ROWS)
    np.testing.assert_allclose(e(given), wanted, rtol=1e-10)
    np.testing.assert_allclose(found(given), wanted, rtol=1e-10)
    if alike:
        assert loops_in(found)


#: Products of a matrix and two vectors, which differ in their labels alone.
SPECS = ["ij,j,i->i", "ji,j,i->i", "ij,j,j->i", "ji,j,j->i", "ij,i,i->i", "jk,j,i->i", "ij,j,k->i"]


@pytest.mark.parametrize("spec", SPECS)
def test_products_under_other_labels_are_other_steps(spec: str) -> None:
    w, x = tc.var("W", (3, 3)), tc.var("x", (STEPS, 3))
    for odd in SPECS:
        results = []
        each: list[Any] = [(tc, w, x), (np, W, ROWS)]
        for xp, matrix, rows in each:
            s, r = rows[0], rows[1]
            for t in range(STEPS):
                made = xp.einsum(odd if t == 5 else spec, matrix, s, xp.cos(r))
                s, r = 0.5 * xp.tanh(made) + 0.3 * s + 0.1, s
            results.append(s)
        e, wanted = results
        (found,) = rolled([e], lambda rows: None)
        np.testing.assert_allclose(found(W=W, x=ROWS), wanted, rtol=1e-10)
        assert loops_in(found) or odd != spec


@pytest.mark.parametrize("odd", [False, True])
def test_results_of_one_factorisation_are_told_apart(odd: bool) -> None:
    """Of L and Q, which have one shape, another one is taken in one step."""
    s = w = tc.var("W", (3, 3))
    for t in range(STEPS):
        s = 0.3 * w + tc.linalg.lq(s + 2 * tc.eye(3))[odd and t == 5]
    (found,) = rolled([s], lambda rows: None)
    np.testing.assert_allclose(found(W=W), s(W=W), rtol=1e-8)
    assert loops_in(found) or odd


@pytest.mark.parametrize("odd", [False, True])
def test_tables_may_differ_and_have_one_length(odd: bool) -> None:
    i, s, wanted = tc.var("i", 3, integer=True), tc.var("s", 3), ROWS[0]
    e, places = s, np.array([3, 0, 2])
    for t in range(STEPS):
        table = np.cos(np.arange(4.0 + (odd and t == 5)) + t)
        e, wanted = 0.1 * tc.sin(e) + tc.const(table)[i], 0.1 * np.sin(wanted) + table[places]
    (found,) = rolled([e], lambda rows: None)
    np.testing.assert_allclose(found(s=ROWS[0], i=places), wanted, rtol=1e-8)
    assert loops_in(found) or odd


@pytest.mark.parametrize("read", [[STEPS - 1], [STEPS - 2], [4, 9, STEPS - 1], [*range(STEPS)]])
def test_states_of_any_steps_are_read(read: list[int]) -> None:
    x, s, wanted = tc.var("x", (STEPS, 3)), tc.var("s", 3), ROWS[0]
    e, states, values = s, [], []
    for t in range(STEPS):
        e, wanted = tc.sin(e) + x[t], np.sin(wanted) + ROWS[t]
        states.append(e)
        values.append(wanted)
    # The last one is read too, as an expression has no steps behind what it reads.
    (found,) = rolled([states[-1] + sum((k + 2) * tc.cos(states[k]) for k in read)], lambda v: None)
    total = values[-1] + sum((k + 2) * np.cos(values[k]) for k in read)
    np.testing.assert_allclose(found(x=ROWS, s=ROWS[0]), total, rtol=1e-10)
    assert loops_in(found)


def test_ends_of_ranges_are_no_places() -> None:
    """Ones from a place on, or at one place, which differs from step to step."""
    s = tc.var("s", 30)
    for sign, least in (("=", True), (">", False)):
        e, wanted = s, ROWS.ravel()[:30]
        for t in range(STEPS):
            own = tc.parse_index(f"f[i=0..29] = 1 - 0.5*(i {sign}= {t})", s=30)
            e, at = tc.sin(e) * own, np.arange(30)
            wanted = np.sin(wanted) * (1 - 0.5 * (at == t if least else at >= t))
        (found,) = rolled([e], lambda rows: None)
        assert bool(loops_in(found)) == least
        np.testing.assert_allclose(found(s=ROWS.ravel()[:30]), wanted, rtol=1e-12)


def check_slopes(function: Callable[[Any], Any], at: np.ndarray) -> None:
    """Values and gradients of a function of Python, by steps into the complex plane."""
    np.testing.assert_allclose(tc.compile(function)(at), function(at), rtol=1e-12)
    moved = [at + 1e-30j * e.reshape(at.shape) for e in np.eye(at.size)]
    along = np.array([function(x).imag * 1e30 for x in moved]).reshape(at.shape)
    np.testing.assert_allclose(tc.grad(function)(at), along, rtol=1e-11, atol=1e-13)


def random_recurrence(seed: int) -> Callable[[Any], Any]:
    """States of values of several steps before, made one after the other or all at once."""
    rng = np.random.default_rng(seed)
    count, at_once, kept = rng.integers(1, 4), rng.random() < 0.5, rng.random() < 0.5
    read = rng.integers([count, 4], size=(count, 3, 2))
    weights = rng.uniform(0.1, 0.6, (count, 3)) * rng.choice([-1, 1], (count, 3))
    bent = rng.random(count) < 0.6

    def program(x: Any) -> Any:
        past, total = [[x[4 * k + j] for j in range(4)] for k in range(count)], 0.0
        for _ in range(STEPS + 8):
            made = []
            for k in range(count):
                terms = zip(read[k], weights[k], strict=True)
                value = sum(w * past[j][-1 - lag] for (j, lag), w in terms)
                made.append(np.sin(value) + x[0] * past[k][-1] if bent[k] else value * x[1])
                if not at_once:
                    past[k].append(made[k])
            if at_once:
                for values, new in zip(past, made, strict=True):
                    values.append(new)
            total = total + past[0][-1] * past[-1][-2] if kept else total
        return total + sum(values[-1] ** 2 for values in past)

    return program


@pytest.mark.parametrize("seed", range(20))
def test_values_of_several_steps_before_are_states(seed: int) -> None:
    check_slopes(random_recurrence(seed), 0.5 * ROWS.ravel()[:12])


def test_most_recurrences_are_loops() -> None:
    """Where no result depends on all states a step before, a step has several results."""
    made = [random_recurrence(seed)(tc.var("x", 12)) for seed in range(40)]
    assert sum(bool(loops_in(rolled([e], lambda v: None)[0])) for e in made) > 32


@pytest.mark.parametrize("length", [16, 20, 31])
@pytest.mark.parametrize("period", [1, 2, 3, 5])
def test_states_that_some_steps_alone_read(period: int, length: int) -> None:
    """All values are read, and entries of a short array by turns: there may be no loop in it."""

    def squares(x: Any) -> Any:
        s, values = x[0], []
        for k in range(length):
            s = s * 0.9 + np.sin(x[k % period])
            values.append(s)
        return np.sum(np.stack(values) ** 2)

    check_slopes(squares, ROWS.ravel()[:5])


def test_steps_of_two_kinds_by_turns() -> None:
    def walk(X: Any) -> Any:
        s = 0.0
        for i in range(6):
            for j in range(6):
                s = s + np.sin(s) * X[i, j] if (i + j) % 2 else s * 0.9 + X[j, i]
        return s

    check_slopes(walk, np.random.default_rng(0).normal(size=(6, 6)))


def test_tables_of_which_each_entry_is_read_by_some() -> None:
    def path(x: Any) -> Any:
        D = [[0.0] * 5 for _ in range(5)]
        for i in range(5):
            for j in range(5):
                above, left = (D[i - 1][j] if i else 0.0), (D[i][j - 1] if j else 0.0)
                D[i][j] = np.exp(-above) + 0.5 * left + (x[i] - x[4 - j]) ** 2
        return D[4][4]

    check_slopes(path, ROWS.ravel()[:5])
