"""Kinds that multiply by sparse matrices, which are inputs and are never written out.

A sparse matrix is one of SciPy's in compressed rows; references take it written out.
"""

from __future__ import annotations

from math import prod
from typing import Any

from ...support.arrays import AnyArray, Sizes
from .kind import Kind, Params, Result, given


def _dot_flops(shape: Sizes, params: Params, matrix: Sizes, array: Sizes) -> float:
    count: float = 2 * params[1] * prod(array[1:])
    return count


def _dot(xp: Any, result: Result, params: Params, matrix: Any, array: AnyArray) -> AnyArray:
    return xp.tensordot(matrix, array, axes=((params[0],), (0,)))


def _gram_flops(shape: Sizes, params: Params, one: Sizes, other: Sizes, *weights: Sizes) -> float:
    """Every entry of the one meets the entries that a line of the other has on average."""
    _, across, held, other_held = params
    count: float = 2 * held * other_held / max(1, other[across])
    return count


def _gram(
    xp: Any, result: Result, params: Params, one: Any, other: Any, *weights: AnyArray
) -> AnyArray:
    left = xp.swapaxes(one, 0, 1) if params[0] == 0 else one
    right = other if params[1] == 0 else xp.swapaxes(other, 0, 1)
    return (left * weights[0] if weights else left) @ right


def _inner(xp: Any, result: Result, params: Params, matrix: Any, array: AnyArray) -> AnyArray:
    return (matrix * array).sum()


SPARSE = [
    Kind(
        name="sparse_dot",
        params={"axis": "of the matrix, summed with the first axis of the array",
                "entries": "how many the matrix has, about"},
        shape=given, flops=_dot_flops, reference=_dot, allocates=True,
    ),
    Kind(
        name="sparse_gram",
        params={"axis": "of the first matrix that is summed, weighted where there are weights",
                "across": "the axis of the second matrix that is summed with it",
                "entries": "how many the first matrix has, about",
                "others": "how many the second matrix has"},
        shape=given, flops=_gram_flops, reference=_gram, allocates=True,
    ),
    Kind(
        name="sparse_inner", params={"entries": "how many the matrix has, about"},
        shape=given, flops=lambda shape, params, *shapes: 2 * params[0], reference=_inner,
        allocates=True,
    ),
]  # fmt: skip
#: Kinds that take sparse matrices.
TAKING_SPARSE = frozenset([kind.name for kind in SPARSE])
