"""Functions of matrices and their derivatives where only some operands differ from item to item."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

import tcalc as tc
from tcalc.graph.applications import root_of
from tcalc.graph.nodes import postorder

jax.config.update("jax_enable_x64", True)  # type: ignore[no-untyped-call]

L = tc.linalg
FUNCTIONS: dict[str, Any] = {
    "expm": L.expm,
    "logm": L.logm,
    "sqrtm": L.sqrtm,
    "adj": L.adj,
    "inv": L.inv,
    "pinv": L.pinv,
    "cholesky": lambda a: L.cholesky(a @ a.mT),
    "of eigenvalues": lambda a: L.eigvalsh(a @ a.mT),
    "sum of a function": lambda a: tc.sum(tc.diagonal(L.expm(a @ a.mT / 9), 0, -2, -1), -1),
    "of symmetric": lambda a: L.expm((a + a.mT) / 9),
    "projector": lambda a: L.lq(a)[1].mT @ L.lq(a)[0],
    "singular values": lambda a: L.svd(a)[1],
}
#: The batch axes of the matrix and of the directions, with 1 where items are alike.
BATCHES = [
    ((2,), (1,)),
    ((1,), (2,)),
    ((2,), (2,)),
    ((2, 1), (1, 3)),
    ((1, 3), (2, 3)),
    ((1, 1), (2, 3)),
]


def derivative(name: str, a: tc.Expr, directions: list[tc.Expr]) -> tc.Expr:
    """Along one direction after the other."""
    steps = [tc.var(f"t{k}") for k in range(len(directions))]
    moved = a
    for t, e in zip(steps, directions, strict=True):
        moved = moved + t * e
    found = FUNCTIONS[name](moved)
    for t in steps:
        found = tc.derivative(found, t)
    return found.subs({t: tc.const(0.0) for t in steps})


#: Those with rows for second derivatives too.
FAMILIES = {"expm", "logm", "sqrtm", "adj", "of symmetric", "sum of a function"}


@pytest.mark.parametrize(
    ("name", "order"), [(f, k) for f in FUNCTIONS for k in range(3 if f in FAMILIES else 2)]
)
def test_items_of_a_batch_are_as_alone(name: str, order: int) -> None:
    rng, names = np.random.default_rng(order), ["A", "E0", "E1"][: order + 1]
    alone = tc.compile(derivative(name, *split([tc.var(v, (3, 3)) for v in names])))
    for first, further in BATCHES:
        shape = np.broadcast_shapes(first, further)
        batches = [first, further, first][: order + 1]
        data = {v: rng.normal(size=(*b, 3, 3)) for v, b in zip(names, batches, strict=True)}
        data["A"] += 4 * np.eye(3)
        wide = [tc.broadcast_to(tc.var(v, a.shape), (*shape, 3, 3)) for v, a in data.items()]
        found = tc.compile(derivative(name, *split(wide)))(**data)
        each = {v: np.broadcast_to(a, (*shape, 3, 3)) for v, a in data.items()}
        for k in np.ndindex(shape):
            wanted = alone(**{v: a[k] for v, a in each.items()})
            np.testing.assert_allclose(found[k], wanted, rtol=1e-7, atol=1e-9)


def split(operands: list[tc.Expr]) -> tuple[tc.Expr, list[tc.Expr]]:
    return operands[0], operands[1:]


@pytest.mark.parametrize("mode", ["forward", "reverse", "auto"])
def test_functions_along_multiples_of_their_matrix(mode: str) -> None:
    """Times of chains: expm(t A) by t is A expm(t A), one exponential, in batches too."""
    rates = 0.5 * np.random.default_rng(3).normal(size=(4, 4))
    A, t, x = tc.var("A", (4, 4)), tc.var("t", 3), tc.var("x", 4)
    e = tc.sum((tc.linalg.expm(t[:, None, None] ** 2 * A) @ x) ** 2)
    data = {"A": rates, "t": np.array([0.2, 0.7, 1.3]), "x": np.arange(4.0)}

    def function(t: Any) -> Any:
        return jnp.sum((jax.scipy.linalg.expm(t[:, None, None] ** 2 * rates) @ data["x"]) ** 2)

    for derivative, oracle in ((tc.grad, jax.grad), (tc.hessian, jax.hessian)):
        found = derivative(e, t, mode=mode)
        wanted = oracle(function)(data["t"])
        np.testing.assert_allclose(found(data), wanted, rtol=1e-9, atol=1e-10)
        if mode == "forward":
            assert not any("frechet" in root_of(node) for node in postorder([found]))


@pytest.mark.parametrize(("name", "at"), [("sqrtm", np.sqrt), ("logm", np.log)])
def test_roots_and_logarithms_along_their_matrix(name: str, at: Any) -> None:
    a = np.random.default_rng(4).normal(size=(3, 3))
    a, t = a @ a.T + np.eye(3), tc.var("t")
    e = tc.sum(getattr(tc.linalg, name)(t * tc.const(a)))
    first, second = tc.grad(e, t, mode="forward"), tc.hessian(e, t, mode="forward")
    if name == "sqrtm":
        root = np.sum(np.asarray(scipy.linalg.sqrtm(a)))
        slopes = 0.5 * root / at(0.7), -0.25 * root / 0.7**1.5
    else:
        slopes = 3 / 0.7, -3 / 0.49
    np.testing.assert_allclose([first(t=0.7), second(t=0.7)], slopes, rtol=1e-9)
