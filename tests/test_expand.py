"""Products of sums multiplied out: equal values, no sum inside a product, typed refusals."""

from __future__ import annotations

import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.nodes import Add, Einsum, postorder

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
    for e in ((X + Y) ** 100, (X + Y) ** 1e9, (X + Y + 1) ** 9):
        with pytest.raises(tc.UnsupportedError, match="more than 10,000 terms"):
            tc.expand(e)
    assert tc.expand((X + Y) ** 0.5) is (X + Y) ** 0.5
