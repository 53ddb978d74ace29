"""What a variable may be declared to be: one row a property, read by everything.

To add a property, write its row: declarations, checks of data, projections, solves, random samples
and printed self-checks follow from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache, cached_property
from typing import Any

import numpy as np

from ..support import lapack
from ..support.arrays import Array
from ..support.records import record
from ..support.triangles import is_mirrored
from .formulas import Formula
from .subspaces import Slot, Subspace, intersection, projected


@record(frozen=True)
class Property:
    """One property; matrices stand in the last two axes of a variable.

    Attributes
    ----------
    name : str
        The keyword of `tcalc.var`.
    square : bool
        Does it speak of square matrices? Otherwise of single entries.
    implies : tuple of str
        Properties that go with it.
    mirror : int
        1 where A' = A, -1 where A' = -A, 0 where the halves are free of each other.
    free : str
        The relation of row and column where entries may differ from zero (a key of `RELATIONS`);
        empty where all may.
    test : callable or None
        ``test(array)``: what data must fulfil besides lying in the subspace.
    inside : callable or None
        ``inside(array)`` takes random numbers into the set, where that is no subspace.
    step : callable or None
        ``step(direction, array)`` shortens a direction: array + t * direction stays inside for
        small t.
    formula : callable or None
        ``formula(xp, array, n)`` takes an n x n matrix of random numbers above zero into the set,
        where that is no subspace, by functions of an array namespace: for printed self-checks.
    nonnegative, definite : bool
        Is no entry negative? Are the matrices positive definite?
    integral : bool
        Are the entries integers? Then nothing is differentiated by the variable.
    also : tuple of str
        What others call it, for a message that tells the name here.
    """

    name: str
    square: bool = True
    implies: tuple[str, ...] = ()
    mirror: int = 0
    free: str = ""
    test: Callable[[Array], bool] | None = None
    inside: Callable[[Array], Array] | None = None
    step: Callable[[Array, Array], Array] | None = None
    formula: Formula | None = None
    nonnegative: bool = False
    definite: bool = False
    integral: bool = False
    also: tuple[str, ...] = ()

    @property
    def subspace(self) -> Subspace:
        return intersection([self.mirror], [self.free])

    @cached_property
    def tests(self) -> list[Callable[[Array], bool]]:
        """What data must pass, also for what the property implies."""
        found = [test for name in self.implies for test in PROPERTIES[name].tests]
        if self.mirror:
            found.append(lambda a: _mirrored(a, self.mirror))
        if self.free:
            found.append(lambda a: not ((a != 0) & ~self.subspace.mask(a.shape[-1])).any())
        return [*found, self.test] if self.test else found


# --- sets that are no subspaces -------------------------------------------------------------------


def _is_definite(a: Array) -> bool:
    if a.ndim == 2 and len(a) >= lapack.LARGE:
        return lapack.has_factor(a)
    try:
        np.linalg.cholesky(a)
    except np.linalg.LinAlgError:
        return False
    return True


def _gram(a: Array) -> Array:
    n = a.shape[-1]
    found: Array = a @ np.swapaxes(a, -1, -2) / max(n, 1) + np.eye(n)
    return found


def _at_most_unit(direction: Array, a: Array) -> Array:
    return direction / max(1.0, float(np.linalg.norm(direction)))


def _in_proportion(direction: Array, a: Array) -> Array:
    found: Array = np.clip(direction, -1, 1) * a
    return found


INTEGER = Property("integer", square=False, integral=True, also=("int", "index"))

#: The table: properties by name.
PROPERTIES = {
    row.name: row
    for row in (
        Property("symmetric", mirror=1, also=("sym", "hermitian", "self_adjoint")),
        Property(
            "positive_definite", implies=("symmetric",), definite=True, test=_is_definite,
            inside=_gram, step=_at_most_unit,
            formula=lambda xp, a, n: a @ xp.matrix_transpose(a) + n * xp.eye(n),
            also=("pd", "spd", "psd", "posdef", "positive_semidefinite"),
        ),
        Property("diagonal", free="==", also=("diag",)),
        Property("lower", free=">=", also=("tril", "lower_triangular")),
        Property("upper", free="<=", also=("triu", "upper_triangular")),
        Property(
            "nonnegative", square=False, nonnegative=True, test=lambda a: not bool((a < 0).any()),
            inside=lambda a: np.abs(a) + 0.1, step=_in_proportion, also=("nonneg", "positive"),
        ),
        INTEGER,
    )
}  # fmt: skip

#: The properties of a variable of integers, and of one of symmetric matrices.
INTEGERS, SYMMETRIC = (INTEGER.name,), ("symmetric",)


def property_rows(names: Iterable[str]) -> list[Property]:
    """The rows of these properties, in the order of the table."""
    chosen = set(names)
    return [row for name, row in PROPERTIES.items() if name in chosen]


def with_implied(names: Iterable[str]) -> set[str]:
    """The properties, and those that go with them."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += PROPERTIES[name].implies
    return found


