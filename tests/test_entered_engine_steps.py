"""Python loops over traced values whose steps differ somewhere: derivatives stay those of NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcalc as tc

Function = Callable[[Any], Any]
N = 40
V = np.array([0.126, -0.132, 0.64, 0.105])
RNG = np.random.default_rng(0)
EACH = RNG.normal(size=(N, 4))
MATRICES = RNG.normal(size=(3, 3, 3)) / 2


def by_complex_steps(f: Function, at: np.ndarray) -> np.ndarray:
    found = np.zeros(at.shape)
    for place in np.ndindex(at.shape):
        step = np.zeros(at.shape, complex)
        step[place] = 1e-30j
        found[place] = np.imag(f(at + step)) / 1e-30
    return found


def has_slopes_of_numpy(f: Function, at: np.ndarray = V) -> None:
    np.testing.assert_allclose(tc.value_and_grad(f)(at)[0], f(at), rtol=1e-11)
    np.testing.assert_allclose(tc.grad(f)(at), by_complex_steps(f, at), rtol=1e-8, atol=1e-13)


def repeated(step: Callable[[Any, int, Any], Any], count: int = N) -> Function:
    def f(x: Any) -> Any:
        s = x
        for k in range(count):
            s = step(s, k, x)
        return np.sum(s * s)

    return f


# --- steps that read other operands ---------------------------------------------------------------


@pytest.mark.parametrize("at", [0, 20, N - 1])
def test_one_step_that_reads_the_argument_in_place_of_data(at: int) -> None:
    """What is captured and what is given do not stand for each other."""
    has_slopes_of_numpy(repeated(lambda s, k, x: np.tanh(s + (x if k == at else EACH[k]))))


@pytest.mark.parametrize("at", [5, 200])
def test_one_step_that_multiplies_by_an_extent(at: int) -> None:
    """A factor n is no number that differs from step to step, as 1/n is in the others."""
    x, n = tc.var("x", "n"), tc.parse("extent(n)")
    s: tc.Expr = x
    for k in range(400):
        s = tc.tanh(s * x) * (n if k == at else 1 / n) + x / 9
    slope = tc.grad(tc.sum(s), x)

    def f(v: Any) -> Any:
        w = v
        for k in range(400):
            w = np.tanh(w * v) * (4 if k == at else 1 / 4) + v / 9
        return np.sum(w)

    np.testing.assert_allclose(slope(x=V), by_complex_steps(f, V), rtol=1e-9)


def test_slopes_inside_of_what_is_traced() -> None:
    """A gradient that is taken while a function is traced, of steps with data of their own."""

    def f(x: Any) -> Any:
        s = x
        for k in range(N):
            s = np.tanh(s + EACH[k]) * x
        return np.sum(s)

    def along(x: Any) -> Any:
        s = x
        for k in range(N):
            s = np.tanh(s + EACH[k]) * x
        return np.sum(tc.grad(np.sum(s), x) * V)

    eps = 1e-6
    wanted = (by_complex_steps(f, V + eps * V) - by_complex_steps(f, V - eps * V)) / (2 * eps)
    np.testing.assert_allclose(tc.grad(along)(V), wanted, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("read", [(34,), (2, 14, 34)])
def test_steps_that_read_others_of_the_same_loop(read: tuple[int, ...]) -> None:
    """A step that reads the one half as far is no step of a loop over what stands before it."""

    def f(x: Any) -> Any:
        s, before = x, [np.sin(x)]
        for k in range(35):
            s = np.tanh(np.tanh(s + EACH[k]) + np.tanh(before[(k + 1) // 2]))
            before.append(s)
        return sum(np.sum(before[k + 1] ** 2) for k in read)

    has_slopes_of_numpy(f)


# --- programs of steps at random ------------------------------------------------------------------

OPERATIONS: list[Callable[..., Any]] = [
    lambda p, q, k, v, x: np.tanh(MATRICES[k % 2] @ p),
    lambda p, q, k, v, x: np.sin(p) * q,
    lambda p, q, k, v, x: p + q * v,
    lambda p, q, k, v, x: np.tanh(p) * (v + k),
    lambda p, q, k, v, x: np.tanh(p + EACH[k, :3]),
    lambda p, q, k, v, x: p * np.sum(np.tanh(q)),
    lambda p, q, k, v, x: np.sin(p) + x[k % 3],
    lambda p, q, k, v, x: p[::-1] + np.cos(q),
    lambda p, q, k, v, x: np.tanh(p) * np.tanh(p[k % 3]),
    lambda p, q, k, v, x: p * p * 0.1 - q,
    lambda p, q, k, v, x: np.sin(p) * 0.5**k,
    lambda p, q, k, v, x: np.tanh(p / (1 + q * q)),
    lambda p, q, k, v, x: np.cumsum(np.sin(p)),
    lambda p, q, k, v, x: np.roll(np.sin(p), 1) * q,
    lambda p, q, k, v, x: np.sin(p) * (k % 4) - q,
]


def program(seed: int) -> Function:
    """Steps of a few operations on a few states, in which one step, each second one, or all of
    the second half have others."""
    rng = np.random.default_rng(seed)
    states, steps = int(rng.integers(1, 4)), int(rng.integers(10, N))
    chosen = [[int(j) for j in rng.integers(0, 15, 3)] for _ in range(rng.integers(2, 6))]
    numbers = rng.normal(size=len(chosen)).round(2)
    odd, at = int(rng.integers(0, 4)), int(rng.integers(0, steps))
    read = rng.integers(0, steps, 3).tolist()

    def f(x: Any) -> Any:
        now, total = [x * (j + 1) for j in range(states)], 0
        for k in range(steps):
            made = list(now)
            for (o, a, b), v in zip(chosen, numbers, strict=True):
                other = (odd == 1 and k == at) or (odd == 2 and k % 2)
                p, q = made[a % len(made)], made[b % len(made)]
                if odd == 3 and k >= steps // 2:
                    p, q = q, p
                made.append(OPERATIONS[(o + other) % 15](p, q, k, float(v), x))
            now = [np.tanh(made[-1 - j]) for j in range(states)]
            total = total + (np.sum(now[-1]) if k in read else 0)
        return total + sum(np.sum(s * s) for s in now)

    return f


@pytest.mark.parametrize("seed", [7, 30])
def test_programs_of_steps(seed: int) -> None:
    has_slopes_of_numpy(program(seed), V[:3])
