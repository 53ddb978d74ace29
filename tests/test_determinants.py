"""Determinants in logarithms and below the line: no overflow, and inverses for adjugates."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.applications import root_of
from tcalc.graph.nodes import postorder

jax.config.update("jax_enable_x64", True)  # type: ignore[no-untyped-call]

A = tc.var("A", ("n", "n"))
MATRIX = np.random.default_rng(1).normal(size=(3, 3))
#: Of odd permutation, with the determinant's negative.
TURNED = MATRIX[[1, 0, 2]]

FUNCTIONS: dict[str, Any] = {
    "log(det(A))": lambda d: jnp.log(d),
    "log(det(A)^2)": lambda d: jnp.log(d**2),
    "log(sqrt(det(A)))": lambda d: jnp.log(d) / 2,
    "log(1/sqrt(det(A)))": lambda d: -jnp.log(d) / 2,
    "log(3*det(A))": lambda d: jnp.log(3 * d),
    "log(det(A)^0.3)": lambda d: 0.3 * jnp.log(d),
    "1/det(A)": lambda d: 1 / d,
    "1/det(A)^2": lambda d: 1 / d**2,
    "sqrt(det(A))": lambda d: jnp.sqrt(d),
    "det(A)^(-1/2)": lambda d: d**-0.5,
    "det(A)^(1/3)": lambda d: d ** (1 / 3),
    "sin(1/det(A))": lambda d: jnp.sin(1 / d),
}


@pytest.mark.parametrize("text", FUNCTIONS)
def test_derivatives_are_those_of_jax(text: str) -> None:
    def function(a: Any) -> Any:
        return FUNCTIONS[text](jnp.linalg.det(a))

    e = tc.parse(text, A=A)
    for derivative, oracle in ((tc.grad, jax.grad), (tc.hessian, jax.hessian)):
        found = derivative(e, A)
        np.testing.assert_allclose(found(A=MATRIX), oracle(function)(MATRIX), rtol=1e-9, atol=1e-10)
        # Derivatives of adjugates cost n times more than those of inverses.
        assert not any(root_of(node).startswith("adj_") for node in postorder([found]))


@pytest.mark.parametrize("text", [text for text in FUNCTIONS if "log" in text])
def test_logarithms_have_the_values_of_numpy(text: str) -> None:
    e = tc.parse(text, A=A)
    for matrix in (MATRIX, TURNED):
        with np.errstate(invalid="ignore"):
            wanted = np.asarray(FUNCTIONS[text](np.linalg.det(matrix)))
        np.testing.assert_allclose(e(A=matrix), wanted, rtol=1e-12)
    assert tc.parse("log(det(A))", A=A)(A=np.zeros((2, 2))) == -np.inf


def test_logarithms_do_not_overflow() -> None:
    for size in (1e-3, 1e3):
        a = size * np.eye(400)
        found = tc.parse("log(det(A)) + log(sqrt(det(A)))", A=A)(A=a)
        assert found == pytest.approx(600 * np.log(size), rel=1e-12)
        slope = tc.grad(tc.parse("log(det(A))", A=A), A)(A=a)
        np.testing.assert_allclose(slope, np.eye(400) / size, rtol=1e-12)


def test_formulas() -> None:
    for text, gradient in (
        ("log(det(A))", "inv(A)'"),
        ("log(det(A))^2", "2*log(det(A))*inv(A)'"),
        ("1/det(A)", "-inv(A)'/det(A)"),
        ("sqrt(det(A))", "sqrt(det(A))*inv(A)'/2"),
    ):
        assert str(tc.grad(tc.parse(text, A=A), A)) == gradient
    assert str(tc.simplify(tc.parse("log(sqrt(det(A)))", A=A))) == "log(det(A))/2"


def test_batches() -> None:
    matrices = np.random.default_rng(2).normal(size=(4, 3, 3))
    B = tc.var("B", matrices.shape)
    det = tc.linalg.det(B)
    found = tc.grad(tc.sum(1 / det**2 + tc.log(det**2)), B)(B=matrices)

    def function(b: Any) -> Any:
        d = jnp.linalg.det(b)
        return jnp.sum(1 / d**2 + jnp.log(d**2))

    np.testing.assert_allclose(found, jax.grad(function)(matrices), rtol=1e-9)


X, U = np.random.default_rng(3).normal(size=(7, 3)), np.array([0.3, -0.2, 0.5])
M = "inv(X'*diag(exp(X*u))*X)"

#: Logarithms of determinants by a vector: for jax, and the Hessian as an expert writes it.
BY_VECTORS: dict[str, tuple[Any, str]] = {
    "log(det(X'*diag(exp(X*u))*X))": (
        lambda u: X.T @ jnp.diag(jnp.exp(X @ u)) @ X,
        f"X'*(diag(diag(X*{M}*X')) - diag(exp(X*u))*(X*{M}*X').^2)*diag(exp(X*u))*X",
    ),
    "log(det(X'*diag(sigmoid(X*u).*sigmoid(-X*u))*X))": (
        lambda u: X.T @ jnp.diag(jax.nn.sigmoid(X @ u) * jax.nn.sigmoid(-X @ u)) @ X,
        "",
    ),
    "log(det(X'*diag(1./(1+(X*u).^2))*X))": (
        lambda u: X.T @ jnp.diag(1 / (1 + (X @ u) ** 2)) @ X,
        "",
    ),
    "log(det(A + u*u'))": (
        lambda u: jnp.asarray(MATRIX @ MATRIX) + jnp.outer(u, u),
        "(1 - u'*inv(A + u*u')*u)*(inv(A + u*u')' + inv(A + u*u')) "
        "- inv(A + u*u')*u*u'*inv(A + u*u')' - inv(A + u*u')'*u*u'*inv(A + u*u')",
    ),
}


@pytest.mark.parametrize("text", BY_VECTORS)
def test_hessians_by_vectors_are_written_with_matrices(text: str) -> None:
    """No tensors of more axes, whose contractions are written with letters."""
    matrix, formula = BY_VECTORS[text]
    variables = {"X": tc.var("X", ("m", "n")), "A": A, "u": tc.var("u", "n")}
    e = tc.parse(text, **{name: v for name, v in variables.items() if name in text})
    data = {"X": X, "A": MATRIX @ MATRIX, "u": U}
    data = {name: data[name] for name in e.variables}

    def function(u: Any) -> Any:
        return jnp.linalg.slogdet(matrix(u))[1]

    for derivative, oracle in ((tc.grad, jax.grad), (tc.hessian, jax.hessian)):
        found = derivative(e, "u")
        assert "#" not in str(found)
        for one in (found, tc.parse(str(found), **e.variables)):
            np.testing.assert_allclose(one(data), oracle(function)(U), rtol=1e-8, atol=1e-10)
    assert formula in ("", str(found))
