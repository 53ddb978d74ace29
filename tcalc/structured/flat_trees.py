"""Pytrees of arrays, one for each of several variables, as one flat matrix and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import prod
from typing import Any

from ..graph import trees
from ..graph.extents import show_shape
from ..support.arrays import Array
from ..support.errors import ShapeError
from ..support.namespaces import NUMPY, moved, namespace_of
from .solvers.base import real_array


class FlatPytree:
    """Conversion between pytrees of arrays and flat matrices.

    Parameters
    ----------
    template : nested tuple or dict of str
        Names of the variables.
    shapes : sequence of tuple of int
        Of the variables, in the order of the leaves.
    """

    def __init__(self, template: Any, shapes: Sequence[tuple[int, ...]]) -> None:
        self.template = template
        self.names = [str(name) for name in trees.leaves(template)]
        self.shapes = list(shapes)
        self.sizes = [prod(shape) for shape in self.shapes]
        self._ends = list(accumulate(self.sizes, initial=0))

    @property
    def size(self) -> int:
        """The number of rows of the flat matrix."""
        total: int = self._ends[-1]
        return total

    def described(self) -> str:
        """Names and shapes."""
        pairs = zip(self.names, self.shapes, strict=True)
        return ", ".join([f"{name} {show_shape(shape)}" for name, shape in pairs])

    def read(self, given: Any, what: str, dtype: Any) -> tuple[Array, tuple[int, ...]]:
        """A pytree of arrays as one matrix, and the shape that its columns had.

        It lies on the device where one of the arrays does.

        Arrays have the shapes of the variables and any further axes, the same for all.
        """
        leaves = _matching_leaves(self.template, given, what)
        arrays = [real_array(leaf, what) for leaf in leaves]
        further: tuple[int, ...] | None = None
        for name, array, shape in zip(self.names, arrays, self.shapes, strict=True):
            more = array.shape[len(shape) :]
            if array.shape[: len(shape)] != shape or further not in (None, more):
                raise ShapeError(
                    f"{what}: the array for {name} has shape {show_shape(array.shape)}, expected "
                    f"{show_shape(shape)}, and any further axes, the same for all variables"
                )
            further = more
        further = further or ()
        count = prod(further)
        xp = next((x for a in arrays if (x := namespace_of(a)) is not NUMPY), NUMPY)
        flat = [moved(a, xp).reshape(n, count) for a, n in zip(arrays, self.sizes, strict=True)]
        return xp.concatenate(flat).astype(dtype, copy=False), further

    def parts(self, flat: Array, further: tuple[int, ...]) -> list[Array]:
        """Views of a flat matrix, one a variable."""
        return [
            flat[start:end].reshape((*shape, *further))
            for start, end, shape in zip(self._ends, self._ends[1:], self.shapes, strict=False)
        ]

    def nested(self, flat: Array, further: tuple[int, ...]) -> Any:
        parts = self.parts(namespace_of(flat).ascontiguousarray(flat), further)
        # Scalars as NumPy returns them, not as arrays without axes.
        return trees.unflatten(self.template, iter([part[()] for part in parts]))


def _matching_leaves(template: Any, given: Any, what: str) -> list[Any]:
    """The leaves of `given`, which must have the structure of `template`."""
    if isinstance(template, dict):
        if not isinstance(given, Mapping) or given.keys() != template.keys():
            raise TypeError(f"{what}: a dict with the keys {', '.join(map(repr, template))}")
        return [
            leaf for key in template for leaf in _matching_leaves(template[key], given[key], what)
        ]
    if isinstance(template, tuple | list):
        if not isinstance(given, tuple | list) or len(given) != len(template):
            raise TypeError(f"{what}: a tuple of {len(template)}, as the variables were given")
        pairs = zip(template, given, strict=True)
        return [leaf for part, value in pairs for leaf in _matching_leaves(part, value, what)]
    return [given]
