"""Conditions on indices as text: those that the bounds around them do not say already."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_

from ...graph.extents import ONE
from ...graph.nodes import Apply, Einsum, Expr
from ...graph.normal import einsum
from ...graph.products import indicates, zeros_node
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
    e = as_indicator(e)
    if indicates(e):
        return _placed(e, tuple(range(e.ndim)), dict(enumerate(subs)))
    if not isinstance(e, Einsum) or e.summed or e.coef != ONE or len(set(e.out)) < e.ndim:
        return None
    places, found = dict(zip(e.out, subs, strict=True)), list[Guard]()
    for arg, word in zip(e.args, e.labels, strict=True):
        arg = as_indicator(arg)
        if not indicates(arg):
            return None
        found += _placed(arg, word, places)
    return found or None


def as_indicator(e: Expr) -> Expr:
    """The indicator of which an expression says that it is not 0; others as they are."""
    if isinstance(e, Apply) and e.op.name == "not_equal" and e.args[1] is zeros_node(e.shape):
        return e.args[0] if indicates(e.args[0]) else e
    return e


def with_indicators(node: Einsum) -> Expr:
    """The product with indicators for what says that they are not 0."""
    args = [as_indicator(arg) for arg in node.args]
    if all(map(is_, args, node.args)):
        return node
    return einsum(args, node.labels, node.out, node.coef, dict(enumerate(node.extents)))


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
