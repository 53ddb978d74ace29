"""Elementwise operators: one row each, the derivative in the library's own functions.

Kinks: sign(0) = abs'(0) = 0, relu'(0) = 0, ties of maximum and minimum split evenly, and the
derivative of 0**b with respect to b is 0. Comparisons are 1 or 0 and have derivative zero.
"""

from __future__ import annotations

import math
from typing import Any

from ..graph.applications import apply
from ..graph.nodes import Einsum, Expr
from ..graph.normal import scale, scaled
from ..graph.operators import operator_named
from ..graph.products import is_number, numeral, numeric_value, split_coef
from ..support.errors import TraceError
from . import arithmetic
from .arithmetic import as_expr, as_factor, broadcast, public
from .by_factors import slopes_of_log, slopes_of_power, slopes_of_root
from .choices import choose, is_truth
from .elementwise_row import NONNEGATIVE, POSITIVE, UNIT, Function, elementwise
from .guard import guarded
from .missing import sees_infinity
from .views import ones, zeros

__all__ = [
    "abs",
    "arccos",
    "arcsin",
    "arctan",
    "arctan2",
    "clip",
    "cos",
    "cosh",
    "divide",
    "equal",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "greater",
    "greater_equal",
    "hypot",
    "isnan",
    "less",
    "less_equal",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logcosh",
    "logical_and",
    "logical_not",
    "logical_or",
    "maximum",
    "minimum",
    "mod",
    "not_equal",
    "power",
    "reciprocal",
    "reciprocal0",
    "relu",
    "sech",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "softplus",
    "sqrt",
    "stop_gradient",
    "tan",
    "tanh",
    "where",
    "xlogy",
]

ABOVE_ZERO = ((0.1, 3.0),)
INSIDE = ((-0.9, 0.9),)


def _reciprocal0(xp: Any, x: Any) -> Any:
    zero = x == 0
    return xp.where(zero, 0 * x, 1 / (x + zero))


def _logcosh(xp: Any, x: Any) -> Any:
    large = xp.abs(x) + xp.log1p(xp.exp(-2 * xp.abs(x))) - math.log(2)
    return xp.where(xp.abs(x) < 1, xp.log1p(2 * xp.sinh(x / 2) ** 2), large)


# --- exponentials and logarithms ------------------------------------------------------------------

exp: Function = elementwise(
    "exp", lambda x, y: y, latex=r"\exp({0})", range=POSITIVE, safe=(0,), flops=10,
)  # fmt: skip
expm1: Function = elementwise(
    "expm1", lambda x, y: exp(x), latex=r"\operatorname{{expm1}}({0})", safe=(0,), flops=10,
    positive_of=(0,),
)  # fmt: skip
exp2: Function = elementwise(
    "exp2", lambda x, y: y * math.log(2), latex="2^{{{0}}}", range=POSITIVE, safe=(0,), flops=10,
)  # fmt: skip
log: Function = elementwise(
    "log", lambda x, y: reciprocal(x), latex=r"\log({0})", domain=ABOVE_ZERO, safe=(1,), flops=10,
    slopes=slopes_of_log(1),
)  # fmt: skip
log1p: Function = elementwise(
    "log1p", lambda x, y: reciprocal(1 + x), latex=r"\log(1 + {0})", domain=INSIDE, safe=(0,),
    flops=10, positive_of=(0,),
)  # fmt: skip
log2: Function = elementwise(
    "log2", lambda x, y: reciprocal(x) / math.log(2), latex=r"\log_2({0})", domain=ABOVE_ZERO,
    safe=(1,), flops=10, slopes=slopes_of_log(math.log(2)),
)  # fmt: skip
log10: Function = elementwise(
    "log10", lambda x, y: reciprocal(x) / math.log(10), latex=r"\log_{{10}}({0})",
    domain=ABOVE_ZERO, safe=(1,), flops=10, slopes=slopes_of_log(math.log(10)),
)  # fmt: skip
logaddexp: Function = elementwise(
    "logaddexp", lambda a, b, y: _share(a, b, y), lambda a, b, y: _share(b, a, y),
    commutes=True, latex=r"\log(e^{{{0}}} + e^{{{1}}})", flops=20,
)  # fmt: skip
xlogy: Function = elementwise(
    "xlogy", lambda x, z, y: log(z), lambda x, z, y: x / _nonzero(z, x),
    latex=r"{0} \log({1})",
    domain=((-2, 2), (0.1, 3)), safe=(None, 1), flops=10,
)  # fmt: skip

