"""The einsum language: every product as ``#('ij,jk->ik', A, B)``, shared parts as statements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...forms.choose import shorter
from ...graph.nodes import Expr
from ...graph.operators import Op
from ..writing.chains import leading_sum
from ..writing.layout import FormulaLayout
from ..writing.nests import of_nests
from ..writing.notation import ATOM, SUM, Fragment, Rope, fragment_size
from ..writing.style import Style


class EinsumStyle(Style):
    """Everything between operands acts entry by entry; calls show all that a row is given."""

    pointwise_times, pointwise_over = "*", "/"

    def power(self, p: Fragment, k: int, scalar: bool) -> Rope:
        return super().power(p, k, True)

    def infix(self, op: Op, args: Sequence[Fragment], scalar: Sequence[bool]) -> Fragment:
        if len(args) == 1:
            return self.function(op.name, args)
        return super().infix(op, args, [True] * len(scalar))

    def add(
        self, terms: Sequence[Fragment], ndim: int = 0, scalar: Sequence[bool] = ()
    ) -> Fragment:
        """A sum; sums among its terms keep their parentheses, which are read as nested sums."""
        return super().add([self.enclosed(p) for p in leading_sum(terms)])

    def enclosed(self, p: Fragment) -> Fragment:
        if p.level > SUM:
            return p
        return Fragment(self.parenthesised(p.text), ATOM, *fragment_size([p]), p.negative)

    def named(self, op: Op) -> str:
        return op.name.partition("#")[0]

    def shown(self, op: Op) -> Sequence[int]:
        return ()

    def output(
        self, op: Op, index: int, extra: Sequence[tuple[str, Any]], args: Sequence[Fragment]
    ) -> Fragment:
        return self.function(op.parts[index], args, [str(value) for _, value in extra])

    def transpose(self, p: Fragment) -> Fragment:
        return p


class ComputedStyle(EinsumStyle):
    """What is read back as the same node: quotients are calls."""

    quotients = False


@of_nests()
def to_einsum(e: Expr, computed: bool = False) -> str:
    """The expression in the einsum language: lines `name = expr`, then one expression.

    `parse_einsum` reads it.

    Parameters
    ----------
    e : Expr, or a nested tuple, list or dict of Expr
        Parts of a nest stand below each other, each with its variables or its place.
    computed : bool
        Write what is computed, with its guards at kinks and poles, which is read back as the same
        node, or as an equal one. Else, as in all formulas, the form is chosen that reads best,
        which takes as given that quotients, logarithms and roots exist and no point is a kink.

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
    if computed:
        return FormulaLayout(ComputedStyle(), matrix=False, limit=0).text(e)
    return shorter(lambda form: FormulaLayout(EinsumStyle(), matrix=False, limit=0).text(form), e)
