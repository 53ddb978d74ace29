"""Sums of exponentials as a shift and a rest of moderate size, however they are spelled.

An expression is read as coef * weight * exp(exponent). The exponent of a sum is a log-sum-exp of
those of its terms, so that it overflows nowhere and the weight is a mean of the terms' weights,
each by its share of the whole, exp(exponent of the term - exponent of the sum) <= 1. Where all
weights are 1 nothing is left of the sum but its exponent. Positive numbers go into the exponents of
terms and of logarithms; beside a lone exponential they stay in front, unless they are so large or
so small that it is finite with them only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ..graph.applications import apply, root_of
from ..graph.extents import ONE, Coef, Extent, number
from ..graph.factors import LabelledExpr
from ..graph.nodes import Add, Apply, Einsum, Expr, Labels
from ..graph.normal import add, einsum, scale, terms_of
from ..graph.products import filled, is_number, numeral, numeric_value, split_coef
from ..ops.elementwise import exp, log, logaddexp, logcosh, power, softplus, tanh
from ..ops.matrix.inverse import logdet, slogdet
from ..ops.powers import power_of
from ..ops.reductions import LOGSUMEXP, WEIGHTED_LOGSUMEXP
from ..ops.special import log_ndtr
from ..support.records import NamedTuple
from .facts import is_definite, is_positive

#: How many levels of products and sums are read.
MAX_DEPTH = 6
#: Sums with more terms are left as they are.
MAX_TERMS = 64
#: Numbers up to this one, and their reciprocals, stand beside exponentials.
MODERATE = 1e8


class Shifted(NamedTuple):
    """coef * weight * exp(exponent), the coefficient positive; a weight of None is 1."""

    exponent: Expr
    weight: Expr | None = None
    coef: Coef = ONE

    def joined(self) -> Shifted:
        """The same with the coefficient in the exponent."""
        if self.coef == ONE:
            return self
        return Shifted(self.exponent + log(filled(self.coef, self.exponent.shape)), self.weight)

    def to_the(self, exponent: float) -> Shifted | None:
        """A power of it; None where it has a weight other than a sign."""
        if self.weight is not None and root_of(self.weight) != "det_sign":
            return None
        coef = _power_of(self.coef, exponent)
        held = self.joined() if coef is None else self
        sign = None if self.weight is None or exponent % 2 == 0 else power(self.weight, exponent)
        return Shifted(scale(held.exponent, Coef(exponent)), sign, coef or ONE)


def _moderate(coef: Coef) -> bool:
    """May it stand beside an exponential without making it infinite or 0?"""
    return 1 / MODERATE <= coef.value <= MODERATE


def _power_of(coef: Coef, power: float) -> Coef | None:
    """A power of a moderate coefficient; None where it is not moderate or has a root of extents."""
    if power == -1:
        return coef.inverse()
    whole = not coef.times and not coef.over
    if not whole or abs(power * math.log(coef.value)) > math.log(MODERATE):
        return None
    return number(float(coef.value) ** power)


#: Functions that overflow.
GROWING: dict[str, Callable[[Expr], Shifted]] = {
    "exp": lambda a: Shifted(a),
    "cosh": lambda a: Shifted(logcosh(a)),
    "sinh": lambda a: Shifted(logcosh(a), tanh(a)),
}


def _of_abs(a: Expr) -> Shifted | None:
    return Shifted(logdet(a.args[0])) if root_of(a) == "det" else None


def _of_det(a: Expr) -> Shifted:
    sign, size = slogdet(a)
    return Shifted(size, None if is_definite(a, strictly=False) else sign)


#: Functions with a logarithm that is finite where they are 0 or infinite.
LOGARITHMS: dict[str, Callable[[Expr], Shifted | None]] = {
    "sigmoid": lambda a: Shifted(scale(softplus(scale(a, Coef(-1))), Coef(-1))),
    "ndtr": lambda a: Shifted(log_ndtr(a)),
    "erfc": lambda a: Shifted(math.log(2) + log_ndtr(scale(a, Coef(-math.sqrt(2))))),
    "abs": _of_abs,
    "det": _of_det,
}

#: Functions that sums of exponentials become: shares are exponentials of differences from these.
TOTALS = frozenset({"logsumexp", "weighted_logsumexp", "logaddexp", "softplus", "logcosh"})


def is_share(exponent: Expr) -> bool:
    """Is a log-sum-exp subtracted in an exponent?"""
    for term in terms_of(exponent):
        coef, rest = split_coef(term)
        inner = rest.args[0] if isinstance(rest, Einsum) and len(rest.args) == 1 else rest
        if coef.value < 0 and isinstance(inner, Apply) and inner.op.name in TOTALS:
            return True
    return False


def exponent_leaves(exponent: Expr) -> set[Expr]:
    """What an exponent is a sum of, products opened and log-sum-exps taken for their terms."""
    waiting, found = [exponent], set()
    while waiting:
        e = waiting.pop()
        if isinstance(e, Einsum | Add) or root_of(e) in TOTALS:
            waiting += e.args
        else:
            found.add(e)
    return found


def has_total(exponent: Expr) -> bool:
    """Is a log-sum-exp among the terms of an exponent?"""
    parts = [split_coef(term)[1] for term in terms_of(exponent)]
    inner = [e.args[0] if isinstance(e, Einsum) and len(e.args) == 1 else e for e in parts]
    return any(root_of(e) in TOTALS for e in inner)


def shifted(e: Expr, positive: bool, depth: int = MAX_DEPTH, plain: bool = True) -> Shifted | None:
    """e as coef * weight * exp(exponent), None where no exponential is in it.

    Parameters
    ----------
    e : Expr
    positive : bool
        Is only its logarithm asked for? Then terms that are subtracted are smaller than the others,
        and functions that vanish are taken apart too.
    depth : int
        How many more levels are read.
    plain : bool
        May sums have terms without any exponential, other than numbers?
    """
    if not depth:
        return None
    if isinstance(e, Apply):
        return _of_function(e, positive, depth, plain)
    if isinstance(e, Add):
        return _of_sum(e, positive, depth, plain)
    if not isinstance(e, Einsum) or not e.args or len(set(e.out)) < len(e.out) or e.coef.zero:
        return None
    return _of_contraction(e, depth) if e.summed else _of_product(e, positive, depth, plain)


def _of_function(e: Apply, positive: bool, depth: int, plain: bool) -> Shifted | None:
    name = e.op.name
    if name in GROWING:
        return GROWING[name](e.args[0])
    if positive and name in LOGARITHMS:
        return LOGARITHMS[name](e.args[0])
    found = power_of(e)
    inner = None if found is None else shifted(found[0], positive, depth - 1, plain)
    return None if found is None or inner is None else inner.to_the(found[1])


def _of_product(e: Einsum, positive: bool, depth: int, plain: bool) -> Shifted | None:
    parts = [shifted(arg, positive, depth - 1, plain) for arg in e.args]
    extents = dict(enumerate(e.extents))
    exponents, weights, coef = [], [], e.coef
    for part, arg, word in zip(parts, e.args, e.labels, strict=True):
        if part is not None:
            exponents.append(einsum([part.exponent], [word], e.out, ONE, extents))
            coef = coef.by(part.coef)
        rest = arg if part is None else part.weight
        if rest is not None:
            weights.append((rest, word))
    if not exponents:
        return None
    inside = coef if coef.value > 0 else ONE
    outside = ONE if inside is coef else coef
    weight = _product(weights, e.out, extents, outside) if weights or outside != ONE else None
    found = Shifted(add(exponents), weight, inside)
    return found if _moderate(inside) else found.joined()


def _product(
    factors: Sequence[LabelledExpr], out: Labels, extents: dict[int, Extent], coef: Coef = ONE
) -> Expr:
    return einsum([arg for arg, _ in factors], [word for _, word in factors], out, coef, extents)


def _of_sum(e: Add, positive: bool, depth: int, plain: bool) -> Shifted | None:
    if len(e.args) > MAX_TERMS:
        return None
    parts = [shifted(term, False, depth - 1, plain) for term in e.args]
    if not any(parts):
        return None
    terms = [part.joined() for part in parts if part is not None]
    others = [term for part, term in zip(parts, e.args, strict=True) if part is None]
    terms += [_of_number(term) for term in others if is_number(term)]
    rest = [term for term in others if not is_number(term)]
    if rest and not plain:
        return None
    if rest:
        terms.append(Shifted(numeral(0, e.shape), add(rest)))
    tops = [t.exponent for t in terms if not (positive and _is_negative(t.weight))]
    if not tops or all(map(is_number, tops)):
        return None
    top = _log_sum(tops)
    if all(t.weight is None for t in terms):
        return Shifted(top)
    if all(is_share(t.exponent) or is_number(t.exponent) for t in terms):
        return None
    shares = [_times(t.weight, exp(t.exponent - top)) for t in terms]
    return Shifted(top, add(shares))


def _of_number(e: Expr) -> Shifted:
    positive = isinstance(e, Einsum) and e.coef.value > 0
    return Shifted(log(e)) if positive else Shifted(numeral(0, e.shape), e)


def _is_negative(weight: Expr | None) -> bool:
    return weight is not None and is_positive(scale(weight, Coef(-1)), False)


def _times(weight: Expr | None, e: Expr) -> Expr:
    return e if weight is None else weight * e


def _log_sum(exponents: list[Expr]) -> Expr:
    """The logarithm of a sum of exponentials, by pairs, numbers last."""
    waiting = [a for a in exponents if not is_number(a)]
    numbers = [a for a in exponents if is_number(a)]
    while len(waiting) > 1:
        pairs = zip(waiting[::2], waiting[1::2], strict=False)
        waiting = [logaddexp(a, b) for a, b in pairs] + waiting[len(waiting) & ~1 :]
    total = waiting[0]
    if numbers:
        one = numbers[0]
        for other in numbers[1:]:
            one = logaddexp(one, other)
        total = softplus(total) if numeric_value(one) == 0 else logaddexp(one, total)
    return total


# --- sums over indices ----------------------------------------------------------------------------


class Contraction(NamedTuple):
    """A sum over labels of weights times exp(exponent).

    Attributes
    ----------
    exponent : Expr
        Its axes are `word`: labels of the result, and then summed ones.
    weights : list
        Other factors at their labels.
    """

    exponent: Expr
    word: Labels
    summed: int
    weights: list[LabelledExpr]


def _parts_of(e: Einsum, depth: int) -> list[Shifted | None]:
    """Its operands as exponentials, None where one is none."""
    found = [shifted(arg, False, depth - 1) for arg in e.args]
    return [None if part is None else part.joined() for part in found]


def _joined(e: Einsum, parts: Sequence[Shifted | None]) -> Contraction | None:
    """A contraction as a sum of exponentials; None where no operand's exponent has all labels.

    It would be the larger of a product's results by what is summed, n times one of n x n matrices.
    """
    labels = [set(w) for part, w in zip(parts, e.labels, strict=True) if part is not None]
    covered = set().union(*labels)
    if covered not in labels:
        return None
    kept = tuple([label for label in e.out if label in covered])
    summed = tuple([label for label in range(len(e.extents)) if label in covered - set(e.out)])
    word, extents = kept + summed, dict(enumerate(e.extents))
    exponents, weights = [], []
    for part, arg, own in zip(parts, e.args, e.labels, strict=True):
        if part is not None:
            exponents.append(einsum([part.exponent], [own], word, ONE, extents))
        rest = arg if part is None else part.weight
        if rest is not None:
            weights.append((rest, own))
    return Contraction(add(exponents), word, len(summed), weights)


def weighted_log_sum(e: Einsum, found: Contraction | None) -> Expr | None:
    """The logarithm of a contraction, as it was found, whose exponent has all its labels."""
    if found is None or not found.summed or len(found.word) < len(e.extents):
        return None
    if not found.weights:
        return apply(LOGSUMEXP, found.exponent, params=(found.summed,))
    weight = _product(found.weights, found.word, dict(enumerate(e.extents)))
    return apply(WEIGHTED_LOGSUMEXP, found.exponent, weight, params=(found.summed,))


def _of_contraction(e: Einsum, depth: int) -> Shifted | None:
    parts = _parts_of(e, depth)
    found = _joined(e, parts)
    if found is None:
        return _one_by_one(e, parts) if any(parts) else None
    extents = dict(enumerate(e.extents))
    if all(is_positive(weight, False) for weight, _ in found.weights):
        whole = weighted_log_sum(e, found)
        if whole is not None:
            return Shifted(whole)
    if is_share(found.exponent):
        return None
    n = len(found.word) - found.summed
    top = found.exponent
    if found.summed:
        top = apply(LOGSUMEXP, top, params=(found.summed,))
    axes = found.word[:n]
    share = exp(found.exponent - einsum([top], [axes], found.word, ONE, extents))
    weight = _product([*found.weights, (share, found.word)], e.out, extents)
    return Shifted(einsum([top], [axes], e.out, ONE, extents), weight)


def _one_by_one(e: Einsum, parts: Sequence[Shifted | None]) -> Shifted | None:
    """Each operand over its own sum: shares multiplied as matrices are, and sums beside them."""
    tops, weights, extents = [], [], dict(enumerate(e.extents))
    for part, arg, own in zip(parts, e.args, e.labels, strict=True):
        if part is None or is_share(part.exponent):
            weights.append((arg, own))
            continue
        axes = tuple([label for label in own if label in e.out])
        word = axes + tuple([label for label in own if label not in e.out])
        top = einsum([part.exponent], [own], word, ONE, extents)
        if len(axes) < len(word):
            top = apply(LOGSUMEXP, top, params=(len(word) - len(axes),))
            below = einsum([top], [axes], own, ONE, extents)
            weights.append((exp(part.exponent - below), own))
        tops.append(einsum([top], [axes], e.out, ONE, extents))
        if part.weight is not None:
            weights.append((part.weight, own))
    return Shifted(add(tops), _product(weights, e.out, extents)) if tops else None


def log_of(e: Expr) -> Expr | None:
    """The logarithm of an expression with exponentials, without the sum of them."""
    inner = e.args[0] if isinstance(e, Einsum) and len(e.args) == 1 else None
    if isinstance(e, Einsum) and e.summed:
        whole = weighted_log_sum(e, _joined(e, _parts_of(e, MAX_DEPTH)))
        if whole is not None:
            return whole
    elif isinstance(inner, Einsum) and isinstance(e, Einsum) and inner.summed:
        found = log_of(inner) if e.coef.value > 0 and len(set(e.out)) == len(e.out) else None
        if found is not None:
            moved = einsum([found], e.labels, e.out, ONE, dict(enumerate(e.extents)))
            return moved if e.coef == ONE else moved + log(filled(e.coef, e.shape))
    whole_sum = shifted(e, True)
    if whole_sum is None:
        return None
    parts = whole_sum.joined()
    return parts.exponent if parts.weight is None else parts.exponent + log(parts.weight)
