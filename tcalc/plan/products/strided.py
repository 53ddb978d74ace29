"""Products with indicators: equalities are solved, so that entries are read at shifted places.

An equality among the indices of a product gives summed indices in terms of others: an operand is
then read at affine places, which is a strided view of it, within zeros where places lie outside.
Where equalities or narrow bands tie indices of the result, fewer indices are computed, and the
entries placed into zeros. Of the other conditions, bounds of one index shorten it, and only what is
left over is multiplied in as zeros and ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from ...integers.affine import Affine, Congruence, Constraint, Guard
from ...integers.polyhedra import System, integer_range
from ...integers.smith import Equations, solve_equations
from ...ops.indicator import INDICATOR, index
from ..slot_facts import Placement
from ..steps import Builder, SlotWord, Word
from .gathers import written

#: How often bounds of indices are tightened by each other.
ROUNDS = 8
#: How many times longer than a band an index of the result must be.
NARROW = 2

IndexRange = tuple[int, int]


@dataclass
class Opened:
    """A product without indicators, and where its entries stand.

    Attributes
    ----------
    factors : list of SlotWord
    extents : mapping
        Of all labels.
    core : tuple of int
        The labels of the result.
    where : Placement or None
        Where entries stand in the whole result; None: everywhere, in order.
    """

    factors: list[SlotWord]
    extents: dict[int, int]
    core: Word
    where: Placement | None


@dataclass
class _System:
    """Labels that were given, as forms in free labels that have intervals; and the conditions."""

    out: Word
    extents: Mapping[int, int]
    values: dict[int, Affine] = field(default_factory=dict)
    intervals: dict[str, IndexRange] = field(default_factory=dict)
    conditions: list[Constraint] = field(default_factory=list)
    fresh: int = 0

    def value(self, label: int) -> Affine:
        return self.values.get(label, index(label))

    def new(self) -> str:
        self.fresh += 1
        return f"#{max(self.extents, default=0) + self.fresh}"

    def substitute(self, values: Mapping[str, Affine]) -> None:
        """Forms in place of free labels; those with known intervals keep them as conditions."""
        for label in self.extents:
            self.values[label] = self.value(label).substitute(values)
        self.conditions = [c.substitute(values) for c in self.conditions]
        for name, form in values.items():
            if name in self.intervals and form != Affine.of(name):
                low, high = self.intervals.pop(name)
                self.conditions += [Constraint(form - low), Constraint(high - form)]

    def reach(self, form: Affine) -> IndexRange:
        """Bounds of a form over the intervals."""
        low = high = form.constant
        for name, c in form.terms:
            ends = [c * end for end in self.intervals[name]]
            low, high = low + min(ends), high + max(ends)
        return low, high


def opened(
    b: Builder,
    factors: Sequence[SlotWord],
    guards: Iterable[Guard],
    out: Word,
    extents: Mapping[int, int],
) -> Opened | None:
    """The product under conditions on its labels; None where it is zero everywhere.

    Parameters
    ----------
    factors : sequence of SlotWord
    guards : iterable of Guard
        In `index(label)`, without dimensions.
    out : tuple of int
        Distinct labels.
    extents : mapping
        Of all labels.
    """
    guards = [g for g in guards if not g.trivial]
    if any(g.impossible for g in guards) or 0 in extents.values():
        return None
    s = _System(out, extents)
    s.intervals = {f"#{label}": (0, n - 1) for label, n in extents.items()}
    s.conditions = [g for g in guards if isinstance(g, Constraint) and not g.equality]
    if not _solved(b, s, factors, guards) or not _tightened(s):
        return None
    while _banded(s):
        if not _tightened(s):
            return None
    return _read(b, s, factors)


# --- equalities -----------------------------------------------------------------------------------


def _solved(b: Builder, s: _System, factors: Sequence[SlotWord], guards: Sequence[Guard]) -> bool:
    """Solve equalities, for summed labels first. False where there is no solution."""
    chosen = {f"#{word[-1]}" for slot, word in factors if slot in b.selections}
    forms = _equalities(s, guards)
    outer = {name for label in s.out for name in s.value(label).names}
    found = _solution(s, forms, outer, chosen)
    if found.guards:  # what the result's labels must satisfy is solved first
        if any(g.impossible for g in found.guards):
            return False
        needed = _equalities(s, found.guards)
        outside = _solution(s, needed, set(), chosen)
        if any(g.impossible for g in outside.guards):
            return False
        values = _put(s, outside)
        outer = {name for label in s.out for name in s.value(label).names}
        found = _solution(s, [form.substitute(values) for form in forms], outer, chosen)
    _put(s, found)
    return True


def _number(name: str) -> int:
    return int(name[1:])


def _equalities(s: _System, guards: Iterable[Guard]) -> list[Affine]:
    """Forms that are zero; those that are divisible less a multiple of a new label."""
    forms = []
    for g in guards:
        if isinstance(g, Congruence):
            name = s.new()
            low, high = s.reach(g.form)
            s.intervals[name] = -(-low // g.modulus), high // g.modulus
            forms.append(g.form - Affine.of(name) * g.modulus)
        elif g.equality:
            forms.append(g.form)
    return forms


def _solution(s: _System, forms: list[Affine], outer: set[str], chosen: set[str]) -> Equations:
    """The solution for labels that are not in `outer`; short ones stay free, if they can."""
    names = {name for form in forms for name in form.names} - outer
    given = {f"#{label}" for label in s.extents}
    order = sorted(names, key=lambda n: (n in given, n in chosen, -s.intervals[n][1], _number(n)))
    return solve_equations(forms, order)


def _put(s: _System, found: Equations) -> dict[str, Affine]:
    """Put solutions in place of labels."""
    unknowns = {name for name, _ in found.values}
    names = {name: Affine.of(s.new()) for name in found.labels if name not in unknowns}
    values = {}
    for name, q in found.values:
        if name not in found.labels:
            q = q.substitute(names)
            assert q.divisor == 1
            values[name] = q.form
    s.substitute(values)
    return values


# --- intervals ------------------------------------------------------------------------------------


def _free(s: _System) -> list[str]:
    """Labels that values are made of, or that were not replaced."""
    names = {name for label in s.extents for name in s.value(label).names}
    return sorted(names, key=_number)


def _tightened(s: _System) -> bool:
    """Shorten intervals by the conditions; drop those that hold. False where nothing is left."""
    for name in _free(s):
        if name not in s.intervals and not _bounded(s, name):
            return False
    for _ in range(ROUNDS):
        before = dict(s.intervals)
        for c in s.conditions:
            for name, a in c.form.terms:
                low, high = s.intervals[name]
                most = s.reach(c.form - Affine.of(name) * a)[1]
                if a > 0:
                    low = max(low, -(most // a))
                else:
                    high = min(high, most // -a)
                s.intervals[name] = low, high
                if low > high:
                    return False
        if s.intervals == before:
            break
    if any(c.impossible for c in s.conditions):
        return False
    s.conditions = sorted({c for c in s.conditions if s.reach(c.form)[0] < 0})
    return True


def _bounded(s: _System, name: str) -> bool:
    """The interval of a new label, by the conditions on those that it stands for."""
    known = [
        c
        for other, (low, high) in s.intervals.items()
        for c in (Constraint(Affine.of(other) - low), Constraint(high - Affine.of(other)))
    ]
    found = integer_range(System((*known, *s.conditions)), name)
    if found is None:
        return False
    low, high = found
    assert low is not None
    assert high is not None
    s.intervals[name] = low, high
    return True


def _banded(s: _System) -> bool:
    """Replace a label of the result by its distance from others, where that takes few values."""
    outer = {name for label in s.out for name in s.value(label).names}
    best: tuple[int, str, Affine, IndexRange] | None = None
    for c in s.conditions:
        part = Affine(tuple(t for t in c.form.terms if t[0] in outer))
        if len(part.terms) < 2:
            continue
        low = -s.reach(c.form - part)[1]
        for d in s.conditions:
            other = Affine(tuple(t for t in d.form.terms if t[0] in outer))
            if other + part != Affine():
                continue
            high = s.reach(d.form - other)[1]
            count = high - low + 1
            for name, a in part.terms:
                first, last = s.intervals[name]
                if abs(a) == 1 and NARROW * count <= last - first + 1:
                    option = (count, name, part * a, _signed(low, high, a))
                    if best is None or option[:2] < best[:2]:
                        best = option
    if best is None:
        return False
    _, name, part, interval = best
    new = s.new()
    s.intervals[new] = interval
    s.substitute({name: Affine.of(new) - (part - Affine.of(name))})
    return True


def _signed(low: int, high: int, sign: int) -> IndexRange:
    return (low, high) if sign > 0 else (-high, -low)


# --- reading --------------------------------------------------------------------------------------


def _read(b: Builder, s: _System, factors: Sequence[SlotWord]) -> Opened:
    """Operands as views over the free labels, and what is left of the conditions as masks."""
    start = {name: Affine.of(name) + low for name, (low, _) in s.intervals.items()}
    ends = {name: s.intervals[name] for name in _free(s)}
    extents = {_number(name): high - low + 1 for name, (low, high) in ends.items()}
    kept = {c.form: c for c in s.conditions}
    found: list[SlotWord] = []
    for slot, word in factors:
        for label in word:
            _dropped(kept, s.value(label), s.extents[label])
        places = [s.value(label).substitute(start) for label in word]
        found.append(_window(b, slot, places, extents))
    for label in s.out:  # entries that have no place in the result are not written
        _dropped(kept, s.value(label), s.extents[label])
    found += _masks(b, [Constraint(form.substitute(start)) for form in kept], extents)
    forms = tuple([s.value(label).substitute(start) for label in s.out])
    core = tuple(dict.fromkeys([_number(n) for form in forms for n in form.names]))
    plain = all(
        form == Affine.of(form.names[0]) and extents[_number(form.names[0])] == s.extents[label]
        for form, label in zip(forms, s.out, strict=True)
        if form.names
    )
    plain = plain and all(form.names for form in forms) and len(core) == len(forms)
    if plain:
        return Opened(found, extents, core, None)
    spelled = [
        (form.constant, tuple([form.coefficient(f"#{label}") for label in core])) for form in forms
    ]
    where = Placement(tuple([extents[label] for label in core]), tuple(spelled))
    return Opened(found, extents, core, where)


def _dropped(kept: dict[Affine, Constraint], form: Affine, extent: int) -> None:
    """Leave out that a form is inside an extent."""
    for side in (form, extent - 1 - form):
        kept.pop(Constraint(side).form, None)


def _window(b: Builder, slot: int, forms: Sequence[Affine], extents: Mapping[int, int]) -> SlotWord:
    """An operand read at affine places of its axes."""
    shape = b.shapes[slot]
    names = [form.names[0] if form.names else "" for form in forms]
    whole = all(
        name and form == Affine.of(name) and extents[_number(name)] == n
        for name, form, n in zip(names, forms, shape, strict=True)
    )
    if whole:
        return slot, tuple([_number(name) for name in names])
    if slot in b.selections:
        slot = written(b, slot)
    ends = [_ends(form, extents) for form in forms]
    margins = tuple([
        (max(0, -low), max(0, high - n + 1)) for (low, high), n in zip(ends, shape, strict=True)
    ])  # fmt: skip
    if any(margin != (0, 0) for margin in margins):
        slot = padded(b, slot, margins)
        forms = [form + before for form, (before, _) in zip(forms, margins, strict=True)]
    word = tuple(dict.fromkeys([_number(n) for form in forms for n in form.names]))
    sizes = tuple([extents[label] for label in word])
    params = tuple([
        (form.constant, tuple([form.coefficient(f"#{label}") for label in word])) for form in forms
    ])  # fmt: skip
    axes = tuple([-1 - k for k in range(len(forms))])
    view = b.emit("window", (slot,), sizes, (axes, word), params)
    b.windows[view] = slot
    return view, word


def _ends(form: Affine, extents: Mapping[int, int]) -> IndexRange:
    low = high = form.constant
    for name, c in form.terms:
        reach = c * (extents[_number(name)] - 1)
        low, high = low + min(0, reach), high + max(0, reach)
    return low, high


def padded(b: Builder, slot: int, margins: tuple[IndexRange, ...]) -> int:
    """An array within zeros."""
    shape = tuple([
        n + before + after for n, (before, after) in zip(b.shapes[slot], margins, strict=True)
    ])  # fmt: skip
    word = tuple(range(len(shape)))
    return b.emit("pad", (b.floating(slot),), shape, (word, word), margins)


def _masks(
    b: Builder, conditions: Sequence[Constraint], extents: Mapping[int, int]
) -> list[SlotWord]:
    """Arrays of zeros and ones for conditions, those on the same labels as one."""
    groups: dict[Word, list[Constraint]] = {}
    for c in sorted(conditions):
        word = tuple(sorted([_number(n) for n in c.form.names]))
        groups.setdefault(word, []).append(c)
    found = []
    for word, members in groups.items():
        names = {f"#{label}": f"#{axis}" for axis, label in enumerate(word)}
        shape = tuple([extents[label] for label in word])
        params = (INDICATOR, shape, tuple([c.substitute(names) for c in members]), ())
        axes = tuple(range(len(word)))
        flops = prod(shape) * len(members)
        key = (INDICATOR.name, repr(params[1:]))
        slot = b.emit("kernel", (), shape, (axes,), params, key, flops)
        found.append((slot, word))
    return found


def placed(b: Builder, x: SlotWord, where: Placement, shape: Word, onto: int = -1) -> int:
    """The entries of an array at their places in zeros, or added to those of another array."""
    slot, word = x if x[0] >= 0 else (b.number(1.0), ())
    slot = b.aligned(b.floating(written(b, slot)), word, tuple(range(len(where.counts))))
    kind, args = ("place", (slot,)) if onto < 0 else ("place_add", (onto, slot))
    words = [tuple(range(len(b.shapes[a]))) for a in args[:-1]]
    own = tuple([-1 - k for k in range(len(b.shapes[slot]))])
    found = b.emit(kind, args, shape, (*words, own, tuple(range(len(shape)))), where)
    if onto < 0:
        b.placements[found] = x, where
    return found
