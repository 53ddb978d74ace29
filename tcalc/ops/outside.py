"""Accesses that leave their axes: for all extents, or for those that satisfy conditions.

A dimension may be any number from 0 on. At a corner of the box of its indices a form is one in
dimensions, and whether it is inside of an axis is a system of inequalities in these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

from ..graph.extent_forms import facts, is_nonnegative, signs, value_of
from ..graph.extents import Extent, extent_from, extent_names, form_of
from ..integers.affine import Affine, Constraint, Guard, factors_of
from ..integers.elimination import NestedRanges, eliminate
from ..integers.polyhedra import System, SystemLimitError, feasible, implied, irredundant
from ..support.errors import RangeError
from ..support.records import NamedTuple
from .indicator import CheckedAccess, IndicatorParams, label_of, labels_among

#: Indices up to which all corners of their box are looked at.
MAX_CORNERED = 4
#: Where all extents are as large, what fits for some of them mostly does.
AMPLE = 1000

#: Places at corners, by the names of indices.
Corner = dict[str, Affine | int | str]


class Outside(NamedTuple):
    """Conditions on dimensions under which an access leaves its axis: all of them hold."""

    conditions: tuple[Constraint, ...]
    access: CheckedAccess


def deferred(access: CheckedAccess, extents: Mapping[int, Extent]) -> CheckedAccess:
    """The access, to be checked when extents are known.

    Parameters
    ----------
    access : CheckedAccess
    extents : mapping
        Of the labels.

    Raises
    ------
    RangeError
        Where it is outside whatever the extents are.
    """
    sizes = [access.extent, *[extents[k] for k in labels_among(access.form.names)]]
    if not extent_names(sizes):  # numbers, of which the check says which index leaves
        return access
    if always_outside(access.form, access.extent, extents):
        raise RangeError(f"{access.what} is out of range for an axis of extent {access.extent}")
    return access


def always_outside(
    form: Affine, extent: Extent, extents: Mapping[int, Extent], known: Iterable[Guard] = ()
) -> bool:
    """Does a form leave an axis whatever the dimensions are, where its indices take values?

    `known` are conditions under which it is read. False where it is not known.
    """
    held = [g for g in known if isinstance(g, Constraint)]
    inside = [Constraint(form), Constraint(form_of(extent) - 1 - form)]
    labels = sorted(labels_among([n for c in (*held, *inside) for n in c.form.names]))
    ends = {f"#{k}": form_of(extents[k]) - 1 for k in labels}
    given = [Constraint(end) for end in ends.values()]
    given += [c for c in held if not labels_among(c.form.names)]
    corners = list(_corners(form, ends))
    asked = [[c.substitute(corner) for c in inside] for corner in corners]
    if all(map(_at_ample_extents, [*given, *[c for cs in asked for c in cs]])):
        return False
    where = _with_facts(given)
    bounding = [c for c in held if labels_among(c.form.names)]
    try:
        if not feasible(where):
            return False
        reached = [
            cs
            for cs, corner in zip(asked, corners, strict=True)
            if all(implied(c.substitute(corner), where) for c in bounding)
        ]
        return not feasible(_with_facts([*given, *[c for cs in reached for c in cs]]))
    except SystemLimitError:
        return False


def _corners(form: Affine, ends: Mapping[str, Affine]) -> Iterator[Corner]:
    """Corners of a box; of a box of many axes those where a form is least and greatest."""
    if len(ends) <= MAX_CORNERED:
        for chosen in product(*[(Affine(), end) for end in ends.values()]):
            yield dict(zip(ends, chosen, strict=True))
        return
    for side in (1, -1):
        yield {n: end if form.coefficient(n) * side > 0 else 0 for n, end in ends.items()}


def _at_ample_extents(c: Constraint) -> bool:
    return holds(c, dict.fromkeys(extent_names([extent_from(c.form)]), AMPLE))


def holds(c: Constraint, sizes: Mapping[str, int]) -> bool:
    """Does a condition on dimensions hold at these extents?"""
    value = value_of(c.form, sizes)
    return value == 0 if c.equality else value >= 0


def _with_facts(conditions: Sequence[Constraint]) -> System:
    """The system of conditions on dimensions, and what holds of these."""
    return System((*conditions, *_facts(conditions)))


def _facts(conditions: Iterable[Constraint]) -> list[Constraint]:
    """What holds of dimensions, whatever they are."""
    names = sorted({n for c in conditions for n in c.form.names})
    return [*signs(names), *facts(names)]


# --- conditions on dimensions ---------------------------------------------------------------------


def conditions_outside(params: IndicatorParams) -> list[Outside]:
    """When accesses of an indicator leave their axes, in conditions on dimensions.

    Those are left out of which that is no conjunction of inequalities.
    """
    shape, guards, accesses = params
    found: list[Outside] = []
    for access in accesses:
        for beyond in (-1 - access.form, access.form - form_of(access.extent)):
            conditions = _reached(beyond, shape, guards)
            if conditions is not None:
                found.append(Outside(conditions, access))
    return found


def _reached(
    form: Affine, shape: Sequence[Extent], guards: Sequence[Guard]
) -> tuple[Constraint, ...] | None:
    """When a form is 0 or more at some entry of a shape where guards hold; None for never."""
    ends = {f"#{k}": form_of(n) - 1 for k, n in enumerate(shape)}
    entries = [Constraint(end) for end in ends.values()]
    bounding = [g for g in guards if isinstance(g, Constraint) and not g.equality]
    try:
        if bounding:
            system = _eliminated(form, ends, bounding)
        else:
            system = System((*entries, *_greatest(form, ends)))
        known = _facts(system)
        return tuple(irredundant(system, known)) if feasible(system & known) else None
    except SystemLimitError:
        return None


def _greatest(form: Affine, ends: Mapping[str, Affine]) -> list[Constraint]:
    """That a form is 0 or more at the corner where it is greatest; never where none is known."""
    corner: Corner = {}
    for name, c in form.terms:
        for label in labels_among([name]):
            others = [part for part in factors_of(name) if label_of(part) is None]
            if not all(is_nonnegative(Affine.of(part)) for part in others):
                return [Constraint(Affine((), -1))]
            side = ends[f"#{label}"] if c > 0 else Affine()
            if corner.setdefault(f"#{label}", side) != side:
                return [Constraint(Affine((), -1))]
    return [Constraint(form.substitute(corner))]


def _eliminated(form: Affine, ends: Mapping[str, Affine], bounding: Sequence[Constraint]) -> System:
    """When a form is 0 or more somewhere in a box under conditions; never where it is not exact."""
    box = [Constraint(Affine.of(n)) for n in ends]
    box += [Constraint(end - Affine.of(n)) for n, end in ends.items()]
    system = System((*box, *bounding, Constraint(form)))
    multiplied = any("*" in n and labels_among([n]) for n in system.names)
    found = eliminate(system, list(ends)) if not multiplied else None
    if found is None or not _exact(found):
        return System([Constraint(Affine((), -1))])
    return found.remainder


def _exact(found: NestedRanges) -> bool:
    """Are there integers wherever there are rational numbers?"""
    return all(
        any(all(q.divisor == 1 for q in side) for side in (r.lower, r.upper)) for r in found.ranges
    )
