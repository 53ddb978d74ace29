"""Slices, joined and padded arrays, diagonals: values and derivatives against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcalc as tc

RNG = np.random.default_rng(7)
SIZES = {"n": 7, "m": 5, "k": 4}
ARRAYS = {
    "x": RNG.normal(size=7),
    "y": RNG.normal(size=4),
    "A": RNG.normal(size=(5, 7)),
    "S": RNG.normal(size=(7, 7)),
}
SHAPES = {"x": ("n",), "y": ("k",), "A": ("m", "n"), "S": ("n", "n")}

#: Functions of an array that NumPy and tcalc both take, by the array's name.
CASES: list[tuple[str, Callable[[Any], Any]]] = [
    ("x", lambda x: x[1:]),
    ("x", lambda x: x[:-1]),
    ("x", lambda x: x[1:-1]),
    ("x", lambda x: x[::2]),
    ("x", lambda x: x[1::3]),
    ("x", lambda x: x[::-1]),
    ("x", lambda x: x[-3:]),
    ("x", lambda x: x[2:5]),
    ("x", lambda x: x[5:2]),
    ("x", lambda x: x[-2:0:-2]),
    ("x", lambda x: x[:3:-1]),
    ("x", lambda x: x[0]),
    ("x", lambda x: x[-1]),
    ("x", lambda x: x[1:][::2][:-1]),
    ("x", lambda x: x[None, 2:, None]),
    ("x", lambda x: x[[0, 3, 3]][1:]),
    ("x", lambda x: x[1:][np.array([[0, 1], [2, -1]])]),
    ("A", lambda a: a[1:, ::2]),
    ("A", lambda a: a[0]),
    ("A", lambda a: a[-1, 1:]),
    ("A", lambda a: a[..., 0]),
    ("A", lambda a: a[::-1, [0, 2]]),
    ("A", lambda a: a.T[2:4]),
    ("x", lambda x: x[1:] - x[:-1]),
    ("x", lambda x: x[2:] - 2 * x[1:-1] + x[:-2]),
    ("x", lambda x: np.concatenate([x, x[:2], 3 * x])),
    ("x", lambda x: np.concatenate([np.ones(2), x])),
    ("A", lambda a: np.concatenate([a[1:], a], axis=0)),
    ("A", lambda a: np.concatenate([a, a[:, :2]], axis=-1)),
    ("x", lambda x: np.stack([x, x**2, x[::-1]])),
    ("x", lambda x: np.stack([x, x**2], axis=1)),
    ("x", lambda x: np.pad(x, 2)),
    ("x", lambda x: np.pad(x, (1, 3), constant_values=2.5)),
    ("A", lambda a: np.pad(a, ((1, 0), (0, 2)))),
    ("A", lambda a: np.flip(a)),
    ("A", lambda a: np.flip(a, 1)),
    ("x", lambda x: np.roll(x, 2)),
    ("x", lambda x: np.roll(x, -3)),
    ("A", lambda a: np.roll(a, 1, axis=1)),
    ("y", lambda y: np.diag(y, 1)),
    ("y", lambda y: np.diag(y, -2)),
    ("S", lambda s: np.diag(s, 1)),
    ("S", lambda s: np.diagonal(s, -2)),
    ("S", lambda s: np.trace(s, 3)),
    ("S", lambda s: np.diagonal(s[1:, :-1])),
]


def numeric(function: Callable[[Any], Any], x: np.ndarray) -> np.ndarray:
    """The Jacobian of a function that is linear in its argument, but for a constant."""
    origin = np.asarray(function(np.zeros_like(x)))
    units = np.eye(x.size).reshape(x.size, *x.shape)
    columns = [np.asarray(function(unit)) - origin for unit in units]
    return np.stack(columns, -1).reshape(origin.shape + x.shape)


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("k", range(len(CASES)))
def test_values_and_derivatives(k: int, named: bool) -> None:
    name, function = CASES[k]
    value = ARRAYS[name]
    x = tc.var(name, SHAPES[name] if named else value.shape)
    e, wanted = function(x), np.asarray(function(value))
    shape = tuple(n if isinstance(n, int) else None for n in e.shape)
    assert all(n in (None, size) for n, size in zip(shape, wanted.shape, strict=True))
    np.testing.assert_allclose(e(**{name: value}), wanted, rtol=1e-14)
    assert str(e)
    assert tc.to_latex(e)
    inner = tc.sin(function(tc.tanh(x)))
    slope = np.cos(np.asarray(function(np.tanh(value))))
    if not np.allclose(function(2 * value), 2 * wanted, atol=1e-14):
        return
    matrix = numeric(function, value) * (1 - np.tanh(value) ** 2)
    jacobian = slope.reshape(slope.shape + (1,) * value.ndim) * matrix
    for mode in ("forward", "reverse", "cross-country", "auto"):
        found = tc.derivative(inner, x, mode=mode)(**{name: value})
        np.testing.assert_allclose(found, jacobian, rtol=1e-12, atol=1e-14)
    total = tc.sum(function(x) ** 2)
    matrix = numeric(function, value).reshape(wanted.size, value.size)
    hessian = (2 * matrix.T @ matrix).reshape(value.shape + value.shape)
    for mode in ("forward", "reverse", "cross-country", "auto"):
        found = tc.derivative(total, x, 2, mode=mode)(**{name: value})
        np.testing.assert_allclose(found, hessian, rtol=1e-12, atol=1e-13)
    structured = tc.compile(tc.hessian(total, x), structured=True)(**{name: value})
    np.testing.assert_allclose(structured.todense(), hessian, rtol=1e-12, atol=1e-13)
    third = tc.derivative(tc.sum(tc.sin(function(x))), x, 3)(**{name: value})
    assert third.shape == value.shape * 3


x, A = tc.var("x", "n"), tc.var("A", ("m", "n"))
P = tc.var("p", 3)
WRONG: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: P[3], IndexError, "the index 3 is out of range for an axis of extent 3"),
    (lambda: P[-4], tc.ShapeError, "out of range"),
    (lambda: x[5](x=[1.0, 2.0]), IndexError, r"x\[5\]: index 5 is out of range .* extent 2"),
    (lambda: x[-3](x=[1.0, 2.0]), tc.ShapeError, r"x\[-3\]: index -1"),
    (lambda: x[2:5](x=np.ones(4)), tc.ShapeError, r"x\[2:5\]: index 4 .* extent 4"),
    (lambda: x[-3:](x=np.ones(2)), tc.ShapeError, r"x\[-3:\]: index -1"),
    (lambda: x[1:](x=np.ones(0)), tc.ShapeError, r"extent n-1, which is -1 for n = 0"),
    (lambda: x[::0], ValueError, "step cannot be zero"),
    (lambda: x["a":], TypeError, "integer"),
    (lambda: x[1:] + x, tc.ShapeError, "n-1 and n"),
    (lambda: tc.concatenate([]), ValueError, "at least one"),
    (lambda: tc.concatenate([x, A]), tc.ShapeError, "do not fit"),
    (lambda: tc.concatenate([A, A[:, 1:]]), tc.ShapeError, "do not fit"),
    (lambda: tc.concatenate([1.0, 2.0]), tc.ShapeError, "use stack"),
    (lambda: tc.stack([x, x[1:]]), tc.ShapeError, "differ"),
    (lambda: tc.pad(x, -1), ValueError, "widths"),
    (lambda: tc.pad(x, ((1, 2), (3, 4))), ValueError, "widths"),
    (lambda: tc.pad(x, 1, mode="mean"), tc.UnsupportedError, "mean"),
]


@pytest.mark.parametrize("k", range(len(WRONG)))
def test_errors(k: int) -> None:
    call, kind, message = WRONG[k]
    with pytest.raises(kind, match=message):
        call()


def test_nothing_is_left() -> None:
    assert x[1:](x=[1.0]).shape == (0,)
    np.testing.assert_array_equal(tc.grad(tc.sum(x[1:] ** 2), x)(x=[1.0]), [0.0])
    np.testing.assert_array_equal(tc.concatenate([x, x[1:]])(x=[1.0]), [1.0])
