"""What is taken out of log-sum-exps and put back behind them."""

from __future__ import annotations

from collections.abc import Callable

from ..graph.applications import apply
from ..graph.extents import ONE, Coef, number
from ..graph.nodes import Add, Apply, Einsum, Expr
from ..graph.normal import add, drop_axes, einsum, scale, terms_of
from ..graph.products import split_coef
from ..graph.sums import absent_axes
from ..ops.reductions import LOGSUMEXP


def shifts_undone(e: Add) -> Expr | None:
    """k c + k logsumexp(a - c) as k logsumexp(a), whatever c is, and sums of such with weights."""
    for place, term in enumerate(e.args):
        coef, viewed = split_coef(term)
        total, seen = _seen(viewed)
        if not isinstance(total, Apply) or total.op is not LOGSUMEXP:
            continue
        (a,) = total.args
        core = set(range(total.ndim, a.ndim))
        for part in [part for part in terms_of(a) if core <= absent_axes(part)]:
            put_back = scale(seen(drop_axes(part, core)), coef.by(number(-1)))
            rest = [arg for k, arg in enumerate(e.args) if k != place and arg is not put_back]
            if len(rest) == len(e.args) - 2:
                whole = apply(LOGSUMEXP, add([a, scale(part, Coef(-1))]), params=total.params)
                return add([*rest, scale(seen(whole), coef)])
    return None


def _seen(e: Expr) -> tuple[Expr, Callable[[Expr], Expr]]:
    """The one log-sum-exp that e is a view or a product of, and the same of others."""
    if not isinstance(e, Einsum):
        return e, lambda other: other
    places = [k for k, a in enumerate(e.args) if isinstance(a, Apply) and a.op is LOGSUMEXP]
    if len(places) != 1:
        return e, lambda other: other
    (k,), extents = places, dict(enumerate(e.extents))

    def instead(other: Expr) -> Expr:
        return einsum([*e.args[:k], other, *e.args[k + 1 :]], e.labels, e.out, ONE, extents)

    return e.args[k], instead
