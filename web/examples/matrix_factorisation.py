"""Matrix factorisation: handwritten digits.

1797 images of 64 pixels (scikit-learn's digits) are written as U V', with k numbers for each image
and k pictures, the columns of V. With a penalty c on both factors, the objective is |T - U V'|^2 /
2 + c (|U|^2 + |V|^2) / 2.

The Hessian with respect to U alone has (1797 k)^2 entries; what differs among them is one k x k
matrix, the same for every image. Alternating Newton solves with that core, first for U, then for V:
each half step is exact, and the valley between them is crossed slowly. Newton's method in both at
once (`tc.newton`) eliminates U, leaves 64 k equations for V, and ends quadratically. Rotating both
factors changes nothing, so minima are not isolated points and the joint Hessian is singular at
them; whether one is reached is read off the gradient and the value.

How far a point is from the best one is known here: with this penalty, the smallest value follows
from the singular values s of T as the sum of c s - c^2 / 2 over the k largest and of s^2 / 2 over
the others.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import tcalc as tc

from .report import BLUE, ORANGE, Figure, Found, Table, axes, save, size

PENALTY = 1.0


def objective() -> tc.Expr:
    T, U, V = tc.var("T", ("n", "m")), tc.var("U", ("n", "k")), tc.var("V", ("m", "k"))
    c = tc.var("c")
    return tc.sum((T - U @ V.T) ** 2) / 2 + c / 2 * (tc.sum(U**2) + tc.sum(V**2))


def alternating(point: dict[str, Any], sweeps: int) -> tuple[dict[str, Any], list[float]]:
    """Newton steps in U and in V by turns; where they end, and the objective on the way."""
    f = objective()
    value = tc.compile(f)
    steps = {
        x: (tc.compile(tc.grad(f, x)), tc.compile(tc.hessian(f, x), structured=True)) for x in "UV"
    }
    way = [float(value(point))]
    for _ in range(sweeps):
        for x, (slope, hessian) in steps.items():
            point = {**point, x: point[x] - hessian(point).solve(slope(point))}
        way.append(float(value(point)))
    return point, way


def fit(T: Any, k: int, sweeps: int, steps: int) -> dict[str, Any]:
    """A few sweeps, then Newton's method in both; beside it, more sweeps."""
    rng = np.random.default_rng(0)
    n, m = T.shape
    start = {
        "T": T, "c": PENALTY,
        "U": 0.3 * rng.normal(size=(n, k)), "V": 0.3 * rng.normal(size=(m, k)),
    }  # fmt: skip
    near, first = alternating(start, sweeps)
    _, more = alternating(near, steps)
    joint: list[float] = [first[-1]]
    found = tc.newton(
        objective(),
        {"U": near["U"], "V": near["V"]},
        data={"T": T, "c": PENALTY},
        max_steps=steps,
        callback=lambda now: joint.append(float(now.fun)),
    )
    s = np.linalg.svd(T, compute_uv=False)
    best = float((PENALTY * s[:k] - PENALTY**2 / 2).sum() + (s[k:] ** 2).sum() / 2)
    return {"found": found, "first": first, "more": more, "joint": joint, "best": best}


def main(
    folder: Path, images: int = 1797, ranks: tuple[int, ...] = (5, 10), sweeps: int = 10
) -> Found:
    from sklearn.datasets import load_digits

    T = load_digits().data[:images] / 16
    n, m = T.shape
    f = objective()
    fits = {k: fit(T, k, sweeps, 30) for k in ranks}
    k = ranks[0]
    curvature = tc.compile(tc.hessian(f, "U"), structured=True)
    result = Found(
        formulas=[
            ("Gradient with respect to U", str(tc.grad(f, "U"))),
            ("Hessian with respect to U, compressed", str(tc.compress(tc.hessian(f, "U")))),
        ]
    )
    rows = []
    for k, run in fits.items():
        found = run["found"]
        held = curvature({"T": T, "c": PENALTY, **found.x})
        gap = abs(found.fun - run["best"]) / run["best"]
        rows.append(
            [f"k = {k}", size(held.nbytes), size(8 * (n * k) ** 2), size(found.hess.nbytes),
             size(8 * ((n + m) * k) ** 2), str(found.nit), f"{max(gap, 1e-15):.0e}"]
        )  # fmt: skip
        result.facts[f"converged {k}"] = bool(found.success)
        result.facts[f"gap {k}"] = gap
        result.facts[f"bytes {k}"] = held.nbytes
    result.tables.append(
        Table(
            f"{n} images of {m} pixels. Steps: of Newton's method after {sweeps} sweeps. Gap: from "
            "the best value, relative, at least 1e-15.",
            ["", "U: held", "U: dense", "U, V: held", "U, V: dense", "steps", "gap"],
            rows,
        )
    )
    result.figures = [
        convergence(folder, fits, sweeps),
        components(folder, fits[max(ranks)]["found"]),
    ]
    return result


def convergence(folder: Path, fits: dict[int, Any], sweeps: int) -> Figure:
    figure, panels = axes(1, len(fits), 8, 3.1, sharey=True, squeeze=False)
    for panel, (k, run) in zip(panels[0], fits.items(), strict=True):
        floor = 1e-15 * run["best"]

        def above(values: list[float], best: float = run["best"], floor: float = floor) -> Any:
            return np.maximum(np.array(values) - best, floor) / best

        slow = run["first"] + run["more"][1:]
        panel.semilogy(above(slow), color=ORANGE, label="alternating")
        fast = above(run["joint"])
        panel.semilogy(
            sweeps + np.arange(len(fast)), fast, "o-", ms=3.5, color=BLUE, label="both at once"
        )
        panel.set_title(f"k = {k}")
        panel.set_xlabel("sweeps, then steps")
    panels[0, 0].set_ylabel("(f - best) / best")
    panels[0, 0].legend(frameon=False)
    save(figure, folder, "factorisation-convergence.svg")
    return Figure(
        "factorisation-convergence.svg",
        f"How far above the best value; after {sweeps} sweeps, one more sweep against one Newton "
        "step in U and V together. Values below 1e-15 are drawn there.",
    )


def components(folder: Path, found: Any) -> Figure:
    """The columns of V, turned so that U'U is diagonal: the objective does not mind."""
    turn = np.linalg.svd(found.x["U"], full_matrices=False)[2]
    pictures = (found.x["V"] @ turn.T).T.reshape(-1, 8, 8)
    columns = 5
    figure, panels = axes(
        -(-len(pictures) // columns), columns, 7, 1.5 * -(-len(pictures) // columns)
    )
    for panel in np.ravel(panels):
        panel.set_axis_off()
    for number, (panel, picture) in enumerate(zip(np.ravel(panels), pictures, strict=False)):
        most = np.abs(picture).max()
        panel.imshow(picture, cmap="RdBu", vmin=-most, vmax=most)
        panel.set_title(str(number + 1))
    save(figure, folder, "factorisation-components.svg")
    return Figure(
        "factorisation-components.svg",
        f"The {len(pictures)} columns of V as pictures, turned to be orthogonal, the most "
        "important first; blue and red are opposite signs.",
    )
