"""Solving inside the subspace of arrays with a property, such as the symmetric matrices.

In general in coordinates, by an orthonormal basis of the subspace. A ⊗ A and A ⊗ I + I ⊗ A map
symmetric matrices to symmetric ones, so that no coordinates are needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log, prod
from typing import Any

import numpy as np

from ...graph.subspaces import Slot, Subspace, projected
from ...support.arrays import Array
from ...support.namespaces import namespace_of
from ..terms.numeric_terms import Terms
from ..terms.tensor_layout import CoreProduct, TensorLayout
from . import kronecker
from .base import Solver, Unsuitable
from .factors import factorise
from .kronecker import Kronecker
from .kronecker_factors import kronecker_factors
from .kronecker_sums import EigenbasisSolver
from .memory import too_large
from .schur import basis_for

SYMMETRIC = Subspace(mirror=1)


def projected_terms(terms: Terms, slot: Slot) -> Terms:
    """The terms projected onto the subspace of a slot.

    Symmetry doubles the number of terms, zeros outside a triangle are one more factor a term.
    """
    if slot.subspace.mirror:
        terms = _with_mirrored(terms, slot)
    return _with_mask(terms, slot) if slot.subspace.free else terms


def _with_mirrored(terms: Terms, slot: Slot) -> Terms:
    layout, half = terms.layout, terms.scaled(0.5)
    order = list(range(len(layout.shape)))
    order[slot.i], order[slot.j] = slot.j, slot.i
    swapped = [t._replace(out=tuple([t.out[k] for k in order])) for t in layout.terms]
    coefs = tuple([c * slot.subspace.mirror for c in half.coefs])
    other = TensorLayout(layout.shape, layout.columns, swapped)
    return half.plus(Terms(other, half.cores, coefs)).shared()


def _with_mask(terms: Terms, slot: Slot) -> Terms:
    layout = terms.layout
    cores, products = list(terms.cores), []
    free = terms.xp.asarray(slot.subspace.mask(layout.shape[slot.i]), terms.dtype)
    for k, term in enumerate(layout.terms):
        items = (term.out[slot.i], term.out[slot.j])
        labels = term.labels(items)
        rows, columns = terms.indices(k, labels, items)
        factor = (len(cores), labels)
        cores.append(free[rows, columns])
        products.append(CoreProduct((*term.factors, factor), term.out, term.extents))
    return Terms(TensorLayout(layout.shape, layout.columns, products), cores, terms.coefs)


def basis(shape: Sequence[int], slots: Sequence[Slot]) -> Any:
    """An orthonormal basis of the subspace, as columns of a sparse matrix.

    An entry and its mirror image share a column; an entry on the diagonal has its own.
    """
    import scipy.sparse

    place = np.arange(prod(shape)).reshape(shape)
    twin, sign = place, 1
    free = np.ones(shape, bool)
    for i, j, subspace in slots:
        if subspace.mirror:
            twin, sign = twin.swapaxes(i, j), sign * subspace.mirror
        spread = [shape[i] if k in (i, j) else 1 for k in range(len(shape))]
        free = free & subspace.mask(shape[i]).reshape(spread)
    first = (free & (place <= twin if sign > 0 else place < twin)).ravel()
    rows, partner = place.ravel()[first], twin.ravel()[first]
    count = len(rows)
    values = np.where(rows == partner, 0.5, np.sqrt(0.5))
    columns = np.arange(count)
    return scipy.sparse.csr_array(
        (
            np.concatenate([values, sign * values]),
            (np.concatenate([rows, partner]), np.concatenate([columns, columns])),
        ),
        shape=(place.size, count),
    )


class Coordinates:
    """One dense matrix in coordinates of the subspace."""

    def __init__(self, terms: Terms, columns: Sequence[Slot], limit: int | None) -> None:
        layout = terms.layout
        n = layout.size
        if limit is not None and 2 * n * n * terms.dtype.itemsize > limit:
            raise too_large(layout, terms.dtype.itemsize, limit)
        self._layout, self.dtype = layout, terms.dtype
        self._xp = xp = terms.xp
        self._basis = basis_for(basis(layout.column_shape, columns), xp)
        dense = terms.dense().reshape(n, n)
        reduced = xp.asarray(self._basis.T @ (self._basis.T @ dense.T).T).astype(terms.dtype)
        q = len(reduced)
        what = f"the {q} x {q} matrix inside the subspace of the variable"
        self._factor = factorise(reduced, what)

    def solve(self, b: Array) -> Array:
        flat = b.reshape(self._layout.size, b.shape[-1])
        columns = self._xp.asarray(self._basis.T @ flat, self.dtype)
        found = self._basis @ self._factor.solve(columns)
        result: Array = found.astype(self.dtype, copy=False).reshape(b.shape)
        return result

    @property
    def negatives(self) -> float:
        return float(self._factor.negatives)

    def slogdet(self) -> tuple[float, float]:
        sign, log = self._factor.slogdet()
        return sign, log

    def inverse(self) -> Terms:
        half = self._basis @ self._factor.inverse()
        dense = self._xp.asarray((self._basis @ half.T).T, self.dtype).reshape(self._layout.shape)
        axes = tuple(range(dense.ndim))
        product = CoreProduct(((0, axes),), axes, dense.shape)
        return Terms(TensorLayout(dense.shape, self._layout.columns, [product]), (dense,), (1.0,))


def _uncrossed(terms: Terms) -> Terms:
    """Products with crossed axes, A_il B_jk, uncrossed: on symmetric matrices both are the same."""
    layout = terms.layout
    products = []
    for term in layout.terms:
        crossed = any(p.rows != p.columns for p in kronecker_factors(term, (0, 1)) or ())
        i, j, k, l = term.out
        products.append(term._replace(out=(i, j, l, k)) if crossed else term)
    return Terms(TensorLayout(layout.shape, layout.columns, products), terms.cores, terms.coefs)


class SymmetricKronecker:
    """A Kronecker product, or a sum of them, that maps symmetric matrices to symmetric ones."""

    _solver: EigenbasisSolver | Kronecker

    def __init__(self, terms: Terms, slot: Slot, limit: int | None) -> None:
        self._slot = slot
        if terms.layout.columns != 2 or terms.layout.tied:
            raise Unsuitable("further axes")
        self._n = terms.layout.column_shape[0]
        held = _uncrossed(terms)
        found = kronecker.solve_methods(held.layout, terms.dtype.itemsize)
        if not found or (limit is not None and found[0].bytes > limit):
            raise Unsuitable("no Kronecker product")
        self.method = found[0]
        self._solver = found[0].build(held)
        if isinstance(self._solver, EigenbasisSolver):
            first, last = self._solver.vectors[0], self._solver.vectors[-1]
            same = bool(namespace_of(first).array_equal(first, last))
            swapped = np.allclose(self._solver.values, self._solver.values.T, 1e-12, 0)
            if not (same and swapped):
                raise Unsuitable("not symmetric in the two axes")
        else:
            self._scale = self._solver.scale_of_square()

    def solve(self, b: Array) -> Array:
        return projected(self._solver.solve(b), self._slot)

    @property
    def negatives(self) -> float:
        """Of c A ⊗ A: the products of two eigenvalues, each pair once, are negative or positive."""
        n = self._n
        if isinstance(self._solver, EigenbasisSolver):
            return float((self._solver.values[np.tril_indices(n)] < 0).sum())
        below = float(self._solver.factors[1].negatives)
        unlike = below * (n - below)
        return unlike if self._scale > 0 else n * (n + 1) / 2 - unlike

    def slogdet(self) -> tuple[float, float]:
        """Of c A ⊗ A: c to the dimension of the subspace, det(A) to n + 1."""
        n = self._n
        size = n * (n + 1) // 2
        if isinstance(self._solver, EigenbasisSolver):
            values = self._solver.values[np.tril_indices(n)]
            return float(np.prod(np.sign(values))), float(np.log(np.abs(values)).sum())
        sign, value = self._solver.slogdets()[1]
        scale = self._scale
        signs = (1 if scale > 0 else -1) ** size * sign ** (n + 1)
        return signs, size * log(abs(scale)) + (n + 1) * value

    def inverse(self) -> Terms:
        return self._solver.inverse()


def factor_inside(terms: Terms, columns: Sequence[Slot], limit: int | None) -> tuple[Solver, str]:
    """The solver of a tensor whose slots are projected, and its description."""
    if len(columns) == 1 and columns[0].subspace == SYMMETRIC:
        try:
            solver = SymmetricKronecker(terms, columns[0], limit)
        except (Unsuitable, np.linalg.LinAlgError):
            pass
        else:
            return solver, f"inside the symmetric matrices: {solver.method.text}"
    made = Coordinates(terms, columns, limit)
    return made, "inside the subspace of the variable's properties: dense, in coordinates"
