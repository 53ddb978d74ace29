"""Differences of differences, as they are written by hand."""

from __future__ import annotations

from collections.abc import Iterable

from ..graph.nodes import Add, Expr
from ..rules.differences import one_sum
from .laws import law


@law(
    "difference-of-differences",
    "(x[1:] - x[:-1])[1:] - (x[1:] - x[:-1])[:-1] = x[2:] - 2*x[1:-1] + x[:-2]",
    "Add",
    directed=True,
)
def _difference_of_differences(e: Expr) -> Iterable[Expr | None]:
    """What is shifted stands in one sum."""
    assert isinstance(e, Add)
    found = one_sum(e)
    yield None if found is e else found
