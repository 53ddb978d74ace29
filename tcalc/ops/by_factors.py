"""Logarithms and roots of products and quotients, differentiated by the factors of these.

The derivative of log(a/b) is a'/a - b'/b. Through the quotient it is (a'/b - a b'/b²) b/a: three
times the operations, and digits that cancel. So it is for sqrt(a/b): by b it is -sqrt(a/b)/(2 b),
which is 0 where a is, and not 0/0.
"""

from __future__ import annotations

from collections.abc import Callable

from ..graph.applications import apply
from ..graph.extents import ONE, number
from ..graph.nodes import Apply, Einsum, Expr, Labels
from ..graph.normal import scale
from ..graph.operators import Slope, operator_named
from ..graph.products import numeric_value
from ..support.records import NamedTuple

#: Factors up to which functions are differentiated by them.
MAX_FACTORS = 8


class _Factor(NamedTuple):
    """A factor at axes of the product, to a power."""

    base: Expr
    word: Labels
    exponent: int | float


def slopes_of_log(base: float) -> Callable[[Apply], list[Slope] | None]:
    """Derivatives by factors of the logarithm to a base, as the natural one divided by `base`."""

    def slopes(node: Apply) -> list[Slope] | None:
        (e,) = node.args
        found = _factors(e, tuple(range(e.ndim)), 1)
        if len(found) > MAX_FACTORS or (len(found) == 1 and found[0].base is e):
            return None
        return [_slope_of_log(factor, base) for factor in found]

    return slopes


def _slope_of_log(factor: _Factor, base: float) -> Slope:
    e, word, exponent = factor
    coef = number(exponent if base == 1 else exponent / base)
    if _is(e, "exp"):
        return Slope(e.args[0], word, (), coef)
    if _is(e, "sigmoid"):
        (inside,) = e.args
        other = apply(operator_named("sigmoid"), scale(inside, number(-1)))
        return Slope(inside, word, ((other, word),), coef)
    return Slope(e, word, ((_reciprocal(e), word),), coef)


def _factors(e: Expr, word: Labels, exponent: int | float) -> list[_Factor]:
    """Factors of e, which has its axes at `word`, but for signs and numbers."""
    if _is(e, "divide"):
        above, below = e.args
        return [*_factors(above, word, exponent), *_factors(below, word, -exponent)]
    if _is(e, "reciprocal"):
        return _factors(e.args[0], word, -exponent)
    if _is(e, "sqrt"):
        return _factors(e.args[0], word, exponent / 2)
    if _is(e, "abs"):
        return _factors(e.args[0], word, exponent)
    if _is(e, "power") and (power := numeric_value(e.args[1])) is not None:
        return _factors(e.args[0], word, exponent * power)
    if isinstance(e, Einsum) and _is_product(e):
        at = dict(zip(e.out, word, strict=True))
        pairs = zip(e.args, e.labels, strict=True)
        return [f for a, w in pairs for f in _factors(a, tuple([at[k] for k in w]), exponent)]
    return [_Factor(e, word, exponent)]


def _is_product(e: Einsum) -> bool:
    """Is each entry a product of entries, of which none is left out beside a diagonal?"""
    return not e.summed and all(len(set(word)) == len(word) for word in (e.out, *e.labels))


def slopes_of_root(node: Apply) -> list[Slope] | None:
    """Those of a square root."""
    return _slopes_of_quotient(node, 0.5)


def slopes_of_power(node: Apply) -> list[Slope] | None:
    """Those of a power with an exponent that is a number."""
    return _slopes_of_quotient(node, numeric_value(node.args[1]))


def _slopes_of_quotient(node: Apply, exponent: float | None) -> list[Slope] | None:
    """Derivatives of (a/b)**p, p below 1, by a and by b.

    The one by b is -p (a/b)**p / b, which has a value where a is 0.
    """
    whole = node.args[0]
    quotient, coef = whole, ONE
    if isinstance(whole, Einsum) and whole.labels == (whole.out,):  # a number times it
        quotient, coef = whole.args[0], whole.coef
    if exponent is None or exponent >= 1 or not _is(quotient, "divide"):
        return None
    above, below = quotient.args
    word = tuple(range(node.ndim))
    over = (_reciprocal(below), word)
    own = node.op.meaning.partials[0]
    assert callable(own)
    by_above = Slope(above, word, ((own(*node.args, node), word), over), coef)
    return [by_above, Slope(below, word, ((node, word), over), number(-exponent))]


def _is(e: Expr, name: str) -> bool:
    return isinstance(e, Apply) and e.op is operator_named(name)


def _reciprocal(e: Expr) -> Expr:
    return apply(operator_named("reciprocal"), e)
