"""Derivatives over several variables or of several outputs: one matrix of compressed blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from ..graph import trees
from ..graph.extents import show_shape
from ..support import html
from ..support.arrays import Array
from ..support.byte_counts import show_bytes
from ..support.errors import ShapeError
from ..support.namespaces import ArrayNamespace, moved, namespace_of
from .flat_trees import FlatPytree
from .shown import held_bytes
from .solvers.base import not_an_array, read_only
from .solvers.block_rows import entry_count, namespace_of_rows
from .solvers.memory import check_fits
from .tensor import Structured
from .terms.patterns import assembled

Rows = Sequence[Sequence[Structured]]


def _described(block: Structured) -> str:
    count = len(block.terms.layout.terms)
    terms = f"{count} term{'s' * (count != 1)}"
    return f"{show_shape(block.shape)}, {terms}, {show_bytes(block.nbytes)}"


class BlockJacobian:
    """A linear map between pytrees of arrays: what ``compile(jacobian(e, (U, V)),
    structured=True)`` computes.

    It multiplies what is nested as the variables and gives what is nested as the outputs; one
    output, or one variable, is an array. Its transpose ``J.T`` multiplies the other way. Indexing
    gives blocks, nested as the outputs and then as the variables. Flat orders are C-order, outputs
    and variables in the order given.

    Parameters
    ----------
    outputs, variables : str, or nested tuple or dict of str
        Names of rows and columns of blocks.
    rows : sequence of sequences of Structured

    Attributes
    ----------
    shape, ndim : tuple of int, int
        Of the matrix from all variables to all outputs.
    dtype : numpy.dtype
        That of its products.
    cores : tuple of ndarray
        Distinct arrays of all blocks; read-only views.
    nbytes, limit : int
        Bytes of the cores; bytes that a dense array may take.
    """

    __array_ufunc__ = None
    __array__ = __radd__ = __rsub__ = not_an_array

    def __init__(self, outputs: Any, variables: Any, rows: Rows) -> None:
        self._rows = [list(row) for row in rows]
        self._outputs = FlatPytree(outputs, [r[0].terms.layout.row_shape for r in rows])
        self._variables = FlatPytree(variables, [b.terms.layout.column_shape for b in rows[0]])

    def __reduce__(self) -> tuple[Any, ...]:
        return BlockJacobian, (self._outputs.template, self._variables.template, self.rows)

    @property
    def rows(self) -> list[list[Structured]]:
        """The blocks, row by row."""
        return self._rows

    @property
    def shape(self) -> tuple[int, int]:
        return self._outputs.size, self._variables.size

    @property
    def ndim(self) -> int:
        return 2

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.result_type(*[block.dtype for block in self._all()])

    @property
    def cores(self) -> tuple[Array, ...]:
        held = {id(c): c for block in self._all() for c in block.terms.arrays}
        return tuple(map(read_only, held.values()))

    @property
    def nbytes(self) -> int:
        parts = {id(part): part for block in self._all() for part in block.terms.held()}
        return sum([part.nbytes for part in parts.values()])

    @property
    def limit(self) -> int | None:
        return self.rows[0][0].limit

    @property
    def xp(self) -> ArrayNamespace:
        """The array library that the cores are of."""
        return namespace_of_rows([[block.terms for block in row] for row in self.rows])

    def _all(self) -> list[Structured]:
        return [block for row in self.rows for block in row]

    # --- pytrees ----------------------------------------------------------------------------------

    def blocks(self) -> Any:
        """The blocks, nested as the outputs and then as the variables: ``blocks()[i][j]``."""
        inner = [trees.unflatten(self._variables.template, iter(row)) for row in self.rows]
        return trees.unflatten(self._outputs.template, iter(inner))

    def __getitem__(self, key: Any) -> Any:
        return self.blocks()[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.blocks())

    def __len__(self) -> int:
        return len(self.blocks())

    # --- arithmetic -------------------------------------------------------------------------------

    def _made(self, rows: Rows) -> BlockJacobian:
        """Other blocks between the same pytrees."""
        return BlockJacobian(self._outputs.template, self._variables.template, rows)

    def _with(self, function: Callable[[int, int], Structured]) -> Any:
        return self._made(
            [[function(i, j) for j in range(len(row))] for i, row in enumerate(self.rows)]
        )

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, BlockJacobian):
            return NotImplemented
        mine, others = ((m._outputs.shapes, m._variables.shapes) for m in (self, other))
        if mine != others:
            shown = [", ".join(map(show_shape, [*of, *by])) for of, by in (mine, others)]
            raise ShapeError(f"blocks over shapes {shown[0]} and over {shown[1]} do not add")
        return self._with(lambda i, j: self.rows[i][j] + other.rows[i][j])

    def __sub__(self, other: Any) -> Any:
        return self + -other if isinstance(other, BlockJacobian) else NotImplemented

    def __mul__(self, by: Any) -> Any:
        if isinstance(by, np.ndarray) and by.ndim == 0:
            by = by[()]
        if not isinstance(by, int | float | np.integer | np.floating):
            return NotImplemented
        return self._with(lambda i, j: self.rows[i][j] * by)

    __rmul__ = __mul__

    def __truediv__(self, by: Any) -> Any:
        if isinstance(by, int | float | np.integer | np.floating):
            return self._with(lambda i, j: self.rows[i][j] / by)
        return NotImplemented

    def __neg__(self) -> Any:
        return self * -1.0

    def _turned(self) -> list[list[Structured]]:
        return [[block.T for block in column] for column in zip(*self.rows, strict=True)]

    @property
    def T(self) -> Any:
        """Rows and columns exchanged: from outputs to variables."""
        return BlockJacobian(self._variables.template, self._outputs.template, self._turned())

    # --- products ---------------------------------------------------------------------------------

    def __matmul__(self, v: Any) -> Any:
        """The product with a pytree of arrays; further axes are more right-hand sides."""
        if isinstance(v, Structured | BlockJacobian):
            raise TypeError("compressed tensors multiply nests of arrays; A @ (B @ v) applies two")
        flat, further = self._variables.read(v, "the right-hand side of @", self.dtype)
        return self._outputs.nested(self._times(flat), further)

    def _times(self, given: Array) -> Array:
        """The product with flat columns, where these lie."""
        xp, flat = self.xp, moved(given, self.xp)
        parts = self._variables.parts(flat, flat.shape[1:])
        found = []
        for row, size in zip(self.rows, self._outputs.sizes, strict=True):
            total = xp.zeros((size, flat.shape[1]), flat.dtype)
            for block, part in zip(row, parts, strict=True):
                if block.terms.layout.terms:
                    total += xp.reshape(block @ part, total.shape)
            found.append(total)
        whole: Array = moved(xp.concatenate(found), namespace_of(given))
        return whole

    # --- dense and sparse -------------------------------------------------------------------------

    def todense(self) -> Array:
        """One matrix from all variables to all outputs, each in C-order, in the order given."""
        check_fits("matrix", self.shape, self.dtype, self.limit, self.nbytes)
        xp = self.xp
        rows = [[moved(block.tomatrix(), xp) for block in row] for row in self.rows]
        whole: Array = xp.concatenate([xp.concatenate(row, axis=1) for row in rows])
        return whole

    def tomatrix(self) -> Array:
        """As `todense`, which is a matrix already."""
        return self.todense()

    def _projected(self) -> bool:
        return any(block.slots for block in self._all())

    def to_scipy(self) -> Any:
        """A scipy.sparse array where the blocks are sparse, otherwise a LinearOperator."""
        from scipy.sparse.linalg import LinearOperator

        held = sum([entry_count(block.terms.layout) for block in self._all()])
        if 2 * held <= prod(self.shape) and not self._projected():
            rows = [[block.unprojected().on_host() for block in row] for row in self.rows]
            return assembled(rows)

        def product(held: BlockJacobian) -> Callable[[Array], Array]:
            rows, columns = held.shape

            def times(v: Array) -> Array:
                flat = np.reshape(v, (columns, prod(np.shape(v)[1:])))
                found = held._times(flat.astype(held.dtype, copy=False))
                return found.reshape((rows, *np.shape(v)[1:]))

            return times

        times, back = product(self), product(self._adjoint())
        options = {"matvec": times, "rmatvec": back, "matmat": times, "rmatmat": back}
        return LinearOperator(self.shape, dtype=self.dtype, **options)

    def _adjoint(self) -> BlockJacobian:
        """What multiplies as the transpose does."""
        found: BlockJacobian = self.T
        return found

    def explain(self) -> str:
        """Bytes of the cores and of the dense matrix, and the blocks."""
        return "\n".join(self._lines())

    def _over(self) -> str:
        return f"of {', '.join(self._outputs.names)} over {', '.join(self._variables.names)}"

    def title(self) -> str:
        """Names, shape and memory in words."""
        shape = show_shape(self.shape)
        return f"blocks {self._over()}, matrix of shape {shape}: {held_bytes(self)}"

    def _lines(self) -> list[str]:
        lines = [self.title()]
        for name, row in zip(self._outputs.names, self.rows, strict=True):
            for other, block in zip(self._variables.names, row, strict=True):
                lines.append(f"  {name}, {other}: shape {_described(block)}")
        return lines

    def notes(self) -> list[str]:
        """What is said below the blocks."""
        return []

    def _repr_html_(self) -> str:
        """For notebooks: the blocks, outputs down and variables across."""
        names = zip(self._outputs.names, self.rows, strict=True)
        rows = [(name, *map(_described, row)) for name, row in names]
        return html.table(self.title(), ("", *self._variables.names), rows, self.notes())

    def __repr__(self) -> str:
        return (
            f"<BlockJacobian of {self._outputs.described()} over {self._variables.described()}: "
            f"{self.nbytes} bytes>"
        )
