"""Functions of matrices where they are hard: equal eigenvalues, bad condition, no real value.

Generic matrices at all orders and modes are in the table of `test_linalg`.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import tcalc as tc
from tcalc.ops.matrix.divided_differences import Scalar, X, divided_differences
from tests import hyper
from tests.linalg_cases import eigenvalue_sum, eigh_function

la = tc.linalg
MODES = ("forward", "reverse", "cross-country")
A, B = tc.var("A", ("n", "n")), tc.var("B", ("b", "n", "n"))
RNG = np.random.default_rng(0)
Q = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
P = RNG.normal(size=(3, 3)) + 2 * np.eye(3)

#: Matrices with equal eigenvalues: symmetric, similar to a symmetric one, and of one Jordan block.
TIED = {
    "double": (Q * [1.0, 2.0, 2.0]) @ Q.T,
    "triple": 2 * np.eye(3),
    "near": (Q * [1.0, 1 + 1e-9, 2.0]) @ Q.T,
    "not symmetric": (P * [1.0, 2.0, 2.0]) @ np.linalg.inv(P),
    "one block": 1.5 * np.eye(3) + np.eye(3, k=1),
}
DIRECTIONS = [RNG.normal(size=(3, 3)) for _ in range(4)]


def along(e: tc.Expr, x: tc.Expr, data: np.ndarray, order: int, mode: str = "auto") -> Any:
    """The derivative of an order, along as many directions."""
    found = tc.derivative(e, x, order, mode)({x.name: data})
    for direction in DIRECTIONS[:order]:
        found = np.tensordot(found, direction, axes=2)
    return found


def exact(function: Any, data: np.ndarray, order: int) -> np.ndarray:
    return hyper.last(function(hyper.hyper(data, DIRECTIONS[:order])), order)


def close(found: Any, wanted: Any, tolerance: float) -> None:
    assert np.shape(found) == np.shape(wanted)
    size = max(1.0, float(np.max(np.abs(wanted), initial=0)))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * size)


# --- equal eigenvalues ----------------------------------------------------------------------------

GENERAL = {"expm": (la.expm, hyper.expm), "sqrtm": (la.sqrtm, hyper.sqrtm),
           "logm": (la.logm, hyper.logm)}  # fmt: skip


GENERAL_ORDERS = range(3)


@pytest.mark.parametrize("name", GENERAL)
@pytest.mark.parametrize("place", TIED)
def test_general_functions_at_ties(name: str, place: str) -> None:
    build, oracle = GENERAL[name]
    for order in GENERAL_ORDERS:
        wanted = exact(oracle, TIED[place], order)
        close(along(build(A), A, TIED[place], order), wanted, 1e-11)


def symmetric_trace(a: Any, oracle: Any) -> Any:
    return hyper.total(list(np.diagonal(oracle(hyper.symmetric(a)))))


#: What is built of (w, V), and the same from the matrix alone.
SPECTRAL = {
    "w": (lambda a: eigenvalue_sum(a, lambda w: w), lambda a: symmetric_trace(a, lambda s: s)),
    "w^2": (
        lambda a: eigenvalue_sum(a, lambda w: w * w),
        lambda a: symmetric_trace(a, lambda s: hyper.power(s, 2)),
    ),
    "w^3": (
        lambda a: eigenvalue_sum(a, lambda w: w**3),
        lambda a: symmetric_trace(a, lambda s: hyper.power(s, 3)),
    ),
    "exp": (
        lambda a: eigenvalue_sum(a, tc.exp),
        lambda a: symmetric_trace(a, hyper.expm),
    ),
    "sum of sqrt": (
        lambda a: tc.trace(eigh_function(a, tc.sqrt)),
        lambda a: symmetric_trace(a, hyper.sqrtm),
    ),
    "V w^-1 V'": (
        lambda a: eigh_function(a, tc.reciprocal),
        lambda a: hyper.inverse(hyper.symmetric(a)),
    ),
    "V w log(w) V'": (
        lambda a: eigh_function(a, lambda w: w * tc.log(w)),
        lambda a: hyper.product(hyper.symmetric(a), hyper.logm(hyper.symmetric(a))),
    ),
}
SPECTRAL_ORDERS = range(4)


@pytest.mark.parametrize("name", SPECTRAL)
@pytest.mark.parametrize("place", ["double", "triple", "near"])
def test_functions_of_eigenvalues_at_ties(name: str, place: str) -> None:
    build, oracle = SPECTRAL[name]
    for order in SPECTRAL_ORDERS:
        wanted = exact(oracle, TIED[place], order)
        for mode in MODES if order < 3 else ("forward",):
            close(along(build(A), A, TIED[place], order, mode), wanted, 1e-11)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_any_order_at_a_multiple_of_the_identity(order: int) -> None:
    e = eigenvalue_sum(A, tc.sin)
    found = tc.derivative(e, A, order, "reverse")(A=0.7 * np.eye(2))
    h = np.array([[0.3, -1.0], [0.5, 2.0]])
    for _ in range(order):
        found = np.tensordot(found, h, axes=2)
    symmetric = (h + h.T) / 2
    wanted = math.sin(0.7 + order * math.pi / 2)
    wanted *= np.trace(np.linalg.matrix_power(symmetric, order))
    close(found, wanted, 1e-13)


def test_single_eigenvalues() -> None:
    values = la.eigvalsh(A)
    assert values is la.eigh(A)[0]
    apart = (Q * [1.0, 2.0, 4.0]) @ Q.T
    for order in (1, 2, 3):
        wanted = exact(lambda a: hyper.eigh(a)[0], apart, order)
        close(along(values, A, apart, order), wanted, 1e-12)
    with pytest.raises(tc.LinAlgError, match="equal eigenvalues"):
        tc.derivative(values, A, 2)(A=TIED["double"])


def test_kinks_between_eigenvalues() -> None:
    """The sum of the positive eigenvalues has a Hessian where none is zero."""
    e = eigenvalue_sum(A, tc.relu)
    data = (Q * [-1.0, 0.5, 0.5]) @ Q.T
    step = 1e-4
    h = (DIRECTIONS[0] + DIRECTIONS[0].T) / 2
    values = [e(A=data + k * step * h) for k in (-1, 0, 1)]
    wanted = (values[0] - 2 * values[1] + values[2]) / step**2
    found = np.tensordot(np.tensordot(tc.hessian(e, A)(A=data), h, axes=2), h, axes=2)
    close(found, wanted, 1e-5)


# --- divided differences --------------------------------------------------------------------------

SCALARS = {
    "exp": (tc.exp, mp.exp), "sqrt": (tc.sqrt, mp.sqrt), "log": (tc.log, mp.log),
    "tanh": (tc.tanh, mp.tanh), "reciprocal": (tc.reciprocal, lambda x: 1 / x),
}  # fmt: skip


def divided(f: Any, points: list[Any]) -> Any:
    """Newton's table; equal points take the derivative."""
    table = [f(x) for x in points]
    for j in range(1, len(points)):
        for i in range(len(points) - j):
            gap = points[i + j] - points[i]
            table[i] = (
                (table[i + 1] - table[i]) / gap
                if gap
                else mp.diff(f, points[i], j) / mp.factorial(j)
            )
    return table[0]


