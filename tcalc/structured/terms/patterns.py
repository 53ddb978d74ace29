"""Compressed tensors as one sparse matrix, whose structure is found once.

Where entries stand depends on layouts and on tables of indices only. In calls that follow, entries
are written to their places; where these are in equal steps along all labels, as a strided copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ...graph.nodes import Labels
from ...support.arrays import Array
from ...support.records import NamedTuple
from .numeric_terms import Terms
from .tensor_layout import CoreProduct, TableIndex, TensorLayout

#: A row of blocks of a matrix below the other.
Grid = Sequence[Sequence[Terms]]
Layouts = tuple[tuple[TensorLayout, ...], ...]

#: Matrices whose structure is remembered.
REMEMBERED = 16


class Places(NamedTuple):
    """Where the entries of one term stand among the data.

    Attributes
    ----------
    core : int, optional
        The core that has all its entries, along the axes of these labels.
    labels : tuple of int
        Of its entries' axes.
    extents : tuple of int
    start, steps : int, tuple of int
        Of the first entry, and along every axis; no steps where `each` says it of every entry.
    each : ndarray
    distinct : bool
        Are no two entries at one place?
    """

    core: int | None
    labels: Labels
    extents: tuple[int, ...]
    start: int
    steps: tuple[int, ...] | None
    each: Array
    distinct: bool


class Pattern:
    """The structure of a matrix of blocks."""

    def __init__(self, grid: Grid) -> None:
        heights = [prod(row[0].layout.row_shape) for row in grid]
        widths = [prod(block.layout.column_shape) for block in grid[0]]
        self.shape = sum(heights), sum(widths)
        made = []
        for r, row in enumerate(grid):
            for c, block in enumerate(row):
                for k in range(len(block.layout.terms)):
                    rows, columns = block.coordinates(k)
                    at = (rows + sum(heights[:r])) * self.shape[1] + columns + sum(widths[:c])
                    made.append((block.layout.terms[k], at))
        keys = np.concatenate([np.zeros(0, np.intp), *[at for _, at in made]])
        found, where = np.unique(keys, return_inverse=True)
        self.whole = len(found) == len(keys)
        index = np.int32 if max(len(found), *self.shape) < 2**31 else np.int64
        rows, columns = np.divmod(found, max(1, self.shape[1]))
        self.indices = columns.astype(index)
        self.starts = np.searchsorted(rows, np.arange(self.shape[0] + 1)).astype(index)
        ends = np.cumsum([0, *[len(at) for _, at in made]])
        self.places = [
            _places(term, where[first:last], self.whole)
            for (term, _), first, last in zip(made, ends, ends[1:], strict=False)
        ]

    def filled(self, grid: Grid) -> Any:
        """The matrix of blocks that have this structure, as a scipy.sparse array."""
        import scipy.sparse

        blocks = [block for row in grid for block in row]
        dtype = np.result_type(*[block.dtype for block in blocks])
        terms = [(block, k) for block in blocks for k in range(len(block.layout.terms))]
        found = []
        for (block, k), places in zip(terms, self.places, strict=True):
            found.append(_values(block, k, places))
        data = self._standing(found, dtype)
        if data is None:
            data = (np.empty if self.whole else np.zeros)(len(self.indices), dtype)
            for values, places in zip(found, self.places, strict=True):
                self._put(data, values, places)
        whole = data, self.indices.copy(), self.starts.copy()
        made = scipy.sparse.csr_array(whole, shape=self.shape, copy=False)
        made.has_canonical_format = True
        return made

    def _standing(self, found: Sequence[Array], dtype: np.dtype[Any]) -> Array | None:
        """A copy of what holds all entries as they stand among the data, if it does."""
        starts = [p.start for p in self.places if p.steps is not None]
        if not self.whole or len(starts) < len(found) or 0 not in starts:
            return None
        first = _address(found[0]) - self.places[0].start * dtype.itemsize
        for values, places in zip(found, self.places, strict=True):
            steps = tuple([n * dtype.itemsize for n in places.steps or ()])
            at = first + places.start * dtype.itemsize
            if (values.strides, values.dtype, _address(values)) != (steps, dtype, at):
                return None
        entry = found[starts.index(0)]
        return as_strided(entry, (len(self.indices),), (dtype.itemsize,)).copy()

    def _put(self, data: Array, values: Array, places: Places) -> None:
        if places.steps is not None:
            steps = [n * data.itemsize for n in places.steps]
            target = as_strided(data[places.start :], places.extents, steps)
            if self.whole:
                target[...] = values
            else:
                target += values
        elif self.whole:
            data[places.each] = values.ravel()
        elif places.distinct:
            data[places.each] += values.ravel()
        else:
            np.add.at(data, places.each, values.ravel())


def _address(values: Array) -> int:
    address: int = values.__array_interface__["data"][0]
    return address


def _values(block: Terms, k: int, places: Places) -> Array:
    """The entries of a term."""
    coef = block.coefs[k]
    if places.core is not None:
        core: Array = block.cores[places.core]
        return core if coef == 1 else core * coef
    held = block.unscaled(k, places.labels)
    return np.broadcast_to(held if coef == 1 else held * coef, places.extents)


def _places(term: CoreProduct, each: Array, whole: bool) -> Places:
    labels = term.labels()
    shape = tuple([term.extents[label] for label in labels])
    first = term.factors[0] if len(term.factors) == 1 else None
    core = first[0] if first is not None and first[1] == labels else None
    distinct = whole or len(np.unique(each)) == len(each)
    if not len(each):
        return Places(core, labels, shape, 0, None, each, True)
    spread = each.reshape(shape)
    start, steps = int(each[0]), []
    even = np.full(shape, start)
    for axis, n in enumerate(shape):
        second = tuple([int(k == axis) for k in range(len(shape))])
        steps.append(int(spread[second]) - start if n > 1 else 0)
        line = np.arange(n) * steps[-1]
        even += line.reshape((-1,) + (1,) * (len(shape) - 1 - axis))
    if distinct and np.array_equal(spread, even):
        return Places(core, labels, shape, start, tuple(steps), each[:0], True)
    return Places(core, labels, shape, 0, None, each, distinct)


class _Held:
    """The last structure of some layouts, and the tables that it is of."""

    known: tuple[list[Array], Pattern] | None = None


@lru_cache(REMEMBERED)
def _held(layouts: Layouts) -> _Held:
    return _Held()


def assembled(grid: Grid) -> Any:
    """Blocks as one scipy.sparse array in canonical form, rows and columns flat in C-order."""
    held = _held(tuple([tuple([block.layout for block in row]) for row in grid]))
    tables = [block.cores[k] for row in grid for block in row for k in _tables(block.layout)]
    known = held.known
    if known is None or not all(map(np.array_equal, known[0], tables)):
        known = [table.copy() for table in tables], Pattern(grid)
        held.known = known
    return known[1].filled(grid)


@lru_cache(1024)
def _tables(layout: TensorLayout) -> tuple[int, ...]:
    """The cores that are tables of indices."""
    used = {item.core for t in layout.terms for item in t.out if isinstance(item, TableIndex)}
    return tuple(sorted(used))
