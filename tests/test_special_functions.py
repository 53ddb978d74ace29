"""Rows whose usual formulas overflow or cancel, and their derivatives, against mpmath."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

import tcalc as tc
from tests import oracle
from tests.shared import run_source

x = tc.var("x", "n")


def derivatives(e: tc.Expr, at: np.ndarray, order: int, **options: str) -> np.ndarray:
    """The derivative of an elementwise expression, at every point."""
    for _ in range(order):
        e = tc.grad(tc.sum(e), x)
    return tc.compile(e, **options)(x=at)


def relative(found: np.ndarray, wanted: list[mp.mpf]) -> float:
    """The largest error, relative where numbers are normal."""
    tiny = 1e-290
    pairs = zip(found.tolist(), wanted, strict=True)
    return max(float(abs(mp.mpf(f) - w) / (abs(w) + tiny)) for f, w in pairs)


MILLS = np.concatenate([-np.logspace(8, 0, 50), np.linspace(-9, 9, 91), np.linspace(9, 37, 12)])


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_derivatives_of_log_ndtr_are_accurate_on_both_tails(order: int, backend: str) -> None:
    wanted = [oracle.function("inverse_mills")(order - 1, mp.mpf(v)) for v in MILLS.tolist()]
    assert relative(derivatives(tc.log_ndtr(x), MILLS, order, backend=backend), wanted) < 1e-10


@pytest.mark.parametrize("order", [1, 2, 3])
def test_derivatives_of_log_ndtr_in_single_precision(order: int) -> None:
    at = np.concatenate([-np.logspace(4, 0, 30), np.linspace(-6, 6, 61)]).astype(np.float32)
    wanted = [oracle.function("inverse_mills")(order - 1, mp.mpf(float(v))) for v in at]
    found = derivatives(tc.log_ndtr(x), at, order)
    assert found.dtype == np.float32
    pairs = zip(found.tolist(), wanted, strict=True)
    error = max(float(abs(f - w) / (abs(w) + 0.01)) for f, w in pairs)
    assert error < (3e-4 if order > 2 else 1e-5)


def test_printed_source_of_the_inverse_mills_ratio() -> None:
    for order in (1, 2, 4):
        e = tc.log_ndtr(x)
        for _ in range(order):
            e = tc.grad(tc.sum(e), x)
        space: dict[str, object] = {}
        exec(tc.to_code(e, "numpy"), space)
        np.testing.assert_allclose(space["f"](MILLS), e(x=MILLS), rtol=1e-13)  # type: ignore[operator]
        value = tc.derivative(e, x, 0)
        assert tc.parse(str(value), x=("n",)) is tc.parse(str(e), x=("n",))


def test_the_inverse_mills_ratio_at_infinity() -> None:
    at = np.array([-np.inf, np.inf, np.nan])
    for order, wanted in ((1, [np.inf, 0, np.nan]), (2, [-1, 0, np.nan]), (3, [0, 0, np.nan])):
        np.testing.assert_array_equal(derivatives(tc.log_ndtr(x), at, order), wanted)


HYPERBOLIC = np.concatenate([[0.0, 1e-300, 1e-9], np.logspace(-6, 2.4, 60)])
HYPERBOLIC = np.concatenate([HYPERBOLIC, -HYPERBOLIC])


def sech_squared(order: int, v: mp.mpf) -> mp.mpf:
    """The derivative of tanh of this order from 1 on, by polynomials in tanh without 1 - tanh^2."""
    t, s = mp.tanh(v), mp.sech(v) ** 2
    return {1: s, 2: -2 * t * s, 3: s * (4 * t * t - 2 * s), 4: s * t * (16 * s - 8 * t * t)}[order]


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_derivatives_of_tanh_do_not_cancel(order: int, backend: str) -> None:
    wanted = [sech_squared(order, mp.mpf(v)) for v in HYPERBOLIC.tolist()]
    found = derivatives(tc.tanh(x), HYPERBOLIC, order, backend=backend)
    assert relative(found, wanted) < (1e-12 if order < 3 else 1e-10)


def test_logcosh_is_accurate_near_zero_and_far_out() -> None:
    at = np.concatenate([HYPERBOLIC, [1e4, -1e8]])
    wanted = [oracle.function("logcosh")(mp.mpf(v)) for v in at.tolist()]
    for backend in ("numpy", "c"):
        assert relative(derivatives(tc.logcosh(x), at, 0, backend=backend), wanted) < 1e-14


def test_printed_programs_take_orders_that_differ() -> None:
    n, x = tc.var("n", 3), tc.var("x", 3)
    e, data = tc.inverse_mills(n, x), {"n": np.array([0.0, 1, 2]), "x": np.array([-9.0, 0.5, -3])}
    np.testing.assert_allclose(run_source(e, data), e(data), rtol=1e-14)
