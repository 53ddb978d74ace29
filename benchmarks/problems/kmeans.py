"""The k means of points: GradBench's `kmeans` eval.

f is the sum over all points of the squared distance to the nearest centroid, and the direction of
Newton's step its gradient over the diagonal of its Hessian, which has no other entries.

Source: Bottou and Bengio, Convergence properties of the k-means algorithms, 1994.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..namespaces import least
from ..problem import Array, Case, Claim, Data, Form, Problem, Sizes
from ..suite import Eval
from ..transforms import product, spelled

TEXT = "sum_i min_j |P_i - C_j|^2"


def objective(xp: Any, data: Any) -> Any:
    return cost(xp, data["P"], data["C"])


def cost(xp: Any, points: Any, centroids: Any) -> Any:
    apart = points[:, None, :] - centroids[None, :, :]
    return xp.sum(least(xp, xp.sum(apart**2, 2), 1))


def by_gram(data: Any) -> Any:
    """With jax: the squares multiplied out, as the suite's own program has it."""
    import jax.numpy as jnp

    points, centroids = data["P"], data["C"]
    squares = jnp.sum(points**2, 1)[:, None] + jnp.sum(centroids**2, 1)
    return jnp.sum(jnp.min(squares - 2 * points @ centroids.T, 1))


def direction(xp: Any, data: Any) -> Any:
    """By one product of the Hessian, with ones, as it is diagonal."""
    import jax

    def f(centroids: Any) -> Any:
        return cost(xp, data["P"], centroids)

    c = data["C"]
    return jax.grad(f)(c) / product(xp, f, c, xp.ones_like(c))


def variables() -> tuple[Any, Any]:
    import tcalc as tc

    return tc.var("P", ("n", "d")), tc.var("C", ("k", "d"))


def expression(sizes: Sizes) -> Any:
    import tcalc as tc

    return cost(tc, *variables())


def direction_expression(sizes: Sizes) -> Any:
    import tcalc as tc

    points, centroids = variables()
    f = cost(tc, points, centroids)
    return tc.grad(f, centroids) / tc.einsum("jljl->jl", tc.hessian(f, centroids))


def case(k: int, n: int, d: int, quantities: tuple[str, ...]) -> Case:
    """The last points are the centroids, so that every one has its points."""

    def load(rng: np.random.Generator) -> dict[str, Array]:
        points = rng.random((n, d))
        return {"P": points, "C": points[-k:].copy()}

    return Case(f"k={k}, n={n}, d={d}", {"k": k, "n": n, "d": d}, load, quantities)


def distances(data: Data) -> Array:
    points, c = data["P"], data["C"]
    found = points @ (-2 * c.T)
    found += np.einsum("jl,jl->j", c, c)
    found += np.einsum("il,il->i", points, points)[:, None]
    return found


def value(data: Data) -> Any:
    return distances(data).min(1).sum()


def counted(data: Data) -> tuple[Array, Array]:
    """How many points every centroid has, and their sums."""
    k, d = data["C"].shape
    label = distances(data).argmin(1)
    places = (label[:, None] * d + np.arange(d)).ravel()
    sums = np.bincount(places, data["P"].ravel(), k * d).reshape(k, d)
    return np.bincount(label, minlength=k).astype(float), sums


def gradient(data: Data) -> Array:
    count, sums = counted(data)
    return 2 * (count[:, None] * data["C"] - sums)


def step(data: Data) -> Array:
    count, sums = counted(data)
    return data["C"] - sums / count[:, None]


def operations(s: Sizes) -> float:
    return 2.0 * s["k"] * s["n"] * s["d"]


def given(data: Data) -> dict[str, Any]:
    return {"points": data["P"].tolist(), "centroids": data["C"].tolist()}


def problem(
    name: str, text: str, functions: dict[str, str], forms: tuple[Any, Any], **more: Any
) -> Problem:
    """Functions of the suite's program by quantity."""
    quantities = tuple(more["hand"])

    def sized(k: int, n: int, d: int) -> Case:
        return case(k, n, d, quantities)

    return Problem(
        name=name,
        wrt="C",
        text=text,
        objective=forms[0],
        expression=forms[1],
        cases={
            "tiny": (sized(3, 20, 2),),
            "small": (sized(10, 1000, 8),),
            "paper": (sized(10, 1000, 8), sized(100, 10_000, 16), sized(1000, 10_000, 16)),
        },
        of_size=lambda n: sized(max(n // 10, 1), n, 16),
        suite=Eval(
            "kmeans",
            given,
            {q: (function, lambda out, data: np.asarray(out)) for q, function in functions.items()},
        ),
        claims=tuple(
            [
                Claim((quantity, "tcalc c"), (quantity, rival), 1.0)
                for quantity in functions
                for rival in ("jax", "gradbench")
            ]
        ),
        **more,
    )


KMEANS = (
    problem(
        "kmeans",
        TEXT,
        {"value": "cost"},
        (objective, expression),
        hand={
            "value": {"": Form(value, operations)},
            "gradient": {"": Form(gradient, operations)},
            "core": {"": Form(lambda data: 2 * counted(data)[0], operations)},
        },
        product=lambda core, data, v: np.asarray(core)[:, None] * v,
        batched=spelled({"by Gram matrix": by_gram}, "C", ("value", "gradient")),
    ),
    problem(
        "kmeans-direction",
        f"gradient / diagonal of the Hessian of {TEXT}",
        {"value": "dir"},
        (direction, direction_expression),
        hand={"value": {"": Form(step, operations)}},
        without=("autograd", "torch"),
    ),
)
