"""Nested products flattened, so that the contraction path is chosen over all operands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from math import inf

from ..graph.extents import Extent
from ..graph.factors import (
    Factors,
    LabelledExpr,
    enlarging,
    factors_of,
    indicates,
    inlined,
    selects,
)
from ..graph.nodes import Einsum, Labels
from ..support.limits import spend
from .chains import is_chain
from .paths import EXACT_OPERANDS, path_of

#: Operands up to which a product is flattened beyond exact paths, and up to which a chain is; and
#: the share of the predicted time that the former must not exceed.
MANY_OPERANDS, LONG_CHAIN, SAVED = 256, 4096, 0.9
#: Steps that it takes to see whether a factor may be expanded, besides the labels there are.
TRIED = 20

Admits = Callable[[Einsum], bool]
Size = Callable[[Extent], int]


def flatten(e: Einsum, opens: Admits, size: Size, long: bool = True) -> Factors:
    """A product with those factors expanded into their operands that are products themselves.

    Parameters
    ----------
    e : Einsum
    opens : callable
        Which nested products may be expanded.
    size : callable
        The number that an extent is.
    long : bool
        Whether the result may have more operands than exact paths are searched for, where that is
        faster, as for a long chain of matrices and a vector.

    Notes
    -----
    Products with indicators, such as shifted reads, are expanded only where they have more entries
    than their operands.
    """
    found, over = _flattened(e, opens, EXACT_OPERANDS)
    if not over or not long:
        return found
    full, more = _flattened(e, opens, MANY_OPERANDS)
    whole = _flattened(e, opens, LONG_CHAIN)[0] if more else full
    if is_chain(_words(whole), whole.out):
        return whole
    return full if _time(full, size) < SAVED * _nested_time(e, opens, size) else found


def _flattened(e: Einsum, opens: Admits, most: int) -> tuple[Factors, list[Einsum]]:
    """The product flattened to at most `most` operands, and what was not expanded for that."""
    operands, out, extents, coef = factors_of(e)
    stack = operands[::-1]
    counts = Counter(_labels_of(operands))  # those with equal labels are multiplied, and one
    kinds = len(counts)
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
        spend("steps", TRIED + len(extents) // 8)
        more = dict(extents)
        inside = inlined(arg, word, more)[::-1]
        change = Counter(_labels_of(inside))
        change.subtract(_labels_of([(arg, word)]))
        new = [labels for labels, n in change.items() if n > 0 and not counts[labels]]
        gone = [labels for labels, n in change.items() if n < 0 and not counts[labels] + n]
        if kinds + len(new) - len(gone) > most:
            operands.append((arg, word))
            over.append(arg)
            continue
        counts.update(change)
        kinds += len(new) - len(gone)
        coef, extents = coef.by(arg.coef), more
        stack += inside
    return Factors(operands, out, extents, coef), over


def _labels_of(operands: Sequence[LabelledExpr]) -> list[frozenset[int]]:
    """The labels of operands that are arrays."""
    return [frozenset(word) for op, word in operands if word and not indicates(op)]


def _nested_time(e: Einsum, opens: Admits, size: Size) -> float:
    """Predicted time of as many operands as may be flattened, in parts that have exact paths."""
    total, count, waiting = 0.0, 0, [e]
    while waiting and count < MANY_OPERANDS:
        found, over = _flattened(waiting.pop(), opens, EXACT_OPERANDS)
        total += _time(found, size)
        count += len(found.operands)
        waiting += over
    return total


def _words(product: Factors) -> list[Labels]:
    """The labels of the operands, equal ones once; none where some operand is no array."""
    if any(indicates(op) or selects(op) for op, _ in product.operands):
        return []
    return list({frozenset(word): word for _, word in product.operands if word}.values())


def _time(product: Factors, size: Size) -> float:
    """Predicted time of a product of arrays."""
    words = _words(product)
    if not words:
        return inf
    extents = {label: size(n) for label, n in product.extents.items()}
    return path_of(words, product.out, extents).time
