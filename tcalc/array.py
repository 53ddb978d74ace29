"""NumPy's meaning of expressions: conversion, broadcasting, products, sums, views.

Everything here is products and sums; operators with a row of their own live in `tcalc.ops`. Functions
marked `public` are what Python operators, ndarray methods and NumPy calls on expressions resolve to.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping, Sequence
from types import EllipsisType
from typing import Any, TypeVar

import numpy as np

from . import normal
from .errors import Error, ShapeError, TraceError, UnsupportedError
from .expr import Expr, check_shape, const_node, surface
from .extents import ONE, Coef, Extent, Shape, inverse_extent, show_shape
from .normal import bare, filled, numeral, view

F = TypeVar("F", bound=Callable[..., Any])
Axis = int | Sequence[int] | None

#: What NumPy calls differently.
ALIASES = {
    "absolute": "abs",
    "true_divide": "divide",
    "remainder": "mod",
    "amax": "max",
    "amin": "min",
    "conjugate": "positive",
    "bitwise_and": "logical_and",
    "bitwise_or": "logical_or",
    "invert": "logical_not",
}


def public(function: F) -> F:
    """Make a function reachable from operators, methods and NumPy's own functions."""
    surface[function.__name__] = function
    return function


def as_expr(value: object) -> Expr:
    """An expression from an expression, a number or anything NumPy reads as numbers."""
    if isinstance(value, Expr):
        return bare(value)
    if isinstance(value, bool | int | float):
        return numeral(value)
    return const(value)


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
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError("a masked array has no derivative; fill it first")
    if isinstance(value, list | tuple) and any(isinstance(v, Expr) for v in value):
        raise TraceError("a list of expressions is not an array of numbers; use stack")
    array = np.asarray(value)
    if array.dtype.kind in "biu":
        array = array.astype(np.float64)
    if array.dtype.kind != "f":
        raise TypeError(f"constants are real numbers, not {array.dtype} ({value!r:.60})")
    if array.ndim == 0:
        return numeral(float(array))
    return const_node(array.astype(np.float32 if array.dtype.itemsize <= 4 else np.float64))


# --- broadcasting ---------------------------------------------------------------------------------


