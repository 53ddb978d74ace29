"""Distinct names have distinct symbols in one formula."""

from __future__ import annotations

from itertools import combinations

import pytest

import tcalc as tc

ALIKE = [
    "lam", "lambda", "lambda_", "eps", "epsilon", "x1", "x_1", "x__1", "x1_", "s", "s_", "s__",
    "ab", "a_b",
]  # fmt: skip


@pytest.mark.parametrize(("one", "two"), list(combinations(ALIKE, 2)))
def test_names_that_would_look_alike_stay_apart(one: str, two: str) -> None:
    a, b = tc.var(one), tc.var(two)
    assert tc.to_latex(tc.exp(a) - b / 2) != tc.to_latex(tc.exp(b) - a / 2)
    left, right = tc.to_latex(tc.arctan2(a, b)).split(", ")
    assert left.partition("(")[2] != right.rpartition(")")[0]


def test_a_dimension_and_a_variable_stay_apart() -> None:
    text = tc.to_latex(tc.var("lam") * tc.trace(tc.eye("lambda")))
    assert text.count(r"\lambda") == 1


@pytest.mark.parametrize("names", [("s", "s_"), ("r", "s"), ("i", "s"), ("s_1", "s1")])
def test_states_and_indices_of_loops_differ_from_parameters(names: tuple[str, str]) -> None:
    one, two, x = tc.var(names[0]), tc.var(names[1]), tc.var("x", "T")

    def step(state: tuple[tc.Expr, tc.Expr], k: tc.Expr) -> tuple[tc.Expr, tc.Expr]:
        p, q = state
        return tc.tanh(one * p + x[k]), tc.sin(two * q - p)

    text = tc.to_latex(tc.fold(step, (one, two), "T")[1])
    states = text.partition("((")[2].partition(r") \mapsto")[0].split(", ")
    first = text.rpartition("), (")[2].partition("), ")[0].split(", ")
    index = text.rpartition("), ")[2].partition("=")[0]
    assert len({*states, *first, index}) == 5


def test_statements_have_symbols_of_their_own() -> None:
    e: tc.Expr = tc.var("t_1")
    for _ in range(40):
        e = e * tc.sin(e)
    text = tc.to_latex(e)
    left = [line.partition(" &= ")[0].split()[-1] for line in text.split(r"\\\\")[:-1]]
    assert r"t_{1}" not in left
    assert len(set(left)) == len(left)
