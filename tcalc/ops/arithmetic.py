"""NumPy's meaning of expressions: conversion, broadcasting, products, sums, views.

Everything here is products and sums; operators with a row of their own live in `tcalc.ops`.
Functions marked `public` are what Python operators, ndarray methods and NumPy calls on expressions
resolve to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from ..graph import normal
from ..graph.arraylike import surface
from ..graph.captures import captured
from ..graph.extents import (
    ONE,
    Coef,
    Extent,
    Shape,
    extent_from,
    extent_product,
    form_of,
    inverse_extent,
    number,
    show_shape,
)
from ..graph.nodes import Derivative, Expr, check_declarations
from ..graph.normal import bare
from ..graph.products import is_number, numeral
from ..graph.variables import by_diagonal, check_shape, const_node, is_masked
from ..support.errors import ShapeError, TraceError, UnsupportedError
from ..support.excerpts import shortened
from ..support.given import array_of, as_numbers
from ..support.namespaces import is_sparse
from ..support.whole_numbers import clipped_repr
from .docstrings import documented
from .operands import shown_operands

__all__ = [
    "add",
    "broadcast_to",
    "const",
    "dot",
    "matmul",
    "mean",
    "multiply",
    "negative",
    "positive",
    "square",
    "subtract",
    "sum",
    "tensordot",
]

F = TypeVar("F", bound=Callable[..., Any])
Axis = int | Sequence[int] | None


def public(function: F) -> F:
    """Make a function reachable from operators, methods and NumPy's own functions."""
    documented(function)
    surface[function.__name__] = function
    return function


def as_expr(value: object) -> Expr:
    """An expression from an expression, a number or anything NumPy reads as numbers."""
    if isinstance(value, Expr):
        return bare(value)
    if isinstance(value, bool | int | float):
        return numeral(value)
    return const(value)


def as_factor(value: object) -> Expr:
    """As `as_expr`; a derivative as its root, as multiples of derivatives are derivatives."""
    return value if isinstance(value, Derivative) else as_expr(value)


@public
def const(value: object) -> Expr:
    """An array of numbers as an expression.

    Parameters
    ----------
    value : array_like
        Real numbers; integers and booleans become float64.

    Raises
    ------
    TypeError
        For complex, object, string and masked arrays.
    """
    if isinstance(value, Expr):
        return bare(value)
    if isinstance(value, str):
        text = clipped_repr(value)
        raise TypeError(
            f"{text} is text, no array of numbers; parse({text}) reads expressions, and "
            f"parse('extent(n)') is the number of entries along a dimension n"
        )
    if is_masked(value):
        raise TypeError("a masked array has no derivative; fill it first")
    if is_sparse(value):
        raise TypeError(
            "a sparse matrix is no constant: give it to the function as an argument, or write a "
            "variable, of which it is the data"
        )
    if isinstance(value, list | tuple) and any(isinstance(v, Expr) for v in value):
        raise TraceError("a list of expressions is not an array of numbers; use stack")
    try:
        array = array_of(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"constants are arrays of real numbers: {error}") from None
    if array.dtype.kind in "biu":  # a mask has a say in no working dtype (`is_exact`)
        array = array.astype(np.float32 if array.dtype.kind == "b" else np.float64)
    if array.dtype.kind != "f":
        shown = shortened(clipped_repr(value), 60)
        message = f"constants are real numbers, not {array.dtype} ({shown}){as_numbers(array)}"
        raise TypeError(message)
    if array.ndim == 0:
        return numeral(float(array))
    array = array.astype(np.float32 if array.dtype.itemsize <= 4 else np.float64, copy=False)
    held = captured(value, array)
    return by_diagonal(array, const_node) if held is None else held


# --- broadcasting ---------------------------------------------------------------------------------


def broadcast_shapes(*shapes: Shape, operands: Sequence[Expr] = ()) -> Shape:
    """NumPy's rule; only a literal extent 1 stretches, names never do.

    Raises
    ------
    ShapeError
        Where extents differ. `operands` are those that have the shapes, for the message.
    """
    ndim = max(map(len, shapes))
    result: list[Extent] = []
    for axis in range(ndim):
        found: Extent = 1
        for shape in shapes:
            place = axis - ndim + len(shape)
            extent = shape[place] if place >= 0 else 1
            if extent == 1 and isinstance(extent, int):
                continue
            if found != 1 and found != extent:
                names = " and ".join(show_shape(s) for s in shapes)
                told = shown_operands(*operands) if operands else f"shapes {names}"
                raise ShapeError(
                    f"{told} do not broadcast: extents {found} and {extent} "
                    f"at index {axis - ndim} differ"
                )
            found = extent
        result.append(found)
    return tuple(result)


