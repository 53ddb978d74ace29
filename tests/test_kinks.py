"""The table of kinks: values and derivatives where a function has none, in every mode and spelling.

Each row is one promise; all its spellings must keep it. The conventions: sign(0) = abs'(0) =
norm'(0) = 0; relu'(0) = 0; ties of max, min, maximum and minimum split evenly; d/db of 0**b is 0 for
b > 0; `where` differentiates only the branch taken, at every order.
"""

# ruff: noqa: E501 (a row of a table is one line)

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tcalc as tc

MODES = ("forward", "reverse", "cross-country", "auto")
Build = Callable[[Any], Any]


@dataclass(frozen=True)
class Kink:
    """`derivatives[k]` is the derivative of order k at `at`, of every spelling."""

    name: str
    at: Any
    derivatives: tuple[Any, ...]
    spellings: tuple[Build, ...]


L2 = np.log(2)
TABLE = [
    Kink("abs at 0", 0.0, (0, 0, 0), (
        lambda x: tc.abs(x),
        lambda x: abs(x),
        lambda x: np.abs(x),
        lambda x: tc.sqrt(x * x),
        lambda x: tc.sqrt(x**2),
        lambda x: x * tc.sign(x),
        lambda x: tc.norm(x * tc.ones(1)),
        lambda x: tc.norm(x * tc.ones(1), 1),
        lambda x: tc.norm(x * tc.ones(1), np.inf),
        lambda x: tc.maximum(x, -x),
        lambda x: tc.max(tc.const([1.0, -1]) * x),
        lambda x: tc.hypot(x, 0 * x),
    )),
    Kink("sign at 0", 0.0, (0, 0, 0), (lambda x: tc.sign(x), lambda x: np.sign(x))),
    Kink("relu at 0", 0.0, (0, 0, 0), (
        lambda x: tc.relu(x),
        lambda x: tc.where(x > 0, x, 0),
        lambda x: tc.where(x > 0, x, 0 * x),
        lambda x: x * (x > 0),
    )),
    Kink("maximum at a tie", 0.0, (0, 0.5, 0), (
        lambda x: tc.maximum(x, 0),
        lambda x: np.maximum(0, x),
        lambda x: tc.max(tc.const([1.0, 0]) * x),
        lambda x: tc.clip(x, 0, None),
        lambda x: -tc.minimum(-x, 0),
        lambda x: -tc.min(tc.const([-1.0, 0]) * x),
        lambda x: (x + tc.abs(x)) / 2,
    )),
    Kink("minimum at a tie", 0.0, (0, 0.5, 0), (
        lambda x: tc.minimum(x, 0),
        lambda x: tc.clip(x, None, 0),
        lambda x: tc.min(tc.const([1.0, 0]) * x),
        lambda x: -tc.maximum(-x, 0),
    )),
    Kink("clip at its bound", 1.0, (1, 0.5, 0), (
        lambda x: tc.clip(x, -1, 1),
        lambda x: np.clip(x, -1, 1),
        lambda x: tc.minimum(tc.maximum(x, -1), 1),
    )),
    Kink("max of equal entries", [2.0, 2.0, 1.0], (2, [0.5, 0.5, 0], np.zeros((3, 3))), (
        lambda x: tc.max(x), lambda x: x.max(), lambda x: np.max(x), lambda x: -tc.min(-x),
        lambda x: tc.norm(x, np.inf),
    )),
    Kink("min of equal entries", [1.0, 1.0, 2.0], (1, [0.5, 0.5, 0], np.zeros((3, 3))), (
        lambda x: tc.min(x), lambda x: np.min(x), lambda x: -tc.max(-x),
    )),
    Kink("norm at 0", [0.0, 0.0], (0, [0, 0], np.zeros((2, 2))), (
        lambda x: tc.norm(x), lambda x: np.linalg.norm(x), lambda x: tc.sqrt(tc.sum(x * x)),
        lambda x: (x @ x) ** 0.5, lambda x: tc.sum(x**2) ** 0.5,
    )),
    Kink("norm of order 3 at 0", [0.0, 0.0], (0, [0, 0], np.zeros((2, 2))), (
        lambda x: tc.norm(x, 3), lambda x: np.linalg.norm(x, 3.0), lambda x: tc.norm(x[None, :], 3, axis=1).sum(),
    )),
    Kink("norm squared at 0", [0.0, 0.0], (0, [0, 0], 2 * np.eye(2)), (
        lambda x: tc.norm(x) ** 2, lambda x: tc.norm(x) * tc.norm(x), lambda x: tc.sum(x * x),
        lambda x: tc.sum(tc.abs(x) ** 2), lambda x: tc.sum(tc.abs(x) * tc.abs(x)),
    )),
    Kink("zero to the power b", 2.0, (0, 0, 0), (
        lambda b: tc.power(0, b), lambda b: 0.0**b, lambda b: tc.power(tc.const([0.0]), b)[None, :].sum(),
    )),
    Kink("power with the exponent 0", [2.0, 0.0], (
        1, [0, L2], [[0, 0.5], [0.5, L2**2]],
        [[[0, -0.25], [-0.25, L2]], [[-0.25, L2], [L2, L2**3]]],
    ), (
        lambda v: v[0] ** v[1], lambda v: np.power(v[0], v[1]), lambda v: tc.exp(v[1] * tc.log(v[0])),
        lambda v: tc.power(v @ tc.const([1.0, 0]), v @ tc.const([0.0, 1])),
    )),
    Kink("power with the exponent 1", [2.0, 1.0], (
        2, [1, 2 * L2], [[0, 1 + L2], [1 + L2, 2 * L2**2]],
        [[[0, 0.5], [0.5, 2 * L2 + L2**2]], [[0.5, 2 * L2 + L2**2], [2 * L2 + L2**2, 2 * L2**3]]],
    ), (lambda v: v[0] ** v[1], lambda v: tc.exp(v[1] * tc.log(v[0])))),
    Kink("x log z with x of 0", [0.0, 2.0], (
        0, [L2, 0], [[0, 0.5], [0.5, 0]], [[[0, 0], [0, -0.25]], [[0, -0.25], [-0.25, 0]]],
    ), (lambda v: tc.xlogy(v[0], v[1]), lambda v: v[0] * tc.log(v[1]))),
    Kink("square at 0", 0.0, (0, 0, 2, 0), (
        lambda x: x**2, lambda x: x * x, lambda x: tc.square(x), lambda x: tc.power(x, 2),
        lambda x: tc.power(x, 2 * tc.ones(())), lambda x: tc.abs(x) ** 2,
    )),
    Kink("cube at 0", 0.0, (0, 0, 0, 6), (
        lambda x: x**3, lambda x: x * x * x, lambda x: tc.prod(x * tc.ones(3)), lambda x: x**2 * x,
    )),
    Kink("product with one zero", [0.0, 2.0, 3.0], (0, [6, 0, 0], [[0, 3, 2], [3, 0, 0], [2, 0, 0]]), (
        lambda x: tc.prod(x), lambda x: np.prod(x), lambda x: tc.prod(x[None, :], axis=1).sum(),
    )),
    Kink("product with two zeros", [0.0, 0.0, 3.0], (0, [0, 0, 0], [[0, 3, 0], [3, 0, 0], [0, 0, 0]]), (
        lambda x: tc.prod(x), lambda x: np.prod(x),
    )),
    Kink("z log z with 0 at 0", [0.0, 1.0], (0, [0, 1], [[0, 0], [0, 1]], np.array([0, -1.0])[:, None, None] * np.eye(2)[:, :, None] * np.eye(2)[:, None, :]), (
        lambda z: tc.sum(tc.where(z > 0, z * tc.log(z), 0)),
        lambda z: tc.sum(tc.where(z > 0, tc.log(z) * z, 0 * z)),
        lambda z: tc.sum(tc.where(z <= 0, 0, z * tc.log(z))),
        lambda z: np.where(z > 0, z * np.log(z), 0.0).sum(),
    )),
    Kink("square root, the other branch taken", -1.0, (0, 0, 0, 0), (
        lambda x: tc.where(x > 0, tc.sqrt(x), 0),
        lambda x: tc.where(x > 0, x**0.5, 0),
        lambda x: tc.where(x > 0, x**1.5, 0),
        lambda x: tc.where(x > 0, tc.log(x) / x, 0),
        lambda x: tc.where(x > 0, 1 / tc.sqrt(x), 0),
    )),
    Kink("division by 0, the other branch taken", 0.0, (1, 0, 0, 0), (
        lambda x: tc.where(tc.not_equal(x, 0), tc.sin(x) / x, 1),
        lambda x: tc.where(x == 0, 1, tc.sin(x) / x),
        lambda x: tc.where(tc.abs(x) < 1e-8, 1, tc.sin(x) * x**-1),
    )),
    Kink("overflow, the other branch taken", 1000.0, (1000, 1, 0, 0), (
        lambda x: tc.where(x > 30, x, tc.log(1 + tc.exp(x))),
        lambda x: tc.where(x > 30, x, tc.log(tc.exp(x) + 1)),
        lambda x: tc.where(x < 30, tc.expm1(x), x),
        lambda x: tc.softplus(x),
        lambda x: tc.log(1 + tc.exp(x)),
    )),
    Kink("floor", 1.5, (1, 0, 0), (lambda x: tc.floor(x), lambda x: np.floor(x), lambda x: x - tc.mod(x, 1))),
    Kink("hypot at 0", [0.0, 0.0], (0, [0, 0], np.zeros((2, 2))), (
        lambda x: tc.hypot(x @ tc.const([1.0, 0]), x @ tc.const([0.0, 1])),
    )),
]  # fmt: skip