# --- powers ---------------------------------------------------------------------------------------

reciprocal: Function = elementwise(
    "reciprocal", lambda x, y: -y * y, latex=r"\frac{{1}}{{{0}}}", infix="1./",
    domain=ABOVE_ZERO, safe=(1,), positive_of=(0,),
)  # fmt: skip
reciprocal0: Function = elementwise(
    "reciprocal0", lambda x, y: -y * y, latex=r"\frac{{1}}{{{0}}}", infix="1./",
    domain=ABOVE_ZERO,
    formula=_reciprocal0,
)  # fmt: skip
sqrt: Function = elementwise(
    "sqrt", lambda x, y: 0.5 * reciprocal(y), latex=r"\sqrt{{{0}}}", domain=ABOVE_ZERO,
    range=NONNEGATIVE, safe=(1,), flops=4, positive_of=(0,), slopes=slopes_of_root,
)  # fmt: skip
_divide: Function = elementwise(
    "divide", lambda a, b, y: reciprocal(b), lambda a, b, y: -(y * reciprocal(b)),
    latex=r"\frac{{{0}}}{{{1}}}", infix="./", domain=((-2, 2), (0.1, 3)),
    safe=(None, 1), positive_of=(0, 1), odd=(0,),
)  # fmt: skip
_power: Function = elementwise(
    "power", lambda a, b, y: b * power(a, _exponent(b, a) - 1),
    lambda a, b, y: y * log(where(equal(a, 0), 1, a)), latex="{0}^{{{1}}}",
    infix=".^", domain=((0.1, 3), (-2, 2)), safe=(1, None), flops=20, positive_of=(0,),
    even=lambda a, b: (0,) if _exponent_is(b, 0) else (),
    odd=lambda a, b: (0,) if _exponent_is(b, 1) else (), slopes=slopes_of_power,
)  # fmt: skip
hypot: Function = elementwise(
    "hypot", lambda a, b, y: a * reciprocal0(y), lambda a, b, y: b * reciprocal0(y),
    commutes=True, latex=r"\operatorname{{hypot}}({0}, {1})", range=NONNEGATIVE, flops=4,
)  # fmt: skip

# --- trigonometric and hyperbolic -----------------------------------------------------------------

sin: Function = elementwise(
    "sin", lambda x, y: cos(x), odd=(0,), latex=r"\sin({0})", range=(-1, 1), flops=10,
)  # fmt: skip
cos: Function = elementwise(
    "cos", lambda x, y: -sin(x), even=(0,), latex=r"\cos({0})", range=(-1, 1), flops=10,
)  # fmt: skip
tan: Function = elementwise(
    "tan", lambda x, y: 1 + y * y, odd=(0,), latex=r"\tan({0})", domain=((-1.2, 1.2),), flops=10,
)  # fmt: skip
arcsin: Function = elementwise(
    "arcsin", lambda x, y: reciprocal(sqrt(1 - x * x)),
    odd=(0,), latex=r"\arcsin({0})", domain=INSIDE,
    safe=(0,), flops=10,
)  # fmt: skip
arccos: Function = elementwise(
    "arccos", lambda x, y: -reciprocal(sqrt(1 - x * x)), latex=r"\arccos({0})", domain=INSIDE,
    safe=(0,), flops=10,
)  # fmt: skip
arctan: Function = elementwise(
    "arctan", lambda x, y: reciprocal(1 + x * x), odd=(0,), latex=r"\arctan({0})", flops=10,
)  # fmt: skip
arctan2: Function = elementwise(
    "arctan2", lambda a, b, y: b / (a * a + b * b), lambda a, b, y: -a / (a * a + b * b),
    latex=r"\operatorname{{arctan2}}({0}, {1})", domain=((0.2, 2), (-2, 2)), flops=10,
)  # fmt: skip
sinh: Function = elementwise(
    "sinh", lambda x, y: cosh(x), odd=(0,), latex=r"\sinh({0})", safe=(0,), flops=10,
)  # fmt: skip
cosh: Function = elementwise(
    "cosh", lambda x, y: sinh(x),
    even=(0,), latex=r"\cosh({0})", range=(1, math.inf), safe=(0,), flops=10,
)  # fmt: skip
tanh: Function = elementwise(
    "tanh", lambda x, y: sech(x) * sech(x), odd=(0,), latex=r"\tanh({0})", range=(-1, 1), flops=10,
)  # fmt: skip
sech: Function = elementwise(
    "sech", lambda x, y: -y * tanh(x), even=(0,), latex=r"\operatorname{{sech}}({0})", range=UNIT,
    formula=lambda xp, x: 1 / xp.cosh(x), flops=12,
)  # fmt: skip
logcosh: Function = elementwise(
    "logcosh", lambda x, y: tanh(x), even=(0,), latex=r"\log\cosh({0})", range=NONNEGATIVE,
    formula=_logcosh, flops=40,
)  # fmt: skip

