"""The Jacobian of a whole bundle adjustment: GradBench's `ba` eval.

Observation o of the point pts[pi_o] by the camera cams[ci_o], 11 parameters as in `projections`,
weighs w_o; its two residuals depend on 11 + 3 + 1 unknowns, and the Jacobian is held as a 2 x 15
block for every observation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..problem import Array, Case, Claim, Data, Form, Memory, Problem, Sizes
from ..suite import Eval
from . import projections

TEXT = "w_o (project(cams[ci_o], pts[pi_o]) - z_o) for every o, by cams, pts and w"
Blocks = tuple[Array, Array, Array]


def objective(xp: Any, data: Any) -> Any:
    cams, pts = data["cams"][data["ci"]], data["pts"][data["pi"]]
    return data["w"][:, None] * (project(xp, cams, pts) - data["z"])


def project(xp: Any, cams: Any, pts: Any) -> Any:
    """Observation by observation, with what every library has."""
    w, place, f = cams[:, :3], pts - cams[:, 3:6], cams[:, 6:7]
    square = xp.sum(w * w, 1)
    angle = xp.sqrt(square)
    i, j = [1, 2, 0], [2, 0, 1]
    turned = (
        xp.cos(angle)[:, None] * place
        + (xp.sin(angle) / angle)[:, None] * (w[:, i] * place[:, j] - w[:, j] * place[:, i])
        + ((1 - xp.cos(angle)) / square * xp.sum(w * place, 1))[:, None] * w
    )
    q = turned[:, :2] / turned[:, 2:]
    r = xp.sum(q * q, 1)
    stretch = 1 + cams[:, 9] * r + cams[:, 10] * r**2
    return f * stretch[:, None] * q + cams[:, 7:9]


def expression(sizes: Sizes) -> Any:
    import tcalc as tc

    cams, pts = tc.var("cams", ("n", 11)), tc.var("pts", ("m", 3))
    ci, pi = tc.var("ci", ("o",), integer=True), tc.var("pi", ("o",), integer=True)
    seen = project(tc, cams[ci], pts[pi])
    return tc.var("w", "o")[:, None] * (seen - tc.var("z", ("o", 2)))


def scene(n: int, m: int, o: int, alike: bool = True) -> Case:
    """n cameras, m points and o observations; those of the suite are all alike."""

    def load(rng: np.random.Generator) -> dict[str, Array]:
        sights = projections.of_size(1 if alike else max(n, m)).load(rng)["sights"]
        sights = np.tile(sights, (max(n, m), 1)) if alike else sights
        weights = np.full(o, 0.7) if alike else rng.uniform(0.5, 1, o)
        z = np.full((o, 2), 0.2) if alike else 0.2 * rng.standard_normal((o, 2))
        return {
            "cams": sights[:n, :11].copy(),
            "pts": sights[:m, 11:].copy(),
            "w": weights,
            "z": z,
            "ci": np.arange(o) % n,
            "pi": np.arange(o) % m,
        }

    label = f"{n} cameras, {m} points, {o} observations" + (", all alike" if alike else "")
    return Case(label, {"n": n, "m": m, "o": o}, load, ("value", "jacobian"))


def of_size(n: int) -> Case:
    return scene(n, 100 * n, 500 * n)


def value(data: Data) -> Any:
    return objective(np, data)


def jacobian(data: Data) -> Blocks:
    """Columns of all observations, and the residuals without their weights."""
    sights = np.hstack([data["cams"][data["ci"]], data["pts"][data["pi"]]])
    blocks = projections.by_hand({"sights": sights})
    blocks *= data["w"][:, None, None]
    off = project(np, sights[:, :11], sights[:, 11:]) - data["z"]
    return blocks[:, :, :11], blocks[:, :, 11:], off


def product(blocks: Blocks, data: Data, v: Any) -> Any:
    """What is pushed forward: cameras and points are looked up again."""
    by_camera, by_point, by_weight = map(np.asarray, blocks)
    cams, pts, w = v
    found = (by_camera @ cams[data["ci"]][:, :, None])[:, :, 0]
    found = found + (by_point @ pts[data["pi"]][:, :, None])[:, :, 0]
    return found + by_weight * w[:, None]


def by_observation(arrays: Any, rhs: Any) -> Any:
    """With jax: one observation's Jacobian by forward mode, mapped over them."""
    import jax

    def one(camera: Any, point: Any, weight: Any, z: Any) -> Any:
        sight = jax.numpy.concatenate([camera, point])
        return weight * (projections.one(jax.numpy, sight) - z)

    gathered = arrays["cams"][arrays["ci"]], arrays["pts"][arrays["pi"]], arrays["w"], arrays["z"]
    return jax.vmap(jax.jacfwd(one, argnums=(0, 1, 2)))(*gathered)


def given(data: Data) -> dict[str, Any] | None:
    """The suite's program takes one camera, one point and one observation, repeated."""
    if any(np.ptp(data[name], axis=0).any() for name in ("cams", "pts", "w", "z")):
        return None
    return {
        "n": len(data["cams"]),
        "m": len(data["pts"]),
        "p": len(data["w"]),
        "cam": data["cams"][0].tolist(),
        "x": data["pts"][0].tolist(),
        "w": float(data["w"][0]),
        "feat": data["z"][0].tolist(),
    }


def read(found: Any, data: Data) -> Blocks:
    block = np.tile(np.reshape(found["vals"][:30], (1, 2, 15)), (len(data["w"]), 1, 1))
    return block[:, :, :11], block[:, :, 11:14], block[:, :, 14]


def read_value(found: Any, data: Data) -> Array:
    return np.tile(found["reproj_error"]["elements"], (len(data["w"]), 1))


def observed(operations: float) -> Any:
    return lambda s: operations * s["o"]


PROBLEM = Problem(
    name="bundle-jacobian",
    wrt=("cams", "pts", "w"),
    text=TEXT,
    objective=objective,
    expression=expression,
    cases={
        "tiny": (scene(3, 5, 8, alike=False),),
        "small": (scene(20, 500, 2000, alike=False), scene(20, 500, 2000)),
        "paper": (scene(49, 7776, 31_843), scene(257, 65_132, 225_911)),
    },
    of_size=of_size,
    hand={
        "value": {"": Form(value, observed(60))},
        "jacobian": {"": Form(jacobian, observed(300))},
    },
    product=product,
    batched={"jacobian": {"by observation": by_observation}},
    suite=Eval("ba", given, {"value": ("objective", read_value), "jacobian": ("jacobian", read)}),
    claims=(
        Claim(("jacobian", "tcalc c"), ("jacobian", "jax by observation"), 1.0),
        Claim(("jacobian", "tcalc c"), ("jacobian", "gradbench"), 1.0),
        Memory(("jacobian", "tcalc c"), 8 * 30 * 1.1, "held", per="o"),
    ),
)
