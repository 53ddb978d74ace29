"""CuPy's factorisations, of which none is waited for.

CuPy either ignores that a routine failed, or waits for each one to see whether it did
(``cupyx.errstate(linalg="raise")``), and what a failed routine leaves is not documented. So while
it ignores, results are tried on the device: one vector z has to satisfy L L' z = A z, A X z = B z
or V diag(w) V' z = A z to rounding, which nothing does that is not a factor of a matrix that near.
A Cholesky factor of one matrix is cuSOLVER's own, whose status stays on the device. A call of which
every result is in order waits for none of them; another is made again, and CuPy tells.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NoReturn

from ...support.arrays import AnyArray
from ...support.conditions import looked_at_later
from ...support.namespaces import ArrayNamespace
from .triangles import lower_factor

#: Units of rounding times rows by which products with the vector may differ. One that is too
#: small costs a second run where it is exceeded, no number.
ROUNDINGS = 32


class Doubt(Exception):
    """A result is not what it should be: only CuPy knows whether its routine has failed."""


def _doubt(bad: Any) -> NoReturn:
    raise Doubt


class Factorisations:
    """``cupy.linalg``, whose results are tried unless CuPy raises where one fails.

    A QR decomposition has no way to fail, and of determinants a zero pivot is none.
    """

    def __init__(self, xp: ArrayNamespace) -> None:
        self._xp = xp
        self._own = import_module("cupy.linalg")
        self._state = import_module("cupyx").geterr

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def _trusting(self, a: AnyArray) -> bool:
        return bool(a.size) and self._state()["linalg"] != "raise"

    def cholesky(self, a: AnyArray) -> AnyArray:
        xp, trusting = self._xp, self._trusting(a)
        if trusting and a.ndim == 2:
            factor, bad = lower_factor(xp, a)
            looked_at_later(bad, _doubt)
            return factor
        factor = self._own.cholesky(a)
        if trusting:
            z = self._vector(a)
            pivots = xp.diagonal(factor, axis1=-2, axis2=-1)
            size = xp.abs(xp.diagonal(a, axis1=-2, axis2=-1)).max(axis=-1)
            self._compare(factor @ (xp.swapaxes(factor, -1, -2) @ z), a @ z, size)
            looked_at_later(~(pivots > 0), _doubt)
        return factor

    def inv(self, a: AnyArray) -> AnyArray:
        found = self._own.inv(a)
        if self._trusting(a):
            z = self._vector(a)
            self._solved(a, found @ z, z)
        return found

    def solve(self, a: AnyArray, b: AnyArray) -> AnyArray:
        found = self._own.solve(a, b)
        if self._trusting(a) and b.size:
            columns = b.ndim > 1
            z = self._vector(b) if columns else None
            self._solved(a, found @ z if columns else found, b @ z if columns else b)
        return found

    def eigh(self, a: AnyArray) -> tuple[AnyArray, AnyArray]:
        w, v = self._own.eigh(a)
        if self._trusting(a):
            z = self._vector(a)
            rotated = w[..., None] * (self._xp.swapaxes(v, -1, -2) @ z)
            self._compare(v @ rotated, a @ z, self._xp.abs(w).max(axis=-1))
        return w, v

    def svd(self, a: AnyArray, full_matrices: bool) -> tuple[AnyArray, AnyArray, AnyArray]:
        u, s, vh = self._own.svd(a, full_matrices=full_matrices)
        if self._trusting(a) and not full_matrices:
            z = self._vector(a)
            self._compare(u @ (s[..., None] * (vh @ z)), a @ z, s.max(axis=-1))
        return u, s, vh

    def _vector(self, a: AnyArray) -> AnyArray:
        """One column for the last axis, in no special direction."""
        found = self._xp.cos(self._xp.arange(1, a.shape[-1] + 1, dtype=a.dtype))
        return found[:, None]

    def _solved(self, a: AnyArray, x: AnyArray, b: AnyArray) -> None:
        xp, axes = self._xp, (-2, -1)
        sides = x if x.ndim > 1 else x[:, None]
        entry = xp.maximum(a.max(axis=axes), -a.min(axis=axes))
        size = entry * xp.abs(sides).sum(axis=axes) + xp.abs(b).max()
        self._compare(a @ sides, b if b.ndim > 1 else b[:, None], size)

    def _compare(self, found: AnyArray, wanted: AnyArray, size: AnyArray) -> None:
        """A doubt unless products (..., n, 1) are equal to rounding of numbers of a size."""
        rounding = ROUNDINGS * found.shape[-2] * self._xp.finfo(found.dtype).eps
        missed = self._xp.abs(found - wanted).max(axis=(-2, -1))
        looked_at_later(~((missed <= rounding * size) & (missed < self._xp.inf)), _doubt)
