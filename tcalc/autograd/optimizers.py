"""Gradient descent by its usual step rules, over nests of arrays.

`grad` is a function of the parameters and the number of the iteration; `callback` is called with
the parameters, the number of the iteration and the gradient before each step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .flattening import flatten

Step = Callable[[np.ndarray, int], np.ndarray]


def _descend(
    grad: Callable[[Any, int], Any], x0: Any, callback: Any, num_iters: int, step: Step
) -> Any:
    x, unflatten = flatten(x0)
    for i in range(num_iters):
        found = grad(unflatten(x), i)
        if callback:
            callback(unflatten(x), i, found)
        x = x - step(flatten(found)[0], i)
    return unflatten(x)


def sgd(
    grad: Callable[[Any, int], Any],
    x: Any,
    callback: Any = None,
    num_iters: int = 200,
    step_size: float = 0.1,
    mass: float = 0.9,
) -> Any:
    """Stochastic gradient descent with momentum."""
    velocity: Any = 0.0

    def step(g: np.ndarray, i: int) -> np.ndarray:
        nonlocal velocity
        velocity = mass * velocity - (1 - mass) * g
        moved: np.ndarray = -step_size * velocity
        return moved

    return _descend(grad, x, callback, num_iters, step)


def rmsprop(
    grad: Callable[[Any, int], Any],
    x: Any,
    callback: Any = None,
    num_iters: int = 100,
    step_size: float = 0.1,
    gamma: float = 0.9,
    eps: float = 1e-8,
) -> Any:
    """Steps divided by the root of a running mean of squares (Tieleman and Hinton, 2012)."""
    squares: Any = 1.0

    def step(g: np.ndarray, i: int) -> np.ndarray:
        nonlocal squares
        squares = squares * gamma + g * g * (1 - gamma)
        moved: np.ndarray = step_size * g / (np.sqrt(squares) + eps)
        return moved

    return _descend(grad, x, callback, num_iters, step)


def adam(
    grad: Callable[[Any, int], Any],
    x: Any,
    callback: Any = None,
    num_iters: int = 100,
    step_size: float = 0.001,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
) -> Any:
    """Running means of gradients and squares, corrected for their start (Kingma and Ba, 2015)."""
    mean: Any = 0.0
    squares: Any = 0.0

    def step(g: np.ndarray, i: int) -> np.ndarray:
        nonlocal mean, squares
        mean = (1 - b1) * g + b1 * mean
        squares = (1 - b2) * g**2 + b2 * squares
        first, second = mean / (1 - b1 ** (i + 1)), squares / (1 - b2 ** (i + 1))
        moved: np.ndarray = step_size * first / (np.sqrt(second) + eps)
        return moved

    return _descend(grad, x, callback, num_iters, step)
