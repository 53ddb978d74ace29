"""Ranges of sums: Fourier–Motzkin elimination, and the solutions of an index equation in a box.

Urban and van der Smagt (2017), sections 4.2 and 5.1: the derivative of an access with affine
indices sums over the integer solutions of its index equation inside the box of its labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..support.limits import spend
from ..support.records import record
from .affine import Affine, Constraint, Guard, IntegerValue, Quotient
from .polyhedra import System, SystemLimitError, irredundant
from .smith import solve_equations

#: Inequalities that one elimination may produce.
MAX_INEQUALITIES = 200

#: What an inequality that is produced counts among the steps of a budget.
ELIMINATED = 10

#: What `Affine.of` takes.
AffineLike = int | str | Affine
#: An extent e, for 0 to e - 1, or inclusive bounds, of which None is unbounded.
IntegerInterval = AffineLike | tuple[AffineLike | None, AffineLike | None]


@record(frozen=True)
class Range:
    """The integers from the greatest of the lower bounds to the least of the upper ones.

    Attributes
    ----------
    name : str
    lower, upper : tuple of Quotient
        Rounded up and down; without any the range is unbounded. Bounds are in names further out.

    Examples
    --------
    >>> j, m, n = map(Affine.of, "jmn")
    >>> k = Range("k", (Quotient(Affine()), Quotient(j - m + 1)), (Quotient(j), Quotient(n - 1)))
    >>> print(k, k.count({"j": 3, "m": 3, "n": 9}))
    k=max(0,j-m+1)..min(j,n-1) 3
    """

    name: str
    lower: tuple[Quotient, ...]
    upper: tuple[Quotient, ...]

    def bounds(
        self, values: Mapping[str, IntegerValue]
    ) -> tuple[IntegerValue | None, IntegerValue | None]:
        """Both ends, inclusive, None where unbounded; arrays where values are arrays."""
        low = [q.ceil(values) for q in self.lower]
        high = [q.floor(values) for q in self.upper]
        return _extreme(low, max, np.maximum), _extreme(high, min, np.minimum)

    def count(self, values: Mapping[str, IntegerValue]) -> IntegerValue | None:
        """How many integers there are; None if without end."""
        low, high = self.bounds(values)
        if low is None or high is None:
            return None
        return _extreme([0, high - low + 1], max, np.maximum)

    def constraints(self) -> tuple[Constraint, ...]:
        """The same as conditions on the name and on those of the bounds."""
        x = Affine.of(self.name)
        low = tuple(Constraint(x * q.divisor - q.form) for q in self.lower)
        return low + tuple(Constraint(q.form - x * q.divisor) for q in self.upper)

    def __str__(self) -> str:
        low, high = [q.show("ceil") for q in self.lower], [q.show("floor") for q in self.upper]
        return f"{self.name}={_show_bounds(low, 'max', '-inf')}..{_show_bounds(high, 'min', 'inf')}"


def _extreme(values: list[IntegerValue], function: Any, ufunc: Any) -> IntegerValue | None:
    if not values:
        return None
    if not any(isinstance(value, np.ndarray) for value in values):
        result: IntegerValue = function(values)
        return result
    if any(isinstance(value, int) and abs(value) >= 2**63 for value in values):
        values = [np.asarray(value, dtype=object) for value in values]
    while len(values) > 1:
        values[:2] = [ufunc(*values[:2])]
    return values[0]


def _show_bounds(texts: list[str], function: str, none: str) -> str:
    if len(texts) < 2:
        return "".join(texts) or none
    return f"{function}({','.join(texts)})"


@record(frozen=True)
class NestedRanges:
    """A system as nested ranges of some names and a system in the others.

    The points of the original system are those in all ranges and in `remainder`. The remainder is
    the rational shadow: at some of its points a range may be empty.

    Attributes
    ----------
    ranges : tuple of Range
        Outermost first.
    remainder : System
        In the names that were not eliminated.
    """

    ranges: tuple[Range, ...]
    remainder: System


def eliminate(
    system: System,
    names: Sequence[str],
    context: Iterable[Constraint] = (),
    limit: int = MAX_INEQUALITIES,
) -> NestedRanges:
    """Bounds of each name in those that come later in `names` and those that are not in it.

    Parameters
    ----------
    system : System
    names : sequence of str
        In the order of elimination: the innermost sum first.
    context : iterable of Constraint
        What is known to hold; bounds that it implies are left out.
    limit : int
        How many inequalities one step may produce.

    Raises
    ------
    SystemLimitError
        If a step would produce more than `limit` inequalities.

    References
    ----------
    Dantzig and Eaves (1973), Fourier–Motzkin elimination and its dual; Schrijver (1986), Theory of
    Linear and Integer Programming, section 12.2.

    Examples
    --------
    >>> i, j, n = map(Affine.of, "ijn")
    >>> triangle = System([Constraint(j - i), Constraint(i), Constraint(n - 1 - j)])
    >>> found = eliminate(triangle, ["j", "i"])
    >>> print(*found.ranges, "if", found.remainder)
    i=0..n-1 j=i..n-1 if n >= 1
    """
    known = System(tuple(context))
    ranges: list[Range] = []
    for name in names:
        system = irredundant(system, known)
        found, system = _eliminate_one(system, name, limit)
        ranges.append(found)
    return NestedRanges(tuple(reversed(ranges)), irredundant(system, known))


def _eliminate_one(system: System, name: str, limit: int) -> tuple[Range, System]:
    """The range of one name, and the other names' rational shadow."""
    if system.impossible:
        return Range(name, (Quotient(Affine()),), (Quotient(Affine((), -1)),)), system
    bounding = [c for c in system if c.form.coefficient(name)]
    others = [c for c in system if not c.form.coefficient(name)]
    equalities = [c for c in bounding if c.equality]
    if equalities:
        pivot = min(equalities, key=lambda c: (abs(c.form.coefficient(name)), c))
        value = _solved_for(pivot, name)
        crossed = [_eliminated_pair(c, pivot, name) for c in bounding if c != pivot]
        return Range(name, (value,), (value,)), System(others + crossed)
    below = [c for c in bounding if c.form.coefficient(name) > 0]
    above = [c for c in bounding if c.form.coefficient(name) < 0]
    if len(below) * len(above) + len(others) > limit:
        raise SystemLimitError(
            f"eliminating {name} from {len(system.constraints)} inequalities gives"
            f" {len(below) * len(above) + len(others)}, more than {limit}"
        )
    spend("steps", ELIMINATED * len(below) * len(above))
    crossed = [_eliminated_pair(c, d, name) for c in below for d in above]
    lower = tuple(sorted(_solved_for(c, name) for c in below))
    upper = tuple(sorted(_solved_for(c, name) for c in above))
    return Range(name, lower, upper), System(others + crossed)


