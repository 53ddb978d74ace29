"""Contractions that read entries of an array and add nothing: slices, gathers, shifts."""

from __future__ import annotations

from collections.abc import Iterator

from ..graph.factors import indicates, selects
from ..graph.nodes import Einsum, Expr, Labels
from ..integers.affine import Constraint, factors_of
from .indicator import conditions


def array_read(e: Einsum) -> Expr | None:
    """The array of which each entry of a contraction is one entry, or 0; None for others.

    Selection tensors and equations of indices tell every summed label by labels that are known.
    """
    kept = [arg for arg in e.args if not (selects(arg) or indicates(arg))]
    unknown = set(range(len(e.extents))) - set(e.out)
    if not unknown or len(kept) != 1:
        return None
    told = [row for arg, word in zip(e.args, e.labels, strict=True) for row in _told(arg, word)]
    while found := {label for label, by in told if label in unknown and unknown.isdisjoint(by)}:
        unknown -= found
    return None if unknown else kept[0]


def _told(e: Expr, word: Labels) -> Iterator[tuple[int, set[int]]]:
    """Labels that a factor tells by others: one that has these has at most one value."""
    if selects(e):
        yield word[-1], set(word[:-1])
    for guard in conditions(e.params, word) if indicates(e) else ():
        if isinstance(guard, Constraint) and guard.equality:
            names = {name for product in guard.form.names for name in factors_of(product)}
            standing = {label for label in word if f"#{label}" in names}
            for label in standing:
                if guard.form.coefficient(f"#{label}"):
                    yield label, standing - {label}
