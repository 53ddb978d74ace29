"""Rules are tried where the operators that they need stand: elsewhere none would fire."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import tcalc as tc
from tcalc.graph.applications import root_bit, root_of, roots_below
from tcalc.graph.nodes import Apply, Expr, postorder
from tcalc.graph.operators import TABLE
from tcalc.rules.inverses import INVERTING
from tcalc.rules.strategy import ALL_RULES, RULES_BY_ROOT
from tests import random_costs


def test_all_operators_that_invert_are_looked_for() -> None:
    assert {name for name, row in TABLE.items() if row.meaning.inverts} == {*INVERTING}


def test_bits_are_of_what_is_below() -> None:
    x = tc.var("x", "n")
    e = tc.sum(tc.exp(x) * tc.sin(x))
    assert roots_below(e) & root_bit("exp")
    assert roots_below(e) & root_bit("sin")
    assert not roots_below(e) & root_bit("cos")
    assert roots_below(x) == root_bit("Var")


def expressions(kind: str) -> Iterator[Expr]:
    """Random programs, before and after all rules, and the left sides of rules among others."""
    for seed in random_costs.SEEDS[:40]:
        found = random_costs.case(seed, draw=random_costs.DRAWS[kind])
        for output in [] if found is None else found.outputs:
            yield output.expression
    a, b = (tc.var(name, (3, 3)) for name in "ab")
    for rule in ALL_RULES:
        if rule.shape in ((), (3, 3)):
            left = rule.left(*[a, b][: rule.arity()])
            yield from (left, tc.exp(left), left * tc.cos(left) - left)


@pytest.mark.parametrize("kind", random_costs.DRAWS)
def test_no_rule_fires_that_is_not_tried(kind: str) -> None:
    left_out = 0
    for node in postorder(expressions(kind)):
        if isinstance(node, Apply) and node.op.outputs > 1:
            continue
        for rule in RULES_BY_ROOT.get(root_of(node), ()):
            if not rule.fits(roots_below(node)):
                left_out += 1
                found = rule.try_on(node)
                assert found is None or found is node, rule.name
    assert left_out > 1000
