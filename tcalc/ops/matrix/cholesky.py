"""Cholesky factors: the family {L, X = inv(L)} is closed under differentiation.

Seeger et al. 2018, section 3 and appendix. The factor is of (A + A') / 2, so that derivatives agree
with plain finite differences.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...graph.applications import apply
from ...graph.nodes import Expr
from ...graph.normal import einsum
from ...graph.operators import Kernels, Meaning, Op, for_each_row
from ...graph.spelling import Spelling
from ...support.errors import LinAlgError
from ...support.lapack import LARGE
from ...support.triangles import turned
from ..arithmetic import as_expr, public
from ..matrix_cores import attempt, labels, of_square, refuse, square, symmetric_part
from .triangular import lower_half, tri_inverse

__all__ = ["cholesky"]

NOT_DEFINITE = "cholesky: the matrix is not positive definite"


def _cholesky(xp: Any, params: tuple[Any, ...], a: Any) -> Any:
    factor = attempt(NOT_DEFINITE, xp.linalg.cholesky, a)
    refuse(NOT_DEFINITE, xp.isnan(xp.diagonal(factor, axis1=-2, axis2=-1)).any(axis=-1))
    return factor


def _over(xp: Any, params: tuple[Any, ...], a: Any) -> None:
    """In place. LAPACK sees row-major memory as the transpose, and is quicker with its lower half.

    What it leaves is turned, which takes much less time than the other half would.
    """
    if a.ndim > 2 or len(a) < LARGE:
        a[...] = _cholesky(xp, params, a)
        return
    import scipy.linalg

    (potrf,) = scipy.linalg.get_lapack_funcs(("potrf",), (a,))
    _, info = potrf(a.T, lower=1, overwrite_a=1, clean=1)
    if info or np.isnan(a[-1, -1]):
        raise LinAlgError(NOT_DEFINITE)
    turned(a)


def _cholesky_partial(a: Expr, factor: Expr) -> Expr:
    """dL = L T, T = P ∘ (X dA X'); dA is symmetric because the operand is."""
    b, i, j, k, m, p = labels(a)
    inverse = tri_inverse(factor)
    ops = [factor, lower_half(a.shape[-1]), inverse, inverse]
    words = [(*b, i, p), (p, j), (*b, p, k), (*b, j, m)]
    return einsum(ops, words, (*b, i, j, k, m))


CHOLESKY = Op(
    "cholesky", (2,),
    Meaning(
        (_cholesky_partial,), shape=of_square("cholesky"), symmetric=True, triangular=True,
        positive_diagonal=True,
    ),
    Kernels(_cholesky, flops=for_each_row(1 / 3), over=_over),
    Spelling(r"\operatorname{{chol}}({0})"),
)  # fmt: skip


@public
def cholesky(a: object) -> Expr:
    """The lower triangular L with positive diagonal and L L' = (a + a') / 2."""
    return apply(CHOLESKY, symmetric_part(square("cholesky", as_expr(a))))
