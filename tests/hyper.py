"""Matrices of nilpotent numbers at 50 digits: factorisations and their derivatives in mpmath.

A `Hyper` is a number with nilpotent parts: f(x + e1 u + e2 v + e3 w) carries the third derivative
of f along u, v and w behind e1 e2 e3. The factorisations are written out here as the recurrences of
a textbook and share nothing with tcalc, nor with NumPy's LAPACK.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mpmath as mp
import numpy as np

mp.mp.dps = 50


class Hyper:
    """Coefficients by set of nilpotent units, a set being the bits of an index."""

    __slots__ = ("c",)

    def __init__(self, c: Sequence[Any]) -> None:
        self.c = list(c)

    def like(self, other: Any) -> list[Any]:
        if isinstance(other, Hyper):
            return other.c
        return [mp.mpf(other)] + [mp.mpf(0)] * (len(self.c) - 1)

    def __add__(self, other: Any) -> Hyper:
        return Hyper([a + b for a, b in zip(self.c, self.like(other), strict=True)])

    def __neg__(self) -> Hyper:
        return Hyper([-a for a in self.c])

    def __sub__(self, other: Any) -> Hyper:
        return Hyper([a - b for a, b in zip(self.c, self.like(other), strict=True)])

    def __rsub__(self, other: Any) -> Hyper:
        return -self + other

    def __mul__(self, other: Any) -> Hyper:
        if not isinstance(other, Hyper):
            return Hyper([a * other for a in self.c])
        a, b = self.c, other.c
        found = []
        for whole in range(len(a)):
            part, total = whole, mp.mpf(0)
            while True:
                if a[part] and b[whole ^ part]:
                    total += a[part] * b[whole ^ part]
                if not part:
                    break
                part = (part - 1) & whole
            found.append(total)
        return Hyper(found)

    __radd__, __rmul__ = __add__, __mul__

    def __truediv__(self, other: Any) -> Hyper:
        if not isinstance(other, Hyper):
            return Hyper([a / other for a in self.c])
        x = other.c[0]
        return self * other.chain(1 / x, -1 / x**2, 2 / x**3, -6 / x**4)

    def __rtruediv__(self, other: Any) -> Hyper:
        return Hyper(self.like(other)) / self

    def chain(self, f: Any, first: Any, second: Any, third: Any) -> Hyper:
        """A function from its value and three derivatives."""
        n = Hyper([mp.mpf(0), *self.c[1:]])
        return ((n * (third / 6) + second / 2) * n + first) * n + f

    def sqrt(self) -> Hyper:
        r = mp.sqrt(self.c[0])
        return self.chain(r, 1 / (2 * r), -1 / (4 * r**3), 3 / (8 * r**5))

    def log(self) -> Hyper:
        x = self.c[0]
        return self.chain(mp.log(x), 1 / x, -1 / x**2, 2 / x**3)

    def __abs__(self) -> Hyper:
        return -self if self.c[0] < 0 else self


def hyper(value: np.ndarray, directions: Sequence[np.ndarray]) -> np.ndarray:
    """An array of Hypers: the value, and one direction per nilpotent unit."""
    found = np.empty(value.shape, dtype=object)
    for at in np.ndindex(value.shape):
        c = [mp.mpf(0)] * 2 ** len(directions)
        c[0] = mp.mpf(float(value[at]))
        for k, direction in enumerate(directions):
            c[2**k] = mp.mpf(float(direction[at]))
        found[at] = Hyper(c)
    return found


def last(found: Any, order: int) -> np.ndarray:
    """What stands behind the product of all nilpotent units, as floats."""
    array = np.asarray(found, dtype=object)
    flat = [x.c[-1] if isinstance(x, Hyper) else mp.mpf(0 if order else x) for x in array.ravel()]
    return np.array([float(x) for x in flat]).reshape(array.shape)


# --- recurrences ----------------------------------------------------------------------------------


def zeros(a: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    found = np.empty(shape, dtype=object)
    found[...] = Hyper(a.flat[0].like(0)) if a.size else 0
    return found


def eye(a: np.ndarray) -> np.ndarray:
    found = zeros(a, (len(a), len(a)))
    for k in range(len(a)):
        found[k, k] = found[k, k] + 1
    return found


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a b, where the summed extent may be 0."""
    return a @ b if a.shape[-1] else zeros(a, (*a.shape[:-1], *b.shape[1:]))


