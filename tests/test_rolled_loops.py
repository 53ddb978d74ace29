"""Python's loops over traced values become folds: numbers of jax's, and one step in the plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.nodes import Apply, postorder
from tcalc.graph.operators import Loop
from tcalc.loops.rolling import LEAST_STEPS, rolled

STEPS = 24
RNG = np.random.default_rng(0)
W, ROWS = 0.4 * RNG.normal(size=(3, 3)), RNG.normal(size=(STEPS, 3))
SCALARS, MARKS = RNG.normal(size=STEPS), RNG.integers(0, 3, STEPS)


def recurrent(xp: Any, w: Any, x: Any) -> Any:
    s, loss = xp.zeros(3), 0.0
    for row in x:
        s = xp.tanh(w @ s + row)
        loss = loss + xp.sum(s * s)
    return loss


def gated(xp: Any, w: Any, x: Any) -> Any:
    """Two states, one of which is made of the other."""
    h, c = xp.ones(3), xp.zeros(3)
    for t in range(STEPS):
        gate = 1 / (1 + xp.exp(-(w @ h + x[t])))
        c = gate * c + (1 - gate) * xp.tanh(w.T @ h)
        h = gate * xp.tanh(c)
    return xp.sum(h) + xp.sum(c * c)


def volatility(xp: Any, w: Any, x: Any) -> Any:
    """Numbers that differ from step to step."""
    p, h, total = w[0] ** 2, 1.0, 0.0
    for r in SCALARS:
        h = p[0] + p[1] * r * r + xp.exp(-p[2]) * h
        total = total + xp.log(h) + r * r / h
    return total


def leapfrog(xp: Any, w: Any, x: Any) -> Any:
    """States that are sums."""
    q, p = x[0], x[1]
    for _ in range(STEPS):
        p = p - 0.05 * (w.T @ xp.sin(w @ q))
        q = q + 0.1 * p
        p = p - 0.05 * (w.T @ xp.sin(w @ q))
    return q @ q + p @ p


def second_order(xp: Any, w: Any, x: Any) -> Any:
    """A step that reads the two before it."""
    a, b = x[0], x[1]
    for t in range(STEPS):
        a, b = b, xp.tanh(w @ b - 0.3 * a + 0.1 * t)
    return xp.sum(b)


def alternating(xp: Any, w: Any, x: Any) -> Any:
    """Two kinds of steps, one after the other."""
    s = x[0]
    for t in range(2 * STEPS):
        s = xp.tanh(w @ s) if t % 2 else xp.sin(w.T @ s + x[t // 2])
    return xp.sum(s * s)


def backwards(xp: Any, w: Any, x: Any) -> Any:
    s = xp.ones(3)
    for t in range(STEPS - 1, 0, -1):
        s = xp.cos(w @ s) * x[t] + x[t - 1]
    return xp.sum(s)


def in_order_of_marks(xp: Any, w: Any, x: Any) -> Any:
    """Places that follow no rule, and arrays of numbers."""
    s = xp.ones(3)
    for k in MARKS:
        s = xp.sin(w[int(k)] * s + x[int(k)])
    return xp.sum(s)


def nested(xp: Any, w: Any, x: Any) -> Any:
    s = x[0]
    for t in range(18):
        r = s
        for _ in range(18):
            r = xp.tanh(w @ r + s)
        s = xp.sin(r + x[t])
    return xp.sum(s)


def two_loops(xp: Any, w: Any, x: Any) -> Any:
    """A loop over what another left after each of its steps."""
    s, left, total = xp.ones(3), [], 0.0
    for t in range(STEPS):
        s = xp.tanh(w @ s + x[t])
        left.append(s)
    r = s
    for each in reversed(left):
        r = xp.sin(r * each)
        total = total + r @ w @ each
    return total


PROGRAMS = [
    recurrent, gated, volatility, leapfrog, second_order, alternating, backwards,
    in_order_of_marks, nested, two_loops,
]  # fmt: skip


def of(program: Callable[..., Any], xp: Any) -> Callable[..., Any]:
    return lambda w, x: program(xp, w, x)


def loops_in(e: Any) -> list[Any]:
    return [n for n in postorder([e]) if isinstance(n, Apply) and isinstance(n.op, Loop)]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_derivatives_are_those_of_jax(program: Callable[..., Any]) -> None:
    """By both arguments, with one that is captured, and of second order."""
    plain, reference = of(program, np), of(program, jnp)
    value, gradients = tc.value_and_grad(plain, (0, 1))(W, ROWS)
    np.testing.assert_allclose(value, plain(W, ROWS), rtol=1e-12)
    wanted = jax.grad(reference, (0, 1))(W, ROWS)
    for found, each in zip(gradients, wanted, strict=True):
        np.testing.assert_allclose(found, each, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(tc.grad(plain)(W, ROWS), wanted[0], rtol=1e-9, atol=1e-12)
    along = jax.jvp(lambda w: jax.grad(reference)(w, ROWS), (W,), (W.T,))[1]
    found = np.tensordot(tc.hessian(plain)(W, ROWS), W.T, 2)
    np.testing.assert_allclose(found, along, rtol=1e-8, atol=1e-9 * np.abs(along).max())


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_steps_are_one_body(program: Callable[..., Any]) -> None:
    w, x = tc.var("W", (3, 3)), tc.var("x", (STEPS, 3))
    e = program(tc, w, [x[t] for t in range(STEPS)])
    (found,) = rolled([e], lambda rows: None)
    assert loops_in(found)
    assert not loops_in(e)
    given = {v.name: {"W": W, "x": ROWS}[v.name] for v in e.variables.values()}
    np.testing.assert_allclose(found(given), e(given), rtol=1e-12)


def test_captured_arrays_are_those_of_each_call() -> None:
    """Rows of an array that a function closes over, which is another one at the next call."""
    data = {"x": ROWS}

    def loss(w: Any) -> Any:
        return recurrent(np, w, [data["x"][t] for t in range(STEPS)])

    for f in (tc.grad(loss), tc.compile(tc.grad(loss))):
        np.testing.assert_allclose(f(W), tc.grad(of(recurrent, np))(W, ROWS), rtol=1e-12)
    gradient, hessian = tc.grad(loss), tc.hessian(loss)
    for x in (ROWS, -2 * ROWS[::-1], ROWS**2):
        data["x"] = x
        wanted = jax.grad(of(recurrent, jnp))(W, x)
        np.testing.assert_allclose(gradient(W), wanted, rtol=1e-9)
        nested_calls = tc.grad(lambda w: np.sum(gradient(w) * W))(W)
        np.testing.assert_allclose(nested_calls, np.tensordot(hessian(W), W, 2), rtol=1e-9)


def test_batches_of_loops() -> None:
    items = np.stack([ROWS, 2 * ROWS, -ROWS])
    found = tc.vmap(tc.grad(of(gated, np)), (None, 0))(W, items)
    for each, x in zip(found, items, strict=True):
        np.testing.assert_allclose(each, tc.grad(of(gated, np))(W, x), rtol=1e-10)


def test_states_that_are_returned() -> None:
    """The last ones, and those after some steps."""

    def states(xp: Any, w: Any, x: Any) -> Any:
        s, found = xp.ones(3), []
        for t in range(STEPS):
            s = xp.tanh(w @ s + x[t])
            found.append(s)
        return xp.stack(found[::3]), s

    for found, wanted in zip(
        tc.jacobian(of(states, np))(W, ROWS),
        jax.jacobian(of(states, jnp))(W, ROWS), strict=True,
    ):  # fmt: skip
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)


def test_few_steps_stay_as_they_are() -> None:
    s, w, x = tc.var("s", 3), tc.var("W", (3, 3)), tc.var("x", (STEPS, 3))
    for t in range(LEAST_STEPS - 1):
        s = tc.tanh(w @ s + x[t])
    e = tc.sum(s)
    (found,) = rolled([e], lambda rows: None)
    assert found is e


def test_steps_that_differ_stay_as_they_are() -> None:
    s, w = tc.var("s", 3), tc.var("W", (3, 3))
    for t in range(STEPS):
        s = (tc.tanh, tc.sin, tc.cos)[int(MARKS[t])](w @ s)
    (found,) = rolled([s], lambda rows: None)
    np.testing.assert_allclose(found(W=W, s=ROWS[0]), s(W=W, s=ROWS[0]), rtol=1e-12)
