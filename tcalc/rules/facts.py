"""Signs and positive definiteness, proved from the expression alone.

True is a proof; False says nothing.
"""

from __future__ import annotations

from collections import Counter

from ..graph.nodes import Add, Apply, Einsum, Expr, Labels, Part, Var
from ..graph.properties import PROPERTIES

#: How many levels of operands a proof looks at.
MAX_PROOF_DEPTH = 8


def is_positive(e: Expr, strictly: bool = True, depth: int = MAX_PROOF_DEPTH) -> bool:
    """Are all entries above 0 (or, not strictly, at least 0)?"""
    if depth == 0:
        return False
    if isinstance(e, Var):
        return not strictly and any(PROPERTIES[name].nonnegative for name in e.properties)
    if isinstance(e, Apply):
        low, of = e.op.meaning.range[0], e.op.meaning.positive_of
        if low > 0 or (not strictly and low == 0):
            return True
        return bool(of) and all(is_positive(e.args[k], strictly, depth - 1) for k in of)
    if isinstance(e, Add):
        if not all(is_positive(t, False, depth - 1) for t in e.args):
            return False
        return not strictly or any(is_positive(t, True, depth - 1) for t in e.args)
    if not isinstance(e, Einsum) or not e.coef.value > 0:
        return False
    if strictly and (e.summed or len(set(e.out)) < len(e.out)):
        return False
    counts = Counter([(id(a), w) for a, w in zip(e.args, e.labels, strict=True)])
    return all(
        (not strictly and counts[id(a), w] % 2 == 0)
        or _is_positive_diagonal(a, w, depth - 1)
        or is_positive(a, strictly, depth - 1)
        for a, w in zip(e.args, e.labels, strict=True)
    )


def _is_positive_diagonal(e: Expr, word: Labels, depth: int) -> bool:
    """Are only diagonals read of matrices, which have no entry there that is not above 0?"""
    if e.ndim < 2 or word[-1] != word[-2]:
        return False
    whole = e.args[0] if isinstance(e, Part) else e
    first = not isinstance(e, Part) or e.index == 0
    known = isinstance(whole, Apply) and whole.op.meaning.positive_diagonal
    return (known and first) or is_definite(e, True, depth)


def is_nonnegative(e: Expr) -> bool:
    return is_positive(e, False)


def is_definite(e: Expr, strictly: bool = True, depth: int = MAX_PROOF_DEPTH) -> bool:
    """Are the matrices in the last two axes symmetric positive definite (or semidefinite)?"""
    if depth == 0 or e.ndim < 2 or e.shape[-1] != e.shape[-2]:
        return False
    if isinstance(e, Var):
        return any(PROPERTIES[name].definite for name in e.properties)
    if isinstance(e, Apply):
        return e.op.meaning.definite
    if isinstance(e, Add):
        if not all(is_definite(t, False, depth - 1) for t in e.args):
            return False
        return not strictly or any(is_definite(t, True, depth - 1) for t in e.args)
    return isinstance(e, Einsum) and e.coef.value > 0 and _product(e, strictly, depth)


def _product(e: Einsum, strictly: bool, depth: int) -> bool:
    """Is the product definite: a scaled definite matrix, a positive diagonal, or X' D X?"""
    *batch, i, j = e.out
    if {i, j}.intersection(batch) or (strictly and len(set(batch)) < len(batch)):
        return False  # other matrices, or zero ones, along a diagonal of the batch
    if i == j:
        return all(is_positive(a, strictly, depth - 1) for a in e.args)
    factors = list(zip(e.args, e.labels, strict=True))
    sided = [(a, w) for a, w in factors if i in w or j in w]
    inner = [(a, w) for a, w in factors if i not in w and j not in w]
    if len(sided) == 1:
        (matrix, word), sound = sided[0], not e.summed
        whole = sound and set(word[-2:]) == {i, j} and word.count(i) == word.count(j) == 1
        return (
            whole
            and is_definite(matrix, strictly, depth - 1)
            and all(is_positive(a, strictly, depth - 1) for a, _ in inner)
        )
    if strictly or len(sided) != 2:
        return False
    (left, one), (right, two) = sided if i in sided[0][1] else sided[::-1]
    return left is right and _mirrored(one, two, e.out, inner, depth)


def _mirrored(
    one: Labels, two: Labels, out: Labels, inner: list[tuple[Expr, Labels]], depth: int
) -> bool:
    """Is the product X' M X with nonnegative weights, or with a semidefinite M between?

    M may be a product of matrices, each of which leads from labels of one X alone to those of the
    other; whatever else there is depends on what both have in common.
    """
    ends, pairs = out[-2:], {(p, q) for p, q in zip(one, two, strict=True) if p != q}
    common = {p for p, q in zip(one, two, strict=True) if p == q}
    left, right = {p for p, _ in pairs}, {q for _, q in pairs}
    apart = left | right
    if ends not in pairs or not len(left) == len(right) == len(pairs) or left & right:
        return False
    if apart & common or (apart - {*ends}).intersection(out):
        return False
    between = [pair for pair in pairs if pair != ends]
    for matrix, word in inner:
        pair = next((pair for pair in between if {*pair} == {*word[-2:]}), None)
        if apart.intersection(word if pair is None else word[:-2]):
            return False
        if pair is None:
            sound = is_positive(matrix, False, depth - 1)
        else:
            between.remove(pair)
            sound = is_definite(matrix, False, depth - 1)
        if not sound:
            return False
    return not between
