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
    "n*m": ("m*n", 20),
    "(n+1)*(m-1)": ("m*n+m-n-1", 18),
    "n**2-n^2+n**3": ("n*n*n", 125),
    "n*(n-1)/2": ("n*(n-1)//2", 10),
    "n*(n-1)/2+n": ("n*(n+1)//2", 15),
    "2*(n*(n+1)/2)-n": ("n*n", 25),
    "n*(n+1)/2-1-n": ("n*(n-1)//2-1", 9),
    "n*(n-1)*(n-2)/6": ("n*(n*n-3*n+2)//6", 10),
    "(n//2)*m": ("m*(n//2)", 8),
    "n*m//2": ("(m*n)//2", 10),
    "min(n, m)": ("min(m,n)", 4),
    "min(n+1,m,n-1)": ("min(m,n-1)", 4),
    "m-min(m,n)+min(3,2)": ("m-min(m,n)+2", 2),
    "n*min(m,n)//2": ("(min(m,n)*n)//2", 10),
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


@pytest.mark.parametrize(
    "text",
    ["n/2", "n*(n+1)/3", "", "n+", "2n", "(n", "n//m", "n**m", "n//0", "n)", "min(", "min()"],
)
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


BOUND = {
    "2*n": (10, {}, 5),
    "n-1": (4, {}, 5),
    "3*n+1": (16, {}, 5),
    "n*n": (25, {}, 5),
    "n*(n-1)/2": (10, {}, 5),
    "m*n": (20, {"m": 4}, 5),
    "m*n+n": (25, {"m": 4}, 5),
}


@pytest.mark.parametrize("text", BOUND)
def test_an_extent_binds_its_only_unknown_name(text: str) -> None:
    size, others, expected = BOUND[text]
    total = tc.sum(tc.var("x", text)) + tc.trace(tc.eye("n"))
    assert total(x=np.zeros(size), **others) == expected
    assert "assuming" not in str(tc.compile(total).plan_for(x=(size,), **others))


def test_an_extent_that_several_numbers_satisfy_binds_nothing() -> None:
    for text, size in {"(n+1)//2": 3, "m*n": 12, "n*(n-1)/2": 0, "min(n,4)": 4}.items():
        with pytest.raises(TypeError, match="not known"):
            tc.sum(tc.var("x", text))(x=np.ones(size))


def test_products_of_extents_are_checked_at_evaluation() -> None:
    X, v = tc.var("X", ("m", "n")), tc.var("v", "m*n")
    f = tc.sum(X) + tc.sum(v)
    assert f(X=np.ones((2, 3)), v=np.ones(6)) == 12
    with pytest.raises(tc.ShapeError, match=r"expected m\*n = 6"):
        f(X=np.ones((2, 3)), v=np.ones(5))
    with pytest.raises(tc.ShapeError, match=r"m\*n"):
        v + tc.zeros("m")
    assert (v + tc.var("w", "n*m")).shape == ("m*n",)
    assert tc.mean(v)(v=np.arange(6.0), m=2) == 2.5
    assert tc.trace(tc.eye("m*n"))(m=2, n=3) == 6


COMPOUND = ["m*n", "2*n", "n*n-n", "n*(n-1)/2", "min(m,n)", "m*(n//2)"]


@pytest.mark.parametrize("extent", COMPOUND)
def test_forms_are_extents_of_all_that_is_printed(extent: str) -> None:
    x = tc.var("x", extent)
    sizes, rng = {"m": 3, "n": 4}, np.random.default_rng(0)
    data = rng.normal(size=extent_of(x.shape[0], sizes))
    e = tc.mean(x) * x[::-1] + tc.sum(x[1:] * x[:-1]) * tc.arange(extent)
    expected = data.mean() * data[::-1] + (data[1:] @ data[:-1]) * np.arange(data.size)
    for backend in ("numpy", "c"):
        step = tc.compile(e, backend=backend)
        np.testing.assert_allclose(step(x=data, **sizes), expected, rtol=1e-12)
    space: dict[str, object] = {}
    exec(tc.to_code(e, "numpy", name="f"), space)
    others = {name: sizes[name] for name in extent_names([extent])}
    np.testing.assert_allclose(space["f"](x=data, **others), expected, rtol=1e-12)  # type: ignore[operator]
    assert "mean" in str(tc.mean(x) * x)
    assert tc.parse(str(tc.mean(x) * x), x=extent) is tc.mean(x) * x
    H = tc.compile(tc.hessian(tc.sum(x[1:] ** 2 * x[:-1]), x), structured=True)(x=data, **sizes)
    dense = tc.hessian(tc.sum(x[1:] ** 2 * x[:-1]), x)(x=data, **sizes)
    np.testing.assert_allclose(H.todense(), dense, rtol=1e-12)


@pytest.mark.parametrize("extent", ["m*n", "2*n", "n*n-n", "n*(n-1)/2"])
def test_index_language_reads_products_of_extents(extent: str) -> None:
    x = tc.var("x", extent)
    e = tc.sum(x) * x
    data = np.random.default_rng(0).normal(size=extent_of(x.shape[0], {"m": 3, "n": 4}))
    found = tc.parse_index(tc.to_index(e), x=extent)(x=data, m=3, n=4)
    np.testing.assert_allclose(found, data.sum() * data, rtol=1e-13)
