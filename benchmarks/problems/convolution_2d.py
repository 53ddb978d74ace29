"""Images and small kernels: f = |conv(x, w) - y|^2 / 2, one channel or several in and out.

conv_oij = sum_cab w_ocab x_{c,i+a,j+b}. The Hessian in the kernel is one matrix of (c, a, b) by
(c, a, b), the products of the image with itself shifted, for every channel out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import transforms
from ..problem import Array, Case, Claim, Form, Problem, Sizes
from . import image_forms as by_hand

TEXT = "sum_ij (sum_ab w_ab x_{i+a,j+b} - y_ij)^2 / 2"
CHANNELS_TEXT = "sum_oij (sum_cab w_ocab x_{c,i+a,j+b} - y_oij)^2 / 2"
TANGENTS = 2**31  # bytes of what jax's dense Hessian holds at least


def plain_objective(xp: Any, data: Any) -> Any:
    """Shifted slices, one for each entry of the kernel."""
    x, w, y = data["x"], data["w"], data["y"]
    (p, q), (h, l) = w.shape, y.shape
    found = sum(w[a, b] * x[a : a + h, b : b + l] for a in range(p) for b in range(q))
    return xp.sum((found - y) ** 2) / 2


def objective(xp: Any, data: Any) -> Any:
    """Shifted slices, a matrix product of channels for each place of the kernel."""
    x, w, y = data["x"], data["w"], data["y"]
    (_, _, p, q), (_, h, l) = w.shape, y.shape
    found = sum(
        xp.einsum("oc,chl->ohl", w[:, :, a, b], x[:, a : a + h, b : b + l])
        for a in range(p)
        for b in range(q)
    )
    return xp.sum((found - y) ** 2) / 2


def gathered(data: Any) -> Any:
    """With jax: all windows by their indices, and one product."""
    import jax.numpy as jnp

    x, w, y = by_hand.with_channels(data)
    rows = jnp.arange(y.shape[1])[:, None] + jnp.arange(w.shape[2])
    columns = jnp.arange(y.shape[2])[:, None] + jnp.arange(w.shape[3])
    windows = x[:, rows[:, None, :, None], columns[None, :, None, :]]
    return jnp.sum((jnp.einsum("chlab,ocab->ohl", windows, w) - y) ** 2) / 2


def convolved(data: Any) -> Any:
    """With jax: its own convolution."""
    import jax
    import jax.numpy as jnp

    x, w, y = by_hand.with_channels(data)
    return jnp.sum((jax.lax.conv(x[None], w, (1, 1), "VALID")[0] - y) ** 2) / 2


JAX = {"gather": gathered, "lax.conv": convolved}


def multiplied(xp: Any, data: Any) -> Any:
    return transforms.product(
        xp, lambda x: plain_objective(xp, {**data, "x": x}), data["x"], data["v"]
    )


def plain_expression(sizes: Sizes) -> Any:
    import tcalc as tc

    m, side = sizes["m"], f"n-{sizes['m'] - 1}"
    text = "sum[i,j]((sum[a,b](x[i+a,j+b]*w[a,b]) - y[i,j])^2)/2"
    return tc.parse_index(text, x=("n", "n"), w=(m, m), y=(side, side))


def expression(sizes: Sizes) -> Any:
    import tcalc as tc

    m, side = sizes["m"], f"n-{sizes['m'] - 1}"
    text = "sum[p,i,j]((sum[q,a,b](x[q,i+a,j+b]*w[p,q,a,b]) - y[p,i,j])^2)/2"
    return tc.parse_index(text, x=("c", "n", "n"), w=("o", "c", m, m), y=("o", side, side))


def product_expression(sizes: Sizes) -> Any:
    import tcalc as tc

    return tc.hvp(plain_expression(sizes), "x", tc.var("v", ("n", "n")))


def image(n: int, m: int, channels: int | None, quantities: tuple[str, ...]) -> Case:
    """An n x n image and an m x m kernel; as many channels out as in, or none."""
    side = n - m + 1
    lead = () if channels is None else (channels,)

    def load(rng: np.random.Generator) -> dict[str, Array]:
        return {
            "x": rng.standard_normal((*lead, n, n)),
            "w": rng.standard_normal((*lead, *lead, m, m)) / m,
            "y": rng.standard_normal((*lead, side, side)),
            "v": rng.standard_normal((*lead, n, n)),
        }

    count = channels or 1
    tangents = 8 * (count * m) ** 2 * count * side**2
    held = tuple([q for q in quantities if q != "hessian" or tangents < TANGENTS])
    words = f"n={n}, {m} x {m}" + (f", {count} channels" if channels else "")
    return Case(words, {"n": n, "m": m, "c": count, "o": count}, load, held)


def passes(count: float) -> Any:
    """So many convolutions."""
    return lambda s: 2.0 * count * (s["n"] - s["m"] + 1) ** 2 * (s["c"] * s["m"]) ** 2


def products(s: Sizes) -> float:
    return (s["n"] - s["m"] + 1.0) ** 2 * (s["c"] * s["m"] ** 2) ** 2


def below(quantity: str) -> tuple[Claim, ...]:
    """Never slower than jax, however it is written."""
    names = ("jax", "jax gather", "jax lax.conv")
    return tuple([Claim((quantity, "tcalc"), (quantity, name), 1.0, least=100) for name in names])


def sizes(channels: int | None, *quantities: str) -> Any:
    """`Problem.cases` and `Problem.of_size`, of these quantities."""

    def of_size(n: int, m: int = 3) -> Case:
        return image(n, min(m, n), channels, quantities)

    large = (of_size(256), of_size(256, 7)) if channels is None else (of_size(128), of_size(256))
    cases = {
        "tiny": (image(7, 3, channels and 2, quantities), image(6, 2, channels and 3, quantities)),
        "small": (of_size(64),),
        "paper": large,
    }
    return {"cases": cases, "of_size": of_size}


PROBLEM = Problem(
    name="convolution-2d",
    wrt="w",
    text=TEXT,
    objective=plain_objective,
    expression=plain_expression,
    **sizes(None, "value", "gradient", "hessian"),
    hand={
        "value": {
            "tiles": Form(by_hand.value, passes(1)),
            "shifts": Form(by_hand.shifted_value, passes(1)),
        },
        "gradient": {
            "tiles": Form(by_hand.kernel_gradient, passes(2)),
            "shifts": Form(by_hand.shifted_gradient, passes(2)),
        },
        "hessian": {"tiles": Form(by_hand.hessian, products)},
    },
    batched=transforms.spelled(JAX, "w", ("value", "gradient", "hessian")),
    claims=(*below("value"), *below("gradient"), *below("hessian")),
)

IMAGE = Problem(
    name="convolution-2d-image",
    wrt="x",
    text=TEXT,
    objective=plain_objective,
    expression=plain_expression,
    **sizes(None, "gradient"),
    hand={
        "gradient": {
            "tiles": Form(by_hand.image_gradient, passes(2)),
            "shifts": Form(by_hand.shifted_image_gradient, passes(2)),
        }
    },
    batched=transforms.spelled(JAX, "x", ("gradient",)),
    claims=below("gradient"),
)

PRODUCT = Problem(
    name="convolution-2d-product",
    wrt="x",
    text=f"the Hessian in x of {TEXT}, times v",
    objective=multiplied,
    expression=product_expression,
    **sizes(None, "value"),
    hand={
        "value": {
            "tiles": Form(by_hand.product, passes(2)),
            "shifts": Form(by_hand.shifted_product, passes(2)),
        }
    },
    batched={"value": transforms.multiplied(JAX, "x")},
    claims=below("value"),
)

CHANNELS = Problem(
    name="convolution-2d-channels",
    wrt="w",
    text=CHANNELS_TEXT,
    objective=objective,
    expression=expression,
    **sizes(8, "value", "gradient", "hessian", "core"),
    hand={
        "value": {"tiles": Form(by_hand.value, passes(1))},
        "gradient": {"tiles": Form(by_hand.kernel_gradient, passes(2))},
        "hessian": {"tiles": Form(by_hand.hessian, products)},
        "core": {"tiles": Form(by_hand.core, products)},
    },
    product=by_hand.times,
    batched=transforms.spelled(JAX, "w", ("value", "gradient", "hessian")),
    claims=(
        *below("value"),
        *below("gradient"),
        *below("hessian"),
        Claim(("core", "tcalc"), ("core", "hand tiles"), 2.0),
    ),
)

CHANNELS_IMAGE = Problem(
    name="convolution-2d-channels-image",
    wrt="x",
    text=CHANNELS_TEXT,
    objective=objective,
    expression=expression,
    **sizes(8, "gradient"),
    hand={"gradient": {"tiles": Form(by_hand.image_gradient, passes(2))}},
    batched=transforms.spelled(JAX, "x", ("gradient",)),
    claims=below("gradient"),
)

CONVOLUTIONS = (PROBLEM, IMAGE, PRODUCT, CHANNELS, CHANNELS_IMAGE)
