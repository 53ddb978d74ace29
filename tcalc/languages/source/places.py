"""Products under conditions on indices, in names of dimensions: what is read and written where.

The solver is that of plans. A program is right for all extents, so a condition that is not known to
hold for all of them stays, and what then cannot be a strided view is left to arrays of conditions.
Known is what holds where there is anything to compute: no extent of the result is 0 (that of a
summed index may be, and the sum over nothing is 0), and what is checked when an expression is
evaluated, that accesses stay inside. A condition on dimensions alone that is not known is not
solved either.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from ...graph.extent_forms import floor_divided, never_larger, value_of
from ...graph.extents import NOMINAL, Extent, Shape, extent_from, extent_names, form_of
from ...integers.affine import Affine, Constraint, Guard, factors_of
from ...integers.boxes import Box, Interval, index, number, terms
from ...integers.smith import Equations
from ...ops.indicator import CheckedAccess
from ...support.records import NamedTuple, record

#: About what a dimension is that is taken off another one, as the length of a filter.
SHORT = 10

Word = tuple[int, ...]


class Undecided(Exception):
    """Whether a place is inside depends on the extents."""


@record()
class NamedBox(Box):
    """A box whose extents are forms in dimensions.

    Attributes
    ----------
    known : list of Affine
        Forms in dimensions that are not negative.
    least : dict
        The least that dimensions are known to be, where that is not 0.
    sizes : dict
        About what dimensions are: those are short that extents are others less.
    """

    known: list[Affine] = field(default_factory=list)
    least: dict[str, int] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)

    def suppose(self, accesses: Iterable[CheckedAccess], others: Iterable[Extent]) -> None:
        """Take it that there are entries, that accesses stay inside, and that extents exist."""
        self.intervals = {f"#{k}": (Affine(), n - 1) for k, n in self.extents.items()}
        mine = [self.extents[k] for k in self.out]
        # One that is others less may be 0 where dimensions are not.
        known = [n - 1 for n in mine if n.terms and n.constant >= 0]
        known += map(form_of, others)
        for form, extent, _ in accesses:
            low, high = self.reach(form)
            known += [end for end in (low, form_of(extent) - 1 - high) if end.terms]
        self.learn(known)
        for form in self.extents.values():
            for name, c in form.terms:
                if self.sizes.get(name) != SHORT:
                    self.sizes[name] = NOMINAL if c > 0 else SHORT

    def learn(self, forms: Iterable[Affine]) -> None:
        """Take it that forms in dimensions are not negative."""
        for form in forms:
            self.known.append(form)
            if len(form.terms) == 1 and form.terms[0][1] == 1:
                name = form.names[0]
                self.least[name] = max(self.least.get(name, 0), -form.constant)

    def larger(self, low: Affine, other: Affine) -> Affine:
        return other if self.never_negative(other - low) else low

    def smaller(self, high: Affine, other: Affine) -> Affine:
        return other if self.never_negative(high - other) else high

    def floor(self, bound: Affine, divisor: int) -> Affine:
        return bound if divisor == 1 else floor_divided(bound, divisor)

    def fixed(self, form: Affine) -> Affine:
        return form.without([name for name, _ in terms(form)])

    def never_negative(self, bound: Affine) -> bool:
        """Is it, where what is supposed holds?"""
        for form in (Affine(), *self.known):
            least = never_larger(bound - form)
            if least is not None and all(c > 0 for _, c in least.terms):
                end = least.constant + sum([c * self.smallest(name) for name, c in least.terms])
                if end >= 0:
                    return True
        return False

    def smallest(self, name: str) -> int:
        """The least value of a product of dimensions."""
        return math.prod([self.least.get(factor, 0) for factor in factors_of(name)])

    def about(self, bound: Affine) -> int:
        names = extent_names([extent_from(bound)])
        return value_of(bound, {n: self.sizes.get(n, NOMINAL) for n in names})

    def excess(self, form: Affine) -> Affine:
        """How far a form is above 0, or a number that is as much at least."""
        if self.never_negative(-form):
            return Affine()
        if self.never_negative(form):
            return form
        most = never_larger(-form)
        if most is None or most.terms or most.constant > 0:
            raise Undecided
        return -most

    def bounded(self, name: str) -> bool:
        """The interval of a new label, by conditions on it and labels with intervals."""
        ends: list[list[Affine]] = [[], []]
        for c in self.conditions:
            a, rest = c.form.coefficient(name), c.form.without([name])
            if a and all(other in self.intervals for other, _ in terms(rest)):
                most = self.reach(rest)[1]
                ends[a < 0].append(-self.floor(most, a) if a > 0 else self.floor(most, -a))
        if not all(ends):
            raise Undecided
        (low, *lows), (high, *highs) = ends
        for other in lows:
            low = self.larger(low, other)
        for other in highs:
            high = self.smaller(high, other)
        self.intervals[name] = low, high
        return True

    def _solution(self, forms: list[Affine], outer: set[str], late: set[str]) -> Equations:
        found = super()._solution(forms, outer, late)
        if any(not terms(g.form) for g in found.guards):
            raise Undecided
        return found

    def _put(self, found: Equations) -> dict[str, Affine]:
        if any(q.divisor != 1 and name not in found.labels for name, q in found.values):
            raise Undecided
        return super()._put(found)


class View(NamedTuple):
    """Entries of an array at places that are affine in the indices of a result.

    Attributes
    ----------
    starts : Shape
        For every axis of the array, the place of the first entry.
    steps : tuple of tuple of int
        For every axis of the array, how far each index of the result moves the place.
    shape : Shape
        Of the result.
    """

    starts: Shape
    steps: tuple[tuple[int, ...], ...]
    shape: Shape


class Window(NamedTuple):
    """What an operand is read as: within so many zeros before and behind, a view, its labels."""

    margins: tuple[tuple[Extent, Extent], ...]
    whole: Shape
    view: View
    word: Word


class Opened(NamedTuple):
    """A product without indicators, and where its entries stand.

    Attributes
    ----------
    windows : list of Window
        The operands.
    masks : list of (guards, word)
        Conditions that are left over, on axes that have these labels.
    extents : mapping
        Of all labels.
    core : tuple of int
        The labels of the result.
    where : View or None
        Where entries stand among zeros; None: everywhere, in order.
    whole : Shape
        Of these, of which the result are the first ones.
    """

    windows: list[Window]
    masks: list[tuple[list[Constraint], Word]]
    extents: Mapping[int, Extent]
    core: Word
    where: View | None
    whole: Shape


def opened(
    shapes: Sequence[Shape],
    words: Sequence[Word],
    guards: Sequence[Guard],
    accesses: Iterable[CheckedAccess],
    out: Word,
    extents: Mapping[int, Extent],
    others: Iterable[Extent] = (),
) -> Opened | None:
    """The product of arrays under conditions on its labels; None where that is no strided view.

    Parameters
    ----------
    shapes, words : sequence
        Of the operands.
    guards : sequence of Guard
        In `index(label)` and dimensions.
    accesses : iterable of CheckedAccess
        In the same: what is known to stay inside.
    out : tuple of int
        Distinct labels.
    extents : mapping
        Of all labels.
    others : iterable of Extent
        Of other arrays.
    """
    accesses = list(accesses)
    if any(_multiplied(item.form) for item in (*guards, *accesses)):
        return None
    for phases in (True, False):
        box = NamedBox(out, {k: form_of(n) for k, n in extents.items()}, phases=phases)
        try:
            box.suppose(accesses, others)
            found = _opened(box, shapes, words, guards)
        except Undecided:
            found = None
        if found is not None:
            return found
    return None


def _opened(
    box: NamedBox, shapes: Sequence[Shape], words: Sequence[Word], guards: Sequence[Guard]
) -> Opened | None:
    """The product in a box of which all is known but the conditions."""
    if not box.solved(guards):
        return None
    found = box.places(words)
    if not all(map(box.never_negative, found.extents.values())):
        return None
    if not all(terms(c.form) for c in found.masks):
        return None
    box.learn([n - 1 for n in found.extents.values() if n.terms])  # else nothing is summed
    free = {k: extent_from(n) for k, n in found.extents.items()}
    windows = [
        _window(box, shape, forms, found.extents)
        for shape, forms in zip(shapes, found.words, strict=True)
    ]
    where, whole = None, [box.extents[label] for label in box.out]
    if found.out is not None:
        for k, form in enumerate(found.out):
            low, high = _reach(form, found.extents)
            if not box.never_negative(low):
                return None
            whole[k] += box.excess(high + 1 - whole[k])
        where = _view(found.out, found.core, free)
    groups: dict[Word, list[Constraint]] = {}
    for c in sorted(found.masks):
        word = tuple(sorted([number(name) for name, _ in terms(c.form)]))
        groups.setdefault(word, []).append(c)
    masks = []
    for word, members in groups.items():
        names = {f"#{label}": index(axis) for axis, label in enumerate(word)}
        masks.append(([c.substitute(names) for c in members], word))
    return Opened(windows, masks, free, found.core, where, tuple(map(extent_from, whole)))


def _multiplied(form: Affine) -> bool:
    """Is an index multiplied by a dimension?"""
    return any("#" in name and "*" in name for name in form.names)


def _window(
    box: NamedBox, shape: Shape, forms: Sequence[Affine], extents: Mapping[int, Affine]
) -> Window:
    """An operand read at affine places of its axes."""
    margins, whole, inside = [], [], []
    for extent, form in zip(shape, forms, strict=True):
        low, high = _reach(form, extents)
        before, after = box.excess(-low), box.excess(high - form_of(extent) + 1)
        margins.append((extent_from(before), extent_from(after)))
        whole.append(extent_from(form_of(extent) + before + after))
        inside.append(form + before)
    word = tuple(dict.fromkeys([number(n) for form in inside for n, _ in terms(form)]))
    free = {label: extent_from(n) for label, n in extents.items()}
    return Window(tuple(margins), tuple(whole), _view(inside, word, free), word)


def _view(forms: Sequence[Affine], word: Word, extents: Mapping[int, Extent]) -> View:
    starts = [extent_from(form.without([name for name, _ in terms(form)])) for form in forms]
    steps = [tuple([form.coefficient(f"#{label}") for label in word]) for form in forms]
    return View(tuple(starts), tuple(steps), tuple([extents[label] for label in word]))


def _reach(form: Affine, extents: Mapping[int, Affine]) -> Interval:
    """The least and the greatest value of a form in labels that start at 0."""
    low = high = form.without([name for name, _ in terms(form)])
    for name, c in terms(form):
        reach = (extents[number(name)] - 1) * c
        low, high = (low, high + reach) if c > 0 else (low + reach, high)
    return low, high
