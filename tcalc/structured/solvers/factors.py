"""Which factors of dense matrices: LAPACK's on the host, the library's own names elsewhere."""

from __future__ import annotations

from typing import Any

from ...support.arrays import Array
from ...support.namespaces import on_device
from .by_names import ByNames
from .dense import Batch, Dense


def factorise(a: Array, what: str, item: str = "", least: float = 0.0, beside: Any = 0.0) -> Any:
    """Factors of (n, n) or (batch, n, n); `least` is a lower bound of eigenvalues, 0 if unknown.

    `what` names the matrix in errors, `item` one of a batch, in front of its number. `beside` is
    the largest entry of what the matrix is a sum of, of a batch one each: what cancels to a few
    units of its rounding is singular, however well conditioned the rest looks.
    """
    if on_device(a):
        return ByNames(a, what if a.ndim == 2 else item, least, beside)
    return Dense(a, what, least, beside) if a.ndim == 2 else Batch(a, item, least, beside)
