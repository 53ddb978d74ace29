"""A differential equation by Runge and Kutta's fourth-order steps: the `ode` eval of GradBench.

y_0' = x_0 and y_i' = x_i y_(i-1), y = 0 at the start, s steps up to t = 2; f is the last entry of
y. Rates x_i near (i + 1) / 2 keep the entries of y near one; an entry is zero where s steps do not
reach it, so there are at least n / 4 of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..namespaces import scan
from ..problem import Array, Case, Claim, Data, Form, Problem, Sizes
from ..suite import Eval

TEXT = "y_n(2) of y_0' = x_0, y_i' = x_i y_(i-1), by s steps of Runge and Kutta"


def objective(xp: Any, data: Any) -> Any:
    x, one = data["x"], data["one"]

    def slope(y: Any) -> Any:
        return x * xp.concatenate([one, y[:-1]])

    def step(y: Any, h: Any) -> Any:
        first = slope(y)
        second = slope(y + h / 2 * first)
        third = slope(y + h / 2 * second)
        fourth = slope(y + h * third)
        return y + h / 6 * (first + 2 * second + 2 * third + fourth)

    return scan(xp, step, 0 * x, data["h"])[-1]


def expression(sizes: Sizes) -> Any:
    import tcalc as tc

    x, h = tc.var("x", "n"), tc.var("h", "s")

    def slope(y: Any) -> Any:
        return x * tc.concatenate([tc.ones(1), y[:-1]])

    def step(y: Any, t: Any) -> Any:
        first = slope(y)
        second = slope(y + h[t] / 2 * first)
        third = slope(y + h[t] / 2 * second)
        fourth = slope(y + h[t] * third)
        return y + h[t] / 6 * (first + 2 * second + 2 * third + fourth)

    return tc.fold(step, tc.zeros("n"), "s")[-1]


def case(n: int, s: int) -> Case:
    def load(rng: np.random.Generator) -> dict[str, Array]:
        x = (np.arange(n) + 1) / 2 * rng.uniform(0.95, 1.05, n)
        return {"x": x, "h": np.full(s, 2 / s), "one": np.ones(1)}

    return Case(f"n={n}, {s} steps", {"n": n, "s": s}, load, ("value", "gradient", "both"))


def of_size(n: int) -> Case:
    return case(n, max(n // 4 + 1, 10))


def slope(x: Array, y: Array) -> Array:
    found = x.copy()
    found[1:] *= y[:-1]
    return found


def stages(x: Array, y: Array, h: float) -> tuple[list[Array], list[Array]]:
    """Where the four slopes of a step are taken, and the slopes."""
    places, slopes = [y], [slope(x, y)]
    for part in (h / 2, h / 2, h):
        places.append(y + part * slopes[-1])
        slopes.append(slope(x, places[-1]))
    return places, slopes


def states(data: Data) -> Array:
    """y before every step, and after the last one."""
    x, steps = data["x"], data["h"]
    found = np.zeros((len(steps) + 1, len(x)))
    for t, h in enumerate(steps):
        _, (first, second, third, fourth) = stages(x, found[t], h)
        found[t + 1] = found[t] + h / 6 * (first + 2 * (second + third) + fourth)
    return found


def value(data: Data) -> Any:
    return states(data)[-1, -1]


def both(data: Data) -> tuple[Any, Array]:
    """Back through the steps; slopes are products, so the adjoint of y is x bar shifted by one."""
    x, steps, found = data["x"], data["h"], states(data)
    total, bar = np.zeros_like(x), np.zeros_like(x)
    bar[-1] = 1
    for t in range(len(steps) - 1, -1, -1):
        h = steps[t]
        places, _ = stages(x, found[t], h)
        into = np.zeros_like(x)
        after = bar.copy()
        for place, weight, ahead in zip(
            places[::-1], (h / 6, h / 3, h / 3, h / 6), (0.0, h, h / 2, h / 2), strict=True
        ):
            inner = weight * bar + ahead * into
            total[0] += inner[0]
            total[1:] += inner[1:] * place[:-1]
            into = np.zeros_like(x)
            into[:-1] = (inner * x)[1:]
            after += into
        bar = after
    return found[-1, -1], total


def operations(times: float) -> Any:
    return lambda s: times * s["n"] * s["s"]


PROBLEM = Problem(
    name="runge-kutta",
    wrt="x",
    text=TEXT,
    objective=objective,
    expression=expression,
    cases={
        "tiny": (case(6, 3),),
        "small": (case(100, 30),),
        "paper": (case(300, 100), case(1000, 300)),
    },
    of_size=of_size,
    hand={
        "value": {"": Form(value, operations(24))},
        "gradient": {"": Form(lambda data: both(data)[1], operations(60))},
        "both": {"": Form(both, operations(60))},
    },
    suite=Eval(
        "ode",
        lambda data: {"x": data["x"].tolist(), "s": len(data["h"])},
        {"value": ("primal", lambda found, data: found[-1])},
    ),
    claims=(
        Claim(("value", "tcalc c"), ("value", "jax"), 1.0),
        Claim(("gradient", "tcalc c"), ("gradient", "jax"), 1.0),
        Claim(("value", "tcalc c"), ("value", "gradbench"), 1.5),
    ),
)
