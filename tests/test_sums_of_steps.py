"""Hessians of short loops: of the loops that a plan has, some are gone when their turn comes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tcalc as tc
from tests.shared import run_source

#: What a step makes of the matrix and of a slice of what it scans.
STEPS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "tanh": lambda xp, m, y: xp.tanh(m @ y[0]),
    "scaled": lambda xp, m, y: m[0] * y[0],
    "product": lambda xp, m, y: (m * y @ m)[0],
}


def total(step: Callable[[Any, Any], Any], w: Any, fold: Any, sin: Any, ones: Any, n: int) -> Any:
    one, other = fold(lambda s, i: (step(s, i), s[0]), (ones(3), w), n)
    return sin(one).sum() + sin(other).sum()


def loop(step: Any, state: Any, n: int) -> Any:
    for i in range(n):
        state = step(state, i)
    return state


@pytest.mark.parametrize("way", ["numpy", "c", "auto", "source"])
@pytest.mark.parametrize("n", [1, 2, 4])
@pytest.mark.parametrize("name", STEPS)
def test_a_state_that_another_takes_over(name: str, n: int, way: str) -> None:
    rng, make = np.random.default_rng(0), STEPS[name]
    data = {"w": rng.normal(size=3), "M": rng.normal(size=(3, 3)), "Y": rng.normal(size=(n, 3, 3))}
    w, m, y = (tc.var(key, value.shape) for key, value in data.items())
    f = total(lambda s, i: make(tc, m, y[i]) + s[1], w, tc.fold, tc.sin, tc.ones, n)
    g = total(lambda s, i: make(tc, m, y[i]), w, tc.fold, tc.sin, tc.ones, n)

    def plain(matrix: Any, adds: bool) -> Any:
        def step(s: Any, i: int) -> Any:
            return make(jnp, matrix, data["Y"][i]) + (s[1] if adds else 0)

        return total(step, data["w"], loop, jnp.sin, jnp.ones, n)

    for e, adds in ((f, True), (g, False)):
        h = tc.hessian(e, m)
        given = {key: data[key] for key in h.variables}
        wanted = jax.hessian(plain)(data["M"], adds)
        step = tc.compile(h, backend=way) if way != "source" else None
        found = run_source(h, data) if step is None else [step(**given), step(**given)][1]
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)
