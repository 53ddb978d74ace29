"""Sums of slices of sums as one sum: the second difference of x as x[2:] - 2*x[1:-1] + x[:-2]."""

from __future__ import annotations

from ..graph.applications import rewritten
from ..graph.extents import form_of
from ..graph.factors import indicates
from ..graph.nodes import Add, Einsum, Expr
from ..graph.normal import add, distribute, scale, terms_of
from ..graph.products import split_coef
from ..graph.sums import collected
from ..integers.affine import Affine

#: Terms that a sum of shifted sums may have.
MOST = 64


def one_sum(e: Expr) -> Expr:
    """The sum of shifted sums as one sum of what is shifted, if terms of it meet; else itself."""
    terms = _open([e])
    return add(terms) if len(collected(terms)) < len(terms) else e


def in_one_sum(e: Expr) -> Expr:
    """The expression with all sums of shifted sums as one sum each."""
    (found,) = rewritten([e], lambda new, old: one_sum(new) if isinstance(old, Add) else new)
    return found


def _open(waiting: list[Expr]) -> list[Expr]:
    """The terms of sums and of slices of sums, of few of them."""
    found: list[Expr] = []
    while waiting and len(found) + len(waiting) <= MOST:
        term = waiting.pop()
        inside = list(term.args) if isinstance(term, Add) else _sliced(term)
        if inside:
            waiting += inside
        else:
            found.append(term)
    return [*found, *waiting]


def _sliced(term: Expr) -> list[Expr]:
    """The terms of which a slice of a sum is the sum; none of anything else."""
    coef, plain = split_coef(term)
    if not isinstance(plain, Einsum):
        return []
    arrays = [k for k, arg in enumerate(plain.args) if not indicates(arg)]
    inside = _inside(plain.args[arrays[0]]) if len(arrays) == 1 else []
    if len(inside) < 2 or not all(_shortens(plain, k) for k in range(len(plain.args))):
        return []
    return [scale(t, coef) for t in distribute(plain, {arrays[0]: inside})]


def _inside(e: Expr) -> list[Expr]:
    terms = terms_of(e)
    return terms if len(terms) > 1 else _sliced(e)


def _shortens(e: Einsum, k: int) -> bool:
    """Is an operand no indicator, or one of an axis that is no longer than what it is taken of?"""
    if not indicates(e.args[k]):
        return True
    taken, whole = (
        sum([form_of(e.extents[i]) for i in e.labels[k] if (i in e.out) == kept], Affine())
        for kept in (True, False)
    )
    less = whole - taken
    return not less.terms and less.constant >= 0
