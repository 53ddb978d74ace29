"""Non-negative factors of data with exponential noise, f(U) = sum(log(S) + A ./ S), S = U V.

The update of gradient descent in U is (1 ./ S - A ./ S.^2) V'; the Hessian has one k x k block for
every row of U, V diag(q_i) V' with q = (2 A ./ S - 1) ./ S.^2.

Source: Liu et al. (2010), as in Shaikhha et al., figure 12.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import transforms
from ..problem import Array, Case, Claim, Data, Form, Memory, Problem, Sizes

TEXT = "sum(log(U*V) + A ./ (U*V))"
TILE = 1 << 15  # entries computed at a time


def objective(xp: Any, data: Any) -> Any:
    s = data["U"] @ data["V"]
    return xp.sum(xp.log(s) + data["A"] / s)


def expression(sizes: Sizes) -> Any:
    import tcalc as tc

    return tc.parse(TEXT, U=("n", "k"), V=("k", "m"), A=("n", "m"))


def multiplied(xp: Any, data: Any) -> Any:
    return transforms.product(xp, lambda U: objective(xp, {**data, "U": U}), data["U"], data["P"])


def product_expression(sizes: Sizes) -> Any:
    import tcalc as tc

    return tc.hvp(expression(sizes), "U", tc.var("P", ("n", "k")))


def factors(n: int, m: int, k: int, quantities: tuple[str, ...]) -> Case:
    """Data of more than half of what the factors say, so that the Hessian is positive."""

    def load(rng: np.random.Generator) -> dict[str, Array]:
        U, V = rng.uniform(0.5, 1.5, (n, k)), rng.uniform(0.5, 1.5, (k, m))
        noise = rng.uniform(0.8, 2.0, (n, m))
        return {"U": U, "V": V, "A": (U @ V) * noise, "P": rng.standard_normal((n, k))}

    held = tuple([q for q in quantities if q != "hessian" or 8 * (n * k) * n * m < 2**31])
    return Case(f"n={n}, m={m}, k={k}", {"n": n, "m": m, "k": k}, load, held)


def sizes(*quantities: str) -> Any:
    """`Problem.cases` and `Problem.of_size`, of these quantities."""

    def of_size(n: int) -> Case:
        return factors(n, n, 5, quantities)

    cases = {
        "tiny": (factors(4, 3, 2, quantities),),
        "small": (of_size(100),),
        "paper": (of_size(200), of_size(1_000), factors(10_000, 1_000, 5, quantities)),
    }
    return {"cases": cases, "of_size": of_size}


def tiles(data: Data) -> Iterator[tuple[slice, Array, Array]]:
    """Some rows at a time, which stay in the cache: which, their S, and another such array."""
    U, V = data["U"], data["V"]
    rows = min(len(U), max(1, TILE // V.shape[1]))
    first, second = np.empty((rows, V.shape[1])), np.empty((rows, V.shape[1]))
    for low in range(0, len(U), rows):
        part = slice(low, min(low + rows, len(U)))
        s = first[: part.stop - low]
        yield part, np.matmul(U[part], V, out=s), second[: part.stop - low]


def value(data: Data) -> Any:
    total = 0.0
    for part, s, other in tiles(data):
        total += np.divide(data["A"][part], s, out=other).sum()
        total += np.log(s, out=s).sum()
    return total


def sloped(data: Data, part: slice, s: Array, other: Array) -> Array:
    """What the gradient's rows are times V', in the place of S."""
    np.divide(1, s, out=s)
    np.multiply(data["A"][part], s, out=other)
    np.subtract(1, other, out=other)
    return np.multiply(s, other, out=s)


def gradient(data: Data) -> Array:
    found = np.empty_like(data["U"])
    for part, s, other in tiles(data):
        np.matmul(sloped(data, part, s, other), data["V"].T, out=found[part])
    return found


def both(data: Data) -> tuple[Any, Array]:
    found, total = np.empty_like(data["U"]), 0.0
    for part, s, other in tiles(data):
        total += np.log(s, out=other).sum()
        weights = sloped(data, part, s, other)
        total += s.size - other.sum()
        np.matmul(weights, data["V"].T, out=found[part])
    return total, found


def curved(data: Data, part: slice, s: Array, other: Array) -> Array:
    """q of the docstring, in the place of the other array."""
    np.divide(1, s, out=s)
    np.multiply(data["A"][part], s, out=other)
    other *= 2
    other -= 1
    np.multiply(s, s, out=s)
    return np.multiply(other, s, out=other)


def core(data: Data) -> Array:
    V = data["V"]
    k, m = V.shape
    pairs = (V[:, None, :] * V).reshape(k * k, m).T
    found = np.empty((len(data["U"]), k * k))
    for part, s, other in tiles(data):
        np.matmul(curved(data, part, s, other), pairs, out=found[part])
    return found.reshape(-1, k, k)


def hessian(data: Data) -> Array:
    rows, k = data["U"].shape
    dense = np.zeros((rows, k, rows, k))
    each = np.arange(rows)
    dense[each, :, each, :] = core(data)
    return dense


def newton(data: Data, rhs: Array) -> Array:
    return np.linalg.solve(core(data), rhs[:, :, None])[:, :, 0]


def times(core: Array, data: Data, v: Array) -> Array:
    return np.einsum("ijl,il->ij", core, v)


def product(data: Data) -> Array:
    V, found = data["V"], np.empty_like(data["U"])
    for part, s, other in tiles(data):
        weights = curved(data, part, s, other)
        weights *= np.matmul(data["P"][part], V, out=s)
        np.matmul(weights, V.T, out=found[part])
    return found


def work(products: float) -> Any:
    """So many matrix products, and what is done to every entry."""
    return lambda s: s["n"] * s["m"] * (2.0 * products * s["k"] + 6)


PROBLEM = Problem(
    name="nnmf",
    wrt="U",
    text=TEXT,
    objective=objective,
    expression=expression,
    **sizes("value", "gradient", "both", "hessian", "core", "newton"),
    hand={
        "value": {"": Form(value, work(1))},
        "gradient": {"": Form(gradient, work(2))},
        "both": {"": Form(both, work(2))},
        "hessian": {"": Form(hessian, lambda s: work(1 + s["k"])(s))},
        "core": {"": Form(core, lambda s: work(1 + s["k"])(s))},
        "newton": {"": Form(newton, lambda s: work(1 + s["k"])(s))},
    },
    product=times,
    sparse=True,
    claims=(
        *[Claim((q, "tcalc"), (q, "hand"), 1.5) for q in ("gradient", "core")],
        Claim(("newton", "tcalc"), ("newton", "hand"), 2.0),
        *[
            Claim((q, "tcalc"), (q, "jax"), 1.0, least=10_000)
            for q in ("gradient", "both", "hessian")
        ],
        Memory(("core", "tcalc"), 256, "held", per="n"),
    ),
)

PRODUCT = Problem(
    name="nnmf-product",
    wrt="U",
    text=f"the Hessian in U of {TEXT}, times P",
    objective=multiplied,
    expression=product_expression,
    **sizes("value"),
    hand={"value": {"": Form(product, work(3))}},
    claims=(
        Claim(("value", "tcalc"), ("value", "hand"), 1.5),
        Claim(("value", "tcalc"), ("value", "jax"), 1.0, least=10_000),
    ),
)
