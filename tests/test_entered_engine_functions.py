"""What few programs enter, of functions: stated rules without a derivative, nans, distances."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.autograd.extend import defjvp, defvjp, primitive

x, y = tc.var("x", "n"), tc.var("y", "n")
V = np.array([1.5, -0.6, 2.1])


# --- stated rules ---------------------------------------------------------------------------------


@primitive
def of_parts(parts: Any, factor: Any) -> Any:
    return np.sin(parts[0]) * parts[1] * factor


defvjp(
    of_parts,
    lambda ans, p, f: lambda u: [u * np.cos(p[0]) * p[1] * f, u * np.sin(p[0]) * f],
    lambda ans, p, f: lambda u: u * np.sin(p[0]) * p[1],
)


@pytest.mark.parametrize("kind", [list, tuple])
def test_functions_of_nested_arguments(kind: Any) -> None:
    """A list of expressions reaches the function and its rules as a list."""

    def f(v: Any) -> Any:
        return np.sum(of_parts(kind([v, 2 * v]), v))

    wanted = 4 * V * np.sin(V) + 2 * V**2 * np.cos(V)
    np.testing.assert_allclose(tc.grad(f)(V), wanted)
    second = 4 * np.sin(V) + 8 * V * np.cos(V) - 2 * V**2 * np.sin(V)
    np.testing.assert_allclose(tc.hessian(f)(V), np.diag(second), atol=1e-12)


@primitive
def by_vjp(a: Any, b: Any) -> Any:
    return np.round(a) * b


@primitive
def by_jvp(a: Any, b: Any) -> Any:
    return np.round(a) * b


@primitive
def by_rule(a: Any, b: Any) -> Any:
    return np.round(a) * b


defvjp(by_vjp, None, lambda ans, a, b: lambda u: u * np.round(a))
defjvp(by_jvp, None, lambda u, ans, a, b: u * np.round(a))
defvjp(by_rule, lambda ans, a, b: lambda u: None, lambda ans, a, b: lambda u: u * np.round(a))


@pytest.mark.parametrize("box", [by_vjp, by_jvp, by_rule])
@pytest.mark.parametrize("at", [V, V[:1], V[:0], np.arange(6.0).reshape(2, 3) / 3])
def test_arguments_without_a_derivative_give_zeros(box: Any, at: np.ndarray) -> None:
    direction = np.cos(at)
    pushed = tc.jvp(lambda v: box(v, v) + v * v)(at, direction)
    np.testing.assert_allclose(pushed, (np.round(at) + 2 * at) * direction)
    alone = tc.jvp(lambda v: box(v, at) + v)(at, direction)
    np.testing.assert_allclose(alone, direction)
    if box is by_jvp:
        with pytest.raises(tc.UnsupportedError, match="by_jvp has no derivative by argument 0"):
            tc.grad(lambda v: np.sum(box(v, v)))(at)
        return
    slope = tc.grad(lambda v: np.sum(box(v, v) * v))(at)
    np.testing.assert_allclose(slope, 2 * np.round(at) * at)
    whole = tc.jacobian(lambda v: box(v, v))(at)
    wanted = np.diag(np.round(at).ravel()).reshape(at.shape * 2)
    np.testing.assert_array_equal(whole, wanted)


def test_built_in_functions_as_derivatives() -> None:
    """Of how many operands some built-in functions take nothing is known before a call."""
    larger = tc.elementwise("engine_larger", lambda a, b: (a + b + abs(a - b)) / 2, (max, min))
    assert callable(larger)
    with pytest.raises(TypeError, match="the derivative of engine_one is called with as many"):
        tc.elementwise("engine_one", lambda a, b: a + b, (lambda: 1, lambda a, b: 1))


# --- views ----------------------------------------------------------------------------------------


def test_axes_one_by_one() -> None:
    T = tc.var("T", ("a", "b", "c"))
    data = np.arange(24.0).reshape(2, 3, 4)
    for axes in [(2, 0, 1), (0, 2, 1), (-1, 0, 1), (1, 0, 2)]:
        found = tc.transpose(T, *axes)
        assert found is tc.transpose(T, axes)
        np.testing.assert_array_equal(found(T=data), data.transpose(*axes))
    np.testing.assert_array_equal(tc.transpose(x, 0)(x=V), V)
    with pytest.raises((tc.ShapeError, ValueError)):
        tc.transpose(T, 0, 1)


# --- where a nan comes from -----------------------------------------------------------------------


@pytest.mark.parametrize("f", [tc.arctan2, tc.maximum, tc.power])
def test_a_nan_of_the_other_operand_is_another_place(f: Callable[..., tc.Expr]) -> None:
    """The first nan is at 0, that of log(x) at 1: it is log(y) that made it."""
    given = {"x": np.array([3.0, -1]), "y": np.array([-2.0, 3])}
    with pytest.raises(FloatingPointError) as told:
        tc.compile(f(tc.log(x), tc.log(y)), debug=True)(**given)
    assert str(told.value) == "the first nan is of log(y) at [0], where y = -2.0"
    with pytest.raises(FloatingPointError) as told:
        tc.compile(f(tc.log(y), tc.log(x)), debug=True)(**given)
    assert str(told.value) == "the first nan is of log(y) at [0], where y = -2.0"


# --- squared distances ----------------------------------------------------------------------------

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(4, 3)), RNG.normal(size=(5, 3))
W = np.array([1.0, 2.0, 0.5])


@pytest.mark.parametrize("f", [
    lambda a, b, w: ((a - b) ** 2).sum(2), lambda a, b, w: ((a * b - w) ** 2).sum(2),
    lambda a, b, w: ((a - b + a * b) ** 2).sum(2), lambda a, b, w: ((a - b) ** 2).sum(0),
    lambda a, b, w: ((a - b) ** 2).sum(1), lambda a, b, w: ((a + b * w + 1) ** 2).sum(2),
    lambda a, b, w: ((a * w - w) ** 2 + (a - b) ** 2).sum(2),
])  # fmt: skip
@pytest.mark.parametrize("rows", [(4, 5, 3), (1, 5, 3), (4, 1, 1), (4, 4, 4), (4, 3, 0)])
def test_sums_of_squares_that_may_be_distances(f: Any, rows: tuple[int, int, int]) -> None:
    n, m, k = rows
    a, b, w = RNG.normal(size=(n, k)), RNG.normal(size=(m, k)), RNG.normal(size=k)
    P, Q = tc.var("P", ("n", "k")), tc.var("Q", ("m", "k"))
    e = f(P[:, None, :], Q, tc.var("w", "k"))
    given = {name: v for name, v in {"P": a, "Q": b, "w": w}.items() if name in e.variables}
    wanted = f(a[:, None, :], b, w)
    np.testing.assert_allclose(e(**given), wanted, rtol=1e-10, atol=1e-12)
    slope = tc.grad(tc.sum(tc.sin(e)), P)(**given)
    found = np.zeros((n, k))
    for place in np.ndindex(n, k):
        step = np.zeros((n, k), complex)
        step[place] = 1e-30j
        found[place] = np.sin(f((a + step)[:, None, :], b, w)).sum().imag / 1e-30
    np.testing.assert_allclose(slope, found, rtol=1e-8, atol=1e-10)
