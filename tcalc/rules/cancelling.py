"""Terms with a common factor whose other factors cancel: f - f (a + 1) is -f a.

The derivative of (1 + a) exp(-a) is such a difference. As it stands, it loses all digits where a is
small; without what cancels, it loses none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..graph.extents import ONE, Coef
from ..graph.nodes import Add, Expr
from ..graph.normal import add, einsum, terms_of
from ..graph.products import atoms_of, zeros_node
from ..graph.sums import MAX_OPEN_TERMS, collected, embeds, flattened
from ..ops.elementwise import exp
from ..support.records import NamedTuple
from .strategy import rule

CANCELLING = "cancelling"
#: Terms of a sum among which common factors are looked for.
MAX_TERMS = 32

#: A factor, and the axes of the term that it has.
Place = tuple[Expr, tuple[int, ...]]


class Term(NamedTuple):
    """A term as a product of factors at axes; nodes are unique, so factors are compared as such."""

    whole: Expr
    factors: Sequence[Place]

    def without(self, common: Counter[Place]) -> Expr:
        """The term without these factors, broadcast along all of its axes."""
        left = Counter(self.factors)
        left.subtract(common)
        return _product(list(left.elements()), self.whole, atoms_of(self.whole).coef)


def _product(factors: Sequence[Place], like: Expr, coef: Coef = ONE) -> Expr:
    ops, words = [op for op, _ in factors], [word for _, word in factors]
    return einsum(ops, words, range(like.ndim), coef, dict(enumerate(like.shape)))


def _term(e: Expr) -> Term:
    atoms, out, _, _ = atoms_of(e)
    return Term(e, [(op, tuple([out.index(k) for k in word])) for op, word in atoms])


def _merged(e: Expr) -> Expr | None:
    """Two terms as one, where fewer terms stand under their common factors than in both."""
    assert isinstance(e, Add)
    if len(e.args) > MAX_TERMS or any(map(embeds, e.args)):
        return None
    terms = list(map(_term, e.args))
    for one in terms:
        for place in one.factors:
            if not isinstance(place[0], Add):
                continue
            common = Counter(one.factors)
            common.subtract([place])
            for other in terms:
                found = None if other is one else _under(+common, one, other)
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


def _under(common: Counter[Place], one: Term, other: Term) -> Expr | None:
    """The sum of two terms as a product with what they have in common."""
    if common - Counter(other.factors):
        return None
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
