"""Forms that stay finite: the same values without overflow or cancellation."""

from __future__ import annotations

import math
from itertools import chain

from ..graph.applications import root_of
from ..graph.extents import ONE, Coef
from ..graph.factors import LabelledExpr
from ..graph.nodes import Add, Apply, Einsum, Expr, Labels
from ..graph.normal import add, einsum, scale, terms_of, view
from ..graph.operators import TABLE
from ..graph.products import is_zero, numeral, numeric_value, split_coef
from ..ops.arithmetic import sum
from ..ops.elementwise import (
    divide,
    exp,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    power,
    reciprocal,
    sech,
    sigmoid,
    softplus,
    tanh,
)
from ..ops.reductions import logsumexp, max
from ..ops.special import erf, erfc, inverse_mills, log_ndtr, ndtr
from .exponentials import exponent_leaves, has_total, is_share, log_of, shifted
from .facts import is_nonnegative
from .strategy import rule
from .undone_shifts import shifts_undone

STABLE = "stability"

#: Powers of shares that are written as products.
MAX_POWER = 4


# --- logarithms -----------------------------------------------------------------------------------


def _log(e: Expr) -> Expr | None:
    return log_of(e.args[0])


def _log1p(e: Expr) -> Expr | None:
    """log1p of what has an exponential, unless digits of a small operand would be lost."""
    found = shifted(1 + e.args[0], True)
    return None if found is None or found.weight is not None else found.joined().exponent


def _log2(e: Expr) -> Expr | None:
    found = log_of(e.args[0])
    return None if found is None else found / math.log(2)


def _log10(e: Expr) -> Expr | None:
    found = log_of(e.args[0])
    return None if found is None else found / math.log(10)


rule(
    "log-of-exponentials", STABLE, lambda a, b: log(2 * exp(a) + 3 * exp(b)),
    lambda a, b: logaddexp(a + math.log(2), b + math.log(3)), "log", _log,
)  # fmt: skip
rule(
    "log1p-of-exponentials", STABLE, lambda a: log1p(exp(a)), lambda a: softplus(a), "log1p", _log1p
)
rule(
    "log2-of-exponentials", STABLE, lambda a: log2(1 + exp(a)),
    lambda a: softplus(a) / math.log(2), "log2", _log2,
)  # fmt: skip
rule(
    "log10-of-exponentials", STABLE, lambda a: log10(1 + exp(a)),
    lambda a: softplus(a) / math.log(10), "log10", _log10,
)  # fmt: skip


def _sum_of_logarithms(e: Expr) -> Expr | None:
    return shifts_undone(e) if isinstance(e, Add) else None


rule(
    "shift-of-log-sum", STABLE, lambda a: max(a) + logsumexp(a - max(a)), lambda a: logsumexp(a),
    "Add", _sum_of_logarithms, shape=(3,), needs=[["logsumexp"]],
)  # fmt: skip


# --- quotients ------------------------------------------------------------------------------------


def _over(top: Expr, bottom: Expr) -> Expr | None:
    """top / bottom, where exponentials are below the line.

    Weighted sums of exponentials above are read as such if they have a part of an exponent in
    common with those below. Others have nothing to cancel: kernels in a product stay what they are.
    So do sums with other terms, above a lone exponential.
    """
    below = shifted(bottom, False)
    if below is None:
        return None
    coef, rest = split_coef(top)
    coef, axes = coef.by(below.coef.inverse()), tuple(range(top.ndim))
    exponents, factors = [scale(below.exponent, Coef(-1))], []
    shared, plain = exponent_leaves(below.exponent), has_total(below.exponent)
    for factor, word in _factors(rest):
        above = shifted(factor, False, plain=plain)
        weighted = above is not None and above.weight is not None
        if above is None or (weighted and shared.isdisjoint(exponent_leaves(above.exponent))):
            factors.append((factor, word))
            continue
        coef = coef.by(above.coef)
        exponents.append(_broadcast(above.exponent, word, top))
        if above.weight is not None:
            factors.append((above.weight, word))
    total = add(exponents)
    if not is_zero(total):
        factors.append((_exp(total), axes))
    ops, words = [op for op, _ in factors], [word for _, word in factors]
    made = einsum(ops, words, axes, coef, dict(enumerate(top.shape)))
    return made if below.weight is None else divide(made, below.weight)


def _factors(e: Expr) -> list[LabelledExpr]:
    """The factors of a product without unit tensors, at its axes; else the expression alone."""
    if isinstance(e, Einsum) and e.out == tuple(range(len(e.extents))):
        return list(zip(e.args, e.labels, strict=True))
    return [(e, tuple(range(e.ndim)))]


def _broadcast(e: Expr, word: Labels, like: Expr) -> Expr:
    return einsum([e], [word], range(like.ndim), ONE, dict(enumerate(like.shape)))


def _divide(e: Expr) -> Expr | None:
    return _over(*e.args)


