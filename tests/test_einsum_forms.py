"""Einsum forms #('…', …) where languages of text read them."""

from __future__ import annotations

import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.normal import bare
from tests.printed import DECLARED, Q, R, high_order

SIZES = {"n": 3, "m": 4, "k": 2}
VARIABLES = {**DECLARED, "Q": Q, "R": R}


@pytest.mark.parametrize(
    ("text", "spec", "names"),
    [
        ("#('ij,jk->ik', A, B)", "ij,jk->ik", "AB"),
        ("#('ij, j -> ji', X, x)", "ij,j->ji", "Xx"),
        ("#('iji->ij', Q)", "iji->ij", "Q"),
        ('#("ijk,k->ij", R, x)', "ijk,k->ij", "Rx"),
        ("#( 'i,j->', x', y)", "i,j->", "xy"),
        ("#('αβ->βα', X)", "ab->ba", "X"),
    ],
)
def test_a_form_is_the_einsum_of_its_letters(text: str, spec: str, names: str) -> None:
    operands = [VARIABLES[name] for name in names]
    assert tc.parse(text, **VARIABLES) is tc.einsum(spec, *operands)
    rng = np.random.default_rng(0)
    data = {v.name: rng.normal(size=[SIZES[str(e)] for e in v.shape]) for v in operands}
    left, right = spec.split("->")
    expected = np.einsum(f"{left}->{right}", *[data[name] for name in names])
    np.testing.assert_allclose(tc.parse(text, **VARIABLES)(data), expected, rtol=1e-12)


def test_letters_may_repeat_in_the_result_and_have_stated_extents() -> None:
    f = tc.parse("2*#('jk->ijik', V'*V, i=m)", V=("n", "k"))
    value = f(V=np.arange(6.0).reshape(3, 2), m=2)
    gram = np.arange(6.0).reshape(3, 2).T @ np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(value, 2 * np.einsum("ac,jk->ajck", np.eye(2), gram))
    assert tc.parse("#('->ij', i=(n+1)//2, j=2*n-1)").shape == ("(n+1)//2", "2*n-1")
    assert tc.parse("#('->ii', i=n)") is tc.eye("n")


@pytest.mark.parametrize(
    ("e", "text"), [(e, text) for e, text, _ in high_order() if "#" in text], ids=str
)
def test_printed_forms_read_back_in_matrix_notation(e: tc.Expr, text: str) -> None:
    assert bare(tc.parse(text, **VARIABLES)) is bare(e)  # some keep what tells a dimension


def test_undeclared_operands_of_a_form_get_their_dimensions_from_it() -> None:
    f = tc.parse("#('ij,jk->ik', A, B) + C")
    assert f.variables["A"].shape == f.shape[:1] + f.variables["B"].shape[:1]
    assert f.variables["C"].shape == f.shape


def test_a_hash_without_quotes_starts_a_comment() -> None:
    assert str(tc.parse("x # (a 'note'\n")) == "x"


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("#('ij,jk->ik', A)", 3, "2, and #(…) has 1 operand"),
        ("#('ij,jk->ik' A, B)", 15, "expected ) or , behind the letters, found `A`"),
        ("#('ij->ji, A)", 3, "never closed"),
        ("#('i1->i', A)", 5, "indices are letters"),
        ("#('ij', A)", 6, "expected ->"),
        ("#('->i')", 3, "no operand has index i: state its extent"),
        ("#('i,i->', x, y", 2, "never closed; expected )"),
        ("#('i->i', i=n, x)", 16, "behind all operands"),
        ("#('i->i', x, k=3)", 3, "`k` is none of the letters"),
        ("#('->i', i=3, i=4)", 15, "stated already"),
        ("#('i->ij', x, j=n+)", 15, "an int, a dimension or an affine form"),
        ("#('i->ij', x, j=)", 15, "an int, a dimension or an affine form"),
        ("#('ij->ij',)", 12, "expected an operand of #(…)"),
        ("#('ij->ij' A)", 12, "expected )"),
        ("n//2", 2, "write floor"),
    ],
)
def test_wrong_forms_are_parse_errors_at_their_place(text: str, column: int, words: str) -> None:
    with pytest.raises(tc.ParseError) as caught:
        tc.parse(text)
    assert (caught.value.line, caught.value.column) == (1, column)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("#('ij->ji', x)", "its letters here are 'ij'"),
        ("#('i,i->', x, y)", "extent n"),
        ("#('i->i', x, i=k)", "the index i has extent k"),
        ("R*x", "#('ijk,k->ij', T, x)"),
        ("R'", "#('ijk->kji', T)"),
        ("R + A", "an array of shape (n, n, n)"),
    ],
)
def test_operands_that_do_not_fit_are_shape_errors(text: str, words: str) -> None:
    with pytest.raises(tc.ShapeError) as caught:
        tc.parse(text, **VARIABLES)
    assert words in str(caught.value)
