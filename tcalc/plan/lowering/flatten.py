"""Nested products as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...graph.extents import Coef, Extent
from ...graph.nodes import Einsum, Expr
from ...graph.products import enlarging, indicates
from ...graph.products import opened as inner_operands
from ..products.paths import EXACT_OPERANDS
from ..steps import Word


class Flat(NamedTuple):
    """A product with nested ones opened."""

    operands: Sequence[tuple[Expr, Word]]
    extents: Mapping[int, Extent]
    coef: Coef


def flatten(e: Einsum, uses: Mapping[int, int], shared: bool) -> Flat:
    """Nested products as one, so that the contraction path is chosen over all their operands.

    Those that others read too are opened only if `shared`, and shifted reads only where they are
    larger than what they read.
    """
    extents: dict[int, Extent] = dict(enumerate(e.extents))
    coef = e.coef
    stack = list(zip(e.args, e.labels, strict=True))[::-1]
    operands: list[tuple[Expr, Word]] = []
    while stack:
        arg, word = stack.pop()
        if (
            not isinstance(arg, Einsum)
            or (uses[id(arg)] > 1 and not shared)
            or len(set(arg.out)) < len(arg.out)
            or (any(indicates(a) for a in arg.args) and not enlarging(arg))
        ):
            operands.append((arg, word))
            continue
        more = dict(extents)
        inside = inner_operands(arg, word, more)[::-1]
        if not _fits([*operands, *stack, *inside]):
            operands.append((arg, word))
            continue
        coef, extents = coef.by(arg.coef), more
        stack += inside
    return Flat(operands, extents, coef)


def _fits(operands: Sequence[tuple[Expr, Word]]) -> bool:
    """Are there few enough for an exact path, those with equal labels multiplied first?"""
    arrays = [word for op, word in operands if word and not indicates(op)]
    return len({frozenset(word) for word in arrays}) <= EXACT_OPERANDS
