"""Laws of common factors: what terms share is written once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ..graph.extents import ONE, Coef, Extent, Shape, quotient_of, size_of
from ..graph.factors import Factors, inlined
from ..graph.nodes import Add, Einsum, Expr, Labels, postorder
from ..graph.normal import add, bare, built, einsum, scale, view
from ..graph.products import atoms_of, multiple, split_coef
from ..graph.sums import structured
from ..languages.writing.constants import irrational, unrounded
from ..languages.writing.layout import FormulaLayout
from ..languages.writing.style import Style
from ..ops.matrix.grouped import grouped
from ..support.records import NamedTuple
from .exponentials import opposite
from .laws import law, once
from .powers import in_units
from .products import MAX_TERMS, opened

#: How many of the factors that terms share are tried.
MAX_PULLED = 3
#: Factors of a product of which one may differ among terms.
MAX_CHAIN = 8


class Place(NamedTuple):
    """A factor of a term, and how its axes meet the result's and the other factors'.

    Attributes
    ----------
    key : tuple
        Equal where two terms have the factor, or its negative, in one place.
    factor : Expr
    word : tuple of int
        Its labels: those of the result's axes, and from `ndim` on those that are summed.
    rest : Factors
        The other factors under the same labels; which of them stand in the remainder is decided
        among all terms.
    made : dict
        Remainders that were built, by their axes and the result's shape.
    """

    key: tuple[Any, ...]
    factor: Expr
    word: Labels
    rest: Factors
    made: dict[tuple[Labels, Shape], Expr]

    def remainder(self, axes: Sequence[int], shape: Shape) -> Expr:
        """The other factors with the result's axes that are wanted."""
        ndim = len(shape)
        out = tuple([self.rest.out[k] if k < ndim else k for k in axes])
        if (out, shape) not in self.made:
            extents: dict[int, Extent] = dict(enumerate(shape))
            extents.update(zip(self.word, self.factor.shape, strict=True))
            product = self.rest._replace(out=out, extents={**extents, **self.rest.extents})
            self.made[out, shape] = built(product)
        return self.made[out, shape]


def _places(product: Factors) -> Iterator[Place]:
    """The factors of a term that are not at an axis of a unit tensor."""
    out = product.out
    position: dict[int, int] = {}
    for k, label in enumerate(out):
        position.setdefault(label, k)
    units = {label for label in out if out.count(label) > 1}
    for k, (op, word) in enumerate(product.operands):
        if not units.isdisjoint(word):
            continue
        rest = product.operands[:k] + product.operands[k + 1 :]
        names = dict(position)
        for _, labels in ((op, word), *rest):
            for label in labels:
                names.setdefault(label, max(len(out), *names.values(), -1) + 1)
        moved = tuple([names[label] for label in word])
        own = sorted(set(moved))
        extents = {names[i]: x for i, x in product.extents.items() if i in names}
        words = [(a, tuple([names[label] for label in w])) for a, w in rest]
        found = Factors(words, tuple([names[label] for label in out]), extents, product.coef)
        summed = tuple([i if i < len(out) else own.index(i) + len(out) for i in moved])
        yield Place((_either_sign(op), summed), op, moved, found, {})


def _either_sign(e: Expr) -> tuple[Any, ...]:
    """What tells a factor from others, but not a difference from its negative."""
    other = opposite(e) if isinstance(e, Add) else e
    return min(e.order, other.order) if isinstance(other, Add) else e.order


def _pulled(
    e: Expr, places: list[tuple[int, Place]], written: Callable[[Expr], Expr] = bare
) -> Expr:
    """The terms at these places as one product, with what is `written` for the sum in it."""
    first = places[0][1]
    own, result = set(first.word), set(range(e.ndim))
    needed = {i for _, place in places for _, w in place.rest.operands for i in w}
    axes = sorted((result - own) | (needed & own))
    extents: dict[int, Extent] = dict(enumerate(e.shape))
    extents.update(zip(first.word, first.factor.shape, strict=True))
    rests = [
        scale(place.remainder(axes, e.shape), ONE if place.factor is first.factor else Coef(-1))
        for _, place in places
    ]
    words = [first.word, axes]
    return einsum([first.factor, written(add(rests))], words, range(e.ndim), ONE, extents)


@once
def _views(e: Expr) -> list[list[Place]]:
    """The factors of a term as a product: contractions opened, and contractions as factors."""
    whole, outer = opened(e), atoms_of(e)
    found = [whole]
    if len(outer.operands) != len(whole.operands):
        found.append(outer)
    units = [p._replace(operands=[f for op in p.operands for f in in_units(*op)]) for p in found]
    return [list(_places(p)) for p in units]


