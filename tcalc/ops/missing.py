"""What may be no number: where a condition leaves entries out, and infinity in sums of nothing."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from math import inf, isinf

import numpy as np

from ..graph.captures import is_captured
from ..graph.extents import ONE
from ..graph.factors import indicates, selects
from ..graph.nodes import Add, Apply, Const, Einsum, Expr, Labels, Var
from ..graph.operators import operator_named
from ..graph.products import is_number, numeric_value
from .choices import NEAREST, Key, Place, below, is_truth, operands_by_entry

#: The axis of a place along which a sum runs, of what the condition asks or of the branch.
SUMMED = -1


def missing_places(condition: Expr, branch: Expr, other: Expr) -> set[Key]:
    """The places of a branch that may be nan off it, where all that it reads are not.

    They are those of which the condition asks, also of any entry of a row, and where it is a mask,
    made of data with a number for what is off it, all variables but these data, and constants that
    have such entries.
    """
    word = tuple(range(condition.ndim))
    compared = list(_compared((condition, word)))
    asked = [place for place, asks in compared if asks]
    for place in asked[:]:
        for (_, own), e in islice(below(place), NEAREST):
            if isinstance(e, Einsum) and e.summed:
                asked += rows_of_sum(e, own, len(word)).values()
    if asked:
        found = [read for place in asked for read in below(place)]
        return {
            key for key, e in found if (key[1] or not word) and not operands_by_entry(e, key[1])
        }
    masks = [_array(e) for (e, _), _ in compared if not is_number(e)]
    data = set(map(id, masks))
    if not is_number(other) or id(None) in data or all(map(_by_place, masks)):
        return set()
    read = [(key, _array(e)) for key, e in below((branch, word)) if len(key[1]) == len(word)]
    return {key for key, e in read if id(e) not in data and _may_lack(e)}


def _array(e: Expr) -> Var | Const | None:
    """The array of which this has entries, perhaps by index."""
    if isinstance(e, Einsum) and e.coef == ONE:
        arrays = [arg for arg in e.args if not (indicates(arg) or selects(arg))]
        return _array(arrays[0]) if len(arrays) == 1 else None
    return e if isinstance(e, Var | Const) else None


def _by_place(e: Expr | None) -> bool:
    """Is a mask constant along diagonals, as those of triangles are, which say nothing of data?"""
    if not isinstance(e, Const) or min(e.value.shape[-2:], default=0) < 2 or e.ndim < 2:
        return False
    return bool((e.value[..., 1:, 1:] == e.value[..., :-1, :-1]).all())


def _may_lack(e: Expr | None) -> bool:
    """May entries of an array be no numbers?"""
    return isinstance(e, Var) or (isinstance(e, Const) and not np.isfinite(e.value).all())


def rows_of_sum(e: Einsum, word: Labels, ndim: int) -> dict[int, Place]:
    """The operands of a sum of products that have so many first axes: which, and where.

    None of what takes entries, which is read by entry itself.
    """
    if len(set(e.out)) < len(e.out) or any(indicates(a) or selects(a) for a in e.args):
        return {}
    axis = dict(zip(e.out, word, strict=True))
    places = [tuple([axis.get(label, SUMMED) for label in labels]) for labels in e.labels]
    return {
        k: (arg, own)
        for k, (arg, own) in enumerate(zip(e.args, places, strict=True))
        if len({*e.labels[k]}) == len(own) and set(range(ndim)).issubset(own)
    }


def _compared(place: Place, asked: bool = False) -> Iterator[tuple[Place, bool]]:
    """What a condition is about, and whether it asks if that is a finite number."""
    node, word = place
    truth = isinstance(node, Apply) and is_truth(node)
    turned = isinstance(node, Einsum) and len(node.args) == 1 and node.coef == ONE
    inside = operands_by_entry(node, word) if truth or turned else []
    if isinstance(node, Einsum) and node.summed and turned and is_truth(node.args[0]):
        inside = list(rows_of_sum(node, word, 0).values())
    for operand in inside:
        yield from _compared(operand, asked if turned else _asks(node))
    if not inside and not truth:
        yield place, asked


def _asks(node: Expr) -> bool:
    """Does a comparison ask for nan or infinity?"""
    assert isinstance(node, Apply)
    numbers = [numeric_value(e) for e in node.args]
    itself = len(node.args) == 2 and node.args[0] is node.args[1]
    return node.op is operator_named("isnan") or itself or any(v in (inf, -inf) for v in numbers)


def sees_infinity(e: Expr) -> bool:
    """May entries be infinite by what is written, as those that a mask leaves out of a sum are?

    What is looked for are numbers, and arrays that a function reads from outside, by entry.
    """
    waiting, seen = [e], {e}
    for node in islice(iter(waiting), NEAREST):
        value = numeric_value(node)
        if value is not None and isinf(value):
            return True
        if isinstance(node, Const) and (abs(node.value) == inf).any():
            return True
        if isinstance(node, Var) and is_captured(node):
            return True
        if isinstance(node, Add) or _keeps_entries(node):
            waiting += [arg for arg in dict.fromkeys(node.args) if arg not in seen]
            seen.update(node.args)
    return False


def _keeps_entries(node: Expr) -> bool:
    if isinstance(node, Apply):
        return node.op.elementwise and not is_truth(node)
    if not isinstance(node, Einsum):
        return False
    return (
        not node.summed or len(node.args) == 1 or any(indicates(e) or selects(e) for e in node.args)
    )
