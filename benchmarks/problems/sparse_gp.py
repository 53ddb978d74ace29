"""Sparse Gaussian process regression, Titsias' bound with m inducing inputs z (Titsias 2009).

With k(x, x') = e^s exp(-sum_d e^w_d (x_d - x'_d)^2 / 2), noise v = e^t, U = k(z, z) + jitter I,
C = k(z, X) and E = U + C C' / v, up to a constant,

f = (log|E| - log|U| + n t + (y'y + n e^s - tr(U^-1 C C')) / v - y'C' E^-1 C y / v^2) / 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..namespaces import solve_lower
from ..problem import Array, Case, Claim, Data, Form, Problem, Sizes

TEXT = "Titsias' bound: log N(y; 0, C'U^-1 C + e^t I) - tr(K - C'U^-1 C) e^-t / 2, and its minus"
JITTER = 1e-6  # of the signal's variance


def objective(xp: Any, data: Any) -> Any:
    X, y, z, s = data["X"], data["y"], data["z"], data["s"]
    scale, noise = xp.exp(data["w"] / 2), xp.exp(data["t"] / 2)
    left, right = z * scale, X * scale
    rows, columns = xp.sum(left * left, 1) / 2, xp.sum(right * right, 1) / 2
    inner = xp.exp(s - rows[:, None] - rows[None, :] + left @ left.T)
    cross = xp.exp(s - rows[:, None] - columns[None, :] + left @ right.T)
    factor = xp.linalg.cholesky(inner + JITTER * xp.exp(s) * xp.eye(len(z)))
    white = solve_lower(xp, factor, cross) / noise
    outer = xp.linalg.cholesky(xp.eye(len(z)) + white @ white.T)
    mean = solve_lower(xp, outer, (white @ y)[:, None]) / noise
    spread = (xp.sum(y * y) + len(y) * xp.exp(s)) / noise**2 - xp.sum(white * white)
    rest = spread - xp.sum(mean * mean) + len(y) * data["t"]
    return xp.sum(xp.log(xp.diag(outer))) + rest / 2


def expression(sizes: Sizes) -> Any:
    import tcalc as tc

    X, y, z = tc.var("X", ("n", "d")), tc.var("y", ("n",)), tc.var("z", ("m", "d"))
    w, s, t = tc.var("w", ("d",)), tc.var("s"), tc.var("t")
    weights, noise = tc.exp(w), tc.exp(t / 2)
    rows, columns = z**2 @ weights / 2, X**2 @ weights / 2
    inner = tc.exp(s - rows[:, None] - rows[None, :] + (z * weights) @ z.T)
    cross = tc.exp(s - rows[:, None] - columns[None, :] + (z * weights) @ X.T)
    factor = tc.linalg.cholesky(inner + JITTER * tc.exp(s) * tc.eye("m"))
    white = tc.linalg.solve_triangular(factor, cross, lower=True) / noise
    outer = tc.linalg.cholesky(tc.eye("m") + white @ white.T)
    mean = tc.linalg.solve_triangular(outer, white @ y, lower=True) / noise
    count = tc.sum(tc.ones("n"))
    spread = (y @ y + count * tc.exp(s)) / noise**2 - tc.sum(white**2)
    return tc.linalg.sumlogdiag(outer) + (spread - mean @ mean + count * t) / 2


def of_size(n: int, m: int = 20, d: int = 2) -> Case:
    def load(rng: np.random.Generator) -> dict[str, Array]:
        X = rng.uniform(-2, 2, (n, d))
        y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] ** 2 + 0.3 * rng.standard_normal(n)
        return with_parameters(X, y - y.mean(), m, rng)

    return Case(f"n={n}, m={m}, d={d}", {"n": n, "m": m, "d": d}, load)


def diabetes() -> Case:
    """Body mass index and blood pressure only, so that the inducing inputs have room to matter."""

    def load(rng: np.random.Generator) -> dict[str, Array]:
        from sklearn.datasets import load_diabetes

        data = load_diabetes()
        X = data.data[:, [2, 3]] / data.data[:, [2, 3]].std(axis=0)
        return with_parameters(X, (data.target - data.target.mean()) / data.target.std(), 10, rng)

    return Case("diabetes", {"n": 442, "m": 10, "d": 2}, load)


def with_parameters(X: Array, y: Array, m: int, rng: np.random.Generator) -> dict[str, Array]:
    z = X[rng.choice(len(X), m, replace=False)] + 0.05 * rng.standard_normal((m, X.shape[1]))
    # short length scales: the form by hand has inverses, which lose digits where U is singular
    w = 1.5 + 0.2 * rng.standard_normal((X.shape[1],))
    return {"X": X, "y": y, "z": z, "w": w, "s": np.array(0.2), "t": np.array(-1.0)}


def kernel(a: Array, b: Array, data: Data) -> Array:
    left, right = a * np.exp(data["w"] / 2), b * np.exp(data["w"] / 2)
    rows = np.einsum("id,id->i", left, left) / 2
    columns = np.einsum("id,id->i", right, right) / 2
    found = left @ right.T
    found -= rows[:, None]
    found += (data["s"] - columns)[None, :]
    return np.exp(found, out=found)


def factorise(data: Data) -> tuple[Array, ...]:
    """k(z, z), C, the factor of U, L^-1 C / sqrt(v), the factor B of I + white white'."""
    from scipy.linalg.blas import dtrsm

    z, noise = data["z"], np.exp(data["t"] / 2)
    inner, cross = kernel(z, z, data), kernel(z, data["X"], data)
    factor = np.linalg.cholesky(inner + JITTER * np.exp(data["s"]) * np.eye(len(z)))
    white = dtrsm(1 / noise, factor.T, cross.T, side=1, lower=0).T
    square = white @ white.T
    np.einsum("ii->i", square)[:] += 1
    return inner, cross, factor, white, np.linalg.cholesky(square)


