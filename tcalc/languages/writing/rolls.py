"""Arrays with their entries shifted in a circle: two terms of a sum that are ``roll(x, 1)``."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

from ...graph.applications import apply, rewritten
from ...graph.factors import factors_of, indicates
from ...graph.nodes import Add, Einsum, Expr
from ...graph.normal import scale, terms_of, view
from ...graph.products import split_coef
from ...integers.affine import Constraint
from ...ops.indicator import conditions
from ...ops.joining import roll
from ...support.records import NamedTuple
from .gathers import as_strided_view, unit
from .padded import as_padded


class Roll(NamedTuple):
    """``roll(array, shift, axis)``."""

    array: Expr
    shift: int
    axis: int

    @property
    def given(self) -> list[str]:
        """What stands behind the array, as text."""
        return [str(self.shift), *([f"axis={self.axis}"] if self.array.ndim > 1 else [])]

    @property
    def expression(self) -> Expr:
        return roll(self.array, self.shift, self.axis)

    @property
    def turned(self) -> Roll | None:
        """That of the transposed matrix."""
        if self.array.ndim != 2:
            return None
        return Roll(view(self.array, (1, 0)), self.shift, 1 - self.axis)


def as_roll(node: Add) -> Roll | None:
    """The array that is shifted, and how far, if a sum is no more than that."""
    if len(node.args) != 2:
        return None
    found = (_shift(term) for term in node.args)
    return next((r for r in found if r is not None and _unchecked(r.expression, node)), None)


def with_rolls(node: Add) -> Sequence[Expr]:
    """The terms of a sum, those that are an array shifted in a circle as one."""
    terms = {id(term): term for term in node.args}
    rolls: list[tuple[int, Expr]] = []
    for term in node.args:
        if isinstance(term, Add) and (whole := as_roll(term)) is not None:
            rolls.append((-whole.shift, terms.pop(id(term))))
    for term in node.args if len(terms) > 2 else ():
        coef, plain = split_coef(term)
        found = _shift(plain) if id(term) in terms else None
        if found is None:
            continue
        whole_term = scale(found.expression, coef)
        parts = terms_of(whole_term)
        both = [key for part in parts for key, t in terms.items() if _unchecked(part, t)]
        if len(both) == 2:
            rolls.append((-found.shift, whole_term))
            terms = {key: t for key, t in terms.items() if key not in both}
    return [*terms.values(), *[whole for _, whole in sorted(rolls, key=itemgetter(0))]]


def _unchecked(one: Expr, other: Expr) -> bool:
    """Are two expressions one, but for what is said where an index leaves an axis?"""

    def plain(new: Expr, _: Expr) -> Expr:
        if not indicates(new) or not new.params[2]:
            return new
        return apply(new.op, params=(*new.params[:2], ()))

    first, second = rewritten([one, other], plain)
    return first is second


def _shift(term: Expr) -> Roll | None:
    """What a slice from one end, with as many zeros at the other, may be a term of."""
    if (unit := _shifted_unit(term)) is not None:
        return unit
    held = as_padded(term) if isinstance(term, Einsum) else None
    cut = None if held is None else as_strided_view(held.array)
    if held is None or cut is None or len(cut.perm) < cut.array.ndim:
        return None
    moved = [(axis, pair) for axis, pair in enumerate(held.widths) if pair != (0, 0)]
    array = view(view(cut.array, cut.perm), held.perm)
    if len(moved) != 1 or array.shape != term.shape:
        return None
    axis, (before, after) = moved[0]
    if not isinstance(before, int) or not isinstance(after, int) or (before and after):
        return None
    return Roll(array, before - after, held.perm.index(axis))


def _shifted_unit(term: Expr) -> Roll | None:
    """A unit matrix, of which most ones may be beside the diagonal."""
    labelled = factors_of(term).operands if isinstance(term, Einsum) else [(term, (0, 1))]
    rows = [(op.params, word) for op, word in labelled if indicates(op)]
    if term.ndim != 2 or len(set(term.shape)) > 1 or len(rows) < len(labelled):
        return None
    shift = 0
    for g in [g for params, word in rows for g in conditions(params, word)]:
        if not isinstance(g, Constraint) or not g.equality or len(g.form.terms) != 2:
            return None
        shift -= g.form.constant * (g.form.coefficient("#0") or -g.form.coefficient("#1"))
    return Roll(unit(term.shape[0]), shift, 0) if shift else None
