"""Terms with a common factor whose other factors cancel: f - f (a + 1) is -f a.

The derivative of (1 + a) exp(-a) is such a difference. As it stands, it loses all digits where a is
small; without what cancels, it loses none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import product

from ..graph.extents import ONE, Coef
from ..graph.nodes import Add, Einsum, Expr
from ..graph.normal import add, einsum, terms_of
from ..graph.products import atoms_of, zeros_node
from ..graph.sums import MAX_OPEN_TERMS, collected, embeds, flattened
from ..ops.elementwise import exp
from ..support.limits import spend
from ..support.records import NamedTuple
from .strategy import rule

CANCELLING = "cancelling"
#: Terms of a sum among which common factors are looked for: of larger ones that others are found
#: in, as the polynomials of many steps are, it takes longer than all the rest.
MAX_TERMS = 8

#: How many factors of two terms are compared in one step.
COMPARED = 8

#: A factor, and the axes of the term that it has.
Place = tuple[Expr, tuple[int, ...]]


class Term(NamedTuple):
    """A term as a product of factors at axes; nodes are unique, so factors are compared as such."""

    whole: Expr
    places: list[Place]
    coef: Coef

    @property
    def factors(self) -> Counter[Place]:
        return Counter(self.places)

    def without(self, common: Counter[Place]) -> Expr:
        """The term without these factors, broadcast along all of its axes."""
        return _product((self.factors - common).elements(), self.whole, self.coef)


def _product(factors: Iterable[Place], like: Expr, coef: Coef = ONE) -> Expr:
    pairs = list(factors)
    ops, words = [op for op, _ in pairs], [word for _, word in pairs]
    return einsum(ops, words, range(like.ndim), coef, dict(enumerate(like.shape)))


def _term(e: Expr) -> Term:
    atoms, out, _, coef = atoms_of(e)
    places = [(op, tuple([out.index(k) for k in word])) for op, word in atoms]
    return Term(e, places, coef)


def _has_sum(e: Expr) -> bool:
    """Is a sum among the factors of a term?"""
    factors = e.args if isinstance(e, Einsum) and not e.summed else [e]
    return any(isinstance(op, Add) for op in factors)


def _merged(e: Expr) -> Expr | None:
    """Two terms as one, where fewer terms stand under their common factors than in both."""
    assert isinstance(e, Add)
    if len(e.args) > MAX_TERMS or not any(map(_has_sum, e.args)) or any(map(embeds, e.args)):
        return None
    terms = list(map(_term, e.args))
    with_sums = [k for k, t in enumerate(terms) if any(isinstance(op, Add) for op, _ in t.places)]
    different = [set(term.places) for term in terms]
    spend("steps", len(with_sums) * sum(map(len, different)) // COMPARED)
    for k, j in product(with_sums, range(len(terms))):
        if k == j or len(different[k] - different[j]) > 1:
            continue
        one, other = terms[k], terms[j]
        apart = one.factors - other.factors
        if apart.total() == 1 and isinstance(next(iter(apart))[0], Add):
            found = _under(one.factors - apart, one, other)
            if found is not None:
                rest = [term.whole for term in terms if term is not one and term is not other]
                return add([found, *rest])
    return None


def _opened(e: Expr) -> list[Expr]:
    """The terms of a sum and of the sums in it."""

    def terms(e: Expr) -> Sequence[Expr] | None:
        found = terms_of(e)
        return found if len(found) > 1 else None

    return flattened(e, terms, MAX_OPEN_TERMS)


def _operands(ops: list[Expr]) -> list[frozenset[Expr]]:
    """Those of every term of a product of these, where it is a sum, without their axes."""
    if len(ops) == 1 and isinstance(ops[0], Add):
        return [found for t in ops[0].args for found in _operands([op for op, _ in atoms_of(t)[0]])]
    return [frozenset(ops)]


def _under(common: Counter[Place], one: Term, other: Term) -> Expr | None:
    """The sum of two terms as a product with what they have in common."""
    left = [[op for op, _ in (term.factors - common).elements()] for term in (one, other)]
    each = [ops for factors in left for ops in _operands(factors)]
    if len(set(each)) == len(each):
        return None  # told sooner than by making the terms
    inner = [*_opened(one.without(common)), *_opened(other.without(common))]
    found = collected(inner)
    if len(found) == len(inner):
        return None
    total = add(found) if found else zeros_node(one.whole.shape)
    return _product([*common.elements(), (total, tuple(range(total.ndim)))], one.whole)


rule(
    "factor-of-what-cancels", CANCELLING, lambda a: exp(-a) - (1 + a) * exp(-a),
    lambda a: -a * exp(-a), "Add", _merged, finite=True,
)  # fmt: skip
