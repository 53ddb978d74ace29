"""A sum of unit tensors that stays one factor of a product: formulas are written with it."""

from __future__ import annotations

from ...graph.applications import apply, rewritten
from ...graph.nodes import Apply, Expr
from ...graph.operators import Kernels, Meaning, Op
from ...graph.spelling import Spelling
from ..matrix_cores import same
from .directional_rows import member


def grouping_row() -> Op:
    """The row of what is its operand: made when a formula needs it, and never computed."""
    return member("grouped", lambda: Op(
        "grouped", (2,),
        Meaning(
            (None,), shape=same, transposes=True, pushforward=lambda k, t, node: t,
            pullback=lambda k, t, node: t,
        ),
        Kernels(lambda xp, params, a: a, shares=True, flops=0), Spelling("{0}"),
        family=(grouping_row,),
    ))  # fmt: skip


def grouped(e: Expr) -> Expr:
    """A matrix that products do not multiply out: its values, and its text, are the operand's."""
    return apply(grouping_row(), e)


def multiplied_out(e: Expr) -> Expr:
    """The expression without such matrices."""

    def operand(new: Expr, old: Expr) -> Expr:
        return new.args[0] if isinstance(new, Apply) and new.op.name == "grouped" else new

    return rewritten([e], operand)[0]
