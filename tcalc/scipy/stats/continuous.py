"""Distributions of one real number: the standard density of each, its support, and what is known
of its distribution function; location and scale are the same for all.
"""

from __future__ import annotations

import math

from ...graph.nodes import Expr
from ...ops.arithmetic import broadcast
from ...ops.bessel import iv
from ...ops.elementwise import (
    abs,
    arctan,
    cos,
    exp,
    expm1,
    log,
    log1p,
    logical_and,
    sigmoid,
    softplus,
    where,
    xlogy,
)
from ...ops.incomplete import betainc, gammainc, gammaincc, ndtri, stdtr
from ...ops.special import betaln, gammaln, log_ndtr, ndtr
from ...support.records import NamedTuple
from .distribution import Distribution, Formula, expressions

INFINITE = (-math.inf, math.inf)
POSITIVE = (0.0, math.inf)


class Standard(NamedTuple):
    """A distribution at location 0 and scale 1, as functions of the variable and the shapes.

    Attributes
    ----------
    logpdf : callable
        Inside of the support.
    shapes : tuple of str
    support : (low, high)
    inside : float
        A number of the support, at which all is finite.
    cdf, sf, logcdf, logsf, ppf : callable or None
        Where there is a form; `sf` is 1 - cdf, logarithms those of the others where there is none.
    """

    logpdf: Formula
    shapes: tuple[str, ...] = ()
    support: tuple[float, float] = INFINITE
    inside: float = 0.5
    cdf: Formula | None = None
    sf: Formula | None = None
    logcdf: Formula | None = None
    logsf: Formula | None = None
    ppf: Formula | None = None


def _distribution(name: str, row: Standard) -> Distribution:
    formulas: dict[str, Formula] = {
        "logpdf": lambda *p: _at(row, p, row.logpdf, -math.inf, -math.inf, "density"),
        "pdf": lambda *p: exp(_at(row, p, row.logpdf, -math.inf, -math.inf, "density")),
    }
    cdf, sf = row.cdf, row.sf
    if cdf is not None:
        above = sf or (lambda *p: 1 - cdf(*p))
        log_below, log_above = row.logcdf, row.logsf
        formulas["cdf"] = lambda *p: _at(row, p, cdf, 0.0, 1.0)
        formulas["sf"] = lambda *p: _at(row, p, above, 1.0, 0.0)
        below = log_below or (lambda *p: log(cdf(*p)))
        formulas["logcdf"] = lambda *p: _at(row, p, below, -math.inf, 0.0)
        over = log_above or (lambda *p: log(above(*p)))
        formulas["logsf"] = lambda *p: _at(row, p, over, 0.0, -math.inf)
    if row.ppf is not None:
        quantile = row.ppf
        formulas["ppf"] = lambda q, *p: _moved(quantile, q, p)
    return Distribution(name, row.shapes, formulas, {"loc": 0, "scale": 1})


def _at(
    row: Standard,
    values: tuple[object, ...],
    formula: Formula,
    low: float,
    high: float,
    kind: str = "",
) -> Expr:
    """A formula at (x - loc) / scale inside of the support, and what it is below and above."""
    x, *shapes, loc, scale = broadcast(*expressions(values))
    z = (x - loc) / scale
    first, last = row.support
    if (first, last) == INFINITE:
        found = formula(z, *shapes)
    else:
        inside = logical_and(z >= first, z <= last)
        found = formula(where(inside, z, row.inside), *shapes)
        found = where(inside, found, where(z < first, low, high))
    return found - log(scale) if kind == "density" else found


def _moved(quantile: Formula, q: object, parameters: tuple[object, ...]) -> Expr:
    p, *shapes, loc, scale = broadcast(*expressions((q, *parameters)))
    return loc + scale * quantile(p, *shapes)


def _t(x: Expr, df: Expr) -> Expr:
    constant = gammaln((df + 1) / 2) - gammaln(df / 2) - log(df * math.pi) / 2
    return constant - (df + 1) / 2 * log1p(x * x / df)


