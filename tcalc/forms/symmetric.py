"""Laws of symmetric parts: terms that are each other's transposes in every pair of axes."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ..graph.extents import Coef
from ..graph.nodes import Add, Apply, Einsum, Expr
from ..graph.normal import add, built, einsum, scale, terms_of, view
from ..graph.products import split_coef
from ..graph.sums import collected
from ..ops.matrix.symmetric import mirrored, symmetric_part
from .laws import law
from .products import opened

MAX_AXES = 6
MAX_MIRRORED = 3


def _orbit(e: Expr, pairs: int) -> list[Expr]:
    """An array with axes of pairs exchanged in all ways."""
    found = {id(e): e}
    for axis in range(0, 2 * pairs, 2):
        for one in list(found.values()):
            other = mirrored(one, axis)
            found.setdefault(id(other), other)
    return list(found.values())


def _halves(e: Expr) -> Expr | None:
    """A sum that is symmetric in all pairs of axes, by one term for each set of equals."""
    pairs, odd = divmod(e.ndim, 2)
    if odd or not 1 <= pairs <= MAX_AXES // 2:
        return None
    if any(e.shape[k] != e.shape[k + 1] for k in range(0, e.ndim, 2)):
        return None
    terms = list(map(split_coef, terms_of(e)))
    coefs = {id(rest): coef for coef, rest in terms}
    left = {id(rest): rest for _, rest in terms}
    kept = []
    while left:
        key = min(left, key=lambda k: _rank(left[k]))
        orbit = _orbit(left[key], pairs)
        if any(id(t) not in left or coefs[id(t)] != coefs[key] for t in orbit):
            return None
        kept.append(scale(left[key], coefs[key].by(Coef(len(orbit)))))
        for t in orbit:
            del left[id(t)]
    if len(kept) == len(terms):
        return None
    coef, inner = split_coef(add(kept))
    return scale(symmetric_part(inner, pairs), coef)


@law(
    "symmetric-part", "#('ij,kl->ijkl', A, B) + #('ji,kl->ijkl', A, B) + #('ij,lk->ijkl', A, B)"
    " + #('ji,lk->ijkl', A, B) = 4*sym(#('ij,kl->ijkl', A, B), 2)", "Add", "Einsum",
    directed=True,
)  # fmt: skip
def _symmetric_part(e: Expr) -> Iterable[Expr | None]:
    """Of arrays with more axes than a matrix, where terms are many."""
    if e.ndim > 2 and len(terms_of(e)) > 1:
        yield _halves(e)


@law("half-of-a-sum", "(A + A')*B/2 = sym(A)*B", "Einsum")
def _half_of_a_sum(e: Expr) -> Iterable[Expr | None]:
    """Beside a number that divides by two a symmetric part has none."""
    assert isinstance(e, Einsum)
    value = e.coef.value
    if not isinstance(value, float) or value.is_integer() or not math.isfinite(value):
        return
    product = opened(e)
    for k, (op, word) in enumerate(product.operands):
        found = _halves(op) if isinstance(op, Add) else None
        if found is not None:
            rest = product.operands[:k] + product.operands[k + 1 :]
            yield built(product._replace(operands=[*rest, (found, word)]))


@law("congruence", "sym(A*B*A') = A*sym(B)*A'", "symmetric_part", directed=True)
def _congruence(e: Expr) -> Iterable[Expr | None]:
    """Equal factors at both ends of a product stand outside."""
    (inner,) = e.args
    if e.ndim != 2 or not isinstance(inner, Einsum) or len(set(inner.out)) < 2:
        return
    product = opened(inner)
    left, right = product.out
    ends = [[k for k, (_, w) in enumerate(product.operands) if i in w] for i in product.out]
    if [len(found) for found in ends] != [1, 1] or ends[0] == ends[1]:
        return
    (a, one), (b, other) = (product.operands[found[0]] for found in ends)
    if a.ndim != 2 or b.ndim != 2:
        return
    first = a if one[0] == left else mirrored(a, 0)
    last = b if other[0] == right else mirrored(b, 0)
    inside = (set(one) - {left}, set(other) - {right})
    if first is not last or not all(inside) or inside[0] == inside[1]:
        return
    rest = [item for k, item in enumerate(product.operands) if k not in (ends[0][0], ends[1][0])]
    axes = (*inside[0], *inside[1])
    middle = built(product._replace(operands=rest, out=axes))
    words = [(0, 2), (2, 3), (1, 3)]
    yield einsum([first, symmetric_part(middle, 1), first], words, (0, 1))


@law(
    "permuted-pairs", "#('ijkl->klij', sym(#('ij,kl->ijkl', A, B), 2)) "
    "= sym(#('kl,ij->ijkl', A, B), 2)", "Einsum", directed=True,
)  # fmt: skip
def _permuted_pairs(e: Expr) -> Iterable[Expr | None]:
    """Pairs of axes in another order, before their symmetric part is taken."""
    assert isinstance(e, Einsum)
    inner = e.args[0] if len(e.args) == 1 else None
    if (
        not isinstance(inner, Apply)
        or inner.op.name != "symmetric_part"
        or inner.ndim < 4
        or e.summed
    ):
        return
    word = e.labels[0]
    if sorted(word) != sorted(e.out) or len(set(word)) < inner.ndim:
        return
    order = [word.index(label) for label in e.out]
    pairs = [sorted(order[k : k + 2]) for k in range(0, len(order), 2)]
    if all(j == i + 1 and i % 2 == 0 for i, j in pairs):
        yield scale(symmetric_part(view(inner.args[0], order), e.ndim // 2), e.coef)


def _rank(e: Expr) -> tuple[object, ...]:
    """Plain arrays before their transposes."""
    turned = isinstance(e, Einsum) and not e.summed and len(e.args) == 1
    return turned, e.order


@law(
    "symmetric-part-of-transposes", "sym(A*B + B'*A') = 2*sym(A*B)", "symmetric_part", directed=True
)
def _one_of_each_orbit(e: Expr) -> Iterable[Expr | None]:
    """Terms that differ by exchanges of axes are one; coefficients stand outside."""
    pairs, (inner,) = e.ndim // 2, e.args
    terms = []
    for coef, rest in map(split_coef, terms_of(inner)):
        terms.append(scale(min(_orbit(rest, pairs), key=_rank), coef))
    fewer = len(collected(terms)) < len(terms)
    coef, rest = split_coef(add(terms) if fewer else inner)
    if rest is not inner:
        yield scale(symmetric_part(rest, pairs), coef)


@law("mirrored-term", "sym(A*S*B + A'*S*B') = sym(A*S*B + B*S*A)", "symmetric_part")
def _mirrored_term(e: Expr) -> Iterable[Expr | None]:
    """Any term in the symmetric part of a matrix may be transposed."""
    terms = terms_of(e.args[0])
    if e.ndim == 2 and len(terms) <= MAX_MIRRORED:
        for k, term in enumerate(terms):
            turned = [*terms[:k], mirrored(term, 0), *terms[k + 1 :]]
            yield symmetric_part(add(turned), 1)