def value(data: Data) -> Any:
    from scipy.linalg.lapack import dtrtrs

    _, _, _, white, outer = factorise(data)
    y, v = data["y"], np.exp(data["t"])
    mean = dtrtrs(outer, white @ y, lower=1)[0]
    spread = (y @ y + len(y) * np.exp(data["s"]) - mean @ mean) / v - np.vdot(white, white)
    return np.log(np.diagonal(outer)).sum() + (spread + len(y) * data["t"]) / 2


def inverses(data: Data) -> tuple[Array, ...]:
    """k(z, z), C, U^-1, E^-1 from the factors."""
    from scipy.linalg.lapack import dtrtri, dtrtrs

    inner, cross, factor, _, outer = factorise(data)
    root = dtrtri(factor, lower=1)[0]
    whole = dtrtrs(outer, root, lower=1)[0]
    return inner, cross, root.T @ root, whole.T @ whole


@dataclass(frozen=True)
class Adjoints:
    """S = E^-1 - U^-1 + mu mu' / v^2 with mu = E^-1 C y, and the gradients in C and U.

    f_C = S C / v - mu y' / v^2,  f_U = (S + T T' / v) / 2 with T = U^-1 C.
    """

    inner: Array
    cross: Array
    V: Array  # U^-1
    W: Array  # E^-1
    mu: Array
    S: Array
    T: Array
    in_cross: Array
    in_inner: Array

    @classmethod
    def of(cls, data: Data) -> Adjoints:
        y, v = data["y"], np.exp(data["t"])
        inner, cross, V, W = inverses(data)
        mu = W @ (cross @ y)
        S = W - V + np.outer(mu, mu) / v**2
        T = V @ cross
        in_cross = (S / v) @ cross
        in_cross -= np.outer(mu / v**2, y)
        return cls(inner, cross, V, W, mu, S, T, in_cross, (S + T @ T.T / v) / 2)


def in_inputs(M: Array, N: Array, data: Data) -> Array:
    """The gradient in z of a function whose gradients in log C and log k(z, z) are M and N."""
    X, z = data["X"], data["z"]
    rows = M.sum(-1) + 2 * N.sum(-1)
    return np.exp(data["w"]) * (M @ X + 2 * (N @ z) - rows[..., None] * z)


def in_weights(M: Array, N: Array, data: Data) -> Array:
    """The same in w."""
    X, z = data["X"], data["z"]
    squares = (M.sum(-1) + 2 * N.sum(-1)) @ z**2 + M.sum(-2) @ X**2
    products = ((M @ X + N @ z) * z).sum(-2)
    return np.exp(data["w"]) * (products - squares / 2)


def in_noise(adjoints: Adjoints, data: Data) -> Any:
    y, v, s = data["y"], np.exp(data["t"]), data["s"]
    a = adjoints
    total = y @ y + len(y) * np.exp(s) + np.vdot(a.S @ a.cross, a.cross)
    return (len(y) - total / v + 2 * (a.cross @ y) @ a.mu / v**2) / 2


def gradient(data: Data) -> tuple[Any, ...]:
    a = Adjoints.of(data)
    M, N = a.in_cross * a.cross, a.in_inner * a.inner
    return (
        in_inputs(M, N, data),
        in_weights(M, N, data),
        in_signal(M, N, a.in_inner, data) + len(data["y"]) * np.exp(data["s"] - data["t"]) / 2,
        in_noise(a, data),
    )


def in_signal(M: Array, N: Array, in_inner: Array, data: Data) -> Any:
    """In s, which the jitter has as a factor too."""
    jitter = JITTER * np.exp(data["s"])
    return M.sum((-2, -1)) + N.sum((-2, -1)) + jitter * np.trace(in_inner, axis1=-2, axis2=-1)


def exponents(b: Array, data: Data) -> Array:
    """Derivatives of log k(z, b) along each of z, w, s and t; z as an argument on the left only."""
    z, weights = data["z"], np.exp(data["w"])
    m, d = z.shape
    found = np.zeros((m * d + d + 2, m, len(b)))
    apart = z[:, None, :] - b[None, :, :]
    each = np.arange(m)
    in_z = found[: m * d].reshape(m, d, m, len(b))
    in_z[each, :, each, :] = -np.swapaxes(apart * weights, 1, 2)
    found[m * d : -2] = -np.moveaxis(apart**2 * weights, 2, 0) / 2
    found[-2] = 1
    return found


