"""Bundle adjustment: cameras and points.

Photographs from many places show the same points; where were the cameras, and where are the points?
Observation o is where camera `cams[ci_o]`, a rotation vector and a translation, saw point
`pts[pi_o]`, in pixels. The objective is the negative log-likelihood of pixels with normal errors,
plus that of rough positions which the cameras reported; without these, moving and turning
everything together changes nothing and the Hessian is singular.

An observation joins one camera and one point, which the formula says by its selections. So the
Hessian is an arrow: 6 x 6 blocks of cameras, 3 x 3 blocks of points, and between them one 6 x 3
block for every observation. `solve` eliminates the points block by block and factors what is left
for the cameras (a Schur complement). The Hessian is exact, not Gauss and Newton's: far from the
solution it is often indefinite, `tc.newton` damps and shortens its steps there, and at the end
convergence is quadratic.

Scene, noise and rough positions are simulated: points in a cube seen from random places, errors of
one pixel with a focal length of 600 pixels.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import tcalc as tc

from .report import BLUE, GREEN, ORANGE, Figure, Found, Table, axes, save, size, two_colours

FOCAL = 600.0  # pixels
NOISE, ROUGH = 1.0, 0.02  # of the pixels; of what cameras report (radians, lengths)


def project(xp: Any, cams: Any, x: Any) -> Any:
    """Pixels of points x, each before its own camera: Rodrigues' formula and a pinhole."""
    w, t = cams[:, :3], cams[:, 3:]
    square = xp.sum(w * w, axis=1)
    angle = xp.sqrt(square)
    turned = (
        xp.cos(angle)[:, None] * x
        + (xp.sin(angle) / angle)[:, None] * xp.cross(w, x)
        + ((1 - xp.cos(angle)) / square * xp.sum(w * x, axis=1))[:, None] * w
    )
    before = turned + t
    return FOCAL * before[:, :2] / before[:, 2:]


def objective() -> tc.Expr:
    cams, pts = tc.var("cams", ("n", 6)), tc.var("pts", ("p", 3))
    ci, pi = tc.var("ci", ("o",), integer=True), tc.var("pi", ("o",), integer=True)
    seen, reported = tc.var("seen", ("o", 2)), tc.var("reported", ("n", 6))
    error = (project(tc, cams[ci], pts[pi]) - seen) / NOISE
    return tc.sum(error**2) / 2 + tc.sum(((cams - reported) / ROUGH) ** 2) / 2


