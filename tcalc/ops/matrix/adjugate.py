"""The adjugate, the matrix of cofactors transposed, and its derivatives, at any matrix.

Derivatives of the determinant are sums of minors, which exist where the inverse does not. They are
a family of rows adj_k(A, E1, ..., Ek), closed under differentiation, and are computed from singular
values: with A = U S V and Hk = U' Ek V', the q-th derivative of det at S is the sum over distinct
i1, ..., iq of the product of all other singular values times that minor of the directions,
det [Hk's row ik, columns i1 ... iq] (Magnus and Neudecker 2019, section 8.3, for q = 1).
"""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np

from ...graph.applications import apply
from ...graph.nodes import Apply, Expr
from ...graph.operators import Kernels, Meaning, Op, for_each_row
from ...graph.spelling import Spelling
from ...support.arrays import Array
from ..arithmetic import as_expr, public
from ..matrix_cores import attempt, of_square, square
from .directional_rows import Build, filled_like, linear, member, once, pull_transposed, push

__all__ = ["adj"]


#: |A| |A^-1| from which on det(A) A^-1 would have more rounding errors than singular values have.
INVERTED = 1e4


def _by_inverse(a: Array) -> Array | None:
    """det(A) A^-1 where all matrices are well conditioned, and determinants are normal numbers."""
    try:
        inverse = np.linalg.inv(a)
    except np.linalg.LinAlgError:
        return None
    det = np.linalg.det(a)
    bound = np.linalg.norm(a, axis=(-2, -1)) * np.linalg.norm(inverse, axis=(-2, -1))
    tiny = np.finfo(det.dtype).tiny
    good = (bound < INVERTED) & (np.abs(det) >= tiny) & np.isfinite(det)
    return det[..., None, None] * inverse if good.all() else None


def _kernel(xp: Any, params: tuple[Any, ...], a: Any, *directions: Any) -> Any:
    with np.errstate(all="ignore"):
        found = None if directions else _by_inverse(once(a, 2))
        if found is not None:
            return filled_like(found, a)
        u, s, v = attempt("adj: entries that are not finite", np.linalg.svd, once(a, 2))
        left, right = np.swapaxes(u, -1, -2), np.swapaxes(v, -1, -2)
        inner = _at_diagonal(s, [left @ once(e, 2) @ right for e in directions])
        sign = np.linalg.det(u) * np.linalg.det(v)
        return filled_like(right @ (sign[..., None, None] * inner) @ left, a)


def _at_diagonal(s: Array, directions: list[Array]) -> Array:
    """The derivative of the adjugate at diag(s) along directions."""
    count = len(directions) + 1
    letters = "".join([chr(ord("a") + k) for k in range(count)])
    weights, last = _other_products(s, count), letters[-1]
    found: Any = 0
    for order in permutations(range(count)):
        column = letters[order[-1]]
        words = [f"...{letters[k]}{letters[order[k]]}" for k in range(count - 1)]
        out = f"...{last}" if column == last else f"...{column}{last}"
        spec = ",".join([f"...{letters}", *words]) + f"->{out}"
        term = _parity(order) * np.einsum(spec, weights, *directions)
        found = found + (term[..., None] * np.eye(s.shape[-1]) if column == last else term)
    return np.asarray(found)


def _other_products(s: Array, count: int) -> Array:
    """For distinct places the product of the other entries of s; 0 where two places are one."""
    n = s.shape[-1]
    places = np.indices((n,) * count).reshape(count, -1)
    taken = (places[:, :, None] == np.arange(n)).sum(axis=0)
    products = np.where(taken, 1, s[..., None, :]).prod(axis=-1) * (taken <= 1).all(axis=-1)
    found: Array = products.reshape(*s.shape[:-1], *(n,) * count)
    return found


def _parity(order: tuple[int, ...]) -> int:
    swaps = sum([a > b for k, a in enumerate(order) for b in order[k + 1 :]])
    return -1 if swaps % 2 else 1


def _build(order: int) -> Build:
    return lambda operands: _adjugate(*operands[: order + 1])


def _pushforward(k: int, tangent: Expr, node: Apply) -> Expr:
    (order,) = node.op.family[1:]
    return push(node, k, 1, tangent, _build(order), _build(order + 1))


def _pullback(k: int, cotangent: Expr, node: Apply) -> Expr:
    (order,) = node.op.family[1:]
    return pull_transposed(node, k, 1, cotangent, _build(order), _build(order + 1))


def adjugate_row(order: int) -> Op:
    """The row of the adjugate's derivative of this order."""
    name = f"adj_frechet{order if order > 1 else ''}" if order else "adj"
    return member(name, lambda: _row(name, order))


def _row(name: str, order: int) -> Op:
    fields = ", ".join([f"{{{k}}}" for k in range(order + 1)])
    return Op(
        name, (2,) * (order + 1),
        Meaning(
            (None,) * (order + 1), shape=of_square(name), transposes=True,
            pushforward=_pushforward, pullback=_pullback,
        ),
        Kernels(_kernel, host=True, flops=for_each_row(26.0 * 3**order)),
        Spelling(
            rf"\operatorname{{{{adj}}}}({fields})" if not order
            else rf"\operatorname{{{{L}}}}_{{{{\mathrm{{{{adj}}}}}}}}({fields})",
            source="adj_frechet",
        ),
        family=(adjugate_row, order),
    )  # fmt: skip


def _adjugate(a: Expr, *directions: Expr) -> Expr:
    """The derivative of the adjugate along directions, in which it is linear and symmetric."""
    return linear(
        [a], directions, lambda fixed, rest: apply(adjugate_row(len(rest)), *fixed, *rest)
    )


adjugate_row(0)


@public
def adj(a: object) -> Expr:
    """The adjugate of square matrices, the last two axes: det(a) inv(a), and for singular ones too.

    Parameters
    ----------
    a : array_like or Expr
        Of shape (..., n, n).

    Returns
    -------
    Expr
        Of a's shape. Its derivatives of any order are those of cofactors, at singular matrices too.
    """
    return _adjugate(square("adj", as_expr(a)))
