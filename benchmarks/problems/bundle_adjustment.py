"""Bundle adjustment: cameras and points that explain where the points were seen.

Observation o is of point x = pts[pi_o] by camera (w, t) = cams[ci_o]: it lies at R(w) x + t before
the camera, R by Rodrigues' formula, and is seen at its first two coordinates by the third. f is
half the squares of what is seen less what was measured, and of all unknowns, times c, as all could
be moved together. The exact Hessian has a 6 x 6 block for every camera, a 3 x 3 block for every
point and a 6 x 3 block for every observation; the points are eliminated.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..problem import USUAL, Array, Case, Claim, Data, Form, Memory, Problem, Sizes

TEXT = "sum_o |project(cams[ci_o], pts[pi_o]) - z_o|^2 / 2 + c/2 (sum(cams.^2) + sum(pts.^2))"
Core = tuple[Array, Array, Array]
Pair = tuple[Array, Array]


def penalised(xp: Any, data: Any, residual: Any) -> Any:
    unknowns = xp.sum(data["cams"] ** 2) + xp.sum(data["pts"] ** 2)
    return xp.sum(residual**2) / 2 + data["c"] / 2 * unknowns


def project(xp: Any, camera: Any, x: Any) -> Any:
    """Rodrigues' formula and the pinhole, observation by observation."""
    w, t = camera[:, :3], camera[:, 3:]
    square = xp.sum(w * w, 1)
    angle = xp.sqrt(square)
    turned = (
        xp.cos(angle)[:, None] * x
        + (xp.sin(angle) / angle)[:, None] * crossed(xp, w, x)
        + ((1 - xp.cos(angle)) / square * xp.sum(w * x, 1))[:, None] * w
    )
    seen = turned + t
    return seen[:, :2] / seen[:, 2:]


def crossed(xp: Any, a: Any, b: Any) -> Any:
    """The cross product from permuted entries, which every library differentiates."""
    i, j = [1, 2, 0], [2, 0, 1]
    return a[:, i] * b[:, j] - a[:, j] * b[:, i]


def objective(xp: Any, data: Any) -> Any:
    seen = project(xp, data["cams"][data["ci"]], data["pts"][data["pi"]])
    return penalised(xp, data, seen - data["z"])


def expression(sizes: Sizes) -> Any:
    import tcalc as tc

    cams, pts = tc.var("cams", ("n", 6)), tc.var("pts", ("p", 3))
    ci, pi = tc.var("ci", ("o",), integer=True), tc.var("pi", ("o",), integer=True)
    w, t, x = cams[ci][:, :3], cams[ci][:, 3:], pts[pi]
    square = tc.sum(w * w, axis=1)
    angle = tc.sqrt(square)
    turned = (
        tc.cos(angle)[:, None] * x
        + (tc.sin(angle) / angle)[:, None] * tc.cross(w, x)
        + ((1 - tc.cos(angle)) / square * tc.sum(w * x, axis=1))[:, None] * w
    )
    seen = turned + t
    residual = seen[:, :2] / seen[:, 2:] - tc.var("z", ("o", 2))
    return penalised(tc, {"cams": cams, "pts": pts, "c": tc.var("c")}, residual)


def scene(n: int, p: int, views: int) -> Case:
    """n cameras, p points, each seen by so many cameras; dense Hessians only of tiny scenes."""

    def load(rng: np.random.Generator) -> dict[str, Array]:
        turns = 0.5 * rng.standard_normal((n, 3))
        places = np.array([0.0, 0.0, 5.0]) + 0.3 * rng.standard_normal((n, 3))
        cams, pts = np.hstack([turns, places]), rng.uniform(-1, 1, (p, 3))
        ci = np.argsort(rng.random((p, n)), axis=1)[:, :views].ravel()
        pi = np.repeat(np.arange(p), views)
        seen = project(np, cams[ci], pts[pi])
        return {
            "cams": cams + 0.01 * rng.standard_normal(cams.shape),
            "pts": pts + 0.01 * rng.standard_normal(pts.shape),
            "ci": ci,
            "pi": pi,
            "z": seen + 0.003 * rng.standard_normal(seen.shape),
            "c": np.array(0.01),
        }

    unknowns = 6 * n + 3 * p
    held = tuple([q for q in USUAL if q != "hessian" or unknowns <= 500])
    return Case(
        f"n={n} cameras, {p} points, {p * views} observations",
        {"n": n, "p": p, "o": p * views},
        load,
        held,
    )


def of_size(n: int) -> Case:
    return scene(n, 100 * n, min(n, 10))


