"""Laws of exponentials, and of shares of a whole: sigmoid(x - y) is exp(x)/(exp(x) + exp(y))."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

from ..graph.extents import ONE, Coef
from ..graph.nodes import Add, Apply, Einsum, Expr, Labels
from ..graph.normal import add, built, einsum, scale, terms_of
from ..graph.operators import TABLE
from ..graph.products import atoms_of, numeric_value, split_coef
from ..ops.elementwise import exp, reciprocal, sigmoid
from ..ops.special import log_ndtr
from .laws import law
from .powers import RECIPROCAL, degree_of

EXP, SIGMOID = TABLE["exp"], TABLE["sigmoid"]


@law(
    "inverse-mills-ratio", "inverse_mills(0, x) = exp(-x.^2/2 - log_ndtr(x))/sqrt(2*pi)",
    "inverse_mills", directed=True,
)  # fmt: skip
def _inverse_mills(e: Expr) -> Iterable[Expr | None]:
    """The normal density over its distribution function; derivatives of it keep their name."""
    order, x = e.args
    if numeric_value(order) == 0:
        axes = range(x.ndim)
        square = einsum([x, x], [axes, axes], axes, Coef(-0.5))
        yield scale(exp(add([square, scale(log_ndtr(x), Coef(-1))])), Coef((2 * math.pi) ** -0.5))


@law("xlogy-of-exp", "xlogy(x, exp(y)) = x .* y", "xlogy", directed=True)
def _xlogy(e: Expr) -> Iterable[Expr | None]:
    a, b = e.args
    axes = word = tuple(range(e.ndim))
    if isinstance(b, Einsum) and len(b.args) == 1 and b.out == axes and not b.summed:
        (word,), (b,) = (b.labels, b.args) if b.coef == ONE else ((axes,), (b,))
    if isinstance(b, Apply) and b.op is EXP:
        yield einsum([a, b.args[0]], [axes, word], axes)


@law("power-of-an-exponential", "exp(x).^2 .* y = exp(2*x) .* y", "Einsum")
def _power_of_exponential(e: Expr) -> Iterable[Expr | None]:
    assert isinstance(e, Einsum)
    degrees: dict[tuple[Expr, Labels], Fraction] = {}
    rest = []
    for op, word in zip(e.args, e.labels, strict=True):
        base, degree, more = degree_of(op)
        if more is None and isinstance(base, Apply) and base.op is EXP:
            degrees[base, word] = degrees.get((base, word), Fraction(0)) + degree
        else:
            rest.append((op, word))
    if all(degree == 1 for degree in degrees.values()):
        return
    powers = [(exp(scale(base.args[0], Coef(float(k)))), w) for (base, w), k in degrees.items()]
    ops, words = zip(*rest, *powers, strict=True)
    yield einsum(ops, words, e.out, e.coef, dict(enumerate(e.extents)))


# --- shares of a whole ----------------------------------------------------------------------------


def opposite(e: Expr) -> Expr:
    """-e, of a difference the difference."""
    coef, rest = split_coef(e)
    signs = [split_coef(t)[0].value < 0 for t in terms_of(rest)]
    if isinstance(rest, Add) and len(set(signs)) == 2:
        return scale(add([scale(t, Coef(-1)) for t in rest.args]), coef)
    return scale(e, Coef(-1))


@law("share-of-a-difference", "sigmoid(-(x - y)) = sigmoid(y - x)", "sigmoid", directed=True)
def _share_of_difference(e: Expr) -> Iterable[Expr | None]:
    (z,) = e.args
    coef, rest = split_coef(z)
    if coef.value < 0:
        yield sigmoid(scale(opposite(rest), coef.by(Coef(-1))))


def complemented(terms: Sequence[Expr]) -> list[Expr] | None:
    """The terms, two of which are parts of a whole; None where no two are."""
    places = {id(t): k for k, t in enumerate(terms)}
    for k, term in enumerate(terms):
        product = atoms_of(term)
        for j, (op, word) in enumerate(product.operands):
            if isinstance(op, Apply) and op.op is SIGMOID:
                rest = product.operands[:j] + product.operands[j + 1 :]
                other = (sigmoid(opposite(op.args[0])), word)
                found = places.get(id(built(product._replace(operands=[*rest, other]))), k)
                if found != k:
                    kept = [t for i, t in enumerate(terms) if i not in (k, found)]
                    return [*kept, built(product._replace(operands=rest))]
    return None


@law("shares-of-a-whole", "y .* sigmoid(x) + y .* sigmoid(-x) = y", "Add", directed=True)
def _shares_of_whole(e: Expr) -> Iterable[Expr | None]:
    found = complemented(e.args)
    if found is not None:
        yield add(found)


@law(
    "ratio-of-shares", "sigmoid(x - y) .* reciprocal(a*sigmoid(x - y) + b*sigmoid(y - x)) = "
    "exp(x)./(a*exp(x) + b*exp(y))", "Einsum",
)  # fmt: skip
def _ratio_of_shares(e: Expr) -> Iterable[Expr | None]:
    """Over a sum of the same two shares, what they are shares of."""
    assert isinstance(e, Einsum)
    pairs = list(zip(e.args, e.labels, strict=True))
    for k, (share, word) in enumerate(pairs):
        if not isinstance(share, Apply) or share.op is not SIGMOID:
            continue
        for j, (over, other) in enumerate(pairs):
            if other != word or not isinstance(over, Apply) or over.op is not RECIPROCAL:
                continue
            parts = _exponentials(share, over.args[0])
            if parts is not None:
                above, below = parts
                rest = [pair for i, pair in enumerate(pairs) if i not in (j, k)]
                ops, words = zip(*rest, (above, word), (reciprocal(below), word), strict=True)
                yield einsum(ops, words, e.out, e.coef, dict(enumerate(e.extents)))
                return


def _exponentials(share: Apply, total: Expr) -> tuple[Expr, Expr] | None:
    """exp(x), and the total with exp(x) and exp(y) where each term has one of their shares."""
    (z,) = share.args
    coef, rest = split_coef(z)
    parts = [scale(t, coef) for t in terms_of(rest)]
    negative = [split_coef(t)[0].value < 0 for t in parts]
    if len(set(negative)) < 2 or not isinstance(total, Add):
        return None
    x = add([t for t, low in zip(parts, negative, strict=True) if not low])
    y = add([scale(t, Coef(-1)) for t, low in zip(parts, negative, strict=True) if low])
    if all(map(_is_square, parts)):
        x, y = scale(y, Coef(-1)), scale(x, Coef(-1))  # exp(-u^2), not exp(u^2)
    other = sigmoid(opposite(z))
    powers = {id(share): exp(x), id(other): exp(y)}
    found = []
    for term in total.args:
        product = atoms_of(term)
        places = [k for k, (op, _) in enumerate(product.operands) if id(op) in powers]
        if len(places) != 1:
            return None
        op, word = product.operands[places[0]]
        operands = product.operands[: places[0]] + product.operands[places[0] + 1 :]
        found.append(built(product._replace(operands=[*operands, (powers[id(op)], word)])))
    return exp(x), add(found)


def _is_square(e: Expr) -> bool:
    """Is a term a multiple of even powers?"""
    bases: dict[tuple[int, Labels], Fraction] = {}
    for op, word in atoms_of(e).operands:
        base, degree, rest = degree_of(op)
        bases[id(base), word] = bases.get((id(base), word), Fraction(0)) + degree
        if rest is not None:
            return False
    return all(degree % 2 == 0 for degree in bases.values())
