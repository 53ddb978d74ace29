"""Reductions over rows: what each part of the rows gives, and how two parts become one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..graph.applications import apply
from ..graph.nodes import Apply, Expr
from ..graph.operators import Op
from ..graph.products import numeral
from ..ops import arithmetic
from ..ops.elementwise import equal, exp, log, reciprocal, where
from ..ops.entrywise import isfinite
from ..ops.reductions import (
    HARDMAX,
    HARDMIN,
    LOGSUMEXP,
    MAX,
    MIN,
    NORM2,
    PROD,
    WEIGHTED_LOGSUMEXP,
    along,
    max,
)
from ..support.arrays import Array
from ..support.records import NamedTuple

#: What a part of the rows gives: one array, or several that are combined together.
Part = tuple[Array, ...]


class Combination(NamedTuple):
    """One row: a reduction whose value over all rows follows from its values over parts.

    Attributes
    ----------
    words : str
        What is said of it in plans.
    combine : callable
        ``combine(one, other, own)``: of two parts, in the order of their rows, the part that both
        are. Where `own` is true the arrays of the first may be overwritten.
    parts : callable or None
        ``parts(node, operands)`` are the expressions of a part, given the operands' own rows; by
        default the operator itself.
    finish : callable
        The value, as an expression, from the parts' expressions.
    """

    words: str
    combine: Callable[[Part, Part, bool], Part]
    parts: Callable[[Apply, Sequence[Expr]], tuple[Expr, ...]]
    finish: Callable[[tuple[Expr, ...]], Expr]


def _by_itself(node: Apply, operands: Sequence[Expr]) -> tuple[Expr, ...]:
    return (apply(node.op, *operands, params=node.params),)


def _elementwise(words: str, ufunc: Callable[..., Any]) -> Combination:
    def combine(one: Part, other: Part, own: bool) -> Part:
        # New pages for each of many large parts cost more than adding them does.
        outs = [a if own and type(a) is np.ndarray else None for a in one]
        with np.errstate(all="ignore"):
            return tuple([ufunc(a, b, out=out) for a, b, out in zip(one, other, outs, strict=True)])

    return Combination(words, combine, _by_itself, lambda parts: parts[0])


def _shifted_parts(node: Apply, operands: Sequence[Expr]) -> tuple[Expr, ...]:
    """The largest exponent whose weight is not 0, and the weighted sum beside it."""
    x, b = operands
    axes = tuple(range(x.ndim - node.params[0], x.ndim))
    lowest = numeral(float("-inf"))
    x = where(equal(b, 0), along(lowest, x), x)
    top = max(x, axes)
    shift = where(isfinite(top), top, 0)
    return top, arithmetic.sum(b * exp(x - along(shift, x)), axes)


def _shifted(one: Part, other: Part, own: bool) -> Part:
    with np.errstate(all="ignore"):
        top = np.maximum(one[0], other[0])
        shift = np.where(np.isfinite(top), top, 0).astype(top.dtype)
        sums = [part[1] * np.exp(part[0] - shift) for part in (one, other)]
        # A part without weights has no largest exponent, and no share.
        empty = [part[0] == -np.inf for part in (one, other)]
        kept = [np.where(e, 0, s).astype(s.dtype) for e, s in zip(empty, sums, strict=True)]
        return top, kept[0] + kept[1]


def _with_ties(words: str, extreme: Callable[..., Any], largest: Op) -> Combination:
    """The extreme entry, and how many tie: 1 over the share of each of them."""

    def parts(node: Apply, operands: Sequence[Expr]) -> tuple[Expr, ...]:
        (x,) = operands
        axes = tuple(range(x.ndim - node.params[0], x.ndim))
        share = max(apply(node.op, x, params=node.params), axes)
        return apply(largest, x, params=node.params), reciprocal(share)

    def combine(one: Part, other: Part, own: bool) -> Part:
        top = extreme(one[0], other[0])
        return top, one[1] * (one[0] == top) + other[1] * (other[0] == top)

    return Combination(words, combine, parts, lambda parts: parts[0])


#: The reduction by which products are summed over rows.
SUM = _elementwise("sums", np.add)
#: By the reducing operator; sums have none.
COMBINATIONS: dict[Op | None, Combination] = {
    None: SUM,
    MAX: _elementwise("largest", np.maximum),
    MIN: _elementwise("smallest", np.minimum),
    PROD: _elementwise("products", np.multiply),
    LOGSUMEXP: _elementwise("logarithms of sums", np.logaddexp),
    NORM2: _elementwise("norms", np.hypot),
    WEIGHTED_LOGSUMEXP: Combination(
        "shifted sums", _shifted, _shifted_parts, lambda parts: parts[0] + log(parts[1])
    ),
    HARDMAX: _with_ties("largest and how many", np.maximum, MAX),
    HARDMIN: _with_ties("smallest and how many", np.minimum, MIN),
}
#: Of these the results of a pass say what each row has, next to the operand.
BY_ROWS: dict[Op, Callable[[Expr, tuple[Expr, ...]], Expr]] = dict.fromkeys(
    (HARDMAX, HARDMIN),
    lambda x, known: equal(x, along(known[0], x)) * along(reciprocal(known[1]), x),
)
