"""Terms some of whose arrays are sparse matrices, as terms of their entries: with tables.

A sparse matrix is the vector of its entries, embedded by two tables of integers: the rows and the
columns of these. A product of two, weighted or not, is one sparse matrix where that has fewer
entries than one of them would have if it were written out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...graph.nodes import Labels
from ...support.arrays import AnyArray
from ...support.namespaces import is_sparse
from ...support.records import NamedTuple
from .numeric_terms import Terms
from .tensor_layout import CoreProduct, OutputIndex, TableIndex, TensorLayout

#: Share of entries that differ from zero, above which a matrix is held as an array.
DENSE = 0.25


class _Entries(NamedTuple):
    """A sparse matrix at two labels."""

    matrix: Any
    word: tuple[int, int]


def sparse_terms(
    layout: TensorLayout,
    cores: Sequence[Any],
    coefs: Sequence[float],
    written_out: Callable[[Any], AnyArray],
) -> Terms:
    """The tensor of these terms.

    Parameters
    ----------
    layout, cores, coefs
        As of `Terms`, where cores may be sparse matrices.
    written_out : callable
        The array of one, where its terms need all of it.
    """
    known: dict[int, int] = {}
    held: list[Any] = []
    kept: list[Any] = []  # whose ids are known
    products: list[CoreProduct] = []

    def place(core: Any) -> int:
        """The number of an array."""
        if id(core) not in known:
            known[id(core)] = len(held)
            held.append(written_out(core) if is_sparse(core) else core)
            kept.append(core)
        return known[id(core)]

    matrices: dict[tuple[Any, ...], Any] = {}
    for term in layout.terms:
        found = None if term.has_tables else _as_one(term, cores, matrices)
        if found is None:
            numbers = {k: place(cores[k]) for k in _cores_of(term)}
            products.append(term.renumbered(_listed(numbers)))
        else:
            entries, factors = found
            products.append(_product(term, entries, factors, place, matrices))
    return Terms(TensorLayout(layout.shape, layout.columns, products), held, coefs)


def _cores_of(term: CoreProduct) -> list[int]:
    tables = [item.core for item in term.out if isinstance(item, TableIndex)]
    return [*[k for k, _ in term.factors], *tables]


def _listed(numbers: dict[int, int]) -> list[int]:
    return [numbers.get(k, -1) for k in range(max(numbers, default=-1) + 1)]


def _as_one(
    term: CoreProduct, cores: Sequence[Any], matrices: dict[tuple[Any, ...], Any]
) -> tuple[_Entries, list[tuple[Any, Labels]]] | None:
    """The one sparse matrix that a term is of, and its weights; None where it is none."""
    sparse = [(cores[k], word) for k, word in term.factors if is_sparse(cores[k])]
    weights = [(cores[k], word) for k, word in term.factors if not is_sparse(cores[k])]
    if not sparse or any(len(word) > 1 for _, word in weights):
        return None
    if len(sparse) == 1:
        ((matrix, (i, j)),) = sparse
        found = _Entries(matrix, (i, j))
    elif len(sparse) == 2:
        (one, first), (other, second) = sparse
        shared = [k for k in first if k in second and k not in term.out]
        if len(shared) != 1 or len({*first, *second}) != 3:
            return None
        (k,) = shared
        inner = [w for w, word in weights if word == (k,)]
        weights = [(w, word) for w, word in weights if word != (k,)]
        key = (id(one), id(other), first.index(k), second.index(k), *map(id, inner))
        if key not in matrices:
            matrices[key] = _joined(one, first.index(k), other, second.index(k), inner)
        if matrices[key] is None:
            return None
        (i,), (j,) = ([x for x in word if x != k] for word in (first, second))
        found = _Entries(matrices[key], (i, j))
    else:
        return None
    labels = {*found.word}
    placed = labels <= {*term.out} and {*term.out} <= labels and len(labels) == 2
    return (found, weights) if placed and all(labels.issuperset(w) for _, w in weights) else None


def _joined(one: Any, axis: int, other: Any, along: int, weights: Sequence[AnyArray]) -> Any:
    """The product of two sparse matrices over an axis of each; None where it has many entries."""
    left = (one if axis else one.T).tocsc()
    right = (other.T if along else other).tocsr()
    counts = [
        np.diff(side.indptr).astype(np.float64) for side in (left, right)
    ]  # squares are large
    times = float((counts[0] * counts[1]).sum())
    rank, rows, columns = left.shape[1], left.shape[0], right.shape[1]
    if times > rank * min(rows, columns) and rank < max(rows, columns):
        return None
    for weight in weights:
        right = right.multiply(weight.reshape(-1, 1)).tocsr()
    return (left.tocsr() @ right).tocsr()


def _product(
    term: CoreProduct,
    entries: _Entries,
    weights: Sequence[tuple[Any, Labels]],
    place: Callable[[Any], int],
    matrices: dict[tuple[Any, ...], Any],
) -> CoreProduct:
    """The term with the entries of a sparse matrix in its place."""
    matrix, (i, j) = entries
    if matrix.nnz > DENSE * matrix.shape[0] * matrix.shape[1]:
        factors = [(place(core), word) for core, word in [(matrix, (i, j)), *weights]]
        return term._replace(factors=tuple(factors))
    key = ("entries", id(matrix))
    if key not in matrices:
        coo = matrix.tocoo()
        matrices[key] = coo.data, coo.row.astype(np.intp), coo.col.astype(np.intp), matrix
    data, rows, columns, _ = matrices[key]
    values = data
    for weight, word in weights:
        at = () if not word else (rows,) if word == (i,) else (columns,)
        values = values * weight[at]
    along = len(term.extents)
    tables = {i: TableIndex(place(rows), (along,)), j: TableIndex(place(columns), (along,))}
    out: list[OutputIndex] = [tables[x] for x in term.out if not isinstance(x, TableIndex)]
    return CoreProduct(((place(values), (along,)),), tuple(out), (*term.extents, len(data)))
