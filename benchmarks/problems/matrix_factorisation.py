"""Matrix factorisation, f(U) = |(T - U V') .* W|^2, W of zeros and ones (Laue et al. 2020).

The Hessian in U is one k x k core (unweighted), or one such core per row of U (weighted), times a
unit tensor over the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..problem import USUAL, AnyClaim, Array, Case, Claim, Data, Form, Memory, Problem, Sizes

PLAIN_TEXT = "sum((T - U*V').^2)"
WEIGHTED_TEXT = "sum(((T - U*V') .* W).^2)"


def plain_objective(xp: Any, data: Any) -> Any:
    return xp.sum((data["T"] - data["U"] @ data["V"].T) ** 2)


def weighted_objective(xp: Any, data: Any) -> Any:
    return xp.sum(((data["T"] - data["U"] @ data["V"].T) * data["W"]) ** 2)


def plain_expression(sizes: Sizes) -> Any:
    import tcalc as tc

    return tc.parse(PLAIN_TEXT, T=("m", "n"), U=("m", "k"), V=("n", "k"))


def weighted_expression(sizes: Sizes) -> Any:
    import tcalc as tc

    return tc.parse(WEIGHTED_TEXT, T=("m", "n"), U=("m", "k"), V=("n", "k"), W=("m", "n"))


def of_size(n: int, k: int = 5) -> Case:
    def load(rng: np.random.Generator) -> dict[str, Array]:
        return factors(rng.standard_normal((n, n)), k, rng)

    return case(f"n={n}, k={k}", {"m": n, "n": n, "k": k}, load)


def digits() -> Case:
    def load(rng: np.random.Generator) -> dict[str, Array]:
        from sklearn.datasets import load_digits

        return factors(load_digits().data / 16, 5, rng)

    return case("digits, k=5", {"m": 1797, "n": 64, "k": 5}, load)


def case(label: str, sizes: Sizes, load: Callable[..., dict[str, Array]]) -> Case:
    """Without the dense Hessian where jax would hold m k tangents of the residual in > 2 GiB."""
    tangents = 8 * sizes["m"] * sizes["k"] * sizes["m"] * sizes["n"]
    held = tuple([q for q in USUAL if q != "hessian" or tangents < 2**31])
    return Case(label, sizes, load, held)


def factors(target: Array, k: int, rng: np.random.Generator) -> dict[str, Array]:
    m, n = target.shape
    known = (rng.random((m, n)) < 0.7).astype(float)
    return {
        "T": np.array(target, dtype=float),
        "U": rng.standard_normal((m, k)),
        "V": rng.standard_normal((n, k)),
        "W": known,
    }


def residual(data: Data) -> Array:
    product = data["U"] @ data["V"].T
    return np.subtract(data["T"], product, out=product)


def plain_value(data: Data) -> Any:
    difference = residual(data)
    return np.vdot(difference, difference)


def plain_gradient(data: Data) -> Array:
    return -2 * (residual(data) @ data["V"])


def plain_core(data: Data) -> Array:
    return 2 * (data["V"].T @ data["V"])


def plain_hessian(data: Data) -> Array:
    rows, k = data["U"].shape
    dense = np.zeros((rows, k, rows, k))
    each = np.arange(rows)
    dense[each, :, each, :] = plain_core(data)
    return dense


def plain_newton(data: Data, rhs: Array) -> Array:
    from scipy.linalg import cho_factor, cho_solve

    factor = cho_factor(plain_core(data), check_finite=False)
    return np.asarray(cho_solve(factor, rhs.T, check_finite=False)).T


def dense_newton(hessian: Array, rhs: Array) -> Array:
    """By Cholesky of the whole matrix, in place: symmetric, it is its own Fortran order."""
    from scipy.linalg import cho_factor, cho_solve

    matrix = hessian.reshape(rhs.size, rhs.size).T
    factor = cho_factor(matrix, overwrite_a=True, check_finite=False)
    return np.asarray(cho_solve(factor, rhs.ravel(), check_finite=False)).reshape(rhs.shape)


def plain_dense_newton(data: Data, rhs: Array) -> Array:
    return dense_newton(plain_hessian(data), rhs)


def weighted_dense_newton(data: Data, rhs: Array) -> Array:
    return dense_newton(weighted_hessian(data), rhs)


def plain_product(core: Array, data: Data, v: Array) -> Array:
    return v @ core


def weighted_value(data: Data) -> Any:
    scaled = residual(data)
    scaled *= data["W"]
    return np.vdot(scaled, scaled)


def weighted_gradient(data: Data) -> Array:
    scaled = residual(data)
    scaled *= data["W"]
    scaled *= data["W"]
    return -2 * (scaled @ data["V"])


def weighted_core(data: Data) -> Array:
    factor, weight = data["V"], data["W"]
    n, k = factor.shape
    pairs = (2 * factor[:, :, None] * factor[:, None, :]).reshape(n, k * k)
    return ((weight * weight) @ pairs).reshape(-1, k, k)


def weighted_hessian(data: Data) -> Array:
    core = weighted_core(data)
    rows, k, _ = core.shape
    dense = np.zeros((rows, k, rows, k))
    each = np.arange(rows)
    dense[each, :, each, :] = core
    return dense


def weighted_newton(data: Data, rhs: Array) -> Array:
    return np.linalg.solve(weighted_core(data), rhs[:, :, None])[:, :, 0]


def weighted_product(core: Array, data: Data, v: Array) -> Array:
    return np.einsum("ijl,il->ij", core, v)


def value_flops(s: Sizes) -> float:
    return 2.0 * s["m"] * s["n"] * s["k"]


def gradient_flops(s: Sizes) -> float:
    return 4.0 * s["m"] * s["n"] * s["k"]


def plain_core_flops(s: Sizes) -> float:
    return 1.0 * s["n"] * s["k"] * (s["k"] + 1)


def weighted_core_flops(s: Sizes) -> float:
    return 2.0 * s["m"] * s["n"] * s["k"] ** 2


def plain_newton_flops(s: Sizes) -> float:
    return plain_core_flops(s) + s["k"] ** 3 / 3 + 2.0 * s["m"] * s["k"] ** 2


def weighted_newton_flops(s: Sizes) -> float:
    return weighted_core_flops(s) + s["m"] * (2 / 3 * s["k"] ** 3 + 2.0 * s["k"] ** 2)


def dense_newton_flops(s: Sizes) -> float:
    return (s["m"] * s["k"]) ** 3 / 3.0


def forms(
    calls: dict[str, Callable[..., Any]],
    core: Callable[[Sizes], float],
    newton: Callable[[Sizes], float],
    dense: Callable[..., Array],
) -> dict[str, dict[str, Form]]:
    flops = {
        "value": value_flops,
        "gradient": gradient_flops,
        "hessian": core,
        "core": core,
        "newton": newton,
    }
    found = {quantity: {"": Form(call, flops[quantity])} for quantity, call in calls.items()}
    found["newton"]["dense"] = Form(dense, dense_newton_flops)
    return found


CLAIMS: tuple[AnyClaim, ...] = (
    Claim(("core", "tcalc"), ("core", "hand"), 1.5),
    Claim(("hessian", "tcalc"), ("hessian", "hand"), 1.5),
    Claim(("core", "tcalc"), ("hessian", "jax"), 0.1),
    Claim(("newton", "tcalc c"), ("newton", "hand"), 1.5, overhead=0.0),
)
DENSE = ("newton", "hand dense")

UNWEIGHTED = Problem(
    name="matrix-factorisation",
    wrt="U",
    text=PLAIN_TEXT,
    objective=plain_objective,
    expression=plain_expression,
    cases={
        "tiny": (of_size(4, 2),),
        "small": (of_size(30), of_size(100)),
        "paper": (
            of_size(100),
            of_size(200),
            digits(),
            of_size(1000, 10),
        ),
    },
    of_size=of_size,
    hand=forms(
        {
            "value": plain_value,
            "gradient": plain_gradient,
            "hessian": plain_hessian,
            "core": plain_core,
            "newton": plain_newton,
        },
        plain_core_flops,
        plain_newton_flops,
        plain_dense_newton,
    ),
    product=plain_product,
    sparse=True,
    claims=(
        *CLAIMS,
        Claim(("newton", "tcalc"), DENSE, 1 / 50_000, overhead=0.0, least=1000),
        Memory(("core", "tcalc"), 1024, "held"),
    ),
)

WEIGHTED = Problem(
    name="weighted-factorisation",
    wrt="U",
    text=WEIGHTED_TEXT,
    objective=weighted_objective,
    expression=weighted_expression,
    cases={
        "tiny": (of_size(4, 2),),
        "small": (of_size(30), of_size(100)),
        "paper": (
            of_size(100),
            of_size(200),
            digits(),
            of_size(1000, 10),
        ),
    },
    of_size=of_size,
    hand=forms(
        {
            "value": weighted_value,
            "gradient": weighted_gradient,
            "hessian": weighted_hessian,
            "core": weighted_core,
            "newton": weighted_newton,
        },
        weighted_core_flops,
        weighted_newton_flops,
        weighted_dense_newton,
    ),
    product=weighted_product,
    sparse=True,
    claims=(*CLAIMS, Claim(("newton", "tcalc"), DENSE, 1 / 1000, overhead=0.0, least=1000)),
)
