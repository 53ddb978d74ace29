"""potrf, gelqf and syevd alone: f(A) = sum of all entries of the factors, with generic weights.

The cotangents of the factors are the weights, so the gradient is one pullback (Seeger et al. 2017).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..namespaces import eigh
from ..problem import AnyClaim, Array, Case, Data, Faster, Form, Limit, Problem, Sizes

BLOCK = 64
SIZES = (100, 200, 500, 1000, 2000)


def potrf_objective(xp: Any, data: Any) -> Any:
    return xp.sum(data["C"] * xp.linalg.cholesky(data["A"]))


def potrf_expression(sizes: Sizes) -> Any:
    import tcalc as tc

    return tc.sum(tc.var("C", ("n", "n")) * tc.linalg.potrf(tc.var("A", ("n", "n"))))


def gelqf_objective(xp: Any, data: Any) -> Any:
    """By QR of the transpose, with signs that make the triangle's diagonal positive."""
    q, r = xp.linalg.qr(data["A"].T)
    signs = xp.sign(xp.diag(r))
    return xp.sum(data["C"].T * (r * signs[:, None])) + xp.sum(data["D"].T * (q * signs))


def gelqf_expression(sizes: Sizes) -> Any:
    import tcalc as tc

    q, factor = tc.linalg.gelqf(tc.var("A", ("m", "n")))
    return tc.sum(tc.var("C", ("m", "m")) * factor) + tc.sum(tc.var("D", ("m", "n")) * q)


def syevd_objective(xp: Any, data: Any) -> Any:
    """With signs that make every eigenvector's entry of largest magnitude positive."""
    w, vectors = eigh(xp, data["A"])
    largest = xp.argmax(xp.abs(vectors), 0)
    signs = xp.sign(vectors[largest, xp.arange(len(w))])
    return xp.sum(data["C"].T * (vectors * signs)) + data["c"] @ w


def syevd_expression(sizes: Sizes) -> Any:
    import tcalc as tc

    vectors, w = tc.linalg.syevd(tc.var("A", ("n", "n")))
    return tc.sum(tc.var("C", ("n", "n")) * vectors) + tc.var("c", ("n",)) @ w


def positive(n: int) -> Case:
    def load(rng: np.random.Generator) -> dict[str, Array]:
        root = rng.standard_normal((n, n))
        return {"A": root @ root.T / n + 0.5 * np.eye(n), "C": rng.standard_normal((n, n))}

    return case(n, {"n": n}, load)


def wide(n: int) -> Case:
    """Half as many rows as columns."""
    m = n // 2

    def load(rng: np.random.Generator) -> dict[str, Array]:
        draw = rng.standard_normal
        return {"A": draw((m, n)), "C": draw((m, m)), "D": draw((m, n))}

    return case(n, {"m": m, "n": n}, load)


def separated(n: int) -> Case:
    """Eigenvalues at least 1/2 apart, so that all contestants' values agree to many digits."""

    def load(rng: np.random.Generator) -> dict[str, Array]:
        vectors, _ = np.linalg.qr(rng.standard_normal((n, n)))
        w = np.arange(n) + 0.5 * rng.random(n)
        whole = (vectors * w) @ vectors.T
        weights = {"C": rng.standard_normal((n, n)), "c": rng.standard_normal(n)}
        return {"A": (whole + whole.T) / 2, **weights}

    return case(n, {"n": n}, load)


def case(n: int, sizes: Sizes, load: Callable[[np.random.Generator], dict[str, Array]]) -> Case:
    return Case(f"n={n}", sizes, load, ("value", "both"))


def potrf_value(data: Data) -> Any:
    return np.vdot(data["C"], np.linalg.cholesky(data["A"]))


def potrf_both(data: Data) -> tuple[Any, Array]:
    """The pullback by blocks of columns from the last to the first (Murray 2016)."""
    from scipy.linalg.blas import dtrsm

    factor = np.linalg.cholesky(data["A"])
    bar = np.tril(data["C"])
    n = len(bar)
    for start in range((n - 1) // BLOCK * BLOCK, -1, -BLOCK):
        own, left, below = slice(start, start + BLOCK), slice(start), slice(start + BLOCK, n)
        square, under = factor[own, own], bar[below, own]
        under[:] = dtrsm(1.0, square.T, under.T, lower=0).T  # times L^-1 from the right
        bar[below, left] -= under @ factor[own, left]
        inner = half_pullback(square, bar[own, own] - np.tril(under.T @ factor[below, own]))
        bar[own, left] -= under.T @ factor[below, left] + (inner + inner.T) @ factor[own, left]
        bar[own, own] = inner
    return np.vdot(data["C"], factor), (bar + bar.T) / 2


def half_pullback(factor: Array, bar: Array) -> Array:
    """One block's, as a lower triangle whose entries off the diagonal count twice."""
    from scipy.linalg.blas import dtrsm

    product = np.tril(factor.T @ bar)
    product += np.tril(product, -1).T
    turned = dtrsm(1.0, factor.T, dtrsm(1.0, factor.T, product), side=1, trans_a=1)
    found = np.tril(turned)
    np.einsum("ii->i", found)[:] /= 2
    return found


def lq(data: Data) -> tuple[Array, Array]:
    from scipy.linalg.lapack import dgeqrf, dorgqr

    m = len(data["A"])
    reflectors, scales, _, _ = dgeqrf(data["A"].T, lwork=32 * m)
    factor = np.tril(reflectors[:m].T)
    q = dorgqr(reflectors, scales, lwork=32 * m, overwrite_a=1)[0].T
    signs = np.sign(np.diagonal(factor))
    factor *= signs
    q *= signs[:, None]
    return factor, q


def gelqf_value(data: Data) -> Any:
    factor, q = lq(data)
    return np.vdot(data["C"], factor) + np.vdot(data["D"], q)


def gelqf_both(data: Data) -> tuple[Any, Array]:
    from scipy.linalg.blas import dtrsm

    factor, q = lq(data)
    inner = factor.T @ np.tril(data["C"]) - data["D"] @ q.T
    inner = np.tril(inner) + np.tril(inner, -1).T
    turned = inner @ q
    turned += data["D"]
    found = dtrsm(1.0, factor.T, turned.T, side=1, lower=0, trans_a=1, overwrite_b=1).T
    return np.vdot(data["C"], factor) + np.vdot(data["D"], q), found


def signed_eigh(data: Data) -> tuple[Array, Array]:
    w, vectors = np.linalg.eigh(data["A"])
    vectors *= np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(len(w))])
    return w, vectors


