"""Matrices that functions read from outside: identities, diagonals, and transposes of others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.captures import Captures
from tcalc.graph.nodes import Const, Einsum, postorder

RNG = np.random.default_rng(0)
ENTRIES = np.arange(1.0, 9.0)
NAN, INFINITE = [np.where(ENTRIES == 2, x, 0) for x in (np.nan, np.inf)]
Z, S, y = RNG.normal(size=(9, 8)), np.diag(ENTRIES / 4), RNG.normal(size=9)
W = np.asfortranarray(RNG.normal(size=(9, 9)))


def components(xp: Any, v: Any) -> Any:
    """The restricted likelihood of two variances."""
    V = xp.exp(v[0]) * Z @ Z.T + xp.exp(v[1]) * np.eye(9)
    return xp.linalg.slogdet(V)[1] + y @ xp.linalg.solve(V, y)


def ridge(xp: Any, v: Any) -> Any:
    hat = Z @ xp.linalg.solve(Z.T @ Z + xp.exp(v[0]) * S, Z.T)
    return xp.sum((y - hat @ y) ** 2) / (9 - xp.trace(hat)) ** 2 + v[1] ** 2


def turned(xp: Any, v: Any) -> Any:
    return xp.sum(xp.tanh(W * v[0]) @ W.T @ (np.eye(9) * v[1]) @ W[:, ::-1])


MODELS: list[Callable[[Any, Any], Any]] = [components, ridge, turned]


@pytest.mark.parametrize("model", MODELS)
def test_derivatives_are_those_of_jax(model: Callable[[Any, Any], Any]) -> None:
    at = np.array([0.3, -0.2])
    for ours, theirs in ((tc.grad, jax.grad), (tc.hessian, jax.hessian)):
        wanted = jax.jit(theirs(lambda v: model(jnp, v)))(at)
        for made in (ours(lambda v: model(np, v)), tc.compile(ours(lambda v: model(np, v)))):
            for _ in range(2):
                np.testing.assert_allclose(made(at), wanted, rtol=1e-10, atol=1e-12)


def test_what_is_computed_says_so() -> None:
    """No product with an identity, and one inverse of a symmetric matrix."""
    v = tc.var("v", 2)
    with Captures() as captures:
        e = components(tc.numpy, v)
    assert len(captures.arrays) == 2  # Z, and y
    plan = tc.compile(tc.grad(e, v)).plan_for(v=(2,), **{c.name: c.shape for c in captures.arrays})
    assert "cholesky" in str(plan).lower()


@pytest.mark.parametrize(
    ("array", "kind"),
    [
        (np.eye(8), "unit"), (np.eye(9, dtype=np.float32), "unit"), (np.diag(ENTRIES), "diag"),
        (np.diag(ENTRIES - 1), "full"), (np.zeros((8, 8)), "full"), (np.eye(8)[:7], "full"),
        (np.diag(ENTRIES + NAN), "full"), (np.diag(ENTRIES + INFINITE), "full"),
        (np.eye(3), "full"), (np.eye(8) + np.eye(8, k=2), "full"), (np.ones((1, 1)), "full"),
        (np.eye(8, k=1), "full"), (np.eye(8) + np.nan * np.eye(8, k=1), "full"),
        (np.eye(8, dtype=int), "unit"),
    ],
)  # fmt: skip
def test_constants(array: np.ndarray, kind: str) -> None:
    e = tc.const(array)
    leaves = [node for node in postorder([e]) if isinstance(node, Const)]
    assert {"unit": [], "diag": [array.shape[:1]], "full": [array.shape]}[kind] == [
        c.shape for c in leaves
    ]
    assert (kind == "full") == isinstance(e, Const)
    assert kind == "full" or (isinstance(e, Einsum) and len(set(e.out)) == 1)
    np.testing.assert_array_equal(e(), array)


def test_a_transpose_is_that_of_what_was_read() -> None:
    """As long as it lies in the same memory, and has the same entries."""
    at = np.ones(8)
    held = {"one": Z.copy()}

    def f(v: Any) -> Any:
        first = held["one"] @ v
        if "twice" in held:
            held["one"] *= 2
        return np.sum(held["one"].T @ first)

    for key in ("once", "twice"):
        held[key] = held["one"]
        before = held["one"].copy()
        found = tc.grad(f)(at)
        np.testing.assert_allclose(found, before.T @ held["one"] @ at, rtol=1e-12)
    with Captures() as captures:
        one, other, part = (tc.const(a) for a in (Z, Z.T, Z.T[:2]))
        assert (one + other.T) is 2 * one
    assert len(captures.arrays) == 2
    assert part.shape == (2, 9)


def test_a_matrix_that_becomes_another_kind_is_seen() -> None:
    held = {"A": np.eye(8)}
    g = tc.grad(lambda v: np.sum((held["A"] @ v) ** 2))
    for A in (np.eye(8), 2 * np.eye(8), RNG.normal(size=(8, 8)), np.zeros((8, 8)), np.eye(8)):
        held["A"] = A
        np.testing.assert_allclose(g(np.arange(8.0)), 2 * A.T @ A @ np.arange(8.0), atol=1e-14)


@pytest.mark.parametrize("backend", ["numpy", "c", "auto"])
def test_views_of_what_is_read_are_there_in_every_call(backend: str) -> None:
    """`np.cross` reads an array of signs, of which steps take transposes in another shape."""
    at = RNG.normal(size=9)

    def volume(p: Any) -> Any:
        return np.sum(np.cross(p[:3], p[3:6]) * p[6:9])

    rows = at.reshape(3, 3)
    wanted = np.concatenate([np.cross(rows[1], rows[2]), np.cross(rows[2], rows[0]),
                             np.cross(rows[0], rows[1])])  # fmt: skip
    value, gradient, hessian = [
        tc.compile(f, backend=backend)
        for f in (tc.value_and_grad(volume), tc.grad(volume), tc.hessian(volume))
    ]
    for _ in range(3):
        assert value(at)[0] == pytest.approx(np.linalg.det(rows))
        np.testing.assert_allclose(gradient(at), wanted, rtol=1e-12)
        np.testing.assert_allclose(hessian(at) @ at, 2 * wanted, rtol=1e-12)