# --- sigmoid family -------------------------------------------------------------------------------

sigmoid: Function = elementwise(
    "sigmoid", lambda x, y: y * sigmoid(-x), latex=r"\sigma({0})", range=UNIT,
    formula=lambda xp, x: 1 / (1 + xp.exp(-x)), flops=12,
)  # fmt: skip
softplus: Function = elementwise(
    "softplus", lambda x, y: sigmoid(x), latex=r"\log(1 + e^{{{0}}})", range=POSITIVE,

    formula=lambda xp, x: xp.maximum(x, 0) + xp.log1p(xp.exp(-xp.abs(x))), flops=22,
)  # fmt: skip
relu: Function = elementwise(
    "relu", lambda x, y: less(0, x), latex=r"\operatorname{{relu}}({0})", range=NONNEGATIVE,
    formula=lambda xp, x: xp.maximum(x, 0), domain=((0.1, 2),),
)  # fmt: skip

# --- piecewise ------------------------------------------------------------------------------------

abs: Function = elementwise(
    "abs", lambda x, y: sign(x),
    even=(0,), latex=r"\left|{0}\right|", range=NONNEGATIVE, domain=((0.1, 2),),
    integral=True, positive_of=(0,),
)  # fmt: skip
sign: Function = elementwise(
    "sign", None, odd=(0,), latex=r"\operatorname{{sign}}({0})", range=(-1, 1), domain=((0.1, 2),),
)  # fmt: skip
floor: Function = elementwise(
    "floor", None, latex=r"\lfloor {0} \rfloor", domain=((0.1, 0.9),), integral=True,
)  # fmt: skip
mod: Function = elementwise(
    "mod", lambda a, b, y: ones(a.shape), lambda a, b, y: -floor(a / b), latex=r"{0} \bmod {1}",
    domain=((0.1, 0.9), (1, 2)), safe=(None, 1), integral=True,
)  # fmt: skip
maximum: Function = elementwise(
    "maximum", lambda a, b, y: less(b, a) + 0.5 * equal(a, b),
    lambda a, b, y: less(a, b) + 0.5 * equal(a, b), commutes=True, latex=r"\max({0}, {1})",
    domain=((0.1, 1), (1.1, 2)), integral=True, positive_of=(0, 1),
)  # fmt: skip
minimum: Function = elementwise(
    "minimum", lambda a, b, y: less(a, b) + 0.5 * equal(a, b),
    lambda a, b, y: less(b, a) + 0.5 * equal(a, b), commutes=True, latex=r"\min({0}, {1})",
    domain=((0.1, 1), (1.1, 2)), integral=True, positive_of=(0, 1),
)  # fmt: skip

stop_gradient: Function = elementwise(
    "stop_gradient", None, odd=(0,), latex=r"\operatorname{{stop}}({0})", formula=lambda xp, x: x,
    integral=True,
)  # fmt: skip
less: Function = elementwise(
    "less", None, None, latex="{0} < {1}", infix="<", truth=True,
)  # fmt: skip
less_equal: Function = elementwise(
    "less_equal", None, None, latex=r"{0} \le {1}", infix="<=", truth=True,
)  # fmt: skip
equal: Function = elementwise(
    "equal", None, None, commutes=True, latex="{0} = {1}", infix="==", truth=True,
)  # fmt: skip
not_equal: Function = elementwise(
    "not_equal", None, None, commutes=True, latex=r"{0} \ne {1}", infix="!=", truth=True,
)  # fmt: skip
logical_and: Function = elementwise(
    "logical_and", None, None, commutes=True, latex=r"{0} \wedge {1}", truth=True,
)  # fmt: skip
logical_or: Function = elementwise(
    "logical_or", None, None, commutes=True, latex=r"{0} \vee {1}", truth=True,
)  # fmt: skip
logical_not: Function = elementwise("logical_not", None, latex=r"\neg {0}", truth=True)
isnan: Function = elementwise("isnan", None, latex=r"\operatorname{{isnan}}({0})", truth=True)
_where: Function = elementwise(
    "where", None, lambda c, a, b, y: truth(c), lambda c, a, b, y: logical_not(c),
    latex=r"\begin{{cases}} {1} & {0} \\ {2} & \text{{otherwise}} \end{{cases}}",
    formula=lambda xp, c, a, b: xp.where(c != 0, a, b),
    domain=((0, 1), (-2, 2), (-2, 2)), integral=True,
)  # fmt: skip


