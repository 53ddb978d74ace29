"""Products of a matrix with itself, of which half are computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ...graph.nodes import Expr, Labels
from ...rules.facts import is_nonnegative


def weighted_square(
    factors: Sequence[tuple[Expr, Labels]], out: Labels
) -> tuple[tuple[int, int], list[int]] | None:
    """Where a matrix stands twice in X' diag(d) X, and where the factors of d >= 0 stand."""
    matrices = [k for k, (_, word) in enumerate(factors) if len(word) == 2]
    weights = [k for k, (_, word) in enumerate(factors) if len(word) == 1]
    if len(matrices) != 2 or not weights or len(matrices) + len(weights) != len(factors):
        return None
    (one, first), (two, second) = (factors[k] for k in matrices)
    shared = [k for k, label in enumerate(first) if label == second[k]]
    summed = {word for k in weights for word in factors[k][1]}
    if one is not two or len(shared) != 1 or summed != {first[shared[0]]} or summed & set(out):
        return None
    times = Counter([id(factors[k][0]) for k in weights])
    odd = [factors[k][0] for k in weights if times[id(factors[k][0])] % 2]
    return ((matrices[0], matrices[1]), weights) if all(map(is_nonnegative, odd)) else None
