"""asdex: sparse Hessians by colouring; pattern and colours are found outside the clock.

Its products are jax's, so jax does not check them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import asdex
import jax
import numpy as np
from jax.flatten_util import ravel_pytree
from scipy import sparse

from ..nests import Nest, flat, unflat
from ..problem import Task
from . import Entry
from .jaxes import split

LARGEST = 5000  # unknowns for which the colours are found in seconds
TANGENTS = 2**28  # bytes of one array's tangents for all colours; there are some of them at once


def make(task: Task) -> Iterator[Entry]:
    objective, variable, rest = split(task)
    point, back = ravel_pytree(variable)
    if not task.problem.sparse or "core" not in task.case.quantities or point.size > LARGEST:
        return
    colours = asdex.hessian_coloring(lambda x: objective(back(x), rest), point)
    pattern = colours.sparsity
    if 8 * colours.num_colors * max(np.size(array) for array in task.data.values()) > TANGENTS:
        return

    def entries(x: Any, data: Any) -> Any:
        compressed = asdex.compressed_hessian_from_coloring(
            lambda x: objective(back(x), data), colours
        )
        return asdex.decompress_data(compressed(x), colours)

    jitted = jax.jit(entries)

    def product(found: Any, v: Nest) -> Nest:
        places = (pattern.rows, pattern.cols)
        matrix = sparse.coo_array((np.asarray(found), places), shape=pattern.shape)
        return unflat(matrix @ flat(v), v)

    def call() -> Any:
        return jax.block_until_ready(jitted(point, rest))

    yield Entry("core", "asdex", "jax", call, product)
