"""Special functions: the error function's family, and the gamma function's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..graph.formulas import Formula
from ..graph.nodes import Expr
from .arithmetic import as_expr, public
from .elementwise import exp, maximum, reciprocal, sigmoid
from .elementwise_row import UNIT, Function, elementwise

__all__ = [
    "beta",
    "betaln",
    "digamma",
    "erf",
    "erfc",
    "expit",
    "gamma",
    "gammaln",
    "inverse_mills",
    "log_ndtr",
    "logit",
    "ndtr",
    "polygamma",
    "psi",
    "sinc",
    "spherical_jn",
]


def _inverse_mills(xp: Any, n: Any, x: Any) -> Any:
    found = x + math.nan * n  # for orders that are no whole numbers
    for order in np.unique(*xp.on_host([n])):
        if order >= 0 and order == math.floor(order):
            found = xp.where(n == order, _mills_derivative(xp, int(order), x), found)
    return found


def _of_order(name: str) -> Formula:
    """A library's function of a whole number and another; nan where that is none."""

    def kernel(xp: Any, n: Any, x: Any) -> Any:
        whole = xp.floor(n)
        return xp.where(n == whole, getattr(xp, name)(xp.asarray(whole, int), x), math.nan)

    return kernel


def _mills_derivative(xp: Any, n: int, x: Any) -> Any:
    """The derivative of order n of h = phi / Phi, the density over the distribution function.

    Where x is above `low`, by h' = -h (x + h) and Leibniz's rule. Below, x + h is a difference of
    nearly equal numbers: there -x is z, and h - z is the continued fraction 1/(z + 2/(z + 3/...)),
    whose Taylor coefficients are found from the last quotient to the first (Abramowitz and Stegun,
    26.2.14; Gautschi, SIAM Review 9 (1967), 24-82). The last one has the fixed point
    t = k / (z + t) for its tail.
    """
    low, depth = ((-8, 8), (-4, 24), (-3, 40))[min(n, 2)]
    high = xp.minimum(xp.maximum(x, low), 60)  # beyond, h is 0
    h = [xp.exp(-0.5 * high * high) / (xp.ndtr(high) * math.sqrt(2 * math.pi))]
    u = [high + h[0]]
    for k in range(n):
        h.append(-sum(math.comb(k, j) * h[j] * u[k - j] for j in range(k + 1)))
        u.append(h[-1] + (k == 0))
    z = -xp.minimum(x, low)
    t = [2 * (depth + 1) / (z + xp.sqrt(z * z + 4 * (depth + 1)))]
    for m in range(1, n + 1):
        t.append((t[m - 1] - sum(t[j] * t[m - j] for j in range(1, m))) / (2 * t[0] + z))
    for k in range(depth, 0, -1):
        below = [z + t[0], *[a - 1 for a in t[1:2]], *t[2:]]
        t = [k / below[0]]
        for m in range(1, n + 1):
            t.append(-sum(below[j] * t[m - j] for j in range(1, m + 1)) / below[0])
    tail = t[n] * math.factorial(n) + (z if n == 0 else -(n == 1))
    return xp.where(x > low, h[n], tail)


erf: Function = elementwise(
    "erf", lambda x, y: exp(-x * x) * (2 / math.sqrt(math.pi)), latex=r"\operatorname{{erf}}({0})",
    range=(-1, 1), flops=20, odd=(0,),
)  # fmt: skip
erfc: Function = elementwise(
    "erfc", lambda x, y: exp(-x * x) * (-2 / math.sqrt(math.pi)),
    latex=r"\operatorname{{erfc}}({0})", range=(0, 2),
    flops=20,
)  # fmt: skip
ndtr: Function = elementwise(
    "ndtr", lambda x, y: exp(-0.5 * x * x) / math.sqrt(2 * math.pi), latex=r"\Phi({0})", range=UNIT,
    flops=20,
)  # fmt: skip
log_ndtr: Function = elementwise(
    "log_ndtr", lambda x, y: inverse_mills(0, x), latex=r"\log\Phi({0})", range=(-math.inf, 0),
    flops=20,
)  # fmt: skip
inverse_mills: Function = elementwise(
    "inverse_mills", None, lambda n, x, y: inverse_mills(n + 1, x),
    latex=r"(\varphi/\Phi)^{{({0})}}({1})", kernel=_inverse_mills, domain=((1, 1), (-4, 4)),
    flops=200,
)  # fmt: skip
gammaln: Function = elementwise(
    "gammaln", lambda x, y: digamma(x), latex=r"\log\Gamma({0})",
    domain=((0.5, 4),), safe=(1,), flops=20,
)  # fmt: skip
digamma: Function = elementwise(
    "digamma", lambda x, y: polygamma(1, x), latex=r"\psi({0})",
    domain=((0.5, 4),), safe=(1,), flops=20,
)  # fmt: skip
polygamma: Function = elementwise(
    "polygamma", None, lambda n, x, y: polygamma(n + 1, x), latex=r"\psi^{{({0})}}({1})",
    kernel=_of_order("polygamma"), domain=((1, 1), (0.5, 4)),
    safe=(None, 1), flops=50,
)  # fmt: skip
gamma: Function = elementwise(
    "gamma", lambda x, y: y * digamma(x), latex=r"\Gamma({0})", domain=((0.5, 4),), safe=(1,),
    flops=20,
)  # fmt: skip
beta: Function = elementwise(
    "beta", lambda a, b, y: y * (digamma(a) - digamma(a + b)),
    lambda a, b, y: y * (digamma(b) - digamma(a + b)), latex=r"\mathrm{{B}}({0}, {1})",
    domain=((0.5, 4), (0.5, 4)), safe=(1, 1), flops=40,
)  # fmt: skip
betaln: Function = elementwise(
    "betaln", lambda a, b, y: digamma(a) - digamma(a + b),
    lambda a, b, y: digamma(b) - digamma(a + b), latex=r"\log\mathrm{{B}}({0}, {1})",
    domain=((0.5, 4), (0.5, 4)), safe=(1, 1), flops=40,
)  # fmt: skip
logit: Function = elementwise(
    "logit", lambda x, y: reciprocal(x * (1 - x)), latex=r"\operatorname{{logit}}({0})",
    domain=((0.1, 0.9),), safe=(0.5,), flops=12,
)  # fmt: skip
spherical_jn: Function = elementwise(
    "spherical_jn", None, lambda n, x, y: _bessel_slope(n, x), latex=r"j_{{{0}}}({1})",
    kernel=_of_order("spherical_jn"),
    domain=((1, 1), (-3.0, 3.0)), flops=50,
)  # fmt: skip


def _bessel_slope(n: Expr, x: Expr) -> Expr:
    """j_n' = (n j_(n-1) - (n + 1) j_(n+1)) / (2n + 1): nothing is divided by x (DLMF 10.51.1-2)."""
    below = n * spherical_jn(maximum(n - 1, 0), x)
    return (below - (n + 1) * spherical_jn(n + 1, x)) / (2 * n + 1)


# --- other names ----------------------------------------------------------------------------------


@public
def psi(x: object) -> Expr:
    """`digamma` under SciPy's other name."""
    return digamma(x)


@public
def expit(x: object) -> Expr:
    """`sigmoid` under SciPy's name."""
    return sigmoid(x)


@public
def sinc(x: object) -> Expr:
    """sin(pi x) / (pi x), and 1 at 0: all derivatives are right there, too."""
    return spherical_jn(0, math.pi * as_expr(x))
