"""Kinds of whole matrices: factors that several steps want, what is made of them, and solves."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...ops.matrix.inverse import SINGULAR
from ...support.errors import LinAlgError
from .kind import Kind, Params, Result, Sizes, kept
from .operators import OPERATOR

Array = Any


def _factor(xp: Any, result: Result, params: Params, a: Array) -> Any:
    return params[0].compute(xp, (), xp.asarray(a, result.dtype))


def _made(shape: Sizes, params: Params, first: Sizes) -> Sizes:
    op, *rest = params
    found: Sizes = op.result_shape(tuple(rest), first)
    return found


def _finish(xp: Any, result: Result, params: Params, factor: Any) -> Array:
    op, *rest = params
    return xp.asarray(op.kernels.finish(xp, tuple(rest), factor), result.dtype)


def _over(xp: Any, result: Result, params: Params, a: Array) -> Array:
    op, *rest = params
    compute = op.kernels.compute if op.kernels.finish is None else op.kernels.finish
    return xp.asarray(compute(xp, tuple(rest), a), result.dtype)


def _columns(shape: Sizes, params: Params, matrix: Sizes, columns: Sizes) -> Sizes:
    return columns


def _substitution(shape: Sizes, params: Params, *shapes: Sizes) -> float:
    return shape[0] * prod(shape)


def _trisolve(xp: Any, result: Result, params: Params, a: Array, b: Array) -> Array:
    transposed, name = params
    if not xp.all(xp.diagonal(a)):
        raise LinAlgError(f"{name}: a zero on the diagonal")
    triangle = xp.tril(a)
    return xp.linalg.solve(xp.transpose(triangle) if transposed else triangle, b)


def _solve_flops(shape: Sizes, params: Params, *shapes: Sizes) -> float:
    _, factored = params
    flops: float = shape[0] * prod(shape)
    return flops + (flops if factored else flops + 2 * shape[0] ** 3 / 3)


def _solve(xp: Any, result: Result, params: Params, a: Any, b: Array) -> Array:
    transposed, factored = params
    matrix = _multiplied(xp, *a) if factored else a
    try:
        return xp.linalg.solve(xp.transpose(matrix) if transposed else matrix, b)
    except np.linalg.LinAlgError as error:
        raise LinAlgError(SINGULAR) from error


def _multiplied(xp: Any, lu: Array, pivots: Array, zero: int) -> Array:
    """The matrix of which these are the factors, of its transpose, as LAPACK gives them."""
    if zero:
        raise LinAlgError(SINGULAR)
    order = list(range(len(lu)))
    for k, pivot in enumerate(pivots):
        order[k], order[pivot] = order[pivot], order[k]
    lower = xp.tril(lu, -1) + xp.eye(len(lu), dtype=lu.dtype)
    rows = xp.matmul(lower, xp.triu(lu))
    return xp.transpose(rows[xp.argsort(xp.asarray(order, dtype=int))])


FACTORISATIONS = [
    Kind(
        name="factor", params={"operator": "a factorisation of plans, whose result is any object"},
        shape=kept, flops=None, reference=_factor, allocates=True,
    ),
    Kind(
        name="finish", params=OPERATOR,
        shape=_made, flops=None, reference=_finish, allocates=True,
    ),
    Kind(
        name="over", params=OPERATOR,
        shape=kept, flops=None, speed="factorisation", reference=_over,
        in_place="first", waits=True,
    ),
    Kind(
        name="solve",
        params={"transposed": "is it the transpose of the matrix?",
                "factored": "is the first operand its LU factors?"},
        shape=_columns, flops=_solve_flops, speed="factorisation", reference=_solve,
        allocates=True, inverts=("general",), solves="solve",
    ),
    Kind(
        name="trisolve",
        params={"transposed": "is it the transpose of the triangle?",
                "name": "the row of the inverse, for errors"},
        shape=_columns, flops=_substitution, speed="factorisation", reference=_trisolve,
        allocates=True, inverts=("lower", "positive"), solves="solve_triangular",
    ),
]  # fmt: skip
