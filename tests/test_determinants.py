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
