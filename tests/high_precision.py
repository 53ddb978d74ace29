"""Derivatives of functions of one number, right to many digits: the oracle of stability.

Differences of a function's own definition at hundreds of digits, taken again with more digits and a
shorter step until two agree; of functions whose values take mpmath long, what handbooks state.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import mpmath as mp

from tests import oracle

DIGITS = (80, 300, 1000, 2600, 3400)

Function = Callable[[Any], Any]


def softplus(x: Any) -> Any:
    return (x if x > 0 else mp.mpf(0)) + mp.log1p(mp.exp(-abs(x)))


def sigmoid(x: Any) -> Any:
    e = mp.exp(-abs(x))
    return (1 if x >= 0 else e) / (1 + e)


def logcosh(x: Any) -> Any:
    return abs(x) + mp.log1p(mp.expm1(-2 * abs(x)) / 2)


def sech(x: Any) -> Any:
    e = mp.exp(-abs(x))
    return 2 * e / (1 + e * e)


#: Of rows whose definition at many digits needs more than these.
DEFINED: dict[str, Function] = {
    "softplus": softplus, "sigmoid": sigmoid, "logcosh": logcosh, "sech": sech,
    "logaddexp": lambda a, b: b + softplus(a - b),
}  # fmt: skip


def _psi(x: Any) -> tuple[Any, ...]:
    return tuple(mp.psi(k, x) for k in range(4))


def _gamma(order: int, x: Any) -> Any:
    p, q, r, s = _psi(x)
    return mp.gamma(x) * (
        1, p, p**2 + q, p**3 + 3 * p * q + r, p**4 + 6 * p**2 * q + 3 * q**2 + 4 * p * r + s
    )[order]  # fmt: skip


def _rgamma(order: int, x: Any) -> Any:
    p, q, r, s = _psi(x)
    return mp.rgamma(x) * (
        1, -p, p**2 - q, -(p**3) + 3 * p * q - r,
        p**4 - 6 * p**2 * q + 3 * q**2 + 4 * p * r - s,
    )[order]  # fmt: skip


def _erf(order: int, x: Any) -> Any:
    h = 2 / mp.sqrt(mp.pi) * mp.exp(-x * x)
    return h * (1, -2 * x, 4 * x * x - 2, 12 * x - 8 * x**3)[order - 1] if order else mp.erf(x)


def _ndtr(order: int, x: Any) -> Any:
    h = mp.npdf(x)
    value = h * (1, -x, x * x - 1, 3 * x - x**3)[order - 1] if order else None
    return mp.erfc(-x / mp.sqrt(2)) / 2 if value is None else value


def _erfinv(order: int, x: Any) -> Any:
    if not -1 < x < 1:
        return mp.nan
    y = mp.erfinv(x)
    g = mp.sqrt(mp.pi) / 2 * mp.exp(y * y)
    return (
        y, g, 2 * y * g**2, 2 * g**3 * (1 + 4 * y * y), g**4 * y * (28 + 48 * y * y)
    )[order]  # fmt: skip


def _log_ndtr(x: Any) -> Any:
    if x > 0:
        return mp.log1p(-mp.erfc(x / mp.sqrt(2)) / 2)
    return oracle.FUNCTIONS["log_ndtr"](x)


#: Derivatives by formulas of a handbook, of functions whose values take long at many digits.
STATED: dict[str, Callable[[int, Any], Any]] = {
    "digamma": mp.psi,
    "gammaln": lambda k, x: mp.psi(k - 1, x) if k else mp.log(abs(mp.gamma(x))),
    "gamma": _gamma,
    "rgamma": _rgamma,
    "erf": _erf,
    "erfc": lambda k, x: -_erf(k, x) if k else mp.erfc(x),
    "ndtr": _ndtr,
    "log_ndtr": lambda k, x: oracle.FUNCTIONS["inverse_mills"](k - 1, x)
    if k else _log_ndtr(x),
    "erfinv": _erfinv,
    "erfcinv": lambda k, x: (-1) ** k * _erfinv(k, 1 - x),
    "ndtri": lambda k, x: mp.sqrt(2) * 2**k * _erfinv(k, 2 * x - 1),
}  # fmt: skip


# --- functions of two operands, one of which is a number ------------------------------------------


def _sum_of(k: int, term: Callable[[int], Any]) -> Any:
    return mp.fsum(math.comb(k, j) * term(j) for j in range(k + 1))


def _bessel(f: Function, sign: int, n: float) -> Callable[[int, Any], Any]:
    """2 f' = f(n - 1) + sign f(n + 1) (Abramowitz and Stegun, 9.1.27 and 9.6.26)."""
    return lambda k, x: _sum_of(k, lambda j: sign**j * f(n - k + 2 * j, x)) / 2**k


def _kv(n: float) -> Callable[[int, Any], Any]:
    rule = _bessel(mp.besselk, 1, n)
    return lambda k, x: (-1) ** k * rule(k, x)


def _ive(n: float) -> Callable[[int, Any], Any]:
    rule = _bessel(mp.besseli, 1, n)
    return lambda k, x: mp.exp(-x) * _sum_of(k, lambda j: (-1) ** (k - j) * rule(j, x))


def _power(a: Any, k: int, x: Any) -> Any:
    return mp.ff(a, k) * x ** (a - k)


