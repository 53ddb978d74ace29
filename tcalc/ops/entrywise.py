"""More functions of entries under NumPy's names: rounding, inverse hyperbolic, what nan is not."""

from __future__ import annotations

import math

import numpy as np

from ..graph.nodes import Expr
from ..support.errors import UnsupportedError
from .arithmetic import as_expr, broadcast, multiply, public, subtract
from .elementwise import (
    ABOVE_ZERO,
    INSIDE,
    abs,
    divide,
    equal,
    floor,
    hypot,
    isnan,
    less,
    logaddexp,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    mod,
    not_equal,
    power,
    reciprocal,
    sqrt,
    where,
)
from .elementwise_row import Function, elementwise
from .views import zeros

__all__ = [
    "arccosh",
    "arcsinh",
    "arctanh",
    "cbrt",
    "ceil",
    "deg2rad",
    "floor_divide",
    "fmax",
    "fmin",
    "heaviside",
    "imag",
    "isfinite",
    "isinf",
    "logaddexp2",
    "logical_xor",
    "nan_to_num",
    "rad2deg",
    "rint",
    "round",
    "select",
    "trunc",
]

# --- rows -----------------------------------------------------------------------------------------

arcsinh: Function = elementwise(
    "arcsinh",
    lambda x, y: reciprocal(hypot(x, 1)),
    odd=(0,),
    latex=r"\operatorname{{arsinh}}({0})",
    flops=20,
)
arccosh: Function = elementwise(
    "arccosh", lambda x, y: reciprocal(sqrt(x - 1) * sqrt(x + 1)),
    latex=r"\operatorname{{arcosh}}({0})", domain=((1.2, 4.0),), range=(0.0, math.inf), safe=(2,),
    flops=20,
)  # fmt: skip
arctanh: Function = elementwise(
    "arctanh", lambda x, y: reciprocal(1 - x * x),
    odd=(0,), latex=r"\operatorname{{artanh}}({0})", domain=INSIDE, safe=(0,), flops=20,
)  # fmt: skip
cbrt: Function = elementwise(
    "cbrt", lambda x, y: power(y, -2) / 3, odd=(0,), latex=r"\sqrt[3]{{{0}}}", domain=ABOVE_ZERO,
    safe=(1,), flops=20,
)  # fmt: skip
ceil: Function = elementwise(
    "ceil", None, latex=r"\lceil {0} \rceil", domain=((0.1, 0.9),), integral=True
)
rint: Function = elementwise(
    "rint",
    None,
    odd=(0,),
    latex=r"\operatorname{{rint}}({0})",
    domain=((0.1, 0.4),),
    integral=True,
)
# --- compositions ---------------------------------------------------------------------------------


@public
def deg2rad(x: object) -> Expr:
    """Degrees as radians."""
    return multiply(x, math.pi / 180)


@public
def rad2deg(x: object) -> Expr:
    """Radians as degrees."""
    return multiply(x, 180 / math.pi)


@public
def logaddexp2(x1: object, x2: object) -> Expr:
    """log2(2^x1 + 2^x2)."""
    half = math.log(2)
    return divide(logaddexp(multiply(x1, half), multiply(x2, half)), half)


@public
def trunc(x: object) -> Expr:
    """Rounded towards 0."""
    e = as_expr(x)
    return where(less(e, 0), ceil(e), floor(e))


@public
def round(a: object, decimals: int = 0) -> Expr:
    """Rounded to decimals, halves to even, as `numpy.round`; the derivative is 0."""
    if not decimals:
        return rint(a)
    power = 10.0**-decimals if decimals < 0 else 10.0**decimals
    if decimals < 0:
        return multiply(rint(divide(a, power)), power)
    return divide(rint(multiply(a, power)), power)


@public
def floor_divide(x1: object, x2: object) -> Expr:
    """The quotient rounded down, nan where x2 is 0; the derivative is 0."""
    return rint(divide(subtract(x1, mod(x1, x2)), x2))


def _ignoring_nan(x1: object, x2: object, larger: Function) -> Expr:
    a, b = broadcast(x1, x2)
    return where(isnan(a), b, where(isnan(b), a, larger(a, b)))


@public
def fmax(x1: object, x2: object) -> Expr:
    """The larger one; of a number and nan, the number."""
    return _ignoring_nan(x1, x2, maximum)


@public
def fmin(x1: object, x2: object) -> Expr:
    """The smaller one; of a number and nan, the number."""
    return _ignoring_nan(x1, x2, minimum)


@public
def isinf(x: object) -> Expr:
    """1 where an entry is infinite, else 0."""
    return equal(abs(x), math.inf)


@public
def isfinite(x: object) -> Expr:
    """1 where an entry is finite, else 0."""
    return less(abs(x), math.inf)


@public
def heaviside(x1: object, x2: object) -> Expr:
    """0 below 0, 1 above 0, x2 at 0; nan at nan."""
    e = as_expr(x1)
    return where(isnan(e), e, where(equal(e, 0), x2, less(0, e)))


@public
def logical_xor(x1: object, x2: object) -> Expr:
    """1 where exactly one of two entries is not 0, else 0."""
    a, b = broadcast(x1, x2)
    one, other = not_equal(a, 0), not_equal(b, 0)
    return logical_and(logical_or(one, other), logical_not(logical_and(one, other)))


@public
def nan_to_num(
    x: object, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Expr:
    """Numbers in place of nan and infinities, as `numpy.nan_to_num`; their derivative is 0."""
    e, largest = as_expr(x), float(np.finfo(np.float64).max)
    e = where(isnan(e), nan, e)
    e = where(equal(e, math.inf), largest if posinf is None else posinf, e)
    return where(equal(e, -math.inf), -largest if neginf is None else neginf, e)


@public
def imag(val: object) -> Expr:
    """0: all numbers are real."""
    return zeros(as_expr(val).shape)


@public
def select(condlist: object, choicelist: object, default: object = 0) -> Expr:
    """The choice of the first condition that holds, as `numpy.select`."""
    conditions, choices = (
        list(given) if isinstance(given, list | tuple) else [given]
        for given in (condlist, choicelist)
    )
    if len(conditions) != len(choices) or not conditions:
        raise UnsupportedError(f"select: {len(conditions)} conditions and {len(choices)} choices")
    found = as_expr(default)
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        found = where(condition, choice, found)
    return found