@pytest.mark.parametrize("name", SCALARS)
@pytest.mark.parametrize("order", [1, 2, 3])
def test_divided_differences_at_any_distance(name: str, order: int) -> None:
    g, f = SCALARS[name]
    function = Scalar(g(X), order)
    for gap in (1.0, 0.3, 0.1, 1e-2, 1e-4, 1e-6, 1e-8, 1e-12, 1e-15, 0.0):
        for pattern in itertools.combinations_with_replacement((0.0, 1.0, 1.7), order):
            x = 1.3 + gap * np.array([0.0, *pattern])
            found = divided_differences(function, x[None])[0]
            with mp.workdps(80):
                wanted = divided(f, [mp.mpf(float(v)) for v in x])
                size = max(abs(wanted), abs(mp.diff(f, 1.3, order) / mp.factorial(order)))
                assert abs(found - wanted) <= 1e-13 * size


def test_divided_differences_over_a_wide_range() -> None:
    """Small points make a peak of derivatives that all nodes of an integral may miss."""
    rng = np.random.default_rng(0)
    some = [
        np.exp(rng.uniform(-25, 5, 5 if k % 2 else 1)) * (1 + 10.0 ** rng.uniform(-15, 1, 5))
        for k in range(60)
    ]
    given = [[1e-8, 1e-8 * (1 + 1e-7), 1.0], [1e-12, 1.0, 1 + 1e-14], [1e-6, 1e-3, 1e3],
             [2.63e-11, 6.63e-11, 1.75e-9, 0.269, 109.4]]  # fmt: skip
    for points in (*given, *map(np.sort, some)):
        function = Scalar(tc.log(X), len(points) - 1)
        with mp.workdps(120):
            wanted = divided(mp.log, [mp.mpf(float(x)) for x in points])
        found = divided_differences(function, np.array([points]))[0]
        assert abs(found - wanted) <= 1e-13 * abs(wanted)


