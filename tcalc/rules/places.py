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


def _entry(e: Expr, axis: int, place: int) -> Expr | None:
    """e at one place of an axis, where numbers and conditions say what it is."""
    if isinstance(e, Const):
        return as_expr(e.value.take(place, axis))
    if isinstance(e, Add):
        terms = [_entry(term, axis, place) for term in e.args]
        found = [term for term in terms if term is not None]
        return add(found) if len(found) == len(terms) else None
    if isinstance(e, Einsum):
        label = e.out[axis]
        made = [_operand(op, word, label, place) for op, word in zip(e.args, e.labels, strict=True)]
        pairs = [pair for pair in made if pair is not None]
        if len(pairs) < len(made) or e.out.count(label) > 1:
            return None
        return _product(e, pairs, [k for k in e.out if k != label])
    guards = _guards(e)
    return None if guards is None else numeral(int(all(g.holds({AXIS: place}) for g in guards)))


def _operand(op: Expr, word: Labels, label: int, place: int) -> LabelledExpr | None:
    """An operand of a product at the place of a label."""
    if word.count(label) > 1:
        return None
    found = _entry(op, word.index(label), place) if label in word else op
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
        found = [_operand(op, word, label, place) or (op, word) for op, word in others]
        alone = label not in e.out and all(label not in word for _, word in found)
        if alone or any(new is not old for (new, _), (old, _) in zip(found, others, strict=True)):
            return _product(e, found if alone else [*found, pairs[k]], e.out)
    return None


rule(
    "entries-at-places", PLACES, lambda a: sum(eye(3)[0] * eye(3)[1]) * a, lambda a: 0 * a,
    "Einsum", _at_places, needs=[[INDICATOR.name]],
)  # fmt: skip
