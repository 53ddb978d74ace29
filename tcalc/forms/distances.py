"""Laws of distances between the rows of matrices."""

from __future__ import annotations

from collections.abc import Iterable

from ..graph.nodes import Einsum, Expr
from ..ops.distances import as_distances
from .laws import law


@law(
    "squared-distances",
    "#('ijk->ij', (#('ik->ijk', A, j=n) - #('jk->ijk', B, i=n)).^2) = squared_distances(A, B)",
    "Einsum", directed=True,
)  # fmt: skip
def _squared_distances(e: Expr) -> Iterable[Expr | None]:
    """Sums of squares of differences, which multiplied out would cancel."""
    assert isinstance(e, Einsum)
    found = as_distances(e)
    yield None if found is e else found