def broadcast_shapes(*shapes: Shape) -> Shape:
    """NumPy's rule; only a literal extent 1 stretches, names never do."""
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
                raise ShapeError(
                    f"shapes {names} do not broadcast: extents {found} and {extent} "
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
    shape = broadcast_shapes(*[e.shape for e in exprs])
    return [expand(e, shape) for e in exprs]


# --- arithmetic -----------------------------------------------------------------------------------


@public
def add(a: object, b: object) -> Expr:
    return normal.add(broadcast(a, b))


@public
def subtract(a: object, b: object) -> Expr:
    left, right = broadcast(a, b)
    return normal.add([left, negative(right)])


@public
def negative(a: object) -> Expr:
    return normal.scale(as_expr(a), Coef(-1))


@public
def positive(a: object) -> Expr:
    return as_expr(a)


@public
def multiply(a: object, b: object) -> Expr:
    left, right = as_expr(a), as_expr(b)
    for number, other in ((left, right), (right, left)):
        if not number.shape and normal.is_number(number):
            return normal.scale(other, getattr(number, "coef", ONE))
    left, right = broadcast(left, right)
    axes = range(left.ndim)
    return normal.einsum([left, right], [axes, axes], axes)


@public
def square(a: object) -> Expr:
    e = as_expr(a)
    return multiply(e, e)


@public
def matmul(a: object, b: object) -> Expr:
    """`a @ b` as NumPy: 1-D operands are a row on the left, a column on the right; batches broadcast."""
    left, right = as_expr(a), as_expr(b)
    if not left.ndim or not right.ndim:
        raise ShapeError("matmul needs operands with at least one axis; use * for scalars")
    inner = (left.shape[-1], right.shape[max(right.ndim - 2, 0)])
    if inner[0] != inner[1]:
        raise ShapeError(
            f"matmul of shapes {show_shape(left.shape)} and {show_shape(right.shape)}: "
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
    left, right = as_expr(a), as_expr(b)
    if isinstance(axes, int):
        pairs = [(left.ndim - axes + k, k) for k in range(axes)]
    else:
        one, two = ([x] if isinstance(x, int) else list(x) for x in axes)
        pairs = [
            (_axis(i, left.ndim, "tensordot"), _axis(j, right.ndim, "tensordot"))
            for i, j in zip(one, two, strict=True)
        ]
    second = list(range(left.ndim, left.ndim + right.ndim))
    for i, j in pairs:
        if left.shape[i] != right.shape[j]:
            raise ShapeError(
                f"tensordot of shapes {show_shape(left.shape)} and {show_shape(right.shape)}: "
                f"extents {left.shape[i]} and {right.shape[j]} are summed together"
            )
        second[j] = i
    gone = {i for i, _ in pairs}
    out = [k for k in range(left.ndim) if k not in gone]
    out += [k for k in second if k >= left.ndim]
    return normal.einsum([left, right], [range(left.ndim), second], out)


@public
def outer(a: object, b: object) -> Expr:
    """a_i b_j of 1-D operands (operands of more axes are not flattened: ShapeError)."""
    left, right = as_expr(a), as_expr(b)
    if left.ndim > 1 or right.ndim > 1:
        raise ShapeError(
            f"outer takes vectors, not {show_shape(left.shape)} and {show_shape(right.shape)}"
        )
    return tensordot(left, right, 0)


@public
def kron(a: object, b: object) -> Expr:
    left, right = as_expr(a), as_expr(b)
    if left.ndim == 0 or right.ndim == 0:
        return multiply(left, right)
    raise UnsupportedError("kron of arrays merges indices, which expressions do not offer")


@public
def cross(a: object, b: object) -> Expr:
    """The vector product over the last axes, both of extent 3."""
    left, right = broadcast(a, b)
    if not left.ndim or left.shape[-1] != 3:
        raise ShapeError(f"cross needs a last axis of extent 3, not {show_shape(left.shape)}")
    sign = np.zeros((3, 3, 3))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        sign[i, j, k], sign[i, k, j] = 1, -1
    n = left.ndim - 1
    words = [(n, n + 1, n + 2), (*range(n), n + 1), (*range(n), n + 2)]
    return normal.einsum([const(sign), left, right], words, range(n + 1))


# --- sums -----------------------------------------------------------------------------------------


def _axis(axis: object, ndim: int, what: str) -> int:
    if not isinstance(axis, int | np.integer) or not -ndim <= axis < ndim:
        raise ShapeError(f"{what}: axis {axis} is out of range for {ndim} axes")
    return int(axis) % ndim


def chosen_axes(axis: Axis, ndim: int, what: str) -> list[int]:
    """Axes as NumPy's `axis=` names them, sorted."""
    if axis is None:
        return list(range(ndim))
    given = [axis] if isinstance(axis, int | np.integer) else list(axis)
    axes = sorted(_axis(a, ndim, what) for a in given)
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
def sum(a: object, axis: Axis = None, keepdims: bool = False) -> Expr:  # noqa: A001
    e = as_expr(a)
    axes = chosen_axes(axis, e.ndim, "sum")
    rest = [k for k in range(e.ndim) if k not in axes]
    return keep(normal.einsum([e], [range(e.ndim)], rest), axes, keepdims)


@public
def mean(a: object, axis: Axis = None, keepdims: bool = False) -> Expr:
    e = as_expr(a)
    coef = ONE
    for k in chosen_axes(axis, e.ndim, "mean"):
        coef = coef.by(inverse_extent(e.shape[k]))
    return normal.scale(sum(e, axis, keepdims), coef)


@public
def var(a: object, axis: Axis = None, ddof: int = 0, keepdims: bool = False) -> Expr:
    """The variance over axes, as NumPy's: mean of squared deviations (ddof = 0)."""
    if ddof:
        raise UnsupportedError("var and std divide by the number of entries; scale for other ddof")
    e = as_expr(a)
    return mean(square(subtract(e, expand(mean(e, axis, True), e.shape))), axis, keepdims)


# --- views ----------------------------------------------------------------------------------------


@public
def transpose(a: object, axes: Sequence[int] | int | None = None, *more: int) -> Expr:
    e = as_expr(a)
    if isinstance(axes, int):
        axes = (axes, *more)
    perm = list(range(e.ndim))[::-1] if axes is None else [_axis(k, e.ndim, "transpose") for k in axes]
    if sorted(perm) != list(range(e.ndim)):
        raise ShapeError(f"transpose: {axes} is not an order of the {e.ndim} axes")
    return view(e, perm)


@public
def matrix_transpose(a: object) -> Expr:
    e = as_expr(a)
    if e.ndim < 2:
        raise ShapeError("a matrix transpose needs at least two axes")
    return view(e, [*range(e.ndim - 2), e.ndim - 1, e.ndim - 2])


@public
def diagonal(a: object, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Expr:
    e = as_expr(a)
    if offset:
        raise UnsupportedError("only the main diagonal can be read (offset=0)")
    if e.ndim < 2:
        raise ShapeError(f"a diagonal needs two axes, not shape {show_shape(e.shape)}")
    i, j = _axis(axis1, e.ndim, "diagonal"), _axis(axis2, e.ndim, "diagonal")
    if e.shape[i] != e.shape[j]:
        raise ShapeError(
            f"the diagonal of shape {show_shape(e.shape)}: extents {e.shape[i]} and {e.shape[j]} differ"
        )
    word = list(range(e.ndim))
    word[j] = i
    return normal.einsum([e], [word], [k for k in range(e.ndim) if k not in (i, j)] + [i])


@public
def trace(a: object) -> Expr:
    return sum(diagonal(a), axis=-1)


@public
def diag(a: object) -> Expr:
    """The diagonal of a matrix, or the matrix with a vector on its diagonal."""
    e = as_expr(a)
    if e.ndim == 1:
        return normal.einsum([e], [(0,)], (0, 0))
    if e.ndim == 2:
        return diagonal(e)
    raise ShapeError(f"diag takes a vector or a matrix, not shape {show_shape(e.shape)}")


def getitem(a: Expr, key: object) -> Expr:
    """Indexing by `:`, `...` and `None`; other indices are not offered yet by expressions."""
    e = as_expr(a)
    keys = list(key) if isinstance(key, tuple) else [key]
    wanted = builtins.sum(k is not None and not isinstance(k, EllipsisType) for k in keys)
    if wanted > e.ndim:
        raise IndexError(f"{wanted} indices for shape {show_shape(e.shape)}")
    if Ellipsis not in [k for k in keys if isinstance(k, EllipsisType)]:
        keys.append(Ellipsis)
    out: list[int] = []
    extents: dict[int, Extent] = {}
    axis = 0
    for k in keys:
        if k is None:
            fresh = e.ndim + len(extents)
            extents[fresh] = 1
            out.append(fresh)
        elif isinstance(k, EllipsisType):
            out.extend(range(axis, axis + e.ndim - wanted))
            axis += e.ndim - wanted
        elif isinstance(k, slice) and k == slice(None):
            out.append(axis)
            axis += 1
        elif isinstance(k, np.ndarray) and k.dtype == bool:
            raise TypeError("a boolean mask has no fixed shape; write where(mask, a, b)")
        else:
            raise UnsupportedError(f"index {k!r}: expressions are indexed by ':', '...' and None only")
    return normal.einsum([e], [range(e.ndim)], out, ONE, extents)


@public
def reshape(a: object, *shape: Any) -> Expr:
    """Insert or drop axes of extent 1; merging or splitting indices is not offered."""
    e = as_expr(a)
    target = check_shape(shape[0] if len(shape) == 1 else shape, "reshape")
    if target == e.shape:
        return e
    if [x for x in target if x != 1] != [x for x in e.shape if x != 1]:
        raise UnsupportedError(
            f"reshape of {show_shape(e.shape)} to {show_shape(target)} merges or splits indices"
        )
    rest = [k for k, x in enumerate(e.shape) if x != 1]
    core = normal.einsum([e], [range(e.ndim)], rest)
    places = [k for k, x in enumerate(target) if x != 1]
    return normal.einsum([core], [places], range(len(target)), ONE, dict(enumerate(target)))


@public
def ravel(a: object) -> Expr:
    e = as_expr(a)
    if e.ndim == 1:
        return e
    raise UnsupportedError("ravel merges indices, which expressions do not offer")


# --- constructors ---------------------------------------------------------------------------------


@public
def eye(n: Extent) -> Expr:
    """The identity: a unit tensor, never stored."""
    (extent,) = check_shape(n, "eye")
    return normal.einsum([], [], (0, 0), ONE, {0: extent})


@public
def zeros(shape: Extent | Sequence[Extent] = ()) -> Expr:
    return filled(Coef(0), check_shape(shape, "zeros"))


@public
def ones(shape: Extent | Sequence[Extent] = ()) -> Expr:
    return filled(ONE, check_shape(shape, "ones"))


@public
def einsum(spec: str, *operands: object, sizes: Mapping[str, Extent] | None = None) -> Expr:
    """A product in einsum form; unlike NumPy's, output letters may repeat (a unit tensor).

    Parameters
    ----------
    spec : str
        Such as ``"ij,jk->ik"``; ``->`` may be left out as in NumPy. ``"i->ii"`` embeds a diagonal.
    *operands : expressions or arrays
    sizes : mapping, optional
        Extents of output letters that no operand has.

    Raises
    ------
    ShapeError
        Where one letter has two extents, or letters and axes differ in number.
    """
    exprs = [as_expr(a) for a in operands]
    text = spec.replace(" ", "")
    left, arrow, right = text.partition("->")
    words = left.split(",") if left or exprs else []
    letters = [c for word in words for c in word]
    if not all(c.isalpha() for c in [*letters, *right]):
        raise Error(f"einsum {spec!r}: indices are letters, with ',' and one '->' between them")
    if not arrow:
        right = "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    if len(words) != len(exprs):
        raise Error(f"einsum {spec!r}: {len(words)} index groups for {len(exprs)} operands")
    extents: dict[str, Extent] = {}
    for k, (word, e) in enumerate(zip(words, exprs, strict=True)):
        if len(word) != e.ndim:
            raise ShapeError(
                f"einsum {spec!r}: {word!r} does not fit operand {k} of shape {show_shape(e.shape)}"
            )
        for c, extent in zip(word, e.shape, strict=True):
            if extents.setdefault(c, extent) != extent:
                raise ShapeError(
                    f"einsum {spec!r}: index {c} has extent {extents[c]} and, "
                    f"in operand {k}, extent {extent}"
                )
    for c in right:
        if c not in extents:
            if not sizes or c not in sizes:
                raise ShapeError(f"einsum {spec!r}: no operand has index {c}; give sizes={{{c!r}: …}}")
            extents[c] = check_shape(sizes[c], f"index {c}")[0]
    ids = {c: k for k, c in enumerate(sorted(extents))}
    return normal.einsum(
        exprs,
        [[ids[c] for c in word] for word in words],
        [ids[c] for c in right],
        ONE,
        {ids[c]: extent for c, extent in extents.items()},
    )


# --- NumPy's protocols ----------------------------------------------------------------------------

def array_ufunc(self: Expr, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
    name = ALIASES.get(ufunc.__name__, ufunc.__name__)
    if method != "__call__" or name not in surface or options:
        raise TraceError(f"np.{ufunc.__name__} ({method}) does not take expressions")
    return surface[name](*inputs)


def array_function(self: Expr, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
    name = ALIASES.get(function.__name__, function.__name__)
    if name not in surface:
        raise TraceError(f"np.{function.__name__} does not take expressions")
    return surface[name](*args, **kwargs)


def exported(namespace: Mapping[str, Any]) -> list[str]:
    """The names under which a module's public functions stand in it: its `__all__`."""
    return sorted(name for name, function in surface.items() if namespace.get(name) is function)


__all__ = exported(globals())
surface.update(getitem=getitem, array_ufunc=array_ufunc, array_function=array_function)
