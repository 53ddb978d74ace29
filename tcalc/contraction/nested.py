"""Nested products as one, so that the contraction path is chosen over all their operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from ..graph.extents import Extent
from ..graph.nodes import Einsum
from ..graph.products import (
    Factors,
    LabelledExpr,
    enlarging,
    factors_of,
    indicates,
    inlined,
    selects,
)
from .paths import EXACT_OPERANDS, path_of

#: Operands of a product that is opened further than exact paths reach, where that takes less than
#: this part of the time.
MANY_OPERANDS, SAVED = 256, 0.9

Opens = Callable[[Einsum], bool]
Size = Callable[[Extent], int]


def flatten(e: Einsum, opens: Opens, size: Size, long: bool = True) -> Factors:
    """A product with the nested ones opened that `opens` admits.

    There are at most as many operands as have an exact path, unless it may be `long` and more are
    faster, as for a long chain of matrices and a vector. Shifted reads are opened only where they
    are larger than what they read.
    """
    found, over = _opened(e, opens, EXACT_OPERANDS)
    if not over or not long:
        return found
    whole, _ = _opened(e, opens, MANY_OPERANDS)
    return whole if _time(whole, size) < SAVED * _nested_time(e, opens, size) else found


def _opened(e: Einsum, opens: Opens, most: int) -> tuple[Factors, list[Einsum]]:
    """The product with nested ones opened, and those that stay shut for lack of room."""
    operands, out, extents, coef = factors_of(e)
    stack = operands[::-1]
    operands, over = [], []
    while stack:
        arg, word = stack.pop()
        if (
            not isinstance(arg, Einsum)
            or not opens(arg)
            or len(set(arg.out)) < len(arg.out)
            or (any(indicates(a) for a in arg.args) and not enlarging(arg))
        ):
            operands.append((arg, word))
            continue
        more = dict(extents)
        inside = inlined(arg, word, more)[::-1]
        if _count([*operands, *stack, *inside]) > most:
            operands.append((arg, word))
            over.append(arg)
            continue
        coef, extents = coef.by(arg.coef), more
        stack += inside
    return Factors(operands, out, extents, coef), over


def _count(operands: Sequence[LabelledExpr]) -> int:
    """How many there are when those with equal labels are multiplied."""
    return len({frozenset(word) for op, word in operands if word and not indicates(op)})


def _nested_time(e: Einsum, opens: Opens, size: Size) -> float:
    """Predicted time of the product in parts that have exact paths."""
    found, over = _opened(e, opens, EXACT_OPERANDS)
    return _time(found, size) + sum([_nested_time(part, opens, size) for part in over])


def _time(product: Factors, size: Size) -> float:
    """Predicted time of a product of arrays."""
    if any(indicates(op) or selects(op) for op, _ in product.operands):
        return inf
    words = list({frozenset(word): word for _, word in product.operands if word}.values())
    extents = {label: size(n) for label, n in product.extents.items()}
    return path_of(words, product.out, extents).time
