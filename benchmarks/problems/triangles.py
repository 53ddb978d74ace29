"""trsm, trmm and potri alone: sums of all entries of what they return, with generic weights.

The cotangent of what is returned is the weights, so the gradient is one pullback (Seeger et al.
2017, section 4); of the triangle it is a triangle.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..namespaces import solve_lower
from ..problem import Array, Case, Data, Faster, Sizes
from .factorisations import alone, peak


def square(*names: str) -> list[Any]:
    import tcalc as tc

    return [tc.var(name, ("n", "n")) for name in names]


def trsm_objective(xp: Any, data: Any) -> Any:
    return xp.sum(data["C"] * solve_lower(xp, xp.tril(data["A"]), data["B"]))


def trsm_expression(sizes: Sizes) -> Any:
    import tcalc as tc

    C, A, B = square("C", "A", "B")
    return tc.sum(C * tc.linalg.trsm(A, B))


def trmm_objective(xp: Any, data: Any) -> Any:
    return xp.sum(data["C"] * (xp.tril(data["A"]) @ data["B"]))


def trmm_expression(sizes: Sizes) -> Any:
    import tcalc as tc

    C, A, B = square("C", "A", "B")
    return tc.sum(C * tc.linalg.trmm(A, B))


def potri_objective(xp: Any, data: Any) -> Any:
    """C as it stands beside the inverse A^-T A^-1 = X'X of A A'."""
    inverse = solve_lower(xp, xp.tril(data["A"]), data["I"])
    return xp.sum(data["C"] * (inverse.T @ inverse))


def potri_expression(sizes: Sizes) -> Any:
    import tcalc as tc

    C, A = square("C", "A")
    return tc.sum(C * tc.linalg.potri(A))


def of_size(n: int) -> Case:
    def load(rng: np.random.Generator) -> dict[str, Array]:
        draw = rng.standard_normal((3, n, n))
        triangle = np.tril(draw[0]) / np.sqrt(n) + 2 * np.eye(n)
        return {"A": triangle, "B": draw[1], "C": draw[2], "I": np.eye(n)}

    return Case(f"n={n}", {"n": n}, load, ("value", "both"))


def trsm_value(data: Data) -> Any:
    from scipy.linalg.blas import dtrsm

    return np.vdot(data["C"], dtrsm(1.0, data["A"].T, data["B"].T, side=1).T)


def trsm_both(data: Data) -> tuple[Any, tuple[Array, Array]]:
    from scipy.linalg.blas import dtrsm

    upper = data["A"].T
    solved = dtrsm(1.0, upper, data["B"].T, side=1).T
    right = dtrsm(1.0, upper, data["C"].T, side=1, trans_a=1).T
    return np.vdot(data["C"], solved), (-np.tril(right @ solved.T), right)


def trmm_value(data: Data) -> Any:
    from scipy.linalg.blas import dtrmm

    return np.vdot(data["C"], dtrmm(1.0, data["A"].T, data["B"].T, side=1).T)


def trmm_both(data: Data) -> tuple[Any, tuple[Array, Array]]:
    from scipy.linalg.blas import dtrmm

    upper = data["A"].T
    product = dtrmm(1.0, upper, data["B"].T, side=1).T
    right = dtrmm(1.0, upper, data["C"].T, side=1, trans_a=1).T
    return np.vdot(data["C"], product), (np.tril(data["C"] @ data["B"].T), right)


def inverse_of(data: Data) -> Array:
    from scipy.linalg.lapack import dpotri

    found, _ = dpotri(data["A"].T)
    return found + np.triu(found, 1).T


def potri_value(data: Data) -> Any:
    return np.vdot(data["C"], inverse_of(data))


def potri_both(data: Data) -> tuple[Any, Array]:
    from scipy.linalg.blas import dtrsm

    inverse = inverse_of(data)
    weights = data["C"] + data["C"].T
    turned = dtrsm(1.0, data["A"].T, (inverse @ weights).T, trans_a=1).T  # times A^-T
    return np.vdot(data["C"], inverse), -np.tril(turned)


CLAIMS = (Faster("forward", 1.0, least=500), Faster("backward", 1.0, least=500), peak(3))

TRIANGLES = (
    alone("trsm", ("A", "B"), "sum(C .* X), A X = B, A lower", trsm_objective, trsm_expression,
          of_size, (trsm_value, trsm_both), (1.0, 4.0), CLAIMS),
    alone("trmm", ("A", "B"), "sum(C .* (A B)), A lower", trmm_objective, trmm_expression,
          of_size, (trmm_value, trmm_both), (1.0, 4.0), CLAIMS),
    alone("potri", "A", "sum(C .* inv(A A')), A lower", potri_objective, potri_expression,
          of_size, (potri_value, potri_both), (2 / 3, 11 / 3), CLAIMS),
)  # fmt: skip
