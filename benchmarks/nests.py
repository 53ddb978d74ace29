"""Nested tuples of arrays: what belongs to several variables at once, as in jax and in tcalc."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Nest = Any  # an array, or a tuple of nests


def leaves(nest: Nest) -> Iterator[Any]:
    """The arrays from left to right."""
    if isinstance(nest, tuple):
        for part in nest:
            yield from leaves(part)
    else:
        yield nest


def each(function: Callable[..., Any], nest: Nest) -> Nest:
    """The same nest of the function's results."""
    if isinstance(nest, tuple):
        return tuple([each(function, part) for part in nest])
    return function(nest)


def flat(nest: Nest) -> np.ndarray:
    """All entries of a point or of a gradient as one vector, in C order."""
    return np.concatenate([np.ravel(leaf) for leaf in leaves(nest)])


def matrix(hessian: Nest) -> np.ndarray:
    """The Hessian that belongs to `flat`; its nest is square."""
    if not isinstance(hessian, tuple):
        return hessian.reshape((round(np.sqrt(hessian.size)),) * 2)
    sizes = [round(np.sqrt(np.size(row[place]))) for place, row in enumerate(hessian)]
    return np.block(
        [
            [np.reshape(block, (rows, columns)) for block, columns in zip(row, sizes, strict=True)]
            for row, rows in zip(hessian, sizes, strict=True)
        ]
    )


def unflat(vector: np.ndarray, like: Nest) -> Nest:
    """The nest whose `flat` is the vector."""
    ends = np.cumsum([np.size(leaf) for leaf in leaves(like)])
    parts = iter(np.split(vector, ends[:-1]))
    return each(lambda leaf: next(parts).reshape(np.shape(leaf)), like)


def pushed(jacobian: Nest, v: Nest) -> Any:
    """The Jacobian of an array, a block for every variable, times a nest of directions."""
    blocks = zip(leaves(jacobian), leaves(v), strict=True)
    return sum([np.tensordot(b, part, np.ndim(part)) for b, part in blocks])


def times(hessian: Nest, v: Nest) -> Nest:
    """The Hessian, an array or blocks of them, times a nest of directions."""
    if not isinstance(v, tuple):
        return np.tensordot(hessian, v, np.ndim(v))
    return tuple(
        [
            sum(np.tensordot(b, part, np.ndim(part)) for b, part in zip(row, v, strict=True))
            for row in hessian
        ]
    )
