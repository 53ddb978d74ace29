"""The diagonal of the inverse of a sparse matrix, from its LU factors.

Of Z = (L U)⁻¹ the entries where factors may have entries follow from each other, last ones first,
without all others [1], [2]. So that pivots may stand anywhere, L U = P A Q is taken as a matrix
with a symmetric pattern: that of P A Q, of its transpose, and of the places to which the diagonal
of A moves. What fills in is then told by one elimination tree [3]. A few columns at a time, a path
of this tree or all of a small branch, are computed by products of dense matrices.

[1] K. Takahashi, J. Fagan, M.-S. Chin, Formation of a sparse bus impedance matrix and its
    application to short circuit study, Proc. 8th PICA Conference, 1973.
[2] A. M. Erisman, W. F. Tinney, On computing certain elements of the inverse of a sparse matrix,
    Communications of the ACM 18 (3), 1975.
[3] J. W. H. Liu, The role of elimination trees in sparse factorization, SIAM J. Matrix Anal. Appl.
    11 (1), 1990.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...support.arrays import Array
from .dense import lapack

#: Columns of a branch, and of a path, of the tree that are computed at once.
BRANCH, PATH = 16, 32
#: How many times as much as the factors a symmetric pattern may hold; beyond, columns of the
#: inverse are cheaper.
MAX_GROWTH = 4


def inverse_diagonal(matrix: Any, factor: Any) -> Array | None:
    """The diagonal of the inverse of a sparse matrix; None where its columns are to be solved for.

    That is where pivots stand such that the pattern fills in, and where digits are lost: a row of
    the matrix times that column of the inverse must be 1.

    Parameters
    ----------
    matrix : scipy.sparse array, (n, n)
        In coordinates, without duplicates.
    factor : scipy.sparse.linalg.SuperLU
        Of this matrix.
    """
    n = matrix.shape[0]
    down, across = (order.astype(np.int64) for order in (factor.perm_r, factor.perm_c))
    rows, columns = matrix.coords
    i, j = np.concatenate([down[rows], down]), np.concatenate([across[columns], across])
    order, parent, size = _tree(i, j)
    fronts = _Fronts(_ends(parent, size), order[i], order[j])
    if fronts.entries > MAX_GROWTH * max(factor.nnz, n * PATH):
        return None
    lower, upper = (np.zeros(fronts.entries, matrix.dtype) for _ in range(2))
    left, right = factor.L.tocoo(), factor.U.tocoo()
    lower[fronts.places(*(order[k] for k in left.coords))] = left.data
    upper[fronts.places(*(order[k] for k in reversed(right.coords)))] = right.data
    del left, right
    fronts.invert(lower, upper)

    def entries(i: Array, j: Array) -> Array:
        held = fronts.places(np.maximum(i, j), np.minimum(i, j))
        return np.where(i >= j, lower[held], upper[held])

    down, across = order[down], order[across]
    terms = matrix.data * entries(across[columns], down[rows])
    missed = np.abs(np.bincount(rows, terms, n) - 1)
    bound = np.finfo(matrix.dtype).eps ** 0.6 * np.bincount(rows, np.abs(terms), n)
    return entries(across, down) if (missed <= bound).all() else None


def _tree(i: Array, j: Array) -> tuple[Array, list[int], list[int]]:
    """The elimination tree of a symmetric pattern with entries at (i, j).

    Returns the new number of each column, such that a branch is numbered without gaps before its
    root and largest branches last; by new numbers, the parent of each column (n without one), and
    the columns of the branch that it is the root of.
    """
    from scipy.sparse import csr_array

    n = int(i.max(initial=-1)) + 1
    ones = np.ones(len(i), np.int8)
    pattern = csr_array((ones, (np.maximum(i, j), np.minimum(i, j))), shape=(n, n))
    starts, near = pattern.indptr.tolist(), pattern.indices.tolist()
    parent, top = [n] * n, [n] * n
    for k in range(n):
        for below in near[starts[k] : starts[k + 1]]:
            while below < k:
                above, top[below] = top[below], k
                if above == n:
                    parent[below] = k
                below = above
    size = [1] * n
    children: list[list[int]] = [[] for _ in range(n + 1)]
    for k, above in enumerate(parent):
        if above < n:
            size[above] += size[k]
    for k in sorted(range(n), key=size.__getitem__):
        children[parent[k]].append(k)
    found, waiting = [], children[n]
    while waiting:
        found.append(k := waiting.pop())
        waiting.extend(children[k])
    found.reverse()
    number = np.empty(n + 1, np.int64)
    number[[*found, n]] = np.arange(n + 1)
    moved = number[np.array(parent, np.int64)[found]].tolist()
    return number[:n], moved, [size[k] for k in found]


def _ends(parent: Sequence[int], size: Sequence[int]) -> list[int]:
    """Where groups of columns end that are computed at once: small branches, and paths."""
    found, last = [], len(parent) - 1
    while last >= 0:
        found.append(last + 1)
        first = last - size[last] + 1 if size[last] <= BRANCH else last
        while (
            size[last] > BRANCH
            and last - first + 1 < PATH
            and first > 0
            and parent[first - 1] == first
            and size[first - 1] > BRANCH
        ):
            first -= 1
        last = first - 1
    return found[::-1]


class _Fronts:
    """Groups of columns, and the rows below each where the inverse is computed.

    A triangle of a matrix is held by its groups, one after the other, each as the C-order matrix of
    its rows, from its first column on, and its columns.
    """

    def __init__(self, ends: Sequence[int], i: Array, j: Array) -> None:
        n = ends[-1] if ends else 0
        self._starts = np.array([0, *ends])
        count = len(ends)
        self._group = np.repeat(np.arange(count), np.diff(self._starts))
        low, high = np.minimum(i, j), np.maximum(i, j)
        group = self._group[low]
        outside = high >= self._starts[group + 1]
        keys = np.unique(group[outside] * n + high[outside])
        cuts, rows = np.searchsorted(keys, np.arange(count + 1) * n), keys % max(1, n)
        self._below: list[Array] = []
        self._children: list[list[int]] = [[] for _ in ends]
        for k, end in enumerate(ends):
            found = rows[cuts[k] : cuts[k + 1]]
            if self._children[k]:
                parts = [self._below[child] for child in self._children[k]]
                found = np.unique(np.concatenate([found, *parts]))
                found = found[np.searchsorted(found, end) :]
            self._below.append(found)
            if len(found):
                self._children[self._group[found[0]]].append(k)
        self._wide = np.diff(self._starts)
        tall = np.array([len(found) for found in self._below], np.int64)
        self._before = np.cumsum([0, *tall])
        self._offsets = np.cumsum([0, *((self._wide + tall) * self._wide)])
        self._keys = np.concatenate([np.zeros(0, np.int64), *self._below])
        self._keys += n * np.repeat(np.arange(count), tall)
        self._n = n

    @property
    def entries(self) -> int:
        """Numbers that a triangle takes."""
        return int(self._offsets[-1])

    def places(self, i: Array, j: Array) -> Array:
        """Where entries (i, j) with i >= j are held."""
        group = self._group[j]
        first = self._starts[group]
        rank = self._wide[group] - self._before[group]
        rank += np.searchsorted(self._keys, group * self._n + i)
        rank = np.where(i < self._starts[group + 1], i - first, rank)
        found: Array = self._offsets[group] + rank * self._wide[group] + j - first
        return found

    def invert(self, lower: Array, upper: Array) -> None:
        """Replace L and the transpose of U by the triangles of Z and of its transpose.

        With L and U of a group in blocks, own columns J and rows S below, Y = L_SJ L_JJ⁻¹ and
        X = U_JJ⁻¹ U_JS, Z_SJ = -Z_SS Y, Z_JS = -X Z_SS, Z_JJ = U_JJ⁻¹ L_JJ⁻¹ + X Z_SS Y. Z_SS is a
        part of what the parent has.
        """
        invert = lapack(lower.dtype.char)["trtri"]
        known: dict[int, Array] = {}
        for k in range(len(self._below) - 1, -1, -1):
            m, below = int(self._wide[k]), self._below[k]
            held = slice(self._offsets[k], self._offsets[k + 1])
            left, right = lower[held].reshape(-1, m), upper[held].reshape(-1, m)
            own_left = invert(left[:m], lower=1, unitdiag=1)[0]
            own_right = invert(right[:m], lower=1)[0].T
            whole = np.empty((len(left), len(left)), lower.dtype)
            whole[:m, :m] = own_right @ own_left
            if len(below):
                y, x, inner = left[m:] @ own_left, own_right @ right[m:].T, known.pop(k)
                whole[m:, m:] = inner
                whole[:m, m:] = -(x @ inner)
                whole[m:, :m] = -(inner @ y)
                whole[:m, :m] -= x @ whole[m:, :m]
            left[...], right[...] = whole[:, :m], whole[:m].T
            rows = np.concatenate([np.arange(self._starts[k], self._starts[k + 1]), below])
            for child in self._children[k]:
                at = np.searchsorted(rows, self._below[child])
                known[child] = whole[at[:, None], at]