def _reciprocal(e: Expr) -> Expr | None:
    return _over(numeral(1, e.shape), e.args[0])


def _power(e: Expr) -> Expr | None:
    base, exponent = e.args
    value = numeric_value(exponent)
    if value is None or value >= 0:
        return None
    found = shifted(base, False)
    found = None if found is None else found.to_the(float(value))
    return None if found is None else scale(_exp(found.exponent), found.coef)


def _product(e: Expr) -> Expr | None:
    """Exponentials in a product, one of them of a difference from a log-sum-exp, become one."""
    assert isinstance(e, Einsum)
    places = [k for k, a in enumerate(e.args) if isinstance(a, Apply) and a.op is TABLE["exp"]]
    for k in places if len(places) > 1 else ():
        if not is_share(e.args[k].args[0]):
            continue
        for j in places:
            word = e.labels[j]
            if j != k and set(word) >= set(e.labels[k]) and len(set(word)) == len(word):
                extents = dict(enumerate(e.extents))
                other = einsum([e.args[k].args[0]], [e.labels[k]], word, ONE, extents)
                joined = exp(e.args[j].args[0] + other)
                rest = [i for i in range(len(e.args)) if i not in (j, k)]
                args = [*[e.args[i] for i in rest], joined]
                words = [*[e.labels[i] for i in rest], word]
                return einsum(args, words, e.out, e.coef, extents)
    return None


rule(
    "over-exponentials", STABLE,
    lambda a, b: divide(exp(a), exp(a) + exp(b)), lambda a, b: sigmoid(a - b),
    "divide", _divide,
)  # fmt: skip
rule("sigmoid", STABLE, lambda a: reciprocal(1 + exp(a)), lambda a: sigmoid(-a), "reciprocal",
     _reciprocal)  # fmt: skip
rule(
    "power-of-exponentials", STABLE, lambda a: power(1 + exp(a), -1.5),
    lambda a: exp(-1.5 * softplus(a)), "power", _power,
)  # fmt: skip
rule(
    "exponentials-in-a-product", STABLE, lambda a, b: exp(a) * exp(-logaddexp(a, b)),
    lambda a, b: exp(a - logaddexp(a, b)), "Einsum", _product, needs=[["exp"]],
)  # fmt: skip


# --- shares of a whole ----------------------------------------------------------------------------


def _exp(exponent: Expr) -> Expr:
    found = _power_of_shares(exponent)
    return exp(exponent) if found is None else found


def _share(e: Expr) -> Expr | None:
    return _power_of_shares(e.args[0])


def _sum_of_shares(e: Expr) -> Expr | None:
    """The product without shares that are summed, over all that they are shares among: to 1."""
    assert isinstance(e, Einsum)
    for k, (arg, word) in enumerate(zip(e.args, e.labels, strict=True)):
        if not e.summed or root_of(arg) != "exp" or len(set(word)) < len(word):
            continue
        elsewhere = {*e.out, *chain(*e.labels[:k], *e.labels[k + 1 :])}
        axes = _axes_of_shares(arg.args[0])
        if axes and elsewhere.isdisjoint([word[axis] for axis in axes]):
            kept = [axis for axis in range(arg.ndim) if axis not in axes]
            one = numeral(1, tuple([arg.shape[axis] for axis in kept]))
            args = [*e.args[:k], one, *e.args[k + 1 :]]
            words = [*e.labels[:k], tuple([word[axis] for axis in kept]), *e.labels[k + 1 :]]
            return einsum(args, words, e.out, e.coef, dict(enumerate(e.extents)))
    return None


def _axes_of_shares(exponent: Expr) -> list[int]:
    """The axes along which a log-sum-exp is of all else in an exponent, which it is taken from."""
    for term in terms_of(exponent):
        inner, word = term, tuple(range(term.ndim))
        if isinstance(term, Einsum) and len(term.args) == 1 and term.coef == Coef(-1):
            (inner,), (word,) = term.args, term.labels
            word = tuple([term.out.index(i) if i in term.out else -1 for i in word])
        if inner is term or -1 in word or not isinstance(inner, Apply):
            continue
        if inner.op is not TABLE["logsumexp"]:
            continue
        axes = [axis for axis in range(term.ndim) if axis not in word]
        rest = add([other for other in terms_of(exponent) if other is not term])
        if view(rest, [*word, *axes]) is inner.args[0] and len(axes) == inner.params[0]:
            return axes
    return []


def _power_of_shares(exponent: Expr) -> Expr | None:
    """exp(j a + l b - k logaddexp(a, b)), j + l = k, by sigmoids; exp(-k logcosh(a)) by sech."""
    terms = terms_of(exponent)
    for term in terms:
        coef, total = split_coef(term)
        k = -coef.value
        if coef != Coef(coef.value) or k not in range(1, MAX_POWER + 1):
            continue
        found = _by_pairs(exponent, total, int(k), len(terms))
        if found is not None:
            return found
    return None


