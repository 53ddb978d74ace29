"""Functions of matrices and their derivatives where only some operands differ from item to item."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcalc as tc

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