ROWS = [
    pytest.param(kink, build, id=f"{kink.name}-{k}")
    for kink in TABLE
    for k, build in enumerate(kink.spellings)
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("kink", "build"), ROWS)
def test_kink(kink: Kink, build: Build, mode: str) -> None:
    at = np.array(kink.at)
    x = tc.var("x", at.shape)
    for order, wanted in enumerate(kink.derivatives):
        found = tc.derivative(build(x), x, order, mode)(x=at)
        np.testing.assert_allclose(found, wanted, rtol=1e-14, atol=1e-14, err_msg=f"order {order}")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("spec", ["a,jy,->jaa", ",a,jy->jaa"])
def test_an_entry_is_the_largest_in_whatever_order_factors_are_multiplied(
    spec: str, mode: str
) -> None:
    """Entries and their maximum, if products of them are rounded apart, share no last digit."""
    u, v, rng = tc.var("u"), tc.var("v", (5, 3)), np.random.default_rng(0)
    factors = [tc.einsum("ky->k", v), v, u] if spec[0] == "a" else [u, tc.einsum("ky->k", v), v]
    entries = tc.einsum(spec, *factors)
    for reduce, extreme in ((tc.max, np.max), (tc.min, np.min)):
        step = tc.compile(tc.jacobian(reduce(entries, axis=0), u, mode=mode))
        for _ in range(20):
            a, b = rng.normal(), rng.normal(size=(5, 3))
            wanted = np.diag(extreme(np.outer(b.sum(1), b.sum(1)) * a, axis=0)) / a
            np.testing.assert_allclose(step(u=a, v=b), wanted, rtol=1e-10, atol=1e-12)


