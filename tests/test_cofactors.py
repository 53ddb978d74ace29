"""Derivatives of the determinant are signed minors, at singular matrices too, to any order; what is
computed from factors of a matrix.
"""

from __future__ import annotations

import math
from itertools import permutations
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.polynomial import polynomial

import tcalc as tc
from tcalc import linalg as la
from tcalc.backends.c.functions import CompiledSteps
from tcalc.graph.operators import TABLE, Factorisation, Op
from tcalc.support.namespaces import NUMPY
from tests.shared import run_source

A = tc.var("A", ("n", "n"))
N = 4
RNG = np.random.default_rng(3)


def of_rank(rank: int, n: int = N) -> np.ndarray:
    """An integer matrix of this rank, of which no minor of that size is near zero."""
    return RNG.integers(-3, 4, (n, rank)) @ RNG.integers(-3, 4, (rank, n)) + 0.0


def derivative_of_det(a: np.ndarray, order: int) -> np.ndarray:
    """By the sum over permutations: products of the entries that are not differentiated by."""
    n = len(a)
    found = np.zeros((n, n) * order)
    for columns in permutations(range(n)):
        sign = round(np.linalg.det(np.eye(n)[list(columns)]))
        for rows in permutations(range(n), order):
            rest = [a[i, columns[i]] for i in range(n) if i not in rows]
            found[tuple([k for i in rows for k in (i, columns[i])])] += sign * np.prod(rest)
    return found


@pytest.mark.parametrize("rank", range(N + 1))
@pytest.mark.parametrize("order", [1, 2, 3])
def test_derivatives_of_det_at_any_rank(rank: int, order: int) -> None:
    point = of_rank(rank)
    wanted = derivative_of_det(point, order)
    scale = max(1.0, np.abs(wanted).max())
    for mode in ("forward", "reverse", "cross-country"):
        found = tc.derivative(la.det(A), A, order=order, mode=mode)(A=point)
        np.testing.assert_allclose(found, wanted, atol=1e-12 * scale)


