"""The order of steps in loops of tiles, and loops of C over short rows that a sum keeps apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.backends.c.statements import COperand, Count, CStatement, keep_rows
from tcalc.plan.schedule.order import beside_each_other
from tcalc.plan.steps import Step, TiledLoop

N = 40_000
X, w, b = tc.var("X", ("n", "k")), tc.var("w", "n"), tc.var("b", "k")


def loops_of(e: Any, **sizes: int) -> list[TiledLoop]:
    plan = tc.compile(e, backend="c").plan_for(**sizes)
    return [unit for unit in plan.units if isinstance(unit, TiledLoop)]


def test_functions_of_one_operand_follow_each_other() -> None:
    """The hyperbolic functions of a derivative have one exponential in common."""
    e = tc.sum(w @ tc.tanh(X)) + tc.sum(tc.exp(w))
    (loop,) = loops_of(tc.grad(e, (X, w)), n=N, k=3)
    names = [getattr(s.params[0], "name", "") if s.params else "" for s in loop.steps]
    assert abs(names.index("tanh") - names.index("sech")) == 1
    made: set[int] = {s.out for s in loop.steps}
    for step in loop.steps:  # whatever is made is there when it is read
        assert made.isdisjoint(step.args)
        made.discard(step.out)


def test_others_stay_where_they_are() -> None:
    e = tc.sum(tc.exp(X) * tc.sin(X * 2) * tc.exp(X - 1))
    (loop,) = loops_of(tc.grad(e, X), n=N, k=3)
    order = beside_each_other(loop.steps)
    again = beside_each_other(order)
    assert [s.out for s in again] == [s.out for s in order]
    assert {s.out for s in order} == {s.out for s in loop.steps}
    functions = [s for s in order if s.kind in ("ufunc", "kernel")]
    others: list[Step] = [s for s in order if s not in functions]
    assert [s for s in loop.steps if s in others] == others


@pytest.mark.parametrize(
    ("shape", "entry", "strides", "summed", "keeps"),
    [
        ((Count(500, 1), 3), "quick_tanh({0})", (3, 1), 0, True),
        ((500, 3), "quick_tanh({0})", (3, 1), 0, True),
        ((500, 8), "quick_tanh({0})", (8, 1), 0, False),  # rows are long enough
        ((500, 3), "({0} * {0})", (3, 1), 0, False),  # to multiply takes no time
        ((500, 3), "quick_tanh({0})", (0, 1), 0, False),  # one row for all: no single axis
        ((500, 3), "quick_tanh({0})", (3, 1), 1, False),  # each row is summed
        ((3, Count(500, 1)), "quick_tanh({0})", (500, 1), 0, False),
        ((1500,), "quick_tanh({0})", (1,), 0, False),
    ],
)
def test_sums_that_keep_short_rows_apart(
    shape: tuple[int, ...], entry: str, strides: tuple[int, ...], summed: int, keeps: bool
) -> None:
    made = CStatement(COperand(1, strides), entry, (COperand(0, strides),))
    total = CStatement(COperand(2, strides), "{0}", (COperand(1, strides),), frozenset({summed}))
    assert keep_rows(shape, [made, total]) is keeps
    assert not keep_rows(shape, [made])
    assert not keep_rows(shape, [total])


CASES: dict[str, tuple[Any, Callable[..., Any]]] = {
    "weights": (w @ tc.tanh(X), lambda X, w, b: w @ np.tanh(X)),
    "sums": (tc.sum(tc.exp(X) / 2, axis=0), lambda X, w, b: np.exp(X).sum(0) / 2),
    "both": (
        w @ tc.tanh(X) + tc.sum(1 / tc.cosh(X), axis=0),
        lambda X, w, b: w @ np.tanh(X) + (1 / np.cosh(X)).sum(0),
    ),
    "shifted": (tc.sum(tc.tanh(X - b), axis=0), lambda X, w, b: np.tanh(X - b).sum(0)),
    "rows": (w * tc.sum(tc.tanh(X), axis=1), lambda X, w, b: w * np.tanh(X).sum(1)),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("k", [1, 2, 3, 7, 8, 9])
@pytest.mark.parametrize("name", CASES)
def test_values_of_short_rows(name: str, k: int, threads: int) -> None:
    e, wanted = CASES[name]
    rng = np.random.default_rng(k)
    for n in (0, 1, 37, N):
        data = {"X": rng.normal(size=(n, k)), "w": rng.normal(size=n), "b": rng.normal(size=k)}
        given = {name: data[name] for name in e.variables}
        found = tc.compile(e, backend="c", threads=threads)(**given)
        np.testing.assert_allclose(found, wanted(**data), rtol=1e-12, atol=1e-9)