def _solved_for(c: Constraint, name: str) -> Quotient:
    """The value of a name, in the other names, at which the form is zero."""
    return Quotient(-c.form.without((name,)), c.form.coefficient(name))


def _eliminated_pair(c: Constraint, other: Constraint, name: str) -> Constraint:
    """The combination of two constraints without a name; the second may be an equality."""
    a, b = c.form.coefficient(name), other.form.coefficient(name)
    form = c.form * abs(b) - other.form * (a if b > 0 else -a)
    return Constraint(form, c.equality)


@record(frozen=True)
class Solution:
    """The integer solutions of an index equation inside a box.

    For values of the outer names that satisfy all guards, every choice of `labels` in the nested
    `ranges` gives one solution, and every solution is found once. Elsewhere there is none, and
    `values` and `ranges` mean nothing.

    Attributes
    ----------
    values : tuple of (unknown, Quotient)
        Exact divisions, in outer names and `labels`.
    labels : tuple of str
        New summation labels, where possible unknowns under their own names.
    ranges : tuple of Range
        One per label, the outermost first.
    guards : tuple of Guard
        Equalities, divisibility and inequalities that are no part of a range.
    shadow : System
        What also holds wherever the ranges are not empty; sums are right without it.
    """

    values: tuple[tuple[str, Quotient], ...]
    labels: tuple[str, ...]
    ranges: tuple[Range, ...]
    guards: tuple[Guard, ...]
    shadow: System

    @property
    def empty(self) -> bool:
        """Is it known that there is no solution, whatever the outer names are?"""
        return self.shadow.impossible or any(g.impossible for g in self.guards)

    def points(self, values: Mapping[str, int]) -> Iterator[dict[str, int]]:
        """The solutions one by one, in the order of the sums; ranges must have ends."""
        if self.empty or not all(g.holds(values) for g in self.guards):
            return
        stack: list[tuple[int, dict[str, int]]] = [(0, dict(values))]
        while stack:
            depth, place = stack.pop()
            if depth == len(self.ranges):
                yield {name: int(q.floor(place)) for name, q in self.values}
                continue
            low, high = self.ranges[depth].bounds(place)
            if low is None or high is None:
                raise SystemLimitError(f"the sum over {self.ranges[depth]} has no end")
            name = self.ranges[depth].name
            inner = [{**place, name: v} for v in range(int(low), int(high) + 1)]
            stack.extend((depth + 1, p) for p in reversed(inner))