@pytest.mark.parametrize("backend", ["numpy", "c", "functional"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_hessians_of_det_on_all_back_ends(backend: str, dtype: Any) -> None:
    batch = np.stack([of_rank(rank) for rank in (1, 2, 3, 4)]).astype(dtype)
    stack = tc.var("A", (4, "n", "n"))
    weights = RNG.normal(size=4)
    f = tc.sum(la.det(stack) * tc.const(weights))
    found = tc.compile(tc.hessian(f, stack), backend=backend)(A=batch)
    for k, (a, weight) in enumerate(zip(batch, weights, strict=True)):
        wanted = weight * derivative_of_det(a, 2)
        scale = max(1.0, np.abs(wanted).max())
        np.testing.assert_allclose(
            found[k, :, :, k], wanted, atol=1e-12 * scale if dtype is np.float64 else 1e-4 * scale
        )


@pytest.mark.parametrize("rank", range(N + 1))
def test_printed_programs_at_any_rank(rank: int) -> None:
    point = of_rank(rank)
    direction = RNG.normal(size=(N, N))
    for order, e in [(1, tc.grad(la.det(A), A)), (2, tc.hessian(la.det(A), A))]:
        wanted = derivative_of_det(point, order)
        found = run_source(e, {"A": point})
        np.testing.assert_allclose(found, wanted, atol=1e-12 * max(1.0, np.abs(wanted).max()))
    square = tc.var("A", (N, N))
    along = tc.hvp(la.det(square), square, tc.const(direction))
    wanted = np.tensordot(derivative_of_det(point, 2), direction)
    np.testing.assert_allclose(run_source(along, {"A": point}), wanted, atol=1e-10)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_small_matrices(n: int) -> None:
    point = RNG.normal(size=(n, n))
    for order in (1, 2, 3):
        found = tc.derivative(la.det(A), A, order=order)(A=point)
        np.testing.assert_allclose(found, derivative_of_det(point, order), atol=1e-14)


def test_derivatives_of_the_adjugate_divide_by_nothing() -> None:
    """adj is the gradient of det transposed, so its Jacobian is a Hessian of det."""
    for rank in range(N + 1):
        point = of_rank(rank)
        wanted = np.swapaxes(derivative_of_det(point, 2), 0, 1)
        np.testing.assert_allclose(
            tc.jacobian(la.adj(A), A)(A=point), wanted, atol=1e-12 * max(1.0, np.abs(wanted).max())
        )


@pytest.mark.parametrize("mode", ["forward", "reverse", "cross-country"])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_adjugates_along_a_curve(order: int, mode: str) -> None:
    """Its entries are polynomials of the sixth degree, whose derivatives are known from values."""
    a, b, t = of_rank(2, 3), of_rank(1, 3), tc.var("t")

    def minors(m: np.ndarray) -> list[float]:
        kept = [(j, i) for i in range(3) for j in range(3)]
        return [
            (-1) ** (i + j) * np.linalg.det(np.delete(np.delete(m, i, 0), j, 1)) for i, j in kept
        ]

    points = np.cos(np.pi * (np.arange(13) + 0.5) / 13)
    fitted = polynomial.polyfit(points, [minors(s * s * a + s**3 * b) for s in points], 6)
    wanted = polynomial.polyval(0.7, polynomial.polyder(fitted, order)).reshape(3, 3)
    found = tc.derivative(la.adj(t * t * a + t**3 * b), t, order=order, mode=mode)(t=0.7)
    np.testing.assert_allclose(found, wanted, atol=1e-10 * np.abs(wanted).max())


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("power", range(0, 17, 2))
def test_cofactors_are_accurate_however_a_matrix_is_conditioned(power: int, backend: str) -> None:
    """By the inverse where that is as good, by singular values elsewhere."""
    rng = np.random.default_rng(power)
    u, _, v = np.linalg.svd(rng.normal(size=(N, N)))
    point = (u * np.array([1, 0.9, 0.8, 10.0**-power])) @ v
    with mpmath.workdps(60):
        exact = mpmath.matrix(point.tolist())
        inverse = mpmath.inverse(exact) * mpmath.det(exact)
        wanted = np.array(inverse.tolist(), dtype=float)
    found = tc.compile(tc.grad(la.det(A), A), backend=backend)(A=point)
    np.testing.assert_allclose(found, wanted.T, atol=2e-12 * np.abs(wanted).max())


def test_small_matrices_stay_in_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy is not entered for their determinants, inverses and adjugates, but where C leaves."""
    rows = [la.det(A), la.inv(A), la.logdet(A), la.adj(A)]
    step = tc.compile(rows, backend="c")
    step(A=np.eye(5))
    left: list[int] = []
    monkeypatch.setattr(CompiledSteps, "_step", lambda self, v, number: left.append(number))
    step(A=RNG.normal(size=(5, 5)) + 3 * np.eye(5))
    assert not left


# --- from a matrix, and from its factors ----------------------------------------------------------


def det(a: np.ndarray) -> float:
    return float(derivative_of_det(a, 0))


def by_cofactors(a: np.ndarray) -> np.ndarray:
    return derivative_of_det(a, 1).T / det(a)


BY_HAND = {
    "inv": by_cofactors,
    "det": det,
    "logdet": lambda a: math.log(abs(det(a))),
    "det_sign": lambda a: math.copysign(1, det(a)),
    "inverse_definite": by_cofactors,
    "logdet_definite": lambda a: math.log(det(a)),
}


@pytest.mark.parametrize(
    "op", [op for op in TABLE.values() if op.kernels.finish is not None], ids=lambda op: op.name
)
def test_rows_with_factors_have_kernels_of_the_matrix_too(op: Op) -> None:
    """Plans that share no factor call one or the other, by the back end."""
    definite = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -1.0], [0.5, -1.0, 2.0]])
    general = np.array([[1.0, 2.0, 0.5], [3.0, -1.0, 2.0], [0.5, 4.0, 1.0]])
    assert det(general) < 0 < det(general[[1, 0, 2]])
    some = [definite, 0.3 * definite]
    if not op.name.endswith("definite"):
        some += [general, general[[1, 0, 2]], -general]
    factor = op.kernels.factor
    factorised = factor.compute if isinstance(factor, Factorisation) else factor.kernels.compute
    for a in some:
        wanted = BY_HAND[op.name](a)
        np.testing.assert_allclose(op.kernels.compute(NUMPY, (), a), wanted, rtol=1e-12, atol=1e-13)
        found = op.kernels.finish(NUMPY, (), factorised(NUMPY, (), a))
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)
