"""Sums of contractions with a matrix in common: V A W + V B W is V (A + B) W.

Multiplying once instead of once a term; the plan takes it where it costs less.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...graph.applications import rewritten
from ...graph.factors import Factors, LabelledExpr, factors_of, inlined
from ...graph.nodes import Add, Einsum, Expr, postorder
from ...graph.normal import add, built, distribute, einsum
from ...graph.sums import absent_axes, embeds, flattened, most_shared
from ...support.records import NamedTuple

MAX_TERMS, MAX_OPERANDS = 16, 12


class _Factor(NamedTuple):
    """A matrix at the edge of a product: which axis of it is which axis of the result."""

    matrix: Expr
    axis: int
    place: int


def factored(roots: Sequence[Expr]) -> list[Expr]:
    """The roots with common matrices of the terms of sums in front."""
    nodes = postorder(roots)
    inside = {id(t) for node in nodes if isinstance(node, Add) for t in map(_sum_of, node.args)}

    def change(new: Expr, old: Expr) -> Expr:
        whole = isinstance(old, Add) and id(old) not in inside  # new may be a view of a sum
        found = _factored(flattened(new, _inner_sum, MAX_TERMS)) if whole else None
        return new if found is None else found

    return rewritten(roots, change)


def _sum_of(e: Expr) -> Expr:
    """The sum under a scaling or permutation, which is factored with the sum around it."""
    scaled = isinstance(e, Einsum) and not e.summed and len(e.args) == 1
    return e.args[0] if scaled else e


def _inner_sum(e: Expr) -> Sequence[Expr] | None:
    """The terms of a sum, or of a scaled or permuted one."""
    inner = _sum_of(e)
    if not isinstance(inner, Add):
        return None
    if not isinstance(e, Einsum):
        return inner.args
    return None if embeds(e) or absent_axes(e) else distribute(e, {0: inner.args})


def _factored(terms: list[Expr]) -> Expr | None:
    """The sum with its most common factors in front; None if no two terms have one."""
    if not 1 < len(terms) <= MAX_TERMS:
        return None
    lists = [_open(t) for t in terms]
    edges = [[] if term is None else _edges(term) for term in lists]
    found = most_shared(edges, lambda factor: (factor.matrix.order, factor.axis, factor.place))
    if found is None:
        return None
    factor, chosen = found
    inner_terms = [_without(t, factor) for k in chosen if (t := lists[k]) is not None]
    inner = _sum(inner_terms)
    n = inner.ndim
    word = (n, factor.place) if factor.axis == 0 else (factor.place, n)
    out = [n if k == factor.place else k for k in range(n)]
    joined = einsum([factor.matrix, inner], [word, range(n)], out)
    rest = [t for k, t in enumerate(terms) if k not in chosen]
    return _sum([*rest, joined]) if rest else joined


def _sum(terms: list[Expr]) -> Expr:
    found = _factored(terms)
    return add(terms) if found is None else found


def _open(e: Expr) -> Factors | None:
    """A term as one list of operands, the contractions among them opened."""
    if not isinstance(e, Einsum) or len(set(e.out)) < len(e.out):
        return None
    waiting, out, extents, coef = factors_of(e)
    operands: list[LabelledExpr] = []
    while waiting:
        arg, word = waiting.pop(0)
        room = len(operands) + len(waiting) < MAX_OPERANDS
        if not isinstance(arg, Einsum) or len(set(arg.out)) < len(arg.out) or not room:
            operands.append((arg, word))
            continue
        coef = coef.by(arg.coef)
        waiting += inlined(arg, word, extents)
    return Factors(operands, out, extents, coef) if len(operands) > 1 else None


def _edges(term: Factors) -> list[_Factor]:
    """Matrices of which one label is an axis of the result and stands nowhere else."""
    found: dict[tuple[int, int, int], _Factor] = {}
    for op, word in term.operands:
        if op.ndim != 2 or word[0] == word[1]:
            continue
        for axis, label in enumerate(word):
            count = sum([other.count(label) for _, other in term.operands])
            if label in term.out and count == 1 and len(term.operands) > 1:
                factor = _Factor(op, axis, term.out.index(label))
                found.setdefault((id(op), axis, factor.place), factor)
    return list(found.values())


def _without(term: Factors, factor: _Factor) -> Expr:
    """The term without the factor: the factor's other label in the place of its axis."""
    place = next(
        k
        for k, (op, word) in enumerate(term.operands)
        if op is factor.matrix and word[factor.axis] == term.out[factor.place]
    )
    inner = term.operands[place][1][1 - factor.axis]
    rest = [o for k, o in enumerate(term.operands) if k != place]
    out = [inner if k == factor.place else label for k, label in enumerate(term.out)]
    return built(Factors(rest, tuple(out), term.extents, term.coef))