# --- condition, size, dtype -----------------------------------------------------------------------


KAPPAS = (1e2, 1e8)
CONDITIONED = ("sqrtm", "logm")


@pytest.mark.parametrize("kappa", KAPPAS)
@pytest.mark.parametrize("name", CONDITIONED)
def test_error_grows_as_the_condition(name: str, kappa: float) -> None:
    build, oracle = GENERAL[name]
    values = np.array([1, kappa**-0.5, 1 / kappa])
    symmetric = (Q * values) @ Q.T
    for data in ((symmetric + symmetric.T) / 2, (P * values) @ np.linalg.inv(P)):
        for order in (0, 1):
            wanted = exact(oracle, data, order)
            found = along(build(A), A, data, order)
            np.testing.assert_allclose(
                found, wanted, rtol=0, atol=3e-15 * kappa * np.max(np.abs(wanted))
            )


def test_large_and_small_exponents_in_one_batch() -> None:
    data = np.stack([30 * P, 1e-3 * P, 0 * P])
    found = tc.jacobian(la.expm(B), B)(B=data)
    for k in range(3):
        wanted = exact(hyper.expm, data[k], 1)
        got = np.tensordot(found[k, :, :, k], DIRECTIONS[0], axes=2)
        np.testing.assert_allclose(got, wanted, atol=1e-13 * np.max(np.abs(wanted)))
        assert not found[k, :, :, np.arange(3) != k].any()


def test_symmetric_matrices_are_a_limit_of_others() -> None:
    data = TIED["double"]
    data = (data + data.T) / 2
    for build, _ in GENERAL.values():
        for order in range(3):
            beside = data + 1e-14 * DIRECTIONS[3]
            close(along(build(A), A, data, order), along(build(A), A, beside, order), 1e-12)


def test_roots_of_singular_symmetric_matrices() -> None:
    half = (Q * [0.0, 0.0, 3.0]) @ Q.T
    half = (half + half.T) / 2
    close(la.sqrtm(A)(A=half @ half), half, 1e-7)
    np.testing.assert_array_equal(la.sqrtm(A)(A=np.zeros((2, 2))), np.zeros((2, 2)))


# --- errors ---------------------------------------------------------------------------------------

