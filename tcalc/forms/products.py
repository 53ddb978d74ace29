"""Laws of sums and products: associativity, distribution, common factors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ..graph.extents import ONE, Coef, Extent
from ..graph.nodes import Add, Apply, Einsum, Expr, Labels
from ..graph.normal import add, built, distribute, einsum, terms_of
from ..graph.products import (
    Factors,
    LabelledExpr,
    atoms_of,
    factors_of,
    indicates,
    inlined,
    multiple,
    selects,
    split_coef,
    zeros_node,
)
from ..graph.sums import absent_axes, collected
from .laws import law
from .powers import RECIPROCAL, in_units

MAX_OPERANDS = 16
MAX_TERMS = 24
#: How many of the factors that terms share are tried.
MAX_PULLED = 3

# --- associativity --------------------------------------------------------------------------------


def opened(e: Expr) -> Factors:
    """The product that e is, contractions among its factors opened.

    Of a term with axes, factors that are scalars are left as they are.
    """
    whole = factors_of(e) if isinstance(e, Einsum) and e.summed else atoms_of(e)
    extents = dict(whole.extents)
    operands: list[LabelledExpr] = []
    for op, word in whole.operands:
        if isinstance(op, Einsum) and _opens(op, word) and (word or not e.ndim):
            operands += inlined(op, word, extents)
        else:
            operands.append((op, word))
    return whole._replace(operands=operands, extents=extents)


def _opens(e: Einsum, word: Labels) -> bool:
    """May a contraction be opened: none that is written as a slice or as indexing?"""
    whole = e.summed and len(set(word)) == len(word)
    return whole and not any(selects(op) or indicates(op) for op in e.args)


def _chained(product: Factors) -> bool:
    """Are operands matrices and vectors, every label between two of them or at an end?"""
    counts = Counter([label for _, word in product.operands for label in word])
    return all(op.ndim <= 2 and len(set(word)) == len(word) for op, word in product.operands) and (
        all(counts[label] <= (1 if label in product.out else 2) for label in counts)
    )


@law("associativity", "A*(B*(A*x)) = A*B*A*x", "Einsum", directed=True)
def _associativity(e: Expr) -> Iterable[Expr | None]:
    """A product of matrices in which no order is preferred."""
    assert isinstance(e, Einsum)
    inner = [op for op in e.args if isinstance(op, Einsum) and op.summed and op.ndim]
    if not e.summed or not inner:
        return
    product = opened(e)
    if len(product.operands) <= MAX_OPERANDS and _chained(product):
        yield built(product)


# --- sums -----------------------------------------------------------------------------------------


def settled(e: Expr) -> Expr:
    """The term with extents above and below the line cancelled: no axis is empty."""
    if not isinstance(e, Einsum) or not (e.coef.times and e.coef.over):
        return e
    times, over = Counter(e.coef.times), Counter(e.coef.over)
    coef = Coef(
        e.coef.value,
        tuple(sorted((times - over).elements())),
        tuple(sorted((over - times).elements())),
    )
    return e if coef == e.coef else multiple(split_coef(e)[1], coef)


def summands(e: Expr) -> list[Expr]:
    """The terms of a sum and of sums in it."""
    found: list[Expr] = []
    waiting = [e]
    while waiting:
        term = waiting.pop()
        inner = terms_of(term)
        if len(inner) > 1 and len(found) + len(waiting) + len(inner) <= MAX_TERMS:
            waiting.extend(reversed(inner))
        else:
            found.append(term)
    return found


def total(terms: Sequence[Expr], like: Expr) -> Expr:
    """The sum of terms, of which there may be none."""
    return add(terms) if terms else zeros_node(like.shape)


@law("sum-of-sums", "2*(A + B) + A' = 2*A + 2*B + A'", "Add")
def _flat(e: Expr) -> Iterable[Expr | None]:
    terms = summands(e)
    if len(terms) > len(e.args):
        yield total(list(map(settled, terms)), e)


def _multiplied_out(e: Expr) -> list[Expr]:
    """The terms of a product with sums in it, one sum after the other."""
    found: list[Expr] = []
    waiting = [e]
    while waiting:
        term = waiting.pop()
        inner = terms_of(term)
        if len(inner) == 1 and isinstance(term, Einsum):
            place = next((k for k, a in enumerate(term.args) if isinstance(a, Add)), None)
            if place is None:
                nested = opened(term)
                if any(isinstance(op, Add) for op, _ in nested.operands):
                    inner = _over_sum(nested)
            else:
                inner = distribute(term, {place: term.args[place].args})
        if len(inner) > 1 and len(found) + len(waiting) + len(inner) <= MAX_TERMS:
            waiting.extend(reversed(inner))
        else:
            found.append(settled(term))
    return found


def _over_sum(product: Factors) -> list[Expr]:
    k = next(k for k, (op, _) in enumerate(product.operands) if isinstance(op, Add))
    op, word = product.operands[k]
    rest = product.operands[:k] + product.operands[k + 1 :]
    return [built(product._replace(operands=[*rest, (t, word)])) for t in op.args]


@law(
    "distribution", "A*(B + A) - A*B = A*A", "Add", "Einsum", directed=True, early=True,
    given="no axis is empty",
)  # fmt: skip
def _distribution(e: Expr) -> Iterable[Expr | None]:
    """Products with sums multiplied out, where their terms then merge with others."""
    terms = e.args if isinstance(e, Add) else (e,)
    if isinstance(e, Einsum) and not any(isinstance(a, Add) for a in e.args):
        return
    rows = [_multiplied_out(t) for t in terms]
    if max(map(len, rows)) == 1:
        return
    parts = [[split_coef(t)[1] for t in row] for row in rows]  # held while ids are compared
    keys = [list(map(id, row)) for row in parts]
    counts = Counter([key for row in keys for key in row])
    found: list[Expr] = []
    for term, row, own in zip(terms, rows, keys, strict=True):
        meets = any(counts[key] > 1 for key in own)
        found += row if meets else [term]
    left = len(collected(found))
    if left <= len(terms) and left < len(found):
        yield total(found, e)


@law(
    "sum-with-a-broadcast", "diag(y)*(A - vector(1, n)*x') = diag(y)*A - y*x'", "Einsum",
)  # fmt: skip
def _with_broadcast(e: Expr) -> Iterable[Expr | None]:
    """A product with a sum some of whose terms are broadcast, multiplied out."""
    assert isinstance(e, Einsum)
    for k, op in enumerate(e.args):
        broadcast = isinstance(op, Add) and len(op.args) <= 4 and any(map(absent_axes, op.args))
        if broadcast and e.ndim == 2:
            yield add(distribute(e, {k: op.args}))


@law("trace-of-sum", "tr(A + x*y') = tr(A) + x'*y", "Einsum")
def _trace_of_sum(e: Expr) -> Iterable[Expr | None]:
    assert isinstance(e, Einsum)
    if len(e.args) == 1 and e.labels[0] == (0, 0) and not e.out and isinstance(e.args[0], Add):
        yield add(distribute(e, {0: e.args[0].args}))


# --- common denominators --------------------------------------------------------------------------


@law(
    "common-denominator", "1 - x .* reciprocal(x + y) = y .* reciprocal(x + y)", "Add",
    directed=True, early=True, given="what is divided by is not 0",
)  # fmt: skip
def _common_denominator(e: Expr) -> Iterable[Expr | None]:
    """Terms over one denominator, a sum, where their numerators then cancel."""
    seen = {}
    for t in e.args:
        if isinstance(t, Einsum) and not t.summed:
            for op, word in zip(t.args, t.labels, strict=True):
                if isinstance(op, Apply) and op.op is RECIPROCAL and isinstance(op.args[0], Add):
                    seen[id(op)] = op, () if not word else None
    for op, scalar in seen.values():
        (below,) = op.args
        if scalar is None and below.shape != e.shape:
            continue
        axes = range(e.ndim)
        word = tuple(axes)[: below.ndim]
        extents = dict(enumerate(e.shape))
        above: list[Expr] = []
        for t in e.args:
            whole = einsum([t, below], [axes, word], axes, ONE, extents)
            terms = [t for part in _cancelled(whole, op, below) for t in summands(part)]
            above += terms
        if len(collected(above)) < len(e.args):
            yield einsum([total(above, e), op], [axes, word], axes, ONE, extents)
            return


def _cancelled(e: Expr, over: Expr, below: Expr) -> list[Expr]:
    """The terms of a product with a sum, its reciprocal cancelled where it stands beside it."""
    if isinstance(e, Einsum) and not e.summed:
        pairs = list(zip(e.args, e.labels, strict=True))
        for k, (a, w) in enumerate(pairs):
            if a is over and any(b is below and v == w for b, v in pairs):
                rest = [p for j, p in enumerate(pairs) if j != k]
                at = next(j for j, p in enumerate(rest) if p[0] is below and p[1] == w)
                del rest[at]
                ops, words = [p[0] for p in rest], [p[1] for p in rest]
                return [einsum(ops, words, e.out, e.coef, dict(enumerate(e.extents)))]
    return _multiplied_out(e)


# --- common factors -------------------------------------------------------------------------------


class Place(NamedTuple):
    """A factor of a term, and how its axes meet the result's and the other factors'.

    Attributes
    ----------
    key : tuple
        Equal where two terms have the factor in one place.
    factor : Expr
    word : tuple of int
        Its labels: those of the result's axes, and from `ndim` on those that are summed.
    rest : Factors
        The other factors under the same labels; which of them stand in the remainder is decided
        among all terms.
    """

    key: tuple[Any, ...]
    factor: Expr
    word: Labels
    rest: Factors


def _places(product: Factors) -> Iterator[Place]:
    """The factors of a term; beside unit tensors the scalars only."""
    out = product.out
    units = len(set(out)) < len(out)
    position: dict[int, int] = {}
    for k, label in enumerate(out):
        position.setdefault(label, k)
    for k, (op, word) in enumerate(product.operands):
        if units and word:
            continue
        rest = product.operands[:k] + product.operands[k + 1 :]
        names = dict(position)
        for label in word:
            names.setdefault(label, max(len(out), *names.values(), -1) + 1)
        own = {names[label] for label in word}
        for _, other in rest:
            for label in other:
                names.setdefault(label, max(len(out), *names.values(), -1) + 1)
        moved = tuple([names[label] for label in word])
        extents = {names[i]: x for i, x in product.extents.items() if i in names}
        words = [(a, tuple([names[label] for label in w])) for a, w in rest]
        found = Factors(words, tuple([names[label] for label in out]), extents, product.coef)
        summed = tuple([i if i < len(out) else sorted(own).index(i) + len(out) for i in moved])
        yield Place((op.order, summed), op, moved, found)


def _pulled(e: Expr, places: list[tuple[int, Place]]) -> Expr:
    """The terms at these places as one product."""
    first = places[0][1]
    own = set(first.word)
    result = set(range(e.ndim))
    needed = {i for _, place in places for _, w in place.rest.operands for i in w}
    axes = sorted((result - own) | (needed & (result | own)))
    extents: dict[int, Extent] = dict(enumerate(e.shape))
    extents.update(zip(first.word, first.factor.shape, strict=True))
    rests = []
    for _, place in places:
        units = len(set(place.rest.out)) < len(place.rest.out)
        out = place.rest.out if units else tuple(axes)
        rests.append(built(place.rest._replace(out=out, extents={**extents, **place.rest.extents})))
    words = [first.word, axes]
    return einsum([first.factor, add(rests)], words, range(e.ndim), ONE, extents)


def _views(e: Expr) -> list[Factors]:
    """A term as a product: with contractions opened, and with contractions as factors."""
    whole, outer = opened(e), atoms_of(e)
    found = [whole]
    if len(outer.operands) != len(whole.operands):
        found.append(outer)
    return [p._replace(operands=[f for op in p.operands for f in in_units(*op)]) for p in found]


@law("common-factor", "A*x + A*B*x = A*(B*x + x)", "Add")
def _common_factor(e: Expr) -> Iterable[Expr | None]:
    """Terms with a factor in one place become one."""
    terms = e.args
    if len(terms) > MAX_TERMS:
        return
    found: dict[Any, list[tuple[int, Place]]] = {}
    for k, term in enumerate(terms):
        seen: set[Any] = set()
        for product in _views(term):
            for place in _places(product):
                if place.key not in seen:
                    seen.add(place.key)
                    found.setdefault(place.key, []).append((k, place))
    shared = [places for places in found.values() if _worth(places, len(terms))]
    shared.sort(key=lambda places: (-len(places), -places[0][1].factor.ndim, places[0][1].key))
    for places in shared[:MAX_PULLED]:
        members = {k for k, _ in places}
        rest = [t for k, t in enumerate(terms) if k not in members]
        yield add([*rest, _pulled(e, places)])


def _worth(places: list[tuple[int, Place]], terms: int) -> bool:
    """Do all terms have the factor, or two a factor that is no scalar's or matrix's name?"""
    factor = places[0][1].factor
    return len(places) > 1 and (len(places) == terms or bool(factor.args) or factor.ndim == 1)
