"""Products under conditions on their indices: equalities solved, intervals shortened.

An equality among the indices of a product gives summed indices in terms of others: an operand is
then read at affine places, which is a strided view of it, within zeros where places lie outside.
Where equalities or narrow bands tie indices of the result, fewer indices are computed, and the
entries placed into zeros. Of the other conditions, bounds of one index shorten it, and only what is
left over has to be multiplied in as zeros and ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from functools import reduce
from itertools import product
from math import gcd
from typing import Any

from ..support.records import NamedTuple, record
from .affine import Affine, Congruence, Constraint, Guard
from .polyhedra import System, integer_range
from .smith import Equations, solve_equations

#: How often bounds of indices are tightened by each other.
ROUNDS = 8
#: How many times longer than a band an index of the result must be.
NARROW = 2

Word = tuple[int, ...]
#: An end of an interval: an integer, or whatever a subclass of `Box` computes with.
Bound = Any
Interval = tuple[Bound, Bound]
#: A label and its coefficient.
Term = tuple[str, int]


def index(label: int) -> Affine:
    """An index by its label: no dimension has such a name."""
    return Affine.of(f"#{label}")


def number(name: str) -> int:
    """The label of an index."""
    return int(name[1:])


def terms(form: Affine) -> list[Term]:
    """The terms of a form in labels."""
    return [term for term in form.terms if term[0].startswith("#")]


class Places(NamedTuple):
    """A product in free labels, all of which start at 0.

    Attributes
    ----------
    extents : mapping
        Of the free labels.
    words : tuple
        For every operand, the affine places of its axes that are read.
    masks : tuple of Constraint
        What has to be multiplied in.
    core : tuple of int
        The free labels of the result.
    out : tuple of Affine or None
        The places of the result that are written; None where these are all, in order.
    """

    extents: dict[int, Bound]
    words: tuple[tuple[Affine, ...], ...]
    masks: tuple[Constraint, ...]
    core: Word
    out: tuple[Affine, ...] | None


@record()
class Box:
    """Labels that were given, as forms in free labels that have intervals; and the conditions.

    Parameters
    ----------
    out : tuple of int
        Distinct labels of the result.
    extents : mapping
        Of all labels.
    phases : bool
        May labels of the result be taken by phases?
    """

    out: Word
    extents: Mapping[int, Bound]
    values: dict[int, Affine] = field(default_factory=dict)
    intervals: dict[str, Interval] = field(default_factory=dict)
    conditions: list[Constraint] = field(default_factory=list)
    fresh: int = 0
    phases: bool = True

    # --- arithmetic of bounds ---

    def larger(self, low: Bound, other: Bound) -> Bound:
        """The greater one of two lower bounds."""
        return max(low, other)

    def smaller(self, high: Bound, other: Bound) -> Bound:
        """The least one of two upper bounds."""
        return min(high, other)

    def floor(self, bound: Bound, divisor: int) -> Bound:
        """A bound over a positive number, rounded down."""
        return bound // divisor

    def fixed(self, form: Affine) -> Bound:
        """What does not depend on labels."""
        return form.constant

    def never_negative(self, bound: Bound) -> bool:
        """Is a bound known to be at least 0?"""
        known: bool = bound >= 0
        return known

    def about(self, bound: Bound) -> int:
        """About what a bound is."""
        return int(bound)

    def count(self, name: str) -> int:
        """About how many values a label takes."""
        low, high = self.intervals[name]
        return self.about(high - low + 1)

    # --- what is known ---

    def value(self, label: int) -> Affine:
        return self.values.get(label, index(label))

    def new(self) -> str:
        self.fresh += 1
        return f"#{max(self.extents, default=0) + self.fresh}"

    def outer(self) -> set[str]:
        """The labels that the result's places are made of."""
        return {name for label in self.out for name, _ in terms(self.value(label))}

    def reach(self, form: Affine) -> Interval:
        """Bounds of a form over the intervals."""
        low = high = self.fixed(form)
        for name, c in terms(form):
            ends = [end * c for end in self.intervals[name]]
            low, high = low + ends[c < 0], high + ends[c > 0]
        return low, high

    def substitute(self, values: Mapping[str, Affine]) -> None:
        """Forms in place of free labels; those with known intervals keep them as conditions."""
        for label in self.extents:
            self.values[label] = self.value(label).substitute(values)
        self.conditions = [c.substitute(values) for c in self.conditions]
        for name, form in values.items():
            if name in self.intervals and form != Affine.of(name):
                low, high = self.intervals.pop(name)
                self.conditions += [Constraint(form - low), Constraint(high - form)]

    def solved(self, guards: Iterable[Guard], chosen: Collection[int] = ()) -> bool:
        """Put conditions on the labels; False where the product is known to be zero everywhere.

        Equalities are solved for labels that are not in the result first, and of these for those
        in `chosen` last.
        """
        guards = [g for g in guards if not g.trivial]
        if any(g.impossible for g in guards) or any(n == 0 for n in self.extents.values()):
            return False
        self.intervals = {f"#{label}": (n * 0, n - 1) for label, n in self.extents.items()}
        self.conditions = [g for g in guards if isinstance(g, Constraint) and not g.equality]
        late = {f"#{label}" for label in chosen}
        return self._equal(guards, late) and self.phased(chosen) and self.tightened()

    # --- equalities ---

    def _equal(self, guards: Sequence[Guard], late: set[str]) -> bool:
        """Solve equalities, for summed labels first. False where there is no solution."""
        forms = self._equalities(guards)
        found = self._solution(forms, self.outer(), late)
        if found.guards:  # what the result's labels must satisfy is solved first
            if any(g.impossible for g in found.guards):
                return False
            needed = self._equalities(found.guards)
            outside = self._solution(needed, set(), late)
            if any(g.impossible for g in outside.guards):
                return False
            values = self._put(outside)
            forms = [form.substitute(values) for form in forms]
            found = self._solution(forms, self.outer(), late)
        self._put(found)
        return True

    def _equalities(self, guards: Iterable[Guard]) -> list[Affine]:
        """Forms that are zero; those that are divisible less a multiple of a new label."""
        forms = []
        for g in guards:
            if isinstance(g, Congruence):
                name = self.new()
                low, high = self.reach(g.form)
                m = g.modulus
                self.intervals[name] = -self.floor(-low, m), self.floor(high, m)
                forms.append(g.form - Affine.of(name) * m)
            elif g.equality:
                forms.append(g.form)
        return forms

    def _solution(self, forms: list[Affine], outer: set[str], late: set[str]) -> Equations:
        """The solution for labels that are not in `outer`; short ones stay free, if they can."""
        names = {name for form in forms for name, _ in terms(form)} - outer
        given = {f"#{label}" for label in self.extents}
        order = sorted(names, key=lambda n: (n in given, n in late, -self.count(n), number(n)))
        return solve_equations(forms, order)

    def _put(self, found: Equations) -> dict[str, Affine]:
        """Put solutions in place of labels."""
        unknowns = {name for name, _ in found.values}
        names = {name: Affine.of(self.new()) for name in found.labels if name not in unknowns}
        values = {}
        for name, q in found.values:
            if name not in found.labels:
                q = q.substitute(names)
                assert q.divisor == 1
                values[name] = q.form
        self.substitute(values)
        return values

    # --- intervals ---

    def free(self) -> list[str]:
        """Labels that values are made of, or that were not replaced."""
        names = {name for label in self.extents for name, _ in terms(self.value(label))}
        return sorted(names, key=number)

    def tightened(self) -> bool:
        """Shorten intervals by the conditions; drop those that hold. False if nothing is left.

        All labels have intervals.
        """
        for _ in range(ROUNDS):
            before = dict(self.intervals)
            for c in self.conditions:
                for name, a in terms(c.form):
                    low, high = self.intervals[name]
                    most = self.reach(c.form - Affine.of(name) * a)[1]
                    if a > 0:
                        low = self.larger(low, -self.floor(most, a))
                    else:
                        high = self.smaller(high, self.floor(most, -a))
                    self.intervals[name] = low, high
                    if self.never_negative(low - high - 1):
                        return False
            if self.intervals == before:
                break
        if any(c.impossible for c in self.conditions):
            return False
        kept = {c for c in self.conditions if not self.never_negative(self.reach(c.form)[0])}
        self.conditions = sorted(kept)
        return True

    def _all_bounded(self) -> bool:
        return all(name in self.intervals or self.bounded(name) for name in self.free())

    def bounded(self, name: str) -> bool:
        """The interval of a new label, by the conditions on those that it stands for."""
        known = [
            c
            for other, (low, high) in self.intervals.items()
            for c in (Constraint(Affine.of(other) - low), Constraint(high - Affine.of(other)))
        ]
        found = integer_range(System((*known, *self.conditions)), name)
        if found is None:
            return False
        low, high = found
        assert low is not None
        assert high is not None
        self.intervals[name] = low, high
        return True

    def banded(self) -> bool:
        """Replace a label of the result by its distance from others, if that takes few values."""
        outer = self.outer()
        best: tuple[int, str, Affine, Interval] | None = None
        for c in self.conditions:
            part = Affine(tuple(t for t in c.form.terms if t[0] in outer))
            ends = self._ends(part, outer) if len(part.terms) > 1 else None
            if ends is None:
                continue
            low, high = ends
            count = high - low + 1
            for name, a in part.terms:
                if abs(a) == 1 and NARROW * count <= self.count(name):
                    option = (count, name, part * a, (low, high) if a > 0 else (-high, -low))
                    if best is None or option[:2] < best[:2]:
                        best = option
        if best is None:
            return False
        _, name, part, interval = best
        new = self.new()
        self.intervals[new] = interval
        self.substitute({name: Affine.of(new) - (part - Affine.of(name))})
        return True

    def phased(self, chosen: Collection[int] = ()) -> bool:
        """Sum over few values where a label of the result less steps of a summed one takes few.

        Of a kernel that moves in steps of s, r - s t lies in a narrow band: r is s q + p and t is
        q - b, for phases p < s and few b. False where nothing is left. Labels in `chosen` stay.
        """
        fixed = {name for label in chosen for name, _ in terms(self.value(label))}
        given = {f"#{label}" for label in self.extents}
        while self._all_bounded():
            found = self._steps(fixed) if self.phases else None
            if found is None:
                return True
            (name, c), (other, s), (low, high) = found
            for label in {name, other} - given:
                del self.intervals[label]  # which conditions say as well
            p, b, q = self.new(), self.new(), self.new()
            self.intervals[p], self.intervals[b] = (low * 0, low * 0 + s - 1), (low, high)
            self.substitute({
                name: Affine.of(q) * s + Affine.of(p),
                other: Affine.of(q) * c - Affine.of(b),
            })  # fmt: skip
        return False

    def _steps(self, fixed: Collection[str]) -> tuple[Term, Term, Interval] | None:
        """A label of the result and a summed one, with c and s of c r - s t, and the ends of b.

        These are coprime, and s is 2 or more. As c (s q + p) - s (c q - b) is c p + s b, the ends
        of b follow from those of the band.
        """
        outer = self.outer()
        options = []
        for form in [c.form for c in self.conditions]:
            for (name, c), (other, d) in product(terms(form), repeat=2):
                summed = other not in outer and not {name, other} & {*fixed}
                if name not in outer or not summed or d > -2 or gcd(c, d) > 1:
                    continue
                ends = self._ends(Affine(((name, c), (other, d))), {name, other})
                if ends is not None:
                    low, high = ends[0] - max(0, c * (-d - 1)), ends[1] - min(0, c * (-d - 1))
                    interval = -self.floor(-low, -d), self.floor(high, -d)
                    count = self.about(interval[1] - interval[0] + 1)
                    if NARROW * count <= self.count(other):
                        options.append((count, (name, c), (other, -d), interval))
        return min(options, key=lambda option: option[:3])[1:] if options else None

    def _ends(self, part: Affine, names: Collection[str]) -> Interval | None:
        """What conditions leave of a form in some labels, which are all they have of these."""
        ends: list[list[Bound]] = [[], []]
        for c in self.conditions:
            own = Affine(tuple(t for t in c.form.terms if t[0] in names))
            if own == part:
                ends[0].append(-self.reach(c.form - own)[1])
            elif own + part == Affine():
                ends[1].append(self.reach(c.form - own)[1])
        if not all(ends):
            return None
        return reduce(self.larger, ends[0]), reduce(self.smaller, ends[1])

    # --- what is read and written ---

    def places(self, words: Sequence[Word]) -> Places:
        """The product of operands under these labels, in free labels."""
        start = {name: Affine.of(name) + low for name, (low, _) in self.intervals.items()}
        ends = {number(name): self.intervals[name] for name in self.free()}
        extents = {label: high - low + 1 for label, (low, high) in ends.items()}
        kept = {c.form: c for c in self.conditions}
        # Outside of operands there are zeros, and what has no place in the result is not written.
        for label in {label for word in (*words, self.out) for label in word}:
            for side in (self.value(label), self.extents[label] - 1 - self.value(label)):
                kept.pop(Constraint(side).form, None)
        forms = tuple([self.value(label).substitute(start) for label in self.out])
        core = tuple(dict.fromkeys([number(n) for form in forms for n, _ in terms(form)]))
        plain = len(core) == len(forms) and all(
            form == index(k) and extents[k] == self.extents[label]
            for k, form, label in zip(core, forms, self.out, strict=True)
        )
        return Places(
            extents,
            tuple([tuple([self.value(k).substitute(start) for k in word]) for word in words]),
            tuple([Constraint(form.substitute(start)) for form in kept]),
            core,
            None if plain else forms,
        )
