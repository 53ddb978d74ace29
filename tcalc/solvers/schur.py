"""Matrices of blocks over several variables: Schur complements, or one dense matrix.

The variable whose own block solves cheapest is eliminated, the complement in all others is dense.
Cross blocks with few entries, such as those of tables, stay sparse. Matrices are symmetric.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd, prod
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..byte_counts import show_bytes
from ..contract import Array
from ..errors import LinAlgError, MemoryLimitError
from ..terms import Layout, Product, Terms
from .base import Solver, Unsuitable
from .blocks import arrangement
from .choose import factor, ways
from .dense import Dense

#: Share of entries below which a cross block is held sparse.
SPARSE = 0.25

Rows = Sequence[Sequence[Terms]]
Places = Sequence[int]


class BlockSolver(Protocol):
    """A factored matrix of blocks; flat right-hand sides of all variables, one below the other."""

    def solve(self, b: Array) -> Array: ...

    def slogdet(self) -> tuple[float, float]: ...

    def inverse(self) -> list[list[Terms]]: ...


class BlockWay(NamedTuple):
    text: str
    flops: float
    bytes: float
    build: Callable[[Rows], BlockSolver]


def sizes(rows: Rows) -> list[int]:
    return [row[k].layout.size for k, row in enumerate(rows)]


def entries(terms: Terms) -> int:
    return sum([t.entries() for t in terms.layout.terms])


def flat_dense(rows: Rows, places: Places) -> Array:
    """The blocks of some variables as one matrix."""
    counts = sizes(rows)
    return np.block([[rows[i][j].dense().reshape(counts[i], counts[j]) for j in places]
                     for i in places])  # fmt: skip


class DenseBlocks:
    """One dense matrix, possibly in coordinates of a subspace."""

    def __init__(self, rows: Rows, basis: Any = None) -> None:
        self._rows, self._basis = rows, basis
        whole = flat_dense(rows, range(len(rows)))
        if basis is not None:
            whole = np.asarray(basis.T @ (basis.T @ whole.T).T, whole.dtype)
        self._factor = Dense(whole, f"the {len(whole)} x {len(whole)} matrix of all blocks")

    def solve(self, b: Array) -> Array:
        if self._basis is None:
            return self._factor.solve(b)
        found: Array = self._basis @ self._factor.solve(self._basis.T @ b)
        return found

    def slogdet(self) -> tuple[float, float]:
        return self._factor.slogdet()

    def inverse(self) -> list[list[Terms]]:
        whole = self._factor.inverse()
        if self._basis is not None:
            half = self._basis @ whole
            whole = (self._basis @ half.T).T
        return cut(whole, self._rows)


def cut(whole: Array, rows: Rows) -> list[list[Terms]]:
    """A matrix over all variables as blocks of terms."""
    ends = np.cumsum([0, *sizes(rows)])
    found = []
    for i in range(len(rows)):
        row = []
        for j in range(len(rows)):
            part = whole[ends[i] : ends[i + 1], ends[j] : ends[j + 1]]
            layout = rows[i][j].layout
            row.append(single(np.ascontiguousarray(part).reshape(layout.shape), layout.columns))
        found.append(row)
    return found


def single(core: Array, columns: int) -> Terms:
    """A dense array as one term."""
    axes = tuple(range(core.ndim))
    product = Product(((0, axes),), axes, core.shape)
    return Terms(Layout(core.shape, columns, [product]), (core,), (1.0,))


class Independent:
    """Groups of variables that no block couples, each solved alone."""

    def __init__(
        self, rows: Rows, groups: Sequence[Places], build: Callable[[Rows], BlockSolver]
    ) -> None:
        self._rows, self._groups = rows, groups
        self._each = [build([[rows[i][j] for j in group] for i in group]) for group in groups]
        ends = np.cumsum([0, *sizes(rows)])
        self._flat = [
            np.concatenate([np.arange(ends[k], ends[k + 1]) for k in group]) for group in groups
        ]

    def solve(self, b: Array) -> Array:
        x = np.empty(b.shape, b.dtype)
        for flat, solver in zip(self._flat, self._each, strict=True):
            x[flat] = solver.solve(b[flat])
        return x

    def slogdet(self) -> tuple[float, float]:
        found = [solver.slogdet() for solver in self._each]
        return prod([s for s, _ in found]), sum([v for _, v in found])

    def inverse(self) -> list[list[Terms]]:
        found = [
            [Terms(Layout(t.layout.shape, t.layout.columns, []), (), ()) for t in row]
            for row in self._rows
        ]
        for group, solver in zip(self._groups, self._each, strict=True):
            held = solver.inverse()
            for p, i in enumerate(group):
                for q, j in enumerate(group):
                    found[i][j] = held[p][q]
        return found


class Alone:
    """One variable: its own solver."""

    def __init__(self, rows: Rows, limit: int | None) -> None:
        self._shape = rows[0][0].layout.column_shape
        self._solver, self.way = factor(rows[0][0], limit)

    def solve(self, b: Array) -> Array:
        return self._solver.solve(b.reshape((*self._shape, b.shape[1]))).reshape(b.shape)

    def slogdet(self) -> tuple[float, float]:
        return self._solver.slogdet()

    def inverse(self) -> list[list[Terms]]:
        return [[self._solver.inverse()]]


class Schur:
    """One variable eliminated; Y = H_ee⁻¹ H_er, complement H_rr - H_re Y."""

    def __init__(self, rows: Rows, out: int, limit: int | None) -> None:
        self._rows, self._out = rows, out
        self._rest = [k for k in range(len(rows)) if k != out]
        self._dtype = np.result_type(*[t.dtype for row in rows for t in row])
        try:
            self._solver: Solver = factor(rows[out][out], limit)[0]
        except LinAlgError as error:
            raise Unsuitable(str(error)) from None
        self._counts = sizes(rows)
        ends = np.cumsum([0, *self._counts])
        self._mine = slice(ends[out], ends[out + 1])
        self._others = np.concatenate([np.arange(ends[k], ends[k + 1]) for k in self._rest])
        cross = [rows[out][k] for k in self._rest]
        self._y, correction = self._eliminated(cross)
        complement = flat_dense(rows, self._rest) - correction
        n = len(complement)
        self._complement = Dense(
            np.asarray((complement + complement.T) / 2, self._dtype),
            f"the {n} x {n} Schur complement after eliminating variable {out}",
        )

    def _eliminated(self, cross: Sequence[Terms]) -> tuple[Any, Array]:
        """Y, dense or sparse, and H_re Y."""
        import scipy.sparse

        count = self._counts[self._out]
        if all(few(terms) for terms in cross):
            inverse = self._solver.inverse()
            if few(inverse):
                whole = scipy.sparse.hstack([terms.matrix() for terms in cross], "csr")
                left, right = self._blocked(inverse.matrix(), whole)
                y = left @ right
                return y, (right.T @ y).toarray()
        whole = np.hstack([terms.dense().reshape(count, -1) for terms in cross])
        solved = self._inner(whole)
        return solved, whole.T @ solved

    def _blocked(self, inverse: Any, whole: Any) -> tuple[Any, Any]:
        """Both in small dense blocks, where that takes few zeros more: products are faster."""
        extents = [
            arrangement(self._rows[k][k].layout).sizes(self._rows[k][k].layout.column_shape)[1]
            for k in (self._out, *self._rest)
        ]
        a, b = extents[0], gcd(*extents[1:])
        if a * b <= 1 or 0 in whole.shape:
            return inverse, whole
        found = inverse.tobsr((a, a)), whole.tobsr((a, b))
        if found[1].data.size > 2 * whole.nnz or found[0].data.size > 2 * inverse.nnz:
            return inverse, whole
        return found

    def _inner(self, b: Array) -> Array:
        shape = self._rows[self._out][self._out].layout.column_shape
        b = b.astype(self._dtype, copy=False)
        return self._solver.solve(b.reshape((*shape, b.shape[1]))).reshape(b.shape)

    def solve(self, b: Array) -> Array:
        x = np.empty(b.shape, b.dtype)
        rest = self._complement.solve(b[self._others] - self._y.T @ b[self._mine])
        x[self._others] = rest
        x[self._mine] = self._inner(b[self._mine]) - self._y @ rest
        return x

    def slogdet(self) -> tuple[float, float]:
        (sign, log), (more, rest) = self._solver.slogdet(), self._complement.slogdet()
        return sign * more, log + rest

    def inverse(self) -> list[list[Terms]]:
        rows, out = self._rows, self._out
        y = self._y if isinstance(self._y, np.ndarray) else self._y.toarray()
        small = self._complement.inverse()
        mixed = -(y @ small)
        found: list[list[Terms]] = [list(row) for row in rows]
        ends = np.cumsum([0, *[self._counts[k] for k in self._rest]])
        cuts = [slice(ends[k], ends[k + 1]) for k in range(len(self._rest))]
        for p, i in enumerate(self._rest):
            for q, j in enumerate(self._rest):
                held = np.ascontiguousarray(small[cuts[p], cuts[q]])
                found[i][j] = single(
                    held.reshape(rows[i][j].layout.shape), rows[i][j].layout.columns
                )
            block = rows[out][i].layout
            part = np.ascontiguousarray(mixed[:, cuts[p]])
            found[out][i] = single(part.reshape(block.shape), block.columns)
            found[i][out] = found[out][i].transposed()
        shape = rows[out][out].layout.column_shape
        n, r = len(shape), y.shape[1]
        left, right = tuple(range(n)), tuple(range(n, 2 * n))
        factors = ((0, (*left, 2 * n)), (1, (2 * n, 2 * n + 1)), (0, (*right, 2 * n + 1)))
        product = Product(factors, (*left, *right), (*shape, *shape, r, r))
        update = Terms(
            Layout((*shape, *shape), n, [product]), (y.reshape((*shape, r)), small), (1.0,)
        )
        found[out][out] = self._solver.inverse().plus(update)
        return found


def few(terms: Terms) -> bool:
    """Whether a block is better held sparse."""
    return entries(terms) <= SPARSE * prod(terms.layout.shape)


# --- choosing -------------------------------------------------------------------------------------


def coupled(rows: Rows) -> list[list[int]]:
    """Groups of variables that blocks couple."""
    groups: list[list[int]] = []
    for k in range(len(rows)):
        near = [g for g in groups if any(rows[k][j].layout.terms for j in g)]
        groups = [g for g in groups if g not in near]
        groups.append(sorted([k, *(j for g in near for j in g)]))
    return sorted(groups)


def block_ways(rows: Rows, names: Sequence[str], limit: int | None) -> list[BlockWay]:
    """All ways, by predicted operations."""
    groups = coupled(rows)
    if len(groups) > 1:

        def build(part: Rows) -> BlockSolver:
            return factor_blocks(part, names, limit)[0]

        text = f"{len(groups)} groups of variables that no block couples, each alone"
        return [BlockWay(text, 0.0, 0.0, lambda r: Independent(r, groups, build))]
    if len(rows) == 1:
        best = ways(rows[0][0].layout, rows[0][0].dtype.itemsize)[0]
        return [BlockWay(best.text, best.flops, 0.0, lambda r: Alone(r, limit))]
    counts = sizes(rows)
    total = sum(counts)
    itemsize = max([t.dtype.itemsize for row in rows for t in row])
    dense = f"dense: one {total} x {total} matrix, Cholesky (LDL^T where that fails)"
    found = [BlockWay(dense, total**3 / 3, 2.0 * total**2 * itemsize, DenseBlocks)]
    for k, count in enumerate(counts):
        best = ways(rows[k][k].layout, itemsize)[0]
        rest = total - count
        cross = [rows[k][j] for j in range(len(rows)) if j != k]
        held = sum([entries(t) for t in cross]) if all(few(t) for t in cross) else count * rest
        flops = best.flops + 2.0 * held * held / max(1, count) + rest**3 / 3
        size = best.bytes + itemsize * (3.0 * held + 3.0 * rest * rest)
        text = (
            f"Schur complement: {names[k]} eliminated by [{best.text}], {rest} x {rest} dense left"
        )
        found.append(BlockWay(text, flops, size, lambda r, k=k: Schur(r, k, limit)))  # type: ignore[misc]
    return sorted(found, key=lambda way: way.flops)


def factor_blocks(rows: Rows, names: Sequence[str], limit: int | None) -> tuple[BlockSolver, str]:
    """The blocks factored the cheapest way that fits the memory and the numbers."""
    singular: LinAlgError | None = None
    found = block_ways(rows, names, limit)
    for way in found:
        if limit is not None and way.bytes > limit:
            continue
        try:
            return way.build(rows), way.text
        except Unsuitable:
            continue
        except LinAlgError as error:
            singular = error
    if singular is not None:
        raise singular
    n = sum(sizes(rows))
    raise MemoryLimitError(
        f"no structure of these {len(rows)} x {len(rows)} blocks helps to solve: a dense {n} x {n} "
        f"matrix and its factor take {show_bytes(2.0 * n * n * 8)}, {show_bytes(limit or 0)} "
        "allowed; scipy.sparse.linalg.cg(Hs.to_scipy(), g) solves with products alone"
    )


def first_block_way(rows: Rows, names: Sequence[str], limit: int | None) -> str:
    """What `factor_blocks` tries first, in words."""
    for way in block_ways(rows, names, limit):
        if limit is None or way.bytes <= limit:
            return way.text
    return "does not fit the memory; to_scipy() serves iterative solvers"
