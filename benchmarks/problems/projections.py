"""The Jacobian of many projections: 11 parameters of a camera and 3 of a point, 2 coordinates.

A row of `sights` is (w, c, f, p, k, x): the point x is seen by a camera at c that is turned by the
vector w, at f (1 + k_1 r + k_2 r^2) q + p, q the first two coordinates of R(w) (x - c) by the third
and r = |q|^2. The Jacobian of all projections is zero but for a 2 x 14 block for every row, and
those are what is computed.

Source: Shaikhha et al., Efficient differentiable programming in a functional array-processing
language, figure 13.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..problem import Array, Case, Claim, Data, Form, Problem, Sizes

TEXT = "d project(sight_o) / d sight_o for every o"
TILE = 4096  # projections computed at a time


def one(jnp: Any, sight: Any) -> Any:
    """With jax: the projection of one row."""
    w, c, f, p, k, x = jnp.split(sight, [3, 6, 7, 9, 11])
    place, square = x - c, w @ w
    angle = jnp.sqrt(square)
    turned = (
        jnp.cos(angle) * place
        + jnp.sin(angle) / angle * jnp.cross(w, place)
        + (1 - jnp.cos(angle)) / square * (w @ place) * w
    )
    q = turned[:2] / turned[2]
    r = q @ q
    return f * (1 + k[0] * r + k[1] * r**2) * q + p


def objective(xp: Any, data: Any) -> Any:
    """One projection's Jacobian by forward mode, mapped over them."""
    import jax

    return jax.vmap(jax.jacfwd(lambda sight: one(xp, sight)))(data["sights"])


def reverse(arrays: Any, rhs: Any) -> Any:
    import jax
    import jax.numpy as jnp

    return jax.vmap(jax.jacrev(lambda sight: one(jnp, sight)))(arrays["sights"])


def columns(arrays: Any, rhs: Any) -> Any:
    """With jax as by hand: the columns of all projections, derived by an expert."""
    import jax.numpy as jnp

    rows = jacobian(jnp, tuple(arrays["sights"].T))
    return jnp.stack([jnp.stack(row, axis=-1) for row in rows], axis=1)


def expression(sizes: Sizes) -> Any:
    import tcalc as tc

    sights = tc.var("sights", ("n", 14))
    w, c, f, p = sights[:, :3], sights[:, 3:6], sights[:, 6:7], sights[:, 7:9]
    k, x = sights[:, 9:11], sights[:, 11:]
    place, square = x - c, tc.sum(w * w, axis=1)
    angle = tc.sqrt(square)
    turned = (
        tc.cos(angle)[:, None] * place
        + (tc.sin(angle) / angle)[:, None] * tc.cross(w, place)
        + ((1 - tc.cos(angle)) / square * tc.sum(w * place, axis=1))[:, None] * w
    )
    q = turned[:, :2] / turned[:, 2:]
    r = tc.sum(q * q, axis=1)
    seen = f * (1 + k[:, 0] * r + k[:, 1] * r**2)[:, None] * q + p
    return tc.einsum("oaoi->oai", tc.jacobian(seen, sights))


def of_size(n: int) -> Case:
    """Points that lie well before their cameras."""

    def load(rng: np.random.Generator) -> dict[str, Array]:
        parts = [
            0.2 * rng.standard_normal((n, 3)),
            np.array([0.0, 0.0, -5.0]) + 0.2 * rng.standard_normal((n, 3)),
            rng.uniform(1, 2, (n, 1)),
            0.1 * rng.standard_normal((n, 2)),
            0.1 * rng.standard_normal((n, 2)),
            rng.uniform(-1, 1, (n, 3)),
        ]
        return {"sights": np.hstack(parts)}

    return Case(f"n={n}", {"n": n}, load, ("value",))


Rows = tuple[list[Any], list[Any]]


