"""Sums of contractions with a matrix in common: V A W + V B W is V (A + B) W.

Multiplying once instead of once a term; the plan takes it where it costs less.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...graph.applications import rewritten
from ...graph.extents import Coef, Extent
from ...graph.nodes import Add, Einsum, Expr, Labels, postorder
from ...graph.normal import add, einsum
from ...graph.products import opened

MAX_TERMS, MAX_OPERANDS = 16, 12


class _Term(NamedTuple):
    """One contraction of a sum: its operands, and the labels of its axes."""

    operands: list[tuple[Expr, Labels]]
    out: Labels
    coef: Coef
    extents: dict[int, Extent]


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
        found = _factored(_leaves(new)) if whole else None
        return new if found is None else found

    return rewritten(roots, change)


def _sum_of(e: Expr) -> Expr:
    """The sum under a scaling or permutation, which is factored with the sum around it."""
    scaled = isinstance(e, Einsum) and not e.summed and len(e.args) == 1
    return e.args[0] if scaled else e


def _leaves(e: Expr) -> list[Expr]:
    """The terms of a sum and of the sums inside it, as many as are looked at."""
    found = [e]
    while len(found) <= MAX_TERMS:
        place = next((k for k, t in enumerate(found) if _inner_sum(t) is not None), None)
        if place is None:
            return found
        found[place : place + 1] = _inner_sum(found[place]) or []
    return found


def _inner_sum(e: Expr) -> list[Expr] | None:
    """The terms of a sum, or of a scaled or permuted one."""
    if isinstance(e, Add):
        return list(e.args)
    if not isinstance(e, Einsum) or e.summed or len(e.args) != 1 or not isinstance(e.args[0], Add):
        return None
    if len(set(e.out)) < len(e.out) or len(e.labels[0]) < len(e.out):
        return None
    extents = dict(enumerate(e.extents))
    return [einsum([t], e.labels, e.out, e.coef, extents) for t in e.args[0].args]


def _factored(terms: list[Expr]) -> Expr | None:
    """The sum with its most common factors in front; None if no two terms have one."""
    if not 1 < len(terms) <= MAX_TERMS:
        return None
    lists = [_open(t) for t in terms]
    members: dict[tuple[int, int, int], list[int]] = {}
    factors: dict[tuple[int, int, int], _Factor] = {}
    for k, term in enumerate(lists):
        for factor in {} if term is None else _edges(term):
            key = (id(factor.matrix), factor.axis, factor.place)
            factors[key] = factor
            members.setdefault(key, []).append(k)
    shared = [key for key, ks in members.items() if len(ks) > 1]
    if not shared:
        return None
    key = min(shared, key=lambda key: (-len(members[key]), factors[key].matrix.order, key[1:]))
    factor, chosen = factors[key], members[key]
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


def _open(e: Expr) -> _Term | None:
    """A term as one list of operands, the contractions among them opened."""
    if not isinstance(e, Einsum) or len(set(e.out)) < len(e.out):
        return None
    extents = dict(enumerate(e.extents))
    coef, waiting = e.coef, list(zip(e.args, e.labels, strict=True))
    operands: list[tuple[Expr, Labels]] = []
    while waiting:
        arg, word = waiting.pop(0)
        room = len(operands) + len(waiting) < MAX_OPERANDS
        if not isinstance(arg, Einsum) or len(set(arg.out)) < len(arg.out) or not room:
            operands.append((arg, word))
            continue
        coef = coef.by(arg.coef)
        waiting += opened(arg, word, extents)
    return _Term(operands, e.out, coef, extents) if len(operands) > 1 else None


def _edges(term: _Term) -> list[_Factor]:
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


def _without(term: _Term, factor: _Factor) -> Expr:
    """The term without the factor: the factor's other label in the place of its axis."""
    place = next(
        k
        for k, (op, word) in enumerate(term.operands)
        if op is factor.matrix and word[factor.axis] == term.out[factor.place]
    )
    inner = term.operands[place][1][1 - factor.axis]
    rest = [o for k, o in enumerate(term.operands) if k != place]
    out = [inner if k == factor.place else label for k, label in enumerate(term.out)]
    return einsum([op for op, _ in rest], [word for _, word in rest], out, term.coef, term.extents)
