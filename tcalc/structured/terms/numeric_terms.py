"""Numeric compressed tensors: sums of products of arrays whose output may repeat labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from ...graph.nodes import Labels
from ...support.arrays import Array
from ...support.namespaces import NUMPY, ArrayNamespace, moved, namespace_of
from .array_contraction import Contraction, contract_arrays
from .tensor_layout import (
    CoreProduct,
    OutputIndex,
    TableIndex,
    TensorLayout,
    diagonal_term,
    renumbered_layout,
    sum_layout,
    transposed_layout,
    without_tables,
)

_DOUBLE = np.dtype(np.float64)


@lru_cache(1024)
def _multipliers(
    layout: TensorLayout, further: tuple[int, ...]
) -> tuple[_TermMultiplier | None, ...]:
    return tuple([
        None if t.has_tables else _TermMultiplier(t, layout.rows, layout.row_shape, further)
        for t in layout.terms
    ])  # fmt: skip


class _TermMultiplier:
    """The product of one term without tables and a right-hand side with axes `further` behind."""

    def __init__(
        self, term: CoreProduct, rows: int, shape: tuple[int, ...], further: tuple[int, ...]
    ) -> None:
        fresh = tuple(range(len(term.extents), len(term.extents) + len(further)))
        out = term.out[:rows]
        words = (*(w for _, w in term.factors), (*without_tables(term.out[rows:]), *fresh))
        distinct = (*dict.fromkeys(without_tables(out)), *fresh)
        self.cores = [k for k, _ in term.factors]
        self.steps = Contraction(words, distinct, (*term.extents, *further))
        word = (*without_tables(out), *fresh)
        self.embedded = len(set(word)) < len(word)
        ranks = {label: rank for rank, label in enumerate(distinct)}
        self.word, self.diagonal = [ranks[i] for i in word], list(range(len(distinct)))
        self.shape = (*shape, *further)

    def __call__(self, cores: Sequence[Array], v: Array, coef: float) -> tuple[Array, bool]:
        """The product, and whether it is a new array; otherwise it may be a view of an operand."""
        result = self.steps([*(cores[k] for k in self.cores), v])
        fresh = self.steps.fresh
        if coef != 1:
            result, fresh = result * coef, True
        if self.embedded:
            dense = namespace_of(result).zeros(self.shape, result.dtype)
            diagonal_view(dense, self.word, self.diagonal)[...] = result
            return dense, True
        return result, fresh


def diagonal_view(dense: Array, word: list[int], kept: list[int]) -> Array:
    """A view of the entries at which axes of the same label have the same index."""
    xp = namespace_of(dense)
    if xp is NUMPY:
        view: Array = np.einsum(dense, word, kept)
        return view
    strides = [sum([s for s, i in zip(dense.strides, word, strict=True) if i == k]) for k in kept]
    shape = [dense.shape[word.index(k)] for k in kept]
    found: Array = xp.lib.stride_tricks.as_strided(dense, tuple(shape), tuple(strides))
    return found


def diagonals(matrices: Array) -> Array:
    """A view of the diagonals of matrices in the last two axes."""
    kept = list(range(matrices.ndim - 1))
    return diagonal_view(matrices, [*kept, kept[-1]], kept)


class Terms:
    """A compressed tensor: its layout, one coefficient a term, and the arrays.

    Attributes
    ----------
    layout : TensorLayout
    cores : tuple of ndarray
        The arrays by number: factors, and integer tables; all on the host, or all on a device.
    coefs : tuple of float
        One a term.
    dtype : dtype
        Of the arrays of floats.
    """

    __slots__ = ("_sparse", "_transpose_of", "coefs", "cores", "dtype", "layout")

    #: Are parts of it factors, so that what reads all cores makes a dense one?
    is_factored = False

    def __init__(
        self, layout: TensorLayout, cores: Sequence[Array], coefs: Sequence[float]
    ) -> None:
        self.layout, self.cores = layout, tuple(cores)
        self.coefs = tuple(map(float, coefs))
        kinds = {core.dtype for core in self.cores if core.dtype.kind == "f"}
        one = kinds.pop() if len(kinds) == 1 else None
        self.dtype: np.dtype[Any] = one or np.result_type(*kinds or {_DOUBLE})
        self._sparse: dict[int, Any] = {}
        self._transpose_of: Terms | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Terms, (self.layout, self.cores, self.coefs)

    @property
    def xp(self) -> ArrayNamespace:
        """The array library that the arrays are of."""
        return namespace_of(self.cores[0]) if self.cores else NUMPY

    @property
    def arrays(self) -> tuple[Array, ...]:
        """The arrays that are held."""
        return self.cores

    def held(self) -> tuple[Any, ...]:
        """All that takes memory, the arrays among it."""
        return self.arrays

    def moved(self, xp: ArrayNamespace) -> Terms:
        """The same where the arrays of a library lie."""
        return Terms(self.layout, [moved(core, xp) for core in self.cores], self.coefs)

    def on_host(self) -> Terms:
        """The same with arrays of NumPy's."""
        return self if self.xp is NUMPY else self.moved(NUMPY)

    def __repr__(self) -> str:
        return f"<Terms {self.layout.shape}, {self.layout.terms}, coefficients {self.coefs}>"

    def plus(self, other: Terms) -> Terms:
        """The sum of two tensors: the terms of both."""
        if not other.layout.terms:
            return self
        if other.is_factored:
            return other.plus(self)
        layout = sum_layout(self.layout, other.layout, len(self.cores), len(other.cores))
        return Terms(layout, self.cores + other.cores, self.coefs + other.coefs).shared()

    def shared(self) -> Terms:
        """The same terms with every array object listed once."""
        place: dict[int, int] = {}
        moves = [place.setdefault(id(core), len(place)) for core in self.cores]
        if len(place) == len(self.cores):
            return self
        cores = [self.cores[moves.index(k)] for k in range(len(place))]
        return Terms(renumbered_layout(self.layout, tuple(moves)), cores, self.coefs)

    def scaled(self, by: float) -> Terms:
        return self.changed(lambda number: number * by)

    def divided(self, by: float) -> Terms:
        return self.changed(lambda number: number / by)

    def changed(self, change: Callable[[Any], Any]) -> Terms:
        """Multiples: coefficients changed, or a factor where a coefficient would leave the range
        of numbers that its products need not leave."""
        limits, cores = np.finfo(self.dtype), list(self.cores)
        coefs, products = list(self.coefs), list(self.layout.terms)
        for k, (coef, term) in enumerate(zip(self.coefs, self.layout.terms, strict=True)):
            found = change(coef)
            if limits.tiny <= abs(found) <= limits.max or not (coef and term.factors):
                coefs[k] = found
                continue
            (core, word), *rest = term.factors
            products[k] = term._replace(factors=((len(cores), word), *rest))
            cores.append(change(cores[core]))
        layout = TensorLayout(self.layout.shape, self.layout.columns, products)
        return Terms(layout if len(cores) > len(self.cores) else self.layout, cores, coefs)

    def transposed(self) -> Terms:
        """Rows and columns exchanged."""
        made = Terms(transposed_layout(self.layout), self.cores, self.coefs)
        made._transpose_of = self
        return made

    def only(self, keep: Sequence[int]) -> Terms:
        """The sum of some of the terms."""
        cores = self.cores if keep else ()
        return Terms(self.layout.only(keep), cores, [self.coefs[k] for k in keep])

    def values(self, k: int, labels: Labels) -> Array:
        """Term k as an array over distinct labels, with extent 1 along labels of no factor: a new
        one."""
        found, coef = self.unscaled(k, labels), self.coefs[k]
        values: Array = self.xp.asarray(found * coef, self.dtype)
        return values

    def unscaled(self, k: int, labels: Labels) -> Array:
        """The same without its coefficient; it may be a view of a core."""
        term = self.layout.terms[k]
        words = tuple([w for _, w in term.factors])
        carried = {label for word in words for label in word}
        arrays = [self.cores[c] for c, _ in term.factors]
        held = tuple([label for label in labels if label in carried])
        found = contract_arrays(arrays, words, held, term.extents)
        axes = tuple([slice(None) if i in carried else None for i in labels])
        values: Array = self.xp.asarray(found)[axes]
        return values

    def dense(self) -> Array:
        """The whole tensor as one array."""
        dense: Array = self.xp.zeros(self.layout.shape, self.dtype)
        for k, term in enumerate(self.layout.terms):
            self.accumulate(dense, k, term.out)
        return dense

    def accumulate(self, dense: Array, k: int, items: Sequence[OutputIndex]) -> None:
        """Add term k to an array of which axis j is indexed by items[j]."""
        term = self.layout.terms[k]
        labels = term.labels(items)
        values = self.values(k, labels)
        if not any(isinstance(item, TableIndex) for item in items):
            if not items:
                dense[...] += values  # einsum gives no view without axes
                return
            ranks = {label: rank for rank, label in enumerate(labels)}
            view = diagonal_view(
                dense, [ranks[i] for i in without_tables(items)], [*range(len(labels))]
            )
            view += values
            return
        if 0 in [term.extents[label] for label in labels]:
            return
        flat = _flat(self.indices(k, labels, items), dense.shape).ravel()
        full = self._spread(values, k, labels)
        if self.xp is NUMPY:
            counted = np.bincount(flat, full, dense.size).astype(dense.dtype, copy=False)
        else:
            counted = self.xp.zeros(dense.size, dense.dtype)
            self.xp.scatter_add(counted, flat, full)
        dense += counted.reshape(dense.shape)

    def _spread(self, values: Array, k: int, labels: Labels) -> Array:
        """Values over some labels of term k, flat, with all of their extents."""
        extents = self.layout.terms[k].extents
        whole = self.xp.broadcast_to(values, tuple([extents[label] for label in labels]))
        flat: Array = whole.ravel()
        return flat

    def indices(self, k: int, labels: Labels, items: Sequence[OutputIndex]) -> list[Array]:
        """For each output index, the integers that it takes, as an array over all labels."""
        term = self.layout.terms[k]
        found = []
        for item in items:
            word = item.labels if isinstance(item, TableIndex) else (item,)
            index = (
                self.cores[item.core]
                if isinstance(item, TableIndex)
                else self.xp.arange(term.extents[item])
            )
            index = index.transpose([word.index(i) for i in labels if i in word])
            found.append(index[tuple([slice(None) if i in word else None for i in labels])])
        shape = tuple([term.extents[label] for label in labels])
        return [self.xp.broadcast_to(index, shape) for index in found]

    def coordinates(self, k: int) -> tuple[Array, Array]:
        """Flat rows and columns of the entries of term k, in C-order of all its labels."""
        term, layout = self.layout.terms[k], self.layout
        labels = term.labels()
        indices = self.indices(k, labels, term.out)
        start = self.xp.zeros(tuple([term.extents[label] for label in labels]), np.intp)
        rows = _flat(indices[: layout.rows], layout.row_shape, start)
        columns = _flat(indices[layout.rows :], layout.column_shape, start)
        return rows.ravel(), columns.ravel()

    def sparse(self, k: int) -> Any:
        """Term k as a scipy.sparse matrix, rows and columns in C-order."""
        import scipy.sparse

        if k not in self._sparse and self._transpose_of is not None:
            self._sparse[k] = self._transpose_of.sparse(k).T
        if k not in self._sparse:
            term, layout = self.layout.terms[k], self.layout
            labels = term.labels()
            values = self._spread(self.values(k, labels), k, labels)
            shape = prod(layout.row_shape), prod(layout.column_shape)
            self._sparse[k] = scipy.sparse.csr_array((values, self.coordinates(k)), shape=shape)
        return self._sparse[k]

    def times(self, v: Array) -> Array:
        """The product over the column axes; further axes of v stay behind the row axes."""
        layout = self.layout
        further = v.shape[layout.columns :]
        dtype = np.result_type(self.dtype, v.dtype)
        total: Array | None = None
        for k, multiply in enumerate(_multipliers(layout, further)):
            if multiply is None:
                columns = v.reshape(layout.size, prod(further))
                made = self._by_tables(k, columns).reshape((*layout.row_shape, *further))
                fresh = True
            else:
                made, fresh = multiply(self.cores, v, self.coefs[k])
            total = (made if fresh else made.copy()) if total is None else _added(total, made)
        if total is None:
            total = namespace_of(v).zeros((*layout.row_shape, *further), dtype)
        return total if total.dtype == dtype else total.astype(dtype)

    def diagonal(self) -> Array:
        """Entries whose row and column agree, of the column shape."""
        total: Array = self.xp.zeros(self.layout.column_shape, self.dtype)
        for k, term in enumerate(self.layout.terms):
            if term.has_tables:
                total += self._diagonal_by_tables(k).reshape(total.shape)
            else:
                merged, items = diagonal_term(term)
                part = Terms(TensorLayout(total.shape, 0, [merged]), self.cores, [self.coefs[k]])
                part.accumulate(total, 0, items)
        return total

    # --- terms with tables: SciPy's sparse matrices, or on a device entry by entry ----------------

    def _entries(self, k: int) -> tuple[Array, Array, Array]:
        """Rows and columns of the entries of term k, and their values."""
        labels = self.layout.terms[k].labels()
        return (*self.coordinates(k), self._spread(self.values(k, labels), k, labels))

    def _by_tables(self, k: int, v: Array) -> Array:
        """The product of term k and flat columns."""
        if self.xp is NUMPY:
            product: Array = self.sparse(k) @ v
            return product
        rows, columns, values = self._entries(k)
        size = prod(self.layout.row_shape), v.shape[1]
        total: Array = self.xp.zeros(size, np.result_type(values.dtype, v.dtype))
        self.xp.scatter_add(total, rows, values[:, None] * v[columns])
        return total

    def _diagonal_by_tables(self, k: int) -> Array:
        if self.xp is NUMPY:
            diagonal: Array = self.sparse(k).diagonal()
            return diagonal
        rows, columns, values = self._entries(k)
        total: Array = self.xp.zeros(self.layout.size, self.dtype)
        self.xp.scatter_add(total, rows, self.xp.where(rows == columns, values, 0))
        return total

    def nbytes(self) -> int:
        """Bytes of the arrays, and of factors."""
        return sum([part.nbytes for part in self.held()])


def _flat(indices: Sequence[Array], shape: Sequence[int], start: Any = 0) -> Array:
    """Places in C-order of entries with some indices in an array of a shape."""
    for index, extent in zip(indices, shape, strict=True):
        start = start * extent + index
    flat: Array = start
    return flat


def _added(total: Array, more: Array) -> Array:
    if total.dtype == more.dtype:
        total += more
        return total
    result: Array = total + more
    return result


def identity_terms(shape: Sequence[int]) -> Terms:
    """The identity on arrays of a shape."""
    axes = tuple(range(len(shape)))
    product = CoreProduct((), (*axes, *axes), tuple(shape))
    return Terms(TensorLayout((*shape, *shape), len(axes), [product]), (), (1.0,))
