"""Sums of Kronecker products that share eigenvectors.

Where every term is, along each group of axes, the identity or a multiple of one symmetric matrix
(A ⊗ I + I ⊗ B, A ⊗ B + c I), the sum is diagonal in the eigenvectors of these matrices.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod

import numpy as np

from ...graph.nodes import Labels
from ...support.arrays import Array
from ...support.namespaces import namespace_of, on_host
from ...support.records import NamedTuple
from ..terms.numeric_terms import Terms
from ..terms.tensor_layout import CoreProduct, TensorLayout
from .base import Unsuitable
from .dense import is_symmetric, singular_matrix_error
from .kronecker_factors import KroneckerFactor, factor_matrix, kronecker_factors, multiple_of


class KroneckerSum(NamedTuple):
    """Groups of axes; table[term][group] is the factor there, or None for the identity."""

    groups: tuple[Labels, ...]
    table: tuple[tuple[KroneckerFactor | None, ...], ...]


@lru_cache(1024)
def kronecker_sum(layout: TensorLayout) -> KroneckerSum | None:
    """The finest groups of axes over which every term is a Kronecker product, if two or more."""
    axes = tuple([k for k in range(layout.columns) if k not in layout.tied])
    found = []
    groups: list[set[int]] = [{k} for k in axes]
    for term in layout.terms:
        split = kronecker_factors(term, axes)
        batch = {term.out[k] for k in layout.tied}
        if not split or any(p.rows != p.columns for p in split):
            return None
        if any(batch.intersection(word) for _, word in term.factors):
            return None
        found.append(split)
        for part in split:
            joined = set(part.rows).union(*(g for g in groups if g & {*part.rows}))
            groups = [g for g in groups if not g & joined] + [joined]
    if len(groups) < 2:
        return None
    order = tuple(sorted([tuple(sorted(g)) for g in groups]))
    table = []
    for split in found:
        row: list[KroneckerFactor | None] = []
        for group in order:
            inside = [p for p in split if p.rows[0] in group]
            factors = tuple([f for p in inside for f in p.factors])
            row.append(KroneckerFactor(group, group, factors) if factors else None)
        table.append(tuple(row))
    return KroneckerSum(order, tuple(table))


class EigenbasisSolver:
    """A sum of Kronecker products in the eigenvectors that its terms have in common."""

    def __init__(self, terms: Terms) -> None:
        layout = terms.layout
        found = kronecker_sum(layout)
        assert found is not None
        self._layout, self.groups = layout, found.groups
        self.vectors: list[Array] = []
        values = []
        scales = np.ones((len(layout.terms), len(found.groups)))
        # Where a term is a matrix, not a number times the identity.
        full = np.zeros(scales.shape, bool)
        for g in range(len(found.groups)):
            first: Array | None = None
            for k, row in enumerate(found.table):
                if (part := row[g]) is None:
                    continue
                held = factor_matrix(terms, k, part, ())
                number = _multiple_of_identity(held)
                full[k, g] = number is None
                if number is not None:
                    scales[k, g] = number
                elif first is None:
                    first = held
                else:
                    scales[k, g] = multiple_of(held, first)
            if first is None:
                n = prod([layout.column_shape[axis] for axis in found.groups[g]])
                first = terms.xp.eye(n, dtype=terms.dtype)
            if not is_symmetric(first) or not terms.xp.isfinite(first).all():
                raise Unsuitable("no common eigenvectors")
            w, q = terms.xp.linalg.eigh(first)
            values.append(on_host(w))
            self.vectors.append(q)
        self.values = _spectrum(values, scales, full, terms.coefs)
        self._divisors = terms.xp.asarray(self.values)
        size = np.abs(self.values)
        if size.size and not size.min() > np.finfo(terms.dtype).eps * size.max():
            rcond = float(size.min() / (size.max() or 1.0))
            raise singular_matrix_error(f"the {layout.size} x {layout.size} matrix", rcond)

    def solve(self, b: Array) -> Array:
        order = (*(k for group in self.groups for k in group), *self._layout.tied, b.ndim - 1)
        sizes = [b.shape[k] for k in order]
        spread = (*self.values.shape, -1)
        x = self._rotated(b.transpose(order).reshape(spread), forward=True)
        x = self._rotated(x / self._divisors[..., None], forward=False)
        return x.reshape(sizes).transpose(np.argsort(order).tolist())

    def _rotated(self, x: Array, forward: bool) -> Array:
        for axis, q in enumerate(self.vectors):
            xp = namespace_of(x)
            moved = xp.tensordot(q, x, ([0 if forward else 1], [axis]))
            x = xp.moveaxis(moved, 0, axis)
        return x

    @property
    def negatives(self) -> float:
        times = prod([self._layout.column_shape[k] for k in self._layout.tied])
        return float((self.values < 0).sum()) * times

    def slogdet(self) -> tuple[float, float]:
        times = prod([self._layout.column_shape[k] for k in self._layout.tied])
        sign = float(np.prod(np.sign(self.values))) ** times
        return sign, times * float(np.log(np.abs(self.values)).sum())

    def inverse(self) -> Terms:
        rank, shape = self._layout.columns, self._layout.column_shape
        second = {k: k if k in self._layout.tied else rank + k for k in range(rank)}
        factors, cores = [], []
        eigen = tuple(range(2 * rank, 2 * rank + len(self.groups)))
        for g, group in enumerate(self.groups):
            cores.append(self.vectors[g].reshape([*(shape[k] for k in group), -1]))
            factors.append((g, (*group, eigen[g])))
            factors.append((g, (*(second[k] for k in group), eigen[g])))
        cores.append(1 / self._divisors)
        factors.append((len(self.groups), eigen))
        extents = (*shape, *shape, *self.values.shape)
        product = CoreProduct(tuple(factors), (*range(rank), *second.values()), extents)
        return Terms(TensorLayout(self._layout.shape, rank, [product]), cores, (1.0,))


def _spectrum(values: list[Array], scales: Array, full: Array, coefs: tuple[float, ...]) -> Array:
    """Eigenvalues of the sum, one axis a group."""
    total = np.zeros([len(w) for w in values], values[0].dtype)
    for k, coef in enumerate(coefs):
        term = np.asarray(coef * scales[k].prod(), total.dtype)
        for g, w in enumerate(values):
            if full[k, g]:
                spread = [1] * len(values)
                spread[g] = -1
                term = term * w.reshape(spread)
        total += term
    return total


def _multiple_of_identity(a: Array) -> float | None:
    """The number c with a = c * identity, if there is one."""
    xp = namespace_of(a)
    diagonal = xp.diagonal(a)
    if xp.count_nonzero(a) > xp.count_nonzero(diagonal) or (diagonal != diagonal[0]).any():
        return None
    return float(diagonal[0])
