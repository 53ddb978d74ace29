"""Matrices whose entries lie near the diagonal, such as those of splines and of time series."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...support.arrays import Array
from ...support.records import NamedTuple
from .dense import NEARLY, ROUNDED, lapack, singular_matrix_error

#: How many times as many places as entries the diagonals may have between which all entries lie.
MAX_FILL = 4


class Diagonals(NamedTuple):
    """A matrix by its diagonals: entry (i, j) stands at ``held[above + i - j, j]``."""

    held: Array
    below: int
    above: int

    def part(self, sign: int) -> Array:
        """Diagonals 0 to `below` of A + sign A'; both sides must be as wide."""
        n, w = self.held.shape[1], self.below
        lower = self.held[self.above :].copy()
        for k in range(w + 1):
            lower[k, : n - k] += sign * self.held[self.above - k, k:]
        return lower


def diagonals(matrix: Any) -> Diagonals | None:
    """Those of a sparse matrix without duplicates; None where they hold far more."""
    entries = matrix.tocoo()
    n, apart = matrix.shape[0], entries.row - entries.col
    below, above = int(apart.max(initial=0)), int(-apart.min(initial=0))
    if n * (below + above + 1) > MAX_FILL * max(n, entries.nnz):
        return None
    held = np.zeros((below + above + 1, n), matrix.dtype)
    held[above + apart, entries.col] = entries.data
    return Diagonals(held, below, above)


class BandFactor:
    """One matrix by its diagonals, as LAPACK's pbtrf or gbtrf factors it."""

    def __init__(self, found: Diagonals, what: str) -> None:
        held, self._below, self._above = found
        self._call = call = lapack(held.dtype.char)
        self._eps = float(np.finfo(held.dtype).eps)
        self.kind, self.negatives = "LU", np.nan
        largest = float(np.abs(held).max(initial=0))
        apart = np.inf
        if self._below == self._above and largest > 0:
            apart = float(np.abs(found.part(-1)).max(initial=0)) / largest
        if apart <= NEARLY:
            lower = found.part(1) / 2 if apart else held[self._above :]
            factor, info = call["pbtrf"](lower, lower=1)
            if info == 0:
                self.negatives = 0.0
                if apart <= ROUNDED * self._eps:
                    self.kind, self._factor = "Cholesky", factor
        if self.kind == "LU":
            room = np.zeros((self._below, held.shape[1]), held.dtype)
            self._factor, self._pivots, _ = call["gbtrf"](
                np.concatenate([room, held]), self._below, self._above
            )
        sizes = np.abs(self._diagonal()) ** (2 if self.kind == "Cholesky" else 1)
        if not sizes.min() > self._eps * sizes.max():
            known = float(sizes.min() / sizes.max()) if sizes.max() > 0 else 0.0
            raise singular_matrix_error(what, known)

    @property
    def text(self) -> str:
        return f"{self._below + self._above + 1} diagonals, {self.kind}"

    def _diagonal(self) -> Array:
        row = 0 if self.kind == "Cholesky" else self._below + self._above
        diagonal: Array = self._factor[row]
        return diagonal

    @property
    def nbytes(self) -> int:
        """Bytes of the diagonals of the factors, and of pivots."""
        return int(self._factor.nbytes + (0 if self.kind == "Cholesky" else self._pivots.nbytes))

    def solve(self, b: Array, turned: bool = False) -> Array:
        """The solution for columns b, with the transpose where `turned`."""
        call = self._call
        if self.kind == "Cholesky":
            found, info = call["pbtrs"](self._factor, b, lower=1)
        else:
            band = self._factor, self._below, self._above
            found, info = call["gbtrs"](*band, b, self._pivots, trans=int(turned))
        assert info == 0
        result: Array = found
        return result

    def slogdet(self) -> tuple[float, float]:
        """Sign and logarithm of the absolute value of the determinant."""
        diagonal = self._diagonal().astype(np.float64)
        log = float(np.log(np.abs(diagonal)).sum())
        if self.kind == "Cholesky":
            return 1.0, 2 * log
        swaps = np.count_nonzero(self._pivots != np.arange(len(diagonal)))
        return float(np.prod(np.sign(diagonal))) * (-1) ** swaps, log
