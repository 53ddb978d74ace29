"""Formulas as they are on paper: densities without their supports, powers, forms apart."""

from __future__ import annotations

import numpy as np

import tcalc as tc


def test_densities_are_written_where_they_are_finite() -> None:
    """Without the conditions of their supports, which derivatives have as factors."""
    y, a, b = tc.var("y", "n"), tc.var("a"), tc.var("b")
    X, w = tc.var("X", ("n", "k")), tc.var("w", "k")
    poisson = tc.scipy.stats.poisson.logpmf(y, tc.exp(X @ w))
    assert str(tc.sum(poisson)) == "sum(y .* (X*w) - exp(X*w) - gammaln(y + 1))"
    assert str(tc.grad(tc.sum(poisson), w)) == "X'*(y - exp(X*w))"
    assert str(tc.jacobian(poisson, w)) == "diag(y - exp(X*w))*X"
    assert str(tc.hessian(tc.sum(poisson), w)) == "-X'*diag(exp(X*w))*X"
    gamma = tc.sum(tc.scipy.stats.gamma.logpdf(y, a, scale=b))
    assert str(tc.grad(gamma, a)) == "sum(log(y/b) - digamma(a))"
    counts = tc.sum(tc.scipy.stats.nbinom.logpmf(y, a, a / (a + tc.exp(X @ w))))
    assert str(tc.grad(counts, w)) == "a*X'*((y - exp(X*w))./(a + exp(X*w)))"
    found = tc.grad(tc.sum(poisson), w)(
        y=np.array([2.0, -1.0]), X=np.array([[1.0], [3.0]]), w=np.array([0.5])
    )
    np.testing.assert_allclose(found, [2 - np.exp(0.5)], err_msg="numbers keep the conditions")


def test_masks_that_are_no_supports_are_written() -> None:
    a, mask = tc.var("a", "n"), tc.var("m", "n")
    attention = tc.logsumexp(tc.where(mask > 0, a, -np.inf))
    assert "where(m > 0, a, -inf)" in str(attention)
    assert "m > 0" in str(tc.grad(attention, a))
    assert "where(m > 0, a, 0)" in str(tc.sum(tc.where(mask > 0, a, 0)) + tc.sum(a))


def test_powers_are_set_in_parentheses_where_they_are_sums() -> None:
    D, s, A, x = tc.var("D", "n"), tc.var("s"), tc.var("A", ("n", "n")), tc.var("x", "n")
    assert tc.to_latex(D ** (1 - s)) == r"D^{\odot (1 - s)}"
    assert tc.to_latex(D**-2) == r"D^{\odot -2}"
    assert tc.to_latex(tc.parse("inv(A)^2*x", A=A, x=x)) == "A^{-2} x"
    assert tc.to_latex(tc.parse("inv(A).^2", A=A)) == r"(A^{-1})^{\odot 2}"


def test_derivatives_by_a_vector_of_parameters_are_its_parts() -> None:
    """The hazards of Gompertz, with covariates: unit vectors, and margins of zeros."""
    p, d, t, X = tc.var("p", "k"), tc.var("d", "n"), tc.var("t", "n"), tc.var("X", ("n", "k-2"))
    eta = p[0] + X @ p[2:]
    f = tc.sum(tc.exp(eta) * tc.expm1(p[1] * t) / p[1]) - tc.sum(d * (eta + p[1] * t))
    h = "exp(X*p[2:] + p[0])"
    last = f"pad(X'*({h} .* expm1(p[1]*t)/p[1] - d), 2, 0)"
    assert str(tc.grad(f, p)).endswith(last)
    assert f"sum({h} .* expm1(p[1]*t)/p[1] - d)*eye(k)[0]" in str(tc.grad(f, p))
