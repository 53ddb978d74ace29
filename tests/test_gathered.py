"""Few rows of what is computed for many: taken before, where that saves work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcalc as tc

TABLE, MIX = tc.var("table", ("v", 3)), tc.var("mix", (3, "j"))
SHIFT, AT = tc.var("shift", "j"), tc.var("at", "k", integer=True)
#: What stands in the rows of a table, as expressions and of arrays.
BY_ROWS: dict[str, Callable[..., Any]] = {
    "entries": lambda xp, t, m, s: xp.exp(t) * 2 + t,
    "a sum of products": lambda xp, t, m, s: xp.tanh(t @ m + s) @ m.T,
    "a product of rows": lambda xp, t, m, s: xp.einsum("vi,vj,ij->vj", t, xp.sin(t @ m), m),
    "repeated": lambda xp, t, m, s: xp.einsum("v,j->vj", xp.cos(t[:, 0]), s) + s,
    "shared": lambda xp, t, m, s: (xp.sin(t @ m) - xp.sin(t @ m) ** 2) * xp.sin(t @ m),
}


@pytest.mark.parametrize("name", BY_ROWS)
@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_few_rows_are_taken_before_they_are_computed(name: str, backend: str) -> None:
    rng = np.random.default_rng(0)
    e = BY_ROWS[name](tc, TABLE, MIX, SHIFT)
    counts = {}
    for k in (20, 2000):
        v = 300
        given = {
            "table": rng.normal(size=(v, 3)), "mix": rng.normal(size=(3, 4)),
            "shift": rng.normal(size=4), "at": rng.integers(-v, v, k),
        }  # fmt: skip
        wanted = BY_ROWS[name](np, given["table"], given["mix"], given["shift"])
        step = tc.compile(e[AT], backend=backend)
        used = {n: given[n] for n in e[AT].variables}
        np.testing.assert_allclose(step(**used), wanted[given["at"]], rtol=1e-12, atol=1e-13)
        counts[k] = step.plan_for(**{n: a.shape for n, a in used.items()}).flops
    whole = tc.compile(e)
    all_rows = whole.plan_for(**{n: given[n].shape for n in e.variables}).flops
    assert counts[20] < all_rows / 5
    assert counts[2000] < all_rows + 2000 * 10


@pytest.mark.parametrize("name", BY_ROWS)
def test_derivatives_by_tables_of_which_few_rows_are_taken(name: str) -> None:
    rng = np.random.default_rng(1)
    v, at = 150, np.array([3, -1, 3, 77])
    table, mix, shift = rng.normal(size=(v, 3)), rng.normal(size=(3, 4)), rng.normal(size=4)
    loss = tc.sum(BY_ROWS[name](tc, TABLE, MIX, SHIFT)[AT] ** 2)
    given = {"table": table, "mix": mix, "shift": shift, "at": at}
    slope = tc.grad(loss, TABLE)
    found = slope(**{n: given[n] for n in slope.variables})

    def value(t: np.ndarray) -> Any:
        return (BY_ROWS[name](np, t, mix, shift)[at] ** 2).sum()

    for i, j in ((3, 0), (77, 1), (v - 1, 2), (5, 0)):
        step = np.zeros_like(table)
        step[i, j] = 1e-6
        wanted = (value(table + step) - value(table - step)) / 2e-6
        np.testing.assert_allclose(found[i, j], wanted, rtol=2e-6, atol=1e-6)


def test_rows_of_what_has_a_diagonal() -> None:
    table, at = np.random.default_rng(3).normal(size=(9, 3)), np.array([3, -1, 3, 0])
    mixed = tc.exp(TABLE[:, :1] * TABLE[:, 1]) + tc.diag(tc.cos(TABLE[:, 2]))
    wanted = (np.exp(np.outer(table[:, 0], table[:, 1])) + np.diag(np.cos(table[:, 2])))[at]
    np.testing.assert_allclose(mixed[AT](table=table, at=at), wanted, rtol=1e-14)


def test_rows_that_others_read_too_are_computed_once() -> None:
    rows = tc.exp(TABLE @ MIX)
    both = tc.compile([tc.sum(rows, axis=0), rows[AT]])
    shapes = {"table": (300, 3), "mix": (3, 40), "at": (100,)}
    alone = tc.compile(tc.sum(rows, axis=0)).plan_for(table=(300, 3), mix=(3, 40))
    assert both.plan_for(**shapes).flops <= alone.flops + 100 * 40


@pytest.mark.parametrize("language", ["numpy", "jax", "torch"])
def test_one_entry_of_each_row_is_read_alone(language: str) -> None:
    """What is infinite or no number beside it does not meet it, in plans and printed programs."""
    pytest.importorskip(language)
    X, i = tc.var("X", ("n", "m")), tc.var("i", "n", integer=True)
    J = tc.var("J", ("n", 3), integer=True)
    data = np.random.default_rng(4).normal(size=(4, 3))
    data[:, 1] = np.inf, np.nan, -np.inf, np.nan
    rows, one, some = np.arange(4), np.array([0, 2, 2, 0]), np.array([[0, 2, 2], [2, 0, 0]] * 2)
    for e, wanted, text in (
        (X[tc.arange("n"), i], data[rows, one], "X[iota(n), i]"),
        (tc.exp(X)[tc.arange("n"), i], np.exp(data[rows, one]), "exp(X)[iota(n), i]"),
        (tc.var("X", (4, 3))[rows, one], data[rows, one], "X[iota(4), [0, 2, 2, 0]]"),
        (
            tc.take_along_axis(X, J, 1), np.take_along_axis(data, some, 1),
            "X[iota(n)*vector(1, 3)', J]",
        ),
    ):  # fmt: skip
        known = {"X": data, "i": one, "J": some}
        program: dict[str, Any] = {}
        exec(tc.to_code(e, language, name="f"), program)
        np.testing.assert_allclose(e(**{k: known[k] for k in e.variables}), wanted)
        np.testing.assert_allclose(program["f"](*[known[k] for k in e.variables]), wanted)
        assert str(e) == text
        assert tc.parse(text, **e.variables) is e
