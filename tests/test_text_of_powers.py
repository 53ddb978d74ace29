"""Powers of products, transposes and quotients in text: what is read back has the same numbers."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import tcalc as tc

u, v = tc.var("u", ("n", "n")), tc.var("v", "n")
BASES = {
    "scaled": 3 * u,
    "scaled transpose": 2 * u.T,
    "negative transpose": -2 * u.T,
    "outer": 2 * v * v[:, None],
    "rows": -3 * u * v[:, None],
    "product": 2 * (u.T @ u),
    "quotient": 5 * u.T / v,
    "nested": 3 * (2 * u.T) ** 3,
    "diagonal": tc.einsum("i,->iji", v, tc.sum(v), sizes={"j": 2}),
    "scaled diagonal": tc.einsum("i,j->jij", v, 3 * v),
    "contraction": 2 * tc.einsum("ij,jk,l->lik", u, u, v),
}
AROUND = {
    "alone": lambda p: p,
    "scaled": lambda p: 7 * p,
    "times": lambda p: p * v,
    "over": lambda p: v / p,
    "sum": lambda p: tc.sum(p, axis=0),
    "turned": lambda p: p.T - 1,
    "transposed": lambda p: p.T,
    "outer": lambda p: tc.einsum("...,z->...z", p, v),
}


@pytest.mark.parametrize(("base", "around", "power"), [*product(BASES, AROUND, (-2, -1, 2, 3, 5))])
def test_numbers_of_powers_are_those_of_their_text(base: str, around: str, power: int) -> None:
    e = AROUND[around](BASES[base] ** power)
    rng = np.random.default_rng(0)
    at = {"u": rng.uniform(0.5, 1.5, (3, 3)), "v": rng.uniform(0.5, 1.5, 3)}
    for written, read in ((str, tc.parse), (tc.to_index, tc.parse_index)):
        back = read(written(e), u=u, v=v)
        np.testing.assert_allclose(back(at), e(at), rtol=1e-12)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("exp(u .* w) .* u.^2 .* w.^2", "(u .* w).^2 .* exp(u .* w)"),
        ("exp(u .* w) ./ (u.^3 .* w.^3)", "exp(u .* w)./(u .* w).^3"),
        ("exp(u .* w) .* u.^2 .* w.^3", "u.^2 .* exp(u .* w) .* w.^3"),
        ("exp(u - w) .* u.^2 .* w.^2", "u.^2 .* w.^2 .* exp(u - w)"),
        ("exp(c*v'*v)*c^2*(v'*v)^2", "(c*v'*v)^2*exp(c*v'*v)"),
    ],
)
def test_equal_powers_are_one_of_a_product_that_stands_in_the_formula(
    text: str, written: str
) -> None:
    names = {"u": u, "w": tc.var("w", ("n", "n")), "v": v, "c": tc.var("c")}
    e = tc.parse(text, **names)
    assert str(e) == written
    again = tc.parse(written, **names)
    assert str(again) == written
    rng = np.random.default_rng(0)
    at = {name: rng.uniform(0.5, 1.5, (3,) * e.ndim) for name, e in names.items()}
    np.testing.assert_allclose(again(at), e(at), rtol=1e-12)
