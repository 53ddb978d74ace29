"""Blocks of a matrix over several variables: their sizes, and some of them as one matrix."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

from ...support.arrays import Array
from ...support.namespaces import NUMPY, ArrayNamespace
from ..terms.numeric_terms import Terms
from ..terms.tensor_layout import TensorLayout
from .base import BlockRows

#: Share of nonzero entries below which an off-diagonal block is held sparse.
SPARSE_SHARE = 0.25

VariableIndices = Sequence[int]


def variable_sizes(rows: BlockRows) -> list[int]:
    """Number of entries of each variable."""
    return [row[k].layout.size for k, row in enumerate(rows)]


@lru_cache(1024)
def entry_count(layout: TensorLayout) -> int:
    """Entries that the terms set, an upper bound of the nonzero ones."""
    return sum([term.entries() for term in layout.terms])


def is_sparse(terms: Terms) -> bool:
    """Whether few entries of a block differ from zero."""
    return entry_count(terms.layout) <= SPARSE_SHARE * prod(terms.layout.shape)


def namespace_of_rows(rows: BlockRows) -> ArrayNamespace:
    """The array library that the arrays of all blocks are of."""
    return next((t.xp for row in rows for t in row if t.xp is not NUMPY), NUMPY)


def flat_dense(rows: BlockRows, places: VariableIndices) -> Array:
    """The blocks of some variables as one matrix."""
    return dense_between(rows, places, places)


def dense_between(rows: BlockRows, down: VariableIndices, across: VariableIndices) -> Array:
    """The blocks of some variables and some others as one matrix."""
    counts, xp = variable_sizes(rows), namespace_of_rows(rows)
    stacked = [
        xp.concatenate(
            [xp.asarray(rows[i][j].dense()).reshape(counts[i], counts[j]) for j in across], axis=1
        )
        for i in down
    ]
    whole: Array = xp.concatenate(stacked)
    return whole