def independent(names: Iterable[str]) -> list[Property]:
    """The rows of these properties that are not implied by others of them."""
    found = property_rows(names)
    implied = with_implied([name for row in found for name in row.implies])
    return [row for row in found if row.name not in implied]


@cache
def subspace(names: tuple[str, ...]) -> Subspace:
    """The matrices that derivatives by a variable with these properties are projected onto."""
    return _common(property_rows(names))


def _common(found: Sequence[Property]) -> Subspace:
    return intersection([row.mirror for row in found], [row.free for row in found])


# --- data -----------------------------------------------------------------------------------------


def checked_properties(names: Sequence[str]) -> list[Property]:
    """The properties that data are checked for; a stronger one speaks for what it implies."""
    speaking = independent(names)
    found = [PROPERTIES[name] for name in names]
    return [row for row in found if row in speaking and (row.test or row.subspace)]


def holds(row: Property, a: Array) -> bool:
    """Do data have a property?

    Comparisons with NaN hold nothing against it, but one half of a symmetric matrix must have those
    of the other: only one of them is read.
    """
    with np.errstate(all="ignore"):
        return all(test(a) for test in row.tests)


def is_symmetric_data(matrix: Any) -> bool:
    """The same of a sparse matrix and its symmetry."""
    rows, columns = matrix.shape
    if rows != columns:
        return False
    most = abs(matrix - matrix.T).max() if matrix.nnz else 0.0
    largest = abs(matrix).max() if matrix.nnz else 0.0
    return bool(most <= largest * (1e-8 if matrix.dtype == np.float64 else 1e-4))


def _mirrored(a: Array, sign: int) -> bool:
    if sign > 0 and is_mirrored(a):
        return True
    turned = np.swapaxes(a, -1, -2)
    difference = np.abs(a - turned if sign > 0 else a + turned)
    most = difference.max(initial=0)
    if not np.isnan(most):
        return bool(most <= _tolerance(a))
    alike = np.array_equal(np.isnan(a), np.isnan(turned))
    return alike and not bool((difference > _tolerance(a)).any())


def _tolerance(a: Array) -> float:
    """Rounding that is not held against a matrix: far below what a property means."""
    largest = float(np.abs(a).max(initial=0, where=np.isfinite(a)))
    return largest * (1e-8 if a.dtype == np.float64 else 1e-4)


# --- samples --------------------------------------------------------------------------------------


def sample(numbers: Array, names: Iterable[str]) -> Array:
    """Random numbers moved to where a variable with these properties ranges."""
    chosen = property_rows(names)
    for row in reversed(chosen):  # a Gram matrix of what is nonnegative is nonnegative
        numbers = row.inside(numbers) if row.inside else numbers
    numbers = _projected(numbers, _common(chosen))
    return np.rint(numbers) if any(row.integral for row in chosen) else numbers


def direction(numbers: Array, at: Array, names: Iterable[str]) -> Array:
    """Random numbers as a direction; short lines along it through `at` stay where they start."""
    chosen = property_rows(names)
    numbers = _projected(numbers, _common(chosen))
    for row in chosen:
        numbers = row.step(numbers, at) if row.step else numbers
    return numbers


def _projected(a: Array, onto: Subspace) -> Array:
    return projected(a, Slot(a.ndim - 2, a.ndim - 1, onto)) if onto else a


def sample_formula(names: Iterable[str], n: int) -> Formula:
    """What `sample` does to an n x n matrix of random numbers above zero, but for rounding."""
    chosen = independent(names)

    def formula(xp: Any, numbers: Any) -> Any:
        for row in reversed(chosen):
            numbers = row.formula(xp, numbers, n) if row.formula else numbers
        return _common(chosen).formula(xp, numbers)

    return formula


def slots_of(start: int, wrt: Iterable[Any]) -> list[Slot]:
    """Where axes from `start` on, those of the variables, are projected onto their subspaces."""
    found = []
    for v in wrt:
        start += v.ndim
        if onto := subspace(v.properties):
            found.append(Slot(start - 2, start - 1, onto))
    return found
