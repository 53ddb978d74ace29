"""Axes merged and split, in C order, where their extents are numbers: reshape, ravel, kron."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..graph.applications import apply
from ..graph.extents import ONE, Extent, Shape, show_shape
from ..graph.nodes import Apply, Expr
from ..graph.normal import einsum, view
from ..graph.variables import check_shape
from ..support.errors import ShapeError, UnsupportedError
from .arithmetic import as_expr, multiply, public
from .packed import linear

__all__ = ["kron", "ravel", "reshape"]


def _reshape(xp: Any, params: tuple[Any, ...], a: Any) -> Any:
    core, target = params
    return a.reshape(a.shape[: a.ndim - core] + target)


def _reshape_shape(params: tuple[Any, ...], shape: Shape) -> Shape:
    core, target = params
    return (*shape[: len(shape) - core], *target)


def _reshape_back(k: int, cotangent: Expr, node: Apply) -> Expr:
    core, target = node.params
    (arg,) = node.args
    return apply(MERGE, cotangent, params=(len(target), arg.shape[arg.ndim - core :]))


#: Entries of the last axes, as many as the first parameter says, in C order in another shape.
MERGE = linear(
    "merge_axes", -1, _reshape, _reshape_shape, _reshape_back, printed="reshape",
    params=((1, (3, 1)), (2, (9,)), (2, (1, 9))),
)  # fmt: skip


# --- reshape --------------------------------------------------------------------------------------


@public
def reshape(a: object, *shape: Any) -> Expr:
    """The entries in C order in another shape; -1 stands for the extent that is left.

    Axes with named dimensions keep their order and are neither merged nor split, nor is anything
    across them: an UnsupportedError.
    """
    e = as_expr(a)
    target = _target(e, shape[0] if len(shape) == 1 else shape)
    if target == e.shape:
        return e
    found = _without_ones(e)
    wanted = [extent for extent in target if extent != 1]
    old, new = _runs(found.shape), _runs(wanted)
    if old[1] != new[1] or [math.prod(r) for r in old[0]] != [math.prod(r) for r in new[0]]:
        message = f"reshape of {show_shape(e.shape)} to {show_shape(target)}"
        if old[1] or new[1]:
            raise UnsupportedError(f"{message} merges or splits indices of named dimensions")
        raise ShapeError(f"{message}: the numbers of entries differ")
    start = 0
    for before, after in zip(old[0], new[0], strict=True):
        if before != after:
            found = _regrouped(found, start, len(before), after)
        start += len(after) + 1
    places = [axis for axis, extent in enumerate(target) if extent != 1]
    return einsum([found], [places], range(len(target)), ONE, dict(enumerate(target)))


@public
def ravel(a: object) -> Expr:
    """All entries in C order as a vector."""
    return reshape(a, -1)


def _target(e: Expr, shape: Any) -> Shape:
    """The shape asked for, with -1 replaced by what is left of e's extents."""
    given: list[Any] = [shape] if isinstance(shape, int | str | np.integer) else list(shape)
    free = [k for k, extent in enumerate(given) if not isinstance(extent, str) and extent == -1]
    if not free:
        return check_shape(given, "reshape")
    if len(free) > 1:
        raise ShapeError("reshape: only one extent can be -1")
    rest = check_shape([x for x in given if isinstance(x, str) or x != -1], "reshape")
    return (*rest[: free[0]], _left(e, rest), *rest[free[0] :])


def _left(e: Expr, rest: Shape) -> Extent:
    """The extent that is left of e's when others are taken away."""
    names = [x for x in e.shape if isinstance(x, str)]
    for name in [x for x in rest if isinstance(x, str)]:
        if name in names:
            names.remove(name)
    whole, taken = (math.prod([x for x in s if isinstance(x, int)]) for s in (e.shape, rest))
    if taken and not whole % taken and not names:
        return whole // taken
    if names == names[:1] and whole == taken:
        return names[0]
    shown = show_shape((*rest, -1))
    if names:
        raise UnsupportedError(
            f"reshape of {show_shape(e.shape)} with extents {shown} merges indices of named "
            "dimensions"
        )
    raise ShapeError(f"reshape of {show_shape(e.shape)}: extents {shown} do not divide it")


def _runs(shape: Any) -> tuple[list[tuple[int, ...]], list[str]]:
    """Runs of numbers among extents, and the names between them."""
    runs: list[tuple[int, ...]] = [()]
    names = []
    for extent in shape:
        if isinstance(extent, int):
            runs[-1] += (extent,)
        else:
            names.append(extent)
            runs.append(())
    return runs, names


def _regrouped(e: Expr, start: int, count: int, target: tuple[int, ...]) -> Expr:
    """`count` axes from `start` on in another shape."""
    axes = list(range(e.ndim))
    order = [*axes[:start], *axes[start + count :], *axes[start : start + count]]
    found = apply(MERGE, view(e, order), params=(count, target))
    rest = found.ndim - len(target)
    return view(found, [*range(start), *range(rest, found.ndim), *range(start, rest)])


def _without_ones(e: Expr) -> Expr:
    kept = [axis for axis, extent in enumerate(e.shape) if extent != 1]
    return einsum([e], [range(e.ndim)], kept)


# --- Kronecker products ---------------------------------------------------------------------------


@public
def kron(a: object, b: object) -> Expr:
    """The Kronecker product, as NumPy's: axis k has the extent of a's times that of b's.

    Extents must be numbers, unless one of the two is 1.
    """
    left, right = as_expr(a), as_expr(b)
    if not left.ndim or not right.ndim:
        return multiply(left, right)
    ndim = max(left.ndim, right.ndim)
    pairs = list(zip(_padded(left, ndim), _padded(right, ndim), strict=True))
    for m, n in pairs:
        if not (isinstance(m, int) and isinstance(n, int)) and 1 not in (m, n):
            raise UnsupportedError(
                f"kron merges indices of extents {m} and {n}, which expressions offer for numbers "
                "only"
            )
    one = [2 * axis for axis, (m, _) in enumerate(pairs) if m != 1]
    two = [2 * axis + 1 for axis, (_, n) in enumerate(pairs) if n != 1]
    found = einsum([_without_ones(left), _without_ones(right)], [one, two], sorted(one + two))
    return reshape(found, tuple([_product(m, n) for m, n in pairs]))


def _product(m: Extent, n: Extent) -> Extent:
    """The extent of merged axes, one of them 1 if one is a name."""
    if isinstance(m, int) and isinstance(n, int):
        return m * n
    return m if n == 1 else n


def _padded(e: Expr, ndim: int) -> Shape:
    return (*(1,) * (ndim - e.ndim), *e.shape)
