"""Bounds and subscripts of the index language: integers made of indices and dimensions.

A bound is a maximum of minima of affine forms, each perhaps over a number and rounded down. As a
condition on an index it is a disjoint union of systems of affine inequalities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product

from ...graph.extent_forms import floor_divided, least, times
from ...integers.affine import Affine, Constraint
from ...integers.polyhedra import System, feasible
from ...ops.indicator import labels_among
from ...support.errors import ParseError
from ...support.records import NamedTuple
from ...support.trampoline import Steps, run
from ..reading.tree import Node
from .grammar import IndexTree

#: Affine forms in one bound.
MAX_FORMS = 32


class Floor(NamedTuple):
    """A form over a positive number, rounded down."""

    form: Affine
    divisor: int = 1

    def plain(self) -> Floor:
        """The same without a divisor, where it is one of a form in dimensions."""
        if self.divisor > 1 and _without_labels(self.form):
            return Floor(floor_divided(self.form, self.divisor))
        return self

    def below(self, x: Affine) -> Constraint:
        """x is at least this."""
        return Constraint(x * self.divisor - self.form + (self.divisor - 1))

    def above(self, x: Affine) -> Constraint:
        """x is at most this."""
        return Constraint(self.form - x * self.divisor)


#: The maximum of the minima of forms.
Forms = tuple[tuple[Floor, ...], ...]


class IntegerBound(NamedTuple):
    """A maximum of minima of forms, over a number; that quotient is not rounded yet."""

    forms: Forms
    under: int = 1

    @property
    def single(self) -> Floor | None:
        return self.forms[0][0] if len(self.forms) == len(self.forms[0]) == 1 else None

    @property
    def affine(self) -> Affine | None:
        """The form, where this is one and nothing is divided."""
        one = self.single
        return one.form if one and one.divisor == self.under == 1 else None

    @property
    def in_dimensions(self) -> Affine | None:
        """The form in dimensions, with minima of several; None where there is an index."""
        plain = [[f.plain() for f in floors] for floors in self.forms]
        every = [f for floors in plain for f in floors]
        free = all(f.divisor == 1 and _without_labels(f.form) for f in every)
        if self.under != 1 or not free:
            return None
        return -_least([-_least([f.form for f in floors]) for floors in plain])

    @property
    def joined(self) -> IntegerBound:
        """The same as one form, where it is one in dimensions."""
        form = self.in_dimensions
        return self if form is None else integer_bound(form)


def _least(forms: Sequence[Affine]) -> Affine:
    """The least of forms; what all of them add stands outside of the minimum."""
    common = min([form.constant for form in forms])
    return least([form - common for form in forms]) + common


def integer_bound(form: Affine | int) -> IntegerBound:
    """An affine form as a bound."""
    return IntegerBound(((Floor(Affine.of(form)),),))


class NotAffine(Exception):
    """The node at `place` is no integer of the form that bounds have; `why` says what it is."""

    def __init__(self, place: int, why: str) -> None:
        super().__init__(why)
        self.place, self.why = place, why


class Integers:
    """Reads nodes of a tree as integers.

    Attributes
    ----------
    forms : mapping
        Every index as an affine form in labels, by its position in the tree.
    dimensions : set of str
    """

    def __init__(self, tree: IndexTree, dimensions: set[str]) -> None:
        self.tree = tree
        self.dimensions = dimensions
        self.forms: dict[int, Affine] = {}
        self.rules: dict[str, Callable[[int, Node], Steps]] = {
            "prefix": self.prefix,
            "infix": self.infix,
            "call": self.call,
        }

    def bound(self, place: int) -> IntegerBound:
        """A bound. ParseError where it is none."""
        try:
            found = run(self.read(place))
            if found.under != 1:
                raise NotAffine(place, "a quotient is rounded: floor(a/b) or ceil(a/b)")
        except NotAffine as error:
            raise self.error(error) from None
        assert isinstance(found, IntegerBound)
        return found

    def affine(self, place: int) -> Affine | None:
        """An affine form, None where the node is none."""
        try:
            found: IntegerBound = run(self.read(place))
        except NotAffine:
            return None
        return found.affine

    def error(self, error: NotAffine) -> ParseError:
        node = self.tree.nodes[error.place]
        wanted = "bounds and subscripts are affine in indices and dimensions"
        if node.kind == "name" and self.tree.in_subscript(node):
            wanted = f"a sum over it is written sum[{node.name}](…), an array f[{node.name}] = …"
        return self.tree.error(f"{error.why}; {wanted}", node.start)

    def not_affine(self, place: int) -> str:
        """The first subscript that is no affine form in an index, as it is written; or nothing."""
        every = Integers(self.tree, self.dimensions)
        every.forms = {k: Affine.of(f"#{k}") for k in range(len(self.tree.indices))}
        mine = [n.start for n in self.tree.nodes if n.kind == "index" and n.indices[0] == place]
        for node in self.tree.nodes:
            for arg in node.args if node.kind == "access" else ():
                sub = self.tree.nodes[arg]
                if any(sub.start <= at < sub.end for at in mine) and every.affine(arg) is None:
                    return self.tree.source(arg)
        return ""

    # --- nodes ------------------------------------------------------------------------------------

    def read(self, place: int) -> Steps:
        node = self.tree.nodes[place]
        if node.kind == "number" and node.name.isdecimal():
            return integer_bound(int(node.name))
        if node.kind == "index":
            return integer_bound(self.forms[node.indices[0]])
        if node.kind == "name" and node.name in self.dimensions:
            return integer_bound(Affine.of(node.name))
        if node.kind in self.rules:
            found: IntegerBound = yield self.rules[node.kind](place, node)
            if sum(map(len, found.forms)) > MAX_FORMS:
                raise NotAffine(place, f"more than {MAX_FORMS} forms in one bound")
            return found
        shown = self.tree.source(place)
        what = "a dimension or an index" if node.kind == "name" else "an integer"
        raise NotAffine(place, f"`{shown}` is not {what}")

    def prefix(self, place: int, node: Node) -> Steps:
        if node.name == "~":
            raise NotAffine(place, "a condition is no integer")
        value: IntegerBound = yield self.read(node.args[0])
        return self.times(place, value, -1) if node.name == "-" else value

    def infix(self, place: int, node: Node) -> Steps:
        if node.name not in ("+", "-", "*", "/"):
            raise NotAffine(place, f"no integer is made by {node.name}")
        left: IntegerBound = yield self.read(node.args[0])
        right: IntegerBound = yield self.read(node.args[1])
        if node.name in ("+", "-"):
            return self.sum(
                place, left, right if node.name == "+" else self.times(place, right, -1)
            )
        if node.name == "*" and constant_value(left) is not None:
            left, right = right, left
        if node.name == "*" and any(map(_in_dimensions, (left, right))):
            one, two = left.affine, right.affine
            if one is not None and two is not None:
                return integer_bound(times(one, two))
        number = constant_value(right)
        if number is None:
            raise NotAffine(place, f"`{self.tree.source(place)}` is not affine")
        if node.name == "*":
            return self.times(place, left, number)
        if number == 0:
            raise NotAffine(place, "a division by zero")
        left = self.times(place, left, 1 if number > 0 else -1)
        return IntegerBound(left.forms, left.under * abs(number))

    def call(self, place: int, node: Node) -> Steps:
        if node.name not in ("floor", "ceil", "max", "min"):
            raise NotAffine(place, f"{node.name} is not for integers")
        values: list[IntegerBound] = []
        for arg in node.args:
            values.append((yield self.read(arg)))
        if node.name in ("floor", "ceil"):
            if len(values) != 1:
                raise NotAffine(place, f"{node.name} takes one argument")
            return self.rounded(place, values[0], node.name == "ceil")
        if not values:
            raise NotAffine(place, f"{node.name} of nothing")
        under = 1
        for value in values:
            under *= value.under
        scaled = [self.times(place, v, under // v.under).forms for v in values]
        if node.name == "max":
            return IntegerBound(tuple([least for forms in scaled for least in forms]), under)
        return IntegerBound(self.crossed(place, scaled), under)

    # --- arithmetic -------------------------------------------------------------------------------

    def crossed(self, place: int, several: Sequence[Forms]) -> Forms:
        """The minimum of maxima of minima, as a maximum of minima."""
        size = 1
        for forms in several:
            size *= len(forms)
        if size > MAX_FORMS:
            raise NotAffine(place, f"more than {MAX_FORMS} forms in one bound")
        return tuple([
            tuple(dict.fromkeys([f for least in chosen for f in least]))
            for chosen in product(*several)
        ])  # fmt: skip

    def sum(self, place: int, a: IntegerBound, b: IntegerBound) -> IntegerBound:
        under = a.under * b.under
        left, right = self.times(place, a, b.under).forms, self.times(place, b, a.under).forms
        forms = tuple([
            tuple([self.added(place, f, g) for f in one for g in two])
            for one in left for two in right
        ])  # fmt: skip
        return IntegerBound(forms, under)

    def added(self, place: int, f: Floor, g: Floor) -> Floor:
        if f.divisor > 1 and g.divisor > 1:
            raise NotAffine(place, "two roundings are added")
        if f.divisor == 1:
            f, g = g, f
        return Floor(f.form + g.form * f.divisor, f.divisor)

    def times(self, place: int, a: IntegerBound, factor: int) -> IntegerBound:
        if factor == 1:
            return a
        if factor == 0:
            return integer_bound(0)
        size = abs(factor)
        if size > 1 and any(f.divisor > 1 for least in a.forms for f in least):
            raise NotAffine(place, "a multiple of a rounded quotient")
        forms = tuple([tuple([Floor(f.form * size, f.divisor) for f in x]) for x in a.forms])
        if factor < 0:  # the minimum of maxima of the negated forms
            forms = self.crossed(place, [tuple([(negated(f),) for f in x]) for x in forms])
        return IntegerBound(forms, a.under)

    def rounded(self, place: int, a: IntegerBound, up: bool) -> IntegerBound:
        def each(f: Floor) -> Floor:
            form = f.form + f.divisor * (a.under - 1) * up
            return Floor(form, f.divisor * a.under).plain()

        return IntegerBound(tuple([tuple([each(f) for f in least]) for least in a.forms]))


def negated(f: Floor) -> Floor:
    """The negative of a quotient rounded down is one of the negative rounded up."""
    return Floor(-f.form + (f.divisor - 1), f.divisor)


def _in_dimensions(value: IntegerBound) -> bool:
    """Is an integer one form in dimensions?"""
    form = value.affine
    return form is not None and _without_labels(form)


def _without_labels(form: Affine) -> bool:
    return not labels_among(form.names)


def constant_value(value: IntegerBound) -> int | None:
    """The number that an integer is."""
    form = value.affine
    return form.constant if form is not None and not form.terms else None


# --- ranges ---------------------------------------------------------------------------------------


class RangePiece(NamedTuple):
    """The values between the greatest lower and the least upper bound, where conditions hold."""

    lower: tuple[Floor, ...]
    upper: tuple[Floor, ...]
    conditions: tuple[Constraint, ...]


#: What an index is called in the constraints of its own range.
OWN_INDEX = Affine.of("?")


def range_pieces(
    low: IntegerBound, high: IntegerBound, known: Iterable[Constraint]
) -> list[RangePiece]:
    """The disjoint ranges whose union is all values between two bounds."""
    system = System(tuple(known))
    found: list[list[tuple[Constraint, Floor | None, bool]]] = [[]]
    clauses = [[[(f, False)] for f in least] for least in low.forms]
    clauses.append([[(f, True) for f in least] for least in high.forms])
    for clause in clauses:
        parts = _disjoint(clause)
        joined = [one + two for one in found for two in parts]
        if len(joined) > 1:
            joined = [p for p in joined if feasible(system & [c for c, _, _ in p])]
        found = joined
    return [
        RangePiece(
            tuple(dict.fromkeys([f for _, f, above in p if f is not None and not above])),
            tuple(dict.fromkeys([f for _, f, above in p if f is not None and above])),
            tuple([c for c, f, _ in p if f is None]),
        )
        for p in found
    ]


def _disjoint(
    clause: Sequence[Sequence[tuple[Floor, bool]]],
) -> list[list[tuple[Constraint, Floor | None, bool]]]:
    """Alternatives as systems that do not overlap: each one less those before it."""
    found: list[list[tuple[Constraint, Floor | None, bool]]] = []
    rest: list[list[tuple[Constraint, Floor | None, bool]]] = [[]]
    for alternative in clause:
        own = [
            (f.above(OWN_INDEX) if above else f.below(OWN_INDEX), f, above)
            for f, above in alternative
        ]
        found += [[*r, *own] for r in rest]
        rest = [
            [*r, *own[:k], (Constraint(-own[k][0].form - 1), None, False)]
            for r in rest
            for k in range(len(own))
        ]
    return found
