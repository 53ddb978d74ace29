"""The einsum language: every product as ``#('ij,jk->ik', A, B)``, shared parts as statements."""

from __future__ import annotations

from collections.abc import Sequence

from ...graph.nodes import Expr
from ...graph.operators import Op
from ..writing.layout import FormulaLayout
from ..writing.notation import Fragment, Rope, Style


class EinsumStyle(Style):
    """Everything between operands acts entry by entry."""

    pointwise_times = "*"

    def power(self, p: Fragment, k: int, scalar: bool) -> Rope:
        return super().power(p, k, True)

    def infix(self, op: Op, args: Sequence[Fragment], scalar: Sequence[bool]) -> Fragment:
        return super().infix(op, args, [True] * len(scalar))

    def transpose(self, p: Fragment) -> Fragment:
        return p


def to_einsum(e: Expr) -> str:
    """The expression in the einsum language: lines `name = expr`, then one expression.

    Parameters
    ----------
    e : Expr

    Returns
    -------
    str

    Examples
    --------
    >>> import tcalc as tc
    >>> A, B = tc.var("A", ("m", "k")), tc.var("B", ("k", "n"))
    >>> print(tc.to_einsum(tc.exp(A @ B)))
    exp(#('ik,kj->ij', A, B))
    """
    return FormulaLayout(EinsumStyle(), matrix=False, limit=0).text(e)
