"""Products of sums multiplied out: equal values, no sum inside a product, typed refusals."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.nodes import Add, Einsum, postorder
from tcalc.graph.normal import bare

X, Y, C = tc.var("x", "n"), tc.var("y", "n"), tc.var("c", ())
A, B = tc.var("A", ("n", "k")), tc.var("B", ("m", "k"))

CASES = {
    "square": (X + Y) ** 2,
    "cube": (X - 2 * Y + 1) ** 3,
    "product": (X + Y) * (X - Y) * (C + 1),
    "distances": tc.sum((A[:, None] - B) ** 2, axis=2),
    "inside a function": tc.exp(-((X - Y) ** 2)),
    "nested": ((X + Y) * (C + 1) + X) * (Y + 1),
    "matrix product": (A + 1) @ (B - 1).T,
    "gradient": tc.grad(tc.sum(((A @ B.T) + 1) ** 2), A),
    "nothing to do": X * Y,
}


@pytest.mark.parametrize("name", CASES)
def test_values_stay(name: str) -> None:
    e, rng = CASES[name], np.random.default_rng(0)
    draw = rng.standard_normal
    data = {"x": draw(4), "y": draw(4), "c": draw(), "A": draw((4, 3)), "B": draw((5, 3))}
    expanded = tc.expand(e)
    names = {leaf.name for leaf in postorder([e]) if hasattr(leaf, "name")}
    given = {k: v for k, v in data.items() if k in names}
    np.testing.assert_allclose(tc.compile(expanded)(**given), tc.compile(e)(**given), 1e-12, 1e-12)
    for node in postorder([expanded]):
        product = isinstance(node, Einsum) and len(node.args) > 1
        assert not (product and any(isinstance(a, Add) for a in node.args))


def test_distances_need_no_array_of_three_axes() -> None:
    shapes = {"A": (300, 50), "B": (400, 50)}
    whole = tc.compile(tc.expand(CASES["distances"])).plan_for(**shapes)
    assert whole.peak_bytes < 3 * 8 * 300 * 400


def test_too_many_terms() -> None:
    for e in ((X + Y) ** 100, (X + Y) ** 1e9, (X + Y + 1) ** 30):
        with pytest.raises(tc.UnsupportedError, match="more than 10,000 terms"):
            tc.expand(e)


def test_powers_have_the_terms_that_are_left() -> None:
    a = tc.var("a")
    found = tc.expand((2 * a + 1) ** 14)
    assert [str(found).count(f"a^{k}") > 0 for k in range(2, 15)] == [True] * 13
    np.testing.assert_allclose(found(a=0.3), 1.6**14, rtol=1e-13)
    at = {"x": [0.4, 0.2], "y": [-0.7, 0.3]}
    np.testing.assert_allclose(tc.expand((X + Y + 1) ** 9)(at), [0.7**9, 1.5**9], rtol=1e-10)


def test_powers_that_are_not_whole_stay() -> None:
    assert tc.expand((X + Y) ** 0.5) is (X + Y) ** 0.5


SHOWN = {
    "(x + y).^2": "x.^2 + 2*x .* y + y.^2",
    "(A + 1)*(B - 1)'": "A*B' + vector(1, n)*vector(1)'*B' - A*vector(1)*vector(1, m)' - k",
    "A*(B'*z + B'*w)": "A*B'*z + A*B'*w",
    "exp(-(x - y).^2)": "exp(2*x .* y - x.^2 - y.^2)",
}


@pytest.mark.parametrize("text", SHOWN)
def test_what_was_multiplied_out_is_printed_so(text: str) -> None:
    shapes = {"A": ("n", "k"), "B": ("m", "k"), "x": ("n",), "y": ("n",), "z": ("m",), "w": ("m",)}
    e = tc.parse(text, **shapes)
    expanded = tc.expand(e)
    factored = str(e)
    assert str(expanded) != factored
    assert str(expanded) == SHOWN[text]
    assert tc.to_latex(expanded) != tc.to_latex(e)
    assert str(e) == factored


def test_what_was_multiplied_out_is_an_expression_like_others() -> None:
    e = tc.expand((X + Y) ** 2)
    assert str(bare(e)) != str(e)  # what it is made of remembers nothing
    assert pickle.loads(pickle.dumps(e)) is e
    assert 2 * e is 2 * bare(e)
    assert tc.grad(tc.sum(e), X) is tc.grad(tc.sum(bare(e)), X)
    assert str(tc.jacobian(e, X)) == str(tc.jacobian(bare(e), X))
    assert tc.expand(e) is e
    stable = tc.expand(tc.log(tc.exp(X) + tc.exp(Y)) * (X + Y))
    values = {"x": np.full(2, 900.0), "y": np.full(2, 900.0)}
    for f in (stable, tc.compile(stable)):
        np.testing.assert_allclose(f(values), (900 + np.log(2)) * 1800)
