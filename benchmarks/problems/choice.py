"""Conditional logit: which of several alternatives each person chooses, by their attributes.

f(b) = sum_i log sum_a exp(x_ia' b) - sum_ia y_ia x_ia' b. With the choice probabilities s, the
Hessian is the sum over persons of the attributes' covariance, X_i' (diag(s_i) - s_i s_i') X_i.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..problem import Array, Case, Claim, Data, Form, Problem, Sizes

TEXT = "sum_i log sum_a exp(x_ia' b) - sum_ia y_ia x_ia' b"


def objective(xp: Any, data: Any) -> Any:
    utility = data["X"] @ data["b"]
    return xp.sum(xp.log(xp.sum(xp.exp(utility), 1)) - xp.sum(data["Y"] * utility, 1))


def expression(sizes: Sizes) -> Any:
    import tcalc as tc

    utility = tc.var("X", ("n", "a", "p")) @ tc.var("b", ("p",))
    return tc.sum(tc.logsumexp(utility, axis=1)) - tc.sum(tc.var("Y", ("n", "a")) * utility)


def of_size(n: int, a: int = 10, p: int = 30) -> Case:
    """The first alternative's attributes are the origin, the choices drawn from the model."""

    def load(rng: np.random.Generator) -> dict[str, Array]:
        X = rng.standard_normal((n, a, p))
        truth = rng.standard_normal(p) / np.sqrt(p)
        noisy = X @ truth + rng.gumbel(size=(n, a))
        return chosen(X, noisy.argmax(axis=1), rng)

    return Case(f"n={n}, a={a}, p={p}", {"n": n, "a": a, "p": p}, load)


def modes(rng: np.random.Generator) -> dict[str, Array]:
    """How 210 persons travelled: constants of air, train and bus, four costs, and income by air."""
    from statsmodels.datasets import modechoice

    table = modechoice.load_pandas().data
    fixed = np.broadcast_to(np.eye(4)[:, :3], (210, 4, 3))
    costs = table[["ttme", "invc", "invt", "gc"]].to_numpy(dtype=float)
    costs = (costs / costs.std(axis=0)).reshape(210, 4, 4)
    income = table["hinc"].to_numpy(dtype=float).reshape(210, 4)
    income = (income / income.std())[:, :, None] * fixed[:, :, :1]
    taken = table["choice"].to_numpy().reshape(210, 4).argmax(axis=1)
    return chosen(np.concatenate([fixed, costs, income], axis=2), taken, rng)


def chosen(X: Array, taken: Array, rng: np.random.Generator) -> dict[str, Array]:
    start = 0.1 * rng.standard_normal(X.shape[2])
    return {"X": np.ascontiguousarray(X), "Y": np.eye(X.shape[1])[taken], "b": start}


def utilities(data: Data) -> Array:
    return data["X"] @ data["b"]


def probabilities(utility: Array) -> Array:
    e = np.exp(utility - utility.max(axis=1, keepdims=True))
    e /= e.sum(axis=1, keepdims=True)
    return e


def value(data: Data) -> Any:
    utility = utilities(data)
    top = utility.max(axis=1)
    logs = np.log(np.exp(utility - top[:, None]).sum(axis=1)) + top
    return logs.sum() - np.vdot(data["Y"], utility)


def gradient(data: Data) -> Array:
    excess = probabilities(utilities(data)) - data["Y"]
    return excess.ravel() @ flat(data)


def flat(data: Data) -> Array:
    """All rows of attributes, one below the other."""
    return data["X"].reshape(-1, data["X"].shape[2])


def hessian_gemm(data: Data) -> Array:
    s = probabilities(utilities(data))
    mean = (s[:, None, :] @ data["X"])[:, 0]
    return flat(data).T @ (s.reshape(-1, 1) * flat(data)) - mean.T @ mean


def hessian_syrk(data: Data) -> Array:
    """Of attributes centred by each person's mean."""
    s = probabilities(utilities(data))
    centred = data["X"] - s[:, None, :] @ data["X"]
    centred *= np.sqrt(s)[:, :, None]
    rows = centred.reshape(-1, centred.shape[2])
    return rows.T @ rows


def newton(data: Data, rhs: Array) -> Array:
    from scipy.linalg import cho_factor, cho_solve

    factor = cho_factor(hessian_gemm(data), overwrite_a=True, check_finite=False)
    return np.asarray(cho_solve(factor, rhs, check_finite=False))


def product_flops(s: Sizes) -> float:
    return 2.0 * s["n"] * s["a"] * s["p"]


def gemm_flops(s: Sizes) -> float:
    return s["p"] * product_flops(s) + 2.0 * s["n"] * s["p"] ** 2


PROBLEM = Problem(
    name="choice-logit",
    wrt="b",
    text=TEXT,
    objective=objective,
    expression=expression,
    cases={
        "tiny": (of_size(5, 3, 2),),
        "small": (of_size(300, 4, 8), of_size(2000)),
        "paper": (of_size(2000), of_size(20000), Case("modes", {"n": 210, "a": 4, "p": 8}, modes)),
        "real": (Case("modes", {"n": 210, "a": 4, "p": 8}, modes),),
    },
    of_size=of_size,
    hand={
        "value": {"": Form(value, product_flops)},
        "gradient": {"": Form(gradient, lambda s: 2 * product_flops(s))},
        "hessian": {
            "gemm": Form(hessian_gemm, gemm_flops),
            "syrk": Form(hessian_syrk, lambda s: gemm_flops(s) / 2),
        },
        "newton": {"": Form(newton, lambda s: gemm_flops(s) + s["p"] ** 3 / 3)},
    },
    claims=(
        Claim(("gradient", "tcalc"), ("gradient", "hand"), 1.25),
        Claim(("hessian", "tcalc"), ("hessian", "hand gemm"), 1.25),
        Claim(("hessian", "tcalc"), ("hessian", "jax"), 1.0),
        Claim(("newton", "tcalc"), ("newton", "hand"), 1.25),
    ),
    fit="trust-exact",
)
