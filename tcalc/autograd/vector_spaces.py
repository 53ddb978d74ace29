"""Nests of arrays of one structure as the vectors of a space."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..graph import trees
from ..graph.nodes import Expr


class VSpace:
    """The space of a vector, which is an array or a nest of them.

    Attributes
    ----------
    size : int
        The dimension: how many numbers a vector has.
    """

    def __init__(self, value: Any) -> None:
        self._like = value
        self._shapes = [_shape(leaf) for leaf in trees.leaves(value)]
        self.size = sum([int(np.prod(shape)) for shape in self._shapes])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, VSpace):
            return NotImplemented
        same = repr(trees.mapped(_mark, self._like)) == repr(trees.mapped(_mark, other._like))
        return same and self._shapes == other._shapes

    def _nest(self, make: Callable[[Any], Any]) -> Any:
        return trees.unflatten(self._like, iter([make(shape) for shape in self._shapes]))

    def _each(self, function: Callable[..., Any], *vectors: Any) -> Any:
        leaves = [trees.leaves(v) for v in vectors]
        found = [function(*parts) for parts in zip(*leaves, strict=True)]
        return trees.unflatten(self._like, iter(found))

    def zeros(self) -> Any:
        return self._nest(lambda shape: np.zeros(shape)[()])

    def ones(self) -> Any:
        return self._nest(lambda shape: np.ones(shape)[()])

    def randn(self) -> Any:
        """Numbers of NumPy's global generator, normally distributed."""
        return self._nest(lambda shape: np.random.standard_normal(shape)[()])

    def standard_basis(self) -> Iterator[Any]:
        """The vectors with one entry 1 and all others 0."""
        for k, shape in enumerate(self._shapes):
            for place in np.ndindex(*shape):
                unit = np.zeros(shape)
                unit[place] = 1.0
                leaves = [np.zeros(s)[()] for s in self._shapes]
                leaves[k] = unit[()]
                yield trees.unflatten(self._like, iter(leaves))

    def add(self, one: Any, other: Any) -> Any:
        return self._each(lambda x, y: x + y, one, other)

    def scalar_mul(self, vector: Any, number: Any) -> Any:
        return self._each(lambda x: x * number, vector)

    def inner_prod(self, one: Any, other: Any) -> Any:
        pairs = zip(trees.leaves(one), trees.leaves(other), strict=True)
        return sum([(x * y).sum() for x, y in pairs])


def _shape(leaf: Any) -> tuple[Any, ...]:
    return leaf.shape if isinstance(leaf, Expr) else np.shape(leaf)


def _mark(leaf: Any) -> int:
    return 0


def vspace(value: Any) -> VSpace:
    """The space of an array, or of a nest of them."""
    return VSpace(value)
