"""A mixture of Gaussians with a Wishart prior: GradBench's `gmm` eval.

Component j has the weight exp(alpha_j), the mean mu_j and the precision Q_j'Q_j, where Q_j is lower
triangular, exp(q_j) its diagonal and l_j what is below it, column by column. f is the logarithm of
the posterior density of the points x; the prior has d + 1 + M degrees of freedom and the precision
GAMMA.

Source: Srajer, Kukelova and Fitzgibbon, A benchmark of selected algorithmic differentiation tools
on some problems in computer vision and machine learning, 2018, section 4.1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from ..namespaces import logsumexp
from ..problem import Array, Case, Claim, Data, Form, Problem, Sizes
from ..suite import Eval

TEXT = "sum_i logsumexp_j(alpha_j - |Q_j (x_i - mu_j)|^2/2 + sum q_j) - n logsumexp(alpha) + prior"
WRT = ("alpha", "mu", "q", "l")
GAMMA, M = 0.8, 2


def objective(xp: Any, data: Any) -> Any:
    """Triangles are looked up in l, and masked."""
    below = data["l"][:, data["place"]] * data["below"]
    diagonal = xp.exp(data["q"])[:, :, None] * data["unit"]
    return posterior(xp, data, below + diagonal, *sizes_of(data))


def expression(sizes: Sizes) -> Any:
    import tcalc as tc

    alpha, mu, q = tc.var("alpha", "k"), tc.var("mu", ("k", "d")), tc.var("q", ("k", "d"))
    data = {"alpha": alpha, "mu": mu, "q": q, "x": tc.var("x", ("n", "d"))}
    below = tc.linalg.maketrian(tc.var("l", ("k", "d*(d-1)/2")), 1).mT
    factors = below + tc.linalg.makediag(tc.exp(q))
    return posterior(tc, data, factors, sizes["n"], sizes["k"], sizes["d"])


def posterior(xp: Any, data: Any, factors: Any, n: int, k: int, d: int) -> Any:
    alpha, q = data["alpha"], data["q"]
    apart = data["x"][:, None, :] - data["mu"]
    turned = xp.einsum("jab,ijb->ija", factors, apart)
    logs = alpha + xp.sum(q, 1) - 0.5 * xp.sum(turned**2, 2)
    likelihood = xp.sum(logsumexp(xp, logs)) - n * logsumexp(xp, alpha)
    prior = M * xp.sum(q) - 0.5 * GAMMA**2 * xp.sum(factors**2)
    return likelihood + prior + constant(n, k, d)


def sizes_of(data: Data) -> tuple[int, int, int]:
    return len(data["x"]), *data["q"].shape


def constant(n: int, k: int, d: int) -> float:
    freedom = d + 1 + M
    one = freedom * d * np.log(GAMMA / np.sqrt(2)) - special.multigammaln(freedom / 2, d)
    return float(k * one - n * d / 2 * np.log(2 * np.pi))


def case(d: int, k: int, n: int) -> Case:
    """As the suite draws them, with means among the points."""

    def load(rng: np.random.Generator) -> dict[str, Array]:
        place = np.zeros((d, d), dtype=int)
        place.T[np.triu_indices(d, 1)] = np.arange(d * (d - 1) // 2)
        return {
            "alpha": rng.standard_normal(k),
            "mu": rng.random((k, d)),
            "q": rng.standard_normal((k, d)),
            "l": rng.standard_normal((k, d * (d - 1) // 2)),
            "x": rng.standard_normal((n, d)),
            "place": place,
            "below": np.tri(d, k=-1),
            "unit": np.eye(d),
        }

    sizes = {"d": d, "k": k, "n": n}
    return Case(f"d={d}, k={k}, n={n}", sizes, load, ("value", "gradient", "both"))


def of_size(n: int) -> Case:
    return case(10, 25, n)


def turned(data: Data) -> tuple[Array, Array]:
    """Q_j, and Q_j (x_i - mu_j) with component j first, by one product of all rows."""
    factors = data["l"][:, data["place"]] * data["below"]
    np.einsum("jaa->ja", factors)[...] = np.exp(data["q"])
    centred = (factors @ data["mu"][:, :, None])[:, :, 0]
    return factors, data["x"] @ factors.mT - centred[:, None, :]


def logs(data: Data, far: Array) -> Array:
    """By component and point, without the logarithm of the sum of weights."""
    squares: Array = np.einsum("jia,jia->ji", far, far)
    squares *= -0.5
    squares += (data["alpha"] + data["q"].sum(1))[:, None]
    return squares


def value(data: Data) -> Any:
    return both(data)[0]


def both(data: Data) -> tuple[Any, tuple[Array, ...]]:
    """With weights r_ij of point i in component j, from moments of x - mu_j under Q_j."""
    factors, far = turned(data)
    (n, k, d), weights = sizes_of(data), logs(data, far)
    top = weights.max(0)
    weights -= top
    np.exp(weights, out=weights)
    total = weights.sum(0)
    weights /= total
    share = special.softmax(data["alpha"])
    found = (np.log(total) + top).sum() - n * special.logsumexp(data["alpha"])
    found += M * data["q"].sum() - 0.5 * GAMMA**2 * np.einsum("jab,jab->", factors, factors)
    far *= weights[:, :, None]
    sums = far.sum(1)
    by_factor = sums[:, :, None] * data["mu"][:, None, :] - far.mT @ data["x"]
    by_factor -= GAMMA**2 * factors
    mass = weights.sum(1)
    columns, rows = np.triu_indices(d, 1)
    by_q = np.einsum("jaa->ja", by_factor) * np.exp(data["q"]) + mass[:, None] + M
    by_mu = (sums[:, None, :] @ factors)[:, 0]
    by_l = by_factor[:, rows, columns]
    return found + constant(n, k, d), (mass - n * share, by_mu, by_q, by_l)


def operations(times: float) -> Any:
    return lambda s: times * s["n"] * s["k"] * s["d"] ** 2


def given(data: Data) -> dict[str, Any]:
    n, k, d = sizes_of(data)
    numbers = {"d": d, "k": k, "n": n, "m": M, "gamma": GAMMA}
    return numbers | {name: data[name].tolist() for name in (*WRT, "x")}


def read(found: Any, data: Data) -> tuple[Array, ...]:
    return tuple([np.reshape(found[name], data[name].shape) for name in WRT])


PROBLEM = Problem(
    name="gmm",
    wrt=WRT,
    text=TEXT,
    objective=objective,
    expression=expression,
    cases={
        "tiny": (case(3, 2, 5),),
        "small": (case(2, 5, 1000),),
        "paper": (case(2, 5, 1000), case(32, 50, 1000), case(64, 100, 1000)),
    },
    of_size=of_size,
    hand={
        "value": {"": Form(value, operations(2))},
        "gradient": {"": Form(lambda data: both(data)[1], operations(4))},
        "both": {"": Form(both, operations(4))},
    },
    suite=Eval(
        "gmm",
        given,
        {"value": ("objective", lambda found, data: found), "gradient": ("jacobian", read)},
    ),
    claims=(
        Claim(("value", "tcalc c"), ("value", "gradbench"), 0.6),
        Claim(("gradient", "tcalc c"), ("gradient", "gradbench"), 0.6),
        Claim(("gradient", "tcalc c"), ("gradient", "jax"), 1.0),
    ),
)
