"""Accesses that are checked, as text: what the check says is not written as a bound or a guard.

Where an array is read outside there is an error, whoever evaluates the text. A bound that only says
that it is read inside would make that a 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...graph.extents import form_of
from ...graph.factors import indicates
from ...graph.nodes import Apply, Einsum
from ...integers.affine import Affine, Constraint, Guard
from ...integers.elimination import Range
from ...integers.polyhedra import System, SystemLimitError, implied
from ...ops.indicator import accesses, conditions
from ...support.records import NamedTuple
from .iteration_space import Context


class BoundedSum(NamedTuple):
    """A product as a sum over ranges, its operands read at affine places.

    Attributes
    ----------
    places : dict
        The affine form of every label of the product.
    ranges : list of Range
        Ranges of the summed indices, the outermost first.
    guards : list of Guard
        What must hold besides, or the product is 0.
    checked : tuple of Constraint
        What accesses check, which holds wherever the product has a value.
    """

    places: dict[int, Affine]
    ranges: list[Range]
    guards: list[Guard]
    checked: tuple[Constraint, ...] = ()


def as_checked(node: Einsum, found: BoundedSum, known: Context) -> BoundedSum:
    """A product without bounds and guards that say what its accesses check.

    A check is made where conditions of its own hold: these stay.
    """
    checked: list[Constraint] = []
    needed: list[Constraint] = []
    for arg, word in zip(node.args, node.labels, strict=True):
        if not isinstance(arg, Apply) or not indicates(arg) or not arg.params[2]:
            continue
        names = {f"#{label}": found.places[label] for label in word}
        for a in accesses(arg.params, word):
            ends = Constraint(a.form), Constraint(form_of(a.extent) - 1 - a.form)
            checked += [end.substitute(names) for end in ends]
        own = [g for g in conditions(arg.params, word) if isinstance(g, Constraint)]
        needed += [g.substitute(names) for g in own if not g.equality]
    if not checked:
        return found
    try:
        return _without(found._replace(checked=tuple(checked)), known, needed)
    except SystemLimitError:
        return found


def _without(found: BoundedSum, known: Context, needed: Sequence[Constraint]) -> BoundedSum:
    """The sum without what follows from checks, as long as it says what is needed."""

    def follows(dropped: Constraint, ranges: Sequence[Range], guards: Sequence[Guard]) -> bool:
        kept = [c for r in ranges for c in r.constraints()]
        kept += [g for g in guards if isinstance(g, Constraint)]
        system = System((*known, *kept))
        return implied(dropped, system & found.checked) and all(implied(c, system) for c in needed)

    ranges, guards = list(found.ranges), list(found.guards)
    for g in found.guards:
        others = [other for other in guards if other != g]
        if isinstance(g, Constraint) and not g.impossible and follows(g, ranges, others):
            guards = others
    for k, r in enumerate(found.ranges):
        for shorter, bound in _shorter(r):
            shorter = Range(
                r.name,
                tuple([q for q in ranges[k].lower if q in shorter.lower]),
                tuple([q for q in ranges[k].upper if q in shorter.upper]),
            )
            kept = [*ranges[:k], shorter, *ranges[k + 1 :]]
            if shorter.lower and shorter.upper and follows(bound, kept, guards):
                ranges = kept
    return found._replace(ranges=ranges, guards=guards)


def _shorter(r: Range) -> Iterator[tuple[Range, Constraint]]:
    """The range without one of its bounds, and the bound."""
    for bound, q in zip(r.constraints(), (*r.lower, *r.upper), strict=True):
        below = bound.form.coefficient(r.name) > 0
        lower = tuple([other for other in r.lower if not below or other != q])
        upper = tuple([other for other in r.upper if below or other != q])
        yield Range(r.name, lower, upper), bound
