"""Python's loops over traced values become folds: numbers of jax's, and one step in the plan."""

from __future__ import annotations

import gc
import weakref
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


def predators(xp: Any, w: Any, x: Any) -> Any:
    """A state put together of entries, whose parts look alike but for their places."""
    u, total = x[0] + 2, 0.0
    for t in range(STEPS):
        change = [w[0, 0] * u[0] - w[0, 1] * u[0] * u[1], w[1, 1] * u[0] * u[1] - w[1, 0] * u[1]]
        u = xp.stack([u[0] + 0.05 * change[0], u[1] + 0.05 * change[1], u[2] * w[2, 2]])
        total = total + xp.sum((u - x[t]) ** 2)
    return total


PROGRAMS = [
    recurrent, gated, volatility, leapfrog, second_order, alternating, backwards,
    in_order_of_marks, nested, two_loops, predators,
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


# --- deep expressions that no trace made ----------------------------------------------------------

DEEP_STEPS = 700
NUMBERS = RNG.uniform(0.6, 1.4, (2, DEEP_STEPS))


def swings(xp: Any, x: Any, w: Any) -> list[Any]:
    s = x
    for _ in range(DEEP_STEPS):
        s = xp.sin(s) * x
    return [s]


def by_numbers(xp: Any, x: Any, w: Any) -> list[Any]:
    s = x
    for a, b in NUMBERS.T:
        s = a * xp.sin(s) + b
    return [s]


def in_threes(xp: Any, x: Any, w: Any) -> list[Any]:
    s = x
    for k in range(DEEP_STEPS):
        s = (xp.tanh(s) + w, xp.cos(s * w), s * x)[k % 3]
    return [s]


def with_ends(xp: Any, x: Any, w: Any) -> list[Any]:
    """What comes before the loop and after it is something else."""
    s = xp.exp(xp.sin(x) - w) + x
    for _ in range(DEEP_STEPS):
        s = xp.cos(s) + w * x
    return [xp.log(1 + s * s) * w - x]


def left_behind(xp: Any, x: Any, w: Any) -> list[Any]:
    """Two states, and what they are after some of the steps."""
    p, q, found = x, w, []
    for k in range(DEEP_STEPS):
        p, q = xp.sin(q) + 0.5 * p, xp.cos(p) * w
        if k % 300 == 299:
            found += [p, q * p]
    return [*found, p]


def of_arrays(xp: Any, x: Any, w: Any) -> list[Any]:
    s = x * xp.array([1.0, 2.0, 3.0])
    for _ in range(DEEP_STEPS):
        s = xp.tanh(xp.array(W) @ s + w)
    return [xp.sum(s * s)]


DEEP_PROGRAMS = [swings, by_numbers, in_threes, with_ends, left_behind, of_arrays]
POINT = {"x": 1.3, "w": 0.7}


def deep(program: Callable[..., Any]) -> tuple[list[Any], tuple[Any, Any]]:
    x, w = tc.var("x"), tc.var("w")
    return program(tc.numpy, x, w), (x, w)


def slopes(program: Callable[..., Any]) -> np.ndarray:
    """Derivatives of all results by x and by w, by steps along the imaginary axis."""
    steps = [(1.3 + 1e-30j, 0.7), (1.3, 0.7 + 1e-30j)]
    return np.transpose([np.imag(program(np, *at)) * 1e30 for at in steps])


@pytest.mark.parametrize("program", DEEP_PROGRAMS, ids=lambda p: p.__name__)
def test_deep_expressions_are_computed_as_loops(program: Callable[..., Any]) -> None:
    """Their values and derivatives; the expressions stay as they were written."""
    results, wrt = deep(program)
    values, wanted = program(np, 1.3, 0.7), slopes(program)
    for e, value in zip(results, values, strict=True):
        assert float(e(POINT)) == pytest.approx(value, rel=1e-12)
    compiled = tc.compile((results, [tc.grad(e, wrt) for e in results]), backend="numpy")
    assert len(compiled.plan.units) < DEEP_STEPS
    found, gradients = compiled(**POINT)
    np.testing.assert_allclose(found, values, rtol=1e-12)
    for mode in ("reverse", "forward", "cross-country"):
        jacobian = tc.jacobian(results, wrt, mode=mode)
        assert any(loops_in(part.inner) for part in jacobian[-1])
        np.testing.assert_allclose(tc.compile(jacobian)(**POINT), wanted, rtol=1e-9, atol=1e-200)
    np.testing.assert_allclose(gradients, wanted, rtol=1e-9, atol=1e-200)
    assert not any(map(loops_in, results))
    assert not any("fold" in str(e) for e in results)


@pytest.mark.parametrize("program", DEEP_PROGRAMS, ids=lambda p: p.__name__)
def test_transforms_of_deep_expressions(program: Callable[..., Any]) -> None:
    """Along directions, of second order, over a batch, and in single precision."""
    results, (x, w) = deep(program)
    e, wanted = results[-1], slopes(program)[-1]
    along = tc.jvp(e, (x, w), (0.3, -1.2))
    np.testing.assert_allclose(along(POINT), wanted @ [0.3, -1.2], rtol=1e-9, atol=1e-200)
    np.testing.assert_allclose(tc.vjp(e, w, 2.0)(POINT), 2 * wanted[1], rtol=1e-9, atol=1e-200)
    below, above = (program(np, 1.3 + 1e-30j, 0.7 + d)[-1].imag * 1e30 for d in (-1e-5, 1e-5))
    scale = max(abs(wanted)) + 1e-200
    second = (above - below) / 2e-5
    assert tc.jacobian(tc.grad(e, x), w)(POINT) == pytest.approx(second, rel=1e-4, abs=1e-6 * scale)
    rows = np.linspace(0.5, 1.0, 4)
    batch = tc.vmap(e, {"x": 0})(x=rows, w=0.7)
    np.testing.assert_allclose(batch, [program(np, at, 0.7)[-1] for at in rows], rtol=1e-12)
    single = {name: np.float32(value) for name, value in POINT.items()}
    value = program(np, *single.values())[-1]
    assert tc.compile(e, backend="numpy")(**single) == pytest.approx(value, rel=1e-3)


def test_deep_expressions_of_unequal_steps_stay_as_they_are() -> None:
    kinds = RNG.integers(0, 3, DEEP_STEPS)
    x = tc.var("x")
    s, value = x, 0.9 + 1e-30j
    for k in kinds:
        s = (tc.sin, tc.cos, tc.tanh)[k](s) + x
        value = (np.sin, np.cos, np.tanh)[k](value) + (0.9 + 1e-30j)
    gradient = tc.grad(s, x)
    assert not loops_in(gradient.inner)
    assert float(s(x=0.9)) == pytest.approx(value.real, rel=1e-12)
    assert float(gradient(x=0.9)) == pytest.approx(value.imag * 1e30, rel=1e-9)


def test_loops_of_deep_expressions_go_with_them() -> None:
    (e,), (x, _) = deep(swings)
    kept = weakref.ref(e), weakref.ref(tc.grad(e, x).inner)
    e(x=0.9)
    tc.grad(e, x)(x=0.9)
    del e
    gc.collect()
    assert [ref() for ref in kept] == [None, None]