def syevd_value(data: Data) -> Any:
    w, vectors = signed_eigh(data)
    return np.vdot(data["C"].T, vectors) + data["c"] @ w


def syevd_both(data: Data) -> tuple[Any, Array]:
    w, vectors = signed_eigh(data)
    apart = np.subtract.outer(w, w)
    np.einsum("ii->i", apart)[:] = np.inf
    inner = data["C"] @ vectors
    inner /= apart
    inner = (inner + inner.T) / 2
    np.einsum("ii->i", inner)[:] = data["c"]
    value = np.vdot(data["C"].T, vectors) + data["c"] @ w
    return value, vectors @ inner @ vectors.T


def alone(
    name: str,
    wrt: str | tuple[str, ...],
    text: str,
    objective: Callable[[Any, Any], Any],
    expression: Callable[[Sizes], Any],
    of_size: Callable[[int], Case],
    forms: tuple[Callable[[Data], Any], Callable[[Data], Any]],
    cubes: tuple[float, float],
    claims: tuple[AnyClaim, ...],
    without: tuple[str, ...] = (),
) -> Problem:
    """An operator by itself; `cubes` are the operations by n^3 of value and of both by hand."""
    value, both = cubes
    return Problem(
        name=name,
        wrt=wrt,
        text=text,
        objective=objective,
        expression=expression,
        cases={
            "tiny": (of_size(6),),
            "small": tuple(map(of_size, SIZES[:2])),
            "paper": tuple(map(of_size, SIZES)),
        },
        of_size=of_size,
        hand={
            "value": {"": Form(forms[0], lambda s: value * s["n"] ** 3)},
            "both": {"": Form(forms[1], lambda s: both * s["n"] ** 3)},
        },
        claims=claims,
        without=without,
    )


def peak(matrices: float) -> Limit:
    """The peak of value and gradient in matrices, results among them, and a few vectors."""
    return Limit(("both", "tcalc"), matrices + 0.05, "matrices", least=500)


def problem(
    name: str,
    text: str,
    objective: Callable[[Any, Any], Any],
    expression: Callable[[Sizes], Any],
    of_size: Callable[[int], Case],
    forms: tuple[Callable[[Data], Any], Callable[[Data], Any]],
    cubes: tuple[float, float],
    backward: float,
    matrices: float,
) -> Problem:
    """As `alone`; `backward` says how much faster than the best rival, `matrices` the peak."""
    claims = (
        Faster("forward", 0.9, least=500),
        Faster("backward", backward, least=1000),
        Faster("forward", 1.0, least=100, mine="tcalc c"),
        Faster("backward", backward, least=100, mine="tcalc c"),
        peak(matrices),
    )
    return alone(
        name, "A", text, objective, expression, of_size, forms, cubes, claims, ("autograd",)
    )


POTRF = problem(
    "potrf",
    "sum(C .* L), A = L L'",
    potrf_objective,
    potrf_expression,
    positive,
    (potrf_value, potrf_both),
    (1 / 3, 1.0),
    4.0,
    3.0,
)
GELQF = problem(
    "gelqf",
    "sum(C .* L) + sum(D .* Q), A = L Q of n/2 rows",
    gelqf_objective,
    gelqf_expression,
    wide,
    (gelqf_value, gelqf_both),
    (5 / 6, 5 / 6 + 1.5),
    1.4,
    6.0,
)
SYEVD = problem(
    "syevd",
    "sum(C .* U) + c'w, U A = diag(w) U",
    syevd_objective,
    syevd_expression,
    separated,
    (syevd_value, syevd_both),
    (9.0, 15.0),
    1.2,
    3.0,
)
FACTORISATIONS = (POTRF, GELQF, SYEVD)
