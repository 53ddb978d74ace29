"""Memory for one tile of a loop."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...plan.tiles import Sliced, Tiling
from ...support.arrays import Array, Sizes


def temporaries(tiling: Tiling, dtype: np.dtype[Any]) -> list[tuple[Sliced, Array]]:
    """Arrays for one tile of everything in buffers that exists in the loop only."""
    plan, loop, memory = tiling.plan, tiling.loop, tiling.memory()
    held: dict[int, Array] = {}
    shaped: dict[tuple[int, Sizes], Array] = {}
    found = []
    for sliced in tiling.held:
        owner = plan.owner[sliced.slot]
        place = memory[owner]
        if place not in held:
            held[place] = np.empty(prod(plan.shapes[owner]) // loop.rows * loop.tile, dtype)
        shape = sliced.shape(plan.shapes[sliced.slot], loop.tile)
        if (place, shape) not in shaped:
            shaped[place, shape] = held[place].reshape(shape)
        found.append((sliced, shaped[place, shape]))
    return found
