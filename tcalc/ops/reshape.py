"""Axes merged and split, in C order: reshape, ravel, kron, vec.

Merging axes of extents m and n gives one of extent m*n, named or not: the entry at i, j is that at
n*i+j. The map is linear, and free where plans run it; `rules.merges` takes it outside of products.
"""

from __future__ import annotations

from itertools import permutations
from math import prod
from typing import Any, NoReturn, TypeGuard

import numpy as np

from ..graph.applications import apply
from ..graph.extent_equations import exactly_divided
from ..graph.extent_forms import times
from ..graph.extents import (
    ONE,
    Extent,
    Shape,
    extent_from,
    extent_names,
    extent_product,
    form_of,
    show_shape,
)
from ..graph.factors import indicates
from ..graph.nodes import Apply, Einsum, Expr
from ..graph.normal import einsum, view
from ..graph.products import filled, is_number
from ..graph.variables import check_shape
from ..integers.affine import Affine, Constraint
from ..integers.boxes import index
from ..support.errors import ShapeError
from .arithmetic import as_expr, multiply, public
from .indicator import MAX_AXES, indicator, merging
from .packed import linear

__all__ = ["kron", "ravel", "reshape", "vec"]


def _reshape(xp: Any, params: tuple[Any, ...], a: Any) -> Any:
    core, target = params
    try:
        return a.reshape(a.shape[: a.ndim - core] + target)
    except ValueError:
        _refuse(a.shape[a.ndim - core :], target)


def _reshape_shape(params: tuple[Any, ...], shape: Shape) -> Shape:
    core, target = params
    given = shape[len(shape) - core :]
    if all(isinstance(extent, int) for extent in (*given, *target)) and prod(given) != prod(target):
        _refuse(given, target)
    return (*shape[: len(shape) - core], *target)


def _refuse(given: Shape, target: Shape) -> NoReturn:
    raise ShapeError(
        f"entries of shape {show_shape(given)} cannot have shape {show_shape(target)}: "
        "these are not as many"
    )


def _reshape_back(k: int, cotangent: Expr, node: Apply) -> Expr:
    core, target = node.params
    (arg,) = node.args
    return merged(cotangent, len(target), arg.shape[arg.ndim - core :])


#: Entries of the last axes, as many as the first parameter says, in C order in another shape.
MERGE = linear(
    "merge_axes", -1, _reshape, _reshape_shape, _reshape_back, printed="reshape",
    params=((1, (3, 1)), (2, (9,)), (2, (1, 9))),
    regroups=True, dimensions=lambda params: extent_names(params[1]),
)  # fmt: skip


def merges(e: Expr) -> TypeGuard[Apply]:
    """Are the last axes of e those of its operand, merged or split?"""
    return isinstance(e, Apply) and e.op is MERGE


def merged(e: Expr, count: int, target: Shape) -> Expr:
    """The last axes of e, as many as `count`, in another shape; merges of merges are one."""
    shape = e.shape[e.ndim - count :]
    if shape == target:
        return e
    if isinstance(e, Einsum) and is_number(e):
        return filled(e.coef, (*e.shape[: e.ndim - count], *target))
    if merges(e) and len(e.params[1]) == count:
        return merged(e.args[0], e.params[0], target)
    return apply(MERGE, e, params=(count, target))


def unmerged(e: Expr, arg: Expr) -> Expr:
    """A node that merges axes into one, of another operand, as a product with an indicator."""
    last = e.ndim - 1
    before, label = tuple(range(arg.ndim)), arg.ndim
    place = merging([index(k) for k in before[last:]], arg.shape[last:])
    extents: dict[int, Extent] = dict(enumerate((*arg.shape, e.shape[-1])))
    held = indicator(extents, [Constraint(index(label) - place, True)])
    ops, words = [op for op, _ in held], [word for _, word in held]
    return einsum([arg, *ops], [before, *words], (*before[:last], label), ONE, extents)


def merged_places(e: Expr) -> tuple[int, ...]:
    """The axes of an indicator of where merged axes stand, [k == n*i+j]: i, j and then k."""
    if not isinstance(e, Apply) or not indicates(e) or not 3 <= e.ndim <= MAX_AXES:
        return ()
    shape, guards, accesses = e.params
    if len(guards) != 1 or accesses:
        return ()
    for axis, extent in enumerate(shape):
        for rest in permutations([k for k in range(len(shape)) if k != axis]):
            inner = [shape[k] for k in rest]
            form = index(axis) - merging([index(k) for k in rest], inner)
            if extent_product(inner) == extent and Constraint(form, True) == guards[0]:
                return (*rest, axis)
    return ()


