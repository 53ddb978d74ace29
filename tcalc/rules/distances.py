"""Squared distances written by inner products, read as sums of squared differences.

sum_k w_k (a_ik - b_jk)^2 is what r_i + s_j - 2 sum_k w_k a_ik b_jk means for r_i = sum_k w_k a_ik^2
and s_j = sum_k w_k b_jk^2. The differences are the better form where derivatives are found: those
by w are entrywise products with each square, where the other form gives three terms apiece. The
inner products lose digits, and are the faster one of values of long rows: plans compare.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..graph.applications import rewritten
from ..graph.extents import Coef
from ..graph.factors import LabelledExpr
from ..graph.nodes import Add, Einsum, Expr
from ..graph.normal import add, einsum, scale, terms_of
from ..graph.products import split_coef
from ..graph.sums import flattened

#: Terms of a sum among which squared distances are looked for.
MAX_TERMS = 16


def by_differences(
    roots: Sequence[Expr], short: Callable[[Einsum], bool] = lambda e: True
) -> list[Expr]:
    """The roots with squared distances that are made of inner products as sums of squares.

    Inner products that are not `short` stay.
    """
    return rewritten(roots, lambda new, old: _of_sum(new, short) if isinstance(new, Add) else new)


def _of_sum(e: Add, short: Callable[[Einsum], bool]) -> Expr:
    terms = flattened(e, lambda term: several if len(several := terms_of(term)) > 1 else None)
    if not 2 < len(terms) <= MAX_TERMS:
        return e
    for k, term in enumerate(terms):
        coef, product = split_coef(term)
        if not isinstance(product, Einsum) or (found := _distances(product)) is None:
            continue
        if not short(product):
            continue
        squares, total = found
        half = coef.by(Coef(-0.5))
        places = {id(t): j for j, t in enumerate(terms)}
        gone = {k, *[places.get(id(scale(square, half)), k) for square in squares]}
        if len(gone) == 3:
            rest = [t for j, t in enumerate(terms) if j not in gone]
            return add([*rest, scale(total, half)])
    return e


def _distances(e: Einsum) -> tuple[list[Expr], Expr] | None:
    """For sum_k w_k a_ik b_jk: its two sums of squares along i and along j, and the distances."""
    if not e.summed or e.ndim != 2 or len(set(e.out)) < 2:
        return None
    sides: tuple[list[LabelledExpr], ...] = ([], [], [])
    for op, word in zip(e.args, e.labels, strict=True):
        held = [label in word for label in e.out]
        if all(held):
            return None
        sides[held.index(True) if any(held) else 2].append((op, word))
    one, two, weights = sides
    if len(one) != 1 or len(two) != 1:
        return None
    extents = dict(enumerate(e.extents))

    def product(factors: Sequence[LabelledExpr]) -> Expr:
        words = [word for _, word in factors]
        return einsum([op for op, _ in factors], words, e.out, extents=extents)

    squares = [product([*side, *side, *weights]) for side in (one, two)]
    labels = tuple(dict.fromkeys([*e.out, *one[0][1], *two[0][1]]))
    left, right = (einsum([op], [word], labels, extents=extents) for op, word in (one[0], two[0]))
    difference = add([left, scale(right, Coef(-1))])
    return squares, product([(difference, labels), (difference, labels), *weights])
