"""The index language reads what it prints: the case tables, and forms that are easily lost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tests import place_cases
from tests.corpus import SIZES, corpus

BELOW = {n: bound for case in place_cases.CASES for n, bound in case.below.items()}
X3, x, idx = tc.var("X", ("m", "n")), tc.var("x", "n"), tc.var("idx", "k", integer=True)


def data_of(e: tc.Expr) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    found: dict[str, Any] = dict(SIZES)
    for name, v in e.variables.items():
        shape = [SIZES.get(str(extent), extent) for extent in v.shape]
        integer = "integer" in v.properties
        found[name] = rng.integers(0, 2, shape) if integer else rng.uniform(0.5, 1.5, shape)
    return found


def again(e: tc.Expr) -> tc.Expr:
    return tc.parse_index(tc.to_index(e, computed=True), **e.variables)


def equal(e: tc.Expr) -> None:
    data = data_of(e)
    wanted = e(data)
    scale = max(1.0, np.abs(wanted).max(initial=0))
    np.testing.assert_allclose(again(e)(data), wanted, rtol=1e-9, atol=1e-9 * scale)


def test_values_gradients_and_hessians_read_back() -> None:
    """To the same node, apart from a few: products of slices, extents that are minima, and
    guards that equate entries are built in another order.
    """
    plain = {name: e for name, e in corpus().items() if not name.startswith("loop")}
    other = {name for name, e in plain.items() if again(e) is not e}
    assert len(other) <= len(plain) // 15
    for name in other:
        equal(plain[name])


a, b, c = tc.var("a"), tc.var("b"), tc.var("c")


@pytest.mark.parametrize(
    "e",
    [
        tc.power(tc.power(a, b), c),
        tc.power(a, tc.power(b, c)),
        tc.power(a, -b),
        a / (b / c),
        a * (b / c) * a,
        a - (b - c) - (a + c),
        tc.linalg.lq(X3 @ X3.T + tc.eye("m"))[0],
        tc.reshape(tc.var("Y", (2, 3, 4)), (6, 4)),
        tc.linalg.matrix_function(tc.var("A", (3, 3)), lambda t: tc.exp(t) / 2),
        tc.eye("q") * 2,
        tc.zeros(("q", "n")),
        tc.trace(tc.eye("q")) * a,
        a / tc.sum(tc.ones("q")),
        x[idx] * tc.sin(idx),
        X3[:, idx],
        tc.segment_sum(tc.var("u", "k"), idx, "n"),
    ],
    ids=str,
)
def test_forms_that_are_easily_lost(e: tc.Expr) -> None:
    data = {**data_of(e), "q": 5}
    np.testing.assert_allclose(again(e)(data), e(data), rtol=1e-9)


@pytest.mark.parametrize("places", [[-1, 0], [0, -5, 2, -1], [[-2], [3]]])
@pytest.mark.parametrize("extent", [5, "n"])
def test_negative_places_count_from_the_end(places: list[Any], extent: int | str) -> None:
    y, where = tc.var("y", extent), np.array(places)
    values = np.arange(5.0) ** 2
    e = y[where]
    np.testing.assert_array_equal(again(e)(y=values), values[where])
    gradient = tc.grad(tc.sum(tc.sin(e)), y)
    np.testing.assert_allclose(again(gradient)(y=values), gradient(y=values), rtol=1e-12)


def test_negative_data_as_places_count_from_the_end() -> None:
    z = tc.grad(tc.sum(tc.exp(x[idx])), x)
    data = {"x": np.arange(4.0) / 4, "idx": np.array([-1, 2, -4, 3])}
    np.testing.assert_allclose(again(z)(data), z(data), rtol=1e-12)


def test_entries_of_integer_variables_are_subscripts() -> None:
    table, rows = tc.var("table", (4, 3)), tc.var("rows", "k", integer=True)
    text = "f[i=0..k-1, j=0..1] = table[rows[i], mod(rows[i] + j, 3)]"
    f = tc.parse_index(text, table=table, rows=rows)
    values, places = np.arange(12.0).reshape(4, 3), np.array([3, 0, 1])
    wanted = [[values[r, (r + j) % 3] for j in range(2)] for r in places]
    np.testing.assert_array_equal(f(table=values, rows=places), wanted)
    with pytest.raises(tc.ParseError, match="is not an integer"):
        tc.parse_index("f[i] = table[x[i], 0]", table=table, x="n")


def test_other_names_in_bounds_are_dimensions() -> None:
    f = tc.parse_index("f[i=0..q-1] = 2*i/q")
    assert f.shape == ("q",)
    np.testing.assert_allclose(f(q=4), [0, 0.5, 1, 1.5])


PLACES = [[1], [0, 1, 0], [[1, 0], [0, 1]], [0, 0, 0]]


@pytest.mark.parametrize("places", PLACES, ids=str)
def test_indicators_are_places(places: list[Any]) -> None:
    """Places that are 0 and 1 are printed as conditions on indices."""
    y = tc.var("y", 2)
    e = tc.sin(y[np.array(places)])
    for z in (e, tc.jacobian(e, y), tc.sum(e), tc.grad(tc.sum(e * e), y)):
        np.testing.assert_allclose(again(z)(y=[0.3, 0.7]), z(y=[0.3, 0.7]), rtol=1e-12)


def test_negated_guards_bound_the_other_factors() -> None:
    f = tc.parse_index("f[i=0..3, j=0..1] = -[i == j]*sin(y[i])", y=2)
    np.testing.assert_allclose(f(y=[0.3, 0.7]), -np.eye(4, 2) * np.sin([0.3, 0.7]))
    y, w = tc.var("y", 2), tc.var("w", 2)
    z = tc.jacobian(tc.cos(tc.concatenate([y, w])), y)
    np.testing.assert_allclose(again(z)(y=[0.3, 0.7], w=[0.1, 0.2]), f(y=[0.3, 0.7]), rtol=1e-12)
    with pytest.raises(IndexError, match="reads outside"):
        tc.parse_index("f[i=0..3, j=0..1] = -([i == j] + 1)*sin(y[i])", y=2)


def test_conditions_on_dimensions_that_no_array_has() -> None:
    e = a * (tc.eye("q")[0] @ tc.eye("q")[-1])
    for q in (1, 2, 3):
        np.testing.assert_allclose(again(e)(a=2.0, q=q), 2.0 * (q == 1))
        np.testing.assert_allclose(e(a=2.0, q=q), 2.0 * (q == 1))
