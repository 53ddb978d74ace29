"""Functions that are finite, and so are all their derivatives to order 3, in every mode.

The oracle differentiates the formula in mpmath at many digits; at 0 it is the table of powers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import tcalc as tc

x = tc.var("x", "n")
MODES = ("forward", "reverse", "cross-country")
LARGE = np.array([0.0, 1e-8, -0.5, 2.0, -30.0, 40.0, -745.0, 710.0, 1e3, -1e3, 1e5, -1e5])

#: A formula for tcalc and for mpmath: both have these functions.
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "log(1 + exp)": lambda f, v: f.log(1 + f.exp(v)),
    "log(1 + exp(-))": lambda f, v: f.log(1 + f.exp(-v)),
    "log sigmoid": lambda f, v: f.log(1 / (1 + f.exp(-v))),
    "-log(1 + exp(-))": lambda f, v: -f.log(f.exp(-v) + 1),
    "sigmoid": lambda f, v: 1 / (1 + f.exp(-v)),
    "sigmoid by exp above": lambda f, v: f.exp(v) / (1 + f.exp(v)),
    "tanh by exp": lambda f, v: (f.exp(v) - f.exp(-v)) / (f.exp(v) + f.exp(-v)),
    "tanh": lambda f, v: f.tanh(v),
    "log cosh": lambda f, v: f.log(f.cosh(v)),
    "logistic density": lambda f, v: f.exp(-v) / (1 + f.exp(-v)) ** 2,
    "1 - tanh^2": lambda f, v: 1 - f.tanh(v) ** 2,
    "two classes": lambda f, v: f.log(f.exp(2 * v) + f.exp(-v)) - 2 * v,
    "mixture": lambda f, v: f.log(0.3 * f.exp(-v * v / 2) + 0.7 * f.exp(-((v - 3) ** 2) / 2)),
}


def derivative(e: tc.Expr, order: int, mode: str) -> tc.Expr:
    for _ in range(order):
        e = tc.derivative(tc.sum(e), x, 1, mode)
    return e


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_right_at_large_arguments(name: str, mode: str) -> None:
    build = FUNCTIONS[name]
    with mp.workdps(1_500):
        points = LARGE[np.abs(LARGE) < 100] if name == "mixture" else LARGE[np.abs(LARGE) < 1e4]
        for order in range(4):
            found = tc.compile(derivative(build(tc, x), order, mode))(x=points)
            for v, value in zip(points.tolist(), found.tolist(), strict=True):
                wanted = differences(lambda u: build(mp, u), mp.mpf(v), order)
                scale = abs(wanted) + mp.mpf(10) ** -12
                assert abs(value - wanted) < 1e-10 * scale + 1e-13, (v, order, mp.nstr(wanted))
    finite = tc.compile(derivative(build(tc, x), 3, mode))(x=LARGE)
    assert np.all(np.isfinite(finite))


def differences(f: Callable[[mp.mpf], mp.mpf], v: mp.mpf, order: int) -> mp.mpf:
    h = mp.mpf(10) ** -60
    steps = {0: [1], 1: [-1, 0, 1], 2: [1, 0, -2, 0, 1], 3: [-1, 0, 3, 0, -3, 0, 1]}[order]
    total = mp.fsum(c * f(v + (k - len(steps) // 2) * h) for k, c in enumerate(steps) if c)
    return total / (2 * h) ** order


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_in_single_precision(name: str) -> None:
    points = LARGE[np.abs(LARGE) < (40 if name == "mixture" else 1e4)]
    for order in range(3):
        e = tc.compile(derivative(FUNCTIONS[name](tc, x), order, "auto"))
        found = e(x=points.astype(np.float32))
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, e(x=points), rtol=3e-5, atol=1e-5)


# --- at 0 -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("power", [0, 1, 2, 3, 4, 7, 3.5])
def test_powers_at_zero(power: float, mode: str) -> None:
    b = tc.var("b")
    for e in (x**power, x**b, tc.power(x, power * tc.ones("n")), tc.where(x < 9, x**b, 0)):
        for order in range(4):
            falling = float(np.prod([power - k for k in range(order)]))
            at = np.array([0.0, 2.0])
            wanted = falling * (at ** (power - order) if falling else at * 0)
            found = derivative(e, order, mode)(x=at, b=power)
            np.testing.assert_allclose(found, wanted, rtol=1e-14)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("zeros", [0, 1, 2, 3, 4])
def test_products_with_zeros(zeros: int, mode: str) -> None:
    at = np.array([2.0, 3.0, 5.0, 7.0])
    at[:zeros] = 0
    v = tc.var("v", 4)
    for e in (tc.prod(v), tc.prod(v[None, :], axis=1)[0], v[0] * v[1] * v[2] * v[3]):
        for order in range(4):
            found = tc.derivative(e, v, order, mode)(v=at)
            wanted = np.zeros((4,) * order)
            for places in itertools.permutations(range(4), order):
                wanted[places] = np.prod(np.delete(at, places))
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("mode", MODES)
def test_norms_at_zero_have_derivatives_zero(mode: str) -> None:
    v = tc.var("v", 3)
    for e in (tc.norm(v), tc.sqrt(tc.sum(v * v)), tc.hypot(v[0], v[1])):
        for order in range(4):
            assert not np.any(tc.derivative(e, v, order, mode)(v=np.zeros(3)))


@pytest.mark.parametrize("mode", MODES)
def test_softmax_and_log_sum_exp_at_large_arguments(mode: str) -> None:
    v, w = tc.var("v", 3), np.array([1.0, 2.0, 3.0])
    at = {"v": np.array([1000.0, 1000.0, -1000.0])}
    shares = np.array([0.5, 0.5, 0.0])
    spread = np.diag(shares) - np.outer(shares, shares)
    for f in (tc.log(tc.sum(tc.exp(v))), tc.logsumexp(v), tc.log(tc.mean(tc.exp(v))) + np.log(3)):
        np.testing.assert_allclose(f(at), 1000 + np.log(2), rtol=1e-15)
        np.testing.assert_allclose(tc.derivative(f, v, 1, mode)(at), shares, atol=1e-15)
        np.testing.assert_allclose(tc.derivative(f, v, 2, mode)(at), spread, atol=1e-15)
        assert np.all(np.isfinite(tc.derivative(f, v, 3, mode)(at)))
    for g in (tc.softmax(v), tc.exp(v) / tc.sum(tc.exp(v)), tc.exp(v - tc.log(tc.sum(tc.exp(v))))):
        np.testing.assert_allclose(g(at), shares, atol=1e-15)
        np.testing.assert_allclose(tc.derivative(g, v, 1, mode)(at), spread, atol=1e-15)
        for order in (2, 3):
            assert np.all(np.isfinite(tc.derivative(tc.sum(g * w), v, order, mode)(at)))
