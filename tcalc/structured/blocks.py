"""Hessians over several variables: one matrix of compressed blocks, over a pytree of arrays."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ..graph import trees
from ..support import html
from ..support.arrays import Array
from ..support.byte_counts import show_bytes
from ..support.errors import LinAlgError, MemoryLimitError
from ..support.namespaces import ArrayNamespace, moved, namespace_of
from .block_jacobian import BlockJacobian, Rows
from .factor import Factor
from .solvers.base import damping_of, dense_slogdet
from .solvers.choose_blocks import factor_blocks, first_block_method
from .solvers.inverses import InverseSolver
from .solvers.schur import BlockSolver, DenseBlocks
from .solvers.subspace import basis
from .tensor import Structured

_DENSE_DETERMINANT = 2000


class BlockStructured(BlockJacobian):
    """The Hessian over several variables: what ``compile(hessian(f, (U, V)), structured=True)``
    computes, the Jacobian of the gradient.

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

    def __init__(self, template: Any, rows: Rows) -> None:
        super().__init__(template, template, rows)
        self._factors: dict[float, tuple[BlockSolver, str]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return BlockStructured, (self.template, self.rows)

    @property
    def template(self) -> Any:
        """Names of the variables, nested as these."""
        return self._variables.template

    def _made(self, rows: Rows) -> BlockStructured:
        return BlockStructured(self.template, rows)

    @property
    def T(self) -> BlockStructured:
        """Rows and columns exchanged."""
        return self._made(self._turned())

    def _adjoint(self) -> BlockStructured:
        return self  # symmetric

    def identity(self) -> BlockStructured:
        """The identity of this shape."""

        def block(i: int, j: int) -> Structured:
            held = self.rows[i][j]
            zero = Structured(held.terms.only(()), held.slots, self.limit)
            return held.identity() if i == j else zero

        made: BlockStructured = self._with(block)
        return made

    def __add__(self, other: Any) -> Any:
        return super().__add__(other) if isinstance(other, BlockStructured) else NotImplemented

    def diagonal(self) -> Any:
        """The diagonal, as a pytree of arrays of the variables' shapes."""
        parts = [row[k].diagonal()[()] for k, row in enumerate(self.rows)]
        return trees.unflatten(self.template, iter(parts))

    def trace(self) -> Any:
        """The sum of the diagonal."""
        return sum([row[k].trace() for k, row in enumerate(self.rows)])

    # --- solving ----------------------------------------------------------------------------------

    def _factored(self, damping: float) -> tuple[BlockSolver, str]:
        found = self._factors.get(damping)
        if found is None:
            rows = [[block.terms for block in row] for row in self.rows]
            for k, row in enumerate(self.rows):
                rows[k][k] = row[k].damped(damping)
            found = self._inside(rows) if self._projected() else factor_blocks(
                rows, self._variables.names, self.limit
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
            for k, (row, shape) in enumerate(zip(self.rows, self._variables.shapes, strict=True))
        ]
        whole = scipy.sparse.block_diag(parts, "csr")
        return DenseBlocks(rows, whole), "inside the variables' properties: dense, in coordinates"

    def factor(self, damping: float = 0) -> Factor:
        """The factors, for solves with many right-hand sides."""
        return Factor(self, damping_of(damping))

    def with_factors(self, damping: float) -> tuple[BlockStructured, BlockSolver, str]:
        """The same blocks, which keep their factors at a damping, these, and their method."""
        held = BlockStructured(self.template, self.rows)
        found = held._factors[damping] = self._factored(damping)
        return held, *found

    def solve(self, g: Any, damping: float = 0) -> Any:
        """x with H x = g, nested as g, or with (H + damping * identity) x = g.

        A compressed gradient over the same variables is taken as its arrays. Raises as
        `Structured.solve` does.
        """
        if isinstance(g, BlockJacobian) and len(g.rows) == 1:
            blocks = [block.todense() for block in g.rows[0]]
            g = trees.unflatten(self.template, iter(blocks))
        given, further = self._variables.read(g, "the right-hand side of solve", self.dtype)
        value, flat = damping_of(damping), moved(given, self.xp)
        solver, _ = self._factored(value)
        x = solver.solve(flat)
        if not self._projected():
            # One step of refinement: complements may cancel.
            x = x + solver.solve(flat - self._times(x) - value * x)
        return self._variables.nested(moved(x, namespace_of(given)), further)

    def slogdet(self) -> tuple[float, float]:
        """Sign and logarithm of the absolute value of the determinant."""
        try:
            solver, _ = self._factored(0.0)
        except LinAlgError:
            if self._projected() or self.shape[0] > _DENSE_DETERMINANT:
                raise
            return dense_slogdet(self.todense())
        return solver.slogdet()

    def logdet(self) -> float:
        """The logarithm of the absolute value of the determinant."""
        return self.slogdet()[1]

    def inverse(self) -> BlockStructured:
        """The inverse as blocks.

        They are made when they are asked for: products, solves and the diagonal need none.
        """
        return _FactoredInverse(self, self._factored(0.0))

    def _over(self) -> str:
        return f"over {', '.join(self._variables.names)}"

    def explain(self) -> str:
        """Bytes of the cores and of the dense matrix, the blocks, and the method of `solve`."""
        return "\n  ".join(["\n".join(self._lines()), *self.notes()])

    def notes(self) -> list[str]:
        """The method of `solve`."""
        if found := [text for _, text in self._factors.values()]:
            method = found[0] + " (factored)"
        elif self._projected():
            method = "inside the variables' properties: dense, in coordinates"
        else:
            rows = [[block.terms for block in row] for row in self.rows]
            method = first_block_method(rows, self._variables.names, self.limit)
        return [f"solve: {method}"]

    def __repr__(self) -> str:
        return f"<BlockStructured over {self._variables.described()}: {self.nbytes} bytes>"


class _FactoredInverse(BlockStructured):
    """The inverse of blocks by their factor."""

    def __init__(self, of: BlockStructured, found: tuple[BlockSolver, str]) -> None:
        held = BlockStructured(of.template, of.rows)
        held._factors[0.0] = found
        self._held, self._solver = held, found[0]
        self._outputs = self._variables = of._variables
        self._factors = {}
        self._back: Any = InverseSolver(held, held._times, self._solver), InverseSolver.text

    def __reduce__(self) -> tuple[Any, ...]:
        return BlockStructured.inverse, (self._held,)

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

    @property
    def xp(self) -> ArrayNamespace:
        return self._held.xp

    def _times(self, given: Array) -> Array:
        found: Array = moved(self._solver.solve(moved(given, self.xp)), namespace_of(given))
        return found

    def _factored(self, damping: float) -> tuple[BlockSolver, str]:
        found: tuple[BlockSolver, str] = super()._factored(damping) if damping else self._back
        return found

    def inverse(self) -> BlockStructured:
        """What it is the inverse of."""
        return self._held

    def notes(self) -> list[str]:
        """The method of `solve`."""
        return [f"solve: {self._back[1]}"]

    def diagonal(self) -> Any:
        """The diagonal, as a pytree of arrays of the variables' shapes."""
        parts = zip(self._solver.diagonal(), self._variables.shapes, strict=True)
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

    def _repr_html_(self) -> str:
        """For notebooks: without the blocks, which nobody may need."""
        return html.table(repr(self), (), [])
