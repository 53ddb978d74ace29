"""Matrices of blocks over several variables: Schur complements, or one dense matrix.

Variables whose diagonal blocks are cheap to solve with and that are not coupled to each other are
eliminated; the complement in all others is dense. Off-diagonal blocks with few entries, such as
those of tables, stay sparse. Matrices are symmetric.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import gcd, prod
from typing import Any, Protocol

import numpy as np

from ...support.arrays import Array
from ...support.errors import LinAlgError
from ...support.namespaces import NUMPY, ArrayNamespace, namespace_of
from ...support.records import NamedTuple
from ..terms.numeric_terms import Terms
from ..terms.patterns import assembled
from ..terms.tensor_layout import CoreProduct, TensorLayout
from .base import BlockRows, Unsuitable
from .block_rows import (
    VariableIndices,
    dense_between,
    flat_dense,
    is_sparse,
    namespace_of_rows,
    variable_sizes,
)
from .blocks import arrangement
from .choose import factor
from .dense import greatest
from .factors import factorise
from .memory import check_fits

#: Entries held at once of a product of which only the diagonal is wanted.
DIAGONAL_CHUNK = 1 << 20


class BlockSolver(Protocol):
    """A factored matrix of blocks over several variables, each flat in C-order."""

    def solve(self, b: Array) -> Array:
        """The solution, (total size, k), of right-hand sides b of the same shape."""
        ...

    @property
    def negatives(self) -> float:
        """How many eigenvalues are negative; nan of a matrix that is not symmetric in five digits,
        or where that is not known."""
        ...

    def slogdet(self) -> tuple[float, float]:
        """Sign and logarithm of the absolute value of the determinant."""
        ...

    def inverse(self) -> list[list[Terms]]:
        """The inverse, as blocks of pairs of variables."""
        ...

    def diagonal(self) -> list[Array]:
        """The diagonal of the inverse, flat, one array a variable."""
        ...


MakeBlockSolver = Callable[[BlockRows], BlockSolver]


class BlockSolveMethod(NamedTuple):
    """A method for blocks: its description, predicted cost, and the constructor of its solver."""

    text: str
    flops: float
    bytes: float
    build: MakeBlockSolver


class DenseBlocks:
    """One dense matrix, in coordinates of a subspace where a basis is given."""

    def __init__(self, rows: BlockRows, basis: Any = None) -> None:
        xp = namespace_of_rows(rows)
        whole = flat_dense(rows, range(len(rows)))
        if basis is not None:
            basis = basis_for(basis, xp)
            whole = xp.asarray(basis.T @ (basis.T @ whole.T).T, whole.dtype)
        self._rows, self._basis = rows, basis
        self._factor = factorise(whole, f"the {len(whole)} x {len(whole)} matrix of all blocks")

    def solve(self, b: Array) -> Array:
        if self._basis is None:
            plain: Array = self._factor.solve(b)
            return plain
        found: Array = self._basis @ self._factor.solve(self._basis.T @ b)
        return found

    @property
    def negatives(self) -> float:
        return float(self._factor.negatives)

    def slogdet(self) -> tuple[float, float]:
        sign, log = self._factor.slogdet()
        return sign, log

    def inverse(self) -> list[list[Terms]]:
        whole = self._factor.inverse()
        if self._basis is not None:
            half = self._basis @ whole
            whole = (self._basis @ half.T).T
        return split_blocks(whole, self._rows)

    def diagonal(self) -> list[Array]:
        whole = self._factor.inverse()
        if self._basis is not None:
            whole = (self._basis @ (self._basis @ whole).T).T
        return _cut(whole.diagonal().copy(), variable_sizes(self._rows))


def basis_for(basis: Any, xp: ArrayNamespace) -> Any:
    """A sparse basis for products with arrays of a library: on a device it is dense."""
    return basis if xp is NUMPY else xp.asarray(basis.toarray())


def _cut(flat: Array, counts: Sequence[int]) -> list[Array]:
    """An array over all variables as one of each."""
    ends = np.cumsum([0, *counts]).tolist()
    return [flat[low:high] for low, high in pairwise(ends)]


def split_blocks(whole: Array, rows: BlockRows) -> list[list[Terms]]:
    """A matrix over all variables, cut into the blocks of pairs of variables."""
    ends = np.cumsum([0, *variable_sizes(rows)])
    found = []
    for i in range(len(rows)):
        row = []
        for j in range(len(rows)):
            part = whole[ends[i] : ends[i + 1], ends[j] : ends[j + 1]]
            layout = rows[i][j].layout
            row.append(_dense_block(part, layout))
        found.append(row)
    return found


def dense_term(core: Array, columns: int) -> Terms:
    """A dense array as one term."""
    axes = tuple(range(core.ndim))
    product = CoreProduct(((0, axes),), axes, core.shape)
    return Terms(TensorLayout(core.shape, columns, [product]), (core,), (1.0,))


class Independent:
    """A block diagonal matrix: uncoupled groups of variables, each with its own solver."""

    def __init__(
        self, rows: BlockRows, groups: Sequence[VariableIndices], builds: Sequence[MakeBlockSolver]
    ) -> None:
        self._rows, self._groups = rows, groups
        self._each = [
            build([[rows[i][j] for j in group] for i in group])
            for group, build in zip(groups, builds, strict=True)
        ]
        ends = np.cumsum([0, *variable_sizes(rows)])
        xp = namespace_of_rows(rows)
        self._flat = [
            xp.asarray(np.concatenate([np.arange(ends[k], ends[k + 1]) for k in group]))
            for group in groups
        ]

    def solve(self, b: Array) -> Array:
        x: Array = namespace_of(b).empty(b.shape, b.dtype)
        for flat, solver in zip(self._flat, self._each, strict=True):
            x[flat] = solver.solve(b[flat])
        return x

    @property
    def negatives(self) -> float:
        return sum([solver.negatives for solver in self._each])

    def slogdet(self) -> tuple[float, float]:
        found = [solver.slogdet() for solver in self._each]
        return prod([s for s, _ in found]), sum([v for _, v in found])

    def inverse(self) -> list[list[Terms]]:
        found = [
            [Terms(TensorLayout(t.layout.shape, t.layout.columns, []), (), ()) for t in row]
            for row in self._rows
        ]
        for group, solver in zip(self._groups, self._each, strict=True):
            held = solver.inverse()
            for p, i in enumerate(group):
                for q, j in enumerate(group):
                    found[i][j] = held[p][q]
        return found

    def diagonal(self) -> list[Array]:
        return _in_variable_order(self._groups, [solver.diagonal() for solver in self._each])


def _in_variable_order(
    groups: Sequence[VariableIndices], parts: Sequence[Sequence[Array]]
) -> list[Array]:
    """Arrays of groups of variables in the order of the variables."""
    found = {
        k: part
        for group, held in zip(groups, parts, strict=True)
        for k, part in zip(group, held, strict=True)
    }
    return [found[k] for k in sorted(found)]


class SingleVariable:
    """A single variable, by the solver of its tensor."""

    def __init__(self, rows: BlockRows, limit: int | None) -> None:
        self._shape = rows[0][0].layout.column_shape
        self._solver, self.method = factor(rows[0][0], limit)

    def solve(self, b: Array) -> Array:
        return self._solver.solve(b.reshape((*self._shape, b.shape[1]))).reshape(b.shape)

    @property
    def negatives(self) -> float:
        return self._solver.negatives

    def slogdet(self) -> tuple[float, float]:
        return self._solver.slogdet()

    def inverse(self) -> list[list[Terms]]:
        return [[self._solver.inverse()]]

    def diagonal(self) -> list[Array]:
        return [self._solver.inverse().diagonal().ravel()]


class Schur:
    """Block elimination of groups of variables e: Y = H_ee⁻¹ H_er, complement H_rr - H_re Y."""

    def __init__(
        self,
        rows: BlockRows,
        groups: Sequence[VariableIndices],
        builds: Sequence[MakeBlockSolver],
        names: str,
        limit: int | None,
    ) -> None:
        self._rows, self._counts, self._limit = rows, variable_sizes(rows), limit
        self._gone = [k for group in groups for k in group]
        self._rest = [k for k in range(len(rows)) if k not in self._gone]
        self._dtype = np.result_type(*[t.dtype for row in rows for t in row])
        try:
            self._own = Independent(*_submatrix(rows, groups), builds)
        except LinAlgError as error:
            raise Unsuitable(str(error)) from None
        self._xp = xp = namespace_of_rows(rows)
        ends = np.cumsum([0, *self._counts])
        self._mine, self._others = (
            xp.asarray(np.concatenate([np.arange(ends[k], ends[k + 1]) for k in places]))
            for places in (self._gone, self._rest)
        )
        self._y, correction = self._eliminated()
        before = flat_dense(rows, self._rest)
        complement = before - correction
        n = len(complement)
        self._complement = factorise(
            xp.asarray((complement + complement.T) / 2, self._dtype),
            f"the {n} x {n} Schur complement after eliminating {names}",
            beside=max(greatest(before), greatest(correction)),
        )

    def _eliminated(self) -> tuple[Any, Array]:
        """Y, dense or sparse, and H_re Y."""
        cross = [[self._rows[e][r] for r in self._rest] for e in self._gone]
        if self._xp is NUMPY and all(is_sparse(terms) for row in cross for terms in row):
            inverse = self._own.inverse()
            if all(is_sparse(terms) for row in inverse for terms in row):
                left, right = self._blocked(assembled(inverse), assembled(cross))
                y = left @ right
                return y, (right.T @ y).toarray()
        need = len(self._mine) * len(self._others) * self._dtype.itemsize
        if self._limit is not None and need > self._limit:
            raise Unsuitable("the solutions for other variables do not fit the memory")
        whole = dense_between(self._rows, self._gone, self._rest)
        solved = self._own.solve(whole.astype(self._dtype, copy=False))
        return solved, whole.T @ solved

    def _blocked(self, inverse: Any, whole: Any) -> tuple[Any, Any]:
        """Both in block sparse row format, where few more zeros are held: products are faster."""
        extents = [
            arrangement(row[k].layout).sizes(row[k].layout.column_shape)[1]
            for k, row in enumerate(self._rows)
        ]
        a, b = (gcd(*[extents[k] for k in places]) for places in (self._gone, self._rest))
        if a * b <= 1 or 0 in whole.shape:
            return inverse, whole
        found = inverse.tobsr((a, a)), whole.tobsr((a, b))
        if found[1].data.size > 2 * whole.nnz or found[0].data.size > 2 * inverse.nnz:
            return inverse, whole
        return found

    def solve(self, b: Array) -> Array:
        x: Array = self._xp.empty(b.shape, b.dtype)
        mine = b[self._mine]
        rest = self._complement.solve(b[self._others] - self._y.T @ mine)
        x[self._others] = rest
        x[self._mine] = self._own.solve(mine) - self._y @ rest
        return x

    @property
    def negatives(self) -> float:
        return self._own.negatives + float(self._complement.negatives)

    def slogdet(self) -> tuple[float, float]:
        (sign, log), (more, rest) = self._own.slogdet(), self._complement.slogdet()
        return sign * more, log + rest

    def inverse(self) -> list[list[Terms]]:
        rows = self._rows
        held = sum([t.nbytes() for row in rows for t in row])
        check_fits("block of the inverse", self._y.shape, self._dtype, self._limit, held)
        y = self._y.toarray() if hasattr(self._y, "tocsr") else self._y
        small = self._complement.inverse()
        found: list[list[Terms]] = [list(row) for row in rows]
        ends = np.cumsum([0, *[self._counts[k] for k in self._rest]])
        cuts = [slice(ends[k], ends[k + 1]) for k in range(len(self._rest))]
        heights = np.cumsum([0, *[self._counts[k] for k in self._gone]])
        own = self._own.inverse()
        for p, i in enumerate(self._rest):
            for q, j in enumerate(self._rest):
                found[i][j] = _dense_block(small[cuts[p], cuts[q]], rows[i][j].layout)
        for s, e in enumerate(self._gone):
            part = y[heights[s] : heights[s + 1]]
            for p, i in enumerate(self._rest):
                found[e][i] = _dense_block(-(part @ small[:, cuts[p]]), rows[e][i].layout)
                found[i][e] = found[e][i].transposed()
            for t, f in enumerate(self._gone):
                other = y[heights[t] : heights[t + 1]]
                found[e][f] = own[s][t].plus(_sandwich(part, small, other, rows[e][f].layout))
        return found

    def diagonal(self) -> list[Array]:
        small = self._complement.inverse()
        own = self._xp.concatenate(self._own.diagonal())
        y = self._y.tocsr() if hasattr(self._y, "tocsr") else self._y
        step = max(1, DIAGONAL_CHUNK // max(1, small.shape[0]))
        for low in range(0, len(own), step):
            part = y[low : low + step]
            product = part @ small
            if hasattr(part, "tocsr"):
                own[low : low + step] += np.asarray(part.multiply(product).sum(axis=1)).ravel()
            else:
                own[low : low + step] += self._xp.einsum("ij,ij->i", product, part)
        ends = ([self._counts[k] for k in places] for places in (self._gone, self._rest))
        parts = [
            _cut(values, counts)
            for values, counts in zip((own, small.diagonal().copy()), ends, strict=True)
        ]
        return _in_variable_order([self._gone, self._rest], parts)


def _submatrix(
    rows: BlockRows, groups: Sequence[VariableIndices]
) -> tuple[BlockRows, list[list[int]]]:
    """The blocks among the variables of all groups, and the groups renumbered in them."""
    places = [k for group in groups for k in group]
    inside = [[rows[i][j] for j in places] for i in places]
    return inside, [[places.index(k) for k in group] for group in groups]


def _dense_block(part: Array, layout: TensorLayout) -> Terms:
    held = namespace_of(part).ascontiguousarray(part)
    return dense_term(held.reshape(layout.shape), layout.columns)


def _sandwich(left: Array, small: Array, right: Array, layout: TensorLayout) -> Terms:
    """The product left @ small @ right.T as one term."""
    r = len(small)
    rows, columns = tuple(range(layout.rows)), tuple(range(layout.rows, len(layout.shape)))
    p, q = len(layout.shape), len(layout.shape) + 1
    product = CoreProduct(
        ((0, (*rows, p)), (1, (p, q)), (2, (*columns, q))), (*rows, *columns),
        (*layout.shape, r, r),
    )  # fmt: skip
    cores = left.reshape((*layout.row_shape, r)), small, right.reshape((*layout.column_shape, r))
    return Terms(TensorLayout(layout.shape, layout.columns, [product]), cores, (1.0,)).shared()
