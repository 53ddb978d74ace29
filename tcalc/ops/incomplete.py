"""Incomplete gamma and beta functions, inverses of the error function: SciPy's, entry by entry.

What distributions are made of. Derivatives by the parameters of incomplete functions have no closed
form and are refused.
"""

from __future__ import annotations

import math

from ..graph.nodes import Expr
from .elementwise import exp, log1p, xlogy
from .elementwise_row import UNIT, Function, Refused, elementwise
from .special import betaln, gammaln, psi

__all__ = [
    "betainc",
    "erfcinv",
    "erfinv",
    "gammainc",
    "gammaincc",
    "gammasgn",
    "ndtri",
    "rgamma",
    "stdtr",
]

_POSITIVE = (0.5, 4.0)


def _gamma_density(a: Expr, x: Expr) -> Expr:
    return exp(xlogy(a - 1, x) - x - gammaln(a))


gammainc: Function = elementwise(
    "gammainc", Refused("gammainc", "its parameter"), lambda a, x, y: _gamma_density(a, x),
    latex=r"P({0}, {1})", range=UNIT, domain=(_POSITIVE, _POSITIVE), safe=(None, 1), flops=100,
)  # fmt: skip
gammaincc: Function = elementwise(
    "gammaincc", Refused("gammaincc", "its parameter"), lambda a, x, y: -_gamma_density(a, x),
    latex=r"Q({0}, {1})", range=UNIT, domain=(_POSITIVE, _POSITIVE), safe=(None, 1), flops=100,
)  # fmt: skip
betainc: Function = elementwise(
    "betainc", Refused("betainc", "its parameters"), Refused("betainc", "its parameters"),
    lambda a, b, x, y: exp(xlogy(a - 1, x) + (b - 1) * log1p(-x) - betaln(a, b)),
    latex=r"I_{{{2}}}({0}, {1})", range=UNIT, domain=(_POSITIVE, _POSITIVE, (0.1, 0.9)),
    safe=(None, None, 0.5), flops=200,
)  # fmt: skip
stdtr: Function = elementwise(
    "stdtr", Refused("stdtr", "its degrees of freedom"),
    lambda df, t, y: exp(
        gammaln((df + 1) / 2) - gammaln(df / 2) - (df + 1) / 2 * log1p(t * t / df)
    ) / (math.pi * df) ** 0.5,
    latex=r"F_{{t_{{{0}}}}}({1})", range=UNIT, domain=(_POSITIVE, (-3, 3)), safe=(None, 0),
    flops=200,
)  # fmt: skip
erfinv: Function = elementwise(
    "erfinv", lambda x, y: exp(y * y) * (math.sqrt(math.pi) / 2),
    latex=r"\operatorname{{erf}}^{{-1}}({0})", domain=((-0.9, 0.9),), safe=(0,), flops=50,
    odd=(0,),
)  # fmt: skip
erfcinv: Function = elementwise(
    "erfcinv", lambda x, y: exp(y * y) * (-math.sqrt(math.pi) / 2),
    latex=r"\operatorname{{erfc}}^{{-1}}({0})", domain=((0.1, 1.9),), safe=(1,), flops=50,
)  # fmt: skip
ndtri: Function = elementwise(
    "ndtri", lambda x, y: exp(y * y / 2) * math.sqrt(2 * math.pi),
    latex=r"\Phi^{{-1}}({0})", domain=((0.1, 0.9),), safe=(0.5,), flops=50,
)  # fmt: skip
rgamma: Function = elementwise(
    "rgamma", lambda x, y: -y * psi(x), latex=r"\frac{{1}}{{\Gamma({0})}}", domain=(_POSITIVE,),
    safe=(1,), flops=30,
)  # fmt: skip
gammasgn: Function = elementwise(
    "gammasgn", None, latex=r"\operatorname{{sign}}\Gamma({0})", range=(-1, 1), flops=5
)
