"""Terms of low rank as W C W', where W has every distinct vector as one column.

What depends on the layout alone is cached.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

from ...graph.nodes import Labels
from ...support.arrays import Array
from ...support.records import NamedTuple
from ..terms.array_contraction import contract_arrays
from ..terms.numeric_terms import Terms
from ..terms.tensor_layout import CoreProduct, TableIndex, TensorLayout

LabelledCore = tuple[int, Labels]
VectorKey = tuple[tuple[LabelledCore, ...], Labels]


class LowRankSplit(NamedTuple):
    """The factors of a term of low rank, by what they carry.

    Attributes
    ----------
    rows, columns : tuple of LabelledCore
        Factors with row labels, and with column labels.
    middle : tuple of LabelledCore
        All others.
    left, right : labels
        Summed labels of `rows` and of `columns`, which count the vectors.
    """

    rows: tuple[LabelledCore, ...]
    columns: tuple[LabelledCore, ...]
    middle: tuple[LabelledCore, ...]
    left: Labels
    right: Labels


@lru_cache(1024)
def low_rank_split(term: CoreProduct, axes: Labels) -> LowRankSplit | None:
    """A term split over all axes but the tied ones, None where a factor has rows and columns."""
    half = len(term.out) // 2
    if term.has_tables:
        return None
    out: list[int] = [item for item in term.out if not isinstance(item, TableIndex)]
    batch = {out[k] for k in range(half) if k not in axes}
    rows, columns = {out[k] for k in axes}, {out[half + k] for k in axes}
    if rows & columns or (rows | columns) & batch or min(len(rows), len(columns)) < len(axes):
        return None
    sides: list[list[LabelledCore]] = [[], [], []]
    for factor in term.factors:
        word = set(factor[1])
        if word & rows and word & columns:
            return None
        sides[0 if word & rows else 1 if word & columns else 2].append(factor)
    shown = rows | columns | batch
    left, right = (
        tuple(dict.fromkeys([i for _, w in side for i in w if i not in shown]))
        for side in sides[:2]
    )
    return LowRankSplit(tuple(sides[0]), tuple(sides[1]), tuple(sides[2]), left, right)


def term_rank(term: CoreProduct, found: LowRankSplit) -> int:
    """Number of vectors on the larger side."""
    return max(prod([term.extents[i] for i in side]) for side in (found.left, found.right))


class _Vectors(NamedTuple):
    """The product of some factors of a term, which is W[:, start:stop]."""

    start: int
    stop: int
    factors: tuple[LabelledCore, ...]
    out: Labels
    extents: tuple[int, ...]
    sizes: tuple[int, int, int]


class _Coupling(NamedTuple):
    """A term's block of C: a product over the labels `items`, of shape (batch, left, right).

    Where every vector is coupled with itself alone, the block is `diagonal`: (batch, left).
    """

    term: int
    left: _Vectors
    right: _Vectors
    layout: TensorLayout
    items: Labels
    sizes: tuple[int, ...]
    diagonal: bool


class VectorsAndCouplings(NamedTuple):
    """How W and C are made from the arrays of a compressed tensor."""

    vectors: tuple[_Vectors, ...]
    couplings: tuple[_Coupling, ...]
    batch: int
    total: int

    def collected(self, terms: Terms) -> tuple[Array, Array]:
        """W of shape (batch, n, r); C of shape (batch, r, r), or its diagonals, (batch, r)."""
        parts = [_vector_entries(terms, v) for v in self.vectors]
        w = parts[0] if len(parts) == 1 else terms.xp.concatenate(parts, axis=-1)
        diagonal = all(m.diagonal for m in self.couplings)
        c = terms.xp.zeros((self.batch, *[self.total] * (1 if diagonal else 2)), terms.dtype)
        at = terms.xp.arange(self.total)
        for m in self.couplings:
            block = _coupling_entries(terms, m)
            rows = slice(m.left.start, m.left.stop)
            if diagonal:
                c[:, rows] += block
            elif m.diagonal:
                c[:, at[rows], at[rows]] += block
            else:
                c[:, rows, m.right.start : m.right.stop] += block
        return w, c


@lru_cache(1024)
def vectors_and_couplings(layout: TensorLayout, low: tuple[int, ...]) -> VectorsAndCouplings:
    """The distinct vectors of some terms of a layout, and how each term couples them."""
    batch, half = layout.tied, layout.columns
    axes = tuple([k for k in range(half) if k not in batch])
    known: dict[VectorKey, _Vectors] = {}
    couplings: list[_Coupling] = []
    start = 0
    for k in low:
        term = layout.terms[k]
        found = low_rank_split(term, axes)
        assert found is not None
        items = [item for item in term.out if not isinstance(item, TableIndex)]
        shared = tuple([items[j] for j in batch])
        sides = []
        for factors, step, more in (
            (found.rows, 0, found.left),
            (found.columns, half, found.right),
        ):
            labels = tuple([items[step + j] for j in axes])
            key = _key(term, factors, (*shared, *labels), more)
            if key not in known:
                b, n, count = (
                    prod([term.extents[i] for i in part]) for part in (shared, labels, more)
                )
                out = (*shared, *labels, *more)
                sizes = (b, n, count)
                known[key] = _Vectors(start, start + count, factors, out, term.extents, sizes)
                start += count
            sides.append(known[key])
        couplings.append(_coupling(k, term, found, shared, sides))
    b = prod([layout.column_shape[k] for k in batch])
    return VectorsAndCouplings(tuple(known.values()), tuple(couplings), b, start)


def vector_count(layout: TensorLayout, low: Sequence[int]) -> int:
    """Number of distinct vectors of some terms."""
    return vectors_and_couplings(layout, tuple(low)).total


def _key(
    term: CoreProduct, factors: tuple[LabelledCore, ...], shown: Labels, more: Labels
) -> VectorKey:
    """What equal vectors agree in: factors under canonical labels, and their number."""
    rename = {label: k for k, label in enumerate((*shown, *more))}
    named = [(core, tuple([rename[i] for i in word])) for core, word in factors]
    return tuple(sorted(named)), tuple([term.extents[i] for i in more])


def _coupling(
    k: int, term: CoreProduct, found: LowRankSplit, batch: Labels, sides: Sequence[_Vectors]
) -> _Coupling:
    left, right = sides
    diagonal = left is right and found.left == found.right
    parts = (batch, found.left) if diagonal else (batch, found.left, found.right)
    items = tuple([label for part in parts for label in part])
    extents = [term.extents[label] for label in items]
    layout = TensorLayout(extents, 0, [CoreProduct(found.middle, items, term.extents)])
    sizes = tuple([prod([term.extents[i] for i in part]) for part in parts])
    return _Coupling(k, left, right, layout, items, sizes, diagonal)


def _vector_entries(terms: Terms, v: _Vectors) -> Array:
    arrays = [terms.cores[c] for c, _ in v.factors]
    found = contract_arrays(arrays, tuple([w for _, w in v.factors]), v.out, v.extents)
    vectors: Array = terms.xp.asarray(found).reshape(v.sizes).astype(terms.dtype, copy=False)
    return vectors


def _coupling_entries(terms: Terms, m: _Coupling) -> Array | float:
    """The product of the middle factors, over the vectors that it couples."""
    if not m.items and not m.layout.terms[0].factors:
        return terms.coefs[m.term]
    lone = Terms(m.layout, terms.cores, (terms.coefs[m.term],))
    if m.layout.terms[0].labels() == m.items:
        full: Array = terms.xp.broadcast_to(lone.values(0, m.items), m.layout.shape)
        return full.reshape(m.sizes)
    whole: Array = terms.xp.zeros(m.layout.shape, terms.dtype)
    lone.accumulate(whole, 0, m.items)
    return whole.reshape(m.sizes)
