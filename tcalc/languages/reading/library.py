"""The library's functions by name, as the text languages call them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ...ops import (
    arithmetic,
    diagonals,
    einsum,
    elementwise,
    packed,
    products,
    reductions,
    reshape,
    special,
    views,
)
from ...ops.matrix import (
    cholesky,
    eigh,
    functions,
    inverse,
    lapack_names,
    lq,
    norms,
    svd,
    triangular,
)

MODULES = (
    arithmetic, views, elementwise, special, reductions, reshape, diagonals, packed,
    products, einsum,
    inverse, cholesky, triangular, eigh, svd, lq, functions, norms, lapack_names,
)  # fmt: skip

#: What these modules make public, and the variance, whose name is another function in `tcalc`.
LIBRARY: dict[str, Callable[..., Any]] = {
    **{name: getattr(module, name) for module in MODULES for name in module.__all__},
    "var": arithmetic.var,
}


def closest_name(name: str, known: Iterable[str]) -> str:
    """The known name that is most similar to a misspelled one, or nothing."""
    import difflib  # not needed by who spells well

    return next(iter(difflib.get_close_matches(name, sorted(known), 1)), "")
