"""Triangles of matrices, their inverses, and the constant masks of the formulas."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...graph.applications import apply
from ...graph.extents import ONE, Coef, Extent
from ...graph.nodes import Expr
from ...graph.normal import einsum
from ...graph.operators import Kernels, Meaning, Op, for_each_row
from ...graph.spelling import Spelling
from ...support.lapack import LARGE
from ...support.triangles import without_upper
from ..arithmetic import as_expr, public
from ..matrix_cores import labels, of_square, refuse, same, square

__all__ = ["tri_inverse"]

LOWER_HALF = Op(
    "lower_half", (),
    Meaning(
        (), shape=lambda params: (params[0], params[0]), triangular=True, mask=("lower", 0.5)
    ),
    Kernels(
        lambda xp, params: xp.tril(xp.ones((params[0], params[0])), -1) + xp.eye(params[0]) / 2,
    ),
    Spelling(r"\operatorname{{tril}}(\mathbf{{1}} \mathbf{{1}}^{{\top}} - \frac{{1}}{{2}} I)"),
    params=((3,), ("n",)),
)  # fmt: skip
LOWER_ONES = Op(
    "lower_ones", (),
    Meaning(
        (), shape=lambda params: (params[0], params[0]), triangular=True, mask=("lower", 1.0)
    ),
    Kernels(lambda xp, params: xp.tril(xp.ones((params[0], params[0])))),
    Spelling(r"\operatorname{{tril}}(\mathbf{{1}} \mathbf{{1}}^{{\top}})"),
    params=((3,), ("n",)),
)  # fmt: skip


def lower_half(n: Extent) -> Expr:
    """1 below the diagonal and 1/2 on it: the P of the formulas."""
    return apply(LOWER_HALF, params=(n,))


def lower_ones(n: Extent) -> Expr:
    """1 on and below the diagonal."""
    return apply(LOWER_ONES, params=(n,))


ZERO = "tri_inverse: a zero on the diagonal"


def _tri_inverse(xp: Any, params: tuple[Any, ...], a: Any) -> Any:
    """By the transpose, whose LU factors are itself and the identity: nothing is eliminated."""
    _refuse_zeros(xp, a)
    return xp.swapaxes(xp.linalg.inv(xp.swapaxes(xp.tril(a), -1, -2)), -1, -2)


def _tri_inverse_over(xp: Any, params: tuple[Any, ...], a: Any) -> None:
    """In place; LAPACK sees row-major memory as the transpose."""
    import scipy.linalg

    _refuse_zeros(xp, a)
    (trtri,) = scipy.linalg.get_lapack_funcs(("trtri",), (a,))
    if a.ndim == 2 and len(a) >= LARGE:
        without_upper(a)
        trtri(a.T, lower=0, overwrite_c=1)
        return
    for at in np.ndindex(a.shape[:-2]) if a.size else ():
        a[at], _ = trtri(np.tril(a[at]), lower=1)


def _refuse_zeros(xp: Any, a: Any) -> None:
    refuse(ZERO, (xp.diagonal(a, axis1=-2, axis2=-1) == 0).any(axis=-1))


def _tri_inverse_partial(a: Expr, x: Expr) -> Expr:
    """dX = -X (m ∘ dL) X, m the lower triangle."""
    b, i, j, k, m, _ = labels(a)
    words = [(*b, i, k), (k, m), (*b, m, j)]
    return einsum([x, lower_ones(a.shape[-1]), x], words, (*b, i, j, k, m), Coef(-1))


TRI_INVERSE = Op(
    "tri_inverse", (2,),
    Meaning(
        (_tri_inverse_partial,), shape=of_square("tri_inverse"), inverts="lower", triangular=True
    ),
    Kernels(_tri_inverse, flops=for_each_row(1 / 3), over=_tri_inverse_over),
    Spelling(r"{0}^{{-1}}"),
)  # fmt: skip


def _lower_triangle_partial(a: Expr, y: Expr) -> Expr:
    b, i, j, _, _, _ = labels(a)
    extents = dict(enumerate(a.shape))
    return einsum([lower_ones(a.shape[-1])], [(i, j)], (*b, i, j, i, j), ONE, extents)


LOWER_TRIANGLE = Op(
    "lower_triangle", (2,),
    Meaning((_lower_triangle_partial,), shape=same, triangular=True),
    Kernels(lambda xp, params, a: xp.tril(a), flops=0),
    Spelling(r"\operatorname{{tril}}({0})"),
)  # fmt: skip


def lower_triangle(e: Expr) -> Expr:
    """Square matrices with zeros above the diagonal, whatever stands there."""
    return apply(LOWER_TRIANGLE, e)


@public
def tri_inverse(a: object) -> Expr:
    """The inverse of the lower triangle of a matrix; the other triangle is not read."""
    return apply(TRI_INVERSE, square("tri_inverse", as_expr(a)))
