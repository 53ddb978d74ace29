"""Distributions of vectors: normal and Dirichlet."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...graph.nodes import Expr
from ...ops import arithmetic
from ...ops.arithmetic import as_expr
from ...ops.diagonals import diag, eye, trace
from ...ops.elementwise import exp, log
from ...ops.joining import concatenate
from ...ops.matrix.cholesky import cholesky
from ...ops.matrix.lapack_names import sumlogdiag
from ...ops.matrix.triangular import tri_inverse
from ...ops.special import gammaln
from ...support.errors import ShapeError, UnsupportedError
from .distribution import Distribution

LOG_TWO_PI = math.log(2 * math.pi)


# --- normal ---------------------------------------------------------------------------------------


def _covariance(cov: object, extent: Any) -> Expr:
    """A matrix from a matrix, its diagonal, or a multiple of the identity."""
    e = as_expr(cov)
    return e * eye(extent) if not e.ndim else diag(e) if e.ndim == 1 else e


def _normal(x: object, mean: object, cov: object, allow_singular: bool) -> Expr:
    points, center = as_expr(x), as_expr(0 if mean is None else mean)
    (size,) = as_expr(cov).shape[-1:] or center.shape[-1:] or (1,)
    if not points.ndim or (size == 1 and points.ndim == 1):
        points = points[..., None]
    deviation = points - center
    if allow_singular:
        return _degenerate(deviation, cov, size)
    factor = cholesky(_covariance(cov, size))
    white = arithmetic.matmul(deviation, tri_inverse(factor).T)
    constant = LOG_TWO_PI * trace(eye(size))
    distance = arithmetic.sum(white * white, -1)
    return arithmetic.subtract(-(constant + distance) / 2, sumlogdiag(factor))


def _degenerate(deviation: Expr, cov: object, extent: Any) -> Expr:
    """Of a covariance that may be singular: its rank is that of numbers."""
    if isinstance(cov, Expr):
        raise UnsupportedError(
            "multivariate_normal with allow_singular=True takes numbers for the covariance, whose "
            "rank decides the density; without it an expression"
        )
    matrix = np.asarray(cov, float)
    if matrix.ndim < 2:
        matrix = np.diag(np.broadcast_to(matrix, extent))
    w, v = np.linalg.eigh((matrix + matrix.T) / 2)
    kept = w > 1e6 * np.finfo(float).eps * np.abs(w).max(initial=0)
    white = arithmetic.matmul(deviation, v[:, kept] / np.sqrt(w[kept]))
    constant = kept.sum() * LOG_TWO_PI + np.log(w[kept]).sum()
    return arithmetic.multiply(arithmetic.sum(white * white, -1) + float(constant), -0.5)


def _entropy(mean: object, cov: object, allow_singular: bool) -> Expr:
    (size,) = as_expr(cov).shape[-1:] or as_expr(0 if mean is None else mean).shape[-1:] or (1,)
    constant = (LOG_TWO_PI + 1) * trace(eye(size))
    return constant / 2 + sumlogdiag(cholesky(_covariance(cov, size)))


# --- Dirichlet ------------------------------------------------------------------------------------


def _dirichlet(x: object, alpha: object) -> Expr:
    points, a = as_expr(x), as_expr(alpha)
    (n,), first = a.shape, points.shape[0]
    if isinstance(n, int) and isinstance(first, int) and first == n - 1:
        rest = (1 - arithmetic.sum(points, 0))[None]
        points = concatenate([points, rest], axis=0)
    elif first != n:
        raise ShapeError(f"dirichlet: {first} entries of x for {n} of alpha")
    weights = (a - 1)[(slice(None), *(None,) * (points.ndim - 1))]
    constant = gammaln(arithmetic.sum(a)) - arithmetic.sum(gammaln(a))
    return arithmetic.sum(weights * log(points), 0) + constant


VECTORS = {
    "multivariate_normal": Distribution(
        "multivariate_normal", (),
        {
            "logpdf": _normal,
            "pdf": lambda *p: exp(_normal(*p)),
            "entropy": _entropy,
        },
        {"mean": None, "cov": 1, "allow_singular": False},
    ),
    "dirichlet": Distribution(
        "dirichlet", ("alpha",),
        {"logpdf": _dirichlet, "pdf": lambda *p: exp(_dirichlet(*p))}, {},
    ),
}  # fmt: skip
