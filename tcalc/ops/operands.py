"""Operands of an operation in the words of an error: as they were written, and their shapes."""

from __future__ import annotations

from ..graph.bound_variables import readable
from ..graph.extents import show_shape
from ..graph.nodes import Const, Expr, postorder
from ..support.excerpts import shortened

#: Expressions of more nodes are not written.
MOST_NODES = 60
#: Operands that are named.
MOST_SHOWN = 4
#: Characters of one that is written.
WIDTH = 40


def shown_operands(*operands: Expr) -> str:
    """`X*w` of shape (m,) and `y` of shape (n,)"""
    shown = [f"{_shown(e)} of shape {show_shape(e.shape)}" for e in operands[:MOST_SHOWN]]
    more = len(operands) - len(shown)
    return " and ".join([*shown, *([f"{more} more"] if more else [])])


def _shown(e: Expr) -> str:
    if isinstance(e, Const):
        return "an array"
    for k, _ in enumerate(postorder([e])):
        if k == MOST_NODES:
            return "an expression"
    return f"`{shortened(readable(str(e)), WIDTH)}`"
