"""A trigonometric sum of squares whose Hessian is a diagonal plus a matrix of rank two.

f(w) = sum_i ((n - sum_j cos w_j) + i (1 - cos w_i) - sin w_i)^2. With s = sin w and
d_i = i sin w_i - cos w_i, the Jacobian of the residuals is 1 s' + diag(d), so the Hessian is
diagonal but for 2 (n s s' + s d' + d s').
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..problem import Array, Case, Claim, Data, Form, Memory, Problem, Sizes

TEXT = "sum((sum(1 - cos(w)) + c .* (1 - cos(w)) - sin(w)).^2)"
Core = tuple[Array, Array, Array]


def objective(xp: Any, data: Any) -> Any:
    w, c = data["w"], data["c"]
    return xp.sum((xp.sum(1 - xp.cos(w)) + c * (1 - xp.cos(w)) - xp.sin(w)) ** 2)


def expression(sizes: Sizes) -> Any:
    import tcalc as tc

    w, c = tc.var("w", ("n",)), tc.var("c", ("n",))
    return tc.sum((tc.sum(1 - tc.cos(w)) + c * (1 - tc.cos(w)) - tc.sin(w)) ** 2)


def of_size(n: int) -> Case:
    """Angles of one quadrant, where all terms of the diagonal are positive."""

    def load(rng: np.random.Generator) -> dict[str, Array]:
        return {"w": rng.uniform(0.2, 1.2, n), "c": np.arange(1.0, n + 1)}

    return Case(f"n={n}", {"n": n}, load)


def parts(data: Data) -> tuple[Array, Array, Array, Array]:
    """Sines, cosines, residuals, and d of the docstring."""
    w, c = data["w"], data["c"]
    sine, cosine = np.sin(w), np.cos(w)
    residual = (len(w) - cosine.sum()) + c * (1 - cosine) - sine
    return sine, cosine, residual, c * sine - cosine


def value(data: Data) -> Any:
    residual = parts(data)[2]
    return residual @ residual


def gradient(data: Data) -> Array:
    sine, _, residual, d = parts(data)
    return 2 * (residual.sum() * sine + residual * d)


def core(data: Data) -> Core:
    """The diagonal, s and d."""
    sine, cosine, residual, d = parts(data)
    diagonal = d * d + residual.sum() * cosine + residual * (data["c"] * cosine + sine)
    return 2 * diagonal, sine, d


def hessian(data: Data) -> Array:
    diagonal, sine, d = core(data)
    half = np.multiply.outer(2 * sine, len(sine) / 2 * sine + d)
    dense = half + half.T
    np.einsum("ii->i", dense)[:] += diagonal
    return dense


def times(core: Core, data: Data, v: Array) -> Array:
    diagonal, sine, d = core
    n, along, across = len(sine), sine @ v, d @ v
    return diagonal * v + (2 * (n * along + across)) * sine + (2 * along) * d


def newton_woodbury(data: Data, rhs: Array) -> Array:
    diagonal, sine, d = core(data)
    both = np.stack([sine, d])
    scaled = both / diagonal
    middle = np.linalg.inv(2 * np.array([[len(sine), 1.0], [1.0, 0.0]])) + scaled @ both.T
    return rhs / diagonal - np.linalg.solve(middle, scaled @ rhs) @ scaled


def newton_dense(data: Data, rhs: Array) -> Array:
    from scipy.linalg import cho_factor, cho_solve

    factor = cho_factor(hessian(data).T, overwrite_a=True, check_finite=False)
    return np.asarray(cho_solve(factor, rhs, check_finite=False))


def few(operations: float) -> Any:
    """So many operations for every angle."""
    return lambda s: operations * s["n"]


PROBLEM = Problem(
    name="cosine-sum",
    wrt="w",
    text=TEXT,
    objective=objective,
    expression=expression,
    cases={
        "tiny": (of_size(4),),
        "small": (of_size(100), of_size(500)),
        "paper": (of_size(500), of_size(2000)),
    },
    of_size=of_size,
    hand={
        "value": {"": Form(value, few(8))},
        "gradient": {"": Form(gradient, few(12))},
        "hessian": {"": Form(hessian, lambda s: 3.0 * s["n"] ** 2)},
        "core": {"": Form(core, few(16))},
        "newton": {
            "Woodbury": Form(newton_woodbury, few(32)),
            "dense": Form(newton_dense, lambda s: s["n"] ** 3 / 3.0),
        },
    },
    product=times,
    claims=(
        Memory(("core", "tcalc"), 32, "held", per="n"),
        Memory(("newton", "tcalc"), 50e6, "traced"),
        Memory(("newton", "tcalc"), 800, "traced", per="n", least=500),
        Claim(("newton", "tcalc"), ("newton", "hand dense"), 0.5, least=500),
        Claim(("newton", "tcalc c"), ("newton", "hand Woodbury"), 1.5, overhead=0.0),
        Claim(("newton", "tcalc"), ("hessian", "jax"), 1.0, least=500),
    ),
)