# --- reshape --------------------------------------------------------------------------------------


@public
def reshape(a: object, *shape: Any) -> Expr:
    """The entries in C order in another shape; -1 stands for the extent that is left.

    Extents may be named: ``reshape(X, "m*n")`` of X of shape ("m", "n").

    Raises
    ------
    ShapeError
        Where the numbers of entries differ, or cannot be known to be equal.
    """
    e = as_expr(a)
    target = _target(e, shape[0] if len(shape) == 1 else shape)
    if target == e.shape:
        return e
    found = _without_ones(e)
    wanted = tuple([extent for extent in target if extent != 1])
    if extent_product(found.shape) != extent_product(wanted):
        message = f"reshape of {show_shape(e.shape)} to {show_shape(target)}"
        raise ShapeError(f"{message}: the numbers of entries differ")
    start = 0
    for before, after in _groups(found.shape, wanted):
        found = regrouped(found, start, before, after)
        start += len(after)
    places = [axis for axis, extent in enumerate(target) if extent != 1]
    return einsum([found], [places], range(len(target)), ONE, dict(enumerate(target)))


@public
def ravel(a: object) -> Expr:
    """All entries in C order as a vector."""
    return reshape(a, -1)


@public
def vec(a: object) -> Expr:
    """The columns of a matrix below each other, so that vec(A X B) is kron(B', A) vec(X)."""
    e = as_expr(a)
    if e.ndim != 2:
        raise ShapeError(f"vec takes a matrix, not shape {show_shape(e.shape)}")
    return ravel(e.T)


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
    whole, taken = _form(e.shape), _form(rest)
    found = exactly_divided(whole, taken)
    if found is None:
        raise ShapeError(
            f"reshape of {show_shape(e.shape)}: extents {show_shape((*rest, -1))} do not divide it"
        )
    return extent_from(found)


def _form(shape: Shape) -> Affine:
    return form_of(extent_product(shape))


def _groups(old: Shape, new: Shape) -> list[tuple[Shape, Shape]]:
    """The shortest runs of extents with equal products; all is one run where an extent is 0."""
    if 0 in old or 0 in new:
        return [(old, new)]
    known = {whole: k for k, whole in enumerate(_products(old))}
    groups = []
    start = first = 0
    for k, whole in enumerate(_products(new)):
        if whole in known and known[whole] >= start:
            groups.append((old[start : known[whole] + 1], new[first : k + 1]))
            start, first = known[whole] + 1, k + 1
    return groups


def _products(shape: Shape) -> list[Affine]:
    """The products of the first extents."""
    found = []
    whole = Affine((), 1)
    for extent in shape:
        whole = times(whole, form_of(extent))
        found.append(whole)
    return found


def regrouped(e: Expr, start: int, before: Shape, after: Shape) -> Expr:
    """Axes of these extents, from `start` on, in another shape."""
    if before == after:
        return e
    axes, count = list(range(e.ndim)), len(before)
    order = [*axes[:start], *axes[start + count :], *axes[start : start + count]]
    found = merged(view(e, order), count, after)
    rest = found.ndim - len(after)
    return view(found, [*range(start), *range(rest, found.ndim), *range(start, rest)])


def _without_ones(e: Expr) -> Expr:
    kept = [axis for axis, extent in enumerate(e.shape) if extent != 1]
    return einsum([e], [range(e.ndim)], kept)


# --- Kronecker products ---------------------------------------------------------------------------


@public
def kron(a: object, b: object) -> Expr:
    """The Kronecker product, as NumPy's: axis k has the extent of a's times that of b's."""
    left, right = as_expr(a), as_expr(b)
    if not left.ndim or not right.ndim:
        return multiply(left, right)
    ndim = max(left.ndim, right.ndim)
    pairs = list(zip(_padded(left, ndim), _padded(right, ndim), strict=True))
    one = [2 * axis for axis, (m, _) in enumerate(pairs) if m != 1]
    two = [2 * axis + 1 for axis, (_, n) in enumerate(pairs) if n != 1]
    found = einsum([_without_ones(left), _without_ones(right)], [one, two], sorted(one + two))
    return reshape(found, tuple([extent_product(pair) for pair in pairs]))


def _padded(e: Expr, ndim: int) -> Shape:
    return (*(1,) * (ndim - e.ndim), *e.shape)
