"""Numeric compressed tensors: sums of products of arrays whose output may repeat labels.

A `Layout` is all that does not depend on numbers; layouts are compared by value, so what is found
out about one (which axes are tied, how to solve) is found out once. `Terms` adds the arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from .contract import Array, Contraction, Labels, contract


class Read(NamedTuple):
    """An output axis that stands at table[labels]; `core` is the place of the integer array."""

    core: int
    labels: Labels


Item = int | Read


class Product(NamedTuple):
    """One term: arrays by place, their labels, and what stands at each output axis.

    A label twice in `out` is a unit tensor, a label in no factor a broadcast, a label that is not
    in `out` is summed.
    """

    factors: tuple[tuple[int, Labels], ...]
    out: tuple[Item, ...]
    extents: tuple[int, ...]

    @property
    def reads(self) -> bool:
        return any(isinstance(item, Read) for item in self.out)

    def labels(self, items: Sequence[Item] | None = None) -> Labels:
        """Labels of output items, once each: those that count entries."""
        found: dict[int, None] = {}
        for item in self.out if items is None else items:
            found.update(dict.fromkeys(item.labels if isinstance(item, Read) else (item,)))
        return tuple(found)

    def entries(self) -> int:
        return prod([self.extents[label] for label in self.labels()])

    def moved(self, step: int, items: Sequence[Item] | None = None) -> Product:
        """The same product of cores that stand `step` places further."""
        out = tuple([
            Read(item.core + step, item.labels) if isinstance(item, Read) else item
            for item in (self.out if items is None else items)
        ])  # fmt: skip
        return Product(tuple([(k + step, w) for k, w in self.factors]), out, self.extents)


class Layout:
    """Shape, number of column axes and terms of a compressed tensor."""

    def __init__(self, shape: Sequence[int], columns: int, terms: Sequence[Product]) -> None:
        self.shape, self.columns, self.terms = tuple(shape), columns, tuple(terms)
        self._key = (self.shape, columns, self.terms)
        self._hash = hash(self._key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Layout) and self._key == other._key)

    def __reduce__(self) -> tuple[Any, ...]:
        return Layout, self._key

    @cached_property
    def rows(self) -> int:
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
        """Axes over which a square tensor is block diagonal."""
        return tuple([k for k in range(self.columns) if all(tied(t, k) for t in self.terms)])

    def only(self, keep: Sequence[int]) -> Layout:
        return Layout(self.shape, self.columns, [self.terms[k] for k in keep])


def tied(term: Product, axis: int) -> bool:
    """Whether a row axis and the column axis beside it carry one label, and no other axis does."""
    half = len(term.out) // 2
    item = term.out[axis]
    if item != term.out[half + axis]:
        return False
    others = [o for k, o in enumerate(term.out) if k not in (axis, half + axis)]
    return item not in others


@lru_cache(1024)
def _joined(a: Layout, b: Layout, step: int) -> Layout:
    return Layout(a.shape, a.columns, [*a.terms, *(t.moved(step) for t in b.terms)])


@lru_cache(1024)
def _transposed(layout: Layout) -> Layout:
    rows = layout.rows
    terms = [t._replace(out=(*t.out[rows:], *t.out[:rows])) for t in layout.terms]
    return Layout((*layout.column_shape, *layout.row_shape), rows, terms)


@lru_cache(1024)
def _products(layout: Layout, further: tuple[int, ...]) -> tuple[_TimesTerm | None, ...]:
    return tuple([
        None if t.reads else _TimesTerm(t, layout.rows, layout.row_shape, further)
        for t in layout.terms
    ])  # fmt: skip


class _TimesTerm:
    """How one term without table reads is multiplied with a right-hand side."""

    def __init__(
        self, term: Product, rows: int, shape: tuple[int, ...], further: tuple[int, ...]
    ) -> None:
        fresh = tuple(range(len(term.extents), len(term.extents) + len(further)))
        out = term.out[:rows]
        words = (*(w for _, w in term.factors), (*_plain(term.out[rows:]), *fresh))
        distinct = (*dict.fromkeys(_plain(out)), *fresh)
        self.cores = [k for k, _ in term.factors]
        self.steps = Contraction(words, distinct, (*term.extents, *further))
        word = (*_plain(out), *fresh)
        self.embedded = len(set(word)) < len(word)
        ranks = {label: rank for rank, label in enumerate(distinct)}
        self.word, self.diagonal = [ranks[i] for i in word], list(range(len(distinct)))
        self.shape = (*shape, *further)

    def __call__(self, cores: Sequence[Array], v: Array, coef: float) -> tuple[Array, bool]:
        """The product, and whether it is an array of its own."""
        result = self.steps([*(cores[k] for k in self.cores), v])
        fresh = self.steps.fresh
        if coef != 1:
            result, fresh = result * coef, True
        if self.embedded:
            whole = np.zeros(self.shape, result.dtype)
            diagonal_view(whole, self.word, self.diagonal)[...] = result
            return whole, True
        return result, fresh


def diagonal_view(whole: Array, word: list[int], kept: list[int]) -> Array:
    """A view of the entries whose axes of one label agree."""
    view: Array = np.einsum(whole, word, kept)
    return view


def _plain(items: Sequence[Item]) -> Labels:
    return tuple([item for item in items if not isinstance(item, Read)])


class Terms:
    """A layout and its numbers: one coefficient a term, and the arrays."""

    __slots__ = ("_sparse", "_twin", "coefs", "cores", "dtype", "layout")

    def __init__(self, layout: Layout, cores: Sequence[Array], coefs: Sequence[float]) -> None:
        self.layout, self.cores = layout, tuple(cores)
        self.coefs = tuple(map(float, coefs))
        kinds = {core.dtype for core in self.cores if core.dtype.kind == "f"}
        #: Of the cores that are no tables.
        self.dtype: np.dtype[Any] = np.result_type(*kinds) if kinds else np.dtype(np.float64)
        self._sparse: dict[int, Any] = {}
        self._twin: Terms | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Terms, (self.layout, self.cores, self.coefs)

    def __repr__(self) -> str:
        return f"<Terms {self.layout.shape}, {self.layout.terms}, coefficients {self.coefs}>"

    def plus(self, other: Terms) -> Terms:
        if not other.layout.terms:
            return self
        layout = _joined(self.layout, other.layout, len(self.cores))
        return Terms(layout, self.cores + other.cores, self.coefs + other.coefs).shared()

    def shared(self) -> Terms:
        """Arrays that are one object stand once."""
        place: dict[int, int] = {}
        moves = [place.setdefault(id(core), len(place)) for core in self.cores]
        if len(place) == len(self.cores):
            return self
        cores = [self.cores[moves.index(k)] for k in range(len(place))]
        return Terms(_renumbered(self.layout, tuple(moves)), cores, self.coefs)

    def scaled(self, by: float) -> Terms:
        return Terms(self.layout, self.cores, [c * by for c in self.coefs])

    def transposed(self) -> Terms:
        made = Terms(_transposed(self.layout), self.cores, self.coefs)
        made._twin = self
        return made

    def only(self, keep: Sequence[int]) -> Terms:
        """Some of the terms."""
        return Terms(self.layout.only(keep), self.cores, [self.coefs[k] for k in keep])

    def values(self, k: int, labels: Labels) -> Array:
        """Entries of term k over labels: extent 1 where no factor carries a label."""
        term = self.layout.terms[k]
        words = tuple([w for _, w in term.factors])
        carried = {label for word in words for label in word}
        arrays = [self.cores[c] for c, _ in term.factors]
        held = tuple([label for label in labels if label in carried])
        found = contract(arrays, words, held, term.extents) * self.coefs[k]
        return np.asarray(found, self.dtype)[
            tuple([slice(None) if i in carried else None for i in labels])
        ]

    def dense(self) -> Array:
        whole = np.zeros(self.layout.shape, self.dtype)
        for k, term in enumerate(self.layout.terms):
            self.accumulate(whole, k, term.out)
        return whole

    def accumulate(self, whole: Array, k: int, items: Sequence[Item]) -> None:
        """Add the entries of term k to an array whose axes stand at `items`."""
        term = self.layout.terms[k]
        labels = term.labels(items)
        values = self.values(k, labels)
        if not any(isinstance(item, Read) for item in items):
            if not items:
                whole[...] += values  # einsum gives no view without axes
                return
            ranks = {label: rank for rank, label in enumerate(labels)}
            view = diagonal_view(whole, [ranks[i] for i in _plain(items)], [*range(len(labels))])
            view += values
            return
        if 0 in [term.extents[label] for label in labels]:
            return
        places = self.places(k, labels, items)
        flat = np.ravel_multi_index(np.broadcast_arrays(*places), whole.shape).ravel()
        full = np.broadcast_to(values, [term.extents[label] for label in labels]).ravel()
        counted = np.bincount(flat, full, whole.size).reshape(whole.shape)
        whole += counted.astype(whole.dtype, copy=False)

    def places(self, k: int, labels: Labels, items: Sequence[Item]) -> list[Array]:
        """Index arrays of output items over all labels."""
        term = self.layout.terms[k]
        found = []
        for item in items:
            word = item.labels if isinstance(item, Read) else (item,)
            index = (
                self.cores[item.core] if isinstance(item, Read) else np.arange(term.extents[item])
            )
            index = index.transpose([word.index(i) for i in labels if i in word])
            found.append(index[tuple([slice(None) if i in word else None for i in labels])])
        whole = [term.extents[label] for label in labels]
        return [np.broadcast_to(index, whole) for index in found] if found else []

    def sparse(self, k: int) -> Any:
        """Term k as a scipy.sparse matrix, rows and columns in C-order."""
        import scipy.sparse

        if k not in self._sparse and self._twin is not None:
            self._sparse[k] = self._twin.sparse(k).T
        if k not in self._sparse:
            term, layout = self.layout.terms[k], self.layout
            labels = term.labels()
            full = tuple([term.extents[label] for label in labels])
            values = np.broadcast_to(self.values(k, labels), full).ravel()
            shape = prod(layout.row_shape), prod(layout.column_shape)
            places = self.places(k, labels, term.out)
            halves = []
            for part, extents in (
                (places[: layout.rows], layout.row_shape),
                (places[layout.rows :], layout.column_shape),
            ):
                flat = np.zeros(full, np.intp)
                for place, extent in zip(part, extents, strict=True):
                    flat = flat * extent + place
                halves.append(flat.ravel())
            self._sparse[k] = scipy.sparse.csr_array((values, tuple(halves)), shape=shape)
        return self._sparse[k]

    def matrix(self) -> Any:
        """All terms as one scipy.sparse matrix."""
        import scipy.sparse

        layout = self.layout
        shape = prod(layout.row_shape), prod(layout.column_shape)
        if not layout.terms:
            return scipy.sparse.csr_array(shape, dtype=self.dtype)
        total = self.sparse(0).tocsr(copy=True)
        for k in range(1, len(layout.terms)):
            total = total + self.sparse(k)
        return total

    def times(self, v: Array) -> Array:
        """The product over the column axes; further axes of v stay behind."""
        layout = self.layout
        further = v.shape[layout.columns :]
        dtype = np.result_type(self.dtype, v.dtype)
        total: Array | None = None
        for k, way in enumerate(_products(layout, further)):
            if way is None:
                made = (self.sparse(k) @ v.reshape(layout.size, prod(further))).reshape(
                    (*layout.row_shape, *further)
                )
                fresh = True
            else:
                made, fresh = way(self.cores, v, self.coefs[k])
            total = (made if fresh else np.array(made)) if total is None else _added(total, made)
        if total is None:
            return np.zeros((*layout.row_shape, *further), dtype)
        return total if total.dtype == dtype else total.astype(dtype)

    def diagonal(self) -> Array:
        """Entries whose row and column agree, of the column shape."""
        total = np.zeros(self.layout.column_shape, self.dtype)
        for k, term in enumerate(self.layout.terms):
            if term.reads:
                total += self.sparse(k).diagonal().reshape(total.shape)
            else:
                merged, items = _on_diagonal(term)
                part = Terms(Layout(total.shape, 0, [merged]), self.cores, [self.coefs[k]])
                part.accumulate(total, 0, items)
        return total

    def nbytes(self) -> int:
        return sum([c.nbytes for c in self.cores])


@lru_cache(1024)
def _renumbered(layout: Layout, moves: tuple[int, ...]) -> Layout:
    terms = []
    for t in layout.terms:
        out = tuple([
            Read(moves[item.core], item.labels) if isinstance(item, Read) else item
            for item in t.out
        ])  # fmt: skip
        terms.append(Product(tuple([(moves[k], w) for k, w in t.factors]), out, t.extents))
    return Layout(layout.shape, layout.columns, terms)


def _added(total: Array, more: Array) -> Array:
    if total.dtype == more.dtype:
        total += more
        return total
    result: Array = total + more
    return result


@lru_cache(1024)
def _on_diagonal(term: Product) -> tuple[Product, tuple[int, ...]]:
    """The term with labels of rows and columns made one."""
    half = len(term.out) // 2
    out = list(_plain(term.out))
    words = [list(w) for _, w in term.factors]
    for axis in range(half):
        keep, gone = out[axis], out[half + axis]
        out = [keep if i == gone else i for i in out]
        words = [[keep if i == gone else i for i in w] for w in words]
    factors = tuple([
        (k, tuple(w)) for (k, _), w in zip(term.factors, words, strict=True)
    ])  # fmt: skip
    items = tuple(out[:half])
    return Product(factors, items, term.extents), items


def identity(shape: Sequence[int]) -> Terms:
    """The identity on arrays of a shape."""
    axes = tuple(range(len(shape)))
    product = Product((), (*axes, *axes), tuple(shape))
    return Terms(Layout((*shape, *shape), len(axes), [product]), (), (1.0,))
