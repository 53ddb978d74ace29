"""Traces of products with inverses, as inner products of one product for each direction.

For P = inv(A), tr(P B P C) is made of P B and P C, and tr(P P C) of P and P C: all that Hessians of
log|A| and of quadratic forms need of each direction is one product. Lowered as it stands, a sum
inside such a trace keeps P B P shut, which is two. On the way P S becomes I - P R, where A = S + R.

Where B and C are symmetric so are X B X' and X C X', for X = inv(L) and A = L L': each takes half
of the operations of P B, and tr(P B P C) is their inner product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations

from ...graph.applications import apply, is_symmetric, rewritten
from ...graph.extents import ONE, Coef, Extent
from ...graph.factors import Factors, LabelledExpr, components, factors_of, indicates, inlined
from ...graph.nodes import Add, Apply, Einsum, Expr, Labels, postorder
from ...graph.normal import add, distribute, einsum, terms_of
from ...graph.products import split_coef
from ...graph.sums import embeds, flattened
from ...ops.matrix.cholesky import CHOLESKY
from ...ops.matrix.definite import INVERSE
from ...ops.matrix.triangular import tri_inverse
from ...support.records import NamedTuple
from .spellings import is_computed

#: Operands of a product, and terms of a sum, up to which traces are looked for; how deep products
#: inside products are opened for that; and how often new products are reduced once more.
MAX_OPERANDS, MAX_TERMS, DEPTH, PASSES = 12, 8, 4, 2

#: What is multiplied in the place of both inverses and the matrices between them.
_Parts = Callable[["_Trace"], list[LabelledExpr]]


def traced(roots: Sequence[Expr]) -> tuple[list[Expr], Callable[[], list[Expr]]]:
    """The roots with traces of products with inverses of positive definite matrices in parts.

    And, for who asks, the same with the inverse of the Cholesky factor on both sides of symmetric
    parts.
    """
    if not any(_is_inverse(node) for node in postorder(roots)):
        return list(roots), lambda: list(roots)
    for _ in range(PASSES):
        roots = rewritten(roots, lambda new, old: _reduced(new))
    return _in_parts(roots, _by_products), lambda: _in_parts(roots, _by_halves)


def _in_parts(roots: Sequence[Expr], parts: _Parts) -> list[Expr]:
    return rewritten(roots, lambda new, old: _traced(new, parts))


def _is_inverse(e: Expr) -> bool:
    return isinstance(e, Apply) and e.op is INVERSE and e.ndim == 2


def _terms(e: Expr) -> list[Expr]:
    return flattened(e, lambda term: several if len(several := terms_of(term)) > 1 else None)


# --- products of an inverse with a part of what is inverted ---------------------------------------


def _reduced(e: Expr) -> Expr:
    """Products of P with S as they are without S, those with sums that hold S term by term."""
    if not isinstance(e, Einsum) or not e.summed:
        return e
    for k, j in _meetings(factors_of(e)):
        if isinstance(e.args[j], Add):
            terms, part = _terms(e.args[j]), _dense_part(e.args[k])
            if len(terms) <= MAX_TERMS and any(is_computed(t) or _holds(t, part) for t in terms):
                return add([_reduced(t) for t in distribute(e, {j: terms})])
    found = _cancelled(factors_of(e))
    return e if found is None else add([_reduced(t) for t in found])


def _meetings(whole: Factors) -> Iterable[tuple[int, int]]:
    """Places of an inverse and of another operand that share one summed label."""
    for k, (op, one) in enumerate(whole.operands):
        for j, (_, two) in enumerate(whole.operands) if _is_inverse(op) else ():
            if j != k and len(shared := set(one) & set(two)) == 1 and not shared & set(whole.out):
                yield k, j


class _Part(NamedTuple):
    """The one term of a matrix that is no unit tensor: coef * dense; and the others."""

    coef: Coef
    dense: Expr
    rest: Expr


def _dense_part(inverse: Expr) -> _Part | None:
    terms = _terms(inverse.args[0])
    dense = [t for t in terms if not embeds(t)]
    if len(dense) != 1 or len(terms) < 2:
        return None
    coef, matrix = split_coef(dense[0])
    number = isinstance(coef.value, int | float) and coef.value and not (coef.times or coef.over)
    if not number or matrix.ndim != 2 or not is_symmetric(matrix):
        return None
    return _Part(coef, matrix, add([t for t in terms if t is not dense[0]]))


def _holds(term: Expr, part: _Part | None) -> bool:
    """Is it a multiple of the part?"""
    return part is not None and split_coef(term)[1] is part.dense


def _cancelled(whole: Factors) -> list[Expr] | None:
    """The product with I - P R in place of the first P S among its operands, as two terms."""
    for k, j in _meetings(whole):
        part = _dense_part(whole.operands[k][0])
        if part is not None and whole.operands[j][0] is part.dense:
            found = _without(whole, k, j, part)
            if found is not None:
                return found
    return None


def _without(whole: Factors, k: int, j: int, part: _Part) -> list[Expr] | None:
    operands, out, extents, coef = whole
    (inverse, word), (_, other) = operands[k], operands[j]
    if len({*word, *other}) < 3:  # one of them is read on its diagonal
        return None
    (inner,) = set(word) & set(other)
    (one,), (two,) = set(word) - {inner}, set(other) - {inner}
    rest = [o for n, o in enumerate(operands) if n not in (k, j)]
    if any(inner in w for _, w in rest):
        return None
    over = coef.by(Coef(1 / float(part.coef.value)))
    renamed = [(op, tuple([one if n == two else n for n in w])) for op, w in rest]
    diagonal = tuple([one if n == two else n for n in out])
    return [
        _product(renamed, diagonal, extents, over),
        _product([*rest, (inverse, word), (part.rest, other)], out, extents, over.by(Coef(-1))),
    ]


def _product(
    operands: Sequence[LabelledExpr], out: Labels, extents: Mapping[int, Extent], coef: Coef
) -> Expr:
    return einsum([op for op, _ in operands], [w for _, w in operands], out, coef, extents)


# --- traces ---------------------------------------------------------------------------------------


def _traced(e: Expr, parts: _Parts) -> Expr:
    """The product with traces, those of terms of a sum in it apart, as inner products."""
    if not isinstance(e, Einsum) or not e.summed:
        return e
    found = _trace(e, parts)
    if found is not None:
        return found
    for k, arg in enumerate(e.args):
        terms = _terms(arg)
        apart = [t for t in terms if isinstance(t, Einsum) and _opened(t, 2)]
        if not apart or not 1 < len(terms) <= MAX_TERMS:
            continue
        rest = [t for t in terms if not any(t is other for other in apart)]
        pieces = distribute(e, {k: [*apart, add(rest)] if rest else apart})
        traces = [_trace(piece, parts) for piece in pieces]
        diagonal = len(set(e.labels[k])) < arg.ndim  # of a product, it is no product of matrices
        if diagonal or any(trace is not None for trace in traces[: len(apart)]):
            return add(
                [_traced(p, parts) if t is None else t for p, t in zip(pieces, traces, strict=True)]
            )
    return e


def _trace(e: Expr, parts: _Parts) -> Expr | None:
    whole = _opened(e, 2) if isinstance(e, Einsum) else None
    if whole is None or any(indicates(op) for op, _ in whole.operands):  # what is placed is made
        return None
    reduced = _cancelled(whole)
    if reduced is not None:
        return add([t if (found := _trace(t, parts)) is None else found for t in reduced])
    inverses = [k for k, (op, _) in enumerate(whole.operands) if _is_inverse(op)]
    for k, j in combinations(inverses, 2):
        if whole.operands[k][0] is whole.operands[j][0]:
            trace = _between(whole, k, j)
            if trace is not None:
                operands = [*trace.others, *parts(trace)]
                return _product(operands, whole.out, whole.extents, whole.coef)
    return None


def _opened(e: Einsum, least: int) -> Factors | None:
    """The product with those nested in it opened that hold inverses; None if these are few."""
    waiting, out, extents, coef = factors_of(e)
    operands: list[LabelledExpr] = []
    while waiting:
        op, word = waiting.pop(0)
        if isinstance(op, Einsum) and len(set(op.out)) == len(op.out) and _reaches(op, DEPTH):
            coef = coef.by(op.coef)
            waiting += inlined(op, word, extents)
        else:
            operands.append((op, word))
        if len(operands) + len(waiting) > MAX_OPERANDS:
            return None
    held = [op for op, _ in operands if _is_inverse(op)]
    return Factors(operands, out, extents, coef) if len(held) >= least else None


def _reaches(e: Einsum, depth: int) -> bool:
    return any(
        _is_inverse(a) or (isinstance(a, Einsum) and depth > 1 and _reaches(a, depth - 1))
        for a in e.args
    )


class _Trace(NamedTuple):
    """P_ab B_bc P_cd C_da, or P_ab P_bd C_da: P, its ends, matrices with theirs, the others.

    Where P and P meet C is the only matrix. Other labels of the matrices come first.
    """

    inverse: Expr
    ends: Labels
    matrices: list[LabelledExpr]
    others: list[LabelledExpr]


def _between(whole: Factors, k: int, j: int) -> _Trace | None:
    """The product where P and P stand between two matrices made of the others, or meet once."""
    (inverse, one), (_, two) = whole.operands[k], whole.operands[j]
    ends, met = {*one, *two}, set(one) & set(two)
    if len(met) > 1 or len(ends) < 4 - len(met) or ends & set(whole.out):
        return None
    others = [o for n, o in enumerate(whole.operands) if n not in (k, j)]
    sides: list[tuple[list[LabelledExpr], int, int]] = []
    rest: list[LabelledExpr] = []
    for part in components(others, set(whole.out)):
        held = ends.intersection([label for _, word in part for label in word])
        if not held:
            rest += part
            continue
        if met & held or len(held & set(one)) != 1 or len(held & set(two)) != 1:
            return None
        (first,), (second,) = held & set(one), held & set(two)
        sides.append((part, first, second))
    if len(sides) != 2 - len(met):
        return None
    side, a, d = sides[-1]
    (b,) = set(one) - {a}
    matrices = [_matrix(part, (b, c), whole) for part, _, c in sides[:-1]]
    return _Trace(inverse, (a, b, d), [*matrices, _matrix(side, (d, a), whole)], rest)


def _matrix(side: list[LabelledExpr], ends: Labels, whole: Factors) -> LabelledExpr:
    standing = {k for _, word in side for k in word}
    word = (*[k for k in dict.fromkeys(whole.out) if k in standing], *ends)
    return _product(side, word, whole.extents, ONE), word


def _by_products(found: _Trace) -> list[LabelledExpr]:
    """(P B)_ac (P C)_ca, or P_ab (P C)_ba."""
    (a, b, _), p, (*first, last) = found.ends, found.inverse, found.matrices
    c = first[0][1][-1] if first else b
    return [
        _multiplied(p, last, c),
        *[_multiplied(p, matrix, a) for matrix in first],
        *([] if first else [(p, (a, b))]),
    ]


def _multiplied(inverse: Expr, matrix: LabelledExpr, label: int) -> LabelledExpr:
    """P B as one node: P's first axis is `label`, its second one the first end of B."""
    op, (*lead, inner, last) = matrix
    word = (*lead, label, last)
    return einsum([inverse, op], [(label, inner), matrix[1]], word), word


def _by_halves(found: _Trace) -> list[LabelledExpr]:
    """(X B X')_ac (X C X')_ac of symmetric B and C, or (P P)_ad C_da."""
    (a, b, d), p, (*first, last) = found.ends, found.inverse, found.matrices
    if not first:
        return [last, (einsum([p, p], [(a, b), (b, d)], (a, d)), (a, d))]
    if not all(is_symmetric(op) for op, _ in found.matrices):
        return _by_products(found)
    x = tri_inverse(apply(CHOLESKY, p.args[0]))
    parts: list[LabelledExpr] = []
    for op, (*lead, m, n) in found.matrices:
        i, j = (max(*lead, m, n) + k for k in (1, 2))
        words = [(i, m), (j, n), (*lead, m, n)]
        parts.append((einsum([x, x, op], words, (*lead, i, j)), (*lead, a, b)))
    return parts
