"""What NumPy's namespaces spell differently: jax.numpy, autograd.numpy, torch and tcalc."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


def solve_lower(xp: Any, factor: Any, b: Any) -> Any:
    """factor^-1 b for a lower triangular factor; b is a matrix."""
    if xp.__name__ == "torch":
        return xp.linalg.solve_triangular(factor, b, upper=False)
    if xp.__name__ == "jax.numpy":
        from jax.scipy.linalg import solve_triangular
    else:
        from autograd.scipy.linalg import solve_triangular
    return solve_triangular(factor, b, lower=True)


def eigh(xp: Any, matrix: Any) -> Any:
    """Of the symmetric part, so that gradients are symmetric; jax takes it by itself."""
    return xp.linalg.eigh((matrix + matrix.T) / 2 if xp.__name__ == "torch" else matrix)


def least(xp: Any, a: Any, axis: int) -> Any:
    return xp.amin(a, axis) if xp.__name__ == "torch" else xp.min(a, axis)


def logsumexp(xp: Any, v: Any) -> Any:
    """Over the last axis: a library's own, or by its largest entries as tcalc is given it.

    In derivatives of the latter what comes by the largest entry cancels, but for rounding errors;
    the libraries' own functions leave it out.
    """
    if xp.__name__ == "torch":
        return xp.logsumexp(v, -1)
    own = {"jax.numpy": "jax.nn", "autograd.numpy": "autograd.scipy.special"}.get(xp.__name__)
    if own:
        return import_module(own).logsumexp(v, -1)
    top = xp.max(v, -1, keepdims=True)
    return top[..., 0] + xp.log(xp.sum(xp.exp(v - top), -1))


def scan(xp: Any, step: Callable[[Any, Any], Any], state: Any, rows: Any) -> Any:
    """The state after ``step(state, row)`` for every row; jax compiles the step only once.

    A tuple of arrays has rows that are tuples.
    """
    if xp.__name__ == "jax.numpy":
        from jax.lax import scan as loop

        return loop(lambda s, row: (step(s, row), None), state, rows)[0]
    for row in zip(*rows, strict=True) if isinstance(rows, tuple) else rows:
        state = step(state, row)
    return state
