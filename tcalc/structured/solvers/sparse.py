"""Sparse matrices, such as those of terms with tables: by diagonals, or by SuperLU."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from ...support.arrays import Array
from ..terms.numeric_terms import Terms
from ..terms.patterns import assembled
from ..terms.tensor_layout import CoreProduct, TensorLayout
from .banded import BandFactor, diagonals
from .base import SolveMethod
from .dense import NEARLY, singular_matrix_error

#: Share of entries above which a dense factor is made, and size below which it always is.
MAX_SHARE, MIN_ROWS = 0.1, 50


class Sparse:
    """One sparse matrix, factored by diagonals where these hold little but entries, else by LU."""

    def __init__(self, terms: Terms) -> None:
        self._layout, self._dtype = terms.layout, terms.dtype
        held = assembled([[terms]]).tocsc()
        what = f"the sparse {terms.layout.size} x {terms.layout.size} matrix"
        if not np.isfinite(held.data).all():
            raise singular_matrix_error(what, float("nan"))
        found = diagonals(held)
        self._factor = _SuperLU(held, what) if found is None else BandFactor(found, what)
        self.text = self._factor.text

    def solve(self, b: Array) -> Array:
        flat = np.ascontiguousarray(b.reshape(self._layout.size, b.shape[-1]), self._dtype)
        found: Array = self._factor.solve(flat) if b.size else flat
        return found.reshape(b.shape)

    @property
    def definite(self) -> bool:
        return self._factor.definite

    def slogdet(self) -> tuple[float, float]:
        return self._factor.slogdet()

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


class _SuperLU:
    """LU with an order of rows and columns in which little fills in."""

    text = "LU"

    def __init__(self, held: Any, what: str) -> None:
        from scipy.sparse.linalg import splu

        self._factor = _symmetric_factor(held)
        self.definite = self._factor is not None
        if self._factor is None:
            try:
                self._factor = splu(held)
            except RuntimeError:
                raise singular_matrix_error(what, 0.0) from None
        self._pivots = self._factor.U.diagonal()
        sizes = np.abs(self._pivots)
        if not sizes.min() > np.finfo(held.dtype).eps * sizes.max():
            raise singular_matrix_error(what, float(sizes.min() / sizes.max()))

    def solve(self, b: Array) -> Array:
        found: Array = self._factor.solve(b)
        return found

    def slogdet(self) -> tuple[float, float]:
        sign = np.prod(np.sign(self._pivots))
        sign *= _parity(self._factor.perm_r) * _parity(self._factor.perm_c)
        return float(sign), float(np.log(np.abs(self._pivots.astype(np.float64))).sum())


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
    """Factors of a sparse matrix, where few entries differ from zero."""
    n = layout.size
    held = sum([term.entries() for term in layout.terms])
    if layout.tied or n < MIN_ROWS or held > MAX_SHARE * n * n:
        return []
    text = f"sparse: {held} entries of a {n} x {n} matrix"
    # What fills in is not known before; a grid in the plane is typical.
    flops, size = 30.0 * held * sqrt(n), 40.0 * held * itemsize
    return [SolveMethod(text, flops, size, Sparse, lambda s: f"{text}, {s.text}", host=True)]
