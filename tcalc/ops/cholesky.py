"""Cholesky factors: the family {L, X = inv(L)} is closed under differentiation.

Seeger et al. 2018, section 3 and appendix. The factor is of (A + A') / 2, so that derivatives agree
with plain finite differences.
"""

from __future__ import annotations

from typing import Any

from ..applied import apply
from ..array import as_expr, public
from ..expr import Expr
from ..normal import einsum
from ..op import Op
from .matrices import attempt, both, labels, same, square, symmetric
from .triangles import lower_half, tri_inverse

__all__ = ["cholesky"]


def _cholesky(xp: Any, params: tuple[Any, ...], a: Any) -> Any:
    problem = "cholesky: the matrix is not positive definite"
    return attempt(problem, xp.linalg.cholesky, symmetric(xp, a))


def _cholesky_partial(a: Expr, factor: Expr) -> Expr:
    """dL = L T, T = P ∘ (X dA X')."""
    b, i, j, k, m, p = labels(a)
    inverse = tri_inverse(factor)
    ops = [factor, lower_half(a.shape[-1]), inverse, inverse]
    words = [(*b, i, p), (p, j), (*b, p, k), (*b, j, m)]
    return both(einsum(ops, words, (*b, i, j, k, m)))


CHOLESKY = Op(
    "cholesky", (2,), (_cholesky_partial,), _cholesky,
    "np.linalg.cholesky(({0} + np.swapaxes({0}, -1, -2)) / 2)", r"\operatorname{{chol}}({0})",
    domain=((0.5, 2.0),), shape=same, flops=0.3,
)  # fmt: skip


@public
def cholesky(a: object) -> Expr:
    """The lower triangular L with positive diagonal and L L' = (a + a') / 2."""
    return apply(CHOLESKY, square("cholesky", as_expr(a)))
