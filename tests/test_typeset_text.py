"""LaTeX that matplotlib reads, too, but for choices: labels and titles are written by it."""

from __future__ import annotations

import pytest

import tcalc as tc
from tests.formula_tables import TABLES

mathtext = pytest.importorskip("matplotlib.mathtext")


@pytest.mark.parametrize("table", TABLES)
def test_formulas_are_read_by_matplotlib(table: str) -> None:
    reader = mathtext.MathTextParser("path")
    for row in TABLES[table]:
        text = tc.to_latex(row.derivative())
        if r"\begin{" not in text:  # it knows no environments
            reader.parse(f"${text}$")


def test_conditions_are_read_by_matplotlib() -> None:
    x, y = tc.var("x", "n"), tc.var("y", "n")
    conditions = (x >= y, x <= y, x > y, x < y, tc.not_equal(x, y), (x > y) & (y <= 1))
    reader = mathtext.MathTextParser("path")
    for condition in conditions:
        text = tc.to_latex(tc.exp(x) * condition)
        assert "begin" not in text
        reader.parse(f"${text}$")