# --- functions that choose a form before a row is used --------------------------------------------


def _share(a: Expr, b: Expr, y: Expr) -> Expr:
    """The share of exp(a) in the sum with exp(b), a number where both are 0."""
    known = less(-math.inf, y) if sees_infinity(a) and sees_infinity(b) else None
    return sigmoid(a - b if known is None else choose(known, a - b, zeros(y.shape)))


def _exponent_is(b: Expr, remainder: int) -> bool:
    """Is the exponent a whole number, none below 0, of this remainder by 2?"""
    value = numeric_value(b)
    return value is not None and value >= 0 and value % 2 == remainder


def _exponent(b: Expr, a: Expr) -> Expr:
    """b, kept away from 0 where a is 0 and a**(b - 1) is multiplied by b."""
    return b if numeric_value(b) is not None else _nonzero(b, a)


def _nonzero(e: Expr, other: Expr) -> Expr:
    """e, and 1 where both are 0: elsewhere it is differentiated too."""
    zero = equal(e, 0)
    both = zero if e is other else logical_and(zero, equal(other, 0))
    return choose(both, ones(e.shape), e)


def truth(c: Expr) -> Expr:
    """1 where c is not 0."""
    return c if is_truth(c) else not_equal(c, 0)


@public
def where(condition: object, a: object = None, b: object = None) -> Expr:
    """a where the condition holds, else b; derivatives take the branch taken, at every order."""
    if a is None or b is None:
        raise TraceError("where(condition) has no fixed shape; write where(condition, a, b)")
    c, left, right = broadcast(condition, a, b)
    value = numeric_value(c)
    if value is not None:
        return left if value else right
    if left is right:
        return left
    return apply(operator_named("where"), c, *guarded((truth(c), logical_not(c)), (left, right)))


@public
def divide(a: object, b: object) -> Expr:
    """a / b; a number below the line is a coefficient, a number above it a reciprocal.

    0 / 0 of two numbers is nan, but 0 / b of an expression is 0, as 0 * b is.
    """
    left, right = as_factor(a), as_expr(b)
    if isinstance(right, Einsum) and is_number(right) and not (right.coef.zero or right.coef.over):
        inverse = right.coef.inverse()
        if not math.isnan(inverse.value):
            return scaled(broadcast(left, right)[0] if right.ndim else left, inverse)
    left, right = broadcast(left, right)
    if numeric_value(left) == numeric_value(right) == 0:
        return numeral(math.nan, left.shape)
    if is_number(left) or len(set(getattr(left, "out", ()))) < len(getattr(left, "out", ())):
        return arithmetic.multiply(left, reciprocal(right))
    coef, rest = split_coef(left)
    return scale(_divide(rest, right), coef)


@public
def power(a: object, b: object) -> Expr:
    """a ** b; the exponents 0, 1, 2, -1 and 1/2 are a one, a, a * a, 1 / a and sqrt(a)."""
    base, exponent = as_expr(a), as_expr(b)
    value = numeric_value(exponent)
    if value is not None and exponent.ndim <= base.ndim:
        base, _ = broadcast(base, exponent)
        if value == 0:
            return ones(base.shape)
        if value == 1:
            return base
        if value == 2:
            return arithmetic.multiply(base, base)
        if value in (-1, 0.5):
            return reciprocal(base) if value == -1 else sqrt(base)
    return _power(base, exponent)


@public
def greater(a: object, b: object) -> Expr:
    """a > b of every entry: 1 or 0."""
    return less(b, a)


@public
def greater_equal(a: object, b: object) -> Expr:
    """a >= b of every entry: 1 or 0."""
    return less_equal(b, a)


@public
def clip(a: object, low: object, high: object) -> Expr:
    """Values limited to [low, high]; None leaves a side open."""
    e = as_expr(a)
    if low is not None:
        e = maximum(e, low)
    return e if high is None else minimum(e, high)
