"""Squared distances between the rows of two matrices, and the sums of squares that are such."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from ..graph.applications import apply, rewritten
from ..graph.extents import Coef, Shape, show_shape
from ..graph.nodes import Add, Apply, Einsum, Expr
from ..graph.normal import add, drop_axes, einsum, scale, terms_of, view
from ..graph.operators import Kernels, Meaning, Op
from ..graph.products import split_coef
from ..graph.spelling import Spelling
from ..graph.sums import absent_axes, flattened
from ..support.errors import ShapeError
from .matrix_cores import labels

__all__: list[str] = []

#: Entries of all differences, from which on they are not made.
MANY = 1 << 12


def _twice_difference(a: Expr, b: Expr, y: Expr, sign: int) -> tuple[Expr, tuple[int, ...]]:
    """2 (a_ik - b_jk) or its negative, and its labels."""
    batch, i, j, k, *_ = labels(a)
    word, extents = (*batch, i, j, k), dict(enumerate((*y.shape, a.shape[-1])))
    left = einsum([a], [(*batch, i, k)], word, Coef(2 * sign), extents)
    right = einsum([b], [(*batch, j, k)], word, Coef(-2 * sign), extents)
    return add([left, right]), word


def _partial_left(a: Expr, b: Expr, y: Expr) -> Expr:
    found, (*batch, i, j, k) = _twice_difference(a, b, y, 1)
    return einsum([found], [(*batch, i, j, k)], (*batch, i, j, i, k))


def _partial_right(a: Expr, b: Expr, y: Expr) -> Expr:
    found, (*batch, i, j, k) = _twice_difference(a, b, y, -1)
    return einsum([found], [(*batch, i, j, k)], (*batch, i, j, j, k))


def _kernel(xp: Any, params: tuple[Any, ...], a: Any, b: Any) -> Any:
    if a.ndim == 2 and prod(a.shape) * len(b) >= MANY:
        from scipy.spatial.distance import cdist

        return cdist(a, b, "sqeuclidean")
    return _portable(xp, params, a, b)


def _portable(xp: Any, params: tuple[Any, ...], a: Any, b: Any) -> Any:
    difference = a[..., :, None, :] - b[..., None, :, :]
    return xp.einsum("...k,...k->...", difference, difference)


def _flops(a: Sequence[int], b: Sequence[int]) -> float:
    """A difference, a product and an addition for every pair of rows and every entry of them."""
    return 3 * prod(a) * b[-2]


def _shape(params: tuple[Any, ...], a: Shape, b: Shape) -> Shape:
    if (*a[:-2], a[-1]) != (*b[:-2], b[-1]):
        raise ShapeError(
            "squared_distances needs rows of one length, not shapes "
            f"{show_shape(a)} and {show_shape(b)}"
        )
    return (*a[:-1], b[-2])


SQUARED_DISTANCES = Op(
    "squared_distances", (2, 2),
    Meaning(
        (_partial_left, _partial_right), shape=_shape,
        domain=((-2, 2), (-2, 2)), pairs=True,
    ),
    Kernels(_kernel, host=True, portable=_portable, flops=_flops),
    Spelling(r"\operatorname{{squared\_distances}}({0}, {1})"),
)  # fmt: skip


def distances_of_sum(a: Expr, b: Expr) -> Expr:
    """|a_i + b_j|^2 of shape (..., n, m), for rows of shapes (..., n, k) and (..., m, k)."""
    if split_coef(a)[0].value < 0:
        return apply(SQUARED_DISTANCES, scale(a, Coef(-1)), b)
    return apply(SQUARED_DISTANCES, a, scale(b, Coef(-1)))


# --- sums of squares of differences ---------------------------------------------------------------


def squares_in(e: Expr) -> list[int]:
    """The second places of sums with three axes that stand twice, with the same labels."""
    if not isinstance(e, Einsum):
        return []
    held = [(id(op), word) for op, word in zip(e.args, e.labels, strict=True)]
    return [
        k
        for k, op in enumerate(e.args)
        if isinstance(op, Add) and op.ndim == 3 and held.count(held[k]) == 2 and held[k] in held[:k]
    ]


def halves_of(e: Expr, inner: int) -> tuple[Expr, Expr] | None:
    """a_ik and b_jk of e = a_ik + b_jk with k at this axis, the other axes in order."""
    first, second = (axis for axis in range(3) if axis != inner)
    halves: tuple[list[Expr], list[Expr]] = ([], [])
    for term in flattened(e, _several):
        absent = absent_axes(term)
        if not absent & {first, second}:
            return None
        gone = second if second in absent else first
        halves[gone == first].append(drop_axes(term, {gone}))
    if not all(halves):
        return None
    rows, columns = (
        add(half) if axis < inner else view(add(half), (1, 0))
        for half, axis in zip(halves, (first, second), strict=True)
    )
    return rows, columns


def as_distances(e: Einsum) -> Expr:
    """A contraction in which the sum over k of (a_ik + b_jk)^2 is one kernel."""
    for place in squares_in(e) if e.summed else ():
        square, word = e.args[place], e.labels[place]
        rest = [o for o in zip(e.args, e.labels, strict=True) if o[0] is not square or o[1] != word]
        standing = {label for _, other in rest for label in other}.union(e.out)
        own = [axis for axis in range(3) if word[axis] not in standing]
        halves = halves_of(square, own[0]) if len(own) == 1 and len(set(word)) == 3 else None
        if halves is not None:
            ops, words = [o[0] for o in rest], [o[1] for o in rest]
            labels = tuple([label for label in word if label in standing])
            found = distances_of_sum(*halves)
            extents = dict(enumerate(e.extents))
            return einsum([*ops, found], [*words, labels], e.out, e.coef, extents)
    return e


def _several(e: Expr) -> list[Expr] | None:
    terms = terms_of(e)
    return terms if len(terms) > 1 else None


def as_sums(e: Expr) -> Expr:
    """The expression with sums of squares of differences for squared distances."""

    def change(new: Expr, old: Expr) -> Expr:
        if not isinstance(new, Apply) or new.op is not SQUARED_DISTANCES or new.ndim != 2:
            return new
        a, b = new.args
        word, extents = (0, 1, 2), dict(enumerate((*new.shape, a.shape[1])))
        rows = einsum([a], [(0, 2)], word, Coef(), extents)
        difference = add([rows, einsum([b], [(1, 2)], word, Coef(-1), extents)])
        return einsum([difference, difference], [word, word], (0, 1))

    return rewritten([e], change)[0]
