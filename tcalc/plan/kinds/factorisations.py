"""Kinds of whole matrices: factors that several steps want, what is made of them, and solves."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...graph.operators import Factorisation
from ...ops.matrix.inverse import SINGULAR
from ...support.arrays import AnyArray, Sizes
from ...support.errors import LinAlgError
from .kind import Kind, Params, Result, kept
from .operators import OPERATOR


def _factor(xp: Any, result: Result, params: Params, a: AnyArray) -> Any:
    """The matrix itself: a factorisation is any object that its users know how to read."""
    return xp.asarray(a, result.dtype)


def _made(shape: Sizes, params: Params, first: Sizes) -> Sizes:
    op, *rest = params
    found: Sizes = op.result_shape(tuple(rest), first)
    return found


def _finish(xp: Any, result: Result, params: Params, factor: Any) -> AnyArray:
    op, *rest = params
    exists = isinstance(op.kernels.factor, Factorisation)  # in plans only
    compute = op.kernels.compute if exists else op.kernels.finish
    return xp.asarray(compute(xp, tuple(rest), factor), result.dtype)


def _over(xp: Any, result: Result, params: Params, a: AnyArray) -> AnyArray:
    op, *rest = params
    compute = op.kernels.compute if op.kernels.finish is None else op.kernels.finish
    return xp.asarray(compute(xp, tuple(rest), a), result.dtype)


def _columns(shape: Sizes, params: Params, matrix: Sizes, columns: Sizes) -> Sizes:
    return columns


def _substitution(shape: Sizes, params: Params, *shapes: Sizes) -> float:
    return shape[0] * prod(shape)


def _trisolve(xp: Any, result: Result, params: Params, a: AnyArray, b: AnyArray) -> AnyArray:
    transposed, name = params
    if not xp.all(xp.diagonal(a)):
        raise LinAlgError(f"{name}: a zero on the diagonal")
    if transposed:
        return xp.linalg.solve(xp.transpose(xp.tril(a)), b)
    # Reversed, the triangle is an upper one too: no row is exchanged, nothing eliminated.
    return xp.flip(xp.linalg.solve(xp.flip(xp.tril(a)), xp.flip(b, 0)), 0)


def _congruence_flops(shape: Sizes, params: Params, first: Sizes, factor: Sizes) -> float:
    return factor[0] * prod(shape)


def _congruence(xp: Any, result: Result, params: Params, b: AnyArray, a: AnyArray) -> AnyArray:
    at, name = params
    left = xp.moveaxis(b, at, 2)
    columns = xp.reshape(left, (len(a), -1))
    left = xp.reshape(_trisolve(xp, result, (False, name), a, columns), left.shape)
    turned = xp.reshape(xp.swapaxes(left, 0, 1), (len(a), -1))
    found = xp.reshape(_trisolve(xp, result, (False, name), a, turned), left.shape)
    return xp.moveaxis(found, 2, at)


def _solve_flops(shape: Sizes, params: Params, *shapes: Sizes) -> float:
    _, factored = params
    flops: float = shape[0] * prod(shape)
    return flops + (flops if factored else flops + 2 * shape[0] ** 3 / 3)


def _solve(xp: Any, result: Result, params: Params, a: AnyArray, b: AnyArray) -> AnyArray:
    transposed, _ = params
    try:
        return xp.linalg.solve(xp.transpose(a) if transposed else a, b)
    except np.linalg.LinAlgError as error:
        raise LinAlgError(SINGULAR) from error


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
        in_place="second", inverts=("lower", "positive"), solves="solve_triangular",
    ),
    # X B X' of symmetric matrices B, where X is the inverse of the triangle that comes second.
    Kind(
        name="congruence",
        params={"axis": "which axis tells the symmetric matrices apart, 0 or 1 of three",
                "name": "the row of the inverse, for errors"},
        shape=kept, flops=_congruence_flops, speed="factorisation", reference=_congruence,
        in_place="first", waits=True, inverts=("lower",), solves="solve_triangular",
    ),
]  # fmt: skip