STANDARD = {
    "norm": Standard(
        lambda x: -x * x / 2 - math.log(2 * math.pi) / 2, cdf=ndtr, sf=lambda x: ndtr(-x),
        logcdf=log_ndtr, logsf=lambda x: log_ndtr(-x), ppf=ndtri,
    ),
    "beta": Standard(
        lambda x, a, b: xlogy(a - 1, x) + xlogy(b - 1, 1 - x) - betaln(a, b), ("a", "b"), (0, 1),
        cdf=lambda x, a, b: betainc(a, b, x), sf=lambda x, a, b: betainc(b, a, 1 - x),
    ),
    "cauchy": Standard(
        lambda x: -log1p(x * x) - math.log(math.pi),
        cdf=lambda x: 0.5 + arctan(x) / math.pi, sf=lambda x: 0.5 - arctan(x) / math.pi,
    ),
    "chi2": Standard(
        lambda x, df: (
            xlogy(df / 2 - 1, x) - x / 2 - gammaln(df / 2) - df * (math.log(2) / 2)
        ),
        ("df",), POSITIVE, 1.0,
        lambda x, df: gammainc(df / 2, x / 2), lambda x, df: gammaincc(df / 2, x / 2),
    ),
    "expon": Standard(
        lambda x: -x, (), POSITIVE, 1.0, lambda x: -expm1(-x), lambda x: exp(-x),
        logsf=lambda x: -x, ppf=lambda q: -log1p(-q),
    ),
    "gamma": Standard(
        lambda x, a: xlogy(a - 1, x) - x - gammaln(a), ("a",), POSITIVE, 1.0,
        lambda x, a: gammainc(a, x), lambda x, a: gammaincc(a, x),
    ),
    "gumbel_r": Standard(
        lambda x: -x - exp(-x), cdf=lambda x: exp(-exp(-x)), sf=lambda x: -expm1(-exp(-x)),
        logcdf=lambda x: -exp(-x),
    ),
    "halfnorm": Standard(
        lambda x: -x * x / 2 + math.log(2 / math.pi) / 2, (), POSITIVE, 1.0,
        lambda x: 2 * ndtr(x) - 1, lambda x: 2 * ndtr(-x),
        logsf=lambda x: math.log(2) + log_ndtr(-x),
    ),
    "invgamma": Standard(
        lambda x, a: -(a + 1) * log(x) - gammaln(a) - 1 / x, ("a",), POSITIVE, 1.0,
        lambda x, a: gammaincc(a, 1 / x), lambda x, a: gammainc(a, 1 / x),
    ),
    "laplace": Standard(
        lambda x: -abs(x) - math.log(2),
        cdf=lambda x: where(x < 0, exp(-abs(x)) / 2, 1 - exp(-abs(x)) / 2),
        sf=lambda x: where(x > 0, exp(-abs(x)) / 2, 1 - exp(-abs(x)) / 2),
    ),
    "logistic": Standard(
        lambda x: -x - 2 * softplus(-x), cdf=sigmoid, sf=lambda x: sigmoid(-x),
        logcdf=lambda x: -softplus(-x), logsf=lambda x: -softplus(x),
    ),
    "lognorm": Standard(
        lambda x, s: (
            -(log(x) ** 2) / (2 * s * s) - log(s * x) - math.log(2 * math.pi) / 2
        ),
        ("s",), POSITIVE, 1.0, lambda x, s: ndtr(log(x) / s), lambda x, s: ndtr(-log(x) / s),
        lambda x, s: log_ndtr(log(x) / s), lambda x, s: log_ndtr(-log(x) / s),
    ),
    "pareto": Standard(
        lambda x, b: log(b) - (b + 1) * log(x), ("b",), (1.0, math.inf), 2.0,
        lambda x, b: 1 - exp(-b * log(x)), lambda x, b: exp(-b * log(x)),
        logsf=lambda x, b: -b * log(x),
    ),
    "t": Standard(
        _t, ("df",), cdf=lambda x, df: stdtr(df, x), sf=lambda x, df: stdtr(df, -x),
    ),
    "uniform": Standard(
        lambda x: 0 * x, (), (0.0, 1.0), 0.5, lambda x: x, lambda x: 1 - x, ppf=lambda q: q,
    ),
    "vonmises": Standard(
        lambda x, kappa: kappa * cos(x) - log(iv(0, kappa)) - math.log(2 * math.pi), ("kappa",),
    ),
    "weibull_min": Standard(
        lambda x, c: log(c) + xlogy(c - 1, x) - x**c, ("c",), POSITIVE, 1.0,
        lambda x, c: -expm1(-(x**c)), lambda x, c: exp(-(x**c)), logsf=lambda x, c: -(x**c),
    ),
}  # fmt: skip


CONTINUOUS = {name: _distribution(name, row) for name, row in STANDARD.items()}
