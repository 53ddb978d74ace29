"""What few programs enter, of equal forms: where a form does not apply, values stay the same."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import pytest

import tcalc as tc

x, y, c = tc.var("x", "n"), tc.var("y", "n"), tc.var("c")
X = tc.var("X", ("n", "m"))
A, B = tc.var("A", ("n", "n")), tc.var("B", ("n", "n"))
S = tc.var("S", ("n", "n"), symmetric=True)
RNG = np.random.default_rng(0)
VALUES: dict[str, Any] = {
    "x": RNG.normal(size=3), "y": RNG.normal(size=3), "X": RNG.normal(size=(3, 2)), "c": 0.7,
    "A": RNG.normal(size=(3, 3)), "B": RNG.normal(size=(3, 3)),
}  # fmt: skip


def again(e: tc.Expr) -> tc.Expr:
    """What the text of an expression says, which is of the shortest form that is found."""
    return tc.parse(str(e), **e.variables)


def stays(e: tc.Expr, wanted: Callable[..., Any], **more: Any) -> tc.Expr:
    """An expression and its simplified form have the values of a function of arrays."""
    given = {**{name: VALUES[name] for name in e.variables if name in VALUES}, **more}
    simplified = tc.simplify(e)
    for form in (e, simplified, again(e), again(simplified)):
        found = form(**given, **({} if {"x", "X", "A", "S"} & given.keys() else {"n": 3}))
        np.testing.assert_allclose(found, wanted(**given), rtol=1e-10, atol=1e-12)
    return simplified


# --- exponentials ---------------------------------------------------------------------------------


def test_products_of_more_terms_than_are_multiplied_out() -> None:
    """(x + y + 1)^3 (x - y + 2)^3 has 729 terms: the sum of two exponentials keeps it."""

    def power(x: Any, y: Any) -> Any:
        return (x + y + 1) ** 3 * (x - y + 2) ** 3

    both = tc.log(tc.exp(power(x, y)) + tc.exp(power(x, y) + x))
    stays(both, lambda x, y: np.logaddexp(power(x, y), power(x, y) + x))
    for name in "xy":
        slope = tc.simplify(tc.grad(tc.sum(both), name))(x=VALUES["x"], y=VALUES["y"])
        step = {k: VALUES[k] + (1e-20j if k == name else 0) for k in "xy"}
        p = power(**step)
        found = np.log(np.exp(p) + np.exp(p + step["x"])).imag / 1e-20
        np.testing.assert_allclose(slope, found, rtol=1e-9)


@pytest.mark.parametrize("count", [49, 70])
def test_sums_of_more_terms_than_are_read(count: int) -> None:
    """The gradient of many sums is one sum of as many terms; its logarithm has their value."""
    w = tc.var("w", (count,))
    weights = RNG.uniform(-1, 1, count)
    total = reduce(lambda a, k: a + tc.sum(tc.exp(w[k] + x)), range(1, count), tc.sum(tc.exp(x)))
    slope = tc.grad(total, x)
    weights[0] = 0
    stays(tc.log(slope), lambda x, w: np.log(np.exp(w[:, None] + x).sum(0)), w=weights)
    quotient = tc.exp(slope) / (tc.exp(slope) + tc.exp(slope + y))
    stays(quotient, lambda x, w, y: 1 / (1 + np.exp(y)), w=weights)


def test_logarithms_of_what_is_negative_stay_whole() -> None:
    """log(-x) opens into no sum of logarithms: -1 has none."""
    e = tc.exp(tc.log(-x) + y) + tc.exp(tc.log(-x) + y * y)
    given = {"x": -np.exp(VALUES["x"]), "y": VALUES["y"]}
    stays(e, lambda x, y: -x * (np.exp(y) + np.exp(y * y)), **given)
    stays(tc.log(e), lambda x, y: np.log(-x * (np.exp(y) + np.exp(y * y))), **given)


@pytest.mark.parametrize("signs", [(1, 1, 1), (-1, -1, 1), (-1, 1, 1)])
@pytest.mark.parametrize("square", [S, A])
def test_reciprocals_of_determinants(square: tc.Expr, signs: tuple[int, ...]) -> None:
    """log(1/det(2 A)) is -log(det(A)) - n log(2), nan where a determinant is negative."""
    a = np.diag([1.0, 2, 3]) + 0.1
    a *= np.array(signs)[:, None] * signs if square is S else np.array(signs)[:, None]
    if square is S and signs != (1, 1, 1):
        a -= 2 * np.diag([1.0 - s for s in signs])
    name = "S" if square is S else "A"
    for factor, exponent in [(2, -1), (1, -1), (2, -3), (0.5, -2)]:
        e = tc.log(tc.det(factor * square) ** exponent * tc.exp(c))

        def wanted(c: float, e: float = exponent, f: float = factor, **_: Any) -> Any:
            det = np.linalg.det(f * a)
            return np.log(det**e) + c if det > 0 or e % 2 == 0 else np.nan

        stays(e, wanted, **{name: a})
        if exponent < 0 < np.linalg.det(a):
            more = tc.log(1 / (3 * tc.det(square)) * tc.exp(c))
            stays(more, lambda c, **_: c - np.log(3 * np.linalg.det(a)), **{name: a})
        if np.isfinite(wanted(0.0)):
            slope = tc.simplify(tc.grad(e, name))(**{name: a}, c=0.7)
            np.testing.assert_allclose(slope, exponent * np.linalg.inv(a).T, rtol=1e-9, atol=1e-12)


# --- matrices -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("e", "wanted"), [
    (tc.trace(tc.inv(A) @ A), lambda A: 3.0),
    (tc.trace(A @ tc.inv(A)) * tc.sum(A), lambda A: 3 * A.sum()),
    (tc.einsum("ij,jk,kl,li->", tc.inv(A), A, tc.inv(B), B), lambda A, B: 3.0),
    (tc.einsum("ij,jk->", tc.inv(A), A), lambda A: 3.0),
    (tc.einsum("ij,jk,k->", tc.inv(A), A, x), lambda A, x: x.sum()),
    (tc.einsum("ij,ji,kl,lk->", tc.inv(A), A, tc.inv(B), B), lambda A, B: 9.0),
])  # fmt: skip
def test_traces_of_inverses_beside_what_they_invert(e: tc.Expr, wanted: Any) -> None:
    found = stays(e, wanted)
    assert "inv" not in str(found)


def test_comparisons_of_places_on_diagonals() -> None:
    """Of diag(i) >= diag(i) no triangle is made: all entries but none are compared as zeros."""
    i, at = tc.arange("n"), np.arange(3)
    stays(A * (tc.diag(i) >= tc.diag(i)), lambda A: A)
    stays(A * (i[:, None] >= tc.diag(i)), lambda A: A * (at[:, None] >= np.diag(at)))
    stays(A * (tc.diag(i) >= i[:, None]), lambda A: A * (np.diag(at) >= at[:, None]))
    stays(A * (tc.diag(i) >= i), lambda A: A * (np.diag(at) >= at))
    stays(A * (i[:, None] >= i), lambda A: np.tril(A))


# --- merged axes ----------------------------------------------------------------------------------

flat = tc.reshape(X, (-1,))


@pytest.mark.parametrize(("e", "wanted"), [
    (tc.reshape(tc.diag(flat), ("n", "m", "n", "m")),
     lambda X: np.diag(X.ravel()).reshape(3, 2, 3, 2)),
    (tc.reshape(tc.outer(flat, flat), ("n", "m", "m", "n")),
     lambda X: np.outer(X, X).reshape(3, 2, 2, 3)),
    (tc.reshape(tc.outer(flat, x), ("m", "n", "n")),
     lambda X, x: np.outer(X, x).reshape(2, 3, 3)),
    (tc.reshape(tc.outer(flat, x), ("n", "m", "n")), lambda X, x: X[:, :, None] * x),
    (tc.reshape(2 * flat, ("m", "n")), lambda X: 2 * X.reshape(2, 3)),
    (tc.reshape(tc.outer(x, flat), ("n", "n", "m")) + 1, lambda X, x: x[:, None, None] * X + 1),
])  # fmt: skip
def test_merged_axes_split_into_others(e: tc.Expr, wanted: Any) -> None:
    found = stays(e, wanted)
    assert found.shape == e.shape
