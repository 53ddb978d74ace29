"""Formulas that are too large to be searched at once: forms part by part, of equal value."""

from __future__ import annotations

import numpy as np
import pytest

import tcalc as tc
from benchmarks.problems import PROBLEMS
from tcalc.forms import parts
from tcalc.forms.choose import MAX_LARGE, MAX_TOKENS, chosen, search
from tcalc.graph.extents import extent_of
from tcalc.graph.nodes import Expr, postorder
from tcalc.graph.normal import bare
from tcalc.graph.properties import sample
from tcalc.languages.writing.layout import tokens

#: Derivatives of more nodes than are searched at once, and whether matrices are enough for them.
LARGE = [
    ("sparse-gp", "z", 1, True),
    ("sparse-gp", "w", 1, True),
    ("sparse-gp", "t", 1, True),
    ("gelqf", "A", 2, False),
    ("syevd", "A", 2, False),
]


#: Extents of what the problems call their dimensions.
SIZES = {"n": 5, "m": 3, "d": 2}


def derivative(problem: str, wrt: str, order: int) -> tuple[Expr, dict[str, np.ndarray]]:
    e = PROBLEMS[problem].expression(PROBLEMS[problem].cases["small"][0].sizes)
    rng = np.random.default_rng(7)
    data = {
        name: sample(rng.normal(size=[extent_of(n, SIZES) for n in v.shape]), v.properties)
        for name, v in e.variables.items()
    }
    return tc.derivative(e, wrt, order), data


@pytest.mark.parametrize(("problem", "wrt", "order", "matrices"), LARGE)
def test_large_derivatives_are_written_by_parts(
    problem: str, wrt: str, order: int, matrices: bool
) -> None:
    e, data = derivative(problem, wrt, order)
    text = str(e)
    again = tc.parse(text, **e.variables)
    given = {name: data[name] for name in e.variables}
    right, found = tc.compile((e, again), backend="numpy")(**given)
    np.testing.assert_allclose(found, right, rtol=1e-9, atol=1e-9 * np.abs(right).max())
    assert len(postorder([bare(e)])) > MAX_LARGE or tokens(bare(e)) > MAX_TOKENS
    assert ("#(" in text) != matrices


def model(name: str = "x") -> Expr:
    """Repeated parts of which the products around them differ, beyond what is searched at once."""
    x, A = tc.var(name, "n"), tc.var("A", ("n", "n"))
    e: Expr = x
    for k in range(12):
        h = tc.exp(A @ e / (k + 2)) / tc.sum(tc.exp(A @ e / (k + 2)))
        e = h * (x @ h) + tc.tanh(h) * (h @ A @ h)
    return tc.sum(e)


def test_parts_that_are_repeated_stay_one_node() -> None:
    e = model()
    assert len(postorder([e])) > MAX_LARGE
    form = chosen(e)
    assert len(postorder([form])) <= len(postorder([e]))
    given = {"x": np.linspace(0, 1, 3), "A": np.arange(9.0).reshape(3, 3) / 9}
    assert float(form(**given)) == pytest.approx(float(e(**given)))


def test_names_of_parts_are_those_of_no_variable() -> None:
    at = {"A": np.arange(9.0).reshape(3, 3) / 9}
    for name in ("t0", "t3", "t17"):
        e, x = model(name), np.linspace(0, 1, 3)
        assert set(chosen(e).variables) == {"A", name}
        assert float(chosen(e)(**at, **{name: x})) == pytest.approx(float(e(**at, **{name: x})))


def test_what_nobody_reads_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    e = model()
    monkeypatch.setattr(parts, "MAX_NODES", MAX_LARGE)
    assert search(e) is e
