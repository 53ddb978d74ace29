"""Products of sums multiplied out, where that is asked for.

A plan never tears a difference of given arrays apart, as digits may cancel. Multiplied out,
sum_k (a_ik - b_jk)^2 is made of a matrix product and two sums of squares.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import combinations_with_replacement
from math import comb, factorial, prod

from ..graph.applications import rewritten
from ..graph.extents import number
from ..graph.nodes import Add, Derivative, Einsum, Expr, intern
from ..graph.normal import add, bare, distribute, einsum
from ..graph.subspaces import Slot
from ..graph.sums import flattened
from ..ops.arithmetic import as_expr
from ..ops.powers import whole_power
from ..support.errors import UnsupportedError
from .strategy import simplify

#: How many terms one product may become, and a power how many factors of terms.
MAX_EXPANDED = 10_000


def expand(e: object) -> Expr:
    """The expression with products and whole powers of sums multiplied out.

    Functions keep their arguments, which are multiplied out themselves. The result is printed as it
    is, and not in a shorter form; expressions made with it are printed as all others are. Where
    terms nearly cancel, as in squares of small differences of large numbers, the result is less
    accurate.

    Parameters
    ----------
    e : Expr or what becomes one

    Returns
    -------
    Expr

    Raises
    ------
    UnsupportedError
        Where one product would become more than 10,000 terms, or a power as many factors of terms.

    Examples
    --------
    >>> import tcalc as tc
    >>> x, y = tc.var("x", "n"), tc.var("y", "n")
    >>> print(tc.to_einsum(tc.expand((x + y) ** 2)))
    x^2 + 2*x*y + y^2
    >>> a, b = tc.var("a", ("n", "k")), tc.var("b", ("m", "k"))
    >>> print(tc.expand(tc.sum((a[:, None] - b) ** 2, axis=2)))
    a.^2*vector(1)*vector(1, m)' + vector(1, n)*vector(1)'*b'.^2 - 2*a*b'
    """
    start = bare(as_expr(e))
    found = rewritten([start], lambda new, old: _distributed(_repeated(new)))[0]
    if found is start and not isinstance(found, Add):
        return found
    made: Derivative = intern(Derivative, (0, _itself, None), (found, found))
    return made


def _itself(value: Expr, slots: Iterable[Slot]) -> Expr:
    return value


def _repeated(e: Expr) -> Expr:
    """A whole power of a sum by the multinomial theorem."""
    found = whole_power(e)
    if found is None or not isinstance(found[0], Add):
        return e
    base, times = found
    terms, axes = _terms(base), range(e.ndim)
    _checked(comb(times + len(terms) - 1, times) * times if times < MAX_EXPANDED else times, e)
    made = []
    for chosen in combinations_with_replacement(range(len(terms)), times):
        coef = factorial(times) // prod(map(factorial, Counter(chosen).values()))
        factors = [terms[k] for k in chosen]
        made.append(simplify(einsum(factors, [axes] * times, axes, number(coef))))
    return add(made)


def _distributed(e: Expr) -> Expr:
    """A product as the sum of the products of one term of each of its sums."""
    if not isinstance(e, Einsum) or not any(isinstance(arg, Add) for arg in e.args):
        return e
    terms = list(map(_terms, e.args))
    _checked(prod(map(len, terms)), e)
    return add(distribute(e, dict(enumerate(terms))))


def _terms(e: Expr) -> list[Expr]:
    return flattened(e, lambda term: term.args if isinstance(term, Add) else None)


def _checked(count: int, e: Expr) -> None:
    if count > MAX_EXPANDED:
        raise UnsupportedError(
            f"expand: {e!s:.60} would become more than {MAX_EXPANDED:,} terms or factors"
        )
