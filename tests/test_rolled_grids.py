"""Steps on grids: what is moved along several axes is one fold, whichever axis comes first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.loops.rolling import rolled
from tests.test_rolled_loops import loops_in

#: One step from a state u with a coefficient k.
STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "two axes": lambda u, k: k * (np.roll(u, 1, 0) + np.roll(u, 1, 1)),
    "two axes and itself": lambda u, k: u + k * (np.roll(u, 1, 0) + np.roll(u, 1, 1) - 2 * u),
    "four neighbours": lambda u, k: (
        u + k * (sum(np.roll(u, s, a) for s in (1, -1) for a in (0, 1)) - 4 * u)
    ),
    "four differences": lambda u, k: (
        u + k * sum(np.roll(u, s, a) - u for s in (1, -1) for a in (0, 1))
    ),
    "functions of both": lambda u, k: k * (np.roll(np.tanh(u), 1, 0) + np.roll(np.sin(u), 1, 1)),
    "a function of a sum": lambda u, k: np.tanh(k * (np.roll(u, 1, 0) + 2 * np.roll(u, 1, 1))),
    "Allen and Cahn": lambda u, k: (
        u + k * (sum(np.roll(u, s, a) for s in (1, -1) for a in (0, 1)) - 4 * u + u - u**3)
    ),
    "products with both sides": lambda u, k: u + 0.1 * k * (u @ WEIGHTS + WEIGHTS @ u - u),
}
RNG = np.random.default_rng(5)
WEIGHTS, START = RNG.normal(size=(6, 6)) / 3, RNG.uniform(-1, 1, (6, 6))


def after(step: Callable[[Any, Any], Any], count: int) -> Callable[[Any, Any], Any]:
    def run(k: Any, u: Any) -> Any:
        for _ in range(count):
            u = step(u, k)
        return (u * u).sum()

    return run


@pytest.mark.parametrize("name", STEPS)
def test_steps_on_a_grid_are_few_loops(name: str) -> None:
    f = after(STEPS[name], 24)
    value, (by_k, by_u) = tc.value_and_grad(f, (0, 1))(0.2, START)
    np.testing.assert_allclose(value, f(0.2, START), rtol=1e-12)
    np.testing.assert_allclose(by_k, f(0.2 + 1e-30j, START).imag / 1e-30, rtol=1e-9)
    bump = np.zeros((6, 6))
    bump[2, 4] = 1
    slope = f(0.2, START + 1e-30j * bump).imag / 1e-30
    np.testing.assert_allclose(by_u[2, 4], slope, rtol=1e-9, atol=1e-14)
    (rolled_up,) = rolled([f(tc.var("k"), tc.var("u", (6, 6)))], lambda rows: None)
    assert 1 <= len(loops_in(rolled_up)) <= 2
