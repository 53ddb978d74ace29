"""Logarithms and roots of products and quotients: derivatives by the factors, beside mpmath's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import tcalc as tc

x, y, r = tc.var("x"), tc.var("y"), tc.var("r")
A, v, w = tc.var("A", ("m", "n")), tc.var("v", "n"), tc.var("w", "m")
MODES = ["forward", "reverse", "cross-country"]

#: Functions of x at r, the same with mpmath.
SCALARS: list[tuple[tc.Expr, Callable[[Any, Any], Any]]] = [
    (tc.log(r / (r + tc.exp(x))), lambda x, r: mp.log(r / (r + mp.exp(x)))),
    (tc.log(tc.exp(x) / (r + tc.exp(x))), lambda x, r: x - mp.log(r + mp.exp(x))),
    (tc.log(x / (x + r)), lambda x, r: mp.log(x / (x + r))),
    (tc.log2(r * x**2 / (x + 1)), lambda x, r: mp.log(r * x**2 / (x + 1), 2)),
    (tc.log10(tc.sqrt(x) * tc.exp(-x / r)), lambda x, r: mp.log(x, 10) / 2 - x / r / mp.log(10)),
    (tc.log(tc.abs(x) * r), lambda x, r: mp.log(abs(x) * r)),
    (tc.log(1 / x**1.5), lambda x, r: -1.5 * mp.log(x)),
    (tc.log(tc.sigmoid(x) * x), lambda x, r: mp.log(x) - mp.log(1 + mp.exp(-x))),
    (tc.sqrt(r / x**2), lambda x, r: mp.sqrt(r) / x),
    (tc.sqrt(x / (x + r)), lambda x, r: mp.sqrt(x / (x + r))),
    ((3 * x / (x + r)) ** -0.7, lambda x, r: (3 * x / (x + r)) ** mp.mpf(-0.7)),
    ((x / (x + r)) ** 2.5, lambda x, r: (x / (x + r)) ** mp.mpf(2.5)),
]  # fmt: skip


@pytest.mark.parametrize(("e", "exact"), SCALARS, ids=[str(e) for e, _ in SCALARS])
@pytest.mark.parametrize("mode", MODES)
def test_all_orders_in_all_modes(e: tc.Expr, exact: Callable[[Any, Any], Any], mode: str) -> None:
    for order in (1, 2, 3):
        slope = tc.compile(tc.derivative(e, x, order, mode))
        for at, other in ((0.3, 2.0), (3.0, 0.5)):
            with mp.workdps(50):
                wanted = mp.diff(lambda z, r=other: exact(z, mp.mpf(r)), mp.mpf(at), order)
            np.testing.assert_allclose(slope(x=at, r=other), float(wanted), rtol=1e-12)


@pytest.mark.parametrize("at", [-700.0, -36.0, 20.0, 36.0, 40.0, 600.0])
def test_no_digits_cancel_where_one_term_is_negligible(at: float) -> None:
    """The likelihood of counts, as the negative binomial distribution is written in books."""
    counts = 3.0
    e = r * tc.log(r / (r + tc.exp(x))) + counts * tc.log(tc.exp(x) / (r + tc.exp(x)))
    for backend in ("numpy", "c"):
        second = tc.compile(tc.derivative(e, x, 2), backend=backend)
        with mp.workdps(50):
            mu = mp.exp(at)
            wanted = -2 * mu * (2 + mp.mpf(counts)) / (2 + mu) ** 2
        np.testing.assert_allclose(second(x=at, r=2.0), float(wanted), rtol=1e-14)


def test_the_slope_by_a_scale_is_finite_where_a_distance_is_zero() -> None:
    """Kernels of Gaussian processes with the length inside of the root."""
    D, length = tc.var("D", ("n", "n")), tc.var("length")
    s = tc.sqrt(5 * D / length**2)
    f = tc.sum((1 + s + s**2 / 3) * tc.exp(-s))
    at = {"D": np.array([[0.0, 1.0], [1.0, 0.0]]), "length": 0.7}

    def exact(scale: Any) -> Any:
        t = mp.sqrt(5) / scale
        return 2 + 2 * (1 + t + t**2 / 3) * mp.exp(-t)

    for order in (1, 2, 3):
        for mode in MODES:
            found = tc.derivative(f, length, order, mode)(**at)
            np.testing.assert_allclose(found, float(mp.diff(exact, 0.7, order)), rtol=1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_factors_stand_along_their_own_axes(mode: str) -> None:
    """Rows, columns, a transpose and a number: the exact slopes are those of the logarithms."""
    e = tc.sum(tc.log(3 * A * w[:, None] * y / (v * tc.exp(A.T).T)) ** 2)
    rng = np.random.default_rng(0)
    data = {k: rng.uniform(0.5, 2, s) for k, s in {"A": (3, 2), "v": 2, "w": 3, "y": ()}.items()}
    logs = np.log(3 * data["A"] * data["w"][:, None] * data["y"] / data["v"]) - data["A"]
    wanted = {
        "A": 2 * logs * (1 / data["A"] - 1), "w": 2 * logs.sum(1) / data["w"],
        "v": -2 * logs.sum(0) / data["v"], "y": 2 * logs.sum() / data["y"],
    }  # fmt: skip
    for name, slope in wanted.items():
        np.testing.assert_allclose(tc.derivative(e, name, 1, mode)(**data), slope, rtol=1e-12)


def test_the_derivative_has_no_quotient_of_quotients() -> None:
    steps = tc.compile(tc.grad(tc.log(x / (x + r)), x)).plan_for(x=(), r=()).steps
    assert len(steps) == 4, steps  # a sum, two reciprocals, their difference


def test_diagonals_and_sums_are_factors_as_they_stand() -> None:
    B = tc.var("B", ("n", "n"))
    data = {"B": np.array([[2.0, 7.0], [-3.0, 5.0]]), "v": np.array([1.0, 3.0])}
    found = tc.grad(tc.sum(tc.log(tc.diagonal(B) / tc.sum(v))), B)(**data)
    np.testing.assert_allclose(found, np.diag([1 / 2, 1 / 5]), rtol=1e-15)
    found = tc.grad(tc.log(tc.sum(v) * y), v)(v=data["v"], y=2.0)
    np.testing.assert_allclose(found, [0.25, 0.25], rtol=1e-15)
