"""Compressed tensors of numbers: products, solves, determinants and inverses without the dense one.

`terms` computes with the numbers, `solvers` hold the methods of solving.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ..graph.extents import show_shape
from ..graph.subspaces import Slot, projected
from ..support.arrays import Array
from ..support.errors import LinAlgError, ShapeError
from ..support.machine import machine_memory
from ..support.namespaces import moved, namespace_of
from .factor import Factor
from .shown import cores_table, held_bytes
from .solvers.base import Solver, damping_of, dense_slogdet, not_an_array, read_only, real_array
from .solvers.blocks import arrangement, assemble_blocks
from .solvers.choose import factor, first_method, term_lines
from .solvers.memory import check_fits
from .solvers.subspace import factor_inside, projected_terms
from .terms.numeric_terms import Terms, identity_terms
from .terms.patterns import assembled

_DENSE_DETERMINANT = 2000

#: Solves without factors, given a right-hand side; None where it does not suit the numbers.
DirectSolve = Callable[[Terms, Array], Array | None]


class Structured:
    """A tensor of numbers kept as cores and unit tensors; the dense tensor is never held.

    `+`, `-` and multiplication by numbers give compressed tensors again. `@` sums over the last
    slot. Square tensors, such as Hessians, solve.

    Attributes
    ----------
    shape, ndim, dtype, nbytes : tuple of int, int, numpy.dtype, int
        As an array's, but that the bytes are those of the cores.
    cores : tuple of ndarray
        Distinct arrays, integer tables included; read-only views, possibly of what was given.
        Those of ``backend="cupy"`` lie on the device, as what is computed of them alone. Factors,
        which the inverse of a sparse matrix is held by, are none.
    """

    __array_ufunc__ = None
    __array__ = __radd__ = __rsub__ = not_an_array
    __slots__ = ("_direct", "_factors", "_limit", "_slots", "_terms", "shape")

    def __init__(
        self,
        terms: Terms,
        slots: Sequence[Slot] = (),
        limit: int | None = None,
        direct: DirectSolve | None = None,
    ) -> None:
        self._terms, self._slots, self._limit = terms, tuple(slots), limit
        self._direct = None if self._slots else direct
        self.shape = terms.layout.shape
        self._factors: dict[float, tuple[Solver, str]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return Structured, (self._terms, self._slots, self._limit)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._terms.dtype

    @property
    def cores(self) -> tuple[Array, ...]:
        return tuple(map(read_only, self._terms.arrays))

    @property
    def nbytes(self) -> int:
        return self._terms.nbytes()

    @property
    def terms(self) -> Terms:
        """The sum of products behind this tensor, before projection."""
        return self._terms

    @property
    def slots(self) -> tuple[Slot, ...]:
        """Where it is projected onto properties of variables."""
        return self._slots

    @property
    def limit(self) -> int | None:
        """Bytes that a dense array may take."""
        return machine_memory() if self._limit is None else self._limit

    # --- arithmetic -------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Structured:
        if not isinstance(other, Structured):
            return not_an_array(self) if isinstance(other, np.ndarray) else NotImplemented
        a, b = self._terms.layout, other._terms.layout
        if (a.shape, a.columns) != (b.shape, b.columns):
            raise ShapeError(
                f"compressed tensors of shapes {show_shape(a.shape)} and {show_shape(b.shape)} "
                "do not add"
            )
        if self._slots == other._slots:
            return Structured(self._terms.plus(other._terms), self._slots, self._limit)
        return Structured(self.unprojected().plus(other.unprojected()), (), self._limit)

    def __sub__(self, other: Any) -> Structured:
        return self + -other if isinstance(other, Structured | np.ndarray) else NotImplemented

    def __mul__(self, by: Any) -> Structured:
        by = by[()] if isinstance(by, np.ndarray) and by.ndim == 0 else by
        if not isinstance(by, int | float | np.integer | np.floating):
            return NotImplemented
        return Structured(self._terms.scaled(float(by)), self._slots, self._limit)

    __rmul__ = __mul__

    def __truediv__(self, by: Any) -> Structured:
        if isinstance(by, int | float | np.integer | np.floating):
            return Structured(self._terms.divided(float(by)), self._slots, self._limit)
        return NotImplemented

    def __neg__(self) -> Structured:
        return self * -1.0

    @property
    def T(self) -> Structured:
        """Rows and columns exchanged."""
        layout = self._terms.layout

        def moved(axis: int) -> int:
            return axis + layout.columns if axis < layout.rows else axis - layout.rows

        slots = sorted([Slot(moved(s.i), moved(s.j), s.subspace) for s in self._slots])
        return Structured(self._terms.transposed(), slots, self._limit)

    def unprojected(self) -> Terms:
        """Terms that are this tensor, its projections written out."""
        found = self._terms
        for slot in self._slots:
            found = projected_terms(found, slot)
        return found

    # --- products ---------------------------------------------------------------------------------

    def __matmul__(self, v: Any) -> Any:
        """The product over the last slot; further axes of v are more right-hand sides."""
        if isinstance(v, Structured):
            raise TypeError(
                "compressed tensors multiply arrays; A @ (B @ v) applies two, todense() densifies"
            )
        given, layout = real_array(v, "the right-hand side of @"), self._terms.layout
        rhs = moved(given, self._terms.xp)
        if rhs.shape[: layout.columns] != layout.column_shape:
            raise ShapeError(
                f"a tensor of shape {show_shape(self.shape)} times shape {show_shape(rhs.shape)}: "
                f"expected {show_shape(layout.column_shape)}, and any further axes"
            )
        for slot in self._columns():
            rhs = projected(rhs, slot)
        result = self._terms.times(rhs)
        for slot in self._slots:
            if slot.j < layout.rows:
                result = projected(result, slot)
        return moved(result, namespace_of(given))[()]

    def _columns(self) -> list[Slot]:
        rows = self._terms.layout.rows
        return [Slot(s.i - rows, s.j - rows, s.subspace) for s in self._slots if s.i >= rows]

    def diagonal(self) -> Array:
        """Entries whose row and column agree, in the shape of a row."""
        self._square("diagonal")
        return self.unprojected().diagonal()

    def trace(self) -> Any:
        """The sum of the diagonal."""
        return self.diagonal().sum()

    # --- dense and sparse -------------------------------------------------------------------------

    def todense(self) -> Array:
        """The whole tensor as one array."""
        self._check_fits(self.shape)
        whole = self._terms.dense()
        for slot in self._slots:
            whole = projected(whole, slot)
        return whole

    def _check_fits(self, shape: tuple[int, ...]) -> None:
        check_fits("tensor", shape, self.dtype, self.limit, self.nbytes)

    def __float__(self) -> float:
        """The entry of a tensor without axes."""
        return float(self.todense())

    def tomatrix(self) -> Array:
        """The dense tensor as a matrix of rows and columns, in C-order."""
        layout = self._terms.layout
        return self.todense().reshape(prod(layout.row_shape), prod(layout.column_shape))

    def to_scipy(self) -> Any:
        """A scipy.sparse array where the terms are sparse, otherwise a LinearOperator.

        Rows and columns are flat, in C-order.
        """
        layout, whole = self._terms.layout, prod(self.shape)
        if not self._slots and 0 < whole >= 2 * sum([t.entries() for t in layout.terms]):
            return self.tosparse()
        return self.operator()

    def tosparse(self) -> Any:
        """A scipy.sparse array, whatever share of it is zero."""
        if self._terms.is_factored:
            self._check_fits(self.shape)
        return assembled([[self.unprojected().on_host()]])

    def operator(self) -> Any:
        """A scipy.sparse.linalg.LinearOperator over flat vectors."""
        from scipy.sparse.linalg import LinearOperator

        layout, transposed = self._terms.layout, self.T
        rows, columns = prod(layout.row_shape), prod(layout.column_shape)

        def times(v: Array) -> Array:
            held = np.reshape(v, (*layout.column_shape, *np.shape(v)[1:]))
            return np.reshape(self @ held, (rows, *np.shape(v)[1:]))

        def back(v: Array) -> Array:
            held = np.reshape(v, (*layout.row_shape, *np.shape(v)[1:]))
            return np.reshape(transposed @ held, (columns, *np.shape(v)[1:]))

        options = {"matvec": times, "rmatvec": back, "matmat": times, "rmatmat": back}
        return LinearOperator((rows, columns), dtype=self.dtype, **options)

    def blocks(self) -> Array:
        """The blocks of a tensor that is block diagonal over some axes, those axes first.

        Without such axes the one block is the dense tensor.
        """
        self._square("blocks")
        terms = self.unprojected()
        found, shape = arrangement(terms.layout), terms.layout.column_shape
        tied = terms.layout.tied
        full = tuple([shape[k] for k in (*tied, *found.inner, *found.inner)])
        self._check_fits(full)
        held = assemble_blocks(terms, found)
        spread = [slice(None) if k in found.carried else None for k in tied]
        whole: Array = terms.xp.broadcast_to(held[(*spread, ...)], full)
        return whole.copy()

    # --- solving ----------------------------------------------------------------------------------

    def _square(self, what: str) -> None:
        if not self._terms.layout.square:
            layout = self._terms.layout
            raise ShapeError(
                f"{what} is of square tensors: rows have shape {show_shape(layout.row_shape)}, "
                f"columns {show_shape(layout.column_shape)}"
            )

    def identity(self) -> Structured:
        """The identity of this shape, inside the subspaces of its slots."""
        self._square("identity_like")
        held = identity_terms(self._terms.layout.column_shape)
        return Structured(held, self._slots, self._limit)

    def factor(self, damping: float = 0) -> Factor:
        """The factors, for solves with many right-hand sides."""
        self._square("factor")
        return Factor(self, damping_of(damping))

    def with_factors(self, damping: float) -> tuple[Structured, Solver, str]:
        """The same tensor, which keeps its factors at a damping, these, and their method."""
        held = Structured(self._terms, self._slots, self._limit)
        found = held._factors[damping] = self._factored(damping)
        return held, *found

    def _factored(self, damping: float) -> tuple[Solver, str]:
        found = self._factors.get(damping)
        if found is None:
            terms = self.damped(damping)
            if self._slots:
                found = factor_inside(terms, self._columns(), self.limit)
            else:
                solver, method = factor(terms, self.limit)
                found = solver, method.text
            self._factors = {damping: found}
        return found

    def damped(self, damping: float) -> Terms:
        """Terms with a multiple of the identity."""
        if not damping:
            return self._terms
        return self._terms.plus(identity_terms(self._terms.layout.column_shape).scaled(damping))

    def solve(self, g: Any, damping: float = 0) -> Array:
        """x with H x = g, or with (H + damping * identity) x = g.

        Parameters
        ----------
        g : array or Structured
            Of the row shape; further axes are more right-hand sides.
        damping : float

        Raises
        ------
        ShapeError
            For a tensor that is not square, or a right-hand side of another shape.
        LinAlgError
            If the matrix is singular to working precision.
        MemoryLimitError
            If no structure helps and a dense matrix does not fit.
        """
        self._square("solve")
        g = g.todense() if isinstance(g, Structured) else g
        given, layout = real_array(g, "the right-hand side of solve"), self._terms.layout
        rhs = moved(given, self._terms.xp)
        if rhs.shape[: layout.rows] != layout.row_shape:
            raise ShapeError(
                f"solve with a tensor of shape {show_shape(self.shape)}: the right-hand side has "
                f"shape {show_shape(rhs.shape)}, expected {show_shape(layout.row_shape)}, and any "
                "further axes"
            )
        if self._direct is not None and not damping:
            direct, self._direct = self._direct, None  # once: factors are for who solves again
            if not self._factors and (found := direct(self._terms, rhs)) is not None:
                return found
        further = rhs.shape[layout.rows :]
        solver, _ = self._factored(damping_of(damping))
        for slot in self._columns():
            rhs = projected(rhs, slot)
        flat = rhs.reshape((*layout.row_shape, prod(further))).astype(self.dtype, copy=False)
        found = solver.solve(flat).reshape((*layout.column_shape, *further))
        result: Array = moved(found, namespace_of(given))[()]
        return result

    def slogdet(self) -> tuple[float, float]:
        """Sign and logarithm of the absolute value of the determinant."""
        self._square("slogdet")
        try:
            solver, _ = self._factored(0.0)
        except LinAlgError:
            if self._slots or self._terms.layout.size > _DENSE_DETERMINANT:
                raise
            return dense_slogdet(self.tomatrix())
        return solver.slogdet()

    def logdet(self) -> float:
        """The logarithm of the absolute value of the determinant."""
        return self.slogdet()[1]

    def inverse(self) -> Structured:
        """The inverse, compressed as the structure allows.

        That of a sparse matrix is held by its factors: products solve with them, and its diagonal
        is computed from them. Only `todense` makes it a dense array.
        """
        self._square("inverse")
        solver, _ = self._factored(0.0)
        return Structured(solver.inverse().shared(), self._slots, self._limit)

    def explain(self) -> str:
        """Bytes of the cores and of the dense tensor, the terms, and the method of `solve`."""
        return "\n  ".join([self.title(), *self.notes()])

    def title(self) -> str:
        """The line above the terms: shape, dtype, bytes."""
        return (
            f"compressed tensor of shape {show_shape(self.shape)}, {self.dtype}: {held_bytes(self)}"
        )

    def notes(self) -> list[str]:
        """The terms, and the method of `solve`."""
        square = self._terms.layout.square
        return [*term_lines(self._terms), *([f"solve: {self._method()}"] if square else [])]

    def _method(self) -> str:
        for _, text in self._factors.values():
            return text + " (factored)"
        if self._slots:
            return "inside the subspace of the variable's properties"
        return first_method(self._terms, self.limit)

    def __repr__(self) -> str:
        cores = ", ".join(show_shape(c.shape) for c in self._terms.arrays)
        held = f"{self.dtype}: cores {cores or 'none'}, {self.nbytes} bytes"
        return f"<Structured {show_shape(self.shape)} {held}>"

    _repr_html_ = cores_table