NEGATIVE, SINGULAR = np.diag([1.0, -2.0]), np.array([[1.0, 2.0], [0.0, 0.0]])
DOUBLE_ZERO = np.array([[0.0, 1.0], [0.0, 0.0]])
WRONG = [
    (la.sqrtm, 0, NEGATIVE, "sqrtm: an eigenvalue is negative, so the principal square root is"),
    (la.sqrtm, 0, NEGATIVE + SINGULAR, "sqrtm: an eigenvalue is negative"),
    (la.logm, 0, NEGATIVE, "logm: an eigenvalue is negative, so the principal logarithm is"),
    (la.logm, 1, NEGATIVE + SINGULAR - np.eye(2), "logm: an eigenvalue is negative"),
    (la.logm, 0, SINGULAR, "logm: the matrix is singular"),
    (la.sqrtm, 1, SINGULAR, "sqrtm: the matrix is singular, where the square root has no deriv"),
    (la.sqrtm, 0, DOUBLE_ZERO, "sqrtm: zero is an eigenvalue more than once"),
    (la.expm, 0, np.full((2, 2), np.nan), "expm: entries that are not finite"),
    (la.logm, 2, np.full((2, 2), np.inf), "logm: entries that are not finite"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "order", "data", "message"), WRONG)
def test_matrices_without_a_value(function: Any, order: int, data: Any, message: str) -> None:
    with pytest.raises(tc.LinAlgError, match=message) as caught:
        tc.derivative(function(A), A, order, "forward")(A=data)
    assert "batch" not in str(caught.value)
    batch = np.stack([2 * np.eye(2) + np.eye(2, k=1), data])
    with pytest.raises(tc.LinAlgError, match=message + r".*\(item 1 of the batch\)"):
        tc.derivative(function(B), B, order, "forward")(B=batch)


@pytest.mark.parametrize("name", ["eigvalsh", "expm", "logm", "sqrtm", "matrix_function"])
def test_non_square_matrices(name: str) -> None:
    more = (tc.exp,) if name == "matrix_function" else ()
    word = "eigh" if name == "eigvalsh" else name
    with pytest.raises(tc.ShapeError, match=f"^{word} needs a square matrix"):
        getattr(la, name)(tc.var("M", (2, 3)), *more)


def test_functions_that_are_not_scalar() -> None:
    y, v = tc.var("y"), tc.var("v", "n")
    n = tc.sum(0 * v + 1)
    with pytest.raises(tc.UnsupportedError, match="function of one number"):
        la.matrix_function(A, lambda x: x * y)
    for sized in (lambda x: n * x, lambda x: x / n, lambda x: 1 + tc.sin(n * x)):
        with pytest.raises(tc.UnsupportedError, match="function of one number"):
            la.matrix_function(A, sized)
    with pytest.raises(tc.UnsupportedError, match="from a number to a number"):
        la.matrix_function(A, lambda x: x * v)


# --- the rules ------------------------------------------------------------------------------------


def through_eigenvectors(e: tc.Expr) -> bool:
    """Does the Hessian fail at equal eigenvalues?"""
    data = {name: np.ones((2,) * v.ndim) for name, v in e.variables.items()}
    data["A"] = np.eye(2)
    try:
        tc.hessian(e, A)(data)
    except tc.LinAlgError:
        return True
    return False


def test_what_is_recognised() -> None:
    (w, V), (other, U) = la.eigh(A), la.eigh(tc.var("C", ("n", "n")))
    v, y = tc.var("v", "n"), tc.var("y", ("m", "n"))
    root = (V * tc.sqrt(w)) @ V.T
    for e in (
        tc.sum(w), tc.mean(w * w), tc.sum(tc.where(w > 0, w, -w)), 3 * tc.sum(tc.exp(w) + w),
        tc.sum(w) * tc.sum(w * w), tc.norm(w), tc.log(tc.sum(w)),
        tc.sum(root), v @ root @ v, tc.trace(y @ root @ y.T), tc.sum(tc.diag(root)),
        tc.sum((V * w * tc.log(w)) @ V.T * root), tc.sum(other) * tc.sum(w**3),
    ):  # fmt: skip
        assert not through_eigenvectors(e), str(e)
    for e in (tc.sum(w * v), tc.sum((V * v) @ V.T), tc.sum((V * w) @ U.T), tc.max(V) * tc.sum(w)):
        assert through_eigenvectors(e), str(e)


