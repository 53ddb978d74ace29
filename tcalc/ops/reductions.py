"""Reductions with a row of their own: max, min, prod, logsumexp, norms, and cumulative sums.

Ties of max and min split the derivative evenly; the derivative of a norm at 0 is 0.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..graph.applications import application, apply
from ..graph.extents import ONE, Extent, Shape
from ..graph.nodes import Expr
from ..graph.normal import einsum, view
from ..graph.operators import Kernels, Meaning, Op
from ..graph.orientation import inverse_permutation
from ..graph.spelling import Spelling
from ..graph.variables import check_extent
from ..support.errors import UnsupportedError
from . import arithmetic
from .arithmetic import Axis, as_expr, chosen_axes, keep, listed_axes, public
from .choices import choose
from .elementwise import (
    abs,
    exp,
    less,
    log,
    not_equal,
    power,
    reciprocal0,
    sign,
    sqrt,
    where,
)
from .elementwise_row import NONNEGATIVE, UNIT
from .missing import sees_infinity
from .views import ones, zeros

__all__ = [
    "arange",
    "hardmax",
    "hardmin",
    "log_softmax",
    "logsumexp",
    "max",
    "min",
    "prod",
    "softmax",
    "std",
    "weighted_logsumexp",
]


def along(y: Expr, x: Expr) -> Expr:
    """y repeated over the last axes of x."""
    return einsum([y], [range(y.ndim)], range(x.ndim), ONE, dict(enumerate(x.shape)))


def _axes(k: int) -> tuple[int, ...]:
    return tuple(range(-k, 0))


def _same_shape(params: tuple[Any, ...], shape: Shape) -> Shape:
    return shape


def _shares(name: str, largest: bool) -> Op:
    """What the derivative of an extremum multiplies: 1 over how many entries tie, and 0 elsewhere.

    One row reads the entries once. Compared with an extremum that another node finds, which may be
    computed in another order, none of them need be equal to it.
    """

    def compute(xp: Any, params: tuple[Any, ...], x: Any) -> Any:
        axes = _axes(params[0])
        top = x.max(axis=axes, keepdims=True) if largest else x.min(axis=axes, keepdims=True)
        hit = xp.where(x == top, xp.ones_like(x), xp.zeros_like(x))
        return hit / hit.sum(axis=axes, keepdims=True)

    return Op(
        name, (-1,),
        Meaning((None,), shape=_same_shape, domain=((0.1, 2.0),), range=UNIT),
        Kernels(compute, flops=3),
        Spelling(rf"\operatorname{{{{{name}}}}}({{0}})"),
    )  # fmt: skip


def _ties(row: Op) -> Any:
    return lambda x, y: apply(row, x, params=(x.ndim - y.ndim,))


def _without_each(x: Expr, y: Expr) -> Expr:
    """For every entry the product of the others: prod over j of where(j == i, 1, x_j)."""
    batch, core = tuple(range(y.ndim)), tuple(range(y.ndim, x.ndim))
    other = tuple(range(x.ndim, x.ndim + len(core)))
    extents: dict[int, Extent] = dict(enumerate((*x.shape, *x.shape[y.ndim :])))
    others = einsum([x], [batch + other], batch + core + other, ONE, extents)
    same = einsum([], [], batch + core + core, ONE, extents)
    return apply(PROD, where(same, 1, others), params=(len(core),))


def _reduction(
    name: str, partial: Any, kernels: Any, latex: str, flops: float = 1.0, **meaning: Any
) -> Op:
    return Op(
        name, (-1,),
        Meaning((partial,), domain=((0.1, 2.0),), **meaning),
        kernels if isinstance(kernels, Kernels) else Kernels(kernels, flops=flops),
        Spelling(latex),
    )  # fmt: skip


def _lse(xp: Any, params: tuple[Any, ...], x: Any) -> Any:
    axes = _axes(params[0])
    top = x.max(axis=axes, keepdims=True) if x.size else xp.zeros((1,) * x.ndim, x.dtype)
    top = xp.where(xp.isfinite(top), top, xp.zeros_like(top))
    total = xp.log(xp.exp(x - top).sum(axis=axes))
    return total + top.reshape(total.shape) if x.size else total


def _derived_lse(x: Expr, y: Expr) -> Expr:
    """The shares of exponentials; 0 where all of them are, of a row that is masked out."""
    total = choose(less(-math.inf, y), y, zeros(y.shape)) if sees_infinity(x) else y
    return exp(x - along(total, x))


def _weighted_lse(xp: Any, params: tuple[Any, ...], x: Any, b: Any) -> Any:
    """Where a weight is 0, its exponent counts for nothing, however large it is."""
    axes = _axes(params[0])
    if not x.size:
        return _lse(xp, params, x)
    x = xp.where(b == 0, -xp.ones_like(x) * xp.inf, x)
    top = x.max(axis=axes, keepdims=True)
    top = xp.where(xp.isfinite(top), top, xp.zeros_like(top))
    total = xp.log((b * xp.exp(x - top)).sum(axis=axes))
    return total + top.reshape(total.shape)


def _root_of_squares(xp: Any, axes: tuple[int, ...], x: Any) -> Any:
    return xp.sqrt((x * x).sum(axis=axes))


def _scaled_norm(xp: Any, params: tuple[Any, ...], x: Any) -> Any:
    """The norm of x over a power of two near its largest entry, times that power: no square of an
    entry that counts leaves the range of the format (Blue 1978).
    """
    axes = _axes(params[0])
    if not x.size:
        return _root_of_squares(xp, axes, x)
    top = xp.abs(x).max(axis=axes, keepdims=True)
    scale = xp.where(xp.isfinite(top) & (top > 0), top, xp.ones_like(top))
    scale = xp.exp2(xp.clip(xp.floor(xp.log2(scale)), *_exponents(xp, x)))
    found = _root_of_squares(xp, axes, x / scale)
    return found * scale.reshape(found.shape)


def _exponents(xp: Any, x: Any) -> tuple[int, int]:
    """Powers of two by which any number may be divided."""
    kind = xp.finfo(x.dtype) if x.dtype.kind == "f" else xp.finfo(float)
    return int(kind.minexp), int(kind.maxexp) - 1


def _norm(xp: Any, params: tuple[Any, ...], x: Any) -> Any:
    """By the plain formula, and by the scaled one where squares may leave the range."""
    with np.errstate(over="ignore", under="ignore"):
        found = _root_of_squares(np, _axes(params[0]), x)
        kind = np.finfo(found.dtype)
        # Below this, entries whose squares underflow have more than rounding's part of the sum.
        safe = (found > kind.tiny**0.5 / kind.eps) & (found < np.inf)
        return found if np.all(safe) else _scaled_norm(np, params, x)


def _norm_of_order(xp: Any, params: tuple[Any, ...], x: Any) -> Any:
    """Powers of entries over the largest one, none of which leaves the range of the format."""
    axes, order = _axes(params[0]), params[1]
    sizes = xp.abs(x)
    top = sizes.max(axis=axes, keepdims=True) if x.size else xp.ones((1,) * x.ndim, x.dtype)
    top = xp.where(xp.isfinite(top) & (top > 0), top, xp.ones_like(top))
    found = ((sizes / top) ** order).sum(axis=axes) ** (1 / order)
    return found * top.reshape(found.shape) if x.size else found


def _derived_norm(x: Expr, y: Expr) -> Expr:
    """Powers of the entries' parts of the norm; 0 at 0."""
    order = application(y).params[1]
    parts = x * along(reciprocal0(y), x)
    return power(parts, order - 1) if order % 2 == 0 else sign(x) * power(abs(parts), order - 1)


