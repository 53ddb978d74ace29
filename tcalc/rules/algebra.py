"""Algebra of operators: inverse functions, powers, absolute values, norms."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..graph.applications import apply
from ..graph.extents import ONE, Coef, number
from ..graph.nodes import Apply, Einsum, Expr
from ..graph.normal import einsum, scale
from ..graph.operators import TABLE
from ..graph.products import is_number, numeric_value, split_coef
from ..ops.arithmetic import sum
from ..ops.choices import choice, is_truth
from ..ops.elementwise import abs, cos, exp, isnan, log, power, sign, sin, sqrt, where
from ..ops.powers import power_of
from ..ops.reductions import NORM2, PROD, norm, prod
from .facts import is_nonnegative, is_positive
from .strategy import rule

ALGEBRA, POWERS = "algebra", "powers"
ABOVE = (0.0, math.inf)
SIGN = TABLE["sign"]

rule("log-of-exp", ALGEBRA, lambda a: log(exp(a)), lambda a: a)
rule("exp-of-log", ALGEBRA, lambda a: exp(log(a)), lambda a: a, domain=ABOVE, given=is_nonnegative)
rule(
    "pythagoras", ALGEBRA, lambda a: sin(a) * sin(a) + cos(a) * cos(a), lambda a: 1 + 0 * a,
    finite=True,
)  # fmt: skip
rule(
    "exp-times-exp-of-minus", ALGEBRA, lambda a: exp(a) * exp(-a), lambda a: 1 + 0 * a, finite=True
)
rule("sign-times-abs", ALGEBRA, lambda a: sign(a) * abs(a), lambda a: a)
rule("abs-squared", POWERS, lambda a: abs(a) * abs(a), lambda a: a * a)
rule(
    "sqrt-squared", POWERS, lambda a: sqrt(a) * sqrt(a), lambda a: a, domain=ABOVE,
    given=is_nonnegative,
)  # fmt: skip
rule("sqrt-of-square", POWERS, lambda a: sqrt(a * a), lambda a: abs(a))


def _abs_of_positive(e: Expr) -> Expr | None:
    (arg,) = e.args
    return arg if is_positive(arg) else None


def _log_of_power(e: Expr) -> Expr | None:
    """log(c p^k) = log(c) + k log(p), for p known not to be negative."""
    (inner,) = e.args
    if (found := power_of(inner)) is not None:
        base, degree = found
        return scale(log(base), number(degree)) if degree and is_positive(base, False) else None
    if not isinstance(inner, Einsum) or inner.summed or not inner.args:
        return None
    base, word, coef = inner.args[0], inner.labels[0], inner.coef
    alike = all(a is base and w == word for a, w in zip(inner.args, inner.labels, strict=True))
    changes = len(inner.args) > 1 or coef != ONE
    whole = len(set(inner.out)) == len(inner.out) and not set(inner.out) - set(word)
    if not (alike and changes and whole and coef == Coef(coef.value) and coef.value > 0):
        return None
    read = einsum([base], [word], inner.out)
    if not is_positive(read, False):
        return None
    return scale(log(read), Coef(len(inner.args))) + math.log(coef.value)


def _log_of_product(e: Expr) -> Expr | None:
    """The logarithm of a product over axes as a sum, which neither overflows nor underflows."""
    (inner,) = e.args
    if not isinstance(inner, Apply) or inner.op is not PROD or not is_positive(inner.args[0]):
        return None
    (factors,) = inner.args
    return sum(log(factors), tuple(range(inner.ndim, factors.ndim)))


rule("abs-of-positive", ALGEBRA, lambda a: abs(exp(a)), lambda a: exp(a), "abs", _abs_of_positive)
rule(
    "log-of-power", ALGEBRA, lambda a: log(3 * exp(a) * exp(a)),
    lambda a: 2 * log(exp(a)) + math.log(3), "log", _log_of_power,
)  # fmt: skip
rule(
    "log-of-product", ALGEBRA, lambda a: log(prod(exp(a))), lambda a: sum(log(exp(a))), "log",
    _log_of_product, shape=(3,),
)  # fmt: skip


def _factor(e: Expr) -> tuple[Expr, int]:
    """e as a base and a positive whole exponent."""
    if isinstance(e, Apply) and e.op is TABLE["power"]:
        value = numeric_value(e.args[1])
        if isinstance(value, int) and value > 0:
            return e.args[0], value
    return e, 1


def _collect(e: Expr) -> Expr | None:
    """Factors of one base under the same labels, three or more of them, become one power."""
    assert isinstance(e, Einsum)
    totals: dict[tuple[int, tuple[int, ...]], list[int]] = {}
    parts = [_factor(arg) for arg in e.args]
    for k, (base, _) in enumerate(parts):
        totals.setdefault((id(base), e.labels[k]), []).append(k)
    joined = [ks for ks in totals.values() if len(ks) > 1 and _degree(parts, ks) > 2]
    if not joined:
        return None
    gone = {k for ks in joined for k in ks}
    ops = [arg for k, arg in enumerate(e.args) if k not in gone]
    words = [word for k, word in enumerate(e.labels) if k not in gone]
    for ks in joined:
        ops.append(power(parts[ks[0]][0], _degree(parts, ks)))
        words.append(e.labels[ks[0]])
    return einsum(ops, words, e.out, e.coef, dict(enumerate(e.extents)))


def _degree(parts: Sequence[tuple[Expr, int]], places: Sequence[int]) -> int:
    degree = 0
    for k in places:
        degree += parts[k][1]
    return degree


def _power_of_power(e: Expr) -> Expr | None:
    base, outer = _factor(e)
    inner, degree = _factor(base)
    return power(inner, degree * outer) if outer > 1 and degree > 1 else None


def _norm_squared(e: Expr) -> Expr | None:
    """Two equal norms under one set of labels are a sum of squares."""
    assert isinstance(e, Einsum)
    for k in range(len(e.args) - 1):
        arg = e.args[k]
        if not isinstance(arg, Apply) or arg.op is not NORM2:
            continue
        if arg is e.args[k + 1] and e.labels[k] == e.labels[k + 1]:
            (x,) = arg.args
            squares = sum(x * x, tuple(range(arg.ndim, x.ndim)))
            ops = [*e.args[:k], squares, *e.args[k + 2 :]]
            words = [*e.labels[:k], e.labels[k], *e.labels[k + 2 :]]
            return einsum(ops, words, e.out, e.coef, dict(enumerate(e.extents)))
    return None


def _times_its_sign(e: Expr) -> Expr | None:
    """A factor and its sign under the same labels are its magnitude."""
    assert isinstance(e, Einsum)
    for k, arg in enumerate(e.args):
        if not isinstance(arg, Apply) or arg.op is not SIGN:
            continue
        for j, other in enumerate(e.args):
            if other is arg.args[0] and e.labels[j] == e.labels[k]:
                rest = [i for i in range(len(e.args)) if i not in (j, k)]
                ops = [*[e.args[i] for i in rest], abs(other)]
                words = [*[e.labels[i] for i in rest], e.labels[k]]
                return einsum(ops, words, e.out, e.coef, dict(enumerate(e.extents)))
    return None


def _times_its_choice(e: Expr) -> Expr | None:
    """A condition times what is 0 where it does not hold is that alone, under the same labels."""
    assert isinstance(e, Einsum)
    for k, arg in enumerate(e.args):
        chosen = choice(arg)
        if chosen is None:
            continue
        for j, other in enumerate(e.args):
            if e.labels[j] == e.labels[k] and _is_not_zero_where(other, *chosen):
                rest = [i for i in range(len(e.args)) if i != j]
                ops, words = [e.args[i] for i in rest], [e.labels[i] for i in rest]
                return einsum(ops, words, e.out, e.coef, dict(enumerate(e.extents)))
    return None


def _is_not_zero_where(e: Expr, condition: Expr, one: Expr, other: Expr) -> bool:
    """Is e the condition of a choice, or its opposite, and what it does not choose 0?"""
    if is_truth(e) and e is condition:
        return is_number(other, 0)
    opposite = isinstance(e, Apply) and e.op is TABLE["logical_not"] and e.args[0] is condition
    return opposite and is_truth(condition) and is_number(one, 0)


def _root_of_squares(e: Expr) -> Expr | None:
    """The root of a scaled sum of squares; each factor stands twice under the same labels."""
    assert isinstance(e, Apply)
    coef, total = split_coef(e.args[0])
    if not isinstance(total, Einsum) or not total.summed:
        return None
    if coef != Coef(coef.value) or not coef.value > 0:
        return None
    factors = list(zip(total.args, total.labels, strict=True))
    pairs = list(zip(factors[::2], factors[1::2], strict=False))
    if len(factors) % 2 or any(a is not b or v != w for (a, v), (b, w) in pairs):
        return None
    n, axes = len(total.out), range(len(total.extents))
    half = einsum([a for (a, _), _ in pairs], [w for (_, w), _ in pairs], axes)
    return scale(apply(NORM2, half, params=(len(axes) - n,)), number(math.sqrt(coef.value)))


rule(
    "times-its-sign", ALGEBRA, lambda a: a * sign(a), lambda a: abs(a), "Einsum", _times_its_sign,
    needs=[[SIGN.name]],
)  # fmt: skip
rule(
    "times-its-choice", ALGEBRA, lambda a: isnan(a) * where(isnan(a), exp(a), 0),
    lambda a: where(isnan(a), exp(a), 0), "Einsum", _times_its_choice,
)  # fmt: skip
rule("collect-powers", POWERS, lambda a: a * a * a, lambda a: power(a, 3), "Einsum", _collect)
rule(
    "power-of-power",
    POWERS,
    lambda a: power(power(a, 3), 4),
    lambda a: power(a, 12),
    "power",
    _power_of_power,
)
rule(
    "norm-squared",
    POWERS,
    lambda x: norm(x) * norm(x),
    lambda x: sum(x * x),
    "Einsum",
    _norm_squared,
    shape=(3,),
    needs=[[NORM2.name]],
)
rule(
    "root-of-squares",
    POWERS,
    lambda x: sqrt(sum(x * x)),
    lambda x: norm(x),
    "sqrt",
    _root_of_squares,
    shape=(3,),
)