def expand(e: Expr, shape: Shape) -> Expr:
    """e broadcast to a shape."""
    if e.shape == shape:
        return e
    skip = len(shape) - e.ndim
    word = []
    for axis, extent in enumerate(e.shape):
        stretched = extent == 1 and shape[axis + skip] != 1
        word.append(len(shape) + axis if stretched else axis + skip)
    return normal.einsum([e], [word], range(len(shape)), ONE, dict(enumerate(shape)))


@public
def broadcast_to(a: object, shape: Extent | Sequence[Extent]) -> Expr:
    """An array repeated to a shape, as `numpy.broadcast_to`; it is never stored."""
    e, target = as_expr(a), check_shape(shape, "broadcast_to")
    if broadcast_shapes(e.shape, target) != target:
        raise ShapeError(f"shape {show_shape(e.shape)} does not broadcast to {show_shape(target)}")
    return expand(e, target)


def broadcast(*operands: object) -> list[Expr]:
    """Operands as expressions of one shape."""
    exprs = [as_expr(a) for a in operands]
    first = exprs[0].shape
    if all(e.shape == first for e in exprs):
        return exprs
    check_declarations(exprs)
    shape = broadcast_shapes(*[e.shape for e in exprs], operands=exprs)
    return [expand(e, shape) for e in exprs]


# --- arithmetic -----------------------------------------------------------------------------------


@public
def add(a: object, b: object) -> Expr:
    """a + b of every entry, with NumPy's broadcasting."""
    return normal.add(broadcast(a, b))


@public
def subtract(a: object, b: object) -> Expr:
    """a - b of every entry, with NumPy's broadcasting."""
    left, right = broadcast(a, b)
    return normal.add([left, negative(right)])


@public
def negative(a: object) -> Expr:
    """-a of every entry."""
    return normal.scaled(as_factor(a), Coef(-1))


@public
def positive(a: object) -> Expr:
    """The operand as it is, as an expression."""
    return as_expr(a)


@public
def multiply(a: object, b: object) -> Expr:
    """a * b of every entry, with NumPy's broadcasting."""
    left, right = as_factor(a), as_factor(b)
    for factor, other in ((left, right), (right, left)):
        if not factor.shape and is_number(factor):
            return normal.scaled(other, getattr(factor, "coef", ONE))
    left, right = broadcast(left, right)
    axes = range(left.ndim)
    return normal.einsum([left, right], [axes, axes], axes)


@public
def square(a: object) -> Expr:
    """a * a of every entry."""
    e = as_expr(a)
    return multiply(e, e)


@public
def matmul(a: object, b: object) -> Expr:
    """`a @ b` as NumPy: vectors are a row on the left, a column on the right; batches broadcast."""
    left, right = as_expr(a), as_expr(b)
    if not left.ndim or not right.ndim:
        raise ShapeError("matmul needs operands with at least one axis; use * for scalars")
    check_declarations([left, right])
    inner = (left.shape[-1], right.shape[max(right.ndim - 2, 0)])
    if inner[0] != inner[1]:
        raise ShapeError(
            f"matmul of {shown_operands(left, right)}: "
            f"the summed index has extent {inner[0]} on the left and {inner[1]} on the right"
        )
    batch = broadcast_shapes(left.shape[:-2], right.shape[:-2])
    n = len(batch)
    row, column = (n,) if left.ndim > 1 else (), (n + 1,) if right.ndim > 1 else ()
    left = expand(left, (*batch, *left.shape[-2:])) if left.ndim > 1 else left
    right = expand(right, (*batch, *right.shape[-2:])) if right.ndim > 1 else right
    first = (*range(n), *row, n + 2) if row else (n + 2,)
    second = (*range(n), n + 2, *column) if column else (n + 2,)
    return normal.einsum([left, right], [first, second], (*range(n), *row, *column))


@public
def dot(a: object, b: object) -> Expr:
    """As NumPy: sums the last axis of a with the last but one of b."""
    left, right = as_expr(a), as_expr(b)
    if not left.ndim or not right.ndim:
        return multiply(left, right)
    return tensordot(left, right, ([left.ndim - 1], [max(right.ndim - 2, 0)]))


