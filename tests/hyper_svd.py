"""Longer LQ, singular values and packed entries as recurrences in nilpotent arithmetic."""

from __future__ import annotations

import mpmath as mp
import numpy as np

from tests.hyper import lq, solve, zeros


def lq_long(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """More rows than columns: the first ones decide Q, the others are products with it."""
    n = a.shape[1]
    factor, q = zeros(a, a.shape), lq(a[:n])[1] if n else a[:n]
    for i, j in np.ndindex(a.shape):
        if j <= i:
            factor[i, j] = a[i] @ q[j]
    return factor, q


def qr_wide(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    factor, q = lq_long(a.T)
    return q.T, factor.T


def svd(a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Newton's method on A v = s u, A' u = s v, u'u + v'v = 2; vectors have NumPy's signs."""
    m, n = a.shape
    k = min(m, n)
    u, s, v = zeros(a, (m, k)), zeros(a, (k,)), zeros(a, (n, k))
    if not k:
        return u, s, v.T
    values = [[x.c[0] for x in row] for row in a]
    left, found, right = mp.svd_r(mp.matrix(values))
    signs = np.linalg.svd(np.array(values, dtype=float), full_matrices=False)[0]
    for j in range(k):
        sign = 1 if sum(float(left[i, j]) * signs[i, j] for i in range(m)) > 0 else -1
        s[j] = s[j] + found[j]
        u[:, j] = [u[i, j] + left[i, j] * sign for i in range(m)]
        v[:, j] = [v[i, j] + right[j, i] * sign for i in range(n)]
        for _ in range(2):
            _newton(a, u, s, v, j)
    return u, s, v.T


def _newton(a: np.ndarray, u: np.ndarray, s: np.ndarray, v: np.ndarray, j: int) -> None:
    """One step for the vectors and the value in place j: it doubles the nilpotent order."""
    m, n = a.shape
    x, y = u[:, j], v[:, j]
    matrix, residual = zeros(a, (m + n + 1, m + n + 1)), zeros(a, (m + n + 1,))
    for i in range(m + n):
        matrix[i, i] = -s[j]
    matrix[:m, m:-1], matrix[m:-1, :m] = a, a.T
    matrix[:m, -1], matrix[m:-1, -1] = -x, -y
    matrix[-1, :m], matrix[-1, m:-1] = x, y
    residual[:m], residual[m:-1] = a @ y - x * s[j], a.T @ x - y * s[j]
    residual[-1] = (x @ x + y @ y) / 2 - 1
    step = solve(matrix, residual)
    u[:, j], v[:, j], s[j] = x - step[:m], y - step[m:-1], s[j] - step[-1]


def packed(n: int, offset: int, lower: bool) -> list[tuple[int, int]]:
    """Places in a triangle that ends at a diagonal, row after row."""
    places = [(i, j) for i in range(n) for j in range(n)]
    return [(i, j) for i, j in places if (j - i <= offset if lower else j - i >= offset)]


def pack(a: np.ndarray, offset: int, lower: bool) -> np.ndarray:
    places = packed(len(a), offset, lower)
    found = zeros(a, (len(places),))
    for k, at in enumerate(places):
        found[k] = a[at]
    return found


def unpack(v: np.ndarray, offset: int, lower: bool) -> np.ndarray:
    n = abs(offset)
    while len(packed(n, offset, lower)) < len(v):
        n += 1
    found = zeros(v, (n, n))
    for x, at in zip(v, packed(n, offset, lower), strict=True):
        found[at] = x
    return found


def off_diagonal(v: np.ndarray, offset: int) -> np.ndarray:
    n = len(v) + abs(offset)
    found = zeros(v, (n, n))
    for k, x in enumerate(v):
        found[k + max(0, -offset), k + max(0, offset)] = x
    return found
