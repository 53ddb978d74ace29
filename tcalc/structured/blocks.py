"""Hessians over several variables: one matrix of compressed blocks, over a pytree of arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from ..graph import trees
from ..graph.extents import show_shape
from ..support.arrays import Array
from ..support.byte_counts import show_bytes
from ..support.errors import LinAlgError, MemoryLimitError, ShapeError
from .flat_trees import FlatPytree
from .solvers.base import Factored, damping_of, not_an_array, read_only
from .solvers.choose_blocks import factor_blocks, first_block_method
from .solvers.schur import BlockSolver, DenseBlocks, entry_count
from .solvers.subspace import basis
from .tensor import Structured, identity_like

_DENSE_DETERMINANT = 2000


class BlockStructured(FlatPytree):
    """The Hessian over several variables: what ``compile(hessian(f, (U, V)), structured=True)``
    computes.

    Right-hand sides, products, solutions and diagonals are pytrees of arrays (tuples and dicts),
    nested as the variables were given. Indexing gives blocks, ``H[0][1]``. Flat orders are C-order,
    variables in the order given.

    Attributes
    ----------
    shape : tuple of int
        Of the matrix over all variables.
    cores : tuple of ndarray
        Distinct arrays of all blocks; read-only views.
    nbytes : int
        Bytes of the cores.
    """

    __array_ufunc__ = None
    __array__ = __radd__ = __rsub__ = not_an_array

    def __init__(self, template: Any, rows: Sequence[Sequence[Structured]]) -> None:
        super().__init__(template, [r[k].terms.layout.column_shape for k, r in enumerate(rows)])
        self._rows = [list(row) for row in rows]
        self._factors: dict[float, tuple[BlockSolver, str]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return BlockStructured, (self.template, self.rows)

    @property
    def rows(self) -> list[list[Structured]]:
        """The blocks, row by row."""
        return self._rows

    @property
    def shape(self) -> tuple[int, int]:
        return self._ends[-1], self._ends[-1]

    @property
    def ndim(self) -> int:
        return 2

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.result_type(*[block.dtype for block in self._all()])

    @property
    def cores(self) -> tuple[Array, ...]:
        held = {id(c): c for block in self._all() for c in block.terms.cores}
        return tuple(map(read_only, held.values()))

    @property
    def nbytes(self) -> int:
        return sum([core.nbytes for core in self.cores])

    @property
    def limit(self) -> int | None:
        return self.rows[0][0].limit

    def _all(self) -> list[Structured]:
        return [block for row in self.rows for block in row]

    # --- pytrees ----------------------------------------------------------------------------------

    def blocks(self) -> Any:
        """The blocks, nested as the variables, twice: ``blocks()[i][j]``."""
        inner = [trees.unflatten(self.template, iter(row)) for row in self.rows]
        return trees.unflatten(self.template, iter(inner))

    def __getitem__(self, key: Any) -> Any:
        return self.blocks()[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.blocks())

    def __len__(self) -> int:
        return len(self.blocks())

    # --- arithmetic -------------------------------------------------------------------------------

    def _with(self, function: Callable[[int, int], Structured]) -> BlockStructured:
        many = range(len(self.rows))
        return BlockStructured(self.template, [[function(i, j) for j in many] for i in many])

    def __add__(self, other: Any) -> BlockStructured:
        if not isinstance(other, BlockStructured):
            return NotImplemented
        if self._shapes != other._shapes:
            raise ShapeError(
                f"blocks over shapes {', '.join(map(show_shape, self._shapes))} and over "
                f"{', '.join(map(show_shape, other._shapes))} do not add"
            )
        return self._with(lambda i, j: self.rows[i][j] + other.rows[i][j])

    def __sub__(self, other: Any) -> BlockStructured:
        return self + -other if isinstance(other, BlockStructured) else NotImplemented

    def __mul__(self, by: Any) -> BlockStructured:
        if isinstance(by, np.ndarray) and by.ndim == 0:
            by = by[()]
        if not isinstance(by, int | float | np.integer | np.floating):
            return NotImplemented
        return self._with(lambda i, j: self.rows[i][j] * by)

    __rmul__ = __mul__

    def __truediv__(self, by: Any) -> BlockStructured:
        if isinstance(by, int | float | np.integer | np.floating):
            return self * (1 / float(by))
        return NotImplemented

    def __neg__(self) -> BlockStructured:
        return self * -1.0

    @property
    def T(self) -> BlockStructured:
        """Rows and columns exchanged."""
        return self._with(lambda i, j: self.rows[j][i].T)

    def identity(self) -> BlockStructured:
        """The identity of this shape."""

        def block(i: int, j: int) -> Structured:
            held = self.rows[i][j]
            zero = Structured(held.terms.only(()), held.slots, self.limit)
            return identity_like(held) if i == j else zero

        return self._with(block)

    # --- products ---------------------------------------------------------------------------------

    def __matmul__(self, v: Any) -> Any:
        """The product with a pytree of arrays; further axes are more right-hand sides."""
        if isinstance(v, Structured | BlockStructured):
            raise TypeError("compressed tensors multiply nests of arrays; A @ (B @ v) applies two")
        flat, further = self._read(v, "the right-hand side of @", self.dtype)
        return self._nested(self._times(flat), further)

    def _times(self, flat: Array) -> Array:
        count = flat.shape[1]
        parts = [
            flat[start:end].reshape((*shape, count))
            for start, end, shape in zip(self._ends, self._ends[1:], self._shapes, strict=False)
        ]
        found = []
        for row, size in zip(self.rows, self._sizes, strict=True):
            total = np.zeros((size, count), flat.dtype)
            for block, part in zip(row, parts, strict=True):
                if block.terms.layout.terms:
                    total += np.reshape(block @ part, (size, count))
            found.append(total)
        return np.concatenate(found)

    def diagonal(self) -> Any:
        """The diagonal, as a pytree of arrays of the variables' shapes."""
        parts = [row[k].diagonal()[()] for k, row in enumerate(self.rows)]
        return trees.unflatten(self.template, iter(parts))

    def trace(self) -> Any:
        """The sum of the diagonal."""
        return sum([row[k].trace() for k, row in enumerate(self.rows)])

    # --- dense and sparse -------------------------------------------------------------------------

    def todense(self) -> Array:
        """One matrix over all variables, in C-order, variables in the order given."""
        need = prod(self.shape) * self.dtype.itemsize
        if self.limit is not None and need > self.limit:
            raise MemoryLimitError(
                f"the dense matrix of shape {show_shape(self.shape)} takes {show_bytes(need)}, "
                f"{show_bytes(self.limit)} allowed; the cores take {show_bytes(self.nbytes)}"
            )
        return np.block([[block.tomatrix() for block in row] for row in self.rows])

    tomatrix = todense

    def to_scipy(self) -> Any:
        """A scipy.sparse array where the blocks are sparse, otherwise a LinearOperator."""
        import scipy.sparse
        from scipy.sparse.linalg import LinearOperator

        held = sum([entry_count(block.terms) for block in self._all()])
        if 2 * held <= prod(self.shape) and not self._projected():
            rows = [[block.tosparse() for block in row] for row in self.rows]
            return scipy.sparse.csr_array(scipy.sparse.block_array(rows))

        def times(v: Array) -> Array:
            flat = np.reshape(v, (self.shape[0], prod(np.shape(v)[1:])))
            return self._times(flat.astype(self.dtype, copy=False)).reshape(np.shape(v))

        return LinearOperator(
            self.shape, dtype=self.dtype, matvec=times, rmatvec=times, matmat=times, rmatmat=times
        )

    # --- solving ----------------------------------------------------------------------------------

    def _projected(self) -> bool:
        return any(row[k].slots for k, row in enumerate(self.rows))

    def _factored(self, damping: float) -> tuple[BlockSolver, str]:
        found = self._factors.get(damping)
        if found is None:
            rows = [[block.terms for block in row] for row in self.rows]
            for k, row in enumerate(self.rows):
                rows[k][k] = row[k].damped(damping)
            found = self._inside(rows) if self._projected() else factor_blocks(
                rows, self._names, self.limit
            )  # fmt: skip
            self._factors = {damping: found}
        return found

    def _inside(self, rows: Any) -> tuple[BlockSolver, str]:
        """A dense factor in coordinates of the subspace that properties leave."""
        import scipy.sparse

        n = self.shape[0]
        need = 3.0 * n * n * self.dtype.itemsize
        if self.limit is not None and need > self.limit:
            raise MemoryLimitError(
                f"variables with properties are solved densely, which takes {show_bytes(need)}, "
                f"{show_bytes(self.limit)} allowed"
            )
        parts = [
            basis(shape, row[k]._columns())
            for k, (row, shape) in enumerate(zip(self.rows, self._shapes, strict=True))
        ]
        whole = scipy.sparse.block_diag(parts, "csr")
        return DenseBlocks(rows, whole), "inside the variables' properties: dense, in coordinates"

    def factor(self, damping: float = 0) -> BlockFactor:
        """The factors, for solves with many right-hand sides."""
        return BlockFactor(self, damping_of(damping))

    def solve(self, g: Any, damping: float = 0) -> Any:
        """x with H x = g, nested as g, or with (H + damping * identity) x = g.

        Raises as `Structured.solve` does.
        """
        flat, further = self._read(g, "the right-hand side of solve", self.dtype)
        value = damping_of(damping)
        solver, _ = self._factored(value)
        x = solver.solve(flat)
        if not self._projected():
            # One step of refinement: complements may cancel.
            x = x + solver.solve(flat - self._times(x) - value * x)
        return self._nested(x, further)

    def slogdet(self) -> tuple[float, float]:
        """Sign and logarithm of the absolute value of the determinant."""
        try:
            solver, _ = self._factored(0.0)
        except LinAlgError:
            if self._projected() or self.shape[0] > _DENSE_DETERMINANT:
                raise
            with np.errstate(invalid="ignore"):
                sign, log = np.linalg.slogdet(self.todense())
            return float(sign), float(log)
        return solver.slogdet()

    def logdet(self) -> float:
        """The logarithm of the absolute value of the determinant."""
        return self.slogdet()[1]

    def inverse(self) -> BlockStructured:
        """The inverse as blocks.

        They are made when they are asked for: products, solves and the diagonal need none.
        """
        return _FactoredInverse(self, self._factored(0.0))

    def explain(self) -> str:
        """Bytes of the cores and of the dense matrix, the blocks, and the method of `solve`."""
        dense = prod(self.shape) * self.dtype.itemsize
        lines = [
            f"blocks over {', '.join(self._names)}, matrix of shape {show_shape(self.shape)}: "
            f"{show_bytes(self.nbytes)} held, dense {show_bytes(dense)}"
        ]
        for name, row in zip(self._names, self.rows, strict=True):
            for other, block in zip(self._names, row, strict=True):
                count = len(block.terms.layout.terms)
                lines.append(
                    f"  {name}, {other}: shape {show_shape(block.shape)}, "
                    f"{count} term{'s' * (count != 1)}, {show_bytes(block.nbytes)}"
                )
        if found := [text for _, text in self._factors.values()]:
            method = found[0] + " (factored)"
        elif self._projected():
            method = "inside the variables' properties: dense, in coordinates"
        else:
            rows = [[block.terms for block in row] for row in self.rows]
            method = first_block_method(rows, self._names, self.limit)
        return "\n".join([*lines, f"  solve: {method}"])

    def __repr__(self) -> str:
        names = ", ".join(
            f"{name} {show_shape(shape)}"
            for name, shape in zip(self._names, self._shapes, strict=True)
        )
        return f"<BlockStructured over {names}: {self.nbytes} bytes>"


