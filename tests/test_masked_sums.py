"""Sums of exponentials of which nothing is left: their derivatives are 0, not nan."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tcalc as tc

jax.config.update("jax_enable_x64", True)

rng = np.random.default_rng(3)
SCORES = rng.normal(size=(3, 3))
MASK = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
WEIGHTS = np.arange(9.0).reshape(3, 3)


def _kept(xp: Any, s: Any) -> Any:
    return xp.where(MASK > 0, s, -np.inf)


def _weighted(scores: Any, weights: Any) -> Any:
    return jax.nn.softmax(scores) @ weights


#: Functions of scores with a row that is masked out, and what they are without that row, by jax.
MASKED: dict[str, tuple[Any, Any]] = {
    "totals of groups": (
        lambda s: np.sum(np.where(MASK.sum(1) > 0, tc.logsumexp(_kept(np, s), axis=1), 0) ** 2),
        lambda s: jax.nn.logsumexp(s[0, :2]) ** 2 + jax.nn.logsumexp(s[2, 1:]) ** 2,
    ),
    "shares": (
        lambda s: np.sum(WEIGHTS * np.where(MASK > 0, tc.softmax(_kept(np, s)), 0)),
        lambda s: _weighted(s[0, :2], WEIGHTS[0, :2]) + _weighted(s[2, 1:], WEIGHTS[2, 1:]),
    ),
    "shares without nan": (
        lambda s: np.sum(WEIGHTS * np.nan_to_num(tc.softmax(_kept(np, s)))),
        lambda s: _weighted(s[0, :2], WEIGHTS[0, :2]) + _weighted(s[2, 1:], WEIGHTS[2, 1:]),
    ),
}  # fmt: skip


def agree(fun: Any, reference: Any, at: np.ndarray) -> None:
    """Traced, and as expressions on both back ends."""
    wanted = [f(at) for f in (reference, jax.grad(reference), jax.hessian(reference))]
    x = tc.var("x", at.shape)
    nest = (fun(x), tc.grad(fun(x), x), tc.hessian(fun(x), x))
    for found in (
        (tc.value_and_grad(fun)(at)[0], tc.grad(fun)(at), tc.hessian(fun)(at)),
        tc.compile(nest, backend="numpy")(x=at), tc.compile(nest, backend="c")(x=at),
    ):  # fmt: skip
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", MASKED)
def test_a_row_that_is_masked_out_has_no_derivative(name: str) -> None:
    agree(*MASKED[name], SCORES)


STEPS = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]])
SEEN = rng.normal(size=4)


def test_states_that_cannot_be_reached_yet_have_no_derivative() -> None:
    """The likelihood of a chain that moves to the right, in logarithms and by probabilities."""
    with np.errstate(divide="ignore"):
        steps, start = np.log(STEPS), np.log(np.array([1.0, 0.0, 0.0]))

    def in_logarithms(mu: Any) -> Any:
        density = -0.5 * (SEEN[:, None] - mu) ** 2
        state = start + density[0]
        for t in range(1, 4):
            state = tc.logsumexp(state[:, None] + steps, axis=0) + density[t]
        return tc.logsumexp(state)

    def by_probabilities(mu: Any) -> Any:
        density = jnp.exp(-0.5 * (SEEN[:, None] - mu) ** 2)
        state = jnp.array([1.0, 0.0, 0.0]) * density[0]
        for t in range(1, 4):
            state = (state @ STEPS) * density[t]
        return jnp.log(jnp.sum(state))

    agree(in_logarithms, by_probabilities, SCORES[0])


def test_paths_that_have_not_begun_have_no_derivative() -> None:
    """The likelihood of an alignment of steps to labels in their order."""

    def in_logarithms(mu: Any) -> Any:
        density = -0.5 * (SEEN[:, None] - mu) ** 2
        state = np.array([0.0, -np.inf, -np.inf]) + density[0]
        for t in range(1, 4):
            before = np.concatenate([np.array([-np.inf]), state[:-1]])
            state = np.logaddexp(state, before) + density[t]
        return state[2]

    def by_probabilities(mu: Any) -> Any:
        density = jnp.exp(-0.5 * (SEEN[:, None] - mu) ** 2)
        state = jnp.array([1.0, 0.0, 0.0]) * density[0]
        for t in range(1, 4):
            state = (state + jnp.concatenate([jnp.zeros(1), state[:-1]])) * density[t]
        return jnp.log(state[2])

    agree(in_logarithms, by_probabilities, SCORES[0])


def test_sums_that_nothing_is_left_out_of_are_not_guarded() -> None:
    X, b = tc.var("X", ("m", "n")), tc.var("b", "n")
    g = tc.grad(tc.sum(tc.logsumexp(X * b, axis=1)), b)
    assert "where" not in str(g)