def hessian(data: Data) -> Any:
    """The gradient's derivative along every parameter, all at once."""
    X, z, y, v = data["X"], data["z"], data["y"], np.exp(data["t"])
    m, d = z.shape
    a = Adjoints.of(data)
    C, V, W, S, T, mu = a.cross, a.V, a.W, a.S, a.T, a.mu
    dC = exponents(X, data)
    dC *= C
    dK = exponents(z, data)
    dK[: m * d] += np.swapaxes(dK[: m * d], 1, 2)
    dK *= a.inner
    dU = dK.copy()
    dU[-2] += JITTER * np.exp(data["s"]) * np.eye(m)
    half = dC @ C.T / v
    dE = dU + half + np.swapaxes(half, 1, 2)
    dE[-1] -= C @ C.T / v
    dV, dW = -V @ dU @ V, -W @ dE @ W
    dmu = (dC @ y - dE @ mu) @ W
    dS = dW - dV + (dmu[:, :, None] * mu + mu[:, None] * dmu[:, None, :]) / v**2
    dS[-1] -= 2 * np.outer(mu, mu) / v**2
    in_cross = (dS @ C + S @ dC) / v - dmu[:, :, None] * (y / v**2)
    in_cross[-1] += np.outer(mu, y) / v**2 - a.in_cross
    half = (dV @ C + V @ dC) @ T.T / v
    in_inner = (dS + half + np.swapaxes(half, 1, 2)) / 2
    in_inner[-1] -= T @ T.T / (2 * v)
    dM = in_cross * C + a.in_cross * dC
    dN = in_inner * a.inner + a.in_inner * dK
    return blocks(a, dM, dN, in_inner, (dS[-1], dmu[-1]), data)


def blocks(
    a: Adjoints, dM: Array, dN: Array, in_inner: Array, along_t: tuple[Array, Array], data: Data
) -> Any:
    """The blocks over (z, w, s, t), with what z, w, s and t do directly."""
    m, d = data["z"].shape
    y, v, weights = data["y"], np.exp(data["t"]), np.exp(data["w"])
    M, N = a.in_cross * a.cross, a.in_inner * a.inner
    each, column = np.arange(m), np.arange(d)
    by_z = in_inputs(dM, dN, data)
    direct = by_z[: m * d].reshape(m, d, m, d)
    for k in column:
        direct[:, k, :, k] += 2 * weights[k] * N
        direct[each, k, each, k] -= weights[k] * (M.sum(1) + 2 * N.sum(1))
    by_z[m * d + column, :, column] += in_inputs(M, N, data).T
    by_w = in_weights(dM, dN, data)[m * d :]
    by_w[column, column] += in_weights(M, N, data)
    by_s = in_signal(dM, dN, in_inner, data)[-2:]
    signal = len(y) * np.exp(data["s"]) / (2 * v)
    by_s[0] += JITTER * np.exp(data["s"]) * np.trace(a.in_inner) + signal
    by_s[1] -= signal
    dS, dmu = along_t
    b, n = a.cross @ y, len(y)
    by_t = n / 2 - in_noise(a, data) - np.vdot(dS @ a.cross, a.cross) / (2 * v)
    by_t += (b @ dmu - b @ a.mu) / v**2
    zz, zw, zs, zt = direct, np.moveaxis(by_z[m * d : -2], 0, 2), by_z[-2], by_z[-1]
    return (
        (zz, zw, zs, zt),
        (np.moveaxis(zw, 2, 0), by_w[:d], by_w[d], by_w[d + 1]),
        (zs, by_w[d], by_s[0], by_s[1]),
        (zt, by_w[d + 1], by_s[1], by_t),
    )


def gradient_flops(s: Sizes) -> float:
    return 8.0 * s["m"] ** 2 * s["n"]


PROBLEM = Problem(
    name="sparse-gp",
    wrt=("z", "w", "s", "t"),
    text=TEXT,
    objective=objective,
    expression=expression,
    cases={
        "tiny": (of_size(9, 3),),
        "small": (of_size(100, 10), of_size(300, 10)),
        "paper": (of_size(1000), diabetes()),
        "real": (diabetes(),),
    },
    of_size=of_size,
    hand={
        "value": {"": Form(value, lambda s: 2.0 * s["m"] ** 2 * s["n"])},
        "gradient": {"": Form(gradient, gradient_flops)},
        "hessian": {
            "": Form(hessian, lambda s: (s["m"] * s["d"] + s["d"] + 2) * gradient_flops(s))
        },
    },
    claims=(
        Claim(("gradient", "tcalc"), ("gradient", "jax"), 1.0, least=100),
        Claim(("hessian", "tcalc"), ("hessian", "jax"), 1.0, least=100),
    ),
    fit="trust-exact",
)
