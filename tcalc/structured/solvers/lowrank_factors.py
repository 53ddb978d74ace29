"""The vectors of terms of low rank: W C W' over the distinct vectors W, each vector once.

What depends on a layout alone is found once for all its numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np

from ..terms.contract import Array, Labels, contract
from ..terms.term import Layout, Product, Read, Terms

Factor = tuple[int, Labels]
Key = tuple[tuple[Factor, ...], Labels]


class Split(NamedTuple):
    """A term of low rank: vectors of rows and of columns, and the factors between them.

    `rows` and `columns` are factors that carry row or column labels; their other labels are the
    summed labels `left` and `right`.
    """

    rows: tuple[Factor, ...]
    columns: tuple[Factor, ...]
    middle: tuple[Factor, ...]
    left: Labels
    right: Labels


@lru_cache(1024)
def split(term: Product, axes: Labels) -> Split | None:
    """The parts of a term over all axes but the tied ones, None where they are not apart."""
    half = len(term.out) // 2
    if term.reads:
        return None
    out: list[int] = [item for item in term.out if not isinstance(item, Read)]
    batch = {out[k] for k in range(half) if k not in axes}
    rows, columns = {out[k] for k in axes}, {out[half + k] for k in axes}
    if rows & columns or (rows | columns) & batch or min(len(rows), len(columns)) < len(axes):
        return None
    sides: list[list[Factor]] = [[], [], []]
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
    return Split(tuple(sides[0]), tuple(sides[1]), tuple(sides[2]), left, right)


def rank(term: Product, found: Split) -> int:
    """Number of vectors on the larger side."""
    return max(prod([term.extents[i] for i in side]) for side in (found.left, found.right))


class _Vectors(NamedTuple):
    """Vectors that factors of one term make up, from column `start` of W to before `stop`."""

    start: int
    stop: int
    factors: tuple[Factor, ...]
    out: Labels
    extents: tuple[int, ...]
    sizes: tuple[int, int, int]


class _Middle(NamedTuple):
    """A term's entries of C: the product over `items`, which cut into batch, left and right.

    Vectors that meet themselves alone have entries on the diagonal of C, over batch and left.
    """

    term: int
    left: _Vectors
    right: _Vectors
    layout: Layout
    items: Labels
    sizes: tuple[int, ...]
    diagonal: bool


class Recipe(NamedTuple):
    """How W and C are made from cores."""

    vectors: tuple[_Vectors, ...]
    middles: tuple[_Middle, ...]
    batch: int
    total: int

    def collected(self, terms: Terms) -> tuple[Array, Array]:
        """W of shape (batch, n, r); C of shape (batch, r, r), or its diagonals, (batch, r)."""
        parts = [_entries(terms, v) for v in self.vectors]
        w = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)
        diagonal = all(m.diagonal for m in self.middles)
        c = np.zeros((self.batch, *[self.total] * (1 if diagonal else 2)), terms.dtype)
        at = np.arange(self.total)
        for m in self.middles:
            block = _between(terms, m)
            rows = slice(m.left.start, m.left.stop)
            if diagonal:
                c[:, rows] += block
            elif m.diagonal:
                c[:, at[rows], at[rows]] += block
            else:
                c[:, rows, m.right.start : m.right.stop] += block
        return w, c


@lru_cache(1024)
def recipe(layout: Layout, low: tuple[int, ...]) -> Recipe:
    """The distinct vectors of some terms of a layout, and how each term combines them."""
    batch, half = layout.tied, layout.columns
    axes = tuple([k for k in range(half) if k not in batch])
    known: dict[Key, _Vectors] = {}
    middles: list[_Middle] = []
    start = 0
    for k in low:
        term = layout.terms[k]
        found = split(term, axes)
        assert found is not None
        items = [item for item in term.out if not isinstance(item, Read)]
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
        middles.append(_middle(k, term, found, shared, sides))
    b = prod([layout.column_shape[k] for k in batch])
    return Recipe(tuple(known.values()), tuple(middles), b, start)


def count(layout: Layout, low: Sequence[int]) -> int:
    """Number of distinct vectors of some terms."""
    return recipe(layout, tuple(low)).total


def _key(term: Product, factors: tuple[Factor, ...], shown: Labels, more: Labels) -> Key:
    """What tells vectors from others: factors under canonical labels, and their number."""
    rename = {label: k for k, label in enumerate((*shown, *more))}
    named = [(core, tuple([rename[i] for i in word])) for core, word in factors]
    return tuple(sorted(named)), tuple([term.extents[i] for i in more])


def _middle(
    k: int, term: Product, found: Split, batch: Labels, sides: Sequence[_Vectors]
) -> _Middle:
    left, right = sides
    diagonal = left is right and found.left == found.right
    parts = (batch, found.left) if diagonal else (batch, found.left, found.right)
    items = tuple([label for part in parts for label in part])
    extents = [term.extents[label] for label in items]
    layout = Layout(extents, 0, [Product(found.middle, items, term.extents)])
    sizes = tuple([prod([term.extents[i] for i in part]) for part in parts])
    return _Middle(k, left, right, layout, items, sizes, diagonal)


def _entries(terms: Terms, v: _Vectors) -> Array:
    arrays = [terms.cores[c] for c, _ in v.factors]
    found = contract(arrays, tuple([w for _, w in v.factors]), v.out, v.extents)
    return found.reshape(v.sizes).astype(terms.dtype, copy=False)


def _between(terms: Terms, m: _Middle) -> Array | float:
    """The middle factors over left and right vectors; a label on both sides ties them."""
    if not m.items and not m.layout.terms[0].factors:
        return terms.coefs[m.term]
    lone = Terms(m.layout, terms.cores, (terms.coefs[m.term],))
    if m.layout.terms[0].labels() == m.items:
        full = np.broadcast_to(lone.values(0, m.items), m.layout.shape)
        return full.reshape(m.sizes)
    whole = np.zeros(m.layout.shape, terms.dtype)
    lone.accumulate(whole, 0, m.items)
    return whole.reshape(m.sizes)
