"""How often symbolic work is done: nodes asked for and rules tried, never seconds."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc import Expr
from tcalc.accumulation import loops_once
from tcalc.accumulation.orders import loops_apart
from tcalc.calculus import modes
from tcalc.graph.products import split_coef
from tcalc.integers.boxes import Box
from tcalc.loops import derivatives
from tcalc.plan.lowering import candidates, make
from tcalc.rules.strategy import Rule, simplify
from tcalc.support.collector import resting_collector


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of rules as they are tried."""
    names: list[str] = []
    try_on = Rule.try_on

    def counted(rule: Rule, node: Expr) -> Expr | None:
        names.append(rule.name)
        return try_on(rule, node)

    monkeypatch.setattr(Rule, "try_on", counted)
    return names


def model(layers: int, name: str) -> Expr:
    x, h = tc.var(name, "n"), tc.var("b", "n")
    for k in range(layers):
        h = tc.tanh(tc.var(f"W{k}", ("n", "n")) @ h + x * tc.exp(tc.log(x)))
    return tc.logsumexp(h)


def test_rules_are_tried_on_an_expression_once(tried: list[str]) -> None:
    once = simplify(model(5, "tried_once"))
    assert tried
    tried.clear()
    assert simplify(once) is once
    assert not tried


def test_rules_are_tried_on_what_is_new_only(tried: list[str]) -> None:
    """What is put around simplified parts is looked at, its parts are not."""
    part = simplify(model(20, "tried_around"))
    tried.clear()
    simplify(tc.exp(part) + part)
    assert len(tried) < 50


