"""Conditions on indices as text: those that the bounds around them do not say already."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_

from ...graph.extents import ONE
from ...graph.factors import indicates
from ...graph.nodes import Apply, Einsum, Expr
from ...graph.normal import einsum
from ...graph.products import zeros_node
from ...integers.affine import Affine, Constraint, Guard
from ...integers.elimination import Range
from ...integers.polyhedra import System, SystemLimitError, implied
from ...ops.indicator import conditions
from ...support.records import NamedTuple
from .iteration_space import Context
from .print_sums import substituted


class IndexScope(NamedTuple):
    """The indices that are bound where an entry is written, and the constraints on them."""

    names: tuple[str, ...] = ()
    context: Context = ()

    def inside(self, ranges: Sequence[Range], guards: Sequence[Guard] = ()) -> IndexScope:
        known = [c for r in ranges for c in r.constraints()]
        known += [g for g in guards if isinstance(g, Constraint)]
        return IndexScope((*self.names, *[r.name for r in ranges]), (*self.context, *known))


def conditions_at(e: Expr, subs: Sequence[Affine]) -> list[Guard] | None:
    """What must hold for an entry to be 1, where entries are 1 or 0 by conditions on indices."""
    e = as_indicators(e)
    if not _of_indicators(e):
        return None
    if indicates(e):
        return _placed(e, tuple(range(e.ndim)), dict(enumerate(subs)))
    assert isinstance(e, Einsum)
    places = dict(zip(e.out, subs, strict=True))
    pairs = zip(e.args, e.labels, strict=True)
    return [g for arg, word in pairs if indicates(arg) for g in _placed(arg, word, places)]


def _of_indicators(e: Expr) -> bool:
    """Is this an indicator, or a product of such?"""
    if not isinstance(e, Einsum):
        return indicates(e)
    plain = e.coef == ONE and not e.summed and len(set(e.out)) == e.ndim
    return plain and bool(e.args) and all(map(indicates, e.args))


def as_indicators(e: Expr) -> Expr:
    """The expression with indicators for what says that they are not 0."""
    if isinstance(e, Einsum):
        args = [as_indicators(arg) if isinstance(arg, Apply) else arg for arg in e.args]
        same = all(map(is_, args, e.args))
        return e if same else einsum(args, e.labels, e.out, e.coef, dict(enumerate(e.extents)))
    if isinstance(e, Apply) and e.op.name == "not_equal" and e.args[1] is zeros_node(e.shape):
        inner = as_indicators(e.args[0])
        return inner if _of_indicators(inner) else e
    return e


def _placed(e: Apply, word: Sequence[int], places: dict[int, Affine]) -> list[Guard]:
    names = {f"#{label}": places[label] for label in word}
    return [substituted(g, names) for g in conditions(e.params, tuple(word))]


def undecided(guards: Sequence[Guard], context: Context) -> list[Guard] | None:
    """The conditions that do not hold anyway; None where they never hold together."""
    system, found = System(context), list[Guard]()
    for g in guards:
        if g.impossible or _never(g, system):
            return None
        if not (isinstance(g, Constraint) and (g.trivial or _follows(g, system))):
            found.append(g)
    return found


def _never(g: Guard, system: System) -> bool:
    below = isinstance(g, Constraint) and not g.equality
    return below and _follows(Constraint(-g.form - 1), system)


def _follows(c: Constraint, system: System) -> bool:
    try:
        return implied(c, system)
    except SystemLimitError:
        return False
