"""Products before they are nodes: operands at labels, one in another opened, what they connect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from ..support.records import NamedTuple
from .extents import ONE, Coef, Extent
from .nodes import Apply, Einsum, Expr, Labels
from .operators import Indicator, Selection

#: An operand of a product: an expression, and a label for each of its axes.
LabelledExpr = tuple[Expr, Labels]


class Factors(NamedTuple):
    """A product before it is a node: coef * the sum of the product of operands at their labels.

    Labels that are not in `out` are summed. `extents` has all labels, and may have more.
    """

    operands: list[LabelledExpr]
    out: Labels
    extents: dict[int, Extent]
    coef: Coef = ONE


def factors_of(e: Einsum) -> Factors:
    """The factors of a product node, none of them inlined."""
    operands = list(zip(e.args, e.labels, strict=True))
    return Factors(operands, e.out, dict(enumerate(e.extents)), e.coef)


def inlined(op: Einsum, word: Labels, extents: dict[int, Extent]) -> list[LabelledExpr]:
    """The operands of a product at labels `word`; its summed labels join `extents` as new ones."""
    local = dict(zip(op.out, word, strict=True))
    fresh = max(extents, default=-1) + 1
    for label, extent in enumerate(op.extents):
        if label not in local:
            local[label] = fresh
            extents[fresh] = extent
            fresh += 1
    return [(a, tuple([local[i] for i in w])) for a, w in zip(op.args, op.labels, strict=True)]


def components(operands: list[LabelledExpr], outer: set[int]) -> list[list[LabelledExpr]]:
    """Groups of operands connected by summed labels, in order of their first operand."""
    above = list(range(len(operands)))  # a forest, whose roots are the first of their groups

    def first(k: int) -> int:
        while above[k] != k:
            above[k] = k = above[above[k]]
        return k

    seen: dict[int, int] = {}
    for k, (_, word) in enumerate(operands):
        for label in word:
            if label not in outer:
                one, two = first(seen.setdefault(label, k)), first(k)
                above[max(one, two)] = min(one, two)
    groups: dict[int, list[LabelledExpr]] = {}
    for k, operand in enumerate(operands):
        groups.setdefault(first(k), []).append(operand)
    return list(groups.values())


def enlarging(e: Einsum) -> bool:
    """Has a product more axes than any of its operands, indicators apart?"""
    return e.ndim > max([a.ndim for a in e.args if not indicates(a)], default=0)


def selects(e: Expr) -> TypeGuard[Apply]:
    """Is e a selection tensor: 1 where its last index is an integer of its operand, else 0?"""
    return isinstance(e, Apply) and isinstance(e.op, Selection)


def indicates(e: Expr) -> TypeGuard[Apply]:
    """Is e 1 where conditions on its indices hold, else 0?"""
    return isinstance(e, Apply) and isinstance(e.op, Indicator)


def chained(operands: Sequence[LabelledExpr], label: int) -> list[LabelledExpr] | None:
    """What one or two indicators are when they are summed over a label, where that is known."""
    rows = [(op, op.op, word) for op, word in operands if isinstance(op, Apply)]
    names = {i: k for k, i in enumerate(dict.fromkeys(i for *_, word in rows for i in word))}
    known = list(names)
    given = tuple([(op.params, tuple([names[i] for i in word])) for op, _, word in rows])
    row = rows[0][1]
    assert isinstance(row, Indicator)
    found = row.chained(given, names[label])
    return found and [(op, tuple([known[k] for k in word])) for op, word in found]


def same_selections(operands: list[LabelledExpr]) -> list[tuple[int, int]]:
    """Pairs of last labels of one selection tensor that stands twice under the same others."""
    first: dict[tuple[int, Labels], int] = {}
    pairs = []
    for op, word in operands:
        if selects(op):
            label = first.setdefault((id(op), word[:-1]), word[-1])
            if label != word[-1]:
                pairs.append((label, word[-1]))
    return pairs
