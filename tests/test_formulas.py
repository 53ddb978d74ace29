"""Formulas as experts write them: values by jax, forms by hand, texts read back."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import tcalc as tc
from tcalc.forms.choose import chosen
from tcalc.graph.nodes import Expr
from tcalc.graph.normal import bare
from tests.formula_tables import FORMULAS, TABLES, Formula
from tests.formula_tables.causes import CAUSES, FORBIDDEN, LONGEST, holds
from tests.formula_tables.open_rows import OPEN, READ_OTHERWISE
from tests.formula_tables.oracle import along, data, expected, form_along
from tests.formula_tables.row import SIZES


@cache
def _derivative(row: Formula) -> Expr:
    return row.derivative()


def _number(row: Formula, e: Expr) -> np.ndarray:
    return along(row, e({**SIZES, **data(row)}))


def test_rows_have_names_of_their_own_and_are_many() -> None:
    assert len(FORMULAS) == len({row.name for row in FORMULAS}) >= 220


@pytest.mark.parametrize("table", TABLES)
def test_derivatives_and_experts_forms_have_the_values_of_jax(table: str) -> None:
    for row in TABLES[table]:
        right = expected(row)
        for found in (_number(row, _derivative(row)), form_along(row, row.form)):
            np.testing.assert_allclose(found, right, rtol=1e-8, atol=1e-10, err_msg=row.name)


def test_derivatives_are_printed_as_experts_write_them() -> None:
    differ = {row.name for row in FORMULAS if str(_derivative(row)) != row.form}
    assert differ == OPEN, (sorted(differ - OPEN), sorted(OPEN - differ))
    assert len(OPEN) <= len(FORMULAS) / 10


@pytest.mark.parametrize("table", TABLES)
def test_what_is_printed_is_read_back(table: str) -> None:
    for row in TABLES[table]:
        e = _derivative(row)
        again = bare(tc.parse(str(e), **row.variables()))
        if row.name not in READ_OTHERWISE:
            assert str(again) == str(chosen(e)), row.name
            assert bare(tc.parse(str(again), **row.variables())) is again, row.name
        np.testing.assert_allclose(
            _number(row, again), _number(row, e), rtol=1e-8, atol=1e-10, err_msg=row.name
        )


@pytest.mark.parametrize("table", TABLES)
def test_texts_in_indices_are_read_back(table: str) -> None:
    for row in TABLES[table]:
        e = _derivative(row)
        for write, read in ((tc.to_index, tc.parse_index), (tc.to_einsum, tc.parse_einsum)):
            text = write(e)
            again = read(text, **e.variables)
            np.testing.assert_allclose(
                _number(row, again), _number(row, e), rtol=1e-8, atol=1e-10, err_msg=text
            )
            assert "reciprocal" not in text, text


def test_what_is_printed_is_short() -> None:
    long = [row.name for row in FORMULAS if len(str(_derivative(row))) > LONGEST]
    assert set(long) <= OPEN, long


@pytest.mark.parametrize("cause", FORBIDDEN)
def test_no_formula_has_what_makes_formulas_ugly(cause: str) -> None:
    assert [row.name for row in FORMULAS if holds(cause, row, row.form)] == []
    assert {row.name for row in FORMULAS if holds(cause, row, str(_derivative(row)))} <= OPEN


@pytest.mark.parametrize(
    ("cause", "text"),
    [
        ("order of terms and factors alone", "A*x + A'*x"),
        ("names that users do not write", "reciprocal(b)*A*x"),
        ("digits of a constant", "3.141592653589793*x"),
        ("parentheses for an order of products", "A*(A*x)"),
        ("equal terms", "b .* x + x .* b"),
        ("a common factor", "A*x + A*A*x"),
        ("repeated subterms", "exp(A'*(A*x + b) + x) + sin(A'*(A*x + b) + x)"),
        ("length", " + ".join(["x"] * 70)),
    ],
)
def test_causes_are_seen(cause: str, text: str) -> None:
    row = Formula("quadratic form", "A=n,n x=n b=n", "x'*A*x", "x", "A'*x + A*x")
    assert holds(cause, row, text)
    assert not any(holds(name, row, "2*x + b") for name in CAUSES)


@pytest.mark.parametrize(
    ("text", "by", "gradient"),
    [
        ("sum(maximum(x, y))", "x", "(y < x)"),
        ("sum(maximum(x, a*x))", "x", "a*(x < a*x) + (a*x < x)"),
        ("sum(maximum(x*y', A))", "x", "(A < x*y')*y"),
        ("sum(max(t*x, (t-1)*x))", "x", "t*((t - 1)*x < t*x) + (t - 1)*(t*x < (t - 1)*x)"),
    ],
)
def test_ties_are_left_out_of_all_branches(text: str, by: str, gradient: str) -> None:
    e = tc.parse(text, x="n", y="n", A=("n", "n"), a=(), t=())
    assert str(tc.grad(e, by)) == gradient


def test_sums_along_axes_of_other_extents_are_two_terms() -> None:
    """x.*(A*1) + x.*(B*1) is no product with a sum of matrices of unlike shapes."""
    e = tc.parse("x .* sum(A, axis=1) + x .* sum(B, axis=1)", x="n", A=("n", "m"), B=("n", "k"))
    assert str(e) == "x .* (A*vector(1) + B*vector(1))"
    assert str(tc.grad(e @ e, "x")) == "2*x .* (A*vector(1) + B*vector(1)).^2"
