"""Logistic regression, f(w) = sum log(1 + exp(-y (X w))), with m = 2 n (Laue et al. 2020)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..problem import Array, Case, Claim, Data, Form, Problem, Sizes

TEXT = "sum(log(1 + exp(-y .* (X*w))))"


def objective(xp: Any, data: Any) -> Any:
    return xp.sum(xp.log(1 + xp.exp(-data["y"] * (data["X"] @ data["w"]))))


def expression(sizes: Sizes) -> Any:
    import tcalc as tc

    return tc.parse(TEXT, X=("m", "n"), y=("m",), w=("n",))


def of_size(n: int) -> Case:
    def load(rng: np.random.Generator) -> dict[str, Array]:
        features = rng.standard_normal((2 * n, n))
        labels = np.where(rng.random(2 * n) < 0.5, -1.0, 1.0)
        return {"X": features, "y": labels, "w": rng.standard_normal(n) / np.sqrt(n)}

    return Case(f"n={n}", {"m": 2 * n, "n": n}, load)


def breast_cancer(rng: np.random.Generator) -> dict[str, Array]:
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    return labelled(data.data, data.target > 0, rng)


def randhie(rng: np.random.Generator) -> dict[str, Array]:
    from statsmodels.datasets import randhie

    data = randhie.load_pandas()
    features = data.exog.to_numpy(dtype=float)
    features = np.column_stack([np.ones(len(features)), features])
    return labelled(features, data.endog.to_numpy() > 0, rng)


def labelled(features: Array, positive: Array, rng: np.random.Generator) -> dict[str, Array]:
    scale = features.std(axis=0)
    features = np.ascontiguousarray(features / np.where(scale > 0, scale, 1.0))
    weights = 0.1 * rng.standard_normal((features.shape[1],))
    return {"X": features, "y": np.where(positive, 1.0, -1.0), "w": weights}


def margins(data: Data) -> Array:
    return data["y"] * (data["X"] @ data["w"])


def value(data: Data) -> Any:
    return np.log1p(np.exp(-margins(data))).sum()


def gradient(data: Data) -> Array:
    return (-data["y"] / (1 + np.exp(margins(data)))) @ data["X"]


def curvature(data: Data) -> Array:
    """sigmoid' at the margins, which is even and so needs no labels."""
    small = np.exp(-np.abs(data["X"] @ data["w"]))
    return small / (1 + small) ** 2


def hessian_gemm(data: Data) -> Array:
    return data["X"].T @ (curvature(data)[:, None] * data["X"])


def hessian_syrk(data: Data) -> Array:
    scaled = np.sqrt(curvature(data))[:, None] * data["X"]
    return scaled.T @ scaled  # NumPy sees one buffer twice and calls syrk


def product_flops(s: Sizes) -> float:
    return 2.0 * s["m"] * s["n"]


PROBLEM = Problem(
    name="logistic",
    wrt="w",
    text=TEXT,
    objective=objective,
    expression=expression,
    cases={
        "tiny": (of_size(4),),
        "small": (of_size(30), of_size(100), of_size(300)),
        "paper": (
            of_size(100),
            of_size(300),
            of_size(1000),
            Case("breast cancer", {"m": 569, "n": 30}, breast_cancer),
            Case("randhie", {"m": 20190, "n": 10}, randhie),
        ),
    },
    of_size=of_size,
    hand={
        "value": {"": Form(value, product_flops)},
        "gradient": {"": Form(gradient, lambda s: 4.0 * s["m"] * s["n"])},
        "hessian": {
            "gemm": Form(hessian_gemm, lambda s: 2.0 * s["m"] * s["n"] * s["n"]),
            "syrk": Form(hessian_syrk, lambda s: 1.0 * s["m"] * s["n"] * (s["n"] + 1)),
        },
    },
    claims=(
        Claim(("gradient", "tcalc"), ("gradient", "hand"), 1.25),
        Claim(("hessian", "tcalc"), ("hessian", "hand gemm"), 1.25),
        Claim(("hessian", "tcalc"), ("hessian", "jax"), 1.0),
    ),
)
