"""Contractions taken apart: products in products opened, factors found among others.

A chain of matrices is a product in a product, and sums stand among its factors. What two of them
are together that meet at an index is seen where all of them are one list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from ..graph.applications import is_symmetric
from ..graph.factors import Factors, LabelledExpr, inlined
from ..graph.nodes import Einsum, Expr, Labels
from ..graph.normal import add, built, terms_of
from ..graph.sums import distributed

#: How deep products in products, and how many operands, are looked through.
DEPTH, MAX_OPERANDS = 8, 16

#: Is a factor one of those that are looked for?
Holds = Callable[[Expr], bool]


def reaches(e: Expr, holds: Holds, inside: tuple[type[Expr], ...], depth: int = DEPTH) -> bool:
    """Is e such a factor, or an operand of nodes of these kinds that are?"""
    return holds(e) or (
        depth > 0
        and isinstance(e, inside)
        and any(reaches(a, holds, inside, depth - 1) for a in e.args)
    )


def within(roots: Iterable[Expr], inside: tuple[type[Expr], ...], depth: int = DEPTH) -> set[Expr]:
    """Those that are reached below the roots, through operands of nodes of these kinds alone."""
    level = found = set(roots)
    while depth and level:
        level = {arg for e in level if isinstance(e, inside) for arg in e.args} - found
        found, depth = found | level, depth - 1
    return found


def opened(whole: Factors, chosen: Holds) -> Factors:
    """The product with outer products in it opened, and those contractions that are chosen."""
    waiting, extents, coef = list(whole.operands), dict(whole.extents), whole.coef
    operands: list[LabelledExpr] = []
    while waiting:
        op, word = waiting.pop(0)
        room = len(operands) + len(waiting) < MAX_OPERANDS
        if isinstance(op, Einsum) and room and _opens(op, chosen):
            coef = coef.by(op.coef)
            waiting += inlined(op, word, extents)
        else:
            operands.append((op, word))
    return Factors(operands, whole.out, extents, coef)


def _opens(e: Einsum, chosen: Holds) -> bool:
    whole = len(set(e.out)) == e.ndim and len(terms_of(e)) == 1
    return whole and (not e.summed or chosen(e))


def in_terms(whole: Factors, k: int, changed: Callable[[Factors], Expr | None]) -> Expr | None:
    """The product with its k-th operand, a sum, multiplied out; None where no term is changed."""
    parts = distributed(whole, {k: terms_of(whole.operands[k][0])})
    found = list(map(changed, parts))
    if all(f is None for f in found):
        return None
    return add([built(p) if f is None else f for p, f in zip(parts, found, strict=True)])


def assigned(
    wanted: Sequence[LabelledExpr], given: list[LabelledExpr], labels: Mapping[int, int]
) -> Iterator[tuple[list[LabelledExpr], Mapping[int, int]]]:
    """Ways to find operands among others under other labels: what is left, and the labels.

    Symmetric matrices are found with their axes in either order.
    """
    if not wanted:
        yield given, labels
        return
    # One that meets those found fits at few places; equal ones in one place are one way.
    known = (k for k, (_, word) in enumerate(wanted) if not labels.keys().isdisjoint(word))
    place = next(known, 0)
    op, word = wanted[place]
    tried: set[Labels] = set()
    for k, (other, given_word) in enumerate(given):
        for own in _orders(op, given_word) if other is op else ():
            if own in tried:
                continue
            tried.add(own)
            found = dict(labels)
            if all(found.setdefault(a, b) == b for a, b in zip(word, own, strict=True)):
                more, left = list(wanted), list(given)
                del more[place], left[k]
                yield from assigned(more, left, found)


def _orders(e: Expr, word: Labels) -> list[Labels]:
    """The words under which an operand is the same."""
    return [word, (*word[:-2], word[-1], word[-2])] if is_symmetric(e) else [word]
