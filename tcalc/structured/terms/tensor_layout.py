"""What is known of a compressed tensor without its numbers: shape, terms, labels and extents.

Layouts are compared by value, so what is derived from one (which axes are tied, how to solve) is
cached across tensors of the same structure.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from math import prod
from typing import Any

from ...graph.nodes import Labels
from ...support.records import NamedTuple


class TableIndex(NamedTuple):
    """An output index read from an integer array: table[labels].

    `core` is the table's number in the list of arrays.
    """

    core: int
    labels: Labels


#: The index of an output axis: a label, or a table of integers read at labels.
OutputIndex = int | TableIndex


class CoreProduct(NamedTuple):
    """One term: a product of arrays, and how it is embedded in the output.

    A label twice in `out` is a unit tensor, a label in no factor a broadcast, a label that is not
    in `out` is summed.

    Attributes
    ----------
    factors : tuple of (int, labels)
        Number of each array, and the labels of its axes.
    out : tuple of OutputIndex
        One an output axis.
    extents : tuple of int
        By label.
    """

    factors: tuple[tuple[int, Labels], ...]
    out: tuple[OutputIndex, ...]
    extents: tuple[int, ...]

    @property
    def has_tables(self) -> bool:
        return any(isinstance(item, TableIndex) for item in self.out)

    def labels(self, items: Sequence[OutputIndex] | None = None) -> Labels:
        """The distinct labels of output indices, those of their tables included."""
        found: dict[int, None] = {}
        for item in self.out if items is None else items:
            found.update(dict.fromkeys(item.labels if isinstance(item, TableIndex) else (item,)))
        return tuple(found)

    def entries(self) -> int:
        """How many entries of the output the term sets."""
        return prod([self.extents[label] for label in self.labels()])

    def renumbered(self, numbers: Sequence[int]) -> CoreProduct:
        """The same product where array k has become array numbers[k]."""
        out = tuple([
            TableIndex(numbers[item.core], item.labels) if isinstance(item, TableIndex) else item
            for item in self.out
        ])  # fmt: skip
        return CoreProduct(tuple([(numbers[k], w) for k, w in self.factors]), out, self.extents)


class TensorLayout:
    """Shape, number of column axes and terms of a compressed tensor."""

    def __init__(self, shape: Sequence[int], columns: int, terms: Sequence[CoreProduct]) -> None:
        self.shape, self.columns, self.terms = tuple(shape), columns, tuple(terms)
        self._key = (self.shape, columns, self.terms)
        self._hash = hash(self._key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, TensorLayout) and self._key == other._key)

    def __reduce__(self) -> tuple[Any, ...]:
        return TensorLayout, self._key

    @cached_property
    def rows(self) -> int:
        """Number of row axes."""
        return len(self.shape) - self.columns

    @cached_property
    def row_shape(self) -> tuple[int, ...]:
        return self.shape[: self.rows]

    @cached_property
    def column_shape(self) -> tuple[int, ...]:
        return self.shape[self.rows :]

    @cached_property
    def size(self) -> int:
        """Number of columns of the matrix."""
        return prod(self.column_shape)

    @cached_property
    def square(self) -> bool:
        return self.row_shape == self.column_shape

    @cached_property
    def tied(self) -> tuple[int, ...]:
        """Row axes along which a square tensor is block diagonal: row and column index agree."""
        terms = self.terms
        return tuple([k for k in range(self.columns) if all(is_tied_axis(t, k) for t in terms)])

    def only(self, keep: Sequence[int]) -> TensorLayout:
        """The layout of some of the terms."""
        return TensorLayout(self.shape, self.columns, [self.terms[k] for k in keep])


def is_tied_axis(term: CoreProduct, axis: int) -> bool:
    """Whether a row axis and its column axis carry one label that no other axis carries."""
    half = len(term.out) // 2
    item = term.out[axis]
    if item != term.out[half + axis]:
        return False
    others = [o for k, o in enumerate(term.out) if k not in (axis, half + axis)]
    return item not in others


def without_tables(items: Sequence[OutputIndex]) -> Labels:
    """The output indices that are labels themselves."""
    return tuple([item for item in items if not isinstance(item, TableIndex)])


@lru_cache(1024)
def sum_layout(a: TensorLayout, b: TensorLayout, first: int, count: int) -> TensorLayout:
    """The layout of a + b, where the `count` arrays of b are numbered from `first` on."""
    numbers = range(first, first + count)
    return TensorLayout(a.shape, a.columns, [*a.terms, *(t.renumbered(numbers) for t in b.terms)])


@lru_cache(1024)
def transposed_layout(layout: TensorLayout) -> TensorLayout:
    """Rows and columns exchanged."""
    rows = layout.rows
    terms = [t._replace(out=(*t.out[rows:], *t.out[:rows])) for t in layout.terms]
    return TensorLayout((*layout.column_shape, *layout.row_shape), rows, terms)


@lru_cache(1024)
def renumbered_layout(layout: TensorLayout, numbers: tuple[int, ...]) -> TensorLayout:
    """The layout where array k has become array numbers[k]."""
    terms = [t.renumbered(numbers) for t in layout.terms]
    return TensorLayout(layout.shape, layout.columns, terms)


@lru_cache(1024)
def diagonal_term(term: CoreProduct) -> tuple[CoreProduct, Labels]:
    """The diagonal of a square term without tables, and its output labels.

    Each row label takes the place of the column label beside it.
    """
    half = len(term.out) // 2
    out = list(without_tables(term.out))
    words = [list(w) for _, w in term.factors]
    for axis in range(half):
        keep, gone = out[axis], out[half + axis]
        out = [keep if i == gone else i for i in out]
        words = [[keep if i == gone else i for i in w] for w in words]
    factors = tuple([
        (k, tuple(w)) for (k, _), w in zip(term.factors, words, strict=True)
    ])  # fmt: skip
    items = tuple(out[:half])
    return CoreProduct(factors, items, term.extents), items
