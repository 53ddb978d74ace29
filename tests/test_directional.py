"""Products of derivatives with vectors are the full derivative times the vector.

In every mode, for every property of a variable, for directions on the subspace and off it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcalc as tc

MODES = ["auto", "forward", "reverse", "cross-country"]
PROPERTIES: list[dict[str, bool]] = [
    {}, {"symmetric": True}, {"lower": True}, {"upper": True}, {"diagonal": True},
    {"positive_definite": True},
]  # fmt: skip
RNG = np.random.default_rng(5)
B, V, U, W = (RNG.normal(size=(3, 3)) for _ in range(4))
POINT = np.diag([1.5, 2.0, 2.5])
b = tc.var("b", (3, 3))


def functions(flags: dict[str, bool]) -> tuple[tc.Expr, tc.Expr, tc.Expr]:
    """A variable, a scalar and an array that depend on all its entries, on and off the subspace."""
    a = tc.var("a", (3, 3), **flags)
    array = tc.sin(a @ b) * a + b @ a @ a
    return a, tc.sum(array * tc.exp(b)), array


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("flags", PROPERTIES, ids=lambda flags: next(iter(flags), "general"))
def test_products_are_those_of_the_full_derivative(flags: dict[str, bool], mode: str) -> None:
    a, f, array = functions(flags)
    point: dict[str, Any] = {"a": POINT, "b": B}
    v, u = tc.var("v", a.shape), tc.var("u", a.shape)
    jacobian, hessian = tc.jacobian(array, a)(point), tc.hessian(f, a)(point)
    third = tc.derivative(f, a, order=3)(point)
    for product, wanted in [
        (tc.jvp(array, a, v, mode=mode), np.tensordot(jacobian, V)),
        (tc.vjp(array, a, u, mode=mode), np.tensordot(U, jacobian)),
        (tc.hvp(f, a, v, mode=mode), np.tensordot(hessian, V)),
        (tc.vjp(tc.grad(f, a), a, u, mode=mode), np.tensordot(U, hessian)),
        (tc.hvp(tc.sum(tc.grad(f, a) * tc.const(W)), a, v, mode=mode),
         np.einsum("ijklmn,ij,mn->kl", third, W, V)),
    ]:  # fmt: skip
        found = product(point | {"v": V, "u": U})
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("mode", MODES)
def test_several_variables_and_further_axes(mode: str) -> None:
    x, y = tc.var("x", 3), tc.var("y", (2, 3))
    e = tc.tanh(y @ x)
    point = {"x": RNG.normal(size=3), "y": RNG.normal(size=(2, 3))}
    dx, dy = RNG.normal(size=(3, 4)), RNG.normal(size=(2, 3, 4))
    by_x, by_y = tc.jacobian(e, (x, y))(point)
    along = (tc.const(dx), tc.const(dy))
    np.testing.assert_allclose(
        tc.jvp(e, (x, y), along, mode=mode)(point),
        by_x @ dx + np.einsum("ijk,jkl->il", by_y, dy),
    )
    against = RNG.normal(size=(5, 2))
    found = tc.vjp(e, {"one": x, "two": y}, tc.const(against), mode=mode)(point)
    np.testing.assert_allclose(found["one"], against @ by_x)
    np.testing.assert_allclose(found["two"], np.tensordot(against, by_y, 1))


@pytest.mark.parametrize("transform", [tc.jvp, tc.vjp, tc.hvp])
def test_an_unknown_mode_is_refused(transform: Any) -> None:
    x = tc.var("x", "n")
    with pytest.raises(ValueError, match="mode 'sideways'"):
        transform(tc.sum(x * x), x, x if transform is not tc.vjp else 1, mode="sideways")
    with pytest.raises(ValueError, match="mode 'sideways'"):
        transform(np.sum, mode="sideways")(np.ones(3), np.ones(3) if transform != tc.vjp else 1)
