"""Inverse and determinant of symmetric positive definite matrices, from their Cholesky factor.

Rows of their own beside those of general matrices: the rules choose them where the operand is known
to be positive definite, and where an expression goes through a Cholesky factor anyway.
"""

from __future__ import annotations

from math import prod
from typing import Any

from ...graph.applications import apply
from ...graph.extents import Coef
from ...graph.nodes import Expr
from ...graph.normal import einsum
from ...graph.operators import Kernels, Meaning, Op, for_each_row
from ...graph.spelling import Spelling
from ...support.lapack import LARGE
from ...support.triangles import mirrored
from ..matrix_cores import labels, of_square
from .cholesky import CHOLESKY

__all__: list[str] = []


def _inverse_partial(a: Expr, x: Expr) -> Expr:
    """dX = -X dA X."""
    b, i, j, k, m, _ = labels(x)
    return einsum([x, x], [(*b, i, k), (*b, m, j)], (*b, i, j, k, m), Coef(-1))


def _inverse(xp: Any, params: tuple[Any, ...], a: Any) -> Any:
    return _from_factor(xp, params, CHOLESKY.kernels.compute(xp, (), a))


def _from_factor(xp: Any, params: tuple[Any, ...], factor: Any) -> Any:
    x = xp.linalg.inv(factor)
    return xp.swapaxes(x, -1, -2) @ x


def _over(xp: Any, params: tuple[Any, ...], a: Any) -> None:
    """From the factor, in place: one triangle by LAPACK, the other one copied."""
    if a.ndim > 2 or len(a) < LARGE:
        a[...] = _from_factor(xp, params, a)
        return
    import scipy.linalg

    (potri,) = scipy.linalg.get_lapack_funcs(("potri",), (a,))
    potri(a.T, lower=0, overwrite_c=1)
    mirrored(a)


def _logdet_from_factor(xp: Any, params: tuple[Any, ...], factor: Any) -> Any:
    return 2 * xp.log(xp.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1)


INVERSE = Op(
    "inverse_definite", (2,),
    Meaning(
        (_inverse_partial,), shape=of_square("inv"), transposes=True, inverts="positive",
        symmetric=True, definite=True,
    ),
    Kernels(_inverse, flops=for_each_row(2 / 3), factor=CHOLESKY, finish=_from_factor, over=_over),
    Spelling("{0}^{{-1}}", printed="inv"),
)  # fmt: skip
LOGDET = Op(
    "logdet_definite", (2,),
    Meaning(
        (lambda a, y: inverse_definite(a),), shape=of_square("logdet", 0), transposes=True,
        symmetric=True,
    ),
    Kernels(
        lambda xp, params, a: _logdet_from_factor(xp, params, CHOLESKY.kernels.compute(xp, (), a)),
        flops=lambda shape: 11 * prod(shape[:-1]), factor=CHOLESKY, finish=_logdet_from_factor,
    ),
    Spelling(r"\log\det({0})", printed="logdet"),
)  # fmt: skip


def inverse_definite(a: Expr) -> Expr:
    """The inverse of symmetric positive definite matrices; LinAlgError where they are not."""
    return apply(INVERSE, a)


def logdet_definite(a: Expr) -> Expr:
    """The logarithm of the determinant of symmetric positive definite matrices."""
    return apply(LOGDET, a)
