"""Contractions over few items stay factors in compressed tensors, however they hide."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcalc as tc

X, Y = tc.var("X", ("m", "n")), tc.var("Y", ("m", "c"))
W, U, V = tc.var("W", ("n", "c")), tc.var("U", ("n", "h")), tc.var("V", ("h", "c"))
v = tc.var("v", "h")
SOFTMAX = tc.sum(tc.logsumexp(X @ W, axis=1))
SIZES = {"m": 6, "n": 40, "c": 3, "h": 4}

CASES: dict[str, tuple[Any, Any]] = {
    "softmax": (SOFTMAX, W),
    "softmax regression": (SOFTMAX - tc.sum(Y * (X @ W)) + 0.5 * tc.sum(W * W), W),
    "two squares": (tc.sum((X @ W) ** 4) + tc.sum(tc.sum(X @ W, axis=1) ** 2), W),
    "net of one output": (tc.sum((tc.tanh(X @ U) @ v) ** 2), U),
    "net": (tc.sum(tc.logsumexp(tc.tanh(X @ U) @ V, axis=1)), U),
    "net with squares": (tc.sum((tc.tanh(X @ U) @ V - Y) ** 2), U),
    "coupled rows": (tc.sum(tc.exp(tc.sum(X @ W, axis=1))), W),
}  # fmt: skip


def data_for(e: Any, seed: int = 0, **sizes: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    at = {**SIZES, **sizes}
    return {
        name: rng.normal(size=[at[d] for d in variable.shape]) / 3
        for name, variable in e.variables.items()
    }


@pytest.mark.parametrize("name", CASES)
def test_few_items_are_held_as_factors(name: str) -> None:
    f, x = CASES[name]
    H = tc.hessian(f, x)
    data = data_for(H)
    held = tc.compile(H, structured=True)(**data)
    expected = tc.compile(H)(**data)
    size = expected.size**0.5
    assert held.nbytes < 0.1 * expected.nbytes
    np.testing.assert_allclose(held.todense(), expected, rtol=1e-9, atol=1e-11)
    flat = expected.reshape(int(size), int(size))
    np.testing.assert_allclose(held.diagonal().ravel(), np.diagonal(flat), rtol=1e-9, atol=1e-11)
    direction = np.random.default_rng(1).normal(size=x.ndim and held.shape[: x.ndim])
    np.testing.assert_allclose(
        (held @ direction).ravel(), flat @ direction.ravel(), rtol=1e-8, atol=1e-10
    )
    damped = flat + 50 * np.eye(len(flat))
    found = held.solve(direction, damping=50)
    np.testing.assert_allclose(
        found.ravel(), np.linalg.solve(damped, direction.ravel()), rtol=1e-7, atol=1e-10
    )
    shifted = held + 50 * tc.identity_like(held)
    np.testing.assert_allclose(shifted.logdet(), np.linalg.slogdet(damped)[1], rtol=1e-9)
    np.testing.assert_allclose(held.trace(), np.trace(flat), rtol=1e-9, atol=1e-10)


def test_the_factors_are_the_batch_and_one_small_core() -> None:
    m, n, c = 20, 400, 3
    H = tc.hessian(SOFTMAX, W)
    held = tc.compile(H, structured=True)(**data_for(H, m=m, n=n, c=c))
    assert held.nbytes <= 8 * (m * n + m * c * c + c * c)
    shifted = held + 2 * tc.identity_like(held)
    assert "Woodbury" in shifted.explain()


def test_many_items_are_summed() -> None:
    H = tc.hessian(SOFTMAX, W)
    data = data_for(H, m=5000, n=3, c=2)
    held = tc.compile(H, structured=True)(**data)
    assert held.nbytes <= 8 * (3 * 2) ** 2
    np.testing.assert_allclose(held.todense(), tc.compile(H)(**data), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("m", [1, 2, 7, 60])
def test_the_form_follows_the_sizes(m: int) -> None:
    H = tc.hessian(SOFTMAX, W)
    function = tc.compile(H, structured=True)
    for n in (2, 30):
        data = data_for(H, m=m, n=n)
        held, expected = function(**data), tc.compile(H)(**data)
        assert held.nbytes <= expected.nbytes
        np.testing.assert_allclose(held.todense(), expected, rtol=1e-9, atol=1e-11)


def test_jacobians_of_few_items() -> None:
    J = tc.jacobian(X.T @ tc.tanh(X @ W), W)
    data = data_for(J)
    held, expected = tc.compile(J, structured=True)(**data), tc.compile(J)(**data)
    assert held.nbytes < 0.2 * expected.nbytes
    np.testing.assert_allclose(held.todense(), expected, rtol=1e-9, atol=1e-11)


def test_newton_on_softmax_regression() -> None:
    f = CASES["softmax regression"][0]
    rng = np.random.default_rng(3)
    labels = np.eye(3)[rng.integers(0, 3, 12)]
    data = {"X": rng.normal(size=(12, 30)), "Y": labels}
    found = tc.newton(f, {"W": np.zeros((30, 3))}, data=data)
    assert found.success
    gradient = tc.grad(f, W)(**data, W=found.x["W"])
    np.testing.assert_allclose(gradient, 0, atol=1e-6)


def test_terms_are_joined_whose_factors_stand_more_often_in_one() -> None:
    """A power of a number is that number as a factor several times: not all terms have all."""
    u = tc.var("u", 2)
    share = u / (1 + u * u)
    f = tc.sum(share) * tc.sum(share * share) * tc.sum(u * share) ** 3 * share * share
    at = np.array([-0.13, 0.065])
    for modes in (("forward", "reverse"), ("reverse", "reverse"), ("reverse", "cross-country")):
        e = tc.jacobian(tc.jacobian(f, u, mode=modes[0]), u, mode=modes[1])
        expected = tc.compile(e, backend="functional")(u=at)
        held = tc.compile(e, structured=True)(u=at)
        np.testing.assert_allclose(held.todense(), expected, rtol=1e-12, atol=1e-18)
