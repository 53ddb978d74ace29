"""Products with orthonormal rows: Q Q' is the identity, and Q (1 - r) Q' is I - Q r Q'.

What weights Q Q' between two directions of a Hessian is often one less the other; then one product
of matrices serves both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...graph.applications import application, rewritten
from ...graph.extents import extent_coef
from ...graph.factors import Factors, LabelledExpr, factors_of, inlined
from ...graph.nodes import Einsum, Expr, Part, postorder
from ...graph.normal import add, built, terms_of
from ...graph.sums import absent_axes
from ...ops.matrix.lq import LQ
from ...support.records import NamedTuple

#: Terms into which one product may fall.
MAX_TERMS = 16


class _Pair(NamedTuple):
    """The places of Q and Q, their rows' labels, and the places of vectors along the columns."""

    places: tuple[int, int]
    rows: tuple[int, int]
    weights: list[int]


def orthonormal(roots: Sequence[Expr]) -> list[Expr]:
    """The roots with Q Q' as the identity, also where it is a term of a weighted product."""
    if not any(map(_has_orthonormal_rows, postorder(roots))):
        return list(roots)

    def change(new: Expr, old: Expr) -> Expr:
        if not isinstance(new, Einsum) or not new.summed:
            return new
        whole = factors_of(new)
        return add([_of_squares(term) for term in _terms(whole, MAX_TERMS) or [whole]])

    return rewritten(roots, change)


def _has_orthonormal_rows(e: Expr) -> bool:
    return isinstance(e, Part) and e.index == 1 and application(e).op is LQ


def _terms(whole: Factors, most: int) -> list[Factors] | None:
    """The terms of a product in which Q Q' stands; None where it does in none."""
    for pair in _pairs(whole):
        if not pair.weights:
            rest = _identified(whole, pair)
            return _terms(rest, most) or [rest]
        for k in pair.weights:
            terms = terms_of(whole.operands[k][0])
            if 1 < len(terms) <= most and any(absent_axes(t) for t in terms):
                found: list[Factors] = []
                for term in terms:
                    part = _with_term(whole, k, term)
                    found += _terms(part, most // len(terms)) or [part]
                return found
    return None


def _pairs(whole: Factors) -> Iterator[_Pair]:
    sides = [
        k for k, (op, word) in enumerate(whole.operands)
        if _has_orthonormal_rows(op) and len(set(word)) == len(word)
    ]  # fmt: skip
    for n, k in enumerate(sides):
        for j in sides[n + 1 :]:
            (one, first), (two, second) = whole.operands[k], whole.operands[j]
            column = first[-1]
            meets = one is two and first[:-2] == second[:-2] and column == second[-1]
            rows = (first[-2], second[-2])
            if not meets or column in whole.out or rows[0] == rows[1]:
                continue
            others = {i: w for i, (_, w) in enumerate(whole.operands) if column in w}
            weights = [i for i, w in others.items() if w == (column,)]
            if len(weights) == len(others) - 2:
                yield _Pair((k, j), rows, weights)


def _with_term(whole: Factors, k: int, term: Expr) -> Factors:
    """The product with a term of a sum in the place of the sum, opened if it is a product."""
    extents, word = dict(whole.extents), whole.operands[k][1]
    rest = [o for n, o in enumerate(whole.operands) if n != k]
    if isinstance(term, Einsum) and not term.summed:
        operands = [*rest, *inlined(term, word, extents)]
        return Factors(operands, whole.out, extents, whole.coef.by(term.coef))
    return whole._replace(operands=[*rest, (term, word)])


def _identified(whole: Factors, pair: _Pair) -> Factors:
    """The product without Q and Q, whose rows' labels become one.

    What that or a label of their batch stands in alone is a sum of ones.
    """
    one, two = pair.rows
    rest: list[LabelledExpr] = []
    for k, (op, word) in enumerate(whole.operands):
        if k not in pair.places:
            rest.append((op, tuple([one if n == two else n for n in word])))
    out = tuple([one if n == two else n for n in whole.out])
    coef = whole.coef
    batch = whole.operands[pair.places[0]][1][:-2]
    for label in {one, *batch}.difference(out, *[word for _, word in rest]):
        coef = coef.by(extent_coef(whole.extents[label]))
    return Factors(rest, out, whole.extents, coef)


def _of_squares(whole: Factors) -> Expr:
    """The product with each Q D Q' as one node, where it is made of such matrices only."""
    pairs = list(_pairs(whole))
    held = [k for pair in pairs for k in (*pair.places, *pair.weights)]
    ends = [n for pair in pairs for n in pair.rows]
    closed = all(ends.count(n) == 2 for n in ends) and not set(ends) & set(whole.out)
    if len(pairs) < 2 or sorted(held) != list(range(len(whole.operands))) or not closed:
        return built(whole)
    operands = []
    for pair in pairs:
        batch = whole.operands[pair.places[0]][1][:-2]
        word = (*batch, *pair.rows)
        part = [whole.operands[k] for k in (*pair.places, *pair.weights)]
        operands.append((built(Factors(part, word, whole.extents)), word))
    return built(whole._replace(operands=operands))
