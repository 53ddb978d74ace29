"""Nests of arrays as one vector, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..graph import trees
from ..graph.nodes import Expr
from ..ops.joining import concatenate
from ..ops.reshape import ravel, reshape


def flatten(value: Any) -> tuple[Any, Callable[[Any], Any]]:
    """All entries of a nest as one vector, and the function that nests such a vector again."""
    value = _in_order(value)
    found = trees.leaves(value)
    shapes: list[Any] = [leaf.shape if isinstance(leaf, Expr) else np.shape(leaf) for leaf in found]
    traced = any(isinstance(leaf, Expr) for leaf in found)
    join, flat = (concatenate, ravel) if traced else (np.concatenate, np.ravel)
    vector = join([flat(leaf) for leaf in found]) if found else np.zeros(0)

    def unflatten(vector: Any) -> Any:
        back: Callable[..., Any] = reshape if isinstance(vector, Expr) else np.reshape
        parts, start = [], 0
        for shape in shapes:
            stop = start + int(np.prod(shape))
            parts.append(back(vector[start:stop], shape))
            start = stop
        return trees.unflatten(value, iter(parts))

    return vector, unflatten


def _in_order(value: Any) -> Any:
    """The nest with the keys of dicts sorted, as its entries are."""
    if isinstance(value, dict):
        return {key: _in_order(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_in_order(part) for part in value]
    if isinstance(value, tuple):
        return tuple([_in_order(part) for part in value])
    return value


def flatten_func(
    func: Callable[..., Any], example: Any
) -> tuple[Callable[..., Any], Callable[[Any], Any], Any]:
    """A function of a nest, to a nest, as one of a vector, to a vector."""
    flat, unflatten = flatten(example)

    def of_vector(x: Any, *args: Any) -> Any:
        return flatten(func(unflatten(x), *args))[0]

    return of_vector, unflatten, flat
