"""`scipy.special` with expressions among the arguments."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special

from ..graph.nodes import Expr
from ..numpy.table import SPECIAL
from ..ops import arithmetic, elementwise, reductions
from ..ops import special as functions
from ..ops.arithmetic import Axis, as_expr
from .namespace import member, refusal, stands_in

__all__ = sorted(name for name in dir(scipy.special) if not name.startswith("_"))


@stands_in(scipy.special)
def logsumexp(
    a: object, axis: Axis = None, b: Any = None, keepdims: bool = False, return_sign: bool = False
) -> Expr:
    """log(sum(b * exp(a))), as `scipy.special.logsumexp`."""
    if return_sign:
        raise refusal("scipy.special.logsumexp with return_sign=True")
    if b is None:
        return reductions.logsumexp(a, axis, keepdims)
    return elementwise.log(
        arithmetic.sum(arithmetic.multiply(b, elementwise.exp(a)), axis, keepdims)
    )


@stands_in(scipy.special)
def softmax(x: object, axis: Axis = None) -> Expr:
    """As `scipy.special.softmax`, over all axes where none is named."""
    return elementwise.exp(log_softmax(x, axis))


@stands_in(scipy.special)
def log_softmax(x: object, axis: Axis = None) -> Expr:
    """As `scipy.special.log_softmax`, over all axes where none is named."""
    e = as_expr(x)
    return e - arithmetic.expand(reductions.logsumexp(e, axis, keepdims=True), e.shape)


@stands_in(scipy.special)
def multigammaln(a: object, d: int) -> Expr:
    """The logarithm of the multivariate gamma function, as `scipy.special.multigammaln`."""
    e = as_expr(a)
    terms = [functions.gammaln(e - j / 2) for j in range(int(d))]
    return arithmetic.add(sum(terms[1:], terms[0]), d * (d - 1) / 4 * math.log(math.pi))


@stands_in(scipy.special)
def polygamma(n: object, x: object) -> Expr:
    """The derivative of order n of `psi`."""
    return functions.polygamma(n, x)


@stands_in(scipy.special)
def factorial(n: object) -> Expr:
    """n! as the gamma function of n + 1."""
    return elementwise.exp(functions.gammaln(as_expr(n) + 1))


@stands_in(scipy.special)
def comb(N: object, k: object) -> Expr:
    """Binomial coefficients, by the gamma function."""
    n, m = as_expr(N), as_expr(k)
    return elementwise.exp(
        functions.gammaln(n + 1) - functions.gammaln(m + 1) - functions.gammaln(n - m + 1)
    )


def __getattr__(name: str) -> Any:
    theirs = getattr(scipy.special, name)
    ufunc = isinstance(theirs, np.ufunc)
    if name in SPECIAL and not ufunc:  # some are plain functions around a ufunc
        found = stands_in(scipy.special)(SPECIAL[name])
    else:
        found = member(scipy.special, globals(), name)
    globals()[name] = found
    return found
