"""The paper's three problems at working sizes: all modes and compositions against jax.

Laue, Mitterreiter, Giesen: A simple and efficient tensor calculus (2020), section 5: logistic
regression, (weighted) matrix factorisation, and a ten-layer net of relu layers with softmax
cross-entropy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.nodes import Einsum, postorder
from tests.cases import Reference, factorisation, logistic, weighted_factorisation

MODES = ("forward", "reverse", "cross-country")
PAIRS = [(outer, inner) for outer in MODES for inner in MODES]
LAYERS = 10


def net(xp: Any, x: Any, t: Any, **weights: Any) -> Any:
    """Ten layers of weights, relu between them, softmax cross-entropy with one-hot t."""
    for k in range(LAYERS - 1):
        x = xp.relu(weights[f"W{k}"] @ x)
    logits = weights[f"W{LAYERS - 1}"] @ x
    return xp.log(xp.sum(xp.exp(logits))) - t @ logits


WEIGHTS = {f"W{k}": (5, 5) for k in range(LAYERS)}

#: Function, shapes of its variables, the variable to differentiate by.
PROBLEMS: dict[str, tuple[Callable[..., Any], dict[str, tuple[int, ...]], str]] = {
    "logistic regression": (logistic, {"X": (60, 30), "y": (60,), "w": (30,)}, "w"),
    "matrix factorisation": (factorisation, {"T": (15, 12), "U": (15, 4), "V": (12, 4)}, "U"),
    "weighted factorisation": (
        weighted_factorisation,
        {"T": (15, 12), "W": (15, 12), "U": (15, 4), "V": (12, 4)},
        "U",
    ),
    "ten-layer net, first layer": (net, {"x": (5,), "t": (5,), **WEIGHTS}, "W0"),
    "ten-layer net, last layer": (net, {"x": (5,), "t": (5,), **WEIGHTS}, f"W{LAYERS - 1}"),
    "ten-layer net, input": (net, {"x": (5,), "t": (5,), **WEIGHTS}, "x"),
}


@cache
def data(name: str) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    arrays = {v: rng.normal(size=shape) for v, shape in PROBLEMS[name][1].items()}
    if "t" in arrays:
        arrays["t"] = np.eye(5)[2]
    if "y" in arrays:
        arrays["y"] = np.sign(arrays["y"])
    return arrays


@cache
def by_jax(name: str) -> list[np.ndarray]:
    """Value, gradient and Hessian."""
    function, _, v = PROBLEMS[name]

    def f(x: Any, arrays: dict[str, Any]) -> Any:
        return function(Reference, **{**arrays, v: x})

    compute = jax.jit(
        lambda x, arrays: [f(x, arrays), jax.grad(f)(x, arrays), jax.hessian(f)(x, arrays)]
    )
    return [np.asarray(a) for a in compute(data(name)[v], data(name))]


def assert_close(found: Any, wanted: np.ndarray) -> None:
    assert np.shape(found) == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-11 * np.max(np.abs(wanted)))


@pytest.fixture(scope="module", params=list(PROBLEMS))
def problem(request: pytest.FixtureRequest) -> tuple[str, tc.Expr, tc.Expr]:
    function, shapes, v = PROBLEMS[request.param]
    variables = {name: tc.var(name, shape) for name, shape in shapes.items()}
    return request.param, function(tc, **variables), variables[v]


def test_value_gradient_hessian_in_all_modes(problem: tuple[str, tc.Expr, Any]) -> None:
    name, f, x = problem
    value, gradient, hessian = by_jax(name)
    assert_close(f(data(name)), value)
    for mode in (*MODES, "auto"):
        assert_close(tc.grad(f, x, mode=mode)(data(name)), gradient)
        assert_close(tc.hessian(f, x, mode=mode)(data(name)), hessian)


def test_compositions(problem: tuple[str, tc.Expr, Any]) -> None:
    name, f, x = problem
    for outer, inner in PAIRS:
        found = tc.jacobian(tc.grad(f, x, mode=inner), x, mode=outer)
        assert_close(found(data(name)), by_jax(name)[2])


def test_blocks_of_a_factorisation() -> None:
    """All four blocks at once; H_VU transposed is H_UV, the same node."""
    name = "weighted factorisation"
    shapes = PROBLEMS[name][1]
    T, W, U, V = (tc.var(v, shape) for v, shape in shapes.items())
    f = weighted_factorisation(tc, T, W, U, V)
    ((uu, uv), (vu, vv)) = blocks = tc.hessian(f, (U, V))
    arrays = data(name)

    def g(pair: Any) -> Any:
        return weighted_factorisation(Reference, arrays["T"], arrays["W"], *pair)

    wanted = jax.jit(jax.hessian(g))((arrays["U"], arrays["V"]))
    for row, wanted_row in zip(blocks(arrays), wanted, strict=True):
        for found, block in zip(row, wanted_row, strict=True):
            assert_close(found, np.asarray(block))
    assert tc.transpose(vu, (2, 3, 0, 1)) is tc.transpose(uv, (0, 1, 2, 3))
    assert uu.shape == (15, 4, 15, 4)
    assert vv.shape == (12, 4, 12, 4)


def test_the_net_shares_its_chains() -> None:
    """Gradients of all layers: a number of nodes that is linear in the layers."""
    variables = {
        name: tc.var(name, shape) for name, shape in PROBLEMS["ten-layer net, input"][1].items()
    }
    f = net(tc, **variables)
    gradients = tc.grad(f, tuple(variables[w] for w in WEIGHTS))
    together = len(postorder(gradients))
    one_by_one = sum(len(postorder([g])) for g in gradients)
    assert together < one_by_one / 3
    assert all(len(n.args) <= 4 for n in postorder(gradients) if isinstance(n, Einsum))
