"""Logistic regression with a quadratic penalty and fewer samples than features.

f(w) = sum log(1 + exp(-y (X w))) + c |w|^2 / 2 with m < n: the Hessian X' D X + c I is a multiple
of the identity plus a matrix of rank m.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..problem import Array, Case, Claim, Data, Form, Memory, Problem, Promised, Sizes
from . import logistic

TEXT = "sum(log(1 + exp(-y .* (X*w)))) + c/2 * sum(w.^2)"
Core = tuple[Array, Array]


def objective(xp: Any, data: Any) -> Any:
    return logistic.objective(xp, data) + data["c"] / 2 * xp.sum(data["w"] ** 2)


def expression(sizes: Sizes) -> Any:
    import tcalc as tc

    return tc.parse(TEXT, X=("m", "n"), y=("m",), w=("n",), c=())


def of_size(n: int, m: int = 0) -> Case:
    m = m or -(-n // 10)

    def load(rng: np.random.Generator) -> dict[str, Array]:
        features = rng.standard_normal((m, n))
        labels = np.where(rng.random(m) < 0.5, -1.0, 1.0)
        weights = rng.standard_normal(n) / np.sqrt(n)
        return {"X": features, "y": labels, "w": weights, "c": np.array(0.1)}

    return Case(f"n={n}, m={m}", {"m": m, "n": n}, load)


def value(data: Data) -> Any:
    return logistic.value(data) + data["c"] / 2 * (data["w"] @ data["w"])


def gradient(data: Data) -> Array:
    return logistic.gradient(data) + data["c"] * data["w"]


def core(data: Data) -> Core:
    """The curvatures of the samples, and X, which stays as it is."""
    return logistic.curvature(data), data["X"]


def hessian(data: Data) -> Array:
    dense = logistic.hessian_syrk(data)
    np.einsum("ii->i", dense)[:] += data["c"]
    return dense


def times(core: Core, data: Data, v: Array) -> Array:
    curvature, features = core
    return (curvature * (features @ v)) @ features + data["c"] * v


def newton_woodbury(data: Data, rhs: Array) -> Array:
    """With Z = D^(1/2) X, (Z'Z + c I)^-1 = (I - Z' (Z Z' + c I)^-1 Z) / c."""
    from scipy.linalg import cho_factor, cho_solve

    c = data["c"]
    scaled = np.sqrt(logistic.curvature(data))[:, None] * data["X"]
    middle = scaled @ scaled.T
    np.einsum("ii->i", middle)[:] += c
    factor = cho_factor(middle, overwrite_a=True, check_finite=False)
    inner = np.asarray(cho_solve(factor, scaled @ rhs, check_finite=False))
    return (rhs - inner @ scaled) / c


def newton_dense(data: Data, rhs: Array) -> Array:
    from scipy.linalg import cho_factor, cho_solve

    factor = cho_factor(hessian(data).T, overwrite_a=True, check_finite=False)
    return np.asarray(cho_solve(factor, rhs, check_finite=False))


def syrk_flops(s: Sizes) -> float:
    return 1.0 * s["m"] * s["n"] * (s["n"] + 1)


def woodbury_flops(s: Sizes) -> float:
    """The m x m matrix, its Cholesky factor, and three products with X."""
    m, n = s["m"], s["n"]
    return 1.0 * m * (m + 1) * n + m**3 / 3 + 6.0 * m * n


def dense_flops(s: Sizes) -> float:
    return syrk_flops(s) + s["n"] ** 3 / 3 + 2.0 * s["n"] ** 2


PROBLEM = Problem(
    name="ridge-logistic",
    wrt="w",
    text=TEXT,
    objective=objective,
    expression=expression,
    cases={
        "tiny": (of_size(6, 3),),
        "small": (of_size(300, 30), of_size(1000, 100)),
        "paper": (of_size(1000, 100), of_size(4000, 200), of_size(4000, 1000)),
    },
    of_size=of_size,
    hand={
        "value": {"": Form(value, logistic.product_flops)},
        "gradient": {"": Form(gradient, lambda s: 4.0 * s["m"] * s["n"])},
        "hessian": {"": Form(hessian, syrk_flops)},
        "core": {"": Form(core, logistic.product_flops)},
        "newton": {
            "Woodbury": Form(newton_woodbury, woodbury_flops),
            "dense": Form(newton_dense, dense_flops),
        },
    },
    product=times,
    claims=(
        Claim(("hessian", "tcalc"), ("hessian", "hand"), 1.25),
        Claim(("newton", "tcalc"), ("newton", "hand Woodbury"), 2.0),
        Promised(
            ("newton", "tcalc"),
            ("newton", "hand Woodbury"),
            ("newton", "hand dense"),
            within=3.0,
            least=1000,
        ),
        Memory(("newton", "tcalc"), 8 * 2 * 1000, "traced", per="n", least=1000),
    ),
)
