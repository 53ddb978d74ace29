"""Formulas of differences along an axis: penalties, total variation, recurrences."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tcalc as tc

jax.config.update("jax_enable_x64", True)  # type: ignore[no-untyped-call]

FIRST, SECOND = "(eye(n)[1:] - eye(n)[:-1])", "(eye(n)[2:] - 2*eye(n)[1:-1] + eye(n)[:-2])"
AUTOREGRESSIVE = "(eye(n)[1:] - a*eye(n)[:-1])"

#: The function as text and for jax; its gradient and Hessian as an expert writes them.
PENALTIES = {
    "differences": (
        "a*sum((w[1:] - w[:-1]).^2)/2",
        lambda w, a: a * jnp.sum((w[1:] - w[:-1]) ** 2) / 2,
        f"a*{FIRST}'*(w[1:] - w[:-1])",
        f"a*{FIRST}'*{FIRST}",
    ),
    "second differences": (
        "sum((w[2:] - 2*w[1:-1] + w[:-2]).^2)",
        lambda w, a: jnp.sum((w[2:] - 2 * w[1:-1] + w[:-2]) ** 2),
        f"2*{SECOND}'*(w[2:] - 2*w[1:-1] + w[:-2])",
        f"2*{SECOND}'*{SECOND}",
    ),
    "central differences": (
        "sum(log(cosh(w[2:] - w[:-2])))",
        lambda w, a: jnp.sum(jnp.log(jnp.cosh(w[2:] - w[:-2]))),
        "(eye(n)[2:] - eye(n)[:-2])'*tanh(w[2:] - w[:-2])",
        "(eye(n)[2:] - eye(n)[:-2])'*diag(sech(w[2:] - w[:-2]).^2)*(eye(n)[2:] - eye(n)[:-2])",
    ),
    "smoothed total variation": (
        "sum(sqrt(a^2 + (w[1:] - w[:-1]).^2))",
        lambda w, a: jnp.sum(jnp.sqrt(a**2 + (w[1:] - w[:-1]) ** 2)),
        f"{FIRST}'*((w[1:] - w[:-1])./sqrt(a^2 + (w[1:] - w[:-1]).^2))",
        f"a^2*{FIRST}'*diag(1./(a^2 + (w[1:] - w[:-1]).^2).^(3/2))*{FIRST}",
    ),
    "autoregression": (
        "sum((w[1:] - a*w[:-1]).^2)",
        lambda w, a: jnp.sum((w[1:] - a * w[:-1]) ** 2),
        f"2*{AUTOREGRESSIVE}'*(w[1:] - a*w[:-1])",
        f"2*{AUTOREGRESSIVE}'*{AUTOREGRESSIVE}",
    ),
}


@pytest.mark.parametrize("name", PENALTIES)
def test_sums_of_shifts_are_one_factor(name: str) -> None:
    text, function, *forms = PENALTIES[name]
    e = tc.parse(text, w="n")
    w, a = np.random.default_rng(0).normal(size=6), 0.7
    oracles = (jax.grad(function), jax.hessian(function))
    for derivative, form, oracle in zip((tc.grad, tc.hessian), forms, oracles, strict=True):
        found = derivative(e, "w")
        assert str(found) == form
        again = tc.parse(form, w="n")
        for values in (found(w=w, a=a), again(w=w, a=a)):
            np.testing.assert_allclose(values, oracle(w, a), rtol=1e-12, atol=1e-13)


def test_of_matrices_too() -> None:
    X = tc.var("X", ("m", "n"))
    found = tc.grad(tc.sum((X[:, 1:] - X[:, :-1]) ** 2), "X")
    assert str(found) == "2*(X[:, 1:] - X[:, :-1])*(eye(n)[1:] - eye(n)[:-1])"


def test_indices_know_where_differences_end() -> None:
    w = tc.var("w", "n")
    text = tc.to_index(tc.hessian(tc.sum((w[1:] - w[:-1]) ** 2) / 2, "w"))
    assert "sum" not in text
    steps = np.diff(np.eye(4), axis=0)
    np.testing.assert_array_equal(tc.parse_index(text)(n=4), steps.T @ steps)
