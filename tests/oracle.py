"""Scalar operators in mpmath, at 50 digits: the other side of tests of the operator table."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import mpmath as mp

from tcalc.graph.extents import Coef
from tcalc.graph.nodes import Add, Apply, Einsum, Expr, Var, postorder

mp.mp.dps = 50


def _student(df: Any, t: Any) -> Any:
    """The distribution function of Student's t, by the incomplete beta function."""
    half = mp.betainc(df / 2, mp.mpf(1) / 2, 0, df / (df + t * t), regularized=True) / 2
    return 1 - half if t > 0 else half


def _sign(x: Any) -> Any:
    return mp.mpf((x > 0) - (x < 0))


def _log_ndtr(x: Any) -> Any:
    """Far from 0 by the asymptotic series (Abramowitz and Stegun, 26.2.12)."""
    if abs(x) < 1e4:
        return mp.log(mp.erfc(-x / mp.sqrt(2)) / 2)
    tail = -x * x / 2 - mp.log(abs(x) * mp.sqrt(2 * mp.pi)) + mp.log1p(-1 / x**2 + 3 / x**4)
    return tail if x < 0 else -mp.exp(tail)


def _inverse_mills(n: Any, x: Any) -> Any:
    """The derivative of order n of h = phi / Phi, by h' = -h (x + h) at many digits."""
    with mp.workdps(mp.mp.dps + 200):
        h = [mp.npdf(x) / (mp.erfc(-x / mp.sqrt(2)) / 2)]
        for k in range(int(n)):
            u = [x + h[0], *[g + (j == 1) for j, g in enumerate(h) if j]]
            h.append(-mp.fsum(math.comb(k, j) * h[j] * u[k - j] for j in range(k + 1)))
        return h[-1]


#: By row name; names that mpmath has itself need no line.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "exp2": lambda x: mp.mpf(2) ** x,
    "log2": lambda x: mp.log(x, 2),
    "logaddexp": lambda a, b: mp.log(mp.exp(a) + mp.exp(b)),
    "xlogy": lambda x, y: x * mp.log(y) if x else mp.mpf(0),
    "reciprocal": lambda x: 1 / x,
    "reciprocal0": lambda x: 1 / x if x else mp.mpf(0),
    "divide": lambda a, b: a / b,
    "arcsin": mp.asin,
    "arccos": mp.acos,
    "arctan": mp.atan,
    "arctan2": mp.atan2,
    "arcsinh": mp.asinh,
    "arccosh": mp.acosh,
    "arctanh": mp.atanh,
    "cbrt": lambda x: _sign(x) * mp.cbrt(abs(x)),
    "rint": mp.nint,
    "stop_gradient": lambda x: x,
    "betaln": lambda a, b: mp.log(mp.beta(a, b)),
    "logit": lambda x: mp.log(x / (1 - x)),
    "spherical_jn": lambda n, x: (
        mp.sqrt(mp.pi) / 2 * (x / 2) ** n / mp.gamma(n + 1.5) * mp.hyp0f1(n + 1.5, -x * x / 4)
    ),
    "jv": mp.besselj,
    "yv": mp.bessely,
    "iv": mp.besseli,
    "kv": mp.besselk,
    "ive": lambda n, x: mp.exp(-abs(x)) * mp.besseli(n, x),
    "gammainc": lambda a, x: mp.gammainc(a, 0, x, regularized=True),
    "gammaincc": lambda a, x: mp.gammainc(a, x, mp.inf, regularized=True),
    "betainc": lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True),
    "stdtr": lambda df, t: _student(df, t),
    "erfinv": mp.erfinv,
    "erfcinv": lambda x: mp.erfinv(1 - x),
    "ndtri": lambda x: mp.sqrt(2) * mp.erfinv(2 * x - 1),
    "rgamma": mp.rgamma,
    "gammasgn": lambda x: _sign(mp.gamma(x)),
    "sigmoid": lambda x: 1 / (1 + mp.exp(-x)),
    "softplus": lambda x: mp.log1p(mp.exp(x)),
    "relu": lambda x: max(x, mp.mpf(0)),
    "ndtr": lambda x: mp.erfc(-x / mp.sqrt(2)) / 2,
    "log_ndtr": _log_ndtr,
    "logcosh": lambda x: mp.log(mp.cosh(x)),
    "inverse_mills": _inverse_mills,
    "gammaln": mp.loggamma,
    "digamma": mp.digamma,
    "polygamma": lambda n, x: mp.psi(int(n), x),
    "abs": abs,
    "sign": _sign,
    "mod": lambda a, b: a - b * mp.floor(a / b),
    "maximum": max,
    "minimum": min,
    "less": lambda a, b: mp.mpf(a < b),
    "less_equal": lambda a, b: mp.mpf(a <= b),
    "equal": lambda a, b: mp.mpf(a == b),
    "not_equal": lambda a, b: mp.mpf(a != b),
    "logical_and": lambda a, b: mp.mpf(bool(a) and bool(b)),
    "logical_or": lambda a, b: mp.mpf(bool(a) or bool(b)),
    "logical_not": lambda a: mp.mpf(not a),
    "isnan": lambda a: mp.mpf(mp.isnan(a)),
    "where": lambda c, a, b: a if c else b,
}


def function(name: str) -> Callable[..., Any] | None:
    """The scalar function of a row, or None where mpmath does not have it."""
    return FUNCTIONS.get(name) or getattr(mp, name, None)


def evaluate(e: Expr, values: Mapping[str, Any]) -> Any:
    """A scalar expression of scalar variables at 50 digits; nan where it is undefined."""
    done: dict[int, Any] = {}
    for node in postorder([e]):
        args = [done[id(a)] for a in node.args]
        if isinstance(node, Var):
            found = mp.mpf(values[node.name])
        elif isinstance(node, Add):
            found = mp.fsum(args)
        elif isinstance(node, Einsum):
            assert not node.extents
            assert node.coef == Coef(node.coef.value)
            found = mp.fprod([node.coef.value, *args])
        else:
            assert isinstance(node, Apply)
            compute = function(node.op.name)
            assert compute is not None, node.op.name
            try:
                found = compute(*args)
            except (ZeroDivisionError, ValueError):
                found = mp.nan
        done[id(node)] = found if mp.im(found) == 0 else mp.nan
    return done[id(e)]