def value(data: Data) -> Any:
    return objective(np, data)


def skew(v: Array) -> Array:
    """The matrices of v x, observation by observation."""
    found = np.zeros((len(v), 3, 3))
    found[:, [2, 0, 1], [1, 2, 0]] = v
    found[:, [1, 2, 0], [2, 0, 1]] -= v
    return found


def outer(a: Array, b: Array) -> Array:
    return a[:, :, None] * b[:, None, :]


class Rotations:
    """Every observation's rotation vector w and the coefficients of Rodrigues' formula.

    R x = k0 x + k1 w x x + k2 (w' x) w with k0 = cos, k1 = sin/angle, k2 = (1 - cos)/angle^2;
    `first` and `second` are their derivatives with respect to w'w.
    """

    def __init__(self, data: Data) -> None:
        w = data["cams"][:, :3]
        square = (w * w).sum(axis=1)
        angle = np.sqrt(square)
        k0, k1, k2 = np.cos(angle), np.sin(angle) / angle, (1 - np.cos(angle)) / square
        d0, d1, d2 = -k1 / 2, (k0 - k1) / (2 * square), (k1 - 2 * k2) / (2 * square)
        e = [-d1 / 2, (d0 - 3 * d1) / (2 * square), (d1 - 4 * d2) / (2 * square)]
        matrices = k1[:, None, None] * skew(w) + k2[:, None, None] * outer(w, w)
        np.einsum("ijj->ij", matrices)[:] += k0[:, None]
        ci = data["ci"]
        self.w, self.matrix = w[ci], matrices[ci]
        self.k, self.first, self.second = np.array([[k0, k1, k2], [d0, d1, d2], e])[:, :, ci]

    def along(self, x: Array) -> Array:
        """d(R x)/dw."""
        _, k1, k2 = self.k
        d0, d1, d2 = 2 * self.first
        wx = (self.w * x).sum(axis=1)
        change = d0[:, None] * x + d1[:, None] * np.cross(self.w, x) + (d2 * wx)[:, None] * self.w
        found = outer(change, self.w) - k1[:, None, None] * skew(x)
        found += outer(k2[:, None] * self.w, x)
        np.einsum("ijj->ij", found)[:] += (k2 * wx)[:, None]
        return found

    def bent(self, g: Array, x: Array) -> Array:
        """The second derivative of g' R x with respect to w."""
        w, (_, _, k2) = self.w, self.k
        d, e = 2 * self.first, 4 * self.second
        normal = np.cross(x, g)
        gw, wx = (g * w).sum(axis=1), (w * x).sum(axis=1)
        products = np.array([(g * x).sum(axis=1), (w * normal).sum(axis=1), gw * wx])
        slope = d[1][:, None] * normal + d[2][:, None] * (wx[:, None] * g + gw[:, None] * x)
        half = outer(slope + ((e * products).sum(axis=0) / 2)[:, None] * w, w)
        half += outer(k2[:, None] * g, x)
        found = half + half.swapaxes(1, 2)
        np.einsum("ijj->ij", found)[:] += (d * products).sum(axis=0)[:, None]
        return found

    def mixed(self, g: Array) -> Array:
        """The derivative with respect to w and x of g' R x."""
        w, (_, k1, k2) = self.w, self.k
        d0, d1, d2 = 2 * self.first
        gw = (g * w).sum(axis=1)
        change = d0[:, None] * g + d1[:, None] * np.cross(g, w)
        change += (d2 * gw)[:, None] * w
        found = outer(w, change) + outer(k2[:, None] * g, w)
        found -= k1[:, None, None] * skew(g)
        np.einsum("ijj->ij", found)[:] += (k2 * gw)[:, None]
        return found


def sights(data: Data, turns: Rotations) -> tuple[Array, Array, Array]:
    """The residuals, and their Jacobians with respect to where the point lies before the camera."""
    x = data["pts"][data["pi"]]
    place = (turns.matrix @ x[:, :, None])[:, :, 0] + data["cams"][data["ci"], 3:]
    depth = 1 / place[:, 2]
    seen = place[:, :2] * depth[:, None]
    slope = np.zeros((len(x), 2, 3))
    slope[:, 0, 0] = slope[:, 1, 1] = depth
    slope[:, :, 2] = -seen * depth[:, None]
    return seen - data["z"], slope, depth


def curvature(residual: Array, slope: Array, depth: Array) -> Array:
    """Of half the squares, with respect to where the point lies: J'J and the pinhole's own."""
    found = slope.swapaxes(1, 2) @ slope
    cross = -residual * (depth * depth)[:, None]
    found[:, :2, 2] += cross
    found[:, 2, :2] += cross
    found[:, 2, 2] -= 2 * (residual * slope[:, :, 2]).sum(axis=1) * depth
    return found


