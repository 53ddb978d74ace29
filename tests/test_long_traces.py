"""Loops of Python over traced values: hundreds of steps are differentiated, each of them once."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.nodes import Derivative, postorder

STEPS = 60
RETURNS = np.random.default_rng(0).normal(size=STEPS)
POINT = np.array([0.1, 0.15, 0.7])


def volatility(xp: Any, p: Any) -> Any:
    """The negative logarithm of the likelihood of a GARCH(1, 1) model."""
    h, total = 1.0, 0.0
    for r in RETURNS:
        h = p[0] + p[1] * r * r + p[2] * h
        total = total + xp.log(h) + r * r / h
    return total


def test_derivatives_of_a_recursion() -> None:
    value, gradient = tc.value_and_grad(lambda p: volatility(np, p))(POINT)
    hessian = tc.hessian(lambda p: volatility(np, p))(POINT)
    reference = lambda p: volatility(jnp, p)  # noqa: E731
    np.testing.assert_allclose(value, reference(POINT), rtol=1e-13)
    np.testing.assert_allclose(gradient, jax.grad(reference)(POINT), rtol=1e-11)
    np.testing.assert_allclose(hessian, jax.hessian(reference)(POINT), rtol=1e-10)


def unequal(xp: Any, p: Any) -> Any:
    """The same with another loss at every step, so that no loop is found in it."""
    h, total = 1.0, 0.0
    kinds = np.random.default_rng(1).integers(0, 4, STEPS)
    for r, kind in zip(RETURNS, kinds, strict=True):
        h = p[0] + p[1] * r * r + p[2] * (h, xp.sqrt(h), xp.tanh(h), xp.log(1 + h))[kind]
        total = total + xp.log(h) + r * r / h
    return total


@pytest.mark.parametrize("wrt", [(), 3])
def test_long_expressions_are_accumulated_once_and_grow_linearly(wrt: Any) -> None:
    """Comparing modes takes longer than deriving them."""
    p = tc.var("p", wrt)
    entries = [p[0], p[1], p[2]] if p.ndim else [p, p, p]
    gradient = tc.grad(unequal(tc, entries), p)
    hessian = tc.derivative(gradient, p)
    assert isinstance(hessian, Derivative)
    assert len(hessian.values) == 1
    assert len(postorder([gradient.inner])) < 15 * STEPS
    assert len(postorder([hessian.inner])) < 45 * STEPS