def _by_pairs(exponent: Expr, total: Expr, k: int, count: int) -> Expr | None:
    if not isinstance(total, Apply):
        return None
    rest = add([exponent, scale(total, Coef(k))])
    if total.op is TABLE["logcosh"]:
        return _with(rest, [sech(total.args[0])] * k)
    options: dict[int, tuple[Expr, list[Expr]]] = {}  # by how many terms are left
    for j in range(k + 1):
        taken = [(arm, n) for arm, n in zip(_arms(total), (k - j, j), strict=False) if n]
        gone = [scale(a, Coef(-n)) for (a, _), n in taken if a is not None]
        if taken and len(gone) < count:
            left = add([rest, *gone])
            terms = 0 if is_zero(left) else len(terms_of(left))
            if terms + 1 + len(gone) <= count:
                shares = [sigmoid(share) for (_, share), n in taken for _ in range(n)]
                options.setdefault(terms, (left, shares))
    return _with(*options[min(options)]) if options else None


def _arms(total: Apply) -> list[tuple[Expr | None, Expr]]:
    """The exponents that a row adds up (None is 0), each with the argument of its sigmoid."""
    if total.op is TABLE["softplus"]:
        (b,) = total.args
        return [(None, scale(b, Coef(-1))), (b, b)]
    if total.op is TABLE["logaddexp"]:
        a, b = total.args
        return [(a, a - b), (b, b - a)]
    return []


def _with(exponent: Expr, factors: list[Expr]) -> Expr | None:
    """Factors and the exponential of what is left of an exponent; None where that may overflow.

    What it would be multiplied by goes to 0 then, as their exponents were one.
    """
    if not (
        is_zero(exponent)
        or numeric_value(exponent) is not None
        or is_nonnegative(scale(exponent, Coef(-1)))
    ):
        shares = _power_of_shares(exponent)
        if shares is None:
            return None
        factors = [shares, *factors]
    elif not is_zero(exponent):
        factors = [exp(exponent), *factors]
    axes = range(exponent.ndim)
    return einsum(factors, [axes] * len(factors), axes)


rule(
    "shares", STABLE, lambda a: exp(a - 2 * softplus(a)), lambda a: sigmoid(a) * sigmoid(-a),
    "exp", _share,
)  # fmt: skip


# --- the normal density over its distribution function --------------------------------------------


def _normal_ratio(e: Expr) -> Expr | None:
    """exp(-x^2/2 - log_ndtr(x)), whose terms grow and cancel below 0."""
    (exponent,) = e.args
    count = len(terms_of(exponent))
    for _, row in map(split_coef, terms_of(exponent)):
        if not isinstance(row, Apply) or row.op is not TABLE["log_ndtr"]:
            continue
        (x,) = row.args
        rest = add([exponent, row, 0.5 * x * x])
        if (0 if is_zero(rest) else len(terms_of(rest))) + 2 == count:
            found = _with(rest, [inverse_mills(0, x)])
            return None if found is None else scale(found, Coef(math.sqrt(2 * math.pi)))
    return None


rule(
    "normal-density-over-distribution", STABLE, lambda a: exp(-a * a / 2 - log_ndtr(a)),
    lambda a: inverse_mills(0, a) * math.sqrt(2 * math.pi), "exp", _normal_ratio,
)  # fmt: skip


# --- identities -----------------------------------------------------------------------------------

rule("exp-times-sigmoid", STABLE, lambda a: exp(a) * sigmoid(-a), lambda a: sigmoid(a))
rule("sigmoid-difference", STABLE, lambda a: sigmoid(a) - sigmoid(-a), lambda a: tanh(a / 2))
rule("one-minus-sigmoid", STABLE, lambda a: 1 - sigmoid(a), lambda a: sigmoid(-a))
rule("one-minus-tanh", STABLE, lambda a: 1 - tanh(a), lambda a: 2 * sigmoid(-2 * a))
rule("one-plus-tanh", STABLE, lambda a: 1 + tanh(a), lambda a: 2 * sigmoid(2 * a))
rule("one-minus-normal", STABLE, lambda a: 1 - ndtr(a), lambda a: ndtr(-a))
rule("one-minus-erf", STABLE, lambda a: 1 - erf(a), lambda a: erfc(a))
rule("one-plus-erf", STABLE, lambda a: 1 + erf(a), lambda a: erfc(-a))
rule("one-minus-tanh-squared", STABLE, lambda a: 1 - tanh(a) * tanh(a), lambda a: sech(a) * sech(a))
rule(
    "sum-of-shares", STABLE, lambda a: 0 * a + sum(exp(a - logsumexp(a))), lambda a: 0 * a + 1,
    "Einsum", _sum_of_shares, shape=(3,), finite=True, needs=[["exp"], ["logsumexp"]],
)  # fmt: skip
