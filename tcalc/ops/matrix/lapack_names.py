"""BLAS and LAPACK names for matrix products, triangular solves and factors, as in MXNet's linalg.

All are products of nodes that exist already; a product with the inverse of a triangular matrix is
planned as a triangular solve, so no inverse is formed. Matrices are the last two axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from ...graph.extents import Number, number, show_shape
from ...graph.nodes import Expr
from ...graph.normal import einsum, scale
from ...support.errors import ShapeError
from ..arithmetic import as_expr, matmul, public, sum
from ..elementwise import log
from ..matrix_cores import right_side, square
from ..packed import extractdiag
from .cholesky import cholesky
from .inverse import inv
from .lq import factors, longer_side
from .pseudoinverse import pseudoinverse
from .triangular import lower_triangle, tri_inverse

__all__ = [
    "cho_solve",
    "gemm",
    "gemm2",
    "inverse",
    "lstsq",
    "matrix_power",
    "pinv",
    "potrf",
    "potri",
    "solve_triangular",
    "sumlogdiag",
    "syrk",
    "trmm",
    "trsm",
]

MAX_POWER = 1_000_000


def _op(a: Expr, transpose: bool) -> Expr:
    return a.mT if transpose else a


def _triangle(name: str, a: object, lower: bool) -> Expr:
    """The matrix with the other triangle set to zero."""
    e = square(name, as_expr(a))
    return lower_triangle(e) if lower else lower_triangle(e.mT).mT


def _inverse_of(name: str, a: object, lower: bool) -> Expr:
    """The inverse of one triangle of a matrix."""
    e = square(name, as_expr(a))
    return tri_inverse(e) if lower else tri_inverse(e.mT).mT


@public
def gemm2(
    a: object, b: object, transpose_a: bool = False, transpose_b: bool = False, alpha: Number = 1
) -> Expr:
    """alpha op(a) op(b)."""
    left, right = as_expr(a), as_expr(b)
    return scale(matmul(_op(left, transpose_a), _op(right, transpose_b)), number(alpha))


@public
def gemm(
    a: object, b: object, c: object,
    transpose_a: bool = False, transpose_b: bool = False, alpha: Number = 1, beta: Number = 1,
) -> Expr:  # fmt: skip
    """alpha op(a) op(b) + beta c."""
    return gemm2(a, b, transpose_a, transpose_b, alpha) + scale(as_expr(c), number(beta))


@public
def syrk(a: object, transpose: bool = False, alpha: Number = 1) -> Expr:
    """alpha a a', or alpha a' a if transposed."""
    e = as_expr(a)
    return gemm2(e, e, transpose, not transpose, alpha)


@public
def trmm(
    a: object, b: object, transpose: bool = False, rightside: bool = False, lower: bool = True,
    alpha: Number = 1,
) -> Expr:  # fmt: skip
    """alpha op(a) b, or alpha b op(a) on the right side; a's other triangle is not read."""
    return _product(_op(_triangle("trmm", a, lower), transpose), b, rightside, alpha)


@public
def trsm(
    a: object, b: object, transpose: bool = False, rightside: bool = False, lower: bool = True,
    alpha: Number = 1,
) -> Expr:  # fmt: skip
    """The x with op(a) x = alpha b, or x op(a) = alpha b; a's other triangle is not read."""
    return _product(_op(_inverse_of("trsm", a, lower), transpose), b, rightside, alpha)


def _product(a: Expr, b: object, rightside: bool, alpha: Number) -> Expr:
    e = as_expr(b)
    return scale(matmul(e, a) if rightside else matmul(a, e), number(alpha))


@public
def potrf(a: object, lower: bool = True) -> Expr:
    """The Cholesky factor: lower L with a = L L', or upper U with a = U' U."""
    factor = cholesky(square("potrf", as_expr(a)))
    return factor if lower else factor.mT


@public
def potri(factor: object, lower: bool = True) -> Expr:
    """The inverse of the matrix whose Cholesky factor this is, in full."""
    x = tri_inverse(_op(square("potri", as_expr(factor)), not lower))
    return matmul(x.mT, x)


#: Whether the matrix is transposed, as SciPy says it; all numbers are real.
_TRANS = {0: False, "N": False, 1: True, "T": True, 2: True, "C": True}


