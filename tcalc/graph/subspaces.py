"""Subspaces of square matrices, and the projection onto them.

Two facts tell a subspace: what an entry has to do with the one across the diagonal, and where
entries are free. Expressions, arrays, printed source and bases are projected by these two facts.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..support.arrays import Array
from ..support.namespaces import NUMPY, namespace_of
from ..support.records import NamedTuple
from .formulas import Formula


class Relation(NamedTuple):
    """A comparison of row and column.

    Attributes
    ----------
    holds : callable
        ``holds(row, column)``, of indices that are integers, arrays or expressions.
    turned : str
        The relation of the transposed matrix.
    kept : callable
        ``kept(xp, matrix)`` is the matrix with zeros where the relation does not hold.
    """

    holds: Callable[[Any, Any], Any]
    turned: str
    kept: Formula


RELATIONS = {
    ">=": Relation(operator.ge, "<=", lambda xp, a: xp.tril(a)),
    "<=": Relation(operator.le, ">=", lambda xp, a: xp.triu(a)),
    "==": Relation(operator.eq, "==", lambda xp, a: xp.diag(xp.diag(a))),
    ">": Relation(operator.gt, "<", lambda xp, a: xp.tril(a, -1)),
    "<": Relation(operator.lt, ">", lambda xp, a: xp.triu(a, 1)),
    "!=": Relation(operator.ne, "!=", lambda xp, a: a - xp.diag(xp.diag(a))),
}


class Subspace(NamedTuple):
    """Matrices with A' = mirror * A (0: any A) that are zero but where all of `free` hold."""

    mirror: int = 0
    free: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Is it less than all matrices?"""
        return self.mirror != 0 or bool(self.free)

    @property
    def transposed(self) -> bool:
        """Is every matrix in it its own transpose?"""
        return self.mirror > 0 or "==" in self.free

    @property
    def lower(self) -> bool:
        """Is it declared that nothing stands above the diagonal?"""
        return ">=" in self.free

    def mask(self, n: int) -> Array:
        """Which entries of an n x n matrix are free."""
        held, index = np.ones((n, n), bool), np.arange(n)
        for name in self.free:
            held &= RELATIONS[name].holds(index[:, None], index)
        return held

    def formula(self, xp: Any, matrix: Any) -> Any:
        """The projection of a matrix, by functions of an array namespace."""
        if self.mirror:
            turned = xp.matrix_transpose(matrix)
            matrix = (matrix + turned if self.mirror > 0 else matrix - turned) / 2
        for name in self.free:
            matrix = RELATIONS[name].kept(xp, matrix)
        return matrix


def intersection(mirrors: Iterable[int], free: Iterable[str]) -> Subspace:
    """The matrices that are in several subspaces, in a form whose steps of projection commute."""
    signs, relations = set(mirrors) - {0}, set(free) - {""}
    if signs:
        relations |= {RELATIONS[name].turned for name in relations}
    if len(signs) > 1:
        relations |= {"<", ">"}  # A' = A = -A: no entry is free
    chosen = tuple([name for name in RELATIONS if name in relations])
    return Subspace(max(signs, default=0), chosen)


class Slot(NamedTuple):
    """Two axes of a tensor, and the subspace that matrices along them are in."""

    i: int
    j: int
    subspace: Subspace


def projected(value: Array, slot: Slot, owned: bool = False) -> Array:
    """An array of floats projected along a slot; one that is `owned` may be overwritten."""
    i, j, subspace = slot
    xp = namespace_of(value)
    if subspace.mirror:
        with np.errstate(all="ignore"):
            turned = value.swapaxes(i, j)
            value, owned = value + turned if subspace.mirror > 0 else value - turned, True
            value *= 0.5
    if subspace.free:
        n = value.shape[i]
        zero = ~subspace.mask(n)
        spread = [n if axis in (i, j) else 1 for axis in range(value.ndim)]
        zero = (zero if i < j else zero.T).reshape(spread)
        if xp is not NUMPY:
            found: Array = xp.where(xp.asarray(zero), 0, value)
            return found
        value = value if owned else value.copy()
        np.copyto(value, 0, where=zero)
    return value
