"""Scalar functions with their derivatives, and divided differences that are exact at equal points.

g[x0, ..., xk] comes from the recursion, which divides by the largest distance, or from the integral
of the k-th derivative over the simplex (Hermite and Genocchi) by Gauss quadrature: whichever has
the smaller bound of its error. The one is good where points are far apart, the other where they are
near, and there is a wide range in which both are.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations_with_replacement, permutations, product
from typing import Any

import numpy as np

from ...accumulation.orders import reverse
from ...graph.nodes import Apply, Einsum, Expr, Var, postorder
from ...graph.variables import var
from ...support.arrays import Array
from ...support.errors import UnsupportedError
from ...support.namespaces import NUMPY

#: The variable of scalar functions.
X = var("x")
EPS = float(np.finfo(np.float64).eps)
#: A recursion with this relative error needs no comparison.
GOOD = 2e-15
#: By so many of its bounds the recursion is never wrong.
PEAK = 1e3
#: Nodes per axis of the quadrature, by order; further orders have the last one.
NODES = (1, 12, 9, 8, 6)
CHUNK = 1 << 19


class Scalar:
    """A function of one number: an expression of `X`, and its derivatives up to an order.

    It is a parameter of rows: its `repr` tells it from others, its `str` is the formula.
    """

    def __init__(self, expr: Expr, order: int = 0) -> None:
        self.expr, self.order = expr, order
        self.derivatives = [expr]
        for _ in range(order):
            self.derivatives += reverse(self.derivatives[-1], [X])
        self.nodes = [_checked(e) for e in self.derivatives]

    def __call__(self, k: int, x: Array, xp: Any = NUMPY) -> Array:
        """The k-th derivative of every entry."""
        return evaluate_scalar(self.nodes[k], x, xp)

    def raised(self) -> Scalar:
        """The same function with one more derivative."""
        return Scalar(self.expr, self.order + 1)

    def derived(self) -> Scalar:
        """The derivative, which has one derivative less."""
        return Scalar(self.derivatives[1], self.order - 1)

    def __repr__(self) -> str:
        return f"Scalar({self.expr.order[-1].hex()}, {self.order})"

    def __str__(self) -> str:
        return str(self.expr)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scalar) and repr(other) == repr(self)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return Scalar, (self.expr, self.order)


def _checked(e: Expr) -> list[Expr]:
    """The nodes of a scalar function, operands first."""
    nodes = postorder([e])
    for node in nodes:
        product_ = isinstance(node, Einsum) and not (node.coef.times or node.coef.over)
        known = product_ or not isinstance(node, Einsum)
        row = not isinstance(node, Apply) or node.op.elementwise
        if node.shape or not known or not row or (isinstance(node, Var) and node is not X):
            raise UnsupportedError(f"a function of one number is needed, not {e!s:.60}")
    return nodes


def evaluate_scalar(nodes: list[Expr], x: Array, xp: Any = NUMPY) -> Array:
    """An expression of X at an array of a namespace, entry by entry."""
    values: dict[int, Any] = {}
    for node in nodes:
        args = [values[id(arg)] for arg in node.args]
        if isinstance(node, Var):
            value: Any = x
        elif isinstance(node, Einsum):
            value = xp.float64(node.coef.evaluate({}))
            for arg in args:
                value = value * arg
        elif isinstance(node, Apply):
            value = xp.asarray(node.op.kernels.compute(xp, node.params, *args), xp.float64)
        else:
            value = sum(args[1:], args[0])
        values[id(node)] = value
    found: Array = xp.broadcast_to(values[id(nodes[-1])], x.shape)
    return found


# --- divided differences --------------------------------------------------------------------------


@cache
def _simplex(order: int, nodes: int) -> tuple[Array, Array]:
    """Nodes t1 >= ... >= tk of the simplex, one column each, and their weights."""
    roots, weights = np.polynomial.legendre.leggauss(nodes)
    u = np.array(list(product((roots + 1) / 2, repeat=order))).reshape(-1, order)
    w = np.array(list(product(weights / 2, repeat=order))).reshape(-1, order)
    powers = np.arange(order - 1, -1, -1)
    return np.cumprod(u, axis=1).T, (w * u**powers).prod(axis=1)


def _integral(g: Scalar, x: Array, nodes: int) -> Array:
    """g[x0, ..., xk] of the rows of x as the integral of the k-th derivative."""
    order = x.shape[1] - 1
    t, weights = _simplex(order, nodes)
    found = np.empty(len(x))
    rows = max(1, CHUNK // len(weights))
    for low in range(0, len(x), rows):
        part = x[low : low + rows]
        at = part[:, :1] + (part[:, 1:] - part[:, :-1]) @ t
        found[low : low + rows] = g(order, at) @ weights
    return found


@np.errstate(all="ignore")
def divided_differences(g: Scalar, x: Array) -> Array:
    """g[x0, ..., xk] for every row of x, whose entries ascend."""
    d = np.array(g(0, x))
    error = EPS * np.abs(d)
    for j in range(1, x.shape[1]):
        gap = x[:, j:] - x[:, :-j]
        d = (d[:, 1:] - d[:, :-1]) / gap
        error = (error[:, 1:] + error[:, :-1]) / gap + EPS * np.abs(d)
        rows, columns = np.nonzero(~((error <= GOOD * np.abs(d)) & np.isfinite(d)))
        if not len(rows):
            continue
        windows = x[rows[:, None], columns[:, None] + np.arange(j + 1)]
        nodes = NODES[min(j, len(NODES) - 1)]
        fine = _integral(g, windows, nodes)
        doubt = np.abs(fine - _integral(g, windows, nodes - 1)) + 2 * EPS * np.abs(fine)
        before, bound = d[rows, columns], error[rows, columns]
        # All nodes may miss a peak: then what was there differs by far more than its bound.
        better = (doubt < bound) & (np.abs(fine - before) <= PEAK * bound)
        better |= ~np.isfinite(before) | np.isnan(bound)
        d[rows, columns] = np.where(better, fine, before)
        error[rows, columns] = np.where(better, doubt, bound)
    found: Array = d[:, 0]
    return found


def table(g: Scalar, w: Array, order: int) -> Array:
    """g[w_i, w_j, ...] for all tuples of entries of ascending vectors (the last axis)."""
    n, batch = w.shape[-1], w.shape[:-1]
    if not n:
        return np.zeros(batch + (0,) * (order + 1))
    chosen = np.array(list(combinations_with_replacement(range(n), order + 1)))
    values = divided_differences(g, w[..., chosen].reshape(-1, order + 1))
    grid = np.sort(np.indices((n,) * (order + 1)).reshape(order + 1, -1), axis=0)
    place = np.zeros((n,) * (order + 1), dtype=int)
    place[tuple(chosen.T)] = np.arange(len(chosen))
    full = values.reshape(*batch, len(chosen))[..., place[tuple(grid)]]
    return full.reshape(batch + (n,) * (order + 1))


def spectral_derivative(g: Scalar, w: Array, v: Array, es: list[Array]) -> Array:
    """The derivative of V g(diag w) V' along directions: V times a sum over their orders times V'.

    Every order of directions contributes g[w_i, w_p, ..., w_j] H1_ip H2_pq ... Hk_rj, summed over
    the inner indices, with H = V' E V.
    """
    transposed = np.swapaxes(v, -1, -2)
    if not es:
        value: Array = (v * g(0, w)[..., None, :]) @ transposed
        return value
    rotated = [transposed @ e @ v for e in es]
    weights = table(g, w, len(es))
    letters = "".join([chr(ord("a") + k) for k in range(len(es) + 1)])
    inner: Any = 0
    for order in permutations(rotated):
        term, left = weights, letters
        for k, h in enumerate(order):
            rest = left.replace(letters[k], "") if k else left
            term = np.einsum(f"...{left},...{letters[k : k + 2]}->...{rest}", term, h)
            left = rest
        inner = inner + term
    found: Array = v @ inner @ transposed
    return found
