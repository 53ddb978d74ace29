"""Functions of `scipy.special` that are made of others: entropies, and Bessel's scaled ones."""

from __future__ import annotations

import math

from ..graph.nodes import Expr
from ..ops.arithmetic import as_expr, broadcast
from ..ops.bessel import ive
from ..ops.elementwise import log1p, logical_and, softplus, where, xlogy
from ..ops.elementwise_row import Function


def _entr(x: object) -> Expr:
    e = as_expr(x)
    return where(e < 0, -math.inf, -xlogy(e, e))


def _rel_entr(x: object, y: object) -> Expr:
    a, b = broadcast(x, y)
    outside = where(logical_and(a >= 0, b >= 0), where(a > 0, math.inf, 0), math.inf)
    return where(logical_and(a > 0, b > 0), xlogy(a, a / b), outside)


def _kl_div(x: object, y: object) -> Expr:
    a, b = broadcast(x, y)
    return _rel_entr(a, b) - a + b


def _xlog1py(x: object, y: object) -> Expr:
    a, b = broadcast(x, y)
    return where(a == 0, 0, a * log1p(b))


COMPOSED: dict[str, Function] = {
    "entr": _entr,
    "i0e": lambda x: ive(0, x),
    "i1e": lambda x: ive(1, x),
    "kl_div": _kl_div,
    "log_expit": lambda x: -softplus(-as_expr(x)),
    "rel_entr": _rel_entr,
    "xlog1py": _xlog1py,
}
