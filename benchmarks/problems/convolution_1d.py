"""A long signal and a short kernel: f(x, w) = |conv(x, w) - y|^2 / 2, conv_i = sum_k x_{i+k} w_k.

The Hessian in w is a sum of products of the signal with itself shifted, which depends on the
difference of two shifts but for its ends: one row of it, and two products for every other entry.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from .. import transforms
from ..problem import Array, Case, Claim, Data, Form, Problem, Sizes

TEXT = "sum_i (sum_k x_{i+k} w_k - y_i)^2 / 2"
KERNEL = 64
BLOCK = 32  # outputs that one row of a matrix product gives


def objective(xp: Any, data: Any) -> Any:
    """Shifted slices, one for each entry of the kernel."""
    x, w, y = data["x"], data["w"], data["y"]
    length = y.shape[0]
    found = sum(w[k] * x[k : k + length] for k in range(w.shape[0]))
    return xp.sum((found - y) ** 2) / 2


def gathered(data: Any) -> Any:
    """With jax: all windows by their indices, and one product."""
    import jax.numpy as jnp

    x, w, y = data["x"], data["w"], data["y"]
    places = jnp.arange(y.shape[0])[:, None] + jnp.arange(w.shape[0])
    return jnp.sum((x[places] @ w - y) ** 2) / 2


def mapped(data: Any) -> Any:
    """With jax: an inner product with one window, mapped over where it starts."""
    import jax
    import jax.numpy as jnp

    x, w, y = data["x"], data["w"], data["y"]

    def one(start: Any) -> Any:
        return jax.lax.dynamic_slice(x, (start,), w.shape) @ w

    return jnp.sum((jax.vmap(one)(jnp.arange(y.shape[0])) - y) ** 2) / 2


def convolved(data: Any) -> Any:
    """With jax: its own convolution."""
    import jax
    import jax.numpy as jnp

    x, w, y = data["x"], data["w"], data["y"]
    found = jax.lax.conv(x[None, None], w[None, None], (1,), "VALID")[0, 0]
    return jnp.sum((found - y) ** 2) / 2


JAX = {"gather": gathered, "vmap": mapped, "lax.conv": convolved}


def multiplied(xp: Any, data: Any) -> Any:
    return transforms.product(xp, lambda x: objective(xp, {**data, "x": x}), data["x"], data["v"])


def expression(sizes: Sizes) -> Any:
    import tcalc as tc

    text = "sum[i]((sum[k](x[i+k]*w[k]) - y[i])^2)/2"
    return tc.parse_index(text, x=("n",), w=("m",), y=("n-m+1",))


def product_expression(sizes: Sizes) -> Any:
    import tcalc as tc

    return tc.hvp(expression(sizes), "x", tc.var("v", "n"))


def signal(n: int, m: int, quantities: tuple[str, ...]) -> Case:
    def load(rng: np.random.Generator) -> dict[str, Array]:
        return {
            "x": rng.standard_normal(n),
            "w": rng.standard_normal(m) / np.sqrt(m),
            "y": rng.standard_normal(n - m + 1),
            "v": rng.standard_normal(n),
        }

    return Case(f"n={n}, m={m}", {"n": n, "m": m}, load, quantities)


def sizes(*quantities: str) -> Any:
    """`Problem.cases` and `Problem.of_size`, of these quantities."""

    def of_size(n: int) -> Case:
        return signal(n, min(KERNEL, max(1, n // 2)), quantities)

    cases = {
        "tiny": (signal(13, 4, quantities), signal(70, 3, quantities)),
        "small": (of_size(10_000),),
        "paper": (of_size(10_000), of_size(100_000)),
    }
    return {"cases": cases, "of_size": of_size}


def correlated(x: Array, w: Array) -> Array:
    return np.correlate(x, w, "valid")


def blocked(x: Array, w: Array) -> Array:
    """sum_k x_{i+k} w_k, so many i at a time as rows of one matrix product."""
    m, count = len(w), len(x) - len(w) + 1
    rows = count // BLOCK
    band = np.zeros((BLOCK + m - 1, BLOCK))
    as_strided(band, (BLOCK, m), (sum(band.strides), band.strides[0]))[:] = w
    windows = as_strided(x, (rows, BLOCK + m - 1), (BLOCK * x.itemsize, x.itemsize))
    out = np.empty(count)
    end = rows * BLOCK
    np.matmul(np.ascontiguousarray(windows), band, out=out[:end].reshape(rows, BLOCK))
    if end < count:
        out[end:] = np.correlate(x[end:], w, "valid")
    return out


def lagged(x: Array, r: Array) -> Array:
    """sum_i x_{i+k} r_i for all shifts k, from the diagonals of one matrix product."""
    m, count = len(x) - len(r) + 1, len(r)
    rows = count // BLOCK
    end = rows * BLOCK
    windows = as_strided(x, (rows, BLOCK + m - 1), (BLOCK * x.itemsize, x.itemsize))
    all_pairs = r[:end].reshape(rows, BLOCK).T @ np.ascontiguousarray(windows)
    strides = all_pairs.strides
    found = as_strided(all_pairs, (m, BLOCK), (strides[1], sum(strides))).sum(axis=1)
    return found + np.correlate(x[end:], r[end:], "valid") if end < count else found


def spread(r: Array, w: Array) -> Array:
    """sum_k r_{j-k} w_k for all j: the transpose of a convolution."""
    padded = np.zeros(len(r) + 2 * (len(w) - 1))
    padded[len(w) - 1 : len(w) - 1 + len(r)] = r
    return blocked(padded, w[::-1])


def residual(data: Data) -> Array:
    found = blocked(data["x"], data["w"])
    return np.subtract(found, data["y"], out=found)


def value(data: Data) -> Any:
    r = residual(data)
    return (r @ r) / 2


def gradient(data: Data) -> tuple[Array, Array]:
    r = residual(data)
    return spread(r, data["w"]), lagged(data["x"], r)


def both(data: Data) -> tuple[Any, tuple[Array, Array]]:
    r = residual(data)
    return (r @ r) / 2, (spread(r, data["w"]), lagged(data["x"], r))


def plain_value(data: Data) -> Any:
    r = correlated(data["x"], data["w"]) - data["y"]
    return (r @ r) / 2


def plain_gradient(data: Data) -> tuple[Array, Array]:
    r = correlated(data["x"], data["w"]) - data["y"]
    return np.convolve(r, data["w"]), correlated(data["x"], r)


def plain_both(data: Data) -> tuple[Any, tuple[Array, Array]]:
    r = correlated(data["x"], data["w"]) - data["y"]
    return (r @ r) / 2, (np.convolve(r, data["w"]), correlated(data["x"], r))


def hessian(data: Data) -> Array:
    """The first row, and from there along the diagonals: what comes in less what goes out."""
    x, m = data["x"], len(data["w"])
    count = len(x) - m + 1
    found = np.empty((m, m))
    found[0] = lagged(x, x[:count])
    first, last = x[: m - 1], x[count:]
    for k in range(m - 1):
        change = last[k] * last[k:] - first[k] * first[k:]
        np.add(found[k, k:-1], change, out=found[k + 1, k + 1 :])
        found[k + 1, : k + 1] = found[: k + 1, k + 1]
    return found


def gram(data: Data) -> Array:
    windows = np.lib.stride_tricks.sliding_window_view(data["x"], len(data["w"]))
    return windows.T @ windows


def kernel_gradient(data: Data) -> Array:
    return lagged(data["x"], residual(data))


def times(data: Data) -> Array:
    return spread(blocked(data["v"], data["w"]), data["w"])


def plain_times(data: Data) -> Array:
    return np.convolve(correlated(data["v"], data["w"]), data["w"])


def passes(count: float) -> Any:
    """So many convolutions."""
    return lambda s: 2.0 * count * (s["n"] - s["m"] + 1) * s["m"]


def below(quantity: str, *rivals: str) -> tuple[Claim, ...]:
    """Never slower than jax, however it is written."""
    return tuple(
        [Claim((quantity, "tcalc"), (quantity, name), 1.0, least=10_000) for name in rivals]
    )


WRITTEN = ("jax", "jax gather", "jax vmap", "jax lax.conv")

PROBLEM = Problem(
    name="convolution-1d",
    wrt=("x", "w"),
    text=TEXT,
    objective=objective,
    expression=expression,
    **sizes("value", "gradient", "both"),
    hand={
        "value": {"blocks": Form(value, passes(1)), "correlate": Form(plain_value, passes(1))},
        "gradient": {
            "blocks": Form(gradient, passes(3)),
            "correlate": Form(plain_gradient, passes(3)),
        },
        "both": {"blocks": Form(both, passes(3)), "correlate": Form(plain_both, passes(3))},
    },
    batched=transforms.spelled(JAX, ("x", "w"), ("value", "gradient", "both")),
    claims=(
        *below("value", *WRITTEN),
        *below("gradient", *WRITTEN),
        *below("both", *WRITTEN),
        Claim(("gradient", "tcalc"), ("gradient", "hand correlate"), 1.25),
    ),
)

IN_KERNEL = Problem(
    name="convolution-1d-kernel",
    wrt="w",
    text=TEXT,
    objective=objective,
    expression=expression,
    **sizes("gradient", "hessian"),
    hand={
        "gradient": {"blocks": Form(kernel_gradient, passes(2))},
        "hessian": {
            "lags": Form(hessian, passes(1)),
            "gemm": Form(gram, lambda s: s["m"] * passes(1)(s)),
        },
    },
    batched=transforms.spelled(JAX, "w", ("gradient", "hessian")),
    claims=(
        *below("gradient", *WRITTEN),
        *below("hessian", *WRITTEN),
        Claim(("hessian", "tcalc"), ("hessian", "hand gemm"), 1.25),
        Claim(("hessian", "tcalc"), ("hessian", "hand lags"), 2.0, least=10_000),
    ),
)

PRODUCT = Problem(
    name="convolution-1d-product",
    wrt="x",
    text=f"the Hessian in x of {TEXT}, times v",
    objective=multiplied,
    expression=product_expression,
    **sizes("value"),
    hand={
        "value": {
            "blocks": Form(times, passes(2)),
            "correlate": Form(plain_times, passes(2)),
        }
    },
    batched={"value": transforms.multiplied(JAX, "x")},
    claims=(
        *below("value", *WRITTEN),
        Claim(("value", "tcalc"), ("value", "hand correlate"), 1.25),
    ),
)

CONVOLUTIONS = (PROBLEM, IN_KERNEL, PRODUCT)
