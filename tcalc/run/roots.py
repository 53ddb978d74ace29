"""What is computed of a root: the value of a derivative, anything else in its stable form."""

from __future__ import annotations

from collections.abc import Sequence

from ..graph.nodes import Derivative, Einsum, Expr
from ..graph.normal import scale
from ..rules.strategy import simplify


def value_of(root: Expr) -> Expr:
    """The best value, of a derivative without its projection."""
    if isinstance(root, Derivative):
        return simplify(root.inner) if root.as_written else _upright(root, root.inner)
    return simplify(root)


def first_of(root: Expr) -> Expr:
    """What is computed, as it was found first."""
    if isinstance(root, Derivative) and root.ways:
        return _upright(root, root.first)
    return value_of(root)


def values_of(root: Expr) -> Sequence[Expr]:
    """What may be computed: of a derivative, its value as several modes accumulate it."""
    if isinstance(root, Derivative) and root.ways:
        return [_upright(root, way) for way in root.ways(False)]
    return (value_of(root),)


def _upright(root: Derivative, e: Expr) -> Expr:
    """A value that is the transpose of what is computed, as that, where it is symmetric.

    That is the second derivative of a number by one variable. It then lies row by row.
    """
    if root.of.ndim or len(root.wrt) != 2 or root.wrt[0] is not root.wrt[1]:
        return e
    n = e.ndim // 2
    turned = (*range(n, e.ndim), *range(n))
    if isinstance(e, Einsum) and e.labels == (turned,) and e.out == tuple(range(e.ndim)):
        return scale(e.args[0], e.coef)
    return e
