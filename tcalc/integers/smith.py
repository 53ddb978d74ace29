"""Integer solutions of linear equations by the Smith normal form.

The notation is that of Urban and van der Smagt (2017, section 4.1): S = U A V with unimodular U and
V; the last rows of U are the cokernel, the last columns of V the kernel, V S† U the pseudo-inverse.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import combinations, islice
from operator import index

from ..support.errors import ShapeError
from ..support.limits import spend
from ..support.records import record
from .affine import Affine, Congruence, Constraint, Guard, Quotient

Vector = tuple[int, ...]
Matrix = tuple[Vector, ...]

#: Matrices of which the normal form is kept.
KEPT = 1024
#: Subsets of the unknowns that are tried as free labels of a solution.
MAX_CHOICES = 500


@record(frozen=True)
class SmithForm:
    """S = U A V of an N×M matrix A.

    Attributes
    ----------
    invariants : tuple of int
        The nonzero diagonal entries of S: positive, each a divisor of the next.
    left, left_inverse : N×N matrix
        U and its inverse, as tuples of rows.
    right, right_inverse : M×M matrix
        V and its inverse.
    """

    invariants: Vector
    left: Matrix
    right: Matrix
    left_inverse: Matrix
    right_inverse: Matrix

    @property
    def rank(self) -> int:
        return len(self.invariants)

    @property
    def kernel(self) -> Matrix:
        """A basis of the integer z with A z = 0, one vector each."""
        return _transposed_rows(self.right)[self.rank :]

    @property
    def cokernel(self) -> Matrix:
        """A basis of the integer c with c A = 0: A x = b needs c b = 0 (equation 16)."""
        return self.left[self.rank :]

    @property
    def pseudo_inverse(self) -> tuple[Matrix, int]:
        """P and d with A (P/d) A = A (equation 18); d is the largest invariant factor."""
        d = self.invariants[-1] if self.invariants else 1
        scaled = [
            [d // a * u for u in row] for a, row in zip(self.invariants, self.left, strict=False)
        ]
        columns = _transposed_rows(scaled) if scaled else ((),) * len(self.left)
        return tuple(tuple(_dot(v[: self.rank], c) for c in columns) for v in self.right), d


def smith_normal_form(matrix: Sequence[Sequence[int]], columns: int | None = None) -> SmithForm:
    """The Smith normal form with its transformations.

    Parameters
    ----------
    matrix : N×M integers, as a sequence of rows
    columns : int, optional
        M, where there may be no rows to tell.

    Raises
    ------
    ShapeError
        If rows differ in length.

    References
    ----------
    Smith (1861), On systems of linear indeterminate equations and congruences; Cohen (1993), A
    Course in Computational Algebraic Number Theory, algorithm 2.4.14. The entry of least size is
    the pivot, which keeps intermediate numbers small.

    Examples
    --------
    >>> smith_normal_form([[2, 4], [6, 8]]).invariants
    (2, 4)
    """
    rows = tuple([tuple([index(a) for a in row]) for row in matrix])
    width = columns if columns is not None else len(rows[0]) if rows else 0
    if any(len(row) != width for row in rows):
        raise ShapeError(f"rows of {sorted({len(row) for row in rows})} entries, {width} expected")
    return _smith(rows, width)


@lru_cache(KEPT)
def _smith(rows: Matrix, width: int) -> SmithForm:
    """That of rows of this many entries; equations of one expression are often the same."""
    s = [list(row) for row in rows]
    work = _Reduction(s, _identity(len(s)), _identity(len(s)), _identity(width), _identity(width))
    rank = 0
    while rank < min(len(s), width) and work.bring_pivot(rank):
        if work.clear(rank):
            work.make_positive(rank)
            rank += 1
    return SmithForm(
        tuple(s[t][t] for t in range(rank)), _frozen(work.u), _transposed_rows(work.vt),
        _transposed_rows(work.uit), _frozen(work.vi),
    )  # fmt: skip


@record()
class _Reduction:
    """S = U A V under elementary operations; U⁻¹ and V are kept transposed: all work is on rows."""

    s: list[list[int]]
    u: list[list[int]]
    uit: list[list[int]]
    vt: list[list[int]]
    vi: list[list[int]]

    def bring_pivot(self, t: int) -> bool:
        """Move the smallest entry of what is left to (t, t); False if all is zero."""
        entries = [
            (abs(a), i, j)
            for i, row in enumerate(self.s[t:], t)
            for j, a in enumerate(row[t:], t)
            if a
        ]
        if not entries:
            return False
        _, i, j = min(entries)
        for rows in (self.s, self.u, self.uit):
            rows[t], rows[i] = rows[i], rows[t]
        for rows in (self.vt, self.vi):
            rows[t], rows[j] = rows[j], rows[t]
        for row in self.s:
            row[t], row[j] = row[j], row[t]
        return True

    def clear(self, t: int) -> bool:
        """Reduce by the pivot; True once it is alone and divides what is left."""
        s, pivot = self.s, self.s[t][t]
        for i in range(t + 1, len(s)):
            self.add_row(i, t, -(s[i][t] // pivot))
        for j in range(t + 1, len(self.vt)):
            self.add_column(j, t, -(s[t][j] // pivot))
        if any(row[t] for row in s[t + 1 :]) or any(s[t][t + 1 :]):
            return False
        for i in range(t + 1, len(s)):
            if any(a % pivot for a in s[i]):
                self.add_row(t, i, 1)
                for j in range(t + 1, len(self.vt)):
                    self.add_column(j, t, -(s[t][j] // pivot))
                return False
        return True

    def add_row(self, i: int, j: int, factor: int) -> None:
        spend("steps", len(self.s) + len(self.vt))
        _add_multiple(self.s, i, j, factor)
        _add_multiple(self.u, i, j, factor)
        _add_multiple(self.uit, j, i, -factor)

    def add_column(self, i: int, j: int, factor: int) -> None:
        spend("steps", len(self.s) + len(self.vt))
        for row in self.s:
            row[i] += factor * row[j]
        _add_multiple(self.vt, i, j, factor)
        _add_multiple(self.vi, j, i, -factor)

    def make_positive(self, t: int) -> None:
        if self.s[t][t] < 0:
            for rows in (self.s, self.u, self.uit):
                rows[t] = [-a for a in rows[t]]


def _identity(size: int) -> list[list[int]]:
    return [[int(i == j) for j in range(size)] for i in range(size)]


def _add_multiple(rows: list[list[int]], i: int, j: int, factor: int) -> None:
    if factor:
        rows[i] = [a + factor * b for a, b in zip(rows[i], rows[j], strict=True)]


def _frozen(rows: Iterable[Iterable[int]]) -> Matrix:
    return tuple(map(tuple, rows))


def _transposed_rows(rows: Sequence[Sequence[int]]) -> Matrix:
    return tuple(zip(*rows, strict=True))


def _dot(a: Iterable[int], b: Iterable[int]) -> int:
    return sum(x * y for x, y in zip(a, b, strict=True))


@record(frozen=True)
class Equations:
    """All integer solutions of linear equations.

    Attributes
    ----------
    values : tuple of (unknown, Quotient)
        In the other names and `labels`. Divisions are exact where the guards hold.
    labels : tuple of str
        Free integers, one per kernel vector. Where that is possible they are unknowns themselves,
        late ones first, and keep their names.
    guards : tuple of Guard
        What the other names must satisfy for a solution to exist (equations 16 and 17).
    """

    values: tuple[tuple[str, Quotient], ...]
    labels: tuple[str, ...]
    guards: tuple[Guard, ...]


def solve_equations(
    forms: Sequence[Affine], unknowns: Sequence[str], taken: Iterable[str] = ()
) -> Equations:
    """The integer values of `unknowns` at which all forms are zero.

    Parameters
    ----------
    forms : sequence of Affine
        In the unknowns and any other names.
    unknowns : sequence of str
    taken : iterable of str
        Names that new labels must not have, besides those of `forms` and `unknowns`.

    Examples
    --------
    >>> found = solve_equations([Affine((("i", 2), ("k", 4), ("j", -1)))], ["i", "k"])
    >>> [f"{name} = {value}" for name, value in found.values], *map(str, found.guards)
    (['i = (j-4*k)/2', 'k = k'], 'j % 2 == 0')
    """
    smith = smith_normal_form(
        [[form.coefficient(name) for name in unknowns] for form in forms], len(unknowns)
    )
    right = [-form.without(unknowns) for form in forms]
    transformed = [_linear_combination(row, right) for row in smith.left]  # U b
    divisible = [Congruence(b, a) for b, a in zip(transformed, smith.invariants, strict=False)]
    zero = [Constraint(b, True) for b in transformed[smith.rank :]]
    guards: dict[Guard, None] = dict.fromkeys(g for g in zero if not g.trivial)
    guards |= dict.fromkeys(g for g in divisible if not g.trivial)
    inverse, divisor = smith.pseudo_inverse
    special = [_linear_combination(row, right) for row in inverse]
    kernel = _reduced_basis(smith.kernel)
    free = _free_unknowns(kernel, len(unknowns))
    if free is None:
        used = {*unknowns, *taken, *(name for form in forms for name in form.names)}
        labels = _fresh_names(len(kernel), used)
    else:
        kernel, labels = free[1], tuple(unknowns[u] for u in free[0])
        offsets = [special[u] for u in free[0]]
        special = [
            p - _linear_combination(tuple(v[u] for v in kernel), offsets)
            for u, p in enumerate(special)
        ]
    moves = [
        Affine(tuple(zip(labels, column, strict=True))) for column in zip(*kernel, strict=True)
    ]
    moves = moves or [Affine()] * len(unknowns)
    values = [Quotient(p + divisor * m, divisor) for p, m in zip(special, moves, strict=True)]
    return Equations(tuple(zip(unknowns, values, strict=True)), labels, tuple(guards))


def _linear_combination(row: Iterable[int], forms: Iterable[Affine]) -> Affine:
    return sum((form * c for c, form in zip(row, forms, strict=True)), Affine())


def _reduced_basis(kernel: Matrix) -> Matrix:
    """The lattice basis reduced pairwise, with positive first entries."""
    vectors = [list(v) for v in kernel]
    moved = True
    while moved:
        moved = False
        for i, v in enumerate(vectors):
            for j, w in enumerate(vectors):
                square = _dot(w, w)
                factor = (2 * _dot(v, w) + square) // (2 * square) if i != j else 0
                shorter = [a - factor * b for a, b in zip(v, w, strict=True)]
                if _dot(shorter, shorter) < _dot(v, v):
                    v[:], moved = shorter, True
    signs = [1 if next(a for a in v if a) > 0 else -1 for v in vectors]
    return tuple(tuple(sign * a for a in v) for sign, v in zip(signs, vectors, strict=True))


@lru_cache(KEPT)
def _free_unknowns(kernel: Matrix, unknowns: int) -> tuple[Vector, Matrix] | None:
    """Unknowns that determine all others over the integers, and the basis with units there."""
    for reverse in islice(combinations(range(unknowns)[::-1], len(kernel)), MAX_CHOICES):
        chosen = reverse[::-1]
        minor = smith_normal_form([[v[u] for u in chosen] for v in kernel], len(kernel))
        if minor.rank == len(kernel) and all(a == 1 for a in minor.invariants):
            inverse = [[_dot(row, c) for c in _transposed_rows(minor.left)] for row in minor.right]
            columns = _transposed_rows(kernel) if kernel else ()
            return chosen, tuple(tuple(_dot(row, c) for c in columns) for row in inverse)
    return None


def _fresh_names(count: int, used: set[str]) -> tuple[str, ...]:
    candidates = (f"z{k}" if k else "z" for k in range(count + len(used)))
    return tuple(islice((name for name in candidates if name not in used), count))
