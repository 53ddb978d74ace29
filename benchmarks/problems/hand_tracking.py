"""The Jacobian of a hand's model: GradBench's `ht` eval, the simple variant.

26 numbers pose a hand: its rotation and its place (3 each), and 4 angles of every finger. Each of
22 bones is turned in its parent's frame, vertices follow their bones by weights, and f is how far
the vertices that correspond to measured points lie from them, 3 residuals a point.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import nests
from ..problem import Array, Case, Claim, Data, Form, Problem, Sizes
from ..suite import Eval

TEXT = "points - vertices(theta)[corr], vertices skinned by 22 bones turned by theta"
FINGERS, JOINTS = 5, 4
BONES = 2 + FINGERS * JOINTS
#: A finger's first bone hangs from the wrist, the others from the one before; the forearm is free.
PARENTS = [-1, *[b - 1 if b % JOINTS != 1 else 0 for b in range(1, BONES - 1)], -1]
#: The bones that are turned, each by which angles of its finger: about x, and about z or none.
TURNED = {
    1 + JOINTS * f + joint: (JOINTS * f + about_x, JOINTS * f + about_z if joint == 1 else None)
    for f in range(FINGERS)
    for joint, about_x, about_z in ((1, 0, 1), (2, 2, 1), (3, 3, 1))
}


def objective(xp: Any, data: Any) -> Any:
    return data["points"] - vertices(xp, data)[data["corr"]]


def vertices(xp: Any, data: Any) -> Any:
    theta, base = data["theta"], data["relatives"]
    cosines, sines = xp.cos(theta[6:]), xp.sin(theta[6:])
    absolutes: list[Any] = []
    for bone, parent in enumerate(PARENTS):
        frame = base[bone]
        if bone in TURNED:
            about_x, about_z = TURNED[bone]
            frame = turn_x(xp, frame, cosines[about_x], sines[about_x], about_z, cosines, sines)
        absolutes.append(frame if parent < 0 else absolutes[parent] @ frame)
    bones = xp.stack(absolutes) @ data["inverses"]
    skinned = xp.einsum("vb,bij,vj->vi", data["weights"], bones[:, :3], data["positions"])
    return skinned @ rotation(xp, theta[:3]).T + theta[3:6]


def turn_x(
    xp: Any, frame: Any, c: Any, s: Any, about_z: int | None, cosines: Any, sines: Any
) -> Any:
    """The frame times the turn about z, if any, and then about x, column by column."""
    x, y, z, place = frame[:, 0], frame[:, 1], frame[:, 2], frame[:, 3]
    if about_z is not None:
        cz, sz = cosines[about_z], sines[about_z]
        x, y = cz * x + sz * y, cz * y - sz * x
    return xp.stack([x, c * y + s * z, c * z - s * y, place], 1)


def rotation(xp: Any, w: Any) -> Any:
    """By the angle |w| about w."""
    angle = xp.sqrt(xp.sum(w * w))
    c, s, unit = xp.cos(angle), xp.sin(angle), w / angle
    x, y, z = unit[0], unit[1], unit[2]
    d = 1 - c
    return xp.stack(
        [
            xp.stack([c + x * x * d, x * y * d - z * s, x * z * d + y * s]),
            xp.stack([x * y * d + z * s, c + y * y * d, y * z * d - x * s]),
            xp.stack([x * z * d - y * s, y * z * d + x * s, c + z * z * d]),
        ]
    )


def expression(sizes: Sizes) -> Any:
    import tcalc as tc

    return objective(
        tc,
        {
            "theta": tc.var("theta", 6 + FINGERS * JOINTS),
            "relatives": tc.var("relatives", (BONES, 4, 4)),
            "inverses": tc.var("inverses", (BONES, 4, 4)),
            "weights": tc.var("weights", ("v", BONES)),
            "positions": tc.var("positions", ("v", 4)),
            "corr": tc.var("corr", "n", integer=True),
            "points": tc.var("points", ("n", 3)),
        },
    )


def case(n: int, count: int) -> Case:
    """n points, and so many vertices."""

    def load(rng: np.random.Generator) -> dict[str, Array]:
        relatives = np.tile(np.eye(4), (BONES, 1, 1))
        for frame in relatives:
            frame[:3, :3] = rotation(np, 0.3 * rng.standard_normal(3))
            frame[:3, 3] = rng.uniform(0.2, 1, 3)
        inverses = np.linalg.inv(relatives) + 0.01 * rng.standard_normal((BONES, 4, 4))
        weights = rng.random((count, BONES)) ** 8
        positions = np.hstack([rng.standard_normal((count, 3)), np.ones((count, 1))])
        theta = np.concatenate([rng.standard_normal(6), rng.uniform(-0.5, 0.5, FINGERS * JOINTS)])
        return {
            "theta": theta,
            "relatives": relatives,
            "inverses": inverses,
            "weights": weights / weights.sum(axis=1, keepdims=True),
            "positions": positions,
            "corr": rng.integers(0, count, n),
            "points": rng.standard_normal((n, 3)),
        }

    return Case(f"{n} points, {count} vertices", {"n": n, "v": count}, load, ("value", "jacobian"))


def of_size(n: int) -> Case:
    return case(n, 544)


def value(data: Data) -> Any:
    return objective(np, data)


def jacobian(data: Data) -> Array:
    """Frames with their derivatives by the angles; vertices and their moves in one product."""
    theta, base = data["theta"], data["relatives"]
    cosines, sines = np.cos(theta[6:]), np.sin(theta[6:])
    frames = np.empty((BONES, 1 + FINGERS * JOINTS, 4, 4))
    for bone, parent in enumerate(PARENTS):
        frame, moves = base[bone], {}
        if bone in TURNED:
            x, y, z, place = frame.T
            about_x, about_z = TURNED[bone]
            c, s = cosines[about_x], sines[about_x]
            if about_z is not None:
                cz, sz = cosines[about_z], sines[about_z]
                x, y = cz * x + sz * y, cz * y - sz * x
                moves[about_z] = np.stack([y, -c * x, s * x, 0 * x], 1)
            moves[about_x] = np.stack([0 * x, c * z - s * y, -c * y - s * z, 0 * x], 1)
            frame = np.stack([x, c * y + s * z, c * z - s * y, place], 1)
        above = frames[parent] if parent >= 0 else None
        frames[bone] = 0
        frames[bone, 0] = frame
        if above is not None:
            np.matmul(above, frame, out=frames[bone])
        for angle, move in moves.items():
            frames[bone, 1 + angle] += move if above is None else above[0] @ move
    bones = (frames @ data["inverses"][:, None])[:, :, :3]
    corr = data["corr"]
    spread = data["weights"][corr][:, :, None] * data["positions"][corr][:, None, :]
    moved = spread.reshape(len(corr), -1) @ bones.transpose(0, 3, 1, 2).reshape(4 * BONES, -1)
    moved = moved.reshape(len(corr), -1, 3)
    turn, by_turn = turned(theta[:3])
    found = np.zeros((len(corr), 3, len(theta)))
    found[:, :, :3] = -np.einsum("kij,nj->nik", by_turn, moved[:, 0])
    found[:, [0, 1, 2], [3, 4, 5]] = -1
    found[:, :, 6:] = -(moved[:, 1:] @ turn.T).transpose(0, 2, 1)
    return found


def turned(w: Array) -> tuple[Array, Array]:
    """The rotation by w and its derivatives (Gallego and Yezzi 2015)."""
    turn, square = rotation(np, w), w @ w
    by = [skew(w[k] * w + np.cross(w, (np.eye(3) - turn)[:, k])) @ turn for k in range(3)]
    return turn, np.stack(by) / square


def skew(v: Array) -> Array:
    return np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])


def given(data: Data) -> dict[str, Any]:
    model = {
        "bone_names": [f"bone {k}" for k in range(BONES)],
        "parents": PARENTS,
        "is_mirrored": False,
        "base_positions": data["positions"].tolist(),
        "weights": data["weights"].tolist(),
        "triangles": [],
        "base_relatives": data["relatives"].tolist(),
        "inverse_base_absolutes": data["inverses"].tolist(),
    }
    points = {"correspondences": data["corr"].tolist(), "points": data["points"].tolist()}
    return {"theta": data["theta"].tolist(), "us": [], "data": {"model": model, **points}}


def read(found: Any, data: Data) -> Array:
    return np.reshape(found, (*data["points"].shape, *np.shape(found)[1:]))


PROBLEM = Problem(
    name="hand-tracking",
    wrt="theta",
    text=TEXT,
    objective=objective,
    expression=expression,
    cases={
        "tiny": (case(4, 6),),
        "small": (case(100, 544),),
        "paper": (case(800, 544), case(10_000, 10_000)),
    },
    of_size=of_size,
    hand={
        "value": {"": Form(value, lambda s: 8.0 * BONES * 3 * s["v"])},
        "jacobian": {"": Form(jacobian, lambda s: 8.0 * BONES * 3 * 21 * s["n"])},
    },
    product=lambda core, data, v: nests.pushed(core, v),
    suite=Eval(
        "ht", given, {"value": ("objective", read), "jacobian": ("jacobian", read)},
        ("manual", "tapenade"),
    ),
    claims=(
        Claim(("jacobian", "tcalc c"), ("jacobian", "jax"), 1.0),
        Claim(("jacobian", "tcalc c"), ("jacobian", "gradbench"), 1.5),
    ),
)  # fmt: skip
