"""Arrays over a nest of variables as one flat matrix, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from ..graph import trees
from ..graph.extents import show_shape
from ..support.errors import ShapeError
from .solvers.base import numbers
from .terms.contract import Array


class Nested:
    """A nest of variables' names, and the shapes of the variables."""

    def __init__(self, template: Any, shapes: Sequence[tuple[int, ...]]) -> None:
        self.template = template
        self._names = [str(name) for name in trees.leaves(template)]
        self._shapes = list(shapes)
        self._sizes = [prod(shape) for shape in self._shapes]
        self._ends = np.cumsum([0, *self._sizes]).tolist()

    def _read(self, given: Any, what: str, dtype: Any) -> tuple[Array, tuple[int, ...]]:
        """A nest of arrays as one matrix of columns, and the further axes."""
        leaves = _matched(self.template, given, what)
        arrays = [numbers(leaf, what) for leaf in leaves]
        further: tuple[int, ...] | None = None
        for name, array, shape in zip(self._names, arrays, self._shapes, strict=True):
            more = array.shape[len(shape) :]
            if array.shape[: len(shape)] != shape or further not in (None, more):
                raise ShapeError(
                    f"{what}: the array for {name} has shape {show_shape(array.shape)}, expected "
                    f"{show_shape(shape)}, and any further axes, the same for all variables"
                )
            further = more
        further = further or ()
        count = prod(further)
        flat = [a.reshape(n, count) for a, n in zip(arrays, self._sizes, strict=True)]
        return np.concatenate(flat).astype(dtype, copy=False), further

    def _nested(self, flat: Array, further: tuple[int, ...]) -> Any:
        parts = [
            np.ascontiguousarray(flat[start:end]).reshape((*shape, *further))
            for start, end, shape in zip(self._ends, self._ends[1:], self._shapes, strict=False)
        ]
        # Scalars as NumPy returns them, not as arrays without axes.
        return trees.unflatten(self.template, iter([part[()] for part in parts]))


def _matched(template: Any, given: Any, what: str) -> list[Any]:
    """Leaves of a nest that must be nested as the variables are."""
    if isinstance(template, dict):
        if not isinstance(given, Mapping) or given.keys() != template.keys():
            raise TypeError(f"{what}: a dict with the keys {', '.join(map(repr, template))}")
        return [leaf for key in template for leaf in _matched(template[key], given[key], what)]
    if isinstance(template, tuple | list):
        if not isinstance(given, tuple | list) or len(given) != len(template):
            raise TypeError(f"{what}: a tuple of {len(template)}, as the variables were given")
        pairs = zip(template, given, strict=True)
        return [leaf for part, value in pairs for leaf in _matched(part, value, what)]
    return [given]
