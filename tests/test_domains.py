"""Where equalities hold: the documentation's table of formal identities and of proved domains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import tcalc as tc
from tcalc.rules.strategy import ALL_RULES, Rule, simplify

x, w, p = tc.var("x"), tc.var("w"), tc.var("p", nonnegative=True)
INF, NAN = float("inf"), float("nan")

#: What is written, where it is evaluated, and its value.
TABLE: list[tuple[str, tc.Expr, dict[str, float], float]] = [
    # formal identities: 0 e = 0 and e - e = 0, whatever e is
    ("0/x at 0", 0 / x, {"x": 0.0}, 0.0),
    ("x*0 + w at nan", x * 0 + w, {"x": NAN, "w": 3.0}, 3.0),
    ("x*0 at infinity", x * 0, {"x": INF}, 0.0),
    ("x - x + w at infinity", x - x + w, {"x": INF, "w": 3.0}, 3.0),
    ("0*log(x) at 0", 0 * tc.log(x), {"x": 0.0}, 0.0),
    ("0*(1/x) at 0", 0 * (1 / x), {"x": 0.0}, 0.0),
    ("0*log(0)", 0 * tc.log(tc.const(0.0)), {}, 0.0),
    ("0*(1/0)", 0 * (1 / tc.const(0.0)), {}, 0.0),
    ("x**0 at nan", x**0, {"x": NAN}, 1.0),
    # a quotient of numbers is IEEE's
    ("0/0", tc.const(0.0) / 0, {}, NAN),
    ("1/0", 1 / tc.const(0.0), {}, INF),
    # no quotient of expressions is cancelled
    ("x/x at 0", x / x, {"x": 0.0}, NAN),
    ("x/x at 2", x / x, {"x": 2.0}, 1.0),
    ("x*x/x at 0", x * x / x, {"x": 0.0}, NAN),
    # no rule extends a function's real domain
    ("exp(log(x)) at -2", tc.exp(tc.log(x)), {"x": -2.0}, NAN),
    ("(x**.5)**2 at -2", (x**0.5) ** 2, {"x": -2.0}, NAN),
    ("sqrt(x)*sqrt(x)*w at -2", tc.sqrt(x) * tc.sqrt(x) * w, {"x": -2.0, "w": 1.0}, NAN),
    ("(x**1.5)**2 at -2", (x**1.5) ** 2, {"x": -2.0}, NAN),
    ("(x**.5)**4 at -2", (x**0.5) ** 4, {"x": -2.0}, NAN),
    ("log(x*x) at -2", tc.log(x * x), {"x": -2.0}, float(np.log(4))),
    ("log(x*exp(w)) at -2", tc.log(x * tc.exp(w)), {"x": -2.0, "w": 1.0}, NAN),
    ("2*log(x) at -2", 2 * tc.log(x), {"x": -2.0}, NAN),
    ("log(x) + log(x) at -2", tc.log(x) + tc.log(x), {"x": -2.0}, NAN),
    ("sqrt(x*x) at -2", tc.sqrt(x * x), {"x": -2.0}, 2.0),
    ("tan(arctan(x))", tc.tan(tc.arctan(x)), {"x": 2.0}, 2.0),
    ("sin(arcsin(x)) at 2", tc.sin(tc.arcsin(x)), {"x": 2.0}, NAN),
    ("exp(log(p)) at 2", tc.exp(tc.log(p)), {"p": 2.0}, 2.0),
]


@pytest.mark.parametrize(("e", "at", "wanted"), [r[1:] for r in TABLE], ids=[r[0] for r in TABLE])
def test_table(e: tc.Expr, at: dict[str, float], wanted: float) -> None:
    for f in (e, simplify(e)):
        for backend in ("numpy", "c"):
            found = tc.compile(f, backend=backend)(at)
            np.testing.assert_allclose(found, wanted, rtol=1e-15)


def test_rules_that_need_a_proof_fire_where_there_is_one() -> None:
    assert simplify(tc.exp(tc.log(p))) is p
    assert simplify((p**0.5) ** 2) is p
    assert simplify(tc.exp(tc.log(x * x + p))) is x * x + p
    squares = tc.sum(tc.var("v", 3) ** 2)
    assert simplify(tc.sqrt(squares) * tc.sqrt(squares)) is squares


GIVEN = [pytest.param(r, id=r.name) for r in ALL_RULES if r.given]


@pytest.mark.parametrize("rule", GIVEN)
def test_rules_that_need_a_proof_do_not_fire_without(rule: Rule) -> None:
    variables = [tc.var(f"a{k}", rule.shape) for k in range(rule.arity())]
    left = rule.sides(*variables)[0]
    assert rule.try_on(left) is None
    assert replace(rule, given=None).try_on(left) is not None
    at = {v.name: np.full(rule.shape, -2.0) for v in variables}
    assert np.all(np.isnan(left(at)))


OUTSIDE = [-2.0, -1e-300, -1e300, -INF]


@pytest.mark.parametrize("build", [lambda e: tc.exp(tc.log(e)), lambda e: tc.sqrt(e) * tc.sqrt(e)])
def test_outside_the_domain_derivatives_are_nan_too(build: Callable[[tc.Expr], tc.Expr]) -> None:
    for at in OUTSIDE:
        for order in (0, 1):
            assert np.isnan(tc.derivative(build(x), x, order)(x=at))