def added(index: Array, count: int, values: Array) -> Array:
    """Sums of the values of every camera or point."""
    from scipy import sparse

    items = len(index)
    ends = np.arange(items + 1)
    places = sparse.csr_array((np.ones(items), index, ends), shape=(items, count))
    return (places.T @ values.reshape(items, -1)).reshape(count, *values.shape[1:])


def gradient(data: Data) -> Pair:
    turns = Rotations(data)
    residual, slope, _ = sights(data, turns)
    force = (residual[:, None, :] @ slope)[:, 0]
    back = (force[:, None, :] @ turns.along(data["pts"][data["pi"]]))[:, 0]
    cams = added(data["ci"], len(data["cams"]), np.hstack([back, force]))
    pts = added(data["pi"], len(data["pts"]), (force[:, None, :] @ turns.matrix)[:, 0])
    return cams + data["c"] * data["cams"], pts + data["c"] * data["pts"]


def core(data: Data) -> Core:
    """The blocks of cameras, of observations, and of points."""
    turns = Rotations(data)
    x = data["pts"][data["pi"]]
    residual, slope, depth = sights(data, turns)
    force = (residual[:, None, :] @ slope)[:, 0]
    middle = curvature(residual, slope, depth)
    along = turns.along(x)
    pushed = middle @ turns.matrix
    camera = np.empty((len(x), 6, 6))
    camera[:, 3:, :3] = middle @ along
    camera[:, :3, 3:] = camera[:, 3:, :3].swapaxes(1, 2)
    camera[:, :3, :3] = along.swapaxes(1, 2) @ camera[:, 3:, :3] + turns.bent(force, x)
    camera[:, 3:, 3:] = middle
    both = np.empty((len(x), 6, 3))
    both[:, :3] = along.swapaxes(1, 2) @ pushed + turns.mixed(force)
    both[:, 3:] = pushed
    cams = added(data["ci"], len(data["cams"]), camera)
    pts = added(data["pi"], len(data["pts"]), turns.matrix.swapaxes(1, 2) @ pushed)
    for blocks in (cams, pts):
        np.einsum("ijj->ij", blocks)[:] += data["c"]
    return cams, both, pts


def times(core: Core, data: Data, v: Pair) -> Pair:
    (cams, both, pts), (u, x), ci, pi = core, v, data["ci"], data["pi"]
    across = added(ci, len(u), (both @ x[pi, :, None])[:, :, 0])
    back = added(pi, len(x), (both.swapaxes(1, 2) @ u[ci, :, None])[:, :, 0])
    return (cams @ u[:, :, None])[:, :, 0] + across, (pts @ x[:, :, None])[:, :, 0] + back


def hessian(data: Data) -> Any:
    cams, both, pts = core(data)
    n, p = len(cams), len(pts)
    first, last = np.zeros((n, 6, n, 6)), np.zeros((p, 3, p, 3))
    cross = np.zeros((n, 6, p, 3))
    first[np.arange(n), :, np.arange(n), :] = cams
    last[np.arange(p), :, np.arange(p), :] = pts
    np.add.at(cross.swapaxes(1, 2), (data["ci"], data["pi"]), both)
    return (first, cross), (cross.transpose(2, 3, 0, 1), last)


def panel(data: Data, both: Array, n: int, p: int) -> Any:
    """The blocks of observations as a sparse matrix of all cameras by all points."""
    from scipy import sparse

    order = np.lexsort((data["pi"], data["ci"]))
    ends = np.searchsorted(data["ci"][order], np.arange(n + 1))
    blocks = (both[order], data["pi"][order], ends)
    return sparse.bsr_array(blocks, shape=(6 * n, 3 * p)).tocsr()


def newton(data: Data, rhs: Pair, dense: bool) -> Pair:
    """The points eliminated: with V = L L' of each and Z = E L'^-1, the cameras' is U - Z Z'."""
    from scipy.linalg import cho_factor, cho_solve

    (cams, both, pts), (u, x) = core(data), rhs
    n, p = len(cams), len(pts)
    inverse = np.linalg.inv(np.linalg.cholesky(pts))
    scaled = panel(data, both @ inverse[data["pi"]].swapaxes(1, 2), n, p)
    white = (inverse @ x[:, :, None]).ravel()
    left = np.zeros((6 * n, 6 * n))
    left.reshape(n, 6, n, 6)[np.arange(n), :, np.arange(n), :] = cams
    if dense:
        rows = scaled.toarray()
        left -= rows @ rows.T
    else:
        left -= (scaled @ scaled.T).toarray()
    factor = cho_factor(left, overwrite_a=True, check_finite=False)
    a = np.asarray(cho_solve(factor, u.ravel() - scaled @ white, check_finite=False))
    white -= scaled.T @ a
    b = (inverse.swapaxes(1, 2) @ white.reshape(p, 3, 1))[:, :, 0]
    return a.reshape(n, 6), b