@public
def solve_triangular(a: object, b: object, trans: int | str = 0, lower: bool = False) -> Expr:
    """As SciPy: the x with a x = b (trans=0 or "N") or a' x = b (1, 2, "T" or "C").

    b may be a vector.
    """
    if trans not in _TRANS:
        raise ValueError(f"trans={trans!r}: 0 or 'N' for a x = b, 1 or 'T' for a' x = b")
    x = _inverse_of("solve_triangular", a, lower)
    return matmul(_op(x, _TRANS[trans]), right_side("solve_triangular", x, as_expr(b)))


@public
def cho_solve(factor: tuple[object, bool], b: object) -> Expr:
    """As SciPy: the x with a x = b from ``(c, lower)``, the Cholesky factor of a."""
    if not isinstance(factor, tuple) or len(factor) != 2:
        raise TypeError("cho_solve takes the pair (factor, lower) and the right-hand side")
    c, lower = factor
    x = tri_inverse(_op(square("cho_solve", as_expr(c)), not lower))
    return _applied([x.mT, x], right_side("cho_solve", x, as_expr(b)))


def _applied(matrices: Sequence[Expr], b: Expr) -> Expr:
    """The product of matrices with a vector b, or with a matrix."""
    if b.ndim != 1:
        return reduce(lambda right, left: matmul(left, right), reversed(matrices), b)
    n, count = matrices[0].ndim - 2, len(matrices)
    batch = tuple(range(n))
    words = [(*batch, n + k, n + k + 1) for k in range(count)]
    return einsum([*matrices, b], [*words, (n + count,)], (*batch, n))


def _least_squares(name: str, e: Expr) -> list[Expr]:
    """Matrices whose product is the pseudoinverse: orthogonal and inverse triangular ones."""
    if e.ndim < 2:
        raise ShapeError(f"{name} needs a matrix, not shape {show_shape(e.shape)}")
    longer = longer_side(e.shape)
    if not longer:
        return [pseudoinverse(name, e)]
    if longer == "columns":
        factor, q = factors(e, name, "rows")
        return [q.mT, tri_inverse(factor)]
    factor, q = factors(e.mT, name, "columns")
    return [tri_inverse(factor).mT, q]


@public
def pinv(a: object) -> Expr:
    """The pseudoinverse of a matrix of full rank, of either shape.

    A LinAlgError where the rank is not full.
    """
    return reduce(matmul, _least_squares("pinv", as_expr(a)))


@public
def lstsq(a: object, b: object) -> Expr:
    """The x with the least ``|a x - b|``, and the shortest such x, for a of full rank (see `pinv`).

    `b` is a vector, or a matrix of several right-hand sides.
    """
    e, rhs = as_expr(a), as_expr(b)
    found = _least_squares("lstsq", e)
    if not rhs.ndim or rhs.shape[max(rhs.ndim - 2, 0)] != e.shape[-2]:
        raise ShapeError(
            f"lstsq of shapes {show_shape(e.shape)} and {show_shape(rhs.shape)}: "
            "one right-hand side has an entry for every row"
        )
    return _applied(found, rhs)


@public
def inverse(a: object) -> Expr:
    """`inv` under its other name."""
    return inv(a)


@public
def matrix_power(a: object, n: int) -> Expr:
    """The product of n copies of a square matrix; of its inverse for negative n."""
    e = square("matrix_power", as_expr(a))
    if not isinstance(n, int | np.integer) or isinstance(n, bool) or abs(n) > MAX_POWER:
        raise ValueError(f"matrix_power: {n!r} is not a whole number of at most {MAX_POWER}")
    n = int(n)
    if n < 0:
        e, n = inv(e), -n
    k = e.ndim
    batch = tuple(range(k - 2))
    unit = einsum([], [], (*batch, k - 2, k - 2), extents=dict(enumerate(e.shape)))
    total: Expr | None = None
    while n:
        if n & 1:
            total = e if total is None else matmul(total, e)
        n >>= 1
        e = matmul(e, e) if n else e
    return unit if total is None else total


@public
def sumlogdiag(a: object) -> Expr:
    """The sum of the logarithms of the diagonal."""
    return sum(log(extractdiag(a)), axis=-1)
