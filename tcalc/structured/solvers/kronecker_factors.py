"""The matrices whose Kronecker product a term is."""

from __future__ import annotations

from functools import lru_cache
from math import prod

import numpy as np

from ...graph.nodes import Labels
from ...support.arrays import Array
from ...support.namespaces import namespace_of
from ...support.records import NamedTuple
from ..terms.numeric_terms import Terms
from ..terms.tensor_layout import CoreProduct, OutputIndex, TableIndex, TensorLayout
from .base import Unsuitable
from .dense import NEARLY, greatest


class KroneckerFactor(NamedTuple):
    """A matrix of a Kronecker product: the arrays it is made of, its row and its column axes."""

    rows: Labels
    columns: Labels
    factors: tuple[tuple[int, Labels], ...]


@lru_cache(1024)
def kronecker_factors(term: CoreProduct, axes: Labels) -> tuple[KroneckerFactor, ...] | None:
    """The term as a Kronecker product over some axes, None if it is none.

    Arrays that share a label, other than labels of tied axes, belong to one factor; scalars belong
    to the first.
    """
    half = len(term.out) // 2
    rows, columns = ([term.out[o + k] for k in axes] for o in (0, half))
    batch = {term.out[k] for k in range(half) if k not in axes}
    if term.has_tables or len({*rows}) < len(axes) or len({*columns}) < len(axes):
        return None
    groups: list[tuple[set[OutputIndex], list[tuple[int, Labels]]]] = [
        ({i}, []) for i in rows + columns
    ]
    for core, word in term.factors:
        labels: set[OutputIndex] = {i for i in word if i not in batch}
        joined = [g for g in groups if g[0] & labels]
        groups = [g for g in groups if not g[0] & labels]
        together = [f for _, factors in joined for f in factors]
        groups.append((labels.union(*(g[0] for g in joined)), [*together, (core, word)]))
    merged: list[tuple[set[OutputIndex], list[tuple[int, Labels]]]] = []
    for labels, factors in groups:
        same = next((g for g in merged if g[0] & labels), None)
        if same is None:
            merged.append((set(labels), factors))
    found, loose = [], []
    for labels, factors in merged:
        left = tuple([k for k, item in zip(axes, rows, strict=True) if item in labels])
        right = tuple([k for k, item in zip(axes, columns, strict=True) if item in labels])
        if not left and not right:
            loose += factors
        elif not (left and right) or _extent(term, left, 0) != _extent(term, right, half):
            return None
        else:
            found.append(KroneckerFactor(left, right, tuple(factors)))
    found.sort()
    if found:
        found[0] = found[0]._replace(factors=(*found[0].factors, *loose))
    return tuple(found)


def _extent(term: CoreProduct, axes: Labels, offset: int) -> int:
    """Number of entries along row axes (offset 0) or column axes of a term without tables."""
    items = [term.out[offset + k] for k in axes]
    return prod([term.extents[i] for i in items if not isinstance(i, TableIndex)])


def factor_matrix(terms: Terms, k: int, part: KroneckerFactor, carried: Labels) -> Array:
    """One factor as an array (*extents of the axes `carried`, n, n), without the coefficient."""
    term = terms.layout.terms[k]
    half = len(term.out) // 2
    items = tuple([term.out[j] for j in (*carried, *part.rows)]) + tuple(
        [term.out[half + j] for j in part.columns]
    )
    sizes = [terms.layout.column_shape[j] for j in (*carried, *part.rows, *part.columns)]
    whole: Array = terms.xp.zeros(tuple(sizes), terms.dtype)
    held = CoreProduct(part.factors, items, term.extents)
    Terms(TensorLayout(sizes, 0, [held]), terms.cores, (1.0,)).accumulate(whole, 0, items)
    n = prod(sizes[len(carried) : len(carried) + len(part.rows)])
    return whole.reshape((*sizes[: len(carried)], n, n))


def multiple_of(a: Array, of: Array) -> float:
    """The number c with a = c * of."""
    place = int(namespace_of(of).abs(of).argmax()) if of.size else 0
    found, wanted = (float(m.ravel()[place]) if of.size else 0.0 for m in (a, of))
    if wanted == 0:
        raise Unsuitable("a zero matrix")
    scale = float(a.dtype.type(found) / of.dtype.type(wanted))
    bound = 8 * np.finfo(of.dtype).eps * abs(found)
    if not greatest(a - scale * of) <= bound:
        raise Unsuitable("two matrices that are no multiples of each other")
    return scale


def signs_of_multiples(a: Array, of: Array) -> Array:
    """The sign of each c with a = c * of in five digits, of a batch of matrices; else nan."""
    c = (a * of).sum((-2, -1)) / (of * of).sum((-2, -1))
    apart = np.abs(a - c[..., None, None] * of).max((-2, -1))
    return np.where(apart <= NEARLY * np.abs(a).max((-2, -1)), np.sign(c), np.nan)
