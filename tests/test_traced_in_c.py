"""Functions of NumPy with arrays of their own, compiled to C: parameters come in one vector.

What they read besides is bound, and computed from once; the oracle is NumPy itself, by differences.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcalc as tc

RNG = np.random.default_rng(0)
A, B, v, T = (RNG.normal(size=shape) for shape in ((4, 4), (4, 3), 4, (2, 3, 4)))
S, big = A @ A.T + 4 * np.eye(4), RNG.normal(size=(12, 12))
I3, E9, idx = np.eye(3), np.eye(9), np.array([2, 0, 1])
mask = np.array([True, False, True, True])

#: By name, a function of so many parameters.
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "cross": (lambda p: np.sum(np.cross(p[:3], v[:3]) * p[3:6]), 6),
    "a volume": (lambda p: np.sum(np.cross(p[:3], p[3:6]) * p[6:9]), 9),
    "cross of rows": (lambda p: np.sum(np.cross(p.reshape(3, 3), I3) ** 2), 9),
    "kron": (lambda p: np.sum(np.kron(A, p.reshape(2, 2)) ** 2), 4),
    "kron of an identity": (
        lambda p: np.linalg.slogdet(np.kron(np.eye(2), S) + np.diag(p**2))[1],
        8,
    ),
    "tensordot": (lambda p: np.sum(np.tensordot(T, p.reshape(4, 2), 1) ** 2), 8),
    "tensordot of axes": (
        lambda p: np.sum(np.tensordot(T, p.reshape(3, 4), ((1, 2), (0, 1))) ** 3),
        12,
    ),
    "einsum": (lambda p: np.einsum("ijk,k,j->i", T, p[:4], p[4:7]) @ np.array([1.0, 2.0]), 7),
    "einsum of three": (lambda p: np.einsum("ij,jk,ki->", A, p.reshape(4, 4), S), 16),
    "einsum of a diagonal": (lambda p: np.sum(np.einsum("ii->i", p.reshape(4, 4) @ A) ** 2), 16),
    "trace": (lambda p: np.trace(A @ p.reshape(4, 4) @ A.T @ p.reshape(4, 4).T), 16),
    "diag": (lambda p: np.sum(np.diag(np.diag(p) @ A @ np.diag(p)) ** 2), 4),
    "diag beside the diagonal": (lambda p: np.sum((np.diag(p[:3], 1) + np.diag(v)) @ p), 4),
    "triangles": (lambda p: np.sum((np.tril(p.reshape(4, 4)) @ S @ np.triu(A)) ** 2), 16),
    "tril_indices": (lambda p: np.sum(p.reshape(4, 4)[np.tril_indices(4)] ** 3), 16),
    "inverse of a triangle": (
        lambda p: np.sum(np.linalg.inv(np.tril(p.reshape(4, 4), -1) + np.eye(4))),
        16,
    ),
    "take": (lambda p: np.sum(np.take(p, idx) * v[:3]), 4),
    "take of rows": (lambda p: np.sum(np.take(p.reshape(3, 4), idx, axis=0) @ A), 12),
    "rows in order": (lambda p: np.sum(p.reshape(3, 4)[idx][:, ::-1] * B.T), 12),
    "columns by a mask": (lambda p: np.sum(p.reshape(3, 4)[:, mask] ** 2), 12),
    "where": (lambda p: np.sum(np.where(mask, p, v) ** 2), 4),
    "where of a matrix": (lambda p: np.sum(np.where(A > 0, p.reshape(4, 4), A) ** 3), 16),
    "concatenate": (lambda p: np.sum(np.concatenate([p, v, p[::-1]]) ** 2 * np.arange(12.0)), 4),
    "stack": (lambda p: np.sum(np.stack([p, v, p * v], 1) @ B.T), 4),
    "vstack": (lambda p: np.sum(np.vstack([p, v, p]) @ A), 4),
    "block": (
        lambda p: np.linalg.det(
            np.block([[S, p.reshape(4, 1)], [p.reshape(1, 4), np.ones((1, 1)) * 9]])
        ),
        4,
    ),
    "pad": (lambda p: np.sum(np.pad(p, (1, 2)) * np.arange(7.0)), 4),
    "roll": (lambda p: np.sum(np.roll(p, 1) * p * v), 4),
    "flip": (lambda p: np.sum(np.flip(p.reshape(2, 2), 0) @ p.reshape(2, 2)), 4),
    "rot90": (lambda p: np.sum(np.rot90(p.reshape(2, 2)) @ p.reshape(2, 2)), 4),
    "repeat": (lambda p: np.sum(np.repeat(p, 3) * big[0]), 4),
    "tile": (lambda p: np.sum(np.tile(p, 3) * big[1]), 4),
    "convolve": (lambda p: np.sum(np.convolve(p, v, "same") ** 2), 6),
    "convolve, valid": (lambda p: np.sum(np.convolve(v, p, "valid") ** 2), 3),
    "correlate": (lambda p: np.sum(np.correlate(p, v, "full") ** 2), 4),
    "cumsum": (lambda p: np.sum(np.cumsum(p) * v), 4),
    "cumprod": (lambda p: np.sum(np.cumprod(p) * v), 4),
    "diff": (lambda p: np.sum(np.diff(p, 2) ** 2) + np.sum(np.diff(p.reshape(2, 3), axis=0)), 6),
    "gradient": (lambda p: np.sum(np.gradient(p) ** 2), 6),
    "trapezoid": (lambda p: np.trapezoid(p**2, np.arange(4.0)), 4),
    "interp": (
        lambda p: np.sum(np.interp(np.array([0.1, 0.5, 0.9]), np.linspace(0, 1, 4), p) ** 2),
        4,
    ),
    "polyval": (lambda p: np.sum(np.polyval(p, v) ** 2), 4),
    "vander": (lambda p: np.sum(np.vander(p, 4) @ v), 3),
    "norms": (
        lambda p: np.linalg.norm(A @ p) + np.linalg.norm(p.reshape(2, 2)) + np.linalg.norm(p, 1),
        4,
    ),
    "norms of matrices": (
        lambda p: np.linalg.norm(p.reshape(2, 2) @ B[:2], "fro") + np.linalg.norm(p, np.inf),
        4,
    ),
    "norms by singular values": (
        lambda p: np.linalg.norm(p.reshape(2, 2), "nuc") + np.linalg.norm(p.reshape(2, 2), 2),
        4,
    ),
    "matrix_power": (lambda p: np.sum(np.linalg.matrix_power(p.reshape(2, 2), 5)), 4),
    "inv": (lambda p: np.sum(np.linalg.inv(S + np.diag(p))), 4),
    "solve": (lambda p: np.sum(np.linalg.solve(A + 5 * np.eye(4), p) ** 2), 4),
    "solve of columns": (lambda p: np.sum(np.linalg.solve(S + np.outer(p, p), B) ** 2), 4),
    "lstsq": (
        lambda p: np.sum(
            np.linalg.lstsq(np.vstack([A, A * 2 + 1]), np.concatenate([p, p**2]), rcond=None)[0]
            ** 2
        ),
        4,
    ),
    "lstsq by its matrix": (
        lambda p: np.sum(np.linalg.lstsq(B + p[:, None], v, rcond=None)[0] ** 2),
        4,
    ),
    "pinv": (lambda p: np.sum(np.linalg.pinv(B * p[:, None]) ** 2), 4),
    "cholesky": (lambda p: np.sum(np.linalg.cholesky(S + np.diag(p**2))), 4),
    "eigvalsh": (lambda p: np.sum(np.linalg.eigvalsh(S + np.outer(p, p)) ** 1.5), 4),
    "eigh": (lambda p: np.linalg.eigh(S + np.outer(p, p))[1][0, 0] ** 2, 4),
    "svd": (lambda p: np.sum(np.linalg.svd(B * p[:, None], compute_uv=False) ** 3), 4),
    "qr": (lambda p: np.sum(np.abs(np.linalg.qr(B * p[:, None])[1])), 4),
    "det": (lambda p: np.linalg.det(A * p), 4),
    "slogdet": (lambda p: np.linalg.slogdet(A + np.diag(p) + 3 * np.eye(4))[1], 4),
    "sort": (lambda p: np.sum(np.sort(p) * v), 4),
    "sort of columns": (lambda p: np.sum(np.sort(p.reshape(2, 3), 0) * T[0, :2, :3]), 6),
    "median": (lambda p: np.median(p) + np.quantile(p, 0.3) + np.percentile(p, 70), 5),
    "extremes": (
        lambda p: np.max(p) + np.min(p.reshape(2, 2), 0) @ np.ones(2) + p[np.argmax(p)],
        4,
    ),
    "statistics": (lambda p: np.ptp(p) + np.mean(p) + np.var(p) + np.std(p), 4),
    "clip": (lambda p: np.sum(np.clip(p, -0.2, 0.5) * v), 4),
    "abs": (lambda p: np.sum(np.abs(p) * v) + np.sum(np.sign(p) * p), 4),
    "maximum": (lambda p: np.sum(np.maximum(p, v)) + np.sum(np.minimum(p, 0)), 4),
    "hypot": (lambda p: np.sum(np.hypot(p, v)) + np.sum(np.arctan2(p, v)), 4),
    "logaddexp": (lambda p: np.sum(np.logaddexp(p, v)) + np.sum(np.log1p(np.exp(p))), 4),
    "exponentials": (
        lambda p: np.sum(np.expm1(p) + np.exp2(p) + np.sinh(p) * np.cosh(p) - np.tanh(p)),
        4,
    ),
    "trigonometry": (
        lambda p: np.sum(
            np.sin(p) * np.cos(p) + np.tan(p) + np.arcsin(p / 9) + np.arccos(p / 9) + np.arctan(p)
        ),
        4,
    ),
    "powers": (lambda p: np.sum(np.abs(p) ** v) + np.sum(np.power(2.0, p)), 4),
    "sinc": (lambda p: np.sum(np.sinc(p)), 4),
    "cov": (lambda p: np.sum(np.cov(p.reshape(2, 4)) * np.array([[1.0, 2], [3, 4]])), 8),
    "corrcoef": (lambda p: np.corrcoef(p[:4], p[4:])[0, 1], 8),
    "meshgrid": (lambda p: np.sum(np.meshgrid(p, v)[0] * np.meshgrid(p, v)[1]), 4),
    "broadcast_to": (lambda p: np.sum(np.broadcast_to(p, (3, 4)) * B.T), 4),
    "expand_dims": (lambda p: np.sum(np.expand_dims(p, 0) * B.T), 4),
    "moveaxis": (lambda p: np.sum(np.moveaxis(p.reshape(2, 3, 2), 0, 2) @ T[0, :2]), 12),
    "split": (lambda p: np.sum(np.split(p, 2)[0] * np.split(p, 2)[1]), 6),
    "vdot": (lambda p: np.vdot(p, v) + np.inner(p, v) + np.dot(p, v), 4),
    "multi_dot": (lambda p: np.linalg.multi_dot([A, p.reshape(4, 2), T[0, :2, :3]]).sum(), 8),
    "logarithms": (lambda p: np.sum(np.log(p**2 + 1) * np.log2(p**2 + 2) * np.log10(p**2 + 3)), 4),
    "nan_to_num": (lambda p: np.sum(np.nan_to_num(p) * v), 4),
    "nansum": (lambda p: np.nansum(p * v) + np.nanmean(p), 4),
    "prod": (lambda p: np.prod(p) + np.sum(np.prod(p.reshape(2, 2), 0)), 4),
    "average": (lambda p: np.average(p, weights=np.abs(v)), 4),
    "digitize": (lambda p: np.sum(p[np.digitize(v, np.array([-1.0, 0, 1]))]), 4),
    "an identity of many rows": (
        lambda p: (
            np.sum((big @ np.concatenate([p, p, p])) ** 2)
            + np.sum(np.eye(12) @ np.concatenate([p, p, p]) * 2)
        ),
        4,
    ),
    "a covariance": (
        lambda p: np.linalg.slogdet(
            big @ big.T + np.exp(p[0]) * np.eye(12) + np.diag(np.concatenate([p, p, p]) ** 2)
        )[1],
        4,
    ),
    "an inverse": (
        lambda p: np.sum(np.linalg.inv(big @ big.T * np.exp(p[0]) + np.exp(p[1]) * np.eye(12))[0]),
        2,
    ),
    "a diagonal system": (
        lambda p: np.sum(
            np.linalg.solve(np.eye(12) * p[0] + np.diag(np.arange(1.0, 13.0)), big[0])
        ),
        1,
    ),
    "an identity backwards": (
        lambda p: np.sum((np.eye(9) * p[0] + np.eye(9)[::-1] * p[1]) @ E9),
        2,
    ),
    "a power of multiples of an identity": (
        lambda p: np.sum(np.linalg.matrix_power(np.eye(9) * p[0] + E9, 3)),
        1,
    ),
}


def derivative(f: Callable[[Any], Any], at: Any, h: float) -> Any:
    """By central differences of the fourth order, along the first axis of the result."""
    steps = h * np.eye(len(at))
    near, far = [
        np.array([np.asarray(f(at + k * s)) - np.asarray(f(at - k * s)) for s in steps])
        for k in (1, 2)
    ]
    return (8 * near - far) / (12 * h)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_functions_have_the_derivatives_of_numpy(name: str) -> None:
    f, count = FUNCTIONS[name]
    at = np.random.default_rng(len(name)).normal(size=count) * 0.5 + 0.2
    both = tc.compile(tc.value_and_grad(f), backend="c")
    hessian = tc.compile(tc.hessian(f), backend="c")
    value, gradient = both(at)
    assert value == pytest.approx(f(at), rel=1e-9, abs=1e-9)
    size = 1 + np.abs(gradient).max()
    np.testing.assert_allclose(gradient, derivative(f, at, 1e-3), rtol=0, atol=1e-6 * size)
    second = hessian(at)
    slopes = derivative(lambda x: both(x)[1], at, 1e-3)
    np.testing.assert_allclose(second, slopes, rtol=0, atol=1e-6 * (1 + np.abs(second).max()))
