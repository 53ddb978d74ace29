"""Bayesian linear regression: minus the logarithm of the evidence, y ~ N(0, X X' / a + v I).

With A = X'X / v + a I and w the posterior mean A^-1 X'y / v, up to a constant

f(log a, log v) = (log|A| + |y - X w|^2 / v + a |w|^2 - n log a + m log v) / 2.

By Cholesky of A, or without ever forming X'X by LQ of the wide matrix [X' / sqrt(v), sqrt(a) I]
(Seeger et al. 2017): log|A| = 2 sum log diag L, and the two squares are |y|^2 / v less the square
of Q [y / sqrt(v); 0].
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..namespaces import solve_lower
from ..problem import Array, Case, Claim, Data, Form, Problem, Sizes

TEXT = "(log|A| + y'y / v - y'X A^-1 X'y / v^2 - n log a + m log v) / 2, A = X'X / v + a I"
LQ_TEXT = "sum log diag L + (y'y / v - |Q [y; 0]|^2 / v - n log a + m log v) / 2, L Q = [X', I] * c"


def objective(xp: Any, data: Any) -> Any:
    X, y = data["X"], data["y"]
    m, n = X.shape
    a, v = xp.exp(data["la"]), xp.exp(data["lv"])
    factor = xp.linalg.cholesky(X.T @ X / v + a * xp.eye(n))
    white = solve_lower(xp, factor, (X.T @ y)[:, None] / v)
    fit = xp.sum(y * y) / v - xp.sum(white * white)
    scale = m * data["lv"] - n * data["la"]
    return xp.sum(xp.log(xp.diag(factor))) + (fit + scale) / 2


def expression(sizes: Sizes) -> Any:
    import tcalc as tc

    X, y = tc.var("X", ("m", "n")), tc.var("y", ("m",))
    la, lv = tc.var("la"), tc.var("lv")
    v = tc.exp(lv)
    factor = tc.linalg.cholesky(X.T @ X / v + tc.exp(la) * tc.eye("n"))
    white = tc.linalg.solve_triangular(factor, X.T @ y / v, lower=True)
    scale = tc.sum(tc.ones("m")) * lv - tc.sum(tc.ones("n")) * la
    return tc.linalg.sumlogdiag(factor) + (y @ y / v - white @ white + scale) / 2


def lq_objective(xp: Any, data: Any) -> Any:
    """`design` is [X', I]; `real` is 1 for its columns of observations, 0 for those of the prior;
    `target` is y, then zeros."""
    design, target, real = data["design"], data["target"], data["real"]
    n, total = design.shape
    la, lv = data["la"], data["lv"]
    stacked = design * xp.exp((1 - real) * la / 2 - real * lv / 2)
    q, r = xp.linalg.qr(stacked.T)
    seen = target @ q
    fit = (target @ target - seen @ seen) / xp.exp(lv)
    scale = (total - n) * lv - n * la
    return xp.sum(xp.log(xp.abs(xp.diag(r)))) + (fit + scale) / 2


def lq_expression(sizes: Sizes) -> Any:
    import tcalc as tc

    design, la, lv = tc.var("design", ("n", "k")), tc.var("la"), tc.var("lv")
    target, real = tc.var("target", ("k",)), tc.var("real", ("k",))
    q, factor = tc.linalg.gelqf(design * tc.exp((1 - real) * la / 2 - real * lv / 2))
    seen = q @ target
    fit = (target @ target - seen @ seen) / tc.exp(lv)
    scale = tc.sum(real) * lv - tc.sum(1 - real) * la
    return tc.linalg.sumlogdiag(factor) + (fit + scale) / 2


def simulated(n: int) -> Case:
    """m = 4 n observations of an ill-conditioned design."""

    def load(rng: np.random.Generator) -> dict[str, Array]:
        scales = np.logspace(0, -2, n)
        features = rng.standard_normal((4 * n, n)) * scales
        return both(features, features @ rng.standard_normal(n) + 0.3 * rng.standard_normal(4 * n))

    return Case(f"n={n}", {"m": 4 * n, "n": n}, load)


def diabetes() -> Case:
    def load(rng: np.random.Generator) -> dict[str, Array]:
        from sklearn.datasets import load_diabetes

        data = load_diabetes()
        features = data.data / data.data.std(axis=0)
        return both(features, (data.target - data.target.mean()) / data.target.std())

    return Case("diabetes", {"m": 442, "n": 10}, load)


def both(X: Array, y: Array) -> dict[str, Array]:
    """The data as X and y and as one wide design, and the point in the middle."""
    m, n = X.shape
    return {
        "X": X,
        "y": y,
        "design": np.hstack([X.T, np.eye(n)]),
        "target": np.append(y, np.zeros(n)),
        "real": np.append(np.ones(m), np.zeros(n)),
        "la": np.array(0.4),
        "lv": np.array(-0.7),
    }


def by_cholesky(data: Data) -> tuple[Array, Array]:
    """(F, L^-1 X'y / v), F with L in its lower triangle."""
    from scipy.linalg.lapack import dpotrf, dtrtrs

    X, v = data["X"], np.exp(data["lv"])
    normal = X.T @ X  # one buffer twice: syrk
    normal /= v
    np.einsum("ii->i", normal)[:] += np.exp(data["la"])
    factor, _ = dpotrf(normal.T, lower=1, clean=0, overwrite_a=1)
    return factor, dtrtrs(factor, data["y"] @ X / v, lower=1)[0]


def by_lq(data: Data) -> tuple[Array, Array]:
    """The same from the wide design, whose LQ is the QR of its transpose; Q is never formed."""
    from scipy.linalg.lapack import dgeqrf, dtrtrs

    design, real = data["design"], data["real"]
    stacked = design * np.exp((1 - real) * data["la"] / 2 - real * data["lv"] / 2)
    reflectors, *_ = dgeqrf(stacked.T, lwork=32 * len(design), overwrite_a=1)
    factor = np.asfortranarray(reflectors[: len(design)].T)
    right = design @ data["target"] / np.exp(data["lv"])
    return factor, dtrtrs(factor, right, lower=1)[0]


Factorise = Callable[[Data], tuple[Array, Array]]


def value(factorise: Factorise, data: Data) -> Any:
    factor, white = factorise(data)
    m, n = data["X"].shape
    fit = data["y"] @ data["y"] / np.exp(data["lv"]) - white @ white
    scale = m * data["lv"] - n * data["la"]
    return np.log(np.abs(np.diagonal(factor))).sum() + (fit + scale) / 2


def gradient(factorise: Factorise, data: Data) -> tuple[Any, Any]:
    """Of tr A^-1 and the posterior mean w alone."""
    from scipy.linalg.lapack import dtrtri, dtrtrs

    factor, white = factorise(data)
    mean = dtrtrs(factor, white, lower=1, trans=1)[0]
    root = np.tril(dtrtri(factor, lower=1, overwrite_c=1)[0])
    a, v = np.exp(data["la"]), np.exp(data["lv"])
    m, n = data["X"].shape
    trace = a * np.vdot(root, root)
    residual = data["y"] - data["X"] @ mean
    return (
        (trace + a * (mean @ mean) - n) / 2,
        (trace + m - n - residual @ residual / v) / 2,
    )


def hessian(factorise: Factorise, data: Data) -> Any:
    """Of tr A^-1, tr A^-2, w and A^-1 w: dw / d log a = dw / d log v = -a A^-1 w."""
    from scipy.linalg.lapack import dpotri, dpotrs, dtrtrs

    factor, white = factorise(data)
    a, v = np.exp(data["la"]), np.exp(data["lv"])
    mean = dtrtrs(factor, white, lower=1, trans=1)[0]
    bent = a * a * (mean @ dpotrs(factor, mean, lower=1)[0])
    inverse = np.tril(dpotri(factor, lower=1, overwrite_c=1)[0])
    diagonal = np.diagonal(inverse)
    squares = a * a * (2 * np.vdot(inverse, inverse) - diagonal @ diagonal)
    residual = data["y"] - data["X"] @ mean
    mixed = (a * diagonal.sum() - squares) / 2 - bent
    in_a = mixed + a * (mean @ mean) / 2
    in_v = mixed + residual @ residual / (2 * v)
    return (in_a, mixed), (mixed, in_v)


def forms(factorise: Factorise, flops: Callable[[Sizes], float]) -> dict[str, dict[str, Form]]:
    return {
        "value": {"": Form(partial(value, factorise), flops)},
        "gradient": {"": Form(partial(gradient, factorise), lambda s: flops(s) + s["n"] ** 3 / 3)},
        "hessian": {
            "": Form(partial(hessian, factorise), lambda s: flops(s) + 2 * s["n"] ** 3 / 3)
        },
    }


CASES = {
    "tiny": (simulated(4),),
    "small": (simulated(30), simulated(100)),
    "paper": (simulated(100), simulated(500), diabetes()),
    "real": (diabetes(),),
}
CLAIMS = (
    Claim(("gradient", "tcalc"), ("gradient", "jax"), 1.0, least=100),
    Claim(("hessian", "tcalc"), ("hessian", "jax"), 1.0, least=100),
)

CHOLESKY = Problem(
    name="linear-regression",
    wrt=("la", "lv"),
    text=TEXT,
    objective=objective,
    expression=expression,
    cases=CASES,
    of_size=simulated,
    hand=forms(by_cholesky, lambda s: 1.0 * s["m"] * s["n"] ** 2 + s["n"] ** 3 / 3),
    claims=CLAIMS,
    fit="trust-exact",
)

LQ = Problem(
    name="linear-regression-lq",
    wrt=("la", "lv"),
    text=LQ_TEXT,
    objective=lq_objective,
    expression=lq_expression,
    cases=CASES,
    of_size=simulated,
    hand=forms(by_lq, lambda s: 2.0 * s["m"] * s["n"] ** 2 + 4 * s["n"] ** 3 / 3),
    claims=CLAIMS,
    fit="trust-exact",
    without=("autograd",),  # no derivative of qr
)