def _gammainc(a: Any, sign: int) -> Callable[[int, Any], Any]:
    """Of the regularised incomplete gamma function: the density of the gamma distribution."""

    def density(k: int, x: Any) -> Any:
        terms = _sum_of(k, lambda j: (-1) ** (k - j) * _power(a - 1, j, x))
        return sign * mp.exp(-x) * terms / mp.gamma(a)

    def value(x: Any) -> Any:
        below, above = (0, x) if sign > 0 else (x, mp.inf)
        return mp.gammainc(a, below, above, regularized=True)

    return lambda k, x: density(k - 1, x) if k else value(x)


def _betaln(b: Any) -> Callable[[int, Any], Any]:
    def stated(k: int, x: Any) -> Any:
        return mp.psi(k - 1, x) - mp.psi(k - 1, x + b) if k else mp.log(mp.beta(x, b))

    return stated


def _beta(b: Any) -> Callable[[int, Any], Any]:
    """Of exp(betaln), as the gamma function's derivatives follow from those of its logarithm."""

    def stated(k: int, x: Any) -> Any:
        p, q, r, s = (mp.psi(j, x) - mp.psi(j, x + b) for j in range(4))
        return mp.beta(x, b) * (
            1, p, p**2 + q, p**3 + 3 * p * q + r, p**4 + 6 * p**2 * q + 3 * q**2 + 4 * p * r + s
        )[k]  # fmt: skip

    return stated


def two_operands(name: str, place: int, held: float) -> Callable[[int, Any], Any] | None:
    """Derivatives by the operand at `place`, the other held, as handbooks state them, for x > 0."""
    a = mp.mpf(held)
    made: dict[tuple[str, int], Callable[[], Callable[[int, Any], Any]]] = {
        ("jv", 1): lambda: _bessel(mp.besselj, -1, a),
        ("yv", 1): lambda: _bessel(mp.bessely, -1, a),
        ("iv", 1): lambda: _bessel(mp.besseli, 1, a),
        ("kv", 1): lambda: _kv(a),
        ("ive", 1): lambda: _ive(a),
        ("gammainc", 1): lambda: _gammainc(a, 1),
        ("gammaincc", 1): lambda: _gammainc(a, -1),
        ("betaln", 0): lambda: _betaln(a),
        ("betaln", 1): lambda: _betaln(a),
        ("beta", 0): lambda: _beta(a),
        ("beta", 1): lambda: _beta(a),
        ("polygamma", 1): lambda: lambda k, x: mp.psi(int(a) + k, x),
        ("inverse_mills", 1): lambda: lambda k, x: oracle.FUNCTIONS["inverse_mills"](a + k, x),
    }
    return made[name, place]() if (name, place) in made else None


#: Weights of f(x + k h), k = -order, …, order by two, over (2 h)^order.
STENCILS = {0: (1,), 1: (-1, 1), 2: (1, -2, 1), 3: (-1, 3, -3, 1), 4: (1, -4, 6, -4, 1)}


def _difference(f: Function, x: float, order: int, digits: int) -> tuple[Any, bool]:
    """The quotient, and whether enough of its digits are left."""
    size = abs(math.log10(abs(x)))
    with mp.workdps(digits + int(size)):
        h = min(abs(mp.mpf(x)), 1) * mp.mpf(10) ** -(20 + digits // 40)
        weights = STENCILS[order]
        at = [mp.mpf(x) + (2 * k - order) * h for k in range(order + 1)]
        values = [f(v) for v in at]
        if any(mp.im(v) != 0 or not mp.isfinite(v) for v in values):
            return mp.nan, True
        total = mp.fsum(w * mp.re(v) for w, v in zip(weights, values, strict=True))
        left = abs(total) > max(map(abs, values)) * mp.mpf(10) ** (25 - digits)
        return total / (2 * h) ** order, left


#: Functions with steps have derivatives 0, which differences across a step do not see.
STEPS = {
    "ceil", "floor", "rint", "gammasgn", "sign", "isnan", "logical_not", "logical_and",
    "logical_or", "equal", "not_equal", "less", "less_equal",
}  # fmt: skip


@lru_cache(100_000)
def derivative(name: str, f: Function, x: float, order: int) -> Any:
    """The derivative, by two precisions that agree; nan outside of the domain, None if unknown."""
    if order and name.partition("(")[0] in STEPS:
        return mp.mpf(0)
    stated = STATED.get(name)
    last, left = None, True
    for digits in DIGITS[: 2 if stated else None]:
        try:
            found, left = (
                _stated(name, x, order, digits) if stated else _difference(f, x, order, digits)
            )
        except (ZeroDivisionError, ValueError, OverflowError, NotImplementedError):
            return mp.nan
        except (mp.NoConvergence, MemoryError):
            return None
        if mp.isnan(found):
            return found
        if left and last is not None:
            size = max(abs(found), abs(last))
            if size < mp.mpf(10) ** -330 or abs(found - last) <= size * mp.mpf(10) ** -18:
                return found
        last = found if left else None
    return None if left or stated else mp.mpf(0)


def _stated(name: str, x: float, order: int, digits: int) -> tuple[Any, bool]:
    if "gamma" in name and x < -1e3:
        return mp.nan, True  # between poles, which takes mpmath long; then poles themselves
    more = int(abs(math.log10(abs(x)))) if name in ("erfcinv", "ndtri") else 0
    with mp.workdps(40 + digits // 4 + more):
        found = STATED[name](order, mp.mpf(x))
        return (mp.re(found) if mp.im(found) == 0 and mp.isfinite(found) else mp.nan), True
