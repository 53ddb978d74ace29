"""The library's functions by name, as the text languages call them."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping
from typing import Any

from ...ops import (
    arithmetic,
    bessel,
    cumulative,
    diagonals,
    einsum,
    elementwise,
    entrywise,
    incomplete,
    indexing,
    packed,
    products,
    reductions,
    reshape,
    special,
    views,
)
from ...ops.declared import DECLARED
from ...ops.matrix import (
    adjugate,
    cholesky,
    eigh,
    functions,
    inverse,
    lapack_names,
    lq,
    norms,
    svd,
    symmetric,
    triangular,
)

MODULES = (
    arithmetic, views, elementwise, entrywise, special, bessel, incomplete, reductions, cumulative,
    reshape, diagonals, packed, indexing, products, einsum,
    adjugate, inverse, cholesky, triangular, eigh, svd, lq, functions, norms, lapack_names,
    symmetric,
)  # fmt: skip

#: What these modules make public, the variance, whose name is another function in `tcalc`, and
#: what users declare.
LIBRARY: Mapping[str, Callable[..., Any]] = ChainMap(
    {name: getattr(module, name) for module in MODULES for name in module.__all__},
    {"var": arithmetic.var},
    DECLARED,
)
