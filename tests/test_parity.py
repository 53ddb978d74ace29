"""Functions that are even, odd, or take their operands in any order, of arrays that have a sign."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.products import antisymmetries, symmetries
from tcalc.support.namespaces import NUMPY
from tests.shared import library_rows

ROWS = [row for row in library_rows() if row.elementwise]
EVEN_OR_ODD = [row for row in ROWS if row.meaning.even == (0,) or row.meaning.odd == (0,)]
COMMUTING = [row for row in ROWS if row.meaning.commutes]
NUMBERS = np.concatenate([[0.0, 0.25, 1e-300, 1e300, 0.999], np.random.default_rng(0).random(50)])

t, s, A = tc.var("t", "n"), tc.var("s"), tc.var("A", ("n", "n"))
D = t[:, None] - t
T, SWAP = np.random.default_rng(1).normal(size=7), (1, 0)


@pytest.mark.parametrize("row", EVEN_OR_ODD, ids=lambda row: row.name)
def test_values_of_numbers_that_change_their_sign(row) -> None:
    sign, others = -1 if row.meaning.odd else 1, [np.float64(0.3)] * (len(row.core) - 1)
    with np.errstate(all="ignore"):
        one, two = (row.kernels.compute(NUMPY, (), x, *others) for x in (NUMBERS, -NUMBERS))
    np.testing.assert_array_equal(sign * one, two)
    assert np.isfinite(one[0])


@pytest.mark.parametrize("exponent", range(7))
def test_values_of_powers(exponent: int) -> None:
    x = NUMBERS[NUMBERS < 2]
    np.testing.assert_allclose((-1) ** exponent * x**exponent, (-x) ** exponent, rtol=1e-15)


@pytest.mark.parametrize("row", COMMUTING, ids=lambda row: row.name)
def test_values_of_operands_that_are_exchanged(row) -> None:
    a, b = np.array(list(itertools.product([*NUMBERS[:8], *-NUMBERS[:8]], repeat=2))).T
    with np.errstate(all="ignore"):
        one, other = (row.kernels.compute(NUMPY, (), *x) for x in ((a, b), (b, a)))
    np.testing.assert_array_equal(one, other)


SYMMETRIC = {
    "distances": tc.exp(-tc.abs(D) / s),
    "a period": tc.exp(-2 * tc.sin(np.pi * D / tc.exp(s)) ** 2),
    "an even function": tc.cos(s * D),
    "of an odd one": tc.abs(tc.sin(tc.tanh(D))),
    "the lesser of two times": tc.minimum(t[:, None], t),
    "an even power": tc.sinh(D / tc.exp(s)) ** 4,
    "a scaled square": tc.logcosh(t[:, None] * D * t),
}
ANTISYMMETRIC = {
    "an odd function": tc.sin(D),
    "of an odd one": tc.arctan(s * tc.sinh(D)),
    "times a symmetric one": tc.cos(D) * tc.tanh(D) * t * t[:, None],
    "to an odd power": tc.sin(D) ** 3,
    "of its own with another sign": tc.erf(D) - tc.erf(D).T,
}
NEITHER = {
    "an odd function of no difference": tc.sin(A),
    "a function that is neither": tc.exp(D),
    "an odd function that is not finite": 1 / D,
    "a power that is not whole": tc.abs(A) ** 2.5,
    "of a product with what has no symmetry": tc.cos(D * t),
    "a product with what has no symmetry": tc.sin(D) * t,
}


def given(e: tc.Expr) -> dict[str, Any]:
    values = {"t": T, "s": 0.7, "A": np.random.default_rng(3).normal(size=(7, 7))}
    return {name: values[name] for name in e.variables}


@pytest.mark.parametrize("name", SYMMETRIC)
def test_arrays_that_stay_as_they_are(name: str) -> None:
    e = SYMMETRIC[name]
    assert SWAP in symmetries(e)
    assert e.T is e
    found = tc.compile(e)(**given(e))
    np.testing.assert_allclose(found, found.T, rtol=1e-15)


@pytest.mark.parametrize("name", ANTISYMMETRIC)
def test_arrays_that_change_their_sign(name: str) -> None:
    """What they are multiplied with, where that stays as it is, has no sum."""
    e = ANTISYMMETRIC[name]
    assert SWAP in antisymmetries(e)
    found = tc.compile(e)(**given(e))
    np.testing.assert_allclose(found, -found.T, rtol=1e-15)
    square = tc.compile(e * e.T)(**given(e))
    np.testing.assert_allclose(square, -(found**2), rtol=1e-14)


@pytest.mark.parametrize("name", NEITHER)
def test_arrays_that_do_neither(name: str) -> None:
    e = NEITHER[name]
    assert SWAP not in symmetries(e)
    assert SWAP not in antisymmetries(e)


@pytest.mark.parametrize("name", [*SYMMETRIC, *ANTISYMMETRIC])
def test_texts(name: str) -> None:
    """A minus sign is written by the other order of a difference, in all languages of text."""
    e = {**SYMMETRIC, **ANTISYMMETRIC}[name]
    for written in (e, e.T, 2 - 3 * e.T, e.T * A, e.T @ t, tc.grad(tc.sum(A * e), t)):
        wanted = tc.compile(written)(**given(written))
        variables = {v.name: v for v in written.variables.values()}
        for again in (
            tc.parse(tc.to_text(written), **variables),
            tc.parse_index(tc.to_index(written), **variables),
            tc.parse_einsum(tc.to_einsum(written), **variables),
        ):
            found = tc.compile(again)(**given(again))
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


def test_the_sign_of_an_odd_function_is_the_order_of_a_difference() -> None:
    e = tc.sin(D)
    assert -e is e.T
    assert tc.sum(e + e.T) is tc.sum(tc.zeros(("n", "n")))
    assert str(e) == "sin(t*vector(1, n)' - vector(1, n)*t')"
    assert str(e.T) == "sin(vector(1, n)*t' - t*vector(1, n)')"


def test_ties_on_a_diagonal_are_written() -> None:
    """Formulas leave out ties, which are single points, but not those of an entry with itself."""
    x = tc.var("x", "n")
    assert str(tc.grad(tc.sum(tc.maximum(x, t)), x)) == "(t < x)"
    for e in (tc.maximum(t[:, None], t), tc.maximum(D, 0)):
        gradient = tc.grad(tc.sum(A * e), t)
        assert "==" in str(gradient)
        again = tc.parse(str(gradient), t="n", A=("n", "n"))
        wanted = tc.compile(gradient)(**given(gradient))
        np.testing.assert_allclose(tc.compile(again)(**given(again)), wanted, rtol=1e-12)


def test_a_coupled_oscillator() -> None:
    """Phases that pull at each other: forces are opposite where couplings are the same."""
    K = tc.var("K", ("n", "n"), symmetric=True)
    energy = -tc.sum(K * tc.cos(D)) / 2
    force = tc.grad(energy, t)
    k = np.random.default_rng(2).normal(size=(7, 7))
    k = k + k.T
    found = tc.compile(force)(t=T, K=k)
    apart = T[:, None] - T
    np.testing.assert_allclose(found, (k * np.sin(apart)).sum(axis=1), rtol=1e-12, atol=1e-12)
    hessian = tc.compile(tc.hessian(energy, t))(t=T, K=k)
    pulled = k * np.cos(apart)
    np.testing.assert_allclose(hessian, np.diag(pulled.sum(axis=1)) - pulled, atol=1e-12)


def test_a_kernel_with_a_period_is_solved_once() -> None:
    """The factor of a symmetric matrix serves its transpose."""
    y, K = tc.var("y", "n"), SYMMETRIC["a period"] + tc.eye("n")
    plan = tc.compile(tc.grad(y @ tc.solve(K, y), s)).plan_for(n=100)
    kinds = [step.params[0].name if step.kind == "over" else step.kind for step in plan.steps]
    assert (kinds.count("cholesky"), kinds.count("trisolve")) == (1, 2)
    sines = [s for s in plan.steps if s.kind == "ufunc" and s.params[0].name in ("sin", "cos")]
    assert len(sines) == 2