class _FactoredInverse(BlockStructured):
    """The inverse of blocks by their factor."""

    def __init__(self, of: BlockStructured, found: tuple[BlockSolver, str]) -> None:
        held = BlockStructured(of.template, of.rows)
        held._factors[0.0] = found
        self._held, self._solver = held, found[0]
        FlatPytree.__init__(self, of.template, of._shapes)
        self._factors = {}

    @cached_property
    def _rows(self) -> list[list[Structured]]:  # type: ignore[override]
        blocks = self._solver.inverse()
        return [
            [Structured(new.shared(), old.slots, old.limit) for new, old in zip(*pair, strict=True)]
            for pair in zip(blocks, self._held.rows, strict=True)
        ]

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._held.dtype

    @property
    def limit(self) -> int | None:
        return self._held.limit

    def _projected(self) -> bool:
        return self._held._projected()

    def _times(self, flat: Array) -> Array:
        return self._solver.solve(flat)

    def diagonal(self) -> Any:
        """The diagonal, as a pytree of arrays of the variables' shapes."""
        parts = zip(self._solver.diagonal(), self._shapes, strict=True)
        return trees.unflatten(
            self.template, iter([part.reshape(shape)[()] for part, shape in parts])
        )

    def trace(self) -> Any:
        """The sum of the diagonal."""
        return sum([part.sum() for part in self._solver.diagonal()])

    def slogdet(self) -> tuple[float, float]:
        """Sign and logarithm of the absolute value of the determinant."""
        sign, log = self._solver.slogdet()
        return sign, -log

    def __repr__(self) -> str:
        return f"<inverse of {self._held!r}>"


class BlockFactor(Factored):
    """Factored blocks: what `BlockStructured.factor` returns."""

    def __init__(self, held: BlockStructured, damping: float) -> None:
        self._held = BlockStructured(held.template, held.rows)
        self._damping = damping
        self._held._factors.update({damping: held._factored(damping)})
        self.solver = self._held._factors[damping][0]

    def __reduce__(self) -> tuple[Any, ...]:
        return BlockFactor, (self._held, self._damping)

    def solve(self, g: Any) -> Any:
        """x with H x = g, damped as the factor is."""
        return self._held.solve(g, self._damping)

    def __repr__(self) -> str:
        return f"<BlockFactor of {self._held!r}>"
