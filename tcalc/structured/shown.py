"""How compressed numbers are shown in notebooks, and their memory in words."""

from __future__ import annotations

from math import prod
from typing import Protocol

import numpy as np

from ..graph.extents import show_shape
from ..support import html
from ..support.arrays import Array
from ..support.byte_counts import show_bytes


class Held(Protocol):
    """A compressed tensor, or a matrix of blocks of these."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[np.generic]: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def cores(self) -> tuple[Array, ...]: ...
    def title(self) -> str: ...
    def notes(self) -> list[str]: ...


def held_bytes(held: Held) -> str:
    """The bytes of the cores, and those that the dense tensor would take."""
    dense = prod(held.shape) * held.dtype.itemsize
    return f"{show_bytes(held.nbytes)} held, dense {show_bytes(dense)}"


def cores_table(held: Held) -> str:
    """For notebooks: a row for each core."""
    rows = [
        (f"core {k}", show_shape(core.shape), core.dtype, show_bytes(core.nbytes))
        for k, core in enumerate(held.cores, 1)
    ]
    return html.table(held.title(), ("", "shape", "type", "memory"), rows, held.notes())
