"""Expressions behave as arrays do: one spelling for both, and NumPy's broadcasting."""


# ruff: noqa: E501 (a row of a table is one line)

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

import tcalc as tc
from tests.shared import DATA, A, X, c, same, w, y

RNG = np.random.default_rng(1)

#: What works on expressions and on arrays alike: one spelling for both.
ALIKE = [
    lambda X, y, w, c, A: X + w,
    lambda X, y, w, c, A: X - c,
    lambda X, y, w, c, A: 1 - X,
    lambda X, y, w, c, A: X * w * 2,
    lambda X, y, w, c, A: X / w,
    lambda X, y, w, c, A: 2 / w,
    lambda X, y, w, c, A: w**2,
    lambda X, y, w, c, A: w**c,
    lambda X, y, w, c, A: 2**w,
    lambda X, y, w, c, A: w % 0.7,
    lambda X, y, w, c, A: X @ w,
    lambda X, y, w, c, A: y @ X,
    lambda X, y, w, c, A: w @ w,
    lambda X, y, w, c, A: X @ A @ X.T,
    lambda X, y, w, c, A: -X,
    lambda X, y, w, c, A: +X,
    lambda X, y, w, c, A: abs(X),
    lambda X, y, w, c, A: X.T,
    lambda X, y, w, c, A: X.mT,
    lambda X, y, w, c, A: A.T.T + A,
    lambda X, y, w, c, A: X.sum(),
    lambda X, y, w, c, A: X.sum(axis=0),
    lambda X, y, w, c, A: X.sum(axis=(0, 1)),
    lambda X, y, w, c, A: X.sum(axis=-1, keepdims=True),
    lambda X, y, w, c, A: X.mean(axis=1),
    lambda X, y, w, c, A: X.mean(),
    lambda X, y, w, c, A: X.prod(axis=0),
    lambda X, y, w, c, A: X.max(axis=1, keepdims=True),
    lambda X, y, w, c, A: X.min(),
    lambda X, y, w, c, A: X.var(axis=0),
    lambda X, y, w, c, A: X.std(),
    lambda X, y, w, c, A: w.cumsum(),
    lambda X, y, w, c, A: X.cumsum(axis=0),
    lambda X, y, w, c, A: X.dot(w),
    lambda X, y, w, c, A: A.diagonal(),
    lambda X, y, w, c, A: A.trace(),
    lambda X, y, w, c, A: X.transpose(),
    lambda X, y, w, c, A: X.transpose(1, 0),
    lambda X, y, w, c, A: X[:, None],
    lambda X, y, w, c, A: X[..., None] * X[:, None, :],
    lambda X, y, w, c, A: w[None, :] - w[:, None],
    lambda X, y, w, c, A: w[...],
    lambda X, y, w, c, A: X[:],
    lambda X, y, w, c, A: np.exp(X) + np.sin(w),
    lambda X, y, w, c, A: np.sum(X, axis=0),
    lambda X, y, w, c, A: np.mean(X),
    lambda X, y, w, c, A: np.max(X, axis=0),
    lambda X, y, w, c, A: np.amin(X),
    lambda X, y, w, c, A: np.prod(X, axis=1),
    lambda X, y, w, c, A: np.var(X, axis=1, keepdims=True),
    lambda X, y, w, c, A: np.std(w),
    lambda X, y, w, c, A: np.dot(X, w),
    lambda X, y, w, c, A: np.outer(y, w),
    lambda X, y, w, c, A: np.matmul(X, w),
    lambda X, y, w, c, A: np.tensordot(X, X, axes=([0, 1], [0, 1])),
    lambda X, y, w, c, A: np.einsum("ij,j->i", X, w),
    lambda X, y, w, c, A: np.einsum("ij,ij", X, X),
    lambda X, y, w, c, A: np.trace(A),
    lambda X, y, w, c, A: np.diag(w),
    lambda X, y, w, c, A: np.diag(A),
    lambda X, y, w, c, A: np.diagonal(A),
    lambda X, y, w, c, A: np.transpose(X),
    lambda X, y, w, c, A: np.maximum(X, 0.1),
    lambda X, y, w, c, A: np.minimum(X, w),
    lambda X, y, w, c, A: np.where(X > 0, X, -1.0),
    lambda X, y, w, c, A: np.where((X > 0) & (X < 1), X, 0.0),
    lambda X, y, w, c, A: np.where((X > 0) | (X < -1), X, 0.0),
    lambda X, y, w, c, A: np.where(np.logical_not(X > 0), X, 0.0),
    lambda X, y, w, c, A: np.clip(X, -0.5, 0.5),
    lambda X, y, w, c, A: np.abs(X) + np.absolute(X) + np.sign(X),
    lambda X, y, w, c, A: np.sqrt(w) + np.log(w) + np.log1p(w) + np.expm1(w),
    lambda X, y, w, c, A: np.hypot(X, w) + np.arctan2(X, w),
    lambda X, y, w, c, A: np.logaddexp(X, w),
    lambda X, y, w, c, A: np.power(w, 3) + np.square(w) + np.reciprocal(w),
    lambda X, y, w, c, A: np.add(X, w) + np.subtract(X, 1) * np.multiply(2, X) - np.divide(X, w),
    lambda X, y, w, c, A: 2 * np.negative(X) + np.positive(X),
    lambda X, y, w, c, A: np.linalg.norm(w) + np.linalg.norm(X),
    lambda X, y, w, c, A: np.linalg.norm(w, 1) + np.linalg.norm(w, np.inf),
    lambda X, y, w, c, A: np.linalg.norm(X, axis=1),
    lambda X, y, w, c, A: np.linalg.inv(A) @ w,
    lambda X, y, w, c, A: np.linalg.det(A),
    lambda X, y, w, c, A: np.linalg.solve(A, w),
    lambda X, y, w, c, A: np.cumsum(w),
    lambda X, y, w, c, A: np.floor(X) + np.mod(X, 2),
    lambda X, y, w, c, A: np.broadcast_to(w, (2, 3)) if isinstance(w, np.ndarray) else tc.broadcast_to(w, (2, "n")),
    lambda X, y, w, c, A: np.ones(3) @ (np.eye(3) @ np.array([1.0, 2, 3])) * c,
    lambda X, y, w, c, A: np.float64(2) * c + np.array(3.0) - c * np.int64(2),
    lambda X, y, w, c, A: np.array([1.0, 2.0]) * c,
]  # fmt: skip


