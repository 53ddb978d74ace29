"""Loops whose states stay symmetric matrices, as in filters: values and derivatives by jax."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.nodes import Expr, postorder
from tcalc.graph.products import symmetries

N, K, M = 5, 3, 2
SHAPES: dict[str, tuple[str, ...]] = {
    "F": ("k", "k"), "H": ("m", "k"), "q": ("k",), "r": ("m",), "Y": ("n", "m"),
    "start": ("k", "k"), "A": ("k", "k"), "noise": ("n", "k", "k"),
}  # fmt: skip
VARIABLES = {
    name: tc.var(name, shape, symmetric=name in ("start", "noise"))
    for name, shape in SHAPES.items()
}

#: Where a filter begins: a number, what is declared, what is seen, and a matrix of any kind.
STARTS: dict[str, Callable[[Any, Any], Any]] = {
    "identity": lambda f, v: f.eye(),
    "declared": lambda f, v: v["start"],
    "product": lambda f, v: v["A"] @ v["A"].T,
    "any": lambda f, v: v["A"],
}
BY = {"identity": "F", "declared": "start", "product": "A", "any": "A"}
#: The covariance after a measurement: by the gain, and in Joseph's form.
UPDATES: dict[str, Callable[[Any, Any, Any, Any, Any, Any], Any]] = {
    "gain": lambda f, P, G, S, H, R: P - G @ S @ G.T,
    "joseph": lambda f, P, G, S, H, R: (f.eye() - G @ H) @ P @ (f.eye() - G @ H).T + G @ R @ G.T,
}


def filtered(f: Any, v: Any, start: str, update: str, noise: bool) -> Any:
    """Minus twice a filter's log-likelihood, up to a constant."""
    Q, R = f.diag(f.exp(v["q"])), f.diag(f.exp(v["r"]))

    def step(state: Any, t: Any) -> Any:
        m, P, total = state
        m, P = v["F"] @ m, v["F"] @ P @ v["F"].T + (v["noise"][t] if noise else Q)
        S, e = v["H"] @ P @ v["H"].T + R, v["Y"][t] - v["H"] @ m
        G = P @ v["H"].T @ f.inv(S)
        total = total + f.logdet(S) + e @ f.inv(S) @ e
        return m + G @ e, UPDATES[update](f, P, G, S, v["H"], R), total

    return f.loop(step, (f.zeros(), STARTS[start](f, v), 0.0))[2]


def by_hand(step: Callable[[Any, Any], Any], state: Any) -> Any:
    for t in range(N):
        state = step(state, t)
    return state


TCALC = SimpleNamespace(
    exp=tc.exp, diag=tc.diag, inv=tc.linalg.inv, logdet=lambda S: tc.linalg.slogdet(S)[1],
    eye=lambda: tc.eye("k"), zeros=lambda: tc.zeros("k"),
    loop=lambda step, state: tc.fold(step, state, "n"),
)  # fmt: skip
JAX = SimpleNamespace(
    exp=jnp.exp, diag=jnp.diag, inv=jnp.linalg.inv, logdet=lambda S: jnp.linalg.slogdet(S)[1],
    eye=lambda: jnp.eye(K), zeros=lambda: jnp.zeros(K), loop=by_hand,
)  # fmt: skip


def data() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    sizes = {"k": K, "m": M, "n": N}
    found = {name: rng.normal(size=[sizes[n] for n in shape]) / 2 for name, shape in SHAPES.items()}
    for name in ("start", "noise"):
        found[name] = found[name] @ np.swapaxes(found[name], -1, -2) + np.eye(K)
    return found


def projected(a: np.ndarray, pairs: int) -> np.ndarray:
    for axis in range(0, 2 * pairs, 2):
        a = (a + np.swapaxes(a, axis, axis + 1)) / 2
    return a


CASES = list(product(STARTS, UPDATES, (False, True)))


@pytest.mark.parametrize(("start", "update", "noise"), CASES[::3])  # of all starts
def test_filters_have_the_derivatives_of_jax(start: str, update: str, noise: bool) -> None:
    arrays, name = data(), BY[start]
    e = filtered(TCALC, VARIABLES, start, update, noise)

    def value(x: Any) -> Any:
        return filtered(JAX, arrays | {name: x}, start, update, noise)

    right = [value(arrays[name]), jax.grad(value)(arrays[name]), jax.hessian(value)(arrays[name])]
    if name == "start":
        right = [projected(np.asarray(a), order) for order, a in enumerate(right)]
    given = {v: arrays[v] for v in e.variables}
    for mode, backend in (("forward", "numpy"), ("reverse", "c"), ("reverse", "numpy")):
        orders = [e, *[tc.derivative(e, name, order, mode) for order in (1, 2)]]
        for found, expected in zip(
            tc.compile(orders, backend=backend)(**given), right, strict=True
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(("start", "update", "noise"), CASES)
def test_states_are_symmetric_where_their_first_value_is(
    start: str, update: str, noise: bool
) -> None:
    v = VARIABLES

    def step(P: Any, t: Any) -> Any:
        P = v["F"] @ P @ v["F"].T + (v["noise"][t] if noise else tc.diag(tc.exp(v["q"])))
        R = tc.diag(tc.exp(v["r"]))
        S = v["H"] @ P @ v["H"].T + R
        return UPDATES[update](TCALC, P, P @ v["H"].T @ tc.linalg.inv(S), S, v["H"], R)

    last = tc.fold(step, STARTS[start](TCALC, v), "n")
    every = tc.fold(step, STARTS[start](TCALC, v), "n", history=True)
    assert (last.T is last) == (start != "any")
    assert ((0, 2, 1) in symmetries(every)) == (start != "any")


def test_one_state_that_is_not_symmetric_takes_others_with_it() -> None:
    A = tc.var("A", ("k", "k"))

    def step(state: Any, t: Any) -> Any:
        P, Q = state
        return P + Q, A @ Q

    P, Q = tc.fold(step, (tc.eye("k"), tc.eye("k")), 3)
    assert P.T is not P
    assert Q.T is not Q
    a = np.arange(4.0).reshape(2, 2)
    np.testing.assert_allclose(P(A=a), np.eye(2) + np.eye(2) + a + a @ a)


def test_the_text_of_a_filter_is_that_of_books_and_is_read_back() -> None:
    F, Q = tc.var("F", ("k", "k")), tc.var("Q", ("k", "k"), symmetric=True)
    e = tc.fold(lambda P, i: F @ P @ F.T + Q - P @ tc.linalg.inv(P + Q) @ P, tc.eye("k"), "n")
    assert "'" not in str(e).replace("F'", "")
    again: Expr = tc.parse(str(e), F=F, Q=Q)
    assert again is e


def test_products_around_a_symmetric_matrix_are_symmetric() -> None:
    S, F = tc.var("S", ("k", "k"), symmetric=True), tc.var("F", ("n", "k"))
    X, y = tc.var("X", ("k", "k")), tc.var("y", "k")
    for e in (
        F @ S @ F.T,
        2 * F @ (S @ F.T),
        F @ tc.linalg.inv(S) @ F.T,
        X.T @ S @ X @ S @ X.T @ S @ X,
        X @ tc.diag(y) @ X.T,
        S @ X @ X.T @ S,
    ):
        assert e.T is e
    for other in (F @ X @ F.T, X @ S @ X, S @ X @ S @ X.T):
        assert other.T is not other
    assert len(postorder([tc.linalg.slogdet(F @ S @ F.T)[1]])) < 8