HARDMAX, HARDMIN = _shares("hardmax", True), _shares("hardmin", False)
MAX = _reduction(
    "max", _ties(HARDMAX), lambda xp, p, x: x.max(axis=_axes(p[0])), r"\max({0})",
    positive_of=(0,),
)  # fmt: skip
MIN = _reduction(
    "min", _ties(HARDMIN), lambda xp, p, x: x.min(axis=_axes(p[0])), r"\min({0})",
    positive_of=(0,),
)  # fmt: skip
PROD = _reduction(
    "prod", _without_each, lambda xp, p, x: x.prod(axis=_axes(p[0])), r"\prod({0})",
    positive_of=(0,),
)  # fmt: skip
LOGSUMEXP = _reduction(
    "logsumexp", _derived_lse, _lse,
    r"\operatorname{{logsumexp}}({0})", flops=12,
)  # fmt: skip
WEIGHTED_LOGSUMEXP = Op(
    "weighted_logsumexp", (-1, -1),
    Meaning(
        (lambda x, b, y: b * exp(x - along(y, x)), lambda x, b, y: exp(x - along(y, x))),
        domain=((-2.0, 2.0), (0.1, 2.0)),
    ),
    Kernels(_weighted_lse, flops=14),
    Spelling(r"\operatorname{{logsumexp}}({0}; {1})"),
)  # fmt: skip
NORM2 = _reduction(
    "norm2", lambda x, y: x * along(reciprocal0(y), x),
    Kernels(_norm, host=True, portable=_scaled_norm, flops=2),
    r"\left\|{0}\right\|", range=NONNEGATIVE,
)  # fmt: skip