@law("common-factor", "A*x + A*B*x = A*(B*x + x)", "Add")
def _common_factor(e: Expr) -> Iterable[Expr | None]:
    """Terms with a factor in one place become one."""
    shared = _shared(e) if len(e.args) <= MAX_TERMS else []
    alike = [places for places in shared if _of_every_entry(e, places)]
    if alike:
        yield _pulled(e, alike[0], _without_common)
    others = [places for places in shared if not _of_every_entry(e, places)]
    for places in others[:MAX_PULLED]:
        members = {k for k, _ in places}
        rest = [t for k, t in enumerate(e.args) if k not in members]
        yield add([*rest, _pulled(e, places, _without_common)])


def _shared(e: Expr) -> list[list[tuple[int, Place]]]:
    """Factors that terms of a sum have in one place, those of the most terms first."""
    found: dict[Any, list[tuple[int, Place]]] = {}
    for k, term in enumerate(e.args):
        seen: set[Any] = set()
        for factors in _views(term):
            for place in factors:
                if place.key not in seen:
                    seen.add(place.key)
                    found.setdefault(place.key, []).append((k, place))
    shared = [places for places in found.values() if _worth(places, len(e.args))]
    shared.sort(key=lambda places: (-len(places), -places[0][1].factor.ndim, places[0][1].key))
    return shared


def _of_every_entry(e: Expr, places: list[tuple[int, Place]]) -> bool:
    """Do entries of all terms have the factor?"""
    return len(places) == len(e.args) and all(axis < e.ndim for axis in places[0][1].word)


def _without_common(e: Expr) -> Expr:
    """The sum without any factor of every entry, all of which stand in front of it."""
    shared = _shared(e) if isinstance(e, Add) else []
    alike = next((places for places in shared if _of_every_entry(e, places)), None)
    return e if alike is None else _pulled(e, alike, _without_common)


def _worth(places: list[tuple[int, Place]], terms: int) -> bool:
    """Do all terms have the factor, or two a factor that is no scalar's or matrix's name?"""
    factor = places[0][1].factor
    return len(places) > 1 and (len(places) == terms or bool(factor.args) or factor.ndim == 1)


@law("different-factor", "A*B*x + A'*B*x + y = (A + A')*B*x + y", "Add")
def _different_factor(e: Expr) -> Iterable[Expr | None]:
    """Terms that differ in one matrix become one; of two terms, common factors are pulled out."""
    if len(e.args) > MAX_TERMS or e.ndim not in (1, 2):
        return
    found: dict[Any, list[tuple[int, Expr, Expr]]] = {}
    for k, term in enumerate(e.args):
        for key, factor, rest in _without_one(term):
            found.setdefault((*key, factor.shape, id(rest)), []).append((k, factor, rest))
    for (word, axes, *_), group in found.items():
        members = {k for k, _, _ in group}
        if len(group) != len(members) or len(group) == 1:
            continue
        total = add([factor for _, factor, _ in group])
        factor = _one_factor(total)
        if len(e.args) > 2 or factor is not total:
            others = [t for k, t in enumerate(e.args) if k not in members]
            yield add([*others, einsum([factor, group[0][2]], [word, axes], range(e.ndim))])


def _one_factor(e: Expr) -> Expr:
    """A sum as a factor of products, which would multiply out one of unit tensors."""
    if not isinstance(e, Add) or not structured(e):
        return e
    parts = map(split_coef, e.args)
    sizes = [(len(FormulaLayout(Style()).text(rest)), coef.value < 0) for coef, rest in parts]
    negative = [minus for _, minus in sorted(sizes)]  # [1:] before [:-1], as differences have them
    more = 2 * sum(negative) - len(negative)
    sign = -1 if more > 0 or (more == 0 and negative[0]) else 1
    coef = Coef(sign * _divisor(e))
    return scale(grouped(_divided(e, coef)), coef)


@once
def _without_one(e: Expr) -> list[tuple[tuple[Labels, Labels], Expr, Expr]]:
    """Each matrix with the coefficient, perhaps the scalars, and the rest.

    Their labels come first, the result's in front.
    """
    product, found = _of_arrays(opened(e)), []
    ndim = len(product.out)
    if len(product.operands) > MAX_CHAIN or len(set(product.out)) < ndim:
        return []
    scalars = [item for item in product.operands if not item[1]]
    arrays = [item for item in product.operands if item[1]]
    for k, (op, word) in enumerate(arrays):
        others = arrays[:k] + arrays[k + 1 :]
        if op.ndim != 2 or len(set(word)) < 2 or not (others or scalars):
            continue
        names = {label: axis for axis, label in enumerate(product.out)}
        for label in word:
            names.setdefault(label, max(ndim, *[i + 1 for i in names.values()]))
        inside = {label for _, w in others for label in w}
        out = tuple(sorted([label for label in names if label in inside], key=names.__getitem__))
        place, axes = tuple([names[label] for label in word]), tuple([names[i] for i in out])
        if not set(place).union(axes).issuperset(range(ndim)):
            continue
        turned, place = place[0] > place[1], tuple(sorted(place))
        for own, left in [([], scalars), (scalars, [])] if scalars and others else [([], scalars)]:
            factor = built(product._replace(operands=[(op, word), *own], out=word))
            rest = built(product._replace(operands=others + left, out=out, coef=ONE))
            found.append(((place, axes), view(factor, (1, 0)) if turned else factor, rest))
    return found


