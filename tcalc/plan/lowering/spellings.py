"""Choices of a plan, and equal expressions that may cost less: which do is known with the sizes.

The normal form keeps a sum inside a product shut. Where a term of the sum is an outer product of
smaller operands, or a contraction itself, multiplying out lets its operands be contracted in a
better order: S (x y' + M) S is (S x) (y' S) + S M S, and tr(T (S T S + M)) is made of S T once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...graph.applications import rewritten
from ...graph.nodes import Add, Apply, Const, Einsum, Expr, Part, Var
from ...graph.normal import add, distribute
from ...graph.operators import Loop
from ...graph.products import indicates, selects
from ...graph.sums import low_order

MAX_TERMS = 8


class LoweringChoice(NamedTuple):
    """Choices that hold for a whole plan.

    `open_shared`: are products opened in their consumers though several read them?
    `dense_inverses`: are inverses that somebody needs in full multiplied with, or solved with?
    """

    open_shared: bool = False
    dense_inverses: bool = False


def multiplied_out(roots: Sequence[Expr]) -> list[Expr]:
    """The roots with contractions distributed over sums that have a computed term.

    A computed term holds a contraction or a matrix function, whose rounding errors are there
    already. A difference of what is given, as x_i - x_j, is never torn apart.
    """

    def change(new: Expr, old: Expr) -> Expr:
        return _distributed(new, MAX_TERMS)

    return rewritten(roots, change)


def ahead(roots: Sequence[Expr], sizes: Mapping[str, int]) -> list[Expr]:
    """The roots with as much of their loops as fits computed for all steps at once."""
    several: dict[int, tuple[Expr, ...]] = {}

    def change(new: Expr, old: Expr) -> Expr:
        if isinstance(new, Part) and id(new.args[0]) in several:
            return several[id(new.args[0])][new.index]
        if isinstance(new, Apply) and isinstance(new.op, Loop):
            found = new.op.hoisted(new, sizes)
            if found is not None:
                several[id(new)] = found
        return new

    return rewritten(roots, change)


def is_computed(e: Expr) -> bool:
    """Is e a contraction or an outer product of smaller operands, one of them computed?"""
    if not isinstance(e, Einsum) or is_given(e):
        return False
    made = [a for a in e.args if not is_given(a)]
    held = any(
        a.summed if isinstance(a, Einsum) else isinstance(a, Apply) and not a.op.elementwise
        for a in made
    )
    contracts = any(isinstance(a, Einsum) and a.summed and a.ndim == e.ndim for a in made)
    return e.summed or contracts or (held and low_order(e))


def is_given(e: Expr) -> bool:
    """Are the entries of e those of a variable or constant, perhaps at other places?"""
    while not isinstance(e, Var | Const):
        if isinstance(e, Apply) and e.op.meaning.regroups:
            (e,) = e.args
            continue
        held = [k for k, a in enumerate(e.args) if not indicates(a) and not selects(a)]
        if not isinstance(e, Einsum) or len(held) != 1:
            return False
        (k,) = held
        placed = {label for j, word in enumerate(e.labels) if j != k for label in word}
        if not placed.union(e.out).issuperset(e.labels[k]):
            return False
        e = e.args[k]
    return True


def _distributed(e: Expr, most: int) -> Expr:
    """The computed terms of sums each under the product, and what is left of the sums."""
    if not isinstance(e, Einsum) or not e.summed:
        return e
    for k, arg in enumerate(e.args):
        terms = _terms(arg)
        apart = [t for t in terms if is_computed(t)]
        if len(terms) < 2 or not apart or len(terms) > most:
            continue
        rest = [t for t in terms if not is_computed(t)]
        parts = [*apart, add(rest)] if rest else apart
        return add([_distributed(p, most // len(parts)) for p in distribute(e, {k: parts})])
    return e


def _terms(e: Expr) -> list[Expr]:
    """The terms of a sum, those of scaled sums of computed terms inside it included."""
    if not isinstance(e, Add):
        return [e]
    found: list[Expr] = []
    for term in e.args:
        found += _opened(term) or [term]
    return found


def _opened(term: Expr) -> list[Expr] | None:
    """A product with one sum that has a computed term, as a sum of products."""
    places = [
        k for k, a in enumerate(term.args) if isinstance(a, Add) and any(map(is_computed, a.args))
    ]
    if not isinstance(term, Einsum) or term.summed or len(places) != 1:
        return None
    return distribute(term, {places[0]: term.args[places[0]].args})
