"""The pseudoinverse of a matrix of full rank whose longer side is known at evaluation only.

P and the matrix A are closed under differentiation (Golub and Pereyra 1973):

    dP = -P dA P + (I - P A) dA' P' P + P P' dA' (I - A P),

where I - P A is zero unless there are more columns than rows, and I - A P unless there are more
rows than columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

from ...graph.applications import apply
from ...graph.extents import Coef, Shape, least_extent
from ...graph.nodes import Expr
from ...graph.normal import add, einsum
from ...graph.operators import Kernels, Meaning, Op
from ...graph.spelling import Spelling
from ..matrix_cores import labels, refuse
from .svd import beyond


def _kernel(name: str, xp: Any, params: tuple[Any, ...], a: Any) -> Any:
    """By the QR decomposition of the matrix, or of its transpose where that is the longer one."""
    tall = a.shape[-2] >= a.shape[-1]
    if not tall:
        a = xp.swapaxes(a, -1, -2)
    q, r = xp.linalg.qr(a)
    lengths = xp.sqrt(xp.einsum("...ij,...ij->...j", a, a))
    rounding = a.shape[-2] * xp.finfo(a.dtype).eps * lengths
    dependent = (xp.abs(xp.diagonal(r, 0, -2, -1)) <= rounding).any(axis=-1)
    refuse(f"{name}: the {'columns' if tall else 'rows'} are linearly dependent", dependent)
    found = xp.linalg.solve(r, xp.swapaxes(q, -1, -2))
    return found if tall else xp.swapaxes(found, -1, -2)


def _flops(shape: Sequence[int]) -> float:
    """Of Q and R, and of Q' solved by R."""
    *batch, m, n = shape
    m, n = max(m, n), min(m, n)
    return prod(batch) * (4 * (m * n * n - n**3 / 3) + m * n * n)


def _shape(params: tuple[Any, ...], shape: Shape) -> Shape:
    return (*shape[:-2], shape[-1], shape[-2])


def _derivative(a: Expr, p: Expr) -> Expr:
    b, i, j, k, m, s = labels(p)
    t = s + 1
    out = (*b, i, j, k, m)
    rows, columns = a.shape[-2:]
    rank = least_extent(rows, columns)
    tall, wide = beyond(rows, rank), beyond(columns, rank)
    left, right = [(*b, s, k), (*b, s, j)], [(*b, i, s), (*b, m, s)]
    minus = Coef(-1)
    return add([
        einsum([p, p], [(*b, i, k), (*b, m, j)], out, minus),
        einsum([p, p], left, (*b, i, j, k, i), wide, {i: columns}),
        einsum([p, a, p, p], [(*b, i, t), (*b, t, m), *left], out, wide.by(minus)),
        einsum([p, p], right, (*b, i, j, j, m), tall, {j: rows}),
        einsum([p, p, a, p], [*right, (*b, k, t), (*b, t, j)], out, tall.by(minus)),
    ])  # fmt: skip


def _row(name: str, user: str) -> Op:
    return Op(
        name, (2,),
        Meaning((_derivative,), shape=_shape, transposes=True),
        Kernels(partial(_kernel, user), flops=_flops),
        Spelling(
            r"{0}^{{+}}",
            printed="pinv" if name != "pinv" else "",
            written=lambda node: (user, node.args[0]),
        ),
    )  # fmt: skip


#: By the function that the user called, which errors name.
PSEUDOINVERSES = {user: _row(name, user) for user, name in
                  {"pinv": "pinv", "lstsq": "least_squares_inverse"}.items()}  # fmt: skip


def pseudoinverse(user: str, a: Expr) -> Expr:
    """The pseudoinverse, for a function that the user called."""
    return apply(PSEUDOINVERSES[user], a)
