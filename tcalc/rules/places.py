"""Indices that a condition pins: entries of unit vectors, and of arrays of numbers."""

from __future__ import annotations

from collections.abc import Sequence

from ..graph.factors import LabelledExpr, indicates
from ..graph.nodes import Add, Const, Einsum, Expr, Labels
from ..graph.normal import add, einsum
from ..graph.products import numeral
from ..integers.affine import Constraint, Guard
from ..ops.arithmetic import as_expr, sum
from ..ops.diagonals import eye
from ..ops.indicator import INDICATOR
from .strategy import rule

PLACES, AXIS = "places", "#0"


def _guards(e: Expr) -> tuple[Guard, ...] | None:
    """The conditions on the index of a vector of zeros and ones, where they are on nothing else."""
    if not indicates(e) or e.ndim != 1:
        return None
    (extent,), guards, accesses = e.params
    plain = all({*guard.form.names} == {AXIS} for guard in guards)
    return guards if plain and isinstance(extent, int) and not accesses else None


def _pinned(e: Expr) -> int | None:
    """Where the unit vector e, [i == 2], is 1; None of anything else."""
    guards = _guards(e) or ()
    if len(guards) != 1 or not isinstance(guards[0], Constraint) or not guards[0].equality:
        return None
    place = -guards[0].form.constant
    return place if place in range(int(e.shape[0])) else None


class _Entries:
    """Entries of expressions at one place of an axis, each found once."""

    def __init__(self, place: int) -> None:
        self.place = place
        self._known: dict[tuple[int, int], Expr | None] = {}

    def at(self, e: Expr, axis: int) -> Expr | None:
        """e at the place of an axis, where numbers and conditions say what it is."""
        key = id(e), axis
        if key not in self._known:
            self._known[key] = self._found(e, axis)
        return self._known[key]

    def _found(self, e: Expr, axis: int) -> Expr | None:
        if isinstance(e, Const):
            return as_expr(e.value.take(self.place, axis))
        if isinstance(e, Add):
            terms: list[Expr] = []
            for term in e.args:
                found = self.at(term, axis)
                if found is None:
                    return None
                terms.append(found)
            return add(terms)
        if isinstance(e, Einsum):
            label, pairs = e.out[axis], list[LabelledExpr]()
            if e.out.count(label) > 1:
                return None
            for op, word in zip(e.args, e.labels, strict=True):
                pair = self.operand(op, word, label)
                if pair is None:
                    return None
                pairs.append(pair)
            return _product(e, pairs, [k for k in e.out if k != label])
        guards = _guards(e)
        here = {AXIS: self.place}
        return None if guards is None else numeral(int(all(g.holds(here) for g in guards)))

    def operand(self, op: Expr, word: Labels, label: int) -> LabelledExpr | None:
        """An operand of a product at the place of a label."""
        if word.count(label) > 1:
            return None
        found = self.at(op, word.index(label)) if label in word else op
        return None if found is None else (found, tuple([k for k in word if k != label]))


def _product(e: Einsum, pairs: list[LabelledExpr], out: Sequence[int]) -> Expr:
    """The product e of other operands, at some of its labels."""
    ops, words = [op for op, _ in pairs], [word for _, word in pairs]
    return einsum(ops, words, out, e.coef, dict(enumerate(e.extents)))


def _at_places(e: Expr) -> Expr | None:
    """A product with unit vectors, at the places of which other operands are known."""
    assert isinstance(e, Einsum)
    pairs = list(zip(e.args, e.labels, strict=True))
    for k, (unit, (label, *_)) in enumerate((op, word or (-1,)) for op, word in pairs):
        place = _pinned(unit)
        if place is None:
            continue
        others = [pair for j, pair in enumerate(pairs) if j != k]
        entries = _Entries(place)
        found = [entries.operand(op, word, label) or (op, word) for op, word in others]
        alone = label not in e.out and all(label not in word for _, word in found)
        if alone or any(new is not old for (new, _), (old, _) in zip(found, others, strict=True)):
            return _product(e, found if alone else [*found, pairs[k]], e.out)
    return None


rule(
    "entries-at-places", PLACES, lambda a: sum(eye(3)[0] * eye(3)[1]) * a, lambda a: 0 * a,
    "Einsum", _at_places, needs=[[INDICATOR.name]],
)  # fmt: skip
