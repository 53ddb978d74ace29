"""Mixed derivatives of functions of two numbers at points that guards and branches single out.

A guard that is right for a derivative by one operand may be differentiated by the other: that of
x^y by x has the factor y, which hides what the rest is where y is 0, and only there.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.applications import apply
from tests import oracle
from tests.stability import DEFINED, ELSEWHERE, REACH
from tests.test_operators import ELEMENTWISE

POINTS = np.array([*product((-2.0, -1.0, 0.0, 0.5, 1.0, 2.0), repeat=2)])
ORDERS = [orders for orders in product(range(4), repeat=2) if 0 < sum(orders) <= 3]
ROWS = [row for row in ELEMENTWISE if len(row.core) == 2 and row.name not in ELSEWHERE | {*REACH}]
STEPS = ("1e-20", "-1.7e-20")


def derivative(f: Any, at: tuple[float, ...], orders: tuple[int, ...]) -> float | None:
    """By differences to both sides; None where these differ, and f is not smooth."""
    found = []
    for step in map(mp.mpf, STEPS):
        weights = [[(-1) ** (n - k) * mp.binomial(n, k) for k in range(n + 1)] for n in orders]
        terms = [
            weights[0][i] * weights[1][j] * f(mp.mpf(at[0]) + i * step, mp.mpf(at[1]) + j * step)
            for i, j in product(range(orders[0] + 1), range(orders[1] + 1))
        ]
        found.append(mp.fsum(terms) / step ** sum(orders))
    smooth = all(isinstance(v, mp.mpf) and mp.isfinite(v) for v in found)
    return float(found[0]) if smooth and abs(found[0] - found[1]) < 1e-12 else None


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_mixed_derivatives_at_special_points(row: Any) -> None:
    f = DEFINED.get(row.name) or oracle.function(row.name)
    assert f is not None
    x, y = tc.var("x", len(POINTS)), tc.var("y", len(POINTS))
    ones, compared = tc.ones(len(POINTS)), 0
    for orders, first in product(ORDERS, (x, y)):
        e = apply(row, x, y)
        for variable in sorted(
            [x] * orders[0] + [y] * orders[1], key=lambda v, w=first: v is not w
        ):
            e = tc.jvp(e, variable, ones)
        found = np.broadcast_to(tc.compile(e)(x=POINTS[:, 0], y=POINTS[:, 1]), len(POINTS))
        with mp.workdps(150):
            for at, value in zip(map(tuple, POINTS.tolist()), found.tolist(), strict=True):
                try:
                    wanted = derivative(f, at, orders)
                except (ValueError, ZeroDivisionError):
                    continue
                if wanted is not None:
                    assert abs(value - wanted) <= 1e-12 * max(1, abs(wanted)), (at, orders)
                    compared += 1
    assert compared > len(POINTS)