def _of_arrays(product: Factors) -> Factors:
    """The product, opened where its one array is a contraction: a number's multiple of it, say."""
    arrays = [k for k, (_, word) in enumerate(product.operands) if word]
    if len(arrays) != 1:
        return product
    (k,) = arrays
    op, word = product.operands[k]
    if not isinstance(op, Einsum) or not op.summed or len(set(word)) < len(word):
        return product
    extents = dict(product.extents)
    operands = [*product.operands[:k], *inlined(op, word, extents), *product.operands[k + 1 :]]
    return product._replace(operands=operands, extents=extents)


@law("common-number", "x/2 + vector(1, n)*extent(n)/2 = (x + vector(1, n)*extent(n))/2", "Add")
def _common_number(e: Expr) -> Iterable[Expr | None]:
    """A number that terms share outside, though their dimensions differ; or a constant."""
    coefs = [split_coef(t)[0] for t in e.args]
    sizes = {size_of(c.value) for c in coefs}
    if len(sizes) > 1:
        sizes = {irrational(c.value) for c in coefs}
    size = sizes.pop()
    if sizes or size in (0, 1):
        return
    rests = [split_coef(t)[1] for t in e.args]
    left = [c._replace(value=unrounded(quotient_of(c.value, size))) for c in coefs]
    yield scale(add(list(map(multiple, rests, left))), Coef(size))


@law("common-divisor", "x .* (4*y - 2*x) = 2*x .* (2*y - x)", "Einsum", directed=True)
def _common_divisor(e: Expr) -> Iterable[Expr | None]:
    """A whole number that divides all terms of a factor stands in front of the product."""
    assert isinstance(e, Einsum)
    for k, op in enumerate(e.args if len(e.args) > 1 else ()):
        coef = Coef(_divisor(op))
        if coef != ONE:
            ops = [*e.args[:k], _divided(op, coef), *e.args[k + 1 :]]
            extents = dict(enumerate(e.extents))
            yield scale(einsum(ops, e.labels, e.out, e.coef, extents), coef)
            return


def _divisor(e: Expr) -> int:
    """The largest whole number that divides all terms of a sum."""
    values = [split_coef(t)[0].value for t in e.args] if isinstance(e, Add) else [1]
    whole = [v for v in values if isinstance(v, int)]
    return math.gcd(*whole) if len(whole) == len(values) else 1


def _divided(e: Expr, coef: Coef) -> Expr:
    part = Coef(quotient_of(1, coef.value))
    return add([scale(t, part) for t in e.args])


@law("sum-in-sum", "exp(x - y) - x + y = exp(x - y) - (x - y)", "Add", directed=True)
def _sum_in_sum(e: Expr) -> Iterable[Expr | None]:
    """Terms that are a sum which stands in another term, or its negative, are that sum."""
    terms = {id(t) for t in e.args}
    for inner in postorder(e.args):
        if not isinstance(inner, Add) or inner.shape != e.shape or len(inner.args) >= len(e.args):
            continue
        for sign in (1, -1):
            held = [scale(t, Coef(sign)) for t in inner.args]
            if all(id(t) in terms for t in held):
                gone = set(map(id, held))
                yield add([*[t for t in e.args if id(t) not in gone], scale(inner, Coef(sign))])
                return


@law("one-difference", "exp(x - y) .* (y - x) = -exp(x - y) .* (x - y)", "Einsum")
def _one_difference(e: Expr) -> Iterable[Expr | None]:
    """A difference beside factors that have its negative, as the negative of that."""
    assert isinstance(e, Einsum)
    if not any(isinstance(a, Add) or (isinstance(a, Einsum) and a.summed) for a in e.args):
        return
    inside = [node for node in postorder(e.args) if isinstance(node, Add)]
    product = opened(e) if len(inside) > 1 else atoms_of(e)
    for k, (op, word) in enumerate(product.operands):
        alike = [a for a in inside if a.shape == op.shape and len(a.args) == len(op.args)]
        if isinstance(op, Add) and len(alike) > 1:
            other = opposite(op)
            if any(a is other for a in alike):
                rest = product.operands[:k] + product.operands[k + 1 :]
                operands, coef = [*rest, (other, word)], product.coef.by(Coef(-1))
                yield built(product._replace(operands=operands, coef=coef))
