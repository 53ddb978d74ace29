"""Sparse matrices, such as those of terms with tables, by SuperLU with a fill-reducing order."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from ...support.arrays import Array
from ..terms.numeric_terms import Terms
from ..terms.patterns import assembled
from ..terms.tensor_layout import CoreProduct, TensorLayout
from .base import SolveMethod
from .dense import NEARLY, singular_matrix_error

#: Share of entries above which a dense factor is made, and size below which it always is.
MAX_SHARE, MIN_ROWS = 0.1, 50


class Sparse:
    """One sparse matrix, factored by LU."""

    _factor: Any

    def __init__(self, terms: Terms) -> None:
        from scipy.sparse.linalg import splu

        self._layout, self._dtype = terms.layout, terms.dtype
        n = terms.layout.size
        held = assembled([[terms]]).tocsc()
        what = f"the sparse {n} x {n} matrix"
        if not np.isfinite(held.data).all():
            raise singular_matrix_error(what, float("nan"))
        self._factor, self._symmetric = _symmetric_factor(held), True
        if self._factor is None:
            self._symmetric = False
            try:
                self._factor = splu(held)
            except RuntimeError:
                raise singular_matrix_error(what, 0.0) from None
        self._pivots = self._factor.U.diagonal()
        sizes = np.abs(self._pivots)
        if not sizes.min() > np.finfo(self._dtype).eps * sizes.max():
            raise singular_matrix_error(what, float(sizes.min() / sizes.max()))

    def solve(self, b: Array) -> Array:
        flat = np.ascontiguousarray(b.reshape(self._layout.size, b.shape[-1]), self._dtype)
        found: Array = self._factor.solve(flat) if b.size else flat
        return found.reshape(b.shape)

    @property
    def definite(self) -> bool:
        return self._symmetric

    def slogdet(self) -> tuple[float, float]:
        sign = np.prod(np.sign(self._pivots))
        sign *= _parity(self._factor.perm_r) * _parity(self._factor.perm_c)
        return float(sign), float(np.log(np.abs(self._pivots.astype(np.float64))).sum())

    def inverse(self) -> Terms:
        """Dense, as inverses of sparse matrices are."""
        shape, rank = self._layout.shape, self._layout.columns
        eye = np.eye(self._layout.size, dtype=self._dtype)
        core = self.solve(eye.reshape((*self._layout.row_shape, -1))).reshape(shape)
        axes = tuple(range(len(shape)))
        return Terms(
            TensorLayout(shape, rank, [CoreProduct(((0, axes),), axes, shape)]),
            (np.array(core),),
            (1.0,),
        )


def _symmetric_factor(held: Any) -> Any:
    """LU with diagonal pivots of a definite matrix that is symmetric in five digits; else None."""
    from scipy.sparse.linalg import splu

    if abs(held - held.T).max() > NEARLY * abs(held).max():
        return None
    try:
        found = splu(held, "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    except RuntimeError:
        return None
    straight = np.array_equal(found.perm_r, found.perm_c)
    return found if straight and (found.U.diagonal() > 0).all() else None


def _parity(order: Array) -> float:
    """Sign of a permutation: from the number of its cycles."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    n = len(order)
    links = csr_array((np.ones(n), (np.arange(n), order)), shape=(n, n))
    cycles, _ = connected_components(links, directed=False)
    return -1.0 if (n - cycles) % 2 else 1.0


def solve_methods(layout: TensorLayout, itemsize: int) -> list[SolveMethod]:
    """LU of a sparse matrix, where few entries differ from zero."""
    n = layout.size
    held = sum([term.entries() for term in layout.terms])
    if layout.tied or n < MIN_ROWS or held > MAX_SHARE * n * n:
        return []
    text = f"sparse: {held} entries of a {n} x {n} matrix, LU"
    # What fills in is not known before; a grid in the plane is typical.
    flops, size = 30.0 * held * sqrt(n), 40.0 * held * itemsize
    return [SolveMethod(text, flops, size, Sparse, host=True)]
