"""Steps of Python's loops that sort, choose, and have stages which are read again and again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcalc as tc


@pytest.mark.parametrize("steps", [7, 24])
@pytest.mark.parametrize("step", [
    lambda p, s: np.tanh(np.sort(p * s) + 0.1),
    lambda p, s: np.tanh((p * s)[np.argsort(s)] + 0.1 * s),
    lambda p, s: np.tanh(p * s + p[np.argmin(s)]),
    lambda p, s: np.tanh(p * s + np.median(s) + 0.1),
])  # fmt: skip
def test_steps_that_sort(step: Callable[..., Any], steps: int) -> None:
    def loss(p: Any) -> Any:
        s = np.linspace(-0.5, 0.6, 3)
        for _ in range(steps):
            s = step(p, s)
        return s.sum()

    at, h = np.array([0.7, -0.4, 0.9]), 1e-6 * np.eye(3)
    wanted = [(loss(at + e) - loss(at - e)) / 2e-6 for e in h]
    value, slope = tc.value_and_grad(loss)(at)
    np.testing.assert_allclose(value, loss(at), rtol=1e-12)
    np.testing.assert_allclose(slope, wanted, atol=1e-8)


def test_choices_behind_a_loop() -> None:
    """What both branches read is read as it is, be it as deep as a loop makes it."""

    def loss(x: Any) -> Any:
        for _ in range(40):
            y = x / (1 + x * x)
            x = np.tanh(y) - 0.3 * y
        return np.where(x.real > y.real, x, y - 0.1 * x).sum()

    at = np.array([0.3, -0.2])
    wanted = [loss(at + 1e-30j * e).imag / 1e-30 for e in np.eye(2)]
    np.testing.assert_allclose(tc.grad(loss)(at), wanted, rtol=1e-9)


def test_stages_of_a_few_steps_are_looked_at_once() -> None:
    """Entries that are taken of what stages of an integrator read again and again."""

    def loss(p: Any) -> Any:
        y, h = np.array([1.0, 0.5, -0.2]), 0.02
        for _ in range(6):
            a = np.sin(p * y) - y * y.sum()
            b = np.sin(p * (y + h / 2 * a)) - (y + h / 2 * a) * (y + h / 2 * a).sum()
            c = np.sin(p * (y + h / 2 * b)) - (y + h / 2 * b) * (y + h / 2 * b).sum()
            d = np.sin(p * (y + h * c)) - (y + h * c) * (y + h * c).sum()
            y = y + h / 6 * (a + 2 * b + 2 * c + d)
        return y[1]

    at = np.array([2.0, 1.5, 0.7])
    wanted = [loss(at + 1e-30j * e).imag / 1e-30 for e in np.eye(3)]
    np.testing.assert_allclose(tc.grad(loss)(at), wanted, rtol=1e-9, atol=1e-15)
