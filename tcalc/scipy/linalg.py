"""`scipy.linalg` with expressions among the arguments, by the rows of linear algebra."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import scipy.linalg

from ..graph.extents import Extent
from ..graph.nodes import Expr
from ..ops import arithmetic, joining, reshape
from ..ops.arithmetic import Axis, as_expr
from ..ops.diagonals import diag, eye
from ..ops.matrix import cholesky as cholesky_rows
from ..ops.matrix import eigh as eigh_rows
from ..ops.matrix import functions, inverse, lapack_names, lq, norms
from ..ops.matrix import svd as svd_rows
from ..ops.views import zeros
from ..support.errors import ShapeError
from .namespace import member, refusal, stands_in

__all__ = sorted(name for name in dir(scipy.linalg) if not name.startswith("_"))


@stands_in(scipy.linalg)
def cholesky(a: object, lower: bool = False) -> Expr:
    """The factor of a = L L' or, unless `lower`, of a = U' U, as `scipy.linalg.cholesky`."""
    factor = cholesky_rows.cholesky(a)
    return factor if lower else factor.mT


@stands_in(scipy.linalg)
def cho_factor(a: object, lower: bool = False) -> tuple[Expr, bool]:
    """The factor for `cho_solve`; the other triangle is zero."""
    return cholesky(as_expr(a), lower=lower), lower


@stands_in(scipy.linalg)
def cho_solve(c_and_lower: tuple[Any, bool], b: object) -> Expr:
    """As `scipy.linalg.cho_solve`."""
    return lapack_names.cho_solve(c_and_lower, b)


@stands_in(scipy.linalg)
def solve(
    a: object, b: object, lower: bool = False, assume_a: str | None = None, transposed: bool = False
) -> Expr:
    """As `scipy.linalg.solve`; the whole of `a` is read, whatever is assumed of it."""
    matrix = as_expr(a)
    return inverse.solve(matrix.mT if transposed else matrix, b)


@stands_in(scipy.linalg)
def solve_triangular(
    a: object, b: object, trans: int | str = 0, lower: bool = False, unit_diagonal: bool = False
) -> Expr:
    """As `scipy.linalg.solve_triangular`."""
    matrix = as_expr(a)
    if unit_diagonal:
        one = eye(matrix.shape[-1])
        matrix = matrix - matrix * one + one
    return lapack_names.solve_triangular(matrix, b, trans, lower)


@stands_in(scipy.linalg)
def solve_banded(l_and_u: tuple[int, int], ab: object, b: object) -> Expr:
    """As `scipy.linalg.solve_banded`, of the matrix that the diagonals in `ab` make."""
    below, above = l_and_u
    rows = as_expr(ab)
    n = _number(rows.shape[-1])
    total: Expr | None = None
    for k in range(-below, above + 1):
        row = rows[above - k]
        part = diag(row[max(k, 0) : n + min(k, 0)], k)
        total = part if total is None else total + part
    assert total is not None
    return inverse.solve(total, b)


def _number(extent: Extent) -> int:
    if not isinstance(extent, int):
        raise ShapeError(f"solve_banded needs an extent that is a number, not {extent}")
    return extent


@stands_in(scipy.linalg)
def solve_sylvester(a: object, b: object, q: object) -> Expr:
    """The x with a x + x b = q, by one system of equations for all its entries."""
    left, right, wanted = as_expr(a), as_expr(b), as_expr(q)
    m, n = wanted.shape
    system = reshape.kron(left, eye(n)) + reshape.kron(eye(m), right.mT)
    flat = inverse.solve(system, reshape.ravel(wanted))
    return reshape.reshape(flat, (m, n))


@stands_in(scipy.linalg)
def inv(a: object) -> Expr:
    """As `scipy.linalg.inv`."""
    return inverse.inv(a)


@stands_in(scipy.linalg)
def det(a: object) -> Expr:
    """As `scipy.linalg.det`."""
    return inverse.det(a)


@stands_in(scipy.linalg)
def pinv(a: object) -> Expr:
    """As `scipy.linalg.pinv`, of matrices of full rank."""
    return lapack_names.pinv(a)


@stands_in(scipy.linalg)
def lstsq(a: object, b: object) -> tuple[Expr, Expr, Extent, Expr]:
    """The solution, the sum of squared residuals, the rank and the singular values."""
    matrix, right = as_expr(a), as_expr(b)
    found = lapack_names.lstsq(matrix, right)
    residual = arithmetic.subtract(arithmetic.matmul(matrix, found), right)
    least = [n for n in matrix.shape[-2:] if isinstance(n, int)]
    rank: Extent = min(least) if len(least) == 2 else matrix.shape[-1]
    total = arithmetic.sum(residual * residual, 0)
    return found, total, rank, svd_rows.svdvals(matrix)


@stands_in(scipy.linalg)
def norm(
    a: object, ord: int | float | str | None = None, axis: Axis = None, keepdims: bool = False
) -> Expr:
    """As `scipy.linalg.norm`."""
    return norms.norm(a, ord, axis, keepdims)


@stands_in(scipy.linalg)
def svd(a: object, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """As `scipy.linalg.svd`; of matrices that are not square with ``full_matrices=False``."""
    if not compute_uv:
        return svd_rows.svdvals(a)
    shape = as_expr(a).shape
    if full_matrices and shape[-1] != shape[-2]:
        raise refusal("scipy.linalg.svd with full_matrices=True", "full_matrices=False")
    return svd_rows.svd(a, full_matrices=False)


@stands_in(scipy.linalg)
def svdvals(a: object) -> Expr:
    """As `scipy.linalg.svdvals`."""
    return svd_rows.svdvals(a)


@stands_in(scipy.linalg)
def qr(a: object, mode: str = "full") -> Any:
    """As `scipy.linalg.qr`, with a positive diagonal; of more rows than columns "economic"."""
    rows, columns = as_expr(a).shape[-2:]
    wide = isinstance(rows, int) and isinstance(columns, int) and rows < columns
    if mode != "economic" and rows != columns and not wide:
        raise refusal(f"scipy.linalg.qr with mode={mode!r}", 'mode="economic"')
    found = lq.qr(a)
    return (found[1],) if mode == "r" else found


@stands_in(scipy.linalg)
def eigh(a: object, b: object = None, lower: bool = True, eigvals_only: bool = False) -> Any:
    """As `scipy.linalg.eigh`, of (a + a') / 2; of pairs by the Cholesky factor of b."""
    matrix = as_expr(a)
    if b is None:
        return eigh_rows.eigvalsh(matrix) if eigvals_only else eigh_rows.eigh(matrix)
    factor = cholesky_rows.cholesky(b)
    half = lapack_names.solve_triangular(factor, matrix, lower=True)
    whitened = lapack_names.solve_triangular(factor, half.mT, lower=True)
    if eigvals_only:
        return eigh_rows.eigvalsh(whitened)
    w, v = eigh_rows.eigh(whitened)
    return w, lapack_names.solve_triangular(factor, v, trans=1, lower=True)


@stands_in(scipy.linalg)
def eigvalsh(a: object, b: object = None, lower: bool = True) -> Expr:
    """As `scipy.linalg.eigvalsh`, of (a + a') / 2."""
    found: Expr = eigh(as_expr(a), b, eigvals_only=True)
    return found


@stands_in(scipy.linalg)
def expm(A: object) -> Expr:
    """As `scipy.linalg.expm`."""
    return functions.expm(A)


@stands_in(scipy.linalg)
def logm(A: object) -> Expr:
    """As `scipy.linalg.logm`, where the logarithm is real."""
    return functions.logm(A)


@stands_in(scipy.linalg)
def sqrtm(A: object) -> Expr:
    """As `scipy.linalg.sqrtm`, where the root is real."""
    return functions.sqrtm(A)


@stands_in(scipy.linalg)
def block_diag(*arrs: object) -> Expr:
    """As `scipy.linalg.block_diag`, of matrices whose extents are numbers."""
    blocks = [as_expr(a) for a in arrs]
    blocks = [e[None, :] if e.ndim == 1 else e.reshape(1, 1) if not e.ndim else e for e in blocks]
    widths = [e.shape[1] for e in blocks]
    rows: Sequence[Expr] = [
        joining.concatenate(
            [e if k == j else zeros((e.shape[0], n)) for j, n in enumerate(widths)], axis=1
        )
        for k, e in enumerate(blocks)
    ]
    return joining.concatenate(rows, axis=0)


def __getattr__(name: str) -> Any:
    found = member(scipy.linalg, globals(), name)
    globals()[name] = found
    return found
