"""Chains of elementwise operations and a sum: what a call, a pass and a core are worth.

Nothing is contracted, so that time is that of the functions, of passes over memory, and, for few
entries, of the call. One chain is of logistic curves, of which an exponential is all that takes
time; one of a loss, with a logarithm and a hyperbolic tangent; one of waves, with sines.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit

from ..problem import AnyClaim, Array, Case, Claim, Data, Form, Problem, Sizes

QUANTITIES = ("value", "gradient", "both")


def of_size(n: int) -> Case:
    def load(rng: np.random.Generator) -> dict[str, Array]:
        return {"x": rng.standard_normal(n)}

    return Case(f"n={n}", {"n": n}, load, QUANTITIES)


def logistic(xp: Any, x: Any) -> Any:
    return xp.sum((1 / (1 + xp.exp(-(2 * x + 1))) - 0.5) ** 2 * x + 3 * x)


def logistic_both(data: Data) -> tuple[Any, Array]:
    x = data["x"]
    rise = expit(2 * x + 1)
    off = rise - 0.5
    return (off * off) @ x + 3 * x.sum(), off * off + 4 * off * rise * (1 - rise) * x + 3


def loss(xp: Any, x: Any) -> Any:
    return xp.sum(xp.log(1 + xp.exp(x / (1 + xp.exp(-x)) - xp.tanh(x) ** 2)))


def loss_both(data: Data) -> tuple[Any, Array]:
    x = data["x"]
    sigmoid, tangent = expit(x), np.tanh(x)
    inner = x * sigmoid - tangent * tangent
    slope = sigmoid * (1 + x * (1 - sigmoid)) - 2 * tangent * (1 - tangent * tangent)
    return np.logaddexp(0, inner).sum(), expit(inner) * slope


def waves(xp: Any, x: Any) -> Any:
    return xp.sum(xp.exp(-0.1 * x * x) * xp.sin(3 * x + 0.5 * xp.cos(x)) ** 2)


def waves_both(data: Data) -> tuple[Any, Array]:
    x = data["x"]
    fading, phase = np.exp(-0.1 * x * x), 3 * x + 0.5 * np.cos(x)
    sine = np.sin(phase)
    turning = sine * np.cos(phase) * (6 - np.sin(x))
    return fading @ (sine * sine), fading * (turning - 0.2 * x * sine * sine)


def work(operations: int) -> Callable[[Sizes], float]:
    return lambda sizes: float(operations * sizes["n"])


def claims(ahead: float) -> tuple[AnyClaim, ...]:
    """One pass over x in vectors: far ahead of passes by NumPy, and of one pass by XLA."""
    found = [
        Claim((quantity, "tcalc c"), (quantity, rival), at_most, least=1000)
        for quantity in QUANTITIES
        for rival, at_most in (("hand", 0.25), ("jax", 1.0))
    ]
    return (*found, Claim(("both", "tcalc c"), ("both", "jax"), 1 / ahead, 0.0, least=1000))


def problem(
    name: str,
    text: str,
    chain: Callable[[Any, Any], Any],
    both: Callable[[Data], Any],
    ahead: float,
) -> Problem:
    def expression(sizes: Sizes) -> Any:
        import tcalc as tc

        return chain(tc, tc.var("x", ("n",)))

    return Problem(
        name=name,
        wrt="x",
        text=text,
        objective=lambda xp, data: chain(xp, data["x"]),
        expression=expression,
        cases={
            "tiny": (of_size(5),),
            "small": (of_size(1_000), of_size(1_000_000)),
            "paper": (of_size(1_000), of_size(1_000_000), of_size(10_000_000)),
        },
        of_size=of_size,
        hand={
            "value": {"": Form(lambda data: chain(np, data["x"]), work(10))},
            "gradient": {"": Form(lambda data: both(data)[1], work(18))},
            "both": {"": Form(both, work(20))},
        },
        claims=claims(ahead),
    )


CHAINS = (
    problem(
        "elementwise-chain",
        "sum((1 ./ (1 + exp(-(2*x + 1))) - 0.5).^2 .* x + 3*x)",
        logistic,
        logistic_both,
        3.0,
    ),
    problem(
        "elementwise-chain-loss",
        "sum(log(1 + exp(x ./ (1 + exp(-x)) - tanh(x).^2)))",
        loss,
        loss_both,
        1.0,
    ),
    problem(
        "elementwise-chain-waves",
        "sum(exp(-0.1*x.^2) .* sin(3*x + 0.5*cos(x)).^2)",
        waves,
        waves_both,
        3.0,
    ),
)
