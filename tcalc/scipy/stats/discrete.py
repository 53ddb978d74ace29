"""Distributions of whole numbers: the probability of each, and the sum up to it."""

from __future__ import annotations

import math

from ...graph.nodes import Expr
from ...ops.arithmetic import broadcast
from ...ops.elementwise import (
    equal,
    exp,
    floor,
    greater_equal,
    log,
    log1p,
    logical_and,
    where,
    xlogy,
)
from ...ops.incomplete import betainc, gammaincc
from ...ops.special import betaln, gammaln
from ...support.records import NamedTuple
from .distribution import Distribution, Formula, expressions


class Counts(NamedTuple):
    """A distribution at location 0, as functions of the whole number and the shapes.

    Attributes
    ----------
    logpmf : callable
        Inside of the support.
    shapes : tuple of str
    low : int
        The least number.
    high : callable or None
        The greatest, of the shapes.
    cdf : callable or None
        At a whole number inside of the support.
    """

    logpmf: Formula
    shapes: tuple[str, ...]
    low: int = 0
    high: Formula | None = None
    cdf: Formula | None = None


def _distribution(name: str, row: Counts) -> Distribution:
    formulas: dict[str, Formula] = {
        "logpmf": lambda *p: _mass(row, p),
        "pmf": lambda *p: exp(_mass(row, p)),
    }
    if row.cdf is not None:
        formulas["cdf"] = lambda *p: _below(row, p)
        formulas["sf"] = lambda *p: 1 - _below(row, p)
        formulas["logcdf"] = lambda *p: log(_below(row, p))
        formulas["logsf"] = lambda *p: log(1 - _below(row, p))
    return Distribution(name, row.shapes, formulas, {"loc": 0})


def _mass(row: Counts, values: tuple[object, ...]) -> Expr:
    x, *shapes, loc = broadcast(*expressions(values))
    k = x - loc
    inside = logical_and(k >= row.low, equal(k, floor(k)))
    if row.high is not None:
        inside = logical_and(inside, k <= row.high(*shapes))
    return where(inside, row.logpmf(where(inside, k, row.low), *shapes), -math.inf)


def _below(row: Counts, values: tuple[object, ...]) -> Expr:
    x, *shapes, loc = broadcast(*expressions(values))
    k = floor(x - loc)
    assert row.cdf is not None
    inside = greater_equal(k, row.low)
    found = where(inside, row.cdf(where(inside, k, row.low), *shapes), 0.0)
    if row.high is not None:
        found = where(greater_equal(k, row.high(*shapes)), 1.0, found)
    return found


def _binomial(k: Expr, n: Expr, p: Expr) -> Expr:
    return xlogy(k, p) + xlogy(n - k, 1 - p) - log(n + 1) - betaln(n - k + 1, k + 1)


COUNTS = {
    "bernoulli": Counts(
        lambda k, p: xlogy(k, p) + xlogy(1 - k, 1 - p), ("p",), 0, lambda p: 0 * p + 1,
        lambda k, p: where(equal(k, 0), 1 - p, 1.0),
    ),
    "binom": Counts(
        _binomial, ("n", "p"), 0, lambda n, p: n,
        lambda k, n, p: betainc(where(k < n, n - k, 1), k + 1, 1 - p),
    ),
    "geom": Counts(
        lambda k, p: xlogy(k - 1, 1 - p) + log(p), ("p",), 1,
        cdf=lambda k, p: 1 - exp(k * log1p(-p)),
    ),
    "nbinom": Counts(
        lambda k, n, p: gammaln(n + k) - gammaln(k + 1) - gammaln(n) + n * log(p) + xlogy(k, 1 - p),
        ("n", "p"), cdf=lambda k, n, p: betainc(n, k + 1, p),
    ),
    "poisson": Counts(
        lambda k, mu: xlogy(k, mu) - gammaln(k + 1) - mu, ("mu",),
        cdf=lambda k, mu: gammaincc(k + 1, mu),
    ),
}  # fmt: skip

DISCRETE = {name: _distribution(name, row) for name, row in COUNTS.items()}
