"""Every row of the operator table is printed in words that users have, and read back."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.applications import apply, apply_all
from tcalc.graph.nodes import Expr
from tcalc.graph.operators import TABLE, Op
from tcalc.languages.matrix.functions import FUNCTIONS, available
from tests.one_spelling import one_spelling
from tests.shared import library_rows
from tests.test_operators import APPLIED, ELEMENTWISE
from tests.test_source_tables import CONSTANTS

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "languages.md").read_text()
#: Words that a table of the documentation explains.
EXPLAINED = set(re.findall(r"`(\w+)\(", PAGE))
CALLED = re.compile(r"\b([A-Za-z_]\w*)\(")
ROWS = [(row, ()) for row in ELEMENTWISE if "#" not in row.name] + APPLIED + CONSTANTS


def applied(row: Op, params: tuple[Any, ...]) -> list[Expr]:
    """The row of variables: vectors entry by entry, else matrices of the core's extents."""
    if row.elementwise:
        names = [tc.var(f"x{k}", "n") for k in range(len(row.core))]
        return [apply(row, *names)]
    shapes = [(3,) * count for count in row.cores(params)]
    variables = [tc.var(f"x{k}", shape) for k, shape in enumerate(shapes)]
    if row.outputs > 1:
        return list(apply_all(row, *variables, params=params))
    return [apply(row, *variables, params=params)]


def equal(one: Expr, other: Expr) -> bool:
    data = {
        name: np.full(v.shape, 0.25) + (2 * np.eye(3) if v.ndim == 2 else 0)
        for name, v in other.variables.items()
    }
    return np.allclose(one(data), other(data), rtol=1e-12)


def known(word: str) -> bool:
    places = (tc, tc.linalg, tc.scipy.special)
    # Derivatives of matrix functions along directions, as the documentation explains.
    word = re.sub(r"_frechet\d*$", "", word)
    return any(hasattr(place, word) for place in places) or word in FUNCTIONS


@pytest.mark.parametrize(("row", "params"), ROWS, ids=str)
def test_rows_are_printed_in_words_of_users(row: Op, params: tuple[Any, ...]) -> None:
    for e in applied(row, params):
        words = set(CALLED.findall(str(e)))
        assert not {w for w in words if not known(w) and w not in EXPLAINED}, str(e)
        assert not words & {"reciprocal", "reciprocal0", "divide", "power", "less", "equal"}
        again = tc.parse(str(e), **e.variables)
        assert one_spelling(again) is one_spelling(e) or equal(again, e)
        assert "reciprocal" not in tc.to_latex(e) or row.name == "svd_reciprocal"


def test_families_are_explained() -> None:
    names = {
        row.name
        for row in TABLE.values()
        if row.family and not hasattr(tc.linalg, row.spelling.printed or row.name)
        # A row that is written as its operand alone has no word.
        if row.spelling.latex != "{0}"
    }
    words = {name for name in names if "frechet" not in name and not name.startswith("adj")}
    assert words <= EXPLAINED


def test_the_page_has_the_functions_of_text() -> None:
    table = PAGE[PAGE.index("Its functions, ") : PAGE.index("What text does not have")]
    named = set(re.findall(r"`(\w+)[`(]", table))
    entrywise = {row.name for row in library_rows() if row.elementwise and row.core}
    known = {name for name in {*FUNCTIONS, *entrywise} if available(name)}
    assert named <= known
    assert known - named <= EXPLAINED
