"""How a minimisation ends: unbounded objectives are no success, hard bounded ones are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.nodes import Expr

a, b, s = tc.var("a"), tc.var("b"), tc.var("s")
x, w, y = tc.var("x", "n"), tc.var("w", "n"), tc.var("y", "m")
X, A = tc.var("X", ("m", "n")), tc.var("A", ("n", "n"), symmetric=True)
p, q, r, t = (tc.var(name) for name in "pqrt")
RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(50, 3))
SEPARABLE = {"X": ROWS, "y": np.sign(ROWS @ [1.0, 2.0, 3.0])}
TIED = {**SEPARABLE, "X": np.hstack([ROWS[:, :2], ROWS[:, :1]])}
LOGISTIC = tc.sum(tc.softplus(-y * (X @ w)))

# Name, objective, start, data.
ENDLESS: list[tuple[str, Expr, dict[str, Any], dict[str, Any]]] = [
    ("linear", tc.sum(x), {"x": np.zeros(3)}, {}),
    ("linear above much", tc.sum(x) + 1e12, {"x": np.zeros(3)}, {}),
    ("linear, float32", tc.sum(x), {"x": np.zeros(3, np.float32)}, {}),
    ("concave", -tc.sum(x * x), {"x": np.ones(3)}, {}),
    ("concave from its top", -tc.sum(x * x), {"x": np.zeros(3)}, {}),
    ("saddle", a * b, {"a": 1.0, "b": 0.5}, {}),
    ("falling exponential", tc.exp(-a), {"a": 0.0}, {}),
    ("falling exponential, far out", tc.exp(-a), {"a": 30.0}, {}),
    ("minus a logarithm", -tc.log(a), {"a": 1.0}, {}),
    ("logarithm", tc.log(a), {"a": 1.0}, {}),
    ("minus a root", -tc.sqrt(a), {"a": 1.0}, {}),
    ("hyperbola", 1 / a, {"a": 1.0}, {}),
    ("softplus", tc.softplus(-a), {"a": 0.0}, {}),
    ("separable logistic regression", LOGISTIC, {"w": np.zeros(3)}, SEPARABLE),
    ("minus a log-determinant", -tc.logdet(A), {"A": np.eye(3)}, {}),
    ("arc tangent", tc.arctan(a), {"a": 0.0}, {}),
    ("cubic from above", a**3, {"a": 1.0}, {}),
    ("cubic from below", a**3, {"a": -1.0}, {}),
    ("a staircase", a + tc.sin(a), {"a": 0.0}, {}),
    ("the top of a hill", a - tc.exp(a), {"a": 0.0}, {}),
    ("the flank of a pit", -tc.exp(-a * a), {"a": 6.0}, {}),
]

# Name, objective, start, data, least value.
BOUNDED: list[tuple[str, Expr, dict[str, Any], dict[str, Any], float]] = [
    ("at the minimum", a * a, {"a": 0.0}, {}, 0.0),
    ("quartic", a**4, {"a": 1.0}, {}, 0.0),
    ("power of 20", a**20, {"a": 1.0}, {}, 0.0),
    ("tiny", 1e-12 * (a - 1) ** 2, {"a": 50.0}, {}, 0.0),
    ("huge", 1e12 * (a - 1) ** 2, {"a": 50.0}, {}, 0.0),
    ("far", (a - 1e8) ** 2, {"a": 0.0}, {}, 0.0),
    ("high", (a - 1) ** 2 + 1e12, {"a": 50.0}, {}, 1e12),
    ("deep", (a - 1) ** 4 - 1e12, {"a": 50.0}, {}, -1e12),
    ("flat then steep", tc.exp(a) - a, {"a": -50.0}, {}, 1.0),
    ("nearly falling", tc.exp(a) - 1e-6 * a, {"a": 3.0}, {}, 1e-6 * (1 + 6 * np.log(10))),
    ("bent outwards", tc.log(1 + a * a), {"a": 3.0}, {}, 0.0),
    ("straight far out", tc.sqrt(1 + a * a), {"a": 30.0}, {}, 1.0),
    ("steep far out", tc.cosh(a), {"a": 20.0}, {}, 1.0),
    ("a pit", -tc.exp(-a * a), {"a": 0.5}, {}, -1.0),
    ("at the edge", a - tc.log(a), {"a": 1e-3}, {}, 1.0),
    ("scale of noise", s / a + 1e6 * tc.log(a), {"a": 5.0}, {"s": 1e-3}, 1e6 * (1 + np.log(1e-9))),
    ("valley", (1 - a) ** 2 + 100 * (b - a * a) ** 2, {"a": -1.2, "b": 1.0}, {}, 0.0),
    ("Beale", (1.5 - a + a * b) ** 2 + (2.25 - a + a * b**2) ** 2 + (2.625 - a + a * b**3) ** 2,
     {"a": 1.0, "b": 1.0}, {}, 0.0),
    ("Powell", (p + 10 * q) ** 2 + 5 * (r - t) ** 2 + (q - 2 * r) ** 4 + 10 * (p - t) ** 4,
     {"p": 3.0, "q": -1.0, "r": 0.0, "t": 1.0}, {}, 0.0),
    ("columns twice", tc.sum((X @ w - y) ** 2), {"w": np.zeros(3)}, TIED,
     np.linalg.lstsq(TIED["X"][:, :2], TIED["y"])[1][0]),
    ("float32", tc.sum((x - 1) ** 4), {"x": np.zeros(3, np.float32)}, {}, 0.0),
]  # fmt: skip


def single(start: dict[str, Any]) -> dict[str, Any]:
    """Options for starts in single precision."""
    is_single = any(getattr(value, "dtype", None) == np.float32 for value in start.values())
    return {"tolerance": 1e-5} if is_single else {}


@pytest.mark.parametrize(("name", "f", "start", "data"), ENDLESS, ids=[row[0] for row in ENDLESS])
def test_without_a_minimum_there_is_no_success(
    name: str, f: Expr, start: dict[str, Any], data: dict[str, Any]
) -> None:
    found = tc.newton(f, start, data=data, **single(start))
    assert not found.success
    assert any(word in found.message for word in ("unbounded", "no minimum")), found.message
    assert found.fun <= f({**data, **start})


@pytest.mark.parametrize(
    ("name", "f", "start", "data", "least"), BOUNDED, ids=[row[0] for row in BOUNDED]
)
def test_hard_minima_are_found(
    name: str, f: Expr, start: dict[str, Any], data: dict[str, Any], least: float
) -> None:
    found = tc.newton(f, start, data=data, **single(start))
    assert found.success, found.message
    assert found.fun == pytest.approx(least, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1e6])
def test_what_is_a_minimum_does_not_depend_on_units(scale: float) -> None:
    """The same objective with another unit of its value, and another zero."""
    f = tc.sum(tc.exp(x) - 2 * x)
    for e in (scale * f, scale * f - 1e6 * scale):
        found = tc.newton(e, {"x": np.array([5.0, -3.0])})
        assert found.success, found.message
        np.testing.assert_allclose(found.x["x"], np.log(2), rtol=1e-4)
    assert not tc.newton(scale * tc.sum(x), {"x": np.array([5.0, -3.0])}).success


def test_what_is_not_finite_is_said() -> None:
    """Infinite curvature upwards tells nothing of a minimum; data that are no numbers are named."""
    found = tc.newton(tc.sum(tc.abs(x) ** 1.5), {"x": np.zeros(3)})
    assert not found.success
    assert "the Hessian is not finite" in found.message
    off = tc.sum((x - w) ** 2)
    with pytest.raises(ValueError, match="nan at the start, as w holds nan or inf"):
        tc.newton(off, {"x": np.zeros(2)}, data={"w": [1.0, float("nan")]})
    with pytest.raises(ValueError, match="nan at the start, as w and x hold nan or inf"):
        tc.newton(off, {x: [np.nan, 1.0]}, data={w: np.array([1.0, np.nan])})
    with pytest.raises(ValueError, match=r"nan at the start$"), np.errstate(invalid="ignore"):
        tc.newton(tc.sum(tc.log(x)), {"x": [1.0, -1.0]})
