"""The iteration space of the index language: a label for every index, and constraints on these.

An index is a label, which counts from 0 to an extent less 1, plus an affine form: where its range
starts. Bounds that are no box of labels are constraints besides.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...graph.extent_forms import facts, floor_divided, is_nonnegative, never_less, signs
from ...graph.extents import Extent, extent_from, form_of
from ...integers.affine import Affine, Constraint
from ...integers.boxes import index
from ...integers.polyhedra import (
    NEVER,
    System,
    SystemLimitError,
    implied,
    integer_point,
    integer_range,
)
from ...ops.indicator import label_of, labels_among
from ...support.records import NamedTuple
from .integers import OWN_INDEX, Floor, RangePiece

#: Constraints on indices that hold where a part of a text is read.
Context = tuple[Constraint, ...]


class Placed(NamedTuple):
    """An index as an affine form in labels, its own label, and the constraints that remain."""

    form: Affine
    label: int
    conditions: Context


class IterationSpace:
    """The labels of one text and their extents; what follows from these and from constraints."""

    def __init__(self) -> None:
        self.extents: dict[int, Extent] = {}

    def new(self, extent: Extent) -> int:
        label = len(self.extents)
        self.extents[label] = extent
        return label

    # --- what is known ----------------------------------------------------------------------------

    def related(self, forms: Iterable[Affine], context: Context) -> Context:
        """The constraints on dimensions alone, or connected to the labels of forms."""
        names = labels_among(n for form in forms for n in form.names)
        waiting = [(c, labels_among(c.form.names)) for c in context]
        found = [c for c, own in waiting if not own]
        while names:
            near = [(c, own) for c, own in waiting if own & names]
            if not near:
                break
            waiting = [(c, own) for c, own in waiting if not own & names]
            found += [c for c, _ in near]
            names |= {n for _, own in near for n in own}
        return tuple(found)

    def known(self, forms: Sequence[Affine], context: Context) -> System:
        """The system of the names in forms: boxes of labels, constraints, no dimension below 0."""
        related = self.related(forms, context)
        names = {n for form in [*forms, *[c.form for c in related]] for n in form.names}
        box: list[Constraint] = []
        dimensions: set[str] = set()
        for name in sorted(names):
            label = label_of(name)
            if label is None:
                dimensions.add(name)
                continue
            extent = form_of(self.extents[label])
            dimensions.update(extent.names)
            box += [Constraint(index(label)), Constraint(extent - 1 - index(label))]
        box += signs(dimensions)
        box += facts(sorted(dimensions))
        return System((*box, *related))

    def holds(self, c: Constraint, context: Context) -> bool:
        """Is a condition known to hold?"""
        if c.trivial or any(known.impossible for known in context):
            return True
        least = self.corner(c.form, -1)
        if is_nonnegative(least):
            return True
        near = [c.form]
        try:
            if implied(c, self.known(near, context)):
                return True
            whole = [*near, *[known.form for known in context]]
            return bool(context) and implied(c, self.known(whole, context))
        except SystemLimitError:
            return False

    def possible(self, context: Context) -> bool:
        """Can all conditions hold together? True where it is not known."""
        try:
            return integer_point(self.known([c.form for c in context], context)) is not None
        except SystemLimitError:
            return True

    def span(self, form: Affine, context: Context) -> tuple[int, int] | None:
        """The least and the greatest value of a form without dimensions; None if it has none."""
        low, high = self.corner(form, -1), self.corner(form, 1)
        if not self.related([form], context):
            empty = any(self.extents[label_of(n) or 0] == 0 for n in form.names)
            return None if empty else (low.constant, high.constant)
        found = integer_range(self.known([form], context), form)
        return None if found is None else (found[0] or 0, found[1] or 0)

    def corner(self, form: Affine, side: int) -> Affine:
        """The greatest (or, with side -1, the least) value of a form in the box of its labels."""
        total = Affine((), form.constant)
        for name, c in form.terms:
            labels = labels_among([name])
            if not labels:
                total += Affine.of(name) * c
            elif c * side > 0:
                ends = {f"#{label}": form_of(self.extents[label]) - 1 for label in labels}
                total += Affine.of(name).substitute(ends) * c
        return total

    # --- ranges -----------------------------------------------------------------------------------

    def whole(self, low: Affine, extent: Extent) -> Placed:
        """An index that runs over a box."""
        label = self.new(extent)
        return Placed(index(label) + low, label, () if extent else (NEVER,))

    def place(self, piece: RangePiece, context: Context) -> Placed:
        """An index between bounds in others."""
        start, extent = self.start(piece)
        label = self.new(extent)
        form = index(label) + start
        if extent == 0:
            return Placed(form, label, (NEVER,))
        asked = [f.below(form) for f in piece.lower] + [f.above(form) for f in piece.upper]
        asked += [c.substitute({OWN_INDEX.names[0]: form}) for c in piece.conditions]
        kept: list[Constraint] = []
        for c in dict.fromkeys(asked):
            if not self.holds(c, context):
                kept.append(c)
        return Placed(form, label, tuple(kept))

    def start(self, piece: RangePiece) -> tuple[Affine, Extent]:
        """Where the label of an index starts, and how far it goes.

        A narrow band is counted from its lower bound; other ranges from a bound in dimensions.
        """
        bands = [
            (high.form - low.form + 1, low.form)
            for low in piece.lower for high in piece.upper
            if low.divisor == high.divisor == 1 and _labels(low.form)
        ]  # fmt: skip
        widths = [(w.constant, form) for w, form in bands if not w.terms]
        if widths:
            width, form = min(widths)
            return form, max(0, width)
        fixed = [f.form for f in piece.lower if f.divisor == 1 and not _labels(f.form)]
        if fixed:
            start = max(fixed, key=lambda form: (not form.terms, form.constant, form))
        else:
            start = min([self.limit(f, -1) for f in piece.lower], key=lambda f: (len(f.terms), f))
        ends = [(_labels(f.form), self.limit(f, 1) - start + 1) for f in piece.upper]
        _, end = min(ends, key=lambda found: (bool(found[1].terms), found[0], _size(found[1])))
        return start, extent_from(never_less(end))

    def limit(self, f: Floor, side: int) -> Affine:
        """The greatest or the least value of a rounded quotient, in dimensions."""
        return floor_divided(self.corner(f.form, side), f.divisor)


def _labels(form: Affine) -> bool:
    return bool(labels_among(form.names))


def _size(form: Affine) -> tuple[int, int, Affine]:
    """Of two extents, the one that is less for large dimensions."""
    return sum([c for _, c in form.terms]), form.constant, form
