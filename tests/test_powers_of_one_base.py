"""Powers of one base by exponents in equal steps are products, each of lower ones."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest

import tcalc as tc

EXPONENTS = {
    "from 0": np.arange(8),
    "odd ones": 1 + 2 * np.arange(5),
    "downwards": np.arange(9)[::-1],
    "many": np.arange(300),
    "floats": np.arange(6.0),
}
#: Zeros, infinities and numbers whose powers leave the range included.
BASE = np.array([0.0, -0.0, 1.0, -1.0, 0.3, -0.7, 1.7, 1e-120, 1e150, np.inf, -np.inf, np.nan])

t, s = tc.var("t", "n"), tc.var("s")


def kinds(step: Any) -> set[str]:
    return {made.kind for made in step.plan.steps}


@pytest.mark.parametrize("backend", ["numpy", "c", "functional"])
@pytest.mark.parametrize("name", EXPONENTS)
def test_powers_are_those_of_numpy(name: str, backend: str) -> None:
    exponents = EXPONENTS[name]
    wanted = {
        "rows": t[:, None] ** exponents,
        "one": s**exponents,
        "turned": (t ** exponents[:, None]),
    }
    step = tc.compile(wanted, backend=backend)
    found = step(t=BASE, s=-0.9)
    assert "powers" in kinds(step)
    with np.errstate(all="ignore"):
        rows = BASE[:, None] ** exponents
    np.testing.assert_allclose(found["rows"], rows, rtol=1e-13)
    np.testing.assert_allclose(found["turned"], rows.T, rtol=1e-13)
    np.testing.assert_allclose(found["one"], (-0.9) ** exponents, rtol=1e-13)


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_rounding_errors_are_in_proportion_to_the_exponent(backend: str) -> None:
    base = np.random.default_rng(0).uniform(0.9, 1.1, 20)
    found = tc.compile(t[:, None] ** np.arange(1025), backend=backend)(t=base)
    with mpmath.workdps(40):
        wanted = [[float(mpmath.mpf(float(b)) ** k) for k in range(1025)] for b in base]
    error = np.abs(found / np.array(wanted) - 1) / np.maximum(np.arange(1025), 1)
    assert error.max() <= 2**-52


@pytest.mark.parametrize(
    "exponents",
    [
        np.array([0, 1, 3]),
        np.arange(5) - 1,
        np.arange(4) + 0.5,
        np.arange(1200),
        np.arange(2),
        np.full(4, 2),
        np.arange(6).reshape(2, 3),
    ],
)
def test_other_exponents_are_left_to_pow(exponents: Any) -> None:
    base = np.array([0.5, 1.25])
    step = tc.compile(t.reshape((-1,) + (1,) * exponents.ndim) ** exponents, backend="c")
    np.testing.assert_allclose(
        step(t=base), base.reshape((-1,) + (1,) * exponents.ndim) ** exponents, rtol=1e-14
    )
    assert "powers" not in kinds(step)


def test_a_polynomial_of_many_points_is_one_loop_of_products() -> None:
    """Neither pow nor the matrix of all powers."""
    n, m = 20_000, 64
    x, y = tc.var("x", m), tc.var("y", "n")
    f = tc.sum((y - t[:, None] ** np.arange(m) @ x) ** 2)
    plan = tc.compile(tc.grad(f, x), backend="c").plan_for(x=(m,), y=(n,), t=(n,))
    assert not any(step.kind == "ufunc" for step in plan.steps)
    assert plan.flops < 6 * n * m
    assert plan.peak_bytes < n * m
