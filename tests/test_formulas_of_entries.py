"""Derivatives of functions of entries and slices are written with unit vectors and margins."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tcalc as tc

jax.config.update("jax_enable_x64", True)  # type: ignore[no-untyped-call]

#: The function as text and for jax; its gradient and its Hessian.
FUNCTIONS = {
    "intercept": (
        "sum((y - X*w - w[0]).^2)/2",
        lambda w, X, y: jnp.sum((y - X @ w - w[0]) ** 2) / 2,
        "-(X'*(y - X*w - w[0]) + sum(y - X*w - w[0])*eye(n)[0])",
        "(X' + eye(n)[0]*vector(1, m)')*(X + vector(1, m)*eye(n)[0]')",
    ),
    "two ends": (
        "w[0]*exp(w[-1])",
        lambda w, X, y: w[0] * jnp.exp(w[-1]),
        "exp(w[-1])*(w[0]*eye(n)[-1] + eye(n)[0])",
        "exp(w[-1])*(eye(n)[-1]*(w[0]*eye(n)[-1] + eye(n)[0])' + eye(n)[0]*eye(n)[-1]')",
    ),
    "two parts": (
        "sum(exp(w[2:])) + sum(w[:2].^2)/2",
        lambda w, X, y: jnp.sum(jnp.exp(w[2:])) + jnp.sum(w[:2] ** 2) / 2,
        "pad(w[:2], 0, n-2) + pad(exp(w[2:]), 2, 0)",
        "eye(n)[2:]'*diag(exp(w[2:]))*eye(n)[2:] + eye(n)[:2]'*eye(n)[:2]",
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_entries_are_unit_vectors(name: str) -> None:
    text, function, *forms = FUNCTIONS[name]
    shapes = {"w": "n", "X": ("m", "n"), "y": "m"}
    e = tc.parse(text, **shapes)
    rng = np.random.default_rng(1)
    w, X, y = rng.normal(size=4), rng.normal(size=(5, 4)), rng.normal(size=5)
    oracles = (jax.grad(function), jax.hessian(function))
    for derivative, form, oracle in zip((tc.grad, tc.hessian), forms, oracles, strict=True):
        found = derivative(e, "w")
        assert str(found) == form
        again = tc.parse(form, **shapes)
        for values in (found, again):
            given = {k: a for k, a in {"w": w, "X": X, "y": y}.items() if k in values.variables}
            np.testing.assert_allclose(values(**given), oracle(w, X, y), rtol=1e-12)


def test_whose_array_is_read_makes_no_difference() -> None:
    A = tc.var("A", ("n", "n"))
    assert str(tc.grad(tc.sum(A[0] ** 2), "A")) == "2*eye(n)[0]*A[0]'"
    assert str(tc.grad(tc.sum(tc.exp(A[:, 1])), "A")) == "exp(A[:, 1])*eye(n)[1]'"
    assert str((A @ A)[0]) == str((A @ A).T[:, 0])


@pytest.mark.parametrize(
    ("text", "form", "gradient"),
    [
        ("mean(X*w)", "mean(X*w)", "X'*vector(1)/m"),
        ("log(sum(X*w))", "log(sum(X*w))", "X'*vector(1)/sum(X*w)"),
        ("var(X*w)", "var(X*w)", "2*X'*(X*w - mean(X*w))/m"),
        ("sum((X*w - mean(X*w)).*y)", "y'*(X*w - mean(X*w))", "X'*(y - mean(y))"),
        ("sum(cumsum(w).^2)", "cumsum(w)'*cumsum(w)", "2*revcumsum(cumsum(w))"),
    ],
)  # fmt: skip
def test_sums_over_entries_of_products_are_sums(text: str, form: str, gradient: str) -> None:
    e = tc.parse(text, X=("m", "n"), w="n", y="m")
    assert str(e) == form
    assert str(tc.grad(e, "w")) == gradient


#: Sums with an array that only indices give, in LaTeX: entries, not an array in brackets.
T, A, B, C = (tc.var(n, tuple(s)) for n, s in {"T": "ijk", "A": "ir", "B": "jr", "C": "kr"}.items())
low_rank = tc.einsum("ir,jr,kr->ijk", A, B, C)
ENTRIES = [
    (tc.grad(tc.sum((T - low_rank) ** 2), A),
     r"-2 [\sum_{kl} B_{kj} C_{lj} (T_{ikl} - \sum_{m} A_{im} B_{km} C_{lm})]_{ij}"),
    (tc.sum((T - 3 * low_rank - 1) ** 2),
     r"\sum_{ijk} (T_{ijk} - 3 \sum_{l} A_{il} B_{jl} C_{kl} - 1)^{2}"),
    (tc.einsum("ijk->i", (2 * tc.var("s") * low_rank + 1 - T) ** 3),
     r"[\sum_{jk} (2 s \sum_{l} A_{il} B_{jl} C_{kl} + 1 - T_{ijk})^{3}]_{i}"),
    (tc.einsum("ijk,jk->kij", T - low_rank, tc.var("M", ("j", "k"))),
     r"[M_{ki} (T_{jki} - \sum_{l} A_{jl} B_{kl} C_{il})]_{ijk}"),
]  # fmt: skip


@pytest.mark.parametrize(("e", "formula"), ENTRIES)
def test_sums_with_arrays_that_only_indices_give_are_entries(e: tc.Expr, formula: str) -> None:
    plain = tc.to_latex(e).replace(r"\left", "").replace(r"\right", "")
    assert plain == formula


def test_choices_in_branches_are_made() -> None:
    """Huber's loss, as books write its derivative."""
    r, s, d = tc.var("r", "n"), tc.var("s"), tc.var("d")
    inside = tc.abs(r) < d * s
    loss = tc.sum(tc.where(inside, r**2 / (2 * s**2), d * tc.abs(r) / s - d**2 / 2))
    assert str(tc.grad(loss, r)) == "where(abs(r) < d*s, r/s^2, d*sign(r)/s)"
    other = tc.sum(tc.where(tc.logical_not(inside), tc.log(s * r), r / s))
    assert str(tc.grad(other, r)) == "where(logical_not(abs(r) < d*s), 1./r, 1/s)"
