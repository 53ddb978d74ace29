"""Errors where a dense array does not fit the memory allowed, before it is made."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...graph.extents import show_shape
from ...support.byte_counts import show_bytes
from ...support.errors import MemoryLimitError
from ..terms.tensor_layout import TensorLayout


def check_fits(what: str, shape: tuple[int, ...], dtype: Any, limit: int | None, held: int) -> None:
    """Refuse a dense array that takes more than `limit` bytes; `held` are those that it has now."""
    need = prod(shape) * np.dtype(dtype).itemsize
    if limit is not None and need > limit:
        raise MemoryLimitError(
            f"the dense {what} of shape {show_shape(shape)} takes {show_bytes(need)}, "
            f"{show_bytes(limit)} allowed; what is held takes {show_bytes(held)}"
        )


def too_large(layout: TensorLayout, itemsize: int, limit: int | None) -> MemoryLimitError:
    """The error where only a dense matrix would do and it does not fit."""
    n = prod(layout.column_shape)
    need, have = show_bytes(2.0 * n * n * itemsize), show_bytes(limit or 0)
    return MemoryLimitError(
        f"no structure of the tensor of shape {show_shape(layout.shape)} with "
        f"{len(layout.terms)} terms helps to solve, and a dense {n} x {n} matrix and its factor "
        f"take {need}, {have} allowed; scipy.sparse.linalg.cg(Hs.to_scipy(), g.ravel()) solves "
        "with products alone"
    )
