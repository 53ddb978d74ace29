"""Singular values: invariants of whole derivatives, ties, zeros, and the norms made of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tests.test_code import loaded

MODES = ("forward", "reverse", "cross-country")
la = tc.linalg
TALL, WIDE, SQUARE = (4, 2), (2, 3), (3, 3)
RNG = np.random.default_rng(3)
DATA = {shape: RNG.normal(size=shape) for shape in (TALL, WIDE, SQUARE)}


def orthogonal(n: int, seed: int = 0) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))[0]


def differences(compute: Callable[[np.ndarray], Any], at: np.ndarray, h: float = 1e-5) -> Any:
    columns = []
    for k in range(at.size):
        step = np.zeros(at.size)
        step[k] = h
        step = step.reshape(at.shape)
        columns.append((compute(at + step) - compute(at - step)) / (2 * h))
    return np.stack(columns, axis=-1).reshape(np.shape(columns[0]) + at.shape)


# --- invariants -----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", [TALL, WIDE, SQUARE])
def test_products_of_factors(shape: tuple[int, int], mode: str) -> None:
    a = tc.var("A", shape)
    u, s, vh = la.svd(a)
    whole = (u * s) @ vh
    np.testing.assert_allclose(whole(A=DATA[shape]), DATA[shape], atol=1e-14)
    unit = np.einsum("ik,jl->ijkl", np.eye(shape[0]), np.eye(shape[1]))
    first = tc.jacobian(whole, a, mode=mode)
    np.testing.assert_allclose(first(A=DATA[shape]), unit, atol=1e-12)
    second = tc.jacobian(first, a, mode=mode)
    np.testing.assert_allclose(second(A=DATA[shape]), 0, atol=1e-11)
    for product in (u.T @ u, vh @ vh.T):
        for order in (1, 2):
            still = tc.derivative(product, a, order, mode)
            np.testing.assert_allclose(still(A=DATA[shape]), 0, atol=1e-11)


def test_third_derivative_of_a_linear_product() -> None:
    a = tc.var("A", WIDE)
    u, s, vh = la.svd(a)
    third = tc.derivative((u * s) @ vh, a, 3)
    np.testing.assert_allclose(third(A=DATA[WIDE]), 0, atol=1e-10)


@pytest.mark.parametrize("shape", [TALL, WIDE, SQUARE, (2, 3, 2), (0, 3), (3, 0), (0, 0)])
def test_factors_are_those_of_numpy(shape: tuple[int, ...]) -> None:
    a, data = tc.var("A", shape), RNG.normal(size=shape)
    wanted = np.linalg.svd(data, full_matrices=False)
    for e, value in zip(la.svd(a), wanted, strict=True):
        assert e.shape == value.shape
        np.testing.assert_array_equal(e(A=data), value)
    np.testing.assert_array_equal(la.svdvals(a)(A=data), wanted[1])
    assert la.svdvals(a) is la.svd(a, compute_uv=False)


def test_squares_are_eigenvalues_of_the_gram_matrix() -> None:
    a = tc.var("A", TALL)
    s, w = la.svdvals(a), la.eigh(a.T @ a)[0]
    for order in range(3):
        left, right = (
            tc.derivative(tc.sum(e), a, order)(A=DATA[TALL]) for e in (s * s * s * s, w * w)
        )
        np.testing.assert_allclose(left, right, atol=1e-10)


@pytest.mark.parametrize("part", [0, 1, 2])
def test_hessians_are_symmetric(part: int) -> None:
    a = tc.var("A", TALL)
    e = la.svd(a)[part]
    f = tc.sum(e * RNG.normal(size=e.shape))
    for modes in itertools.product(MODES, MODES):
        h = tc.jacobian(tc.grad(f, a, mode=modes[0]), a, mode=modes[1])(A=DATA[TALL]).reshape(8, 8)
        np.testing.assert_allclose(h, h.T, atol=1e-12 * np.max(np.abs(h)))


# --- equal and zero values ------------------------------------------------------------------------


@pytest.mark.parametrize("degenerate", ["raise", "nan", "epsilon"])
def test_values_at_ties_and_zeros_are_exact(degenerate: str) -> None:
    a = tc.var("A", SQUARE)
    s = la.svd(a, compute_uv=False, degenerate=degenerate)
    for values in ([2.0, 2.0, 1.0], [1.0, 1.0, 1.0], [2.0, 1.0, 0.0]):
        data = orthogonal(3) * values @ orthogonal(3, 1)
        fourth = tc.grad(tc.sum(s * s * s * s), a)(A=data)
        np.testing.assert_allclose(fourth, 4 * data @ data.T @ data, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_ties_and_zeros_are_seen_through_rounding(dtype: Any) -> None:
    square, long = tc.var("A", SQUARE), tc.var("A", (30, 4))
    ties, zeros = tc.jacobian(la.svd(square)[2], square), tc.jacobian(la.svd(long)[0], long)
    rng = np.random.default_rng(0)
    for seed in range(20):
        data = orthogonal(3, seed) * [1, 0.3, 0.3] @ orthogonal(3, seed + 100)
        with pytest.raises(tc.LinAlgError, match="svd: equal singular values"):
            ties(A=data.astype(dtype))
        low_rank = rng.normal(size=(30, 3)) @ rng.normal(size=(3, 4))
        with pytest.raises(tc.LinAlgError, match="svd: a singular value of 0"):
            zeros(A=low_rank.astype(dtype))


def test_vectors_at_ties_do_as_asked() -> None:
    a = tc.var("A", (2, *SQUARE))
    data = np.stack([np.diag([3.0, 2.0, 1.0]), np.diag([2.0, 2.0, 1.0])])
    for part in (0, 2):
        jacobians = {
            d: tc.jacobian(la.svd(a, degenerate=d)[part], a) for d in ("raise", "nan", "epsilon")
        }
        with pytest.raises(tc.LinAlgError, match=r"svd: equal.*goes on \(item 1 of the batch\)"):
            jacobians["raise"](A=data)
        broken = jacobians["nan"](A=data)
        assert np.isnan(broken[1]).any()
        assert np.isfinite(jacobians["epsilon"](A=data)).all()
        apart = np.stack([data[0], data[0] + 0.1])
        wanted = jacobians["raise"](A=apart)
        for d in ("nan", "epsilon"):
            np.testing.assert_allclose(jacobians[d](A=apart), wanted, atol=1e-14)
    with pytest.raises(ValueError, match="degenerate"):
        la.svd(a, degenerate="ignore")


def test_vectors_at_a_zero_do_as_asked() -> None:
    """Of a matrix that is not square the longer vectors have no derivative there."""
    a = tc.var("A", (2, *TALL))
    data = np.zeros((2, *TALL))
    data[:, 0, 0], data[0, 1, 1] = 2, 1
    jacobians = {d: tc.jacobian(la.svd(a, degenerate=d)[0], a) for d in ("raise", "nan", "epsilon")}
    message = r"svd: a singular value of 0.*\(item 1 of the batch\)"
    with pytest.raises(tc.LinAlgError, match=message):
        jacobians["raise"](A=data)
    assert np.isnan(jacobians["nan"](A=data)[1]).any()
    assert np.isfinite(jacobians["epsilon"](A=data)).all()
    right = tc.jacobian(la.svd(a)[2], a)
    assert np.isfinite(right(A=data)).all()
    square = tc.var("A", SQUARE)
    at = orthogonal(3) * [2.0, 1.0, 0.0] @ orthogonal(3, 1)
    for part in (0, 2):
        assert np.isfinite(tc.jacobian(la.svd(square)[part], square)(A=at)).all()


# --- norms ----------------------------------------------------------------------------------------


def polar(a: np.ndarray) -> Any:
    u, _, vh = np.linalg.svd(a, full_matrices=False)
    return u @ vh


@pytest.mark.parametrize("shape", [TALL, WIDE, SQUARE])
def test_nuclear_hessians_do_not_see_ties(shape: tuple[int, int]) -> None:
    a, data = tc.var("A", shape), 2 * orthogonal(max(shape))[: shape[0], : shape[1]]
    f = la.norm(a, "nuc")
    np.testing.assert_allclose(tc.grad(f, a)(A=data), polar(data), atol=1e-14)
    wanted = differences(polar, data)
    for modes in itertools.product(MODES, MODES):
        h = tc.jacobian(tc.grad(f, a, mode=modes[0]), a, mode=modes[1])(A=data)
        np.testing.assert_allclose(h, wanted, atol=1e-8)
    with pytest.raises(tc.LinAlgError, match=r"norm: third derivatives .* distinct"):
        tc.derivative(f, a, 3)(A=data)


def test_spectral_hessians_need_one_largest_value() -> None:
    a = tc.var("A", SQUARE)
    hessian = tc.hessian(la.norm(a, 2), a)

    def gradient(at: np.ndarray) -> Any:
        u, _, vh = np.linalg.svd(at)
        return np.outer(u[:, 0], vh[0])

    for values in ([3.0, 1.0, 1.0], [3.0, 0.0, 0.0]):
        data = orthogonal(3) * values @ orthogonal(3, 1)
        np.testing.assert_allclose(hessian(A=data), differences(gradient, data), atol=1e-8)
    for tied in (np.eye(3), np.diag([2.0, 2.0, 1.0])):
        with pytest.raises(tc.LinAlgError, match=r"norm: .* one largest singular value"):
            hessian(A=tied)


@pytest.mark.parametrize("order", [2, "nuc"])
@pytest.mark.parametrize("shape", [TALL, WIDE, SQUARE])
def test_zero_singular_values_contribute_nothing(shape: tuple[int, int], order: Any) -> None:
    a, data = tc.var("A", shape), np.zeros(shape)
    gradient = tc.grad(la.norm(a, order), a)
    data[0, 0] = 2
    np.testing.assert_array_equal(gradient(A=data), data / 2)
    assert np.isfinite(tc.jacobian(gradient, a)(A=data)).all()


def test_small_singular_values_are_not_lost() -> None:
    a, data = tc.var("A", SQUARE), np.diag([1.0, 1e-9, 1e-12])
    np.testing.assert_allclose(la.svdvals(a)(A=data), np.diag(data), rtol=1e-15)
    np.testing.assert_array_equal(tc.grad(la.norm(a, "nuc"), a)(A=data), np.eye(3))
    gradient = tc.grad(tc.sum(tc.log(la.svdvals(a))), a)  # logdet
    turned = orthogonal(3) * [1.0, 1e-6, 1e-9] @ orthogonal(3, 1)
    wanted = np.linalg.inv(turned).T
    np.testing.assert_allclose(gradient(A=turned), wanted, atol=1e-6 * np.max(wanted))


# --- shapes, messages, source ---------------------------------------------------------------------


def test_full_matrices() -> None:
    for shape in (SQUARE, ("n", "n")):
        a = tc.var("A", shape)
        assert la.svd(a, full_matrices=True) == la.svd(a)
    for shape in (TALL, WIDE, ("m", "n")):
        a = tc.var("A", shape)
        with pytest.raises(tc.UnsupportedError, match="not determined by the matrix"):
            la.svd(a, full_matrices=True)
        assert la.svd(a, full_matrices=True, compute_uv=False) is la.svdvals(a)


def test_shapes_of_named_dimensions() -> None:
    shapes = [e.shape for e in la.svd(tc.var("A", ("b", "m", "n")))]
    assert shapes == [("b", "m", "min(m,n)"), ("b", "min(m,n)"), ("b", "min(m,n)", "n")]
    shapes = [e.shape for e in la.svd(tc.var("A", (2, 3, 5)))]
    assert shapes == [(2, 3, 3), (2, 3), (2, 3, 5)]


def test_errors_name_what_was_called() -> None:
    a = tc.var("A", SQUARE)
    with pytest.raises(tc.LinAlgError, match=r"^svd: no convergence"):
        la.svd(a)[0](A=np.full(SQUARE, np.nan))
    with pytest.raises(tc.LinAlgError, match=r"^norm: no convergence"):
        la.norm(a, 2)(A=np.full(SQUARE, np.nan))
    for function in (la.svd, la.svdvals):
        with pytest.raises(tc.ShapeError, match=r"^svd needs a matrix, not shape \(3,\)"):
            function(tc.var("x", 3))


def test_printed_forms(tmp_path: Any) -> None:
    a = tc.var("A", TALL)
    u, s, vh = la.svd(a)
    nuclear = "svd_u(A, nuclear)*diag(svd_s(A, nuclear) > 0)*svd_vh(A, nuclear)"
    assert str(tc.grad(la.norm(a, "nuc"), a)) == nuclear
    assert tc.to_latex(s) == r"\sigma(A)"
    assert tc.to_latex(u * s) == (r"U_{\mathrm{svd}}(A) \, \operatorname{diag}(\sigma(A))")
    assert tc.to_latex(vh) == r"V_{\mathrm{svd}}^{\top}(A)"
    for e in (u, vh, tc.jacobian(u, a), tc.jacobian(vh, a), tc.hessian(la.norm(a, 2), a)):
        f = loaded(tc.to_code(e, "numpy"), tmp_path)
        np.testing.assert_allclose(f(DATA[TALL]), e(A=DATA[TALL]), atol=1e-13)
        assert str(e)
        assert tc.to_latex(e)