def scene(cameras: int, points: int, views: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The data, and where the search begins: reported cameras, points off by a tenth."""
    rng = np.random.default_rng(0)
    turns = 0.5 * rng.normal(size=(cameras, 3))
    places = [0.0, 0.0, 5.0] + 0.3 * rng.normal(size=(cameras, 3))
    cams, pts = np.hstack([turns, places]), rng.uniform(-1, 1, size=(points, 3))
    ci = np.argsort(rng.random((points, cameras)), axis=1)[:, :views].ravel()
    pi = np.repeat(np.arange(points), views)
    seen = project(np, cams[ci], pts[pi]) + NOISE * rng.normal(size=(points * views, 2))
    reported = cams + ROUGH * rng.normal(size=cams.shape)
    start = {"cams": reported, "pts": pts + 0.1 * rng.normal(size=pts.shape)}
    return {"ci": ci, "pi": pi, "seen": seen, "reported": reported}, start


def distances(data: dict[str, Any], point: dict[str, Any]) -> Any:
    """How many pixels lie between where every point is seen and where it should be."""
    expected = project(np, point["cams"][data["ci"]], point["pts"][data["pi"]])
    return np.linalg.norm(expected - data["seen"], axis=1)


def fit(cameras: int, points: int, views: int) -> dict[str, Any]:
    data, start = scene(cameras, points, views)
    way: list[tuple[float, float]] = []

    def watch(now: Any) -> None:
        way.append((float(now.fun), max(float(np.abs(g).max()) for g in now.jac.values())))

    found = tc.newton(objective(), start, data=data, callback=watch)
    return {
        "found": found, "way": way, "before": distances(data, start),
        "after": distances(data, found.x), "unknowns": 6 * cameras + 3 * points,
    }  # fmt: skip


def main(
    folder: Path,
    scenes: tuple[tuple[int, int, int], ...] = ((5, 20, 3), (10, 200, 5), (30, 2000, 8)),
) -> Found:
    runs = [fit(*sizes) for sizes in scenes]
    small, large = runs[0], runs[-1]
    result = Found(
        facts={
            "converged": all(run["found"].success for run in runs),
            "after": [root(run["after"]) for run in runs],
            "bytes": [run["found"].hess.nbytes for run in runs],
        },
        formulas=[
            (
                "The Hessian's block of cameras and points, compressed",
                str(tc.compress(tc.jacobian(tc.grad(objective(), "cams"), "pts"))).split("\n")[0],
            ),
            ("What `hess.explain()` says of the largest scene", large["found"].hess.explain()),
        ],
        figures=[
            arrow(folder, small["found"].hess, scenes[0]),
            convergence(folder, scenes, runs),
            errors(folder, large),
        ],
    )
    result.tables = [
        Table(
            "Simulated scenes. Errors are root mean squares of pixel distances; noise alone makes "
            f"{NOISE * 2**0.5:.2f}, less what the fit absorbs.",
            ["cameras, points", "observations", "steps", "before", "after", "held", "dense"],
            [
                [f"{n}, {p}", str(p * v), str(run["found"].nit), f"{root(run['before']):.1f} px",
                 f"{root(run['after']):.2f} px", size(run["found"].hess.nbytes),
                 size(8 * run["unknowns"] ** 2)]
                for (n, p, v), run in zip(scenes, runs, strict=True)
            ],
        )
    ]  # fmt: skip
    return result


def root(distance: Any) -> float:
    return float(np.sqrt(np.mean(distance**2)))


def arrow(folder: Path, hessian: Any, sizes: tuple[int, int, int]) -> Figure:
    figure, panel = axes(1, 1, 4.6, 4.6)
    panel.imshow(hessian.todense() != 0, cmap=two_colours("white", BLUE), interpolation="nearest")
    panel.set_xticks([])
    panel.set_yticks([])
    edge = 6 * sizes[0]
    middle = edge + 3 * sizes[1] / 2
    panel.axhline(edge - 0.5, color=ORANGE, lw=0.8)
    panel.axvline(edge - 0.5, color=ORANGE, lw=0.8)
    panel.text(edge / 2, -1.5, "cameras", ha="center", va="bottom")
    panel.text(middle, -1.5, "points", ha="center", va="bottom")
    save(figure, folder, "bundle-arrow.svg")
    return Figure(
        "bundle-arrow.svg",
        f"Entries of the Hessian that are not zero: {sizes[0]} cameras and {sizes[1]} points, each "
        f"seen by {sizes[2]} cameras.",
    )


def convergence(folder: Path, scenes: tuple[tuple[int, int, int], ...], runs: list[Any]) -> Figure:
    figure, (left, right) = axes(1, 2, 8, 3.1)
    for (n, p, _), run, color in zip(scenes, runs, (GREEN, ORANGE, BLUE), strict=False):
        way = np.array(run["way"])
        steps = np.arange(1, len(way) + 1)
        left.semilogy(steps, way[:, 0], ".-", color=color, label=f"{n} cameras, {p} points")
        right.semilogy(steps, way[:, 1], ".-", color=color)
    left.set_ylabel("objective")
    right.set_ylabel("largest entry of the gradient")
    left.legend(frameon=False)
    for panel in (left, right):
        panel.set_xlabel("Newton steps")
    save(figure, folder, "bundle-convergence.svg")
    return Figure("bundle-convergence.svg", "The way of `tc.newton` with the exact Hessian.")


def errors(folder: Path, run: dict[str, Any]) -> Figure:
    figure, panel = axes(1, 1, 5.6, 3.1)
    ends = np.geomspace(0.02, max(run["before"].max(), 10), 60)
    panel.hist(run["before"], ends, color=ORANGE, alpha=0.8, label="before")
    panel.hist(run["after"], ends, color=BLUE, alpha=0.8, label="after")
    panel.set_xscale("log")
    panel.set_xlabel("reprojection error, pixels")
    panel.set_ylabel("observations")
    panel.legend(frameon=False)
    save(figure, folder, "bundle-errors.svg")
    return Figure(
        "bundle-errors.svg",
        f"Distances between seen and expected pixels of the largest scene's {len(run['after'])} "
        "observations.",
    )