def cholesky(a: np.ndarray) -> np.ndarray:
    a, factor = (a + a.T) / 2, zeros(a, a.shape)
    for j in range(len(a)):
        factor[j, j] = (a[j, j] - sum(factor[j, k] * factor[j, k] for k in range(j))).sqrt()
        for i in range(j + 1, len(a)):
            rest = a[i, j] - sum(factor[i, k] * factor[j, k] for k in range(j))
            factor[i, j] = rest / factor[j, j]
    return factor


def lq(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gram and Schmidt, row after row."""
    factor, q = zeros(a, (len(a), len(a))), zeros(a, a.shape)
    for i in range(len(a)):
        rest = a[i]
        for j in range(i):
            factor[i, j] = rest @ q[j]
            rest = rest - q[j] * factor[i, j]
        factor[i, i] = (rest @ rest).sqrt()
        q[i] = rest / factor[i, i]
    return factor, q


def solve(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Gauss and Jordan, pivoted by value."""
    a, b = a.copy(), b.copy()
    for k in range(len(a)):
        p = max(range(k, len(a)), key=lambda i: abs(a[i, k].c[0]))
        a[[k, p]], b[[k, p]] = a[[p, k]], b[[p, k]]
        a[k], b[k] = a[k] / a[k, k], b[k] / a[k, k]
        for i in range(len(a)):
            if i != k:
                factor = a[i, k]
                a[i], b[i] = a[i] - a[k] * factor, b[i] - b[k] * factor
    return b


def inverse(a: np.ndarray) -> np.ndarray:
    return solve(a, eye(a))


def triangle(a: np.ndarray, lower: bool) -> np.ndarray:
    found = zeros(a, a.shape)
    for i, j in np.ndindex(a.shape):
        if i == j or (i > j) is lower:
            found[i, j] = a[i, j]
    return found


def det(a: np.ndarray) -> Any:
    """By the first row, so that singular matrices are no exception."""
    if not len(a):
        return mp.mpf(1)
    total = a[0, 0] * 0
    for j in range(len(a)):
        minor = np.delete(a[1:], j, axis=1)
        total = total + a[0, j] * det(minor) * (-1) ** j
    return total


def adj(a: np.ndarray) -> np.ndarray:
    found = zeros(a, a.shape)
    for i, j in np.ndindex(a.shape):
        minor = np.delete(np.delete(a, j, axis=0), i, axis=1)
        found[i, j] = found[i, j] + det(minor) * (-1) ** (i + j)
    return found


def eigh(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Newton's method on A v = w v, v'v = 1: each step completes a nilpotent order.

    Eigenvectors have NumPy's signs.
    """
    a, n = (a + a.T) / 2, len(a)
    w, v = zeros(a, (n,)), zeros(a, (n, n))
    if not n:
        return w, v
    values = mp.matrix([[x.c[0] for x in row] for row in a])
    found, vectors = mp.eigsy(values)
    signs = np.linalg.eigh(np.array(values.tolist(), dtype=float))[1]
    for k in range(n):
        sign = 1 if sum(float(vectors[i, k]) * signs[i, k] for i in range(n)) > 0 else -1
        w[k] = w[k] + found[k]
        v[:, k] = [v[i, k] + vectors[i, k] * sign for i in range(n)]
        for _ in range(3):
            x = v[:, k]
            matrix, residual = zeros(a, (n + 1, n + 1)), zeros(a, (n + 1,))
            matrix[:n, :n] = a - eye(a) * w[k]
            matrix[:n, n], matrix[n, :n] = -x, x
            residual[:n], residual[n] = a @ x - x * w[k], (x @ x - 1) / 2
            step = solve(matrix, residual)
            v[:, k], w[k] = x - step[:n], w[k] - step[n]
    return w, v


def syevd(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The component of largest magnitude is positive."""
    w, v = eigh(a)
    for k in range(len(a)):
        top = max(range(len(a)), key=lambda i: abs(v[i, k].c[0]))
        if v[top, k].c[0] < 0:
            v[:, k] = -v[:, k]
    return v.T, w


def total(values: Any) -> Any:
    return sum(values) if len(values) else mp.mpf(0)


def frobenius(a: np.ndarray) -> Any:
    return total(list((a * a).ravel())).sqrt() if a.size else mp.mpf(0)


def gram(c: np.ndarray, lower: bool) -> np.ndarray:
    t = triangle(c, lower)
    return product(t, t.T) if lower else product(t.T, t)


def power(a: np.ndarray, n: int) -> np.ndarray:
    found, base = eye(a), inverse(a) if n < 0 else a
    for _ in range(abs(n)):
        found = product(found, base)
    return found


def log_abs(x: Any) -> Any:
    return abs(x).log() if isinstance(x, Hyper) else mp.log(abs(x))


def sign(x: Any) -> Any:
    return mp.sign(x.c[0] if isinstance(x, Hyper) else x)


def diagonal(v: np.ndarray) -> np.ndarray:
    found = zeros(v, (len(v), len(v)))
    for k, x in enumerate(v):
        found[k, k] = x
    return found


def singular_values(a: np.ndarray) -> list[Any]:
    """Ascending, of a matrix with at least as many columns as rows."""
    return [x.sqrt() for x in eigh(product(a, a.T))[0]]


def pinv(a: np.ndarray) -> np.ndarray:
    if a.shape[0] < a.shape[1]:
        return pinv(a.T).T
    return solve(product(a.T, a), a.T)


def largest(values: list[Any]) -> Any:
    return max(values, key=lambda x: x.c[0])


def swap(pair: tuple[Any, Any]) -> tuple[Any, Any]:
    return pair[1], pair[0]


def qr(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    factor, q = lq(a.T)
    return q.T, factor.T


# --- functions of matrices ------------------------------------------------------------------------


def distance(a: np.ndarray) -> Any:
    """The largest row sum of the values of a - 1."""
    b = a - eye(a)
    return max([sum(abs(x.c[0]) for x in row) for row in b], default=mp.mpf(0))


def expm(a: np.ndarray) -> np.ndarray:
    """Taylor's series of a / 2**s, squared s times."""
    if not len(a):
        return zeros(a, a.shape)
    times = 10 + int(mp.ceil(mp.log(1 + distance(a + eye(a)), 2)))
    small = a / mp.mpf(2) ** times
    found, term = eye(a), eye(a)
    for k in range(1, 16):
        term = product(term, small) / k
        found = found + term
    for _ in range(times):
        found = product(found, found)
    return found


def sqrtm(a: np.ndarray) -> np.ndarray:
    """Denman and Beavers: each step after convergence completes a nilpotent order."""
    x, y, steps = a, eye(a), 0
    while steps < 3 and len(a):
        steps += distance(product(x, y)) < mp.mpf(10) ** -20
        x, y = (x + inverse(y)) / mp.mpf(2), (y + inverse(x)) / mp.mpf(2)
    return x


def logm(a: np.ndarray) -> np.ndarray:
    """Roots until a is near 1, then twice the series of the inverse hyperbolic tangent."""
    times = 0
    while distance(a) > 0.5:
        a, times = sqrtm(a), times + 1
    z = solve((a + eye(a)).T, (a - eye(a)).T).T
    found, power_, square_ = zeros(a, a.shape), z, product(z, z)
    for k in range(1, 90, 2):
        found = found + power_ / mp.mpf(k)
        power_ = product(power_, square_)
    return found * mp.mpf(2) ** (times + 1)


def symmetric(a: np.ndarray) -> np.ndarray:
    return (a + a.T) / 2
