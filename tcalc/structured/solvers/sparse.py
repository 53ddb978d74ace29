"""Sparse matrices, such as those of terms with tables: by diagonals, or by SuperLU."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from ...support.arrays import Array
from ...support.errors import LinAlgError
from ..terms.numeric_terms import Terms
from ..terms.patterns import assembled
from ..terms.tensor_layout import TensorLayout
from .banded import BandFactor, diagonals
from .base import SolveMethod
from .dense import NEARLY, singular_matrix_error
from .inverses import InverseSolver, InverseTerms, inverse_columns
from .selected import inverse_diagonal

#: Share of entries above which a dense factor is made, and size below which it always is.
MAX_SHARE, MIN_ROWS = 0.1, 50


class Sparse:
    """One sparse matrix, factored by diagonals where these hold little but entries, else by LU."""

    def __init__(self, terms: Terms) -> None:
        self.terms, self._layout, self.dtype = terms, terms.layout, terms.dtype
        self._diagonal: Array | None = None
        self._negatives: float | None = None
        held = assembled([[terms]]).tocsc()
        self._what = what = f"the sparse {terms.layout.size} x {terms.layout.size} matrix"
        if not np.isfinite(held.data).all():
            raise singular_matrix_error(what, float("nan"))
        found = diagonals(held)
        self._factor = _SuperLU(held, what) if found is None else BandFactor(found, what)
        self.text = self._factor.text

    def __reduce__(self) -> tuple[Any, ...]:
        return Sparse, (self.terms,)

    @property
    def nbytes(self) -> int:
        """Bytes of the factors."""
        return int(self._factor.nbytes)

    def solve(self, b: Array, turned: bool = False) -> Array:
        """The solution for right-hand sides b, with the transpose where `turned`."""
        flat = np.ascontiguousarray(b.reshape(self._layout.size, b.shape[-1]), self.dtype)
        found: Array = self._factor.solve(flat, turned) if b.size else flat
        return found.reshape(b.shape)

    @property
    def negatives(self) -> float:
        """As the factors tell; where these have pivots of rows, by others, with pivots in place."""
        if self._negatives is None:
            self._negatives = self._factor.negatives
            if np.isnan(self._negatives):
                self._negatives = _negatives_in_place(assembled([[self.terms]]).tocsc())
        return self._negatives

    def slogdet(self) -> tuple[float, float]:
        return self._factor.slogdet()

    def inverse(self) -> Terms:
        """By these factors, as inverses of sparse matrices are dense."""
        return InverseTerms(self, InverseSolver(self.terms, self.terms.times, self))

    def diagonal(self) -> Array:
        """The diagonal of the inverse, flat: from the factors, else by columns."""
        if self._diagonal is None:
            self._diagonal = self._selected()
        if self._diagonal is None:
            parts = [np.diagonal(found, -low).copy() for low, found in inverse_columns(self)]
            self._diagonal = np.concatenate(parts)
        return self._diagonal

    def _selected(self) -> Array | None:
        matrix = assembled([[self.terms]])
        factor = self._factor
        if isinstance(factor, BandFactor):
            try:  # LAPACK's pivots need not be those of SuperLU
                factor = _SuperLU(matrix.tocsc(), self._what, "NATURAL")
            except LinAlgError:
                return None
        return inverse_diagonal(matrix.tocoo(), factor.held)


#: Roundings of the largest entry of its row, below which a pivot may be what cancelled left.
SMALL = 256


class _SuperLU:
    """LU with an order of rows and columns in which little fills in."""

    text = "LU"

    def __init__(self, matrix: Any, what: str, order: str = "COLAMD") -> None:
        from scipy.sparse.linalg import splu

        self.held = _symmetric_factor(matrix, order if order == "NATURAL" else "MMD_AT_PLUS_A")
        self.negatives = 0.0
        if self.held is None or (self.held.U.diagonal() < 0).any():
            self.negatives = np.nan
            try:
                self.held = splu(matrix, order)
            except RuntimeError:
                raise singular_matrix_error(what, 0.0) from None
        self._pivots = self.held.U.diagonal()
        sizes = np.abs(self._pivots)
        eps = np.finfo(matrix.dtype).eps
        if not sizes.min() > eps * sizes.max():
            raise singular_matrix_error(what, float(sizes.min() / sizes.max()))
        if (sizes <= SMALL * eps * self._largest_beside(matrix)).any():
            rcond = self._rcond(matrix)
            if not rcond > eps:
                raise singular_matrix_error(what, rcond)

    def _largest_beside(self, matrix: Any) -> Array:
        """The largest entry of the row that each pivot is of, before anything was subtracted."""
        found: Array = np.empty_like(self._pivots)
        found[self.held.perm_r] = abs(matrix).max(axis=1).toarray().ravel()
        return found

    def _rcond(self, matrix: Any) -> float:
        """The reciprocal condition in the 1-norm, as estimated (Higham and Tisseur 2000)."""
        from scipy.sparse.linalg import LinearOperator, onenormest

        solves = [lambda b, t=t: self.held.solve(b.astype(matrix.dtype), t) for t in ("N", "T")]
        inverse = LinearOperator(matrix.shape, solves[0], solves[1], dtype=matrix.dtype)
        return float(1 / (onenormest(inverse) * abs(matrix).sum(axis=0).max()))

    @property
    def nbytes(self) -> int:
        """Bytes of the entries of the factors, and of their rows."""
        return int(self.held.nnz * (self._pivots.itemsize + 4))

    def solve(self, b: Array, turned: bool = False) -> Array:
        """The solution for columns b, with the transpose where `turned`."""
        found: Array = self.held.solve(b, "T" if turned else "N")
        return found

    def slogdet(self) -> tuple[float, float]:
        sign = np.prod(np.sign(self._pivots))
        sign *= _parity(self.held.perm_r) * _parity(self.held.perm_c)
        return float(sign), float(np.log(np.abs(self._pivots.astype(np.float64))).sum())


def _symmetric_factor(held: Any, order: str) -> Any:
    """LU with diagonal pivots of a matrix that is symmetric in five digits; None where it has no
    such factor."""
    from scipy.sparse.linalg import splu

    if abs(held - held.T).max() > NEARLY * abs(held).max():
        return None
    try:
        found = splu(held, order, diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    except RuntimeError:
        return None
    return found if np.array_equal(found.perm_r, found.perm_c) else None


def _negatives_in_place(held: Any) -> float:
    """Negative eigenvalues by LU with diagonal pivots, as many as those are, by Sylvester's law.

    Nothing keeps the pivots from being small: nan where entries grow so much that rounding errors
    may turn signs.
    """
    found = _symmetric_factor(held, "MMD_AT_PLUS_A")
    if (
        found is None
        or not abs(found.U).max() <= np.finfo(held.dtype).eps ** -0.25 * abs(held).max()
    ):
        return float("nan")
    return float((found.U.diagonal() < 0).sum())


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
