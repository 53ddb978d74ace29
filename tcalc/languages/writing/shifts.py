"""Sums of slices of one array, such as x[2:] - 2*x[1:-1] + x[:-2], in the order of their places."""

from __future__ import annotations

from ...graph.factors import indicates
from ...graph.nodes import Add, Einsum, Expr
from ...graph.products import split_coef
from ...integers.affine import Constraint
from ...ops.indicator import conditions
from ...support.records import NamedTuple

#: Terms from which on their places say more than their signs.
MANY = 3


class _Shift(NamedTuple):
    """A multiple of a slice: of which array, from which places on, and is the multiple negative?"""

    array: int
    starts: tuple[int, ...]
    negative: bool


def by_place(node: Add) -> list[int] | None:
    """The order of the terms by the places from which their slices start, or None.

    The last places come first, unless the term there is negative, and that of the first ones is
    not.
    """
    if len(node.args) < MANY:
        return None
    found = list(map(_shift, node.args))
    shifts = [shift for shift in found if shift is not None]
    if len(shifts) < len(found) or len({(s.array, len(s.starts)) for s in shifts}) > 1:
        return None
    order = sorted(range(len(shifts)), key=lambda k: shifts[k].starts, reverse=True)
    first, last = [shifts[order[k]].negative for k in (0, -1)]
    if first and last:
        return None
    return order[::-1] if first else order


def _shift(term: Expr) -> _Shift | None:
    coef, plain = split_coef(term)
    if indicates(plain):
        rows, arrays = [(plain, tuple(range(plain.ndim)))], [0]
    elif isinstance(plain, Einsum):
        operands = list(zip(plain.args, plain.labels, strict=True))
        rows = [(op, word) for op, word in operands if indicates(op)]
        arrays = [id(op) for op, _ in operands if not indicates(op)]
    else:
        return None
    ties = [g for op, word in rows for g in conditions(op.params, word)]
    if len(arrays) != 1 or not ties:
        return None
    if any(not isinstance(g, Constraint) or len(g.form.terms) != 2 for g in ties):
        return None
    return _Shift(arrays[0], tuple([abs(g.form.constant) for g in ties]), coef.value < 0)