@pytest.mark.parametrize("k", range(len(ALIKE)))
def test_one_spelling_for_expressions_and_arrays(k: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        e = ALIKE[k](X, y, w, c, A)
        assert isinstance(e, tc.Expr)
        found = e(DATA)
    wanted = np.asarray(ALIKE[k](*[np.asarray(DATA[name]) for name in ("X", "y", "w", "c", "A")]))
    assert np.shape(found) == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)


# --- broadcasting ---------------------------------------------------------------------------------

SHAPES = [(), (1,), (2,), (3,), (1, 3), (2, 1), (2, 3), (3, 2), (1, 1), (2, 1, 3), (0,), (2, 0)]


@pytest.mark.parametrize(("left", "right"), list(itertools.product(SHAPES, SHAPES)))
def test_broadcasting_is_numpys(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    p, q = tc.var("p", left), tc.var("q", right)
    data = {"p": RNG.normal(size=left), "q": RNG.normal(size=right)}
    try:
        wanted = np.broadcast_shapes(left, right)
    except ValueError:
        for build in (
            lambda: p + q,
            lambda: p * q,
            lambda: tc.maximum(p, q),
            lambda: tc.where(p > 0, p, q),
        ):
            with pytest.raises(tc.ShapeError, match="extents"):
                build()
        return
    assert (p + q).shape == wanted
    same(p + 2 * q, lambda p, q: p + 2 * q, **data)
    same(p * q, lambda p, q: p * q, **data)
    gradient = tc.grad(tc.sum(p * q * q), tc.var("p", left))(data)
    assert gradient.shape == left


@pytest.mark.parametrize(("left", "right"), list(itertools.product(SHAPES, SHAPES)))
def test_matmul_is_numpys(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    p, q = tc.var("p", left), tc.var("q", right)
    data = {"p": RNG.normal(size=left), "q": RNG.normal(size=right)}
    try:
        wanted = data["p"] @ data["q"]
    except ValueError:
        with pytest.raises(tc.ShapeError):
            p @ q
        return
    same(p @ q, lambda p, q: wanted, **data)