#: Of an order that has no form of its own, which is its last parameter.
NORM = Op(
    "norm", (-1,),
    Meaning((_derived_norm,), range=NONNEGATIVE),
    Kernels(_norm_of_order, flops=12),
    Spelling(r"\left\|{0}\right\|"), params=((1, 3), (1, 2.5)),
)  # fmt: skip


def _reduce(row: Op, a: object, axis: Axis, keepdims: bool) -> Expr:
    """Apply a reduction row over chosen axes, moved behind the others."""
    e = as_expr(a)
    axes = chosen_axes(axis, e.ndim, row.name)
    rest = [k for k in range(e.ndim) if k not in axes]
    if not axes:
        return e
    return keep(apply(row, view(e, rest + axes), params=(len(axes),)), axes, keepdims)


@public
def max(a: object, axis: Axis = None, keepdims: bool = False) -> Expr:
    """The largest entry over axes; entries that tie share its derivative evenly."""
    return _reduce(MAX, a, axis, keepdims)


@public
def min(a: object, axis: Axis = None, keepdims: bool = False) -> Expr:
    """The smallest entry over axes; entries that tie share its derivative evenly."""
    return _reduce(MIN, a, axis, keepdims)


def _shared(row: Op, a: object, axis: Axis) -> Expr:
    """Apply a row of shares along chosen axes."""
    e = as_expr(a)
    axes = chosen_axes(axis, e.ndim, row.name)
    order = [k for k in range(e.ndim) if k not in axes] + axes
    found = apply(row, view(e, order), params=(len(axes),)) if axes else ones(e.shape)
    return view(found, inverse_permutation(order))


@public
def hardmax(a: object, axis: Axis = None) -> Expr:
    """1 at the largest entry over axes and 0 elsewhere.

    Entries that tie share the 1 evenly: this is the derivative of `max`, and what `softmax` of
    ``a / t`` tends to for small t.
    """
    return _shared(HARDMAX, a, axis)


@public
def hardmin(a: object, axis: Axis = None) -> Expr:
    """1 at the smallest entry over axes and 0 elsewhere, as `hardmax`."""
    return _shared(HARDMIN, a, axis)


@public
def prod(a: object, axis: Axis = None, keepdims: bool = False) -> Expr:
    """The product over axes; its derivative is right with zeros among the entries."""
    return _reduce(PROD, a, axis, keepdims)