def jacobian(xp: Any, sight: tuple[Any, ...]) -> Rows:
    """The 2 x 14 entries, each for all projections; parameters that do not count are 0 and 1."""
    w, (f, k1, k2) = sight[:3], (sight[6], sight[9], sight[10])
    x = [a - b for a, b in zip(sight[11:], sight[3:6], strict=True)]
    square = w[0] * w[0] + w[1] * w[1] + w[2] * w[2]
    angle = xp.sqrt(square)
    cosine, sine, inverse = xp.cos(angle), xp.sin(angle), 1 / square
    c1, c2 = sine / angle, (1 - cosine) * inverse
    d1, d2 = (cosine - c1) * inverse, (c1 - 2 * c2) * inverse
    cross = [w[1] * x[2] - w[2] * x[1], w[2] * x[0] - w[0] * x[2], w[0] * x[1] - w[1] * x[0]]
    along = w[0] * x[0] + w[1] * x[1] + w[2] * x[2]
    lift = c2 * along
    turned = [cosine * x[i] + c1 * cross[i] + lift * w[i] for i in range(3)]
    depth = 1 / turned[2]
    q = turned[0] * depth, turned[1] * depth
    r = q[0] * q[0] + q[1] * q[1]
    stretch, slope = 1 + r * (k1 + r * k2), 2 * (k1 + 2 * r * k2)
    fall = f * (stretch + slope * r)
    fs, mixed = f * depth, slope * q[0] * q[1]
    by_place = (
        (fs * (stretch + slope * q[0] * q[0]), fs * mixed, -fall * depth * q[0]),
        (fs * mixed, fs * (stretch + slope * q[1] * q[1]), -fall * depth * q[1]),
    )
    bend = d2 * along
    change = [-c1 * x[i] + d1 * cross[i] + bend * w[i] for i in range(3)]
    found: Rows = ([], [])
    for a, (row, m) in enumerate(zip(found, by_place, strict=True)):
        mw = m[0] * w[0] + m[1] * w[1] + m[2] * w[2]
        mc = m[0] * change[0] + m[1] * change[1] + m[2] * change[2]
        mw_c2 = c2 * mw
        turn = [
            x[1] * m[2] - x[2] * m[1],
            x[2] * m[0] - x[0] * m[2],
            x[0] * m[1] - x[1] * m[0],
        ]
        cross_m = [
            m[1] * w[2] - m[2] * w[1],
            m[2] * w[0] - m[0] * w[2],
            m[0] * w[1] - m[1] * w[0],
        ]
        by_x = [cosine * m[i] + c1 * cross_m[i] + mw_c2 * w[i] for i in range(3)]
        row += [mc * w[i] + c1 * turn[i] + mw_c2 * x[i] + lift * m[i] for i in range(3)]
        row += [-entry for entry in by_x]
        zero = xp.zeros_like(r)
        row += [stretch * q[a], zero + 1 - a, zero + a, f * r * q[a], f * r * r * q[a]]
        row += by_x
    return found


def by_hand(data: Data) -> Array:
    """Column by column, tiles of projections at a time."""
    sights = data["sights"]
    out = np.empty((len(sights), 2, 14))
    for low in range(0, len(sights), TILE):
        part = np.ascontiguousarray(sights[low : low + TILE].T)
        block = out[low : low + TILE]
        for a, row in enumerate(jacobian(np, tuple(part))):
            block[:, a] = np.stack(row).T
    return out


PROBLEM = Problem(
    name="bundle-adjustment-jacobian",
    wrt="sights",
    text=TEXT,
    objective=objective,
    expression=expression,
    cases={
        "tiny": (of_size(5),),
        "small": (of_size(1_000),),
        "paper": (of_size(1_000), of_size(10_000), of_size(100_000)),
    },
    of_size=of_size,
    hand={"value": {"columns": Form(by_hand, lambda s: 300.0 * s["n"])}},
    batched={"value": {"reverse": reverse, "columns": columns}},
    claims=(
        Claim(("value", "tcalc"), ("value", "jax"), 1.0, least=10_000),
        Claim(("value", "tcalc"), ("value", "jax reverse"), 1.0, least=10_000),
        Claim(("value", "tcalc"), ("value", "hand columns"), 2.0, least=1_000),
    ),
    without=("autograd", "torch"),
)
