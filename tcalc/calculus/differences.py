"""Differences of differences are derived at once by what they are differences of.

The third difference of x is x[3:] - 3*x[2:-1] + 3*x[1:-2] - x[:-3]: its derivative has four terms
where the differences one after the other have eight, of which most are alike, and those of a
Hessian are bands. Values stay as they were written, as differences of numbers that are close are
exact, and their multiples are not.
"""

from __future__ import annotations

from ..graph.applications import rewritten
from ..graph.extents import ONE
from ..graph.nodes import Add, Expr
from ..graph.normal import view
from ..rules.differences import one_sum
from ..support.records import NamedTuple
from .merged_ends import permutes


class Differences(NamedTuple):
    """A value in which sums of shifted sums are sums of what is shifted.

    Attributes
    ----------
    value : Expr
    written : dict
        By the ids of these sums: them, and what they were written as.
    """

    value: Expr
    written: dict[int, tuple[Expr, Expr]]

    def back(self, e: Expr) -> Expr:
        """An expression made of `value`, with the sums as they were written."""
        if not self.written:
            return e
        (found,) = rewritten([e], lambda new, _: self.written.get(id(new), (new, new))[1])
        return found


def at_once(value: Expr) -> Differences:
    """The value with each sum of shifted sums in which terms meet as one sum."""
    written: dict[int, tuple[Expr, Expr]] = {}

    def change(new: Expr, old: Expr) -> Expr:
        found = one_sum(new) if isinstance(old, Add) else new
        if found is not new:
            inner, outside = found, old
            if permutes(found) and found.coef == ONE:
                inner = found.args[0]  # in another order of axes, which products around it take
                outside = view(old, [found.out.index(label) for label in found.labels[0]])
            written[id(inner)] = inner, outside
        return found

    (value,) = rewritten([value], change)
    return Differences(value, written)