def jax_newton(arrays: Any, rhs: Any) -> Any:
    """The Hessian of one observation, mapped over them, summed up, and the points eliminated."""
    import jax
    import jax.numpy as jnp

    ci, pi = arrays["ci"], arrays["pi"]
    n, p = len(arrays["cams"]), len(arrays["pts"])

    def one(unknowns: Any, z: Any) -> Any:
        return jnp.sum((project(jnp, unknowns[None, :6], unknowns[None, 6:])[0] - z) ** 2) / 2

    both = jnp.hstack([arrays["cams"][ci], arrays["pts"][pi]])
    seen = jax.vmap(jax.hessian(one))(both, arrays["z"])
    U = jax.ops.segment_sum(seen[:, :6, :6], ci, n) + arrays["c"] * jnp.eye(6)
    V = jax.ops.segment_sum(seen[:, 6:, 6:], pi, p) + arrays["c"] * jnp.eye(3)
    inverse = jnp.linalg.inv(jnp.linalg.cholesky(V))
    scaled = seen[:, :6, 6:] @ inverse[pi].swapaxes(1, 2)
    Z = jnp.zeros((n, p, 6, 3)).at[ci, pi].add(scaled).transpose(0, 2, 1, 3).reshape(6 * n, 3 * p)
    left = jnp.zeros((n, 6, n, 6)).at[jnp.arange(n), :, jnp.arange(n)].add(U).reshape(6 * n, 6 * n)
    white = (inverse @ rhs[1][:, :, None]).ravel()
    factor = jax.scipy.linalg.cho_factor(left - Z @ Z.T)
    a = jax.scipy.linalg.cho_solve(factor, rhs[0].ravel() - Z @ white)
    b = inverse.swapaxes(1, 2) @ (white - Z.T @ a).reshape(p, 3, 1)
    return a.reshape(n, 6), b[:, :, 0]


def observed(operations: float) -> Any:
    """So many operations for every observation."""
    return lambda s: operations * s["o"]


def sparse_flops(s: Sizes) -> float:
    """Every pair of observations of one point adds a 6 x 6 block."""
    return 900.0 * s["o"] + 2 * 6 * 6 * 3 * s["o"] ** 2 / s["p"] + (6 * s["n"]) ** 3 / 3


def dense_flops(s: Sizes) -> float:
    return 900.0 * s["o"] + (6 * s["n"]) ** 2 * 3 * s["p"] + (6 * s["n"]) ** 3 / 3


PROBLEM = Problem(
    name="bundle-adjustment",
    wrt=("cams", "pts"),
    text=TEXT,
    objective=objective,
    expression=expression,
    cases={
        "tiny": (scene(3, 5, 2),),
        "small": (scene(10, 100, 5), scene(20, 1000, 10)),
        "paper": (scene(50, 1000, 10), scene(50, 5000, 10), scene(50, 20_000, 10)),
    },
    of_size=of_size,
    hand={
        "value": {"": Form(value, observed(60))},
        "gradient": {"": Form(gradient, observed(200))},
        "hessian": {"": Form(hessian, observed(900))},
        "core": {"": Form(core, observed(900))},
        "newton": {
            "sparse panel": Form(lambda data, rhs: newton(data, rhs, dense=False), sparse_flops),
            "dense panel": Form(lambda data, rhs: newton(data, rhs, dense=True), dense_flops),
        },
    },
    product=times,
    batched={"newton": {"by observation": jax_newton}},
    sparse=True,
    claims=(
        Claim(("core", "tcalc"), ("core", "hand"), 1.5),
        Claim(("newton", "tcalc"), ("newton", "hand sparse panel"), 2.0),
        Claim(("newton", "tcalc"), ("newton", "hand dense panel"), 2.0),
        Claim(("newton", "tcalc"), ("newton", "jax by observation"), 1.0, least=50),
        Memory(("core", "tcalc"), 400, "held", per="o", least=50),
        Memory(("newton", "tcalc"), 4096, "traced", per="o", least=50),
    ),
)
