"""Poisson regression of many items at once, each with p weights of its own and m samples.

f(W) = sum_im exp(eta_im) - y_im eta_im + c |W|^2 / 2, where item i has a design of its own,
eta_i = X_i w_i, or all share one, eta = W X'. The Hessian is one p x p block for every item.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..problem import USUAL, AnyClaim, Array, Case, Claim, Data, Form, Memory, Problem, Sizes

OWN_TEXT = "sum_im exp(x_im' w_i) - y_im x_im' w_i + c/2 sum_ip w_ip^2"
SHARED_TEXT = "sum_im exp(x_m' w_i) - y_im x_m' w_i + c/2 sum_ip w_ip^2"
SAMPLES, FEATURES = 200, 5
CHUNK = 64  # items whose designs stay in the cache


def poisson(xp: Any, data: Any, eta: Any) -> Any:
    return xp.sum(xp.exp(eta) - data["Y"] * eta) + data["c"] / 2 * xp.sum(data["W"] ** 2)


def own_objective(xp: Any, data: Any) -> Any:
    return poisson(xp, data, xp.einsum("imp,ip->im", data["X"], data["W"]))


def shared_objective(xp: Any, data: Any) -> Any:
    return poisson(xp, data, data["W"] @ data["X"].T)


def own_expression(sizes: Sizes) -> Any:
    import tcalc as tc

    X, W = tc.var("X", ("n", "m", "p")), tc.var("W", ("n", "p"))
    arrays = {"W": W, "Y": tc.var("Y", ("n", "m")), "c": tc.var("c")}
    return poisson(tc, arrays, tc.einsum("imp,ip->im", X, W))


def shared_expression(sizes: Sizes) -> Any:
    import tcalc as tc

    X, W = tc.var("X", ("m", "p")), tc.var("W", ("n", "p"))
    arrays = {"W": W, "Y": tc.var("Y", ("n", "m")), "c": tc.var("c")}
    return poisson(tc, arrays, W @ X.T)


def case(n: int, m: int, p: int, own: bool) -> Case:
    """Without the dense Hessian where jax would hold n p tangents of eta in > 2 GiB."""

    def load(rng: np.random.Generator) -> dict[str, Array]:
        X = rng.standard_normal((n, m, p) if own else (m, p))
        X[..., 0] = 1.0
        W = 0.3 * rng.standard_normal((n, p))
        Y = rng.poisson(1.0, (n, m)).astype(float)
        return {"X": X, "W": W, "Y": Y, "c": np.array(0.1)}

    held = tuple([q for q in USUAL if q != "hessian" or 8 * n * p * n * m < 2**31])
    return Case(f"n={n}, m={m}, p={p}", {"n": n, "m": m, "p": p}, load, held)


def own_of_size(n: int) -> Case:
    return case(n, SAMPLES, FEATURES, own=True)


def shared_of_size(n: int) -> Case:
    return case(n, SAMPLES, FEATURES, own=False)


def own_eta(data: Data) -> Array:
    return (data["X"] @ data["W"][:, :, None])[:, :, 0]


def shared_eta(data: Data) -> Array:
    return data["W"] @ data["X"].T


def value(data: Data, eta: Array) -> Any:
    likelihood = np.exp(eta).sum() - np.vdot(data["Y"], eta)
    return likelihood + data["c"] / 2 * np.vdot(data["W"], data["W"])


def excess(data: Data, eta: Array) -> Array:
    rate = np.exp(eta, out=eta)
    rate -= data["Y"]
    return rate


def own_value(data: Data) -> Any:
    return value(data, own_eta(data))


def shared_value(data: Data) -> Any:
    return value(data, shared_eta(data))


def own_gradient(data: Data) -> Array:
    found = (excess(data, own_eta(data))[:, None, :] @ data["X"])[:, 0]
    return found + data["c"] * data["W"]


def shared_gradient(data: Data) -> Array:
    return excess(data, shared_eta(data)) @ data["X"] + data["c"] * data["W"]


def with_ridge(blocks: Array, data: Data) -> Array:
    np.einsum("ijj->ij", blocks)[:] += data["c"]
    return blocks


def own_core(data: Data) -> Array:
    """As one batched product."""
    eta = own_eta(data)
    weighted = np.exp(eta, out=eta)[:, :, None] * data["X"]
    return with_ridge(weighted.swapaxes(1, 2) @ data["X"], data)


def own_core_chunked(data: Data) -> Array:
    """A few items at a time, so that every design is read from memory once."""
    X, W = data["X"], data["W"]
    n, _, p = X.shape
    blocks = np.empty((n, p, p))
    for start in range(0, n, CHUNK):
        items = slice(start, start + CHUNK)
        rate = np.exp(X[items] @ W[items, :, None])
        np.matmul((rate * X[items]).swapaxes(1, 2), X[items], out=blocks[items])
    return with_ridge(blocks, data)


def shared_core(data: Data) -> Array:
    """One matrix product of the rates with all pairs of features."""
    X = data["X"]
    p = X.shape[1]
    eta = shared_eta(data)
    pairs = (X[:, :, None] * X[:, None, :]).reshape(-1, p * p)
    return with_ridge((np.exp(eta, out=eta) @ pairs).reshape(-1, p, p), data)


def dense(blocks: Array) -> Array:
    n, p, _ = blocks.shape
    found = np.zeros((n, p, n, p))
    each = np.arange(n)
    found[each, :, each, :] = blocks
    return found


def product(core: Array, data: Data, v: Array) -> Array:
    return (core @ v[:, :, None])[:, :, 0]


def jax_newton(shared: bool) -> Callable[[Any, Any], Any]:
    """Hessian and solution of one item, mapped over the items."""

    def call(arrays: Any, rhs: Any) -> Any:
        import jax
        import jax.numpy as jnp

        def item(w: Any, X: Any, y: Any) -> Any:
            eta = X @ w
            return jnp.sum(jnp.exp(eta) - y * eta) + arrays["c"] / 2 * (w @ w)

        def step(w: Any, X: Any, y: Any, r: Any) -> Any:
            return jnp.linalg.solve(jax.hessian(item)(w, X, y), r)

        mapped = jax.vmap(step, in_axes=(0, None if shared else 0, 0, 0))
        return mapped(arrays["W"], arrays["X"], arrays["Y"], rhs)

    return call


def eta_flops(s: Sizes) -> float:
    return 2.0 * s["n"] * s["m"] * s["p"]


def own_core_flops(s: Sizes) -> float:
    return eta_flops(s) * (1 + (s["p"] + 1) / 2)


def shared_core_flops(s: Sizes) -> float:
    return eta_flops(s) * (1 + s["p"])


def forms(
    value: Callable[[Data], Any],
    gradient: Callable[[Data], Array],
    cores: dict[str, Callable[[Data], Array]],
    flops: Callable[[Sizes], float],
) -> dict[str, dict[str, Form]]:
    def solve(core: Callable[[Data], Array]) -> Callable[..., Array]:
        return lambda data, rhs: np.linalg.solve(core(data), rhs[:, :, None])[:, :, 0]

    def solve_flops(s: Sizes) -> float:
        return flops(s) + s["n"] * (2 / 3 * s["p"] ** 3 + 2.0 * s["p"] ** 2)

    first = next(iter(cores.values()))
    return {
        "value": {"": Form(value, eta_flops)},
        "gradient": {"": Form(gradient, lambda s: 2 * eta_flops(s))},
        "hessian": {"": Form(lambda data: dense(first(data)), flops)},
        "core": {name: Form(core, flops) for name, core in cores.items()},
        "newton": {name: Form(solve(core), solve_flops) for name, core in cores.items()},
    }


def claims(best: str, peak: float) -> tuple[AnyClaim, ...]:
    """`best` is the form by hand; `peak` the bytes an item that a step may take."""
    return (
        Claim(("gradient", "tcalc"), ("gradient", "hand"), 1.25),
        Claim(("core", "tcalc"), ("core", best), 1.5),
        Claim(("core", "tcalc"), ("core", "asdex"), 1.0, overhead=0.0, least=1000),
        Claim(("newton", "tcalc"), ("newton", best), 1.5),
        Claim(("newton", "tcalc"), ("newton", "jax vmap"), 1 / 3, overhead=0.0, least=10_000),
        Memory(("core", "tcalc"), 8 * (FEATURES**2 + 1), "held", per="n", least=1000),
        Memory(("newton", "tcalc"), peak, "traced", per="n", least=1000),
    )


OWN = Problem(
    name="population-glm",
    wrt="W",
    text=OWN_TEXT,
    objective=own_objective,
    expression=own_expression,
    cases={
        "tiny": (case(3, 5, 2, own=True),),
        "small": (own_of_size(100), own_of_size(1000)),
        "paper": tuple(map(own_of_size, (100, 1000, 10_000, 100_000))),
    },
    of_size=own_of_size,
    hand=forms(
        own_value,
        own_gradient,
        {"": own_core, "chunked": own_core_chunked},
        own_core_flops,
    ),
    product=product,
    batched={"newton": {"vmap": jax_newton(shared=False)}},
    sparse=True,
    claims=claims("hand chunked", 8.0 * SAMPLES * FEATURES),
)

SHARED = Problem(
    name="population-glm-shared",
    wrt="W",
    text=SHARED_TEXT,
    objective=shared_objective,
    expression=shared_expression,
    cases={
        "tiny": (case(3, 5, 2, own=False),),
        "small": (shared_of_size(100), shared_of_size(1000)),
        "paper": tuple(map(shared_of_size, (100, 1000, 10_000, 100_000))),
    },
    of_size=shared_of_size,
    hand=forms(shared_value, shared_gradient, {"": shared_core}, shared_core_flops),
    product=product,
    batched={"newton": {"vmap": jax_newton(shared=True)}},
    sparse=True,
    claims=claims("hand", 8.0 * SAMPLES * 3),
)
