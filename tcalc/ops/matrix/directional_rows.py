"""Rows that are linear in further operands, the directions of a derivative.

A family of rows f_k(A, E1, ..., Ek), each the derivative of the one before it along one direction
more, is closed under differentiation: no derivative is ever written out. The axes of several
directions or outputs are batch axes of the next row.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...graph.applications import core_swap
from ...graph.extents import ONE, Shape
from ...graph.nodes import Apply, Einsum, Expr, Labels
from ...graph.normal import einsum, scale, view
from ...graph.operators import TABLE, Op
from ...graph.orientation import inverse_permutation
from ...graph.products import atoms_of, is_zero, split_coef, zeros_node

#: Makes the row's value from its operands, in a simpler form where there is one.
Build = Callable[[Sequence[Expr]], Expr]


_lock = threading.Lock()


def member(name: str, make: Callable[[], Op]) -> Op:
    """The row of this name, made when it is first asked for, by whichever thread."""
    with _lock:
        found = TABLE.get(name)
        return make() if found is None else found


def lifted(e: Expr, front: Shape) -> Expr:
    """The expression repeated over new axes in front."""
    d = len(front)
    return einsum([e], [range(d, d + e.ndim)], range(d + e.ndim), ONE, dict(enumerate(front)))


def push(node: Apply, k: int, fixed: int, tangent: Expr, build: Build, more: Build) -> Expr:
    """The row along a tangent of operand k.

    The first `fixed` operands are no directions: along them there is one direction more.
    """
    others = [e for i, e in enumerate(node.args) if i != k or i < fixed]
    n = node.args[k].ndim
    front, order = tangent.shape[n:], [*range(n, tangent.ndim), *range(n)]
    operands = [*[lifted(e, front) for e in others], view(tangent, order)]
    return view((more if k < fixed else build)(operands), inverse_permutation(order))


def pull(node: Apply, k: int, fixed: int, cotangent: Expr, build: Build, more: Build) -> Expr:
    """The gradient with respect to operand k, for symmetric matrices: the row along the cotangent.

    tr(Y' f_k(A, E1, E2, ...)) is tr(E1' f_k(A, Y', E2, ...)'), by the resolvent integral of f.
    """
    others = [e for i, e in enumerate(node.args) if i != k or i < fixed]
    front = cotangent.shape[: cotangent.ndim - node.ndim]
    return (more if k < fixed else build)([*[lifted(e, front) for e in others], cotangent])


def pull_transposed(
    node: Apply, k: int, fixed: int, cotangent: Expr, build: Build, more: Build
) -> Expr:
    """As `pull`, for general matrices: along the transposed cotangent, and transposed."""
    swap = core_swap(cotangent.ndim)
    return view(pull(node, k, fixed, view(cotangent, swap), build, more), swap)


def linear(
    fixed: Sequence[Expr],
    directions: Sequence[Expr],
    build: Callable[[list[Expr], list[Expr]], Expr],
) -> Expr:
    """A value of the shape of the first operand, linear and symmetric in directions.

    It is zero along zero, coefficients stand outside, and so do unit tensors that join batch axes:
    off their diagonal a direction is zero.
    """
    shape = fixed[0].shape
    if any(is_zero(e) for e in directions):
        return zeros_node(shape)
    word = _joined(directions, len(shape) - 2)
    if word is not None:
        kept = sorted(set(word))
        axes = len(shape), len(shape) + 1
        small = [_diagonal(e, word, kept) for e in (*fixed, *directions)]
        inner = linear(small[: len(fixed)], small[len(fixed) :], build)
        return einsum([inner], [(*kept, *axes)], (*word, *axes))
    coef, rest = ONE, []
    for e in directions:
        factor, plain = split_coef(e)
        coef = coef.by(factor)
        rest.append(plain)
    return scale(build(list(fixed), sorted(rest, key=lambda e: e.order)), coef)


def _joined(directions: Sequence[Expr], batch: int) -> Labels | None:
    """For every batch axis the first one that a unit tensor joins it with."""
    for e in directions:
        if isinstance(e, Einsum) and not e.summed and len(set(e.out[:batch])) < batch:
            return tuple([e.out.index(label) for label in e.out[:batch]])
    return None


def _diagonal(e: Expr, word: Labels, kept: list[int]) -> Expr:
    core = tuple(range(len(word), e.ndim))
    return einsum([e], [(*word, *core)], (*kept, *core))


def without_identity(directions: Sequence[Expr]) -> list[Expr] | None:
    """The directions, which have no coefficients, without one that is the identity, or None."""
    for k, e in enumerate(directions):
        if not isinstance(e, Einsum) or e.args or e.out[-1] != e.out[-2]:
            continue
        if len(set(e.out)) == len(e.out) - 1:
            return [*directions[:k], *directions[k + 1 :]]
    return None


def scaled_matrix(e: Expr) -> tuple[int, Labels] | None:
    """What tells the matrix that e is a multiple of, by numbers and by what has batch axes only."""
    product = atoms_of(e)
    axes = {label: axis for axis, label in enumerate(product.out)}
    core = set(product.out[-2:])
    whole = [(op, word) for op, word in product.operands if not core.isdisjoint(word)]
    if len(axes) < e.ndim or len(whole) != 1:
        return None
    ((op, word),) = whole
    return id(op), tuple([axes[label] for label in word])


# --- arrays ---------------------------------------------------------------------------------------


def once(a: Any, core: int) -> Any:
    """An array in double precision without the repetitions along its batch axes."""
    batch = a.ndim - core
    same = [a.strides[k] == 0 and a.shape[k] > 1 for k in range(batch)]
    return np.asarray(a[tuple([slice(0, 1) if s else slice(None) for s in same])], np.float64)


def filled_like(found: Any, a: Any) -> Any:
    """The array in the shape and precision of another one, which may be of integers."""
    return np.array(np.broadcast_to(found, a.shape), np.result_type(a.dtype, np.float32))