def test_shares_are_what_softmax_tends_to() -> None:
    X = tc.var("X", ("m", "n"))
    at = np.array([[1.0, 3, 3, 2], [0, 0, 0, 0], [5, -np.inf, 4, 5]])
    soft = np.exp(2000 * (np.maximum(at, -1) - at.max(1, keepdims=True)))
    soft /= soft.sum(1, keepdims=True)
    for backend in ("numpy", "c"):
        for dtype in (np.float64, np.float32):
            found = tc.compile(tc.hardmax(X, axis=1), backend=backend)(X=at.astype(dtype))
            np.testing.assert_array_equal(found, soft.astype(dtype))
            assert found.dtype == dtype
    np.testing.assert_array_equal(tc.hardmin(-X.T, axis=0)(X=at), soft.T)
    whole = tc.hardmax(X)(X=at)
    np.testing.assert_array_equal(whole, np.where(at == 5, 0.5, 0))
    assert not tc.jacobian(tc.hardmax(X, axis=1), X)(X=at).any()


def test_shares_are_no_conditions() -> None:
    x, a, b = (tc.var(name, 3) for name in "xab")
    shares, at = tc.hardmax(x), [1.0, 1.0, 0.0]
    np.testing.assert_array_equal(tc.grad(tc.sum(tc.where(shares, a, b)), a)(x=at), [1, 1, 0])
    np.testing.assert_array_equal((shares**2)(x=at), [0.25, 0.25, 0])
    read = tc.parse(str(shares**2), x=3)
    np.testing.assert_array_equal(read(x=at), [0.25, 0.25, 0])
