"""Factors of dense matrices by names that array libraries share, for arrays of a device."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...support.arrays import Array
from ...support.namespaces import namespace_of, on_host
from .dense import CANCELLED, NEARLY, asymmetry, if_regular, is_symmetric, singular_matrix_error


class ByNames:
    """One factored matrix (n, n), or a batch of them (count, n, n).

    Cholesky factors where these exist and no matrix is singular; else inverses, by which solutions
    are refined once. It is waited for to find out which, and for determinants.
    """

    def __init__(self, a: Array, what: str, least: float = 0.0, beside: Any = 0.0) -> None:
        self._xp, self._a, self._beside = namespace_of(a), a, np.asarray(beside)
        self._factor: Array | None = a if not a.size else None
        self._inverse: Array | None = None
        if a.size and (least or is_symmetric(a)):
            self._factor = self._cholesky(a)
        self.kind = "LU" if self._factor is None else "Cholesky"
        if self._factor is None:
            self._inverse = self._inverted(what)

    def _cholesky(self, a: Array) -> Array | None:
        """Factors with pivots that tell no matrix as singular, if there are such."""
        xp = self._xp
        try:
            with xp.errstate(linalg="raise"):
                factor: Array = xp.linalg.cholesky(a)
        except np.linalg.LinAlgError:
            return None
        pivots = on_host(xp.diagonal(factor, axis1=-2, axis2=-1))
        return (
            None
            if if_regular(pivots.reshape(-1, pivots.shape[-1]), self._beside) is None
            else factor
        )

    def _inverted(self, what: str) -> Array:
        xp, a = self._xp, self._a
        try:
            with xp.errstate(linalg="raise"):
                found: Array = xp.linalg.inv(a)
        except np.linalg.LinAlgError:
            raise self._singular(what) from None
        own, other = (on_host(xp.abs(m).sum(axis=-2).max(axis=-1)) for m in (a, found))
        rcond = np.atleast_1d(1 / (np.maximum(own, CANCELLED * self._beside) * other))
        bad = ~(rcond >= np.finfo(a.dtype).eps)
        if bad.any():
            raise self._singular(what, int(bad.argmax()), float(rcond[bad.argmax()]))
        return found

    def _singular(self, what: str, item: int | None = None, rcond: float = 0.0) -> Exception:
        """The error about one of the matrices, by default the first that LAPACK finds singular."""
        matrices = on_host(self._a).reshape(-1, *self._a.shape[-2:])
        if item is None:
            item = next((k for k, m in enumerate(matrices) if np.linalg.slogdet(m)[0] == 0), 0)
        known = rcond if np.isfinite(matrices[item]).all() else np.nan
        return singular_matrix_error(f"{what} {item}" if self._a.ndim > 2 else what, known)

    def solve(self, b: Array) -> Array:
        """The solution for columns b, of each matrix its own."""
        xp = self._xp
        if 0 in b.shape:
            return b
        if self._factor is not None:
            half = xp.solve_triangular(self._factor, b, lower=True)
            found: Array = xp.solve_triangular(self._factor, half, trans=1, lower=True)
            return found
        x: Array = self._inverse @ b
        x = x + self._inverse @ (b - self._a @ x)
        return x

    @property
    def negatives(self) -> Any:
        """Number of negative eigenvalues, nan if not symmetric; of a batch, one each."""
        if self._factor is not None:
            found = np.zeros(self._a.shape[:-2])
        elif asymmetry(self._a) <= NEARLY:
            values = on_host(self._xp.linalg.eigvalsh(self._a + self._a.mT))
            found = (values < 0).sum(axis=-1)
        else:
            found = np.full(self._a.shape[:-2], np.nan)
        return found

    def slogdet(self) -> tuple[Any, Any]:
        """Sign and logarithm of the absolute value of the determinant; of a batch, one each."""
        if self._factor is None:
            sign, log = (on_host(part) for part in self._xp.linalg.slogdet(self._a))
        else:
            pivots = on_host(self._xp.diagonal(self._factor, axis1=-2, axis2=-1))
            log = 2 * np.log(pivots.astype(np.float64)).sum(axis=-1)
            sign = np.ones(log.shape)
        return (sign, log) if self._a.ndim > 2 else (float(sign), float(log))

    def inverse(self) -> Array:
        if self._inverse is not None:
            return self._inverse
        n = self._a.shape[-1]
        eye = self._xp.eye(n, dtype=self._a.dtype)
        columns = self._xp.ascontiguousarray(self._xp.broadcast_to(eye, self._a.shape))
        found = self.solve(columns)
        symmetric: Array = (found + found.mT) / 2
        return symmetric
