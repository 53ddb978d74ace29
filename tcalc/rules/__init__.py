"""Named equalities: algebra, stable forms, factorisations, eigenvalues; the strategy that applies
them, and the facts (signs, definiteness) that they ask for.

Reads integers, graph, ops, ops.matrix.
"""

from . import (
    algebra,
    cancelling,
    diagonal_matrices,
    factors,
    inverses,
    merges,
    places,
    spectral,
    stability,
)

__all__ = [
    "algebra",
    "cancelling",
    "diagonal_matrices",
    "factors",
    "inverses",
    "merges",
    "places",
    "spectral",
    "stability",
]
