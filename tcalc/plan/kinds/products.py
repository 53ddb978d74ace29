"""Kinds that multiply and sum."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ...support.arrays import AnyArray, Sizes
from . import tiles
from .kind import Kind, Params, Result, one_read


def _left(shape: Sizes, params: Params, first: Sizes) -> Sizes:
    return tuple([n for axis, n in enumerate(first) if axis not in params])


def _sum(xp: Any, result: Result, params: Params, a: AnyArray) -> AnyArray:
    return xp.sum(a, axis=params)


def _batch(shape: Sizes, params: Params, first: Sizes, second: Sizes) -> Sizes:
    return np.broadcast_shapes(first, second)[:-1]


def _twice_read(shape: Sizes, params: Params, first: Sizes, second: Sizes) -> float:
    return 2 * prod(np.broadcast_shapes(first, second))


def _vecdot(xp: Any, result: Result, params: Params, a: AnyArray, b: AnyArray) -> AnyArray:
    return xp.sum(a * b, axis=-1)


def _rows_by_columns(shape: Sizes, params: Params, first: Sizes, second: Sizes) -> Sizes:
    return (*np.broadcast_shapes(first[:-2], second[:-2]), *first[-2:-1], *second[-1:])


def _dotted(shape: Sizes, params: Params, first: Sizes, second: Sizes) -> Sizes:
    return (*first[:-1], *second[1:])


def _multiply_adds(shape: Sizes, params: Params, first: Sizes, second: Sizes) -> float:
    return 2 * prod(shape) * first[-1]


def _matmul(xp: Any, result: Result, params: Params, a: AnyArray, b: AnyArray) -> AnyArray:
    return xp.matmul(a, b)


def _labelled(params: Params, shapes: Sequence[Sizes]) -> dict[str, int]:
    """The extents of the labels of an einsum."""
    words = params[0].partition("->")[0].split(",")
    pairs = zip(words, shapes, strict=True)
    return {label: n for word, shape in pairs for label, n in zip(word, shape, strict=True)}


def _spelled(shape: Sizes, params: Params, *shapes: Sizes) -> Sizes:
    extents = _labelled(params, shapes)
    return tuple([extents[label] for label in params[0].partition("->")[2]])


def _every_term(shape: Sizes, params: Params, *shapes: Sizes) -> float:
    return 2 * prod(_labelled(params, shapes).values())


def _einsum(xp: Any, result: Result, params: Params, a: AnyArray, b: AnyArray) -> AnyArray:
    return xp.einsum(params[0], a, b)


def _square(shape: Sizes, params: Params, matrix: Sizes, *others: Sizes) -> Sizes:
    return (matrix[1], matrix[1])


def _gram_flops(shape: Sizes, params: Params, matrix: Sizes, *others: Sizes) -> float:
    m, n = matrix
    return m * n * (n + 2)


def _gram(
    xp: Any,
    result: Result,
    params: Params,
    x: AnyArray,
    d: AnyArray,
    rows: AnyArray,
    *scale: AnyArray,
) -> AnyArray:
    return xp.matmul(xp.transpose(x), d[:, None] * x)


def _summed(windows: int, params: Params) -> range:
    """The axes of windows with so many axes that are summed, as the last of the other operand."""
    few, keeps_many = params
    return range(few) if keeps_many else range(few, windows)


def _kept(shape: Sizes, params: Params, windows: Sizes, other: Sizes) -> Sizes:
    axes = _summed(len(windows), params)
    own = [n for k, n in enumerate(windows) if k not in axes]
    return (*other[: len(other) - len(axes)], *own)


def _every_entry(shape: Sizes, params: Params, windows: Sizes, other: Sizes) -> float:
    return 2 * prod(shape) * prod([windows[k] for k in _summed(len(windows), params)])


def _correlate(
    xp: Any, result: Result, params: Params, windows: AnyArray, other: AnyArray
) -> AnyArray:
    axes = _summed(windows.ndim, params)
    last = range(other.ndim - len(axes), other.ndim)
    return xp.tensordot(other, windows, axes=(tuple(last), tuple(axes)))


def _weighted_flops(shape: Sizes, params: Params, weights: Sizes, *parts: Sizes) -> float:
    return 3 * prod(weights) * shape[-1]


def _weighted(
    xp: Any, result: Result, params: Params, w: AnyArray, a: AnyArray, c: AnyArray
) -> AnyArray:
    first, second = params
    return xp.einsum("jn,jnl->jl", w, first * a + second * c[:, None])


def _between(shape: Sizes, params: Params, first: Sizes, second: Sizes) -> Sizes:
    return (first[1], second[1])


def _crossed_flops(shape: Sizes, params: Params, first: Sizes, second: Sizes) -> float:
    return 2 * prod(first) * second[1]


def _crossed(xp: Any, result: Result, params: Params, x: AnyArray, y: AnyArray) -> AnyArray:
    return xp.einsum("ilj,jki->lk", x, y)


def _like_last(shape: Sizes, params: Params, *shapes: Sizes) -> Sizes:
    return shapes[-1]


PRODUCTS = [
    Kind(
        name="sum", params={"*axes": "what is summed over"},
        shape=_left, flops=one_read, reference=_sum, tiles=tiles.summed,
    ),
    Kind(name="vecdot", shape=_batch, flops=_twice_read, reference=_vecdot, tiles=tiles.inner),
    Kind(
        name="matmul",
        shape=_rows_by_columns, flops=_multiply_adds, speed="gemm", reference=_matmul,
        tiles=tiles.batched,
    ),
    Kind(
        name="dot",
        params={
            "*half": 'nothing, or the half that is wanted ("lower", "upper", "symmetric": both), '
                     "and whether an operand is a triangle whose zeros leave less to sum; what is "
                     "in the other half is not said",
        },
        shape=_dotted, flops=_multiply_adds, speed="gemm", reference=_matmul, tiles=tiles.product,
    ),
    # By panels of rows where the result lies in the memory of the first operand.
    Kind(
        name="dot_over",
        shape=_dotted, flops=_multiply_adds, speed="gemm", reference=_matmul, in_place="first",
    ),
    Kind(
        name="einsum", params={"spec": "labels of both operands and of the result"},
        shape=_spelled, flops=_every_term, reference=_einsum, tiles=tiles.spelled,
    ),
    # The sum over n of w_jn (a_nl + c_jl), of which the sum in parentheses is never made.
    Kind(
        name="weighted", params={"first": "the sign of a", "second": "and that of c"},
        shape=_like_last, flops=_weighted_flops, reference=_weighted, tiles=tiles.weighted,
    ),
    # The sum over i and j of x_ilj y_jki: neither operand is turned as a whole.
    Kind(name="crossed", shape=_between, flops=_crossed_flops, reference=_crossed),
    # X' diag(d) X; the third operand is memory for as many entries as X has.
    Kind(
        name="gram",
        params={
            "*complete": "nothing, or True where X' diag(c)^2 X is the identity: c is the fourth "
                         "operand, or 1",
        },
        shape=_square, flops=_gram_flops, speed="gemm", reference=_gram,
    ),
    # Many operands are copied for one product.
    Kind(
        name="correlate",
        params={
            "few": "how many axes of the windows, the first ones, have few entries together",
            "keeps_many": "are these summed, and the others kept, or the other way round?",
        },
        shape=_kept, flops=_every_entry, speed="correlation", reference=_correlate,
    ),
]  # fmt: skip