def test_rules_on_a_derivative_are_not_those_of_its_function_again(tried: list[str]) -> None:
    """Twice the length of a chain takes twice the rules, in its gradient and its plan too."""
    counts = []
    for length in (200, 400):
        tried.clear()
        x = e = tc.var(f"length{length}")
        for _ in range(length // 2):
            e = tc.sin(e) * x
        tc.compile((e, tc.grad(e, x))).plan_for()
        counts.append(len(tried))
    assert counts[1] < 2.2 * counts[0]


def nodes_of_chain(length: int) -> Expr:
    x = e = tc.var("x")
    for _ in range(length // 2):
        e = tc.sin(e) * x
    slope = tc.grad(e, x)
    tc.compile((e, slope)).plan_for()
    return slope


@pytest.mark.parametrize("length", [200, 1000])
def test_nodes_of_a_chain_are_linear_in_its_length(length: int) -> None:
    with tc.limits(nodes=20 * length):
        nodes_of_chain(length)


def test_a_coefficient_is_split_off_once() -> None:
    x = tc.var("split_once", "n")
    e = 3 * tc.sin(x) * tc.exp(x)
    coef, rest = split_coef(e)
    with tc.limits(nodes=0):
        assert split_coef(e) == (coef, rest)
    assert coef.value == 3
    assert rest is tc.sin(x) * tc.exp(x)


def test_the_collector_rests_while_expressions_are_made() -> None:
    assert gc.isenabled()
    with resting_collector():
        assert not gc.isenabled()
        with resting_collector():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ValueError, match="mode"):
        tc.grad(tc.var("x"), "x", mode="sideways")
    assert gc.isenabled()


def test_a_collector_that_is_off_stays_off() -> None:
    gc.disable()
    try:
        tc.grad(tc.sin(tc.var("x")), "x")
        assert not gc.isenabled()
    finally:
        gc.enable()


# --- loops and integer systems --------------------------------------------------------------------


def recurrence() -> Expr:
    """The loss of a state that a matrix moves ten times."""
    A, s, r = tc.var("A", ("n", "n")), tc.var("s", "n"), tc.var("r", (10, "n"))
    last = tc.fold(lambda state, t: tc.tanh(A @ state + r[t]), s, 10)
    return tc.sum(last * last)


def calls(monkeypatch: pytest.MonkeyPatch, where: object, name: str) -> list[str]:
    """A list that grows with every call of a function."""
    made: list[str] = []
    function = getattr(where, name)

    def counted(*args: object, **options: object) -> object:
        made.append(name)
        return function(*args, **options)

    monkeypatch.setattr(where, name, counted)
    return made


def test_orders_of_accumulation_share_the_derivatives_of_loops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(modes, "loops_apart", lambda *_: False)  # all three are compared
    made = calls(monkeypatch, derivatives, "normal_form_loop")
    shared = tc.hessian(recurrence(), "A").values
    times = len(made)
    monkeypatch.setattr(loops_once, "_once", lambda key, derive, of: derive())
    again = tc.hessian(recurrence(), "A").values
    assert all(one is other for one, other in zip(again, shared, strict=True))
    assert times < len(made) - times


def test_a_loop_in_several_candidates_is_planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    e = recurrence()
    made = calls(monkeypatch, make, "make_plan")
    assert candidates.by_operations([tc.exp(e) * e, e]) == [e, tc.exp(e) * e]
    assert len(made) == 1


def test_what_takes_much_longer_is_lowered_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first product of the dear one is too much already; values that are close are made."""
    A, x = tc.var("A", ("n", "n")), tc.var("x", "n")
    cheap, close, dear = tc.sin(A @ x), tc.cos(A @ x), tc.exp(A @ A @ A) @ x
    given = make.given_for({"n": 100})
    found = make.compared([[cheap], [close], [dear]], given)
    assert [lowered is None for lowered in found] == [False, False, True]
    assert not any(lowered is None for lowered in make.compared([[dear], [cheap]], given))
    assert candidates.by_operations([cheap, dear, close])[2] is dear
    plan = make.make_plan(candidates.chosen([[cheap, dear], [dear, cheap]], {"n": 100}), {"n": 100})
    assert plan.flops == make.cost([cheap, cheap], {"n": 100})[0]


def test_modes_that_take_much_more_work_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each may take as much as those before it together, and a little; the values are the same."""
    x = tc.var("x", 3)
    function = tc.sum(tc.exp(tc.sin(x) * tc.sum(x)) / (1 + x * x))
    many = tc.hessian(function, x)
    assert len(many.values) > 1
    point = np.array([0.3, -1.2, 0.7])
    wanted = many(x=point)
    del many  # which would be found again, with what it has found out
    monkeypatch.setattr(modes, "EFFORT", -(10**9))
    one = tc.hessian(function, x)
    assert len(one.values) == 1
    np.testing.assert_allclose(one(x=point), wanted, rtol=1e-12)


def test_modes_are_compared_where_a_loop_may_be_derived_in_fewer_directions() -> None:
    """Cross-country elimination takes a loop by its operands: by one number, or by x twice."""
    x, z = tc.var("x", "n"), tc.var("z", "m")
    by_number = z * tc.fold(lambda s, t: tc.sin(s), tc.sum(x * x), 9)
    by_all = tc.fold(lambda s, t: tc.sin(s) * x, tc.exp(x), 9)
    assert not loops_apart(tc.fold(lambda s, t: tc.sin(s), x, 9), [x])  # as many either way
    assert not loops_apart(by_number, [x])
    assert loops_apart(by_all, [x])
    assert not loops_apart(z * tc.sum(x * x), [x])
    point = {"x": np.array([0.3, -0.2]), "z": np.array([1.0, 2.0, 3.0])}
    (used,) = {v.name for v in by_all.variables.values()}
    for e in (by_number, by_all):
        given = {name: point[name] for name in e.variables}
        wanted = tc.jacobian(e, used, mode="cross-country")(**given)
        np.testing.assert_allclose(tc.jacobian(e, used)(**given), wanted, rtol=1e-12)


def test_conditions_on_indices_are_solved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a second plan were solved for the first."""
    x, w = tc.var("x", "n"), tc.var("w", 5)
    e = tc.build("n-4", lambda i: tc.build(5, lambda k: x[i + k] * w[k]).sum())
    solved = calls(monkeypatch, Box, "solved")
    tc.compile(tc.hessian(tc.sum(e * e), "w")).plan_for(n=31)
    assert solved
    solved.clear()
    tc.compile(tc.hessian(tc.sum(e * e), "w")).plan_for(n=31)
    assert not solved


def test_rules_of_products_are_tried_where_their_operators_are(tried: list[str]) -> None:
    x, y = tc.var("products_x"), tc.var("products_y")
    simplify(tc.sin(x) * tc.cos(y) * y)
    assert "sqrt-squared" not in tried
    simplify(tc.sqrt(x) * tc.cos(y) * y)
    assert "sqrt-squared" in tried
    assert "exp-times-sigmoid" not in tried


def test_modes_that_cannot_save_what_they_take_are_not_derived(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of values of many nodes that compute little, the one that was found first is planned."""
    derived = []
    by_all_modes = modes.Accumulated._by_all_modes

    def seen(self: modes.Accumulated) -> Any:
        derived.append(self)
        return by_all_modes(self)

    monkeypatch.setattr(modes.Accumulated, "_by_all_modes", seen)
    monkeypatch.setattr(candidates, "MANY_NODES", 20)
    x, M = tc.var("x", "n"), tc.var("M", ("n", "n"))
    e = x
    for k in range(6):
        e = tc.tanh(M @ e + k) * x
    data = {n: np.random.default_rng(0).normal(size=(n, n)) / n for n in (3, 400)}
    for n, wanted in ((3, False), (400, True)):
        derived.clear()
        step = tc.compile(tc.hessian(tc.sum(e**2), x), backend="numpy")
        found = [step(x=np.ones(n), M=data[n]) for _ in range(3)]
        assert bool(derived) is wanted
        np.testing.assert_allclose(found[0], found[2], rtol=1e-8, atol=1e-10)