def test_weighted_sums_in_a_batch() -> None:
    weights = tc.var("c", "b")
    w, V = la.eigh(B)
    data = {"B": np.stack([2 * np.eye(2), 3 * np.eye(2)]), "c": np.array([1.0, -2.0])}
    hessian = tc.hessian(tc.sum(tc.exp(w) * weights[:, None]), B)(data)
    unit = np.einsum("ik,jl->ijkl", np.eye(2), np.eye(2))
    unit = (unit + unit.swapaxes(0, 1)) / 2
    for k in range(2):
        wanted = data["c"][k] * math.exp(k + 2) * unit
        close(hessian[k, :, :, k], wanted, 1e-14)
    root = tc.jacobian((V * tc.sqrt(w)[:, None, :]) @ V.mT, B)(B=data["B"])
    close(root[1, :, :, 1], unit / (2 * math.sqrt(3)), 1e-14)
    assert not root[0, :, :, 1].any()


def test_constant_and_linear_functions_need_no_eigenvectors() -> None:
    w, V = la.eigh(A)
    assert tc.simplify(tc.sum(w)) is tc.trace(A)
    assert tc.simplify((V * w) @ V.T) is (A + A.T) / 2
    assert tc.grad(tc.sum(w * w), A).args[0] is tc.simplify(A + A.T)


#: Contractions of two matrices of eigenvectors with a function of the eigenvalues, over k.
CONTRACTIONS = [
    "ak,k,bk->ab", "ak,k,bk->b", "ak,k,bk->", "ak,k,ak->a", "ak,k,ak->", "a,ak,k,bk->b",
    "b,ak,k,bk->", "a,ak,k,ak->", "ak,k,bk->aab", "a,b,ak,k,bk->",
]  # fmt: skip


@pytest.mark.parametrize("spec", CONTRACTIONS)
def test_contractions_with_functions_of_eigenvalues(spec: str) -> None:
    """Gradients by Daleckii and Krein's formula, from those by the function of the matrix."""
    words, _, out = spec.partition("->")
    *vectors, one, _, two = words.split(",")
    x, (w, V) = tc.var("x", "n"), la.eigh(A)
    s = tc.sum(tc.einsum(spec, *[x] * len(vectors), V, tc.tanh(w), V) ** 2)
    rng = np.random.default_rng(3)
    data, v = rng.normal(size=(3, 3)), rng.normal(size=3)
    values, U = np.linalg.eigh(data + data.T)
    g = np.tanh(values)

    def contracted(matrix: np.ndarray) -> np.ndarray:
        """Without the unit tensor of an axis that stands twice, which adds zeros."""
        kept = "".join(dict.fromkeys(out))
        left = ",".join([*vectors, one[0] + two[0]])
        return np.einsum(f"{left}->{kept}", *[v] * len(vectors), matrix)

    found = contracted((U * g) @ U.T)
    bar = np.array(
        [[2 * np.sum(found * contracted(np.outer(i, j))) for j in np.eye(3)] for i in np.eye(3)]
    )
    with np.errstate(all="ignore"):
        divided = (g[:, None] - g) / (values[:, None] - values)
    np.fill_diagonal(divided, 1 - g**2)
    wanted = U @ (divided * (U.T @ (bar + bar.T) @ U)) @ U.T / 2
    bind = {"A": data + data.T, "x": v}
    close(s(bind), np.sum(found**2), 1e-12)
    for mode in MODES:
        close(tc.jacobian(s, A, mode=mode)(bind), wanted, 1e-11)


@pytest.mark.parametrize("name", ["expm", "sqrtm", "logm"])
def test_formulas_of_functions_and_of_their_derivatives(name: str) -> None:
    e, E = getattr(la, name)(A), tc.var("E", A.shape)
    assert tc.to_latex(e) == rf"\operatorname{{{name}}}(A)"
    assert tc.to_latex(tc.jvp(e, A, E)) == rf"\operatorname{{L}}_{{\mathrm{{{name}}}}}(A, E)"
