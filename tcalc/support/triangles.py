"""Halves of square arrays, in place, by blocks that stay in cache."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from .arrays import Array

#: Rows of such a block.
BLOCK = 64


def mirrored(a: Array) -> None:
    """Copy the lower triangle over the upper one, in place."""
    for low in range(0, len(a), BLOCK):
        high = low + BLOCK
        a[low:high, high:] = a[high:, low:high].T
        corner = a[low:high, low:high]
        np.copyto(corner, corner.T.copy(), where=above(len(corner)))


def turned(a: Array) -> None:
    """Transpose an upper triangle in place, with zeros where it was."""
    for low in range(0, len(a), BLOCK):
        high = low + BLOCK
        corner = a[low:high, low:high]
        corner[...] = corner.T.copy()
        a[high:, low:high] = a[low:high, high:].T
        a[low:high, high:] = 0


def without_upper(a: Array) -> None:
    """Zeros above the diagonal, in place."""
    for low in range(0, len(a), BLOCK):
        high = low + BLOCK
        a[low:high, high:] = 0
        corner = a[low:high, low:high]
        np.copyto(corner, 0, where=above(len(corner)))


@lru_cache(BLOCK)
def above(n: int) -> Array:
    """Where a square's entries are above its diagonal."""
    return ~np.tri(n, dtype=bool)


def is_mirrored(a: Array) -> bool:
    """Are the two halves of each square equal?"""
    for low in range(0, a.shape[-1], BLOCK):
        rows, columns = a[..., low : low + BLOCK, low:], a[..., low:, low : low + BLOCK]
        if not np.array_equal(rows, columns.mT):
            return False
    return True
