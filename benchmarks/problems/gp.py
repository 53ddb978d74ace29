"""Gaussian process regression: a squared exponential kernel with one weight a feature (ARD).

f(w, s, t) = y' K^-1 y / 2 + log|K| / 2 with K_ij = e^s exp(-sum_d e^w_d (x_id - x_jd)^2 / 2)
+ e^t [i == j]; all parameters are logarithms. With alpha = K^-1 y and K_p the derivative of K,

f_p  = tr((K^-1 - alpha alpha') K_p) / 2
f_pq = (tr((K^-1 - alpha alpha') K_pq) - tr(K^-1 K_p K^-1 K_q)) / 2 + alpha' K_p K^-1 K_q alpha
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..namespaces import solve_lower
from ..problem import Array, Case, Claim, Data, Form, Limit, Problem, Sizes

TEXT = "y' K^-1 y / 2 + log|K| / 2, K = e^s exp(-sum_d e^w_d (x_id - x_jd)^2 / 2) + e^t I"


def objective(xp: Any, data: Any) -> Any:
    X, y = data["X"], data["y"]
    scaled = X * xp.exp(data["w"] / 2)
    square = xp.sum(scaled * scaled, 1) / 2
    exponent = data["s"] - square[:, None] - square[None, :] + scaled @ scaled.T
    kernel = xp.exp(exponent) + xp.exp(data["t"]) * xp.eye(len(y))
    factor = xp.linalg.cholesky(kernel)
    white = solve_lower(xp, factor, y[:, None])
    return xp.sum(white * white) / 2 + xp.sum(xp.log(xp.diag(factor)))


def expression(sizes: Sizes) -> Any:
    import tcalc as tc

    X, y, w = tc.var("X", ("n", "d")), tc.var("y", ("n",)), tc.var("w", ("d",))
    s, t = tc.var("s"), tc.var("t")
    squares = (X[:, None, :] - X[None, :, :]) ** 2
    kernel = tc.exp(s - squares @ tc.exp(w) / 2) + tc.exp(t) * tc.eye("n")
    factor = tc.linalg.cholesky(kernel)
    white = tc.linalg.solve_triangular(factor, y, lower=True)
    return white @ white / 2 + tc.linalg.sumlogdiag(factor)


def of_size(n: int, d: int = 4) -> Case:
    def load(rng: np.random.Generator) -> dict[str, Array]:
        features = rng.standard_normal((n, d))
        smooth = np.sin(2 * features[:, 0]) + features[:, 1] * features[:, -1]
        return with_parameters(features, smooth + 0.3 * rng.standard_normal(n), rng)

    return Case(f"n={n}, d={d}", {"n": n, "d": d}, load)


def diabetes() -> Case:
    def load(rng: np.random.Generator) -> dict[str, Array]:
        from sklearn.datasets import load_diabetes

        data = load_diabetes()
        features = np.array(data.data / data.data.std(axis=0))
        return with_parameters(
            features, (data.target - data.target.mean()) / data.target.std(), rng
        )

    return Case("diabetes", {"n": 442, "d": 10}, load)


def with_parameters(features: Array, y: Array, rng: np.random.Generator) -> dict[str, Array]:
    w = 0.3 * rng.standard_normal(features.shape[1]) - np.log(features.shape[1])
    return {"X": features, "y": y, "w": w, "s": np.array(0.1), "t": np.array(-1.0)}


def signal(data: Data) -> tuple[Array, Array]:
    """The features in units of the length scales, and the kernel without noise."""
    scaled = data["X"] * np.exp(data["w"] / 2)
    square = np.einsum("id,id->i", scaled, scaled) / 2
    kernel = scaled @ scaled.T  # one buffer twice: syrk
    kernel -= square[:, None]
    kernel += (data["s"] - square)[None, :]
    return scaled, np.exp(kernel, out=kernel)


def factorise(kernel: Array, data: Data) -> tuple[Array, Array]:
    """(F, L^-1 y); F is lower with column-major strides, in place of the kernel.

    Its upper triangle still holds the kernel's entries off the diagonal.
    """
    from scipy.linalg.lapack import dpotrf, dtrtrs

    np.einsum("ii->i", kernel)[:] = np.exp(data["s"]) + np.exp(data["t"])
    factor, failed = dpotrf(kernel.T, lower=1, clean=0, overwrite_a=1)
    if failed:
        raise np.linalg.LinAlgError("the kernel is not positive definite")
    return factor, dtrtrs(factor, data["y"], lower=1)[0]


def value(data: Data) -> Any:
    factor, white = factorise(signal(data)[1], data)
    return white @ white / 2 + np.log(np.diagonal(factor)).sum()


def adjoint(factor: Array, white: Array, data: Data) -> tuple[Array, Array]:
    """G = K^-1 - alpha alpha' times the kernel without noise, entry by entry, and G's diagonal.

    In place of the factor, whose other triangle holds the kernel.
    """
    from scipy.linalg.blas import dsyr
    from scipy.linalg.lapack import dpotri, dtrtrs

    alpha = dtrtrs(factor, white, lower=1, trans=1)[0]
    inverse, _ = dpotri(factor, lower=1, overwrite_c=1)
    inverse = dsyr(-1.0, alpha, lower=1, a=inverse, overwrite_a=1)
    diagonal = np.diagonal(inverse).copy()
    inverse *= inverse.T
    np.einsum("ii->i", inverse)[:] = np.exp(data["s"]) * diagonal
    return inverse, diagonal


def slopes(scaled: Array, weight: Array, diagonal: Array, data: Data) -> tuple[Array, Any, Any]:
    rows = weight.sum(axis=0)
    in_w = (np.einsum("id,id->d", scaled, weight @ scaled) - rows @ scaled**2) / 2
    return in_w, rows.sum() / 2, np.exp(data["t"]) * diagonal.sum() / 2


def gradient(data: Data) -> tuple[Array, Any, Any]:
    scaled, kernel = signal(data)
    weight, diagonal = adjoint(*factorise(kernel, data), data)
    return slopes(scaled, weight, diagonal, data)


def distances(weight: Array, scaled: Array) -> Array:
    """sum_ij M_ij (x_ia - x_ja)^2 (x_ib - x_jb)^2 for a symmetric M, by products with M alone."""
    n, d = scaled.shape
    square, pairs = scaled**2, (scaled[:, :, None] * scaled[:, None, :]).reshape(n, d * d)
    products = weight @ np.hstack([scaled, square, pairs])
    in_x, in_square, in_pairs = np.split(products, [d, 2 * d], axis=1)
    rows = weight.sum(axis=0)
    cubes = square.T @ (scaled * in_x)
    crossed = np.einsum("ip,ip->p", pairs, in_pairs).reshape(d, d)
    return (
        2 * (square * rows[:, None]).T @ square
        + 2 * square.T @ in_square
        + 4 * crossed
        - 4 * (cubes + cubes.T)
    )


def hessian(data: Data) -> Any:
    """The trace of the products from L^-1 K_p L^-T, which sygst makes in half a product each."""
    from scipy.linalg.blas import dsymv
    from scipy.linalg.lapack import dsygst, dtrtri

    scaled, kernel = signal(data)
    n, d = scaled.shape
    noise = np.exp(data["t"])
    inner = np.empty((d + 1, n, n))
    for p in range(d):
        np.subtract.outer(scaled[:, p], scaled[:, p], out=inner[p])
        np.square(inner[p], out=inner[p])
        inner[p] *= kernel
        inner[p] *= -0.5
    factor, white = factorise(kernel, data)
    along = np.empty((d + 2, n))
    for p in range(d):
        dsygst(inner[p].T, factor, lower=1, overwrite_a=1)
        along[p] = dsymv(1.0, inner[p].T, white, lower=1)
    root, _ = dtrtri(factor, lower=1)
    root = np.tril(root)
    np.matmul(root, root.T, out=inner[d])  # L^-1 L^-T
    along[d + 1] = noise * (inner[d] @ white)
    along[d] = white - along[d + 1]
    inner[d] *= noise
    traces = pair_traces(inner)
    weight, diagonal = adjoint(factor, white, data)
    first = slopes(scaled, weight, diagonal, data)
    return blocks(traces, along, first, distances(weight, scaled) / 8, n)


def pair_traces(inner: Array) -> tuple[Array, Array]:
    """tr(B_p B_q) and tr(B_p) of symmetric matrices of which the upper triangles count."""
    count, n, _ = inner.shape
    diagonals = np.einsum("pii->pi", inner)
    totals = diagonals.sum(axis=1)
    below = np.tri(n, k=-1, dtype=bool)
    for matrix in inner:
        matrix[below] = 0
    diagonals *= np.sqrt(0.5)
    rows = inner.reshape(count, n * n)
    return 2 * rows @ rows.T, totals


def blocks(traces: Any, along: Array, first: Any, second: Array, n: int) -> Any:
    """The blocks over (w, s, t), of which K_s is K - e^t I and K_t is e^t I."""
    pairs, totals = traces
    d = len(pairs) - 1
    products = np.empty((d + 2, d + 2))
    products[:d, :d] = pairs[:d, :d]
    products[:d, d + 1] = products[d + 1, :d] = pairs[:d, d]
    products[:d, d] = products[d, :d] = totals[:d] - pairs[:d, d]
    products[d, d] = n - 2 * totals[d] + pairs[d, d]
    products[d, d + 1] = products[d + 1, d] = totals[d] - pairs[d, d]
    products[d + 1, d + 1] = pairs[d, d]
    in_w, in_s, in_t = first
    whole = along @ along.T - products / 2
    whole[:d, :d] += second + np.diag(in_w)
    whole[:d, d] += in_w
    whole[d, :d] += in_w
    whole[d, d] += in_s
    whole[d + 1, d + 1] += in_t
    parts = (slice(d), d, d + 1)
    return tuple([tuple([whole[rows, columns] for columns in parts]) for rows in parts])


PROBLEM = Problem(
    name="gp",
    wrt=("w", "s", "t"),
    text=TEXT,
    objective=objective,
    expression=expression,
    cases={
        "tiny": (of_size(7, 2),),
        "small": (of_size(100), of_size(300)),
        "paper": (of_size(300), of_size(1000), diabetes()),
        "real": (diabetes(),),
    },
    of_size=of_size,
    hand={
        "value": {"": Form(value, lambda s: s["n"] ** 3 / 3 + 1.0 * s["d"] * s["n"] ** 2)},
        "gradient": {"": Form(gradient, lambda s: s["n"] ** 3 + 3.0 * s["d"] * s["n"] ** 2)},
        "hessian": {"": Form(hessian, lambda s: (s["d"] + 7 / 3) * s["n"] ** 3)},
    },
    claims=(
        Claim(("gradient", "tcalc"), ("gradient", "jax"), 1 / 3.5, least=1000),
        Claim(("hessian", "tcalc"), ("hessian", "jax"), 0.1, least=1000),
        Limit(("hessian", "tcalc"), 8, "products", least=1000),
        Limit(("gradient", "tcalc"), 3.1, "matrices", least=1000),  # 3 and n x d
    ),
    fit="trust-exact",
)
