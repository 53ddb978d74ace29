"""Averages and counts over axes, weighted, or without what is nan, under NumPy's names."""

from __future__ import annotations

from collections.abc import Callable

from ..graph.extents import show_shape
from ..graph.nodes import Expr
from ..graph.normal import scale
from ..support.errors import ShapeError
from .arithmetic import (
    Axis,
    as_expr,
    broadcast,
    chosen_axes,
    expand,
    inverse_count,
    matmul,
    mean,
    multiply,
    public,
    subtract,
    sum,
)
from .elementwise import divide, equal, isnan, less, logical_not, sqrt, truth, where
from .indexing import getitem
from .joining import concatenate
from .reductions import max, min

__all__ = [
    "all",
    "any",
    "average",
    "corrcoef",
    "count_nonzero",
    "cov",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanstd",
    "nansum",
    "nanvar",
]


@public
def all(a: object, axis: Axis = None, keepdims: bool = False) -> Expr:
    """1 where all entries over axes differ from 0, else 0; 1 where there are none."""
    return equal(sum(logical_not(as_expr(a)), axis, keepdims), 0)


@public
def any(a: object, axis: Axis = None, keepdims: bool = False) -> Expr:
    """1 where an entry over axes differs from 0, else 0, as where there are none."""
    return less(0, count_nonzero(a, axis, keepdims))


@public
def count_nonzero(a: object, axis: Axis = None, keepdims: bool = False) -> Expr:
    """How many entries over axes differ from 0."""
    return sum(truth(as_expr(a)), axis, keepdims)


@public
def average(a: object, axis: Axis = None, weights: object = None, keepdims: bool = False) -> Expr:
    """The mean over axes, weighted, as `numpy.average`; weights of one axis may be a vector."""
    e = as_expr(a)
    if weights is None:
        return mean(e, axis, keepdims)
    w = as_expr(weights)
    axes = chosen_axes(axis, e.ndim, "average")
    if w.shape != e.shape:
        if w.shape != tuple([e.shape[k] for k in axes]):
            raise ShapeError(
                f"average: weights of shape {show_shape(w.shape)} for {show_shape(e.shape)}"
            )
        w = getitem(w, tuple([slice(None) if k in axes else None for k in range(e.ndim)]))
    e, w = broadcast(e, w)
    return divide(sum(multiply(e, w), axis, keepdims), sum(w, axis, keepdims))


# --- without nan ----------------------------------------------------------------------------------


def _without_nan(reduce: Callable[..., Expr], instead: float) -> Callable[..., Expr]:
    def reduced(a: object, axis: Axis = None, keepdims: bool = False) -> Expr:
        e = as_expr(a)
        return reduce(where(isnan(e), instead, e), axis, keepdims)

    return reduced


_INFINITY = float("inf")


@public
def nansum(a: object, axis: Axis = None, keepdims: bool = False) -> Expr:
    """The sum of the entries that are not nan."""
    return _without_nan(sum, 0.0)(a, axis, keepdims)


@public
def nanmean(a: object, axis: Axis = None, keepdims: bool = False) -> Expr:
    """The mean of the entries that are not nan."""
    present = sum(logical_not(isnan(as_expr(a))), axis, keepdims)
    return divide(nansum(a, axis, keepdims), present)


@public
def nanvar(a: object, axis: Axis = None, ddof: float = 0, keepdims: bool = False) -> Expr:
    """The variance of the entries that are not nan."""
    e = as_expr(a)
    present = logical_not(isnan(e))
    from_mean = where(present, subtract(e, nanmean(e, axis, keepdims=True)), 0.0)
    count = subtract(sum(present, axis, keepdims), ddof)
    found = divide(sum(multiply(from_mean, from_mean), axis, keepdims), count)
    return where(less(0, count), found, float("nan"))


@public
def nanstd(a: object, axis: Axis = None, ddof: float = 0, keepdims: bool = False) -> Expr:
    """The standard deviation of the entries that are not nan."""
    return sqrt(nanvar(a, axis, ddof, keepdims))


@public
def nanmax(a: object, axis: Axis = None, keepdims: bool = False) -> Expr:
    """The largest entry that is not nan."""
    return _without_nan(max, -_INFINITY)(a, axis, keepdims)


@public
def nanmin(a: object, axis: Axis = None, keepdims: bool = False) -> Expr:
    """The smallest entry that is not nan."""
    return _without_nan(min, _INFINITY)(a, axis, keepdims)


# --- covariances ----------------------------------------------------------------------------------


@public
def cov(
    m: object, rowvar: bool = True, bias: bool = False, ddof: int | None = None, y: object = None
) -> Expr:
    """The covariance matrix of variables in rows (or columns), also those of y, as `numpy.cov`."""
    given = [as_expr(m)] if y is None else [as_expr(m), as_expr(y)]
    rows = [_variables(e, rowvar) for e in given]
    joined = rows[0] if y is None else concatenate(rows)
    less = (0 if bias else 1) if ddof is None else ddof
    centred = subtract(joined, expand(mean(joined, 1, True), joined.shape))
    found = scale(matmul(centred, centred.T), inverse_count([joined.shape[1]], less))
    return getitem(found, (0, 0)) if y is None and given[0].ndim == 1 else found


def _variables(e: Expr, rowvar: bool) -> Expr:
    """The variables in rows; a vector is one."""
    if not 1 <= e.ndim <= 2:
        raise ShapeError(f"cov takes a vector or a matrix, not shape {show_shape(e.shape)}")
    return e[None] if e.ndim == 1 else e if rowvar else e.T


@public
def corrcoef(x: object, rowvar: bool = True, y: object = None) -> Expr:
    """The matrix of correlations, also with the variables of y, as `numpy.corrcoef`."""
    found = cov(x, rowvar, y=y)
    if not found.ndim:
        return divide(found, found)
    deviations = sqrt(found.diagonal())
    return divide(divide(found, deviations[:, None]), deviations[None, :])
