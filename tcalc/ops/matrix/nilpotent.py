"""Functions of matrices with nilpotent parts: a value and all its mixed derivatives at once.

What stands behind e1 e2 ... ek in f(A + e1 E1 + ... + ek Ek), ei^2 = 0, is the k-th Fréchet
derivative of f. Products of such sums are those of the nested block triangular matrices of Higham
and Relton (2014), without their zeros and copies. A sum is a list of arrays by set of units, a set
being the bits of an index; None is zero, and each array broadcasts by itself, so that parts which
are common to many directions are computed once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...support.arrays import Array

JetParts = list[Any]

#: Numerator of the [9/9] Padé approximant of exp, whose error is below rounding at norm 1.
PADE = (
    17643225600, 8821612800, 2075673600, 302702400, 30270240, 2162160, 110880, 3960, 90, 1,
)  # fmt: skip
#: The logarithm is approximated where the root's distance from the identity is below this.
NEAR = 0.25
LOG_NODES = 10
MAX_ROOTS = 64


def parts_of(a: Array, directions: list[Array]) -> JetParts:
    """A + e1 E1 + ... + ek Ek."""
    found: JetParts = [None] * 2 ** len(directions)
    found[0] = a
    for k, e in enumerate(directions):
        found[2**k] = e
    return found


def plus(a: Any, b: Any) -> Any:
    return b if a is None else a if b is None else a + b


def scaled(a: JetParts, factor: Any) -> JetParts:
    return [None if x is None else x * factor for x in a]


def total(a: JetParts, b: JetParts) -> JetParts:
    return [plus(x, y) for x, y in zip(a, b, strict=True)]


def product(a: JetParts, b: JetParts, least: int = 0) -> JetParts:
    """a b; from `least` = 1 on without what the value of a contributes."""
    found: JetParts = []
    for whole in range(len(a)):
        sum_: Any = None
        for part in range(least, whole + 1):
            if part & whole == part and a[part] is not None and b[whole ^ part] is not None:
                sum_ = plus(sum_, a[part] @ b[whole ^ part])
        found.append(sum_)
    return found


def inverse(a: JetParts) -> JetParts:
    """From (a0 + n) y = 1: y_S = -y_0 times what n y has at S."""
    y: JetParts = [np.linalg.inv(a[0])]
    for whole in range(1, len(a)):
        rest: Any = None
        for part in range(1, whole + 1):
            if part & whole == part and a[part] is not None and y[whole ^ part] is not None:
                rest = plus(rest, a[part] @ y[whole ^ part])
        y.append(None if rest is None else -(y[0] @ rest))
    return y


def identity(a: JetParts) -> JetParts:
    return [np.eye(a[0].shape[-1], dtype=a[0].dtype), *[None] * (len(a) - 1)]


# --- the exponential ------------------------------------------------------------------------------


def exponential(a: JetParts) -> JetParts:
    """Scaling and squaring, each matrix of a batch as often as it needs."""
    size = np.abs(a[0]).sum(axis=-2).max(axis=-1)
    _, times = np.frexp(size)  # size < 2 ** times
    times = np.maximum(times, 0)[..., None, None]
    a = scaled(a, np.ldexp(1.0, -times))
    square = product(a, a)
    odd, even = scaled(identity(a), PADE[1]), scaled(identity(a), PADE[0])
    power = identity(a)
    for k in range(2, len(PADE), 2):
        power = product(power, square)
        even = total(even, scaled(power, PADE[k]))
        odd = total(odd, scaled(power, PADE[k + 1]))
    odd = product(a, odd)
    found = product(inverse(total(even, scaled(odd, -1))), total(even, odd))
    for k in range(int(times.max(initial=0))):
        found = _chosen(k < times, product(found, found), found)
    return found


def _chosen(which: Array, new: JetParts, old: JetParts) -> JetParts:
    found: JetParts = []
    for x, y in zip(new, old, strict=True):
        both = x is None and y is None
        found.append(
            None if both else np.where(which, 0 if x is None else x, 0 if y is None else y)
        )
    return found


# --- roots and logarithms, of upper triangular values ---------------------------------------------


def sylvester(r: Array, c: Array) -> Array:
    """The y with r y + y r = c, column after column; r is upper triangular."""
    n = r.shape[-1]
    y = np.zeros(np.broadcast_shapes(r.shape, c.shape), np.result_type(r, c))
    for j in range(n):
        known = y[..., :, :j] @ r[..., :j, j, None]
        shifted = np.linalg.inv(r + r[..., j, j, None, None] * np.eye(n))
        y[..., :, j] = (shifted @ (c[..., :, j, None] - known))[..., 0]
    return y


def triangular_root(t: Array) -> Array:
    """The principal square root of upper triangular matrices, column after column."""
    n = t.shape[-1]
    r = np.zeros_like(t)
    for j in range(n):
        r[..., j, j] = np.sqrt(t[..., j, j])
        if j:
            shifted = r[..., :j, :j] + r[..., j, j, None, None] * np.eye(j)
            r[..., :j, j] = np.linalg.solve(shifted, t[..., :j, j, None])[..., 0]
    return r


def root(t: JetParts) -> JetParts:
    """The principal square root: r_S solves r r_S + r_S r = t_S - (products of smaller parts)."""
    r: JetParts = [triangular_root(t[0])]
    for whole in range(1, len(t)):
        rest = t[whole]
        for part in range(1, whole):
            if part & whole == part and r[part] is not None and r[whole ^ part] is not None:
                rest = plus(rest, -(r[part] @ r[whole ^ part]))
        r.append(None if rest is None else sylvester(r[0], rest))
    return r


def logarithm(t: JetParts) -> JetParts:
    """Inverse scaling and squaring; the approximant as partial fractions (Higham 2008, 11.4)."""
    n, times = t[0].shape[-1], 0
    while np.abs(t[0] - np.eye(n)).sum(axis=-2).max(initial=0) > NEAR and times < MAX_ROOTS:
        t, times = root(t), times + 1
    x = total(t, scaled(identity(t), -1))
    nodes, weights = np.polynomial.legendre.leggauss(LOG_NODES)
    found: JetParts = [None] * len(t)
    for node, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        # x / (1 + node x) = (1 - 1 / (1 + node x)) / node, which cancels in the value only.
        term = inverse(total(identity(t), scaled(x, node)))
        value = x[0] @ term[0]
        term = [value, *scaled(term[1:], -1 / node)]
        found = total(found, scaled(term, weight * 2.0**times))
    return found


def by_schur(
    function: Callable[[JetParts], JetParts], t: Array, u: Array, es: list[Array]
) -> Array:
    """The last part of a function at A = u t u*, in the basis where the value is triangular."""
    adjoint = np.conj(np.swapaxes(u, -1, -2))
    last = function(parts_of(t, [adjoint @ e @ u for e in es]))[-1]
    return np.real(u @ last @ adjoint)