@public
def logsumexp(a: object, axis: Axis = None, keepdims: bool = False) -> Expr:
    """log(sum(exp(a))) over axes, without overflow."""
    return _reduce(LOGSUMEXP, a, axis, keepdims)


@public
def weighted_logsumexp(a: object, b: object, axis: Axis = None, keepdims: bool = False) -> Expr:
    """log(sum(b * exp(a))) with weights of any sign; nan where the sum is negative."""
    exponent, weight = arithmetic.broadcast(a, b)
    axes = chosen_axes(axis, exponent.ndim, WEIGHTED_LOGSUMEXP.name)
    if not axes:
        return exponent + log(weight)
    order = [k for k in range(exponent.ndim) if k not in axes] + axes
    found = apply(
        WEIGHTED_LOGSUMEXP, view(exponent, order), view(weight, order), params=(len(axes),)
    )
    return keep(found, axes, keepdims)


@public
def log_softmax(a: object, axis: Axis = -1) -> Expr:
    """a - logsumexp(a), by default over the last axis."""
    return _log_shares(as_expr(a), axis, "log_softmax")


@public
def softmax(a: object, axis: Axis = -1) -> Expr:
    """exp(a - logsumexp(a)), by default over the last axis."""
    return exp(_log_shares(as_expr(a), axis, "softmax"))


def _log_shares(e: Expr, axis: Axis, what: str) -> Expr:
    axes = chosen_axes(axis, e.ndim, what)
    return e - arithmetic.expand(logsumexp(e, axes, keepdims=True), e.shape)


@public
def std(a: object, axis: Axis = None, ddof: float = 0, keepdims: bool = False) -> Expr:
    """The standard deviation over axes: the square root of `numpy.var`."""
    e = as_expr(a)
    return sqrt(arithmetic.var(e, chosen_axes(axis, e.ndim, "std"), ddof, keepdims))


def norm(a: object, ord: int | float | str | None = None, axis: Axis = None) -> Expr:
    """Vector norms 1, 2, inf and matrix norms "fro" (the default), 1, inf, as NumPy's."""
    e = as_expr(a)
    axes = chosen_axes(axis, e.ndim, "norm")
    if not axes:
        return abs(e)
    if ord in (None, "fro") or (ord == 2 and len(axes) == 1):
        return _reduce(NORM2, e, axes, False)
    largest = ord == float("inf")
    if len(axes) == 1 and (ord == 1 or largest):
        return max(abs(e), axes) if largest else arithmetic.sum(abs(e), axes)
    if len(axes) == 2 and (ord == 1 or largest):
        rows, columns = axes if axis is None else listed_axes(axis, e.ndim, "norm")
        summed, other = (columns, rows) if largest else (rows, columns)
        return max(arithmetic.sum(abs(e), summed), other - (other > summed))
    if len(axes) == 1 and isinstance(ord, int | float | np.integer | np.floating):
        return _norm_by_powers(e, int(ord) if float(ord).is_integer() else float(ord), axes)
    raise UnsupportedError(
        f"norm of order {ord!r} over {len(axes)} axes is not offered; over one axis any number is, "
        "over two 'fro', 'nuc', 1, 2 and inf"
    )


def _norm_by_powers(e: Expr, ord: int | float, axes: list[int]) -> Expr:
    if ord in (0, -math.inf):
        return min(abs(e), axes) if ord else arithmetic.sum(not_equal(e, 0), axes)
    rest = [k for k in range(e.ndim) if k not in axes]
    return apply(NORM, view(e, rest + axes), params=(len(axes), ord))


IOTA = Op(
    "iota", (),
    Meaning((), shape=lambda params: (params[0],)),
    Kernels(lambda xp, params: xp.arange(params[0])),
    Spelling(r"\operatorname{{iota}}"),
    params=((3,), ("n",)),
)  # fmt: skip


@public
def arange(n: Extent) -> Expr:
    """0, 1, … n - 1 as a vector."""
    return apply(IOTA, params=(check_extent(n, "the extent of arange"),))