def solve_in_box(
    equalities: Sequence[Affine],
    unknowns: Sequence[str],
    box: Mapping[str, IntegerInterval],
    constraints: Iterable[Constraint] = (),
    context: Iterable[Constraint] = (),
    limit: int = MAX_INEQUALITIES,
) -> Solution:
    """Solve affine equations for labels inside a box (Urban and van der Smagt 2017, algorithm 4).

    Parameters
    ----------
    equalities : sequence of Affine
        Forms that are zero.
    unknowns : sequence of str
        The labels to solve for; late ones are the first to stay as summation labels.
    box : mapping
        Intervals of unknowns, and of outer labels too: an extent e stands for 0 to e - 1, a pair
        for inclusive bounds. Names in them that have no interval themselves are dimensions,
        taken as >= 0.
    constraints : iterable of Constraint
        Further conditions, such as ranges of sums already there.
    context : iterable of Constraint
        What is known of outer names besides their intervals.
    limit : int
        How many inequalities one elimination may produce.

    Raises
    ------
    SystemLimitError
        If an elimination would produce more.

    Examples
    --------
    The adjoint of y[i] = sum(k) w[k] x[i+k] sums over the i and k with i+k = j:

    >>> i, j, k = map(Affine.of, "ijk")
    >>> found = solve_in_box([i + k - j], ["i", "k"], {"i": "m", "k": "n"})
    >>> print(*found.ranges, *(f"{name}={value}" for name, value in found.values))
    k=max(0,j-m+1)..min(j,n-1) i=j-k k=k
    """
    asked, known = System(tuple(constraints)), System(tuple(context))
    for name, interval in box.items():
        for c in _interval(name, interval):
            if set(unknowns).isdisjoint(c.form.names):
                known &= [c]
            else:
                asked &= [c]
        known &= [
            Constraint(Affine.of(n)) for b in _ends(interval) for n in b.names if n not in box
        ]
    forms = [*equalities, *(c.form for c in asked if c.equality)]
    equations = solve_equations(forms, unknowns, (*box, *asked.names, *known.names))
    known &= [guard for guard in equations.guards if isinstance(guard, Constraint)]
    asked = System([_substituted(c, dict(equations.values)) for c in asked])
    outer = [c for c in asked if set(equations.labels).isdisjoint(c.form.names)]
    needed = irredundant(System(outer), known)
    summed = System([c for c in asked if c not in outer])
    found = eliminate(summed, equations.labels[::-1], known & needed, limit)
    shadow = found.remainder
    if any(r.lower == r.upper for r in found.ranges):  # it holds the other bounds of that label
        needed, shadow = needed & shadow, System()
    guards = (*equations.guards, *needed)
    return Solution(equations.values, equations.labels, found.ranges, guards, shadow)


def _ends(interval: IntegerInterval) -> list[Affine]:
    pair = interval if isinstance(interval, tuple) else (interval,)
    return [Affine.of(end) for end in pair if end is not None]


def _interval(name: str, interval: IntegerInterval) -> list[Constraint]:
    x = Affine.of(name)
    if not isinstance(interval, tuple):
        return [Constraint(x), Constraint(Affine.of(interval) - 1 - x)]
    low, high = interval
    found = [] if low is None else [Constraint(x - Affine.of(low))]
    return found if high is None else [*found, Constraint(Affine.of(high) - x)]


def _substituted(c: Constraint, values: Mapping[str, Quotient]) -> Constraint:
    """A constraint with exact quotients substituted for names, multiplied by their divisors."""
    scale = 1
    for name in c.form.names:
        scale *= values[name].divisor if name in values else 1
    total = Affine((), scale * c.form.constant)
    for name, a in c.form.terms:
        q = values.get(name, Quotient(Affine.of(name)))
        total += q.form * (a * scale // q.divisor)
    return Constraint(total, c.equality)
