"""Systems of affine constraints over the integers: rational and integer points, redundancy.

Rational questions are decided by a simplex tableau of Python integers with Bland's rule, integer
ones by Smith's normal form for equalities and branch and bound for the rest.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import chain
from typing import Any

from ..support.errors import LimitError
from ..support.limits import spend
from ..support.records import record
from .affine import Affine, Constraint, IntegerValue
from .smith import solve_equations

#: Boxes that branch and bound may examine.
MAX_BOXES = 20_000

#: Constant and coefficients of an inequality or of an objective.
TableauRow = list[int]

#: A constraint that never holds.
NEVER = Constraint(Affine((), -1))


class SystemLimitError(LimitError):
    """A system of inequalities exceeds a limit of the search."""


@record(frozen=True)
class System:
    """A conjunction of constraints in canonical order.

    Of parallel inequalities only the tightest stays, opposite tight ones become an equality, and a
    system that these show to be empty is the one constraint -1 >= 0. `irredundant` does more.

    Examples
    --------
    >>> i = Affine.of("i")
    >>> print(System([Constraint(i), Constraint(i + 2), Constraint(7 - 2 * i)]))
    3 >= i and i >= 0
    """

    constraints: Sequence[Constraint] = ()

    def __post_init__(self) -> None:
        bounds: dict[tuple[tuple[str, int], ...], list[int | None]] = {}
        for c in self.constraints:
            if c.trivial:
                continue
            positive = not c.form.terms or c.form.terms[0][1] > 0
            form = c.form if positive else -c.form
            low, high = bounds.setdefault(form.terms, [None, None])
            if positive or c.equality:
                low = -form.constant if low is None else max(low, -form.constant)
            if not positive or c.equality:
                high = -form.constant if high is None else min(high, -form.constant)
            bounds[form.terms] = [low, high]
        kept = tuple(sorted(c for t, (a, b) in bounds.items() for c in _bounded(t, a, b)))
        kept = (NEVER,) if any(c.impossible for c in kept) else kept
        object.__setattr__(self, "constraints", kept)

    def __iter__(self) -> Iterator[Constraint]:
        return iter(self.constraints)

    def __and__(self, other: Iterable[Constraint]) -> System:
        return System((*self, *other))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted({name for c in self for name in c.form.names}))

    @property
    def impossible(self) -> bool:
        """Is it seen to be empty? See `feasible` for whether it is."""
        return self.constraints == (NEVER,)

    def holds(self, values: Mapping[str, IntegerValue]) -> Any:
        """A bool, or an array of them where values are arrays."""
        result: Any = True
        for c in self:
            result = c.holds(values) & result
        return result

    def substitute(self, values: Mapping[str, Affine | int | str]) -> System:
        return System([c.substitute(values) for c in self])

    def __str__(self) -> str:
        return " and ".join(map(str, self))


def _bounded(
    terms: tuple[tuple[str, int], ...], low: int | None, high: int | None
) -> list[Constraint]:
    form = Affine(terms)
    if not terms or (low is not None and high is not None and low > high):
        return [NEVER]
    if low == high:
        assert low is not None  # there is a bound
        return [Constraint(form - low, True)]
    found = [] if low is None else [Constraint(form - low)]
    return found if high is None else [*found, Constraint(high - form)]


def _rows(system: Iterable[Constraint], names: Sequence[str]) -> list[TableauRow]:
    """Coefficient rows of inequalities; an equality is two of them."""
    rows = []
    for c in system:
        row = [c.form.constant, *(c.form.coefficient(name) for name in names)]
        rows.append(row)
        if c.equality:
            rows.append([-a for a in row])
    return rows


@record()
class _Tableau:
    """Basic variables as affine functions of the others, which are at zero.

    `columns` are the other variables: below `free` those without a sign, from there on slacks of
    inequalities. `rows[b]` is [k, c, q...]: k times variable b is c plus q times the others, k > 0.

    References
    ----------
    Dutertre and de Moura (2006), A fast linear-arithmetic solver for DPLL(T): repair one violated
    row at a time; least numbers first (Bland 1977), so that it ends.
    """

    free: int
    columns: list[int]
    rows: dict[int, TableauRow] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Iterable[TableauRow], names: int) -> _Tableau:
        slacks = {names + r: [1, *row] for r, row in enumerate(rows)}
        tableau = cls(names, list(range(names)), slacks)
        for column in range(names):
            pivots = (b for b, row in tableau.rows.items() if b >= names and row[column + 2])
            if (basic := next(pivots, None)) is not None:
                tableau.pivot(basic, column)
        return tableau

    def pivot(self, basic: int, column: int) -> None:
        """Exchange a basic variable for the one of a column."""
        spend("steps", len(self.rows) * len(self.columns))
        row, at = self.rows.pop(basic), column + 2
        sign = 1 if row[at] > 0 else -1
        new = [-sign * q for q in row]
        new[0], new[at] = abs(row[at]), sign * row[0]
        for b, old in self.rows.items():
            if factor := old[at]:
                scale = new[0]
                mixed = [scale * q + factor * p for q, p in zip(old, new, strict=True)]
                mixed[0], mixed[at] = scale * old[0], factor * new[at]
                common = math.gcd(*mixed)
                self.rows[b] = [q // common for q in mixed] if common > 1 else mixed
        self.rows[self.columns[column]] = new
        self.columns[column] = basic

    def repair(self) -> bool:
        """Make all slacks nonnegative; False if that is impossible."""
        while violated := [b for b, row in self.rows.items() if b >= self.free and row[1] < 0]:
            row = self.rows[min(violated)]
            entering = [(v, j) for j, v in enumerate(self.columns) if row[j + 2] > 0]
            if not entering:
                return False
            self.pivot(min(violated), min(entering)[1])
        return True

    def minimise(self, objective: int) -> bool:
        """Minimise a basic variable; False if it is unbounded below."""
        while True:
            row = self.rows[objective]
            moves = enumerate(self.columns)
            entering = [
                (v, j) for j, v in moves if row[j + 2] < 0 or (v < self.free and row[j + 2])
            ]
            if not entering:
                return True
            column = min(entering)[1]
            leaving: int | None = None
            for b in sorted(self.rows):
                if b >= self.free and b != objective and self.rows[b][column + 2] < 0:
                    leaving = b if leaving is None else self._tighter(leaving, b, column)
            if leaving is None:
                return False
            self.pivot(leaving, column)

    def _tighter(self, one: int, two: int, column: int) -> int:
        a, b = self.rows[one], self.rows[two]
        return two if b[1] * a[column + 2] > a[1] * b[column + 2] else one

    def vertex(self) -> list[tuple[int, int]]:
        """Numerator and denominator of each variable without a sign."""
        fractions = []
        for name in range(self.free):
            k, c = self.rows[name][:2] if name in self.rows else (1, 0)
            common = math.gcd(k, c)
            fractions.append((c // common, k // common))
        return fractions


def feasible(system: System) -> bool:
    """Is there a rational point? Exact, and never wrong in saying no to integer points."""
    names = system.names
    return _consistent(_rows(system, names), len(names))


def _consistent(rows: list[TableauRow], names: int) -> bool:
    return _Tableau.of(rows, names).repair()


def _entailed(asked: list[TableauRow], rows: list[TableauRow], names: int) -> bool:
    """Is no row of `asked` negative at an integer point that satisfies `rows`? True is a proof."""
    return not any(
        _consistent([*rows, [-row[0] - 1, *(-a for a in row[1:])]], names) for row in asked
    )


def implied(constraint: Constraint, system: System) -> bool:
    """Does the system entail the constraint over the rationals?

    True is a proof; False may be wrong over the integers.
    """
    names = sorted({*system.names, *constraint.form.names})
    return _entailed(_rows([constraint], names), _rows(system, names), len(names))


def irredundant(system: System, context: Iterable[Constraint] = ()) -> System:
    """A system without redundant constraints that is equivalent wherever `context` holds.

    Inequalities that the remaining ones and the context entail are dropped, those with more names
    and larger numbers first.

    Examples
    --------
    >>> i, n = Affine.of("i"), Affine.of("n")
    >>> box = System([Constraint(i), Constraint(n - 1 - i)])
    >>> print(irredundant(box & [Constraint(n), Constraint(2 * i + n)]))
    n >= i+1 and i >= 0
    """
    known = System(tuple(context))
    names = (system & known).names
    count, fixed = len(names), _rows(known, names)
    kept = {c: _rows([c], names) for c in system}
    if not _consistent([*fixed, *chain(*kept.values())], count):
        return System([NEVER])
    for c in sorted(system, key=_size, reverse=True):
        asked = kept.pop(c)
        if not _entailed(asked, [*fixed, *chain(*kept.values())], count):
            kept[c] = asked
    return System(tuple(kept))


def _size(c: Constraint) -> tuple[int, int, Constraint]:
    return len(c.form.terms), abs(c.form.constant) + sum(abs(a) for _, a in c.form.terms), c


def integer_point(system: System, limit: int = MAX_BOXES) -> dict[str, int] | None:
    """An integer point, or None if there is none.

    Raises
    ------
    SystemLimitError
        If more than `limit` boxes are looked at, as may happen where the system is unbounded.
    """
    found = _minimum(system, Affine(), limit)
    return None if found is None else found[1]


def integer_range(
    system: System, form: Affine | str, limit: int = MAX_BOXES
) -> tuple[int | None, int | None] | None:
    """The least and the greatest value of a form over the integer points.

    Returns
    -------
    tuple of int or None
        None in place of a bound that does not exist; None altogether if there is no point.

    Raises
    ------
    SystemLimitError
        If more than `limit` boxes are looked at.

    Examples
    --------
    >>> i, k = Affine.of("i"), Affine.of("k")
    >>> box = System([Constraint(i), Constraint(10 - i)])
    >>> integer_range(box & [Constraint(2 * i - 3 * k, True)], "i")
    (0, 9)
    """
    form = Affine.of(form)
    low = _minimum(system, form, limit)
    if low is None:
        return None
    high = _minimum(system, -form, limit)
    assert high is not None
    return low[0], None if high[0] is None else -high[0]


def _minimum(system: System, form: Affine, limit: int) -> tuple[int | None, dict[str, int]] | None:
    """The least value of a form at integer points, None if there is no least, and a point.

    A rational polyhedron with integer points is unbounded in a direction if and only if they are
    (Meyer 1974), so that the relaxation decides.
    """
    names = tuple(sorted({*system.names, *form.names}))
    solution = solve_equations([c.form for c in system if c.equality], names)
    if system.impossible or any(guard.impossible for guard in solution.guards):
        return None
    values = {name: value.form for name, value in solution.values}  # whole: no name is left over
    reduced = System([c for c in system if not c.equality]).substitute(values)
    goal = form.substitute(values)
    rows = _rows(reduced, solution.labels)
    objective = [goal.constant, *(goal.coefficient(name) for name in solution.labels)]
    relaxed = _rational_minimum(rows, objective)
    if relaxed is None:
        return None
    unbounded = relaxed[0] is None
    point = _branch_and_bound(rows, [0] * len(objective) if unbounded else objective, limit)
    if point is None:
        return None
    place = dict(zip(solution.labels, point, strict=True))
    full = {name: int(value.evaluate(place)) for name, value in values.items()}
    return (None if unbounded else int(form.evaluate(full))), full


def _branch_and_bound(
    rows: list[TableauRow], objective: TableauRow, limit: int
) -> list[int] | None:
    """Branch and bound: an integer point of least objective."""
    stack: list[dict[tuple[int, int], int]] = [{}]  # (i, s): v for the bound s x_i >= v
    best: list[int] | None = None
    least, names = 0, range(len(objective) - 1)
    for _ in range(limit):
        if not stack:
            return best
        node = stack.pop()
        bounds = [[-v, *(s * (i == name) for name in names)] for (i, s), v in node.items()]
        relaxed = _rational_minimum(rows + bounds, objective)
        if relaxed is None:
            continue
        bound, vertex = relaxed
        if bound is None or (best is not None and bound >= least):
            continue
        broken = next((i for i, (_, d) in enumerate(vertex) if d != 1), None)
        if broken is None:
            best, least = [a for a, _ in vertex], bound
            continue
        below = vertex[broken][0] // vertex[broken][1]
        stack.append({**node, (broken, 1): below + 1})
        stack.append({**node, (broken, -1): -below})
    raise SystemLimitError(f"no integer point was found or excluded in {limit} boxes")


def _rational_minimum(
    rows: list[TableauRow], objective: TableauRow
) -> tuple[int | None, list[tuple[int, int]]] | None:
    """The least rational value, rounded up, or None if there is no least; and where it is."""
    names, goal = len(objective) - 1, len(objective) - 1 + len(rows)
    tableau = _Tableau.of(rows, names)
    if not tableau.repair():
        return None
    tableau.rows[goal] = _in_basis(tableau, objective)
    if not tableau.minimise(goal):
        return None, tableau.vertex()
    k, c = tableau.rows[goal][:2]
    return -(-c // k), tableau.vertex()


def _in_basis(tableau: _Tableau, objective: TableauRow) -> TableauRow:
    """An objective in the variables of the columns, as a row of the tableau."""
    scale = math.lcm(*(tableau.rows[v][0] for v in range(tableau.free) if v in tableau.rows))
    total = [scale, scale * objective[0], *([0] * tableau.free)]
    for v, factor in enumerate(objective[1:]):
        if v in tableau.rows:
            row = tableau.rows[v]
            step = factor * scale // row[0]
            total[1:] = [a + step * b for a, b in zip(total[1:], row[1:], strict=True)]
        else:
            total[tableau.columns.index(v) + 2] += scale * factor
    return total
