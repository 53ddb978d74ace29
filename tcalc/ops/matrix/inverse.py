"""Functions of square matrices over leading batch axes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from ...graph.applications import apply, core_swap
from ...graph.extents import Coef, Shape
from ...graph.nodes import Expr
from ...graph.normal import einsum, view
from ...graph.operators import Factorisation, Kernels, Meaning, Op, Partial, for_each_row
from ...graph.spelling import Spelling
from .. import arithmetic
from ..arithmetic import as_expr, public
from ..elementwise_row import Function
from ..matrix_cores import attempt, refuse, right_side, square
from .adjugate import adj
from .results import SlogdetResult

__all__ = [
    "det",
    "inv",
    "logdet",
    "slogdet",
    "solve",
]


def _matrix_row(
    name: str, partial: Partial, kernels: Kernels, latex: str, keeps: bool, inverts: str = ""
) -> Op:
    def shape(params: tuple[Any, ...], operand: Shape) -> Shape:
        return operand if keeps else operand[:-2]

    meaning = Meaning((partial,), shape=shape, transposes=True, inverts=inverts)
    return Op(name, (2,), meaning, kernels, Spelling(latex))


def _function(row: Op) -> Function:
    name = row.name

    def function(a: object) -> Expr:
        return apply(row, square(name, as_expr(a)))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"``{name}`` of square matrices, the last two axes."
    return public(function)


def _words(e: Expr) -> tuple[tuple[int, ...], int, int, int, int]:
    n = e.ndim - 2
    return tuple(range(n)), n, n + 1, n + 2, n + 3


def _inv_partial(a: Expr, x: Expr) -> Expr:
    """dX = -X dA X."""
    batch, i, j, k, m = _words(x)
    return einsum([x, x], [(*batch, i, k), (*batch, m, j)], (*batch, i, j, k, m), Coef(-1))


SINGULAR = "inv: the matrix is singular"


def _inv(xp: Any, params: tuple[Any, ...], a: Any) -> Any:
    return attempt(SINGULAR, xp.linalg.inv, a)


def _lu(xp: Any, params: tuple[Any, ...], a: Any) -> Any:
    """LAPACK's factors of the transpose (row-major memory), pivots, and the first zero pivot."""
    import scipy.linalg

    if not a.size:
        return a, xp.zeros(0, int), 0
    (getrf,) = scipy.linalg.get_lapack_funcs(("getrf",), (a,))
    return getrf(a.T)


def _inv_finish(xp: Any, params: tuple[Any, ...], factor: Any) -> Any:
    import scipy.linalg

    lu, pivots, zero = factor
    refuse(SINGULAR, zero > 0)
    (getri,) = scipy.linalg.get_lapack_funcs(("getri",), (lu,))
    return getri(lu, pivots)[0].T if lu.size else lu


def _slogdet(xp: Any, factor: Any) -> tuple[Any, Any]:
    lu, pivots, _ = factor
    diagonal = xp.diagonal(lu)
    odd = (xp.sum(pivots != xp.arange(len(pivots))) + xp.sum(diagonal < 0)) % 2
    sign = xp.where(xp.any(diagonal == 0), 0, 1 - 2 * odd)
    return sign, xp.sum(xp.log(xp.abs(diagonal)))


def _of_diagonal(shape: Sequence[int]) -> float:
    return 11 * prod(shape[:-1])


LU = Factorisation("lu", _lu, for_each_row(2 / 3))


def _transposed(e: Expr) -> Expr:
    return view(e, core_swap(e.ndim))


INV = _matrix_row(
    "inv", _inv_partial, Kernels(_inv, flops=for_each_row(4 / 3), factor=LU, finish=_inv_finish),
    "{0}^{{-1}}", True, inverts="general",
)  # fmt: skip
DET = _matrix_row(
    "det", lambda a, y: _transposed(adj(a)),
    Kernels(
        lambda xp, p, x: xp.linalg.det(x), flops=_of_diagonal, factor=LU,
        finish=lambda xp, p, lu: _slogdet(xp, lu)[0] * xp.exp(_slogdet(xp, lu)[1]),
    ),
    r"\det({0})", False,
)  # fmt: skip
LOGDET = _matrix_row(
    "logdet", lambda a, y: _transposed(inv(a)),
    Kernels(
        lambda xp, p, x: xp.linalg.slogdet(x)[1], flops=_of_diagonal, factor=LU,
        finish=lambda xp, p, lu: _slogdet(xp, lu)[1],
    ),
    r"\log\left|\det({0})\right|", False,
)  # fmt: skip
DET_SIGN = _matrix_row(
    "det_sign", None,
    Kernels(
        lambda xp, p, x: xp.linalg.slogdet(x)[0], flops=_of_diagonal, factor=LU,
        finish=lambda xp, p, lu: _slogdet(xp, lu)[0],
    ),
    r"\operatorname{{sign}}\det({0})", False,
)  # fmt: skip
inv: Function = _function(INV)
det: Function = _function(DET)
logdet: Function = _function(LOGDET)


@public
def slogdet(a: object) -> SlogdetResult:
    """(sign, logarithm of the absolute value) of the determinant; the sign has derivative 0."""
    e = square("slogdet", as_expr(a))
    return SlogdetResult(apply(DET_SIGN, e), logdet(e))


@public
def solve(a: object, b: object) -> Expr:
    """x with a x = b, for a vector or matrix b."""
    matrix = square("solve", as_expr(a))
    return arithmetic.matmul(inv(matrix), right_side("solve", matrix, as_expr(b)))
