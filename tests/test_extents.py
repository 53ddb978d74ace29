"""Affine extents: one text per form, their values, and where they are checked."""

from __future__ import annotations

import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.extents import affine_extent, extent_names, extent_of

SIZES = {"n": 5, "m": 4}
FORMS = {
    "-1+n": ("n-1", 4),
    "n//1": ("n", 5),
    "3*(n-1)": ("3*n-3", 12),
    "n+m": ("m+n", 9),
    "(n+3)//2": ("(n+1)//2+1", 4),
    "(2*n+m+5)//2": ("(m+1)//2+n+2", 9),
    "((n-1)//2+1)//2": ("(n+1)//4", 1),
    "-n//2": ("n//2-n", -3),
    "(2*n+2)//4": ("(n+1)//2", 3),
    "n-n+3": (3, 3),
    "2*(n//2)": ("2*(n//2)", 4),
    "m-2*((n+1)//2)-1": ("m-2*((n+1)//2)-1", -3),
}


@pytest.mark.parametrize("text", FORMS)
def test_forms_have_one_text(text: str) -> None:
    shown, value = FORMS[text]
    found = affine_extent(text)
    assert found == shown
    assert affine_extent(str(found)) == found
    assert extent_names([found]) <= set(SIZES)
    assert eval(str(found), dict(SIZES)) == value
    if value >= 0:
        assert extent_of(found, SIZES) == value


@pytest.mark.parametrize("text", ["n*m", "n/2", "", "n+", "2n", "(n", "n//m", "n**2", "n//0", "n)"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        affine_extent(text)
    with pytest.raises(tc.ShapeError):
        tc.zeros(text)


def test_extents_are_bound_by_names_only() -> None:
    total = tc.sum(tc.ones(("n-1", "(m+1)//2")))
    assert total(n=4, m=3) == 6
    assert total(n=1, m=3) == 0
    with pytest.raises(tc.ShapeError, match=r"n-1, which is -1 for n = 0"):
        total(n=0, m=3)
    with pytest.raises(tc.ShapeError, match="n and n-1"):
        tc.var("x", "n") + tc.zeros("n-1")


def test_a_variable_of_an_affine_extent_is_checked() -> None:
    x, y = tc.var("x", "n"), tc.var("y", "n-1")
    f = tc.sum(x) * y
    np.testing.assert_array_equal(f(x=[1.0, 2.0], y=[3.0]), [9.0])
    with pytest.raises(tc.ShapeError, match="expected n-1 = 1"):
        f(x=[1.0, 2.0], y=[3.0, 4.0])


def test_code_has_affine_extents() -> None:
    e = tc.var("x", "n")[:, None] + tc.arange("n//2+1")
    space: dict[str, object] = {}
    exec(tc.to_code(e, "numpy", name="f"), space)
    x = np.arange(5.0)
    np.testing.assert_array_equal(space["f"](x), e(x=x))  # type: ignore[operator]