@public
def tensordot(a: object, b: object, axes: int | Sequence[Any] = 2) -> Expr:
    """Sums over pairs of axes of the outer product, as `numpy.tensordot`.

    `axes` is how many of the last ones of a meet the first ones of b, or two lists of axes.
    """
    left, right = as_expr(a), as_expr(b)
    pairs = _summed_axes(axes, left.ndim, right.ndim)
    second = list(range(left.ndim, left.ndim + right.ndim))
    for i, j in pairs:
        if left.shape[i] != right.shape[j]:
            raise ShapeError(
                f"tensordot of {shown_operands(left, right)}: "
                f"extents {left.shape[i]} and {right.shape[j]} are summed together"
            )
        second[j] = i
    gone = {i for i, _ in pairs}
    out = [k for k in range(left.ndim) if k not in gone]
    out += [k for k in second if k >= left.ndim]
    return normal.einsum([left, right], [range(left.ndim), second], out)


def _summed_axes(axes: int | Sequence[Any], left: int, right: int) -> list[tuple[int, int]]:
    """The pairs of axes that tensordot sums, of operands with `left` and `right` axes."""
    if isinstance(axes, int | np.integer):
        if not 0 <= axes <= min(left, right):
            raise ShapeError(f"tensordot: {axes} axes cannot be summed of {left} and {right}")
        return [(left - int(axes) + k, k) for k in range(axes)]
    both = [[x] if isinstance(x, int | np.integer) else list(x) for x in axes]
    if len(both) != 2 or len(both[0]) != len(both[1]):
        raise ShapeError(f"tensordot: axes {axes} are not two lists of one length")
    one = [check_axis(i, left, "tensordot") for i in both[0]]
    two = [check_axis(j, right, "tensordot") for j in both[1]]
    if len(set(one)) < len(one) or len(set(two)) < len(two):
        raise ShapeError(f"tensordot: an axis is named twice in {axes}")
    return list(zip(one, two, strict=True))


# --- sums -----------------------------------------------------------------------------------------


def check_axis(axis: object, ndim: int, what: str) -> int:
    if not isinstance(axis, int | np.integer) or not -ndim <= axis < ndim:
        raise ShapeError(f"{what}: axis {axis} is out of range for {ndim} axes")
    return int(axis) % ndim


def chosen_axes(axis: Axis, ndim: int, what: str) -> list[int]:
    """Axes as NumPy's `axis=` names them, sorted."""
    return list(range(ndim)) if axis is None else sorted(listed_axes(axis, ndim, what))


def listed_axes(axis: int | Sequence[int], ndim: int, what: str) -> list[int]:
    """One axis or several, in the order given; each once."""
    given = list(axis) if isinstance(axis, Sequence) else [axis]
    axes = [check_axis(a, ndim, what) for a in given]
    if len(set(axes)) < len(axes):
        raise ShapeError(f"{what}: axis {axis} is named twice")
    return axes


def keep(e: Expr, axes: Sequence[int], keepdims: bool) -> Expr:
    """Put axes of extent 1 back where a reduction took axes away."""
    if not keepdims:
        return e
    ndim = e.ndim + len(axes)
    rest = [axis for axis in range(ndim) if axis not in axes]
    return normal.einsum([e], [rest], range(ndim), ONE, dict.fromkeys(axes, 1))


@public
def sum(a: object, axis: Axis = None, keepdims: bool = False) -> Expr:
    """The sum over axes, of all entries by default."""
    e = as_expr(a)
    axes = chosen_axes(axis, e.ndim, "sum")
    rest = [k for k in range(e.ndim) if k not in axes]
    return keep(normal.einsum([e], [range(e.ndim)], rest), axes, keepdims)


@public
def mean(a: object, axis: Axis = None, keepdims: bool = False) -> Expr:
    """The mean over axes, of all entries by default."""
    e = as_expr(a)
    coef = ONE
    for k in chosen_axes(axis, e.ndim, "mean"):
        coef = coef.by(inverse_extent(e.shape[k]))
    return normal.scale(sum(e, axis, keepdims), coef)


@public
def var(a: object, axis: Axis = None, ddof: float = 0, keepdims: bool = False) -> Expr:
    """The variance over axes, as NumPy's: mean of squared deviations (ddof = 0)."""
    e = as_expr(a)
    axes = chosen_axes(axis, e.ndim, "var")
    squares = square(subtract(e, expand(mean(e, axes, True), e.shape)))
    if not ddof:
        return mean(squares, axes, keepdims)
    extents = [e.shape[k] for k in axes]
    return normal.scale(sum(squares, axes, keepdims), inverse_count(extents, ddof))


def inverse_count(extents: list[Extent], ddof: float) -> Coef:
    """Division by the number of entries less `ddof`."""
    count = extent_product(extents)
    if isinstance(count, int):
        return number(1 / (count - ddof)) if count != ddof else Coef(math.nan)
    if ddof != int(ddof):
        raise UnsupportedError(f"var and std with ddof={ddof} over {count} entries")
    return inverse_extent(extent_from(form_of(count) - int(ddof)))
