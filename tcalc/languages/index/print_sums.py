"""Products with indicators as bounded sums of affine accesses: what the index language prints.

The equations of indicators are solved for summed indices (Urban and van der Smagt 2017,
section 5): operands are then read at affine places, sums have bounds in the indices that remain,
and what is left over is a guard.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from ...graph.extent_forms import facts, signs
from ...graph.extents import Extent, form_of
from ...graph.factors import indicates
from ...graph.nodes import Einsum
from ...integers.affine import Affine, Congruence, Constraint, Guard, Quotient
from ...integers.elimination import Range, solve_in_box
from ...integers.polyhedra import NEVER, System, SystemLimitError, implied
from ...ops.indicator import conditions
from .iteration_space import Context
from .print_accesses import BoundedSum, as_checked


def written_out(
    node: Einsum, subs: Sequence[Affine], context: Context, fresh: Callable[[int], list[str]]
) -> BoundedSum:
    """A product at an entry of its result.

    Parameters
    ----------
    node : Einsum
    subs : sequence of Affine
        The entry, in names of indices and dimensions.
    context : tuple of Constraint
        What is known of these.
    fresh : callable
        ``fresh(n)`` are n names for summed indices.
    """
    places: dict[int, Affine] = {}
    guards: list[Guard] = []
    for label, sub in zip(node.out, subs, strict=True):
        equal = Constraint(places.setdefault(label, sub) - sub, True)
        guards += [] if equal.trivial else [equal]
    summed = [label for label in range(len(node.extents)) if label not in places]
    places |= {label: Affine.of(f"?{label}") for label in summed}
    said: list[Guard] = []
    for arg, word in zip(node.args, node.labels, strict=True):
        if indicates(arg):
            names = {f"#{label}": places[label] for label in word}
            said += [substituted(g, names) for g in conditions(arg.params, word)]
    box = {f"?{label}": form_of(node.extents[label]) for label in summed}
    standing = {n for form in box.values() for n in form.names}
    standing |= {n for g in said for n in g.form.names if n[0] != "?"}
    inside = {n for c in context for n in c.form.names}  # indices, whose ranges are known
    known = (*context, *signs(standing - inside))
    known = (*known, *facts(sorted(standing | inside)))
    found = BoundedSum(
        places,
        [whole_range(f"?{label}", node.extents[label]) for label in summed],
        [*guards, *said],
    )
    solvable = not any("?" in n and "*" in n for g in said for n in g.form.names)
    if said and summed and solvable:
        with suppress(SystemLimitError):
            found = _solved(box, said, _order(node, summed, said), known)
            found = found._replace(places=places | found.places, guards=[*guards, *found.guards])
    return _named(as_checked(node, found, known), known, fresh)


def substituted(g: Guard, forms: Mapping[str, Affine]) -> Guard:
    """A condition with forms in place of names."""
    if isinstance(g, Constraint):
        return Constraint(g.form.substitute(forms), g.equality)
    return Congruence(g.form.substitute(forms), g.modulus)


def whole_range(name: str, extent: Extent) -> Range:
    """All entries of an axis."""
    return Range(name, (Quotient(Affine()),), (Quotient(form_of(extent) - 1),))


def _order(node: Einsum, summed: Sequence[int], said: Sequence[Guard]) -> list[str]:
    """Summed labels, those to solve for first.

    These are read most often, or stand alone on one side of an equation: a place in an array.
    """
    uses = Counter(
        label
        for arg, word in zip(node.args, node.labels, strict=True)
        if not indicates(arg)
        for label in word
    )
    alone = set()
    for g in said:
        if isinstance(g, Constraint) and g.equality:
            for name, c in g.form.terms:
                if all(c * d < 0 for other, d in g.form.terms if other != name):
                    alone.add(name)
    names = [f"?{label}" for label in summed]
    return sorted(names, key=lambda n: (-uses[int(n[1:])], n not in alone, int(n[1:])))


def _solved(
    box: dict[str, Affine], said: Sequence[Guard], order: list[str], known: Context
) -> BoundedSum:
    """Places, ranges and guards, in names that begin with a question mark or are z's."""
    forms: list[Affine] = []
    whole: dict[str, Affine | tuple[None, None]] = dict(box)
    guards: list[Guard] = []
    asked: list[Constraint] = []
    for k, g in enumerate(said):
        if isinstance(g, Constraint) and not g.equality:
            asked.append(g)
        elif isinstance(g, Constraint):
            forms.append(g.form)
        elif set(g.form.names).isdisjoint(order):
            guards.append(g)
        else:
            whole[f"?q{k}"] = None, None
            forms.append(g.form - Affine.of(f"?q{k}") * g.modulus)
    unknowns = [*[name for name in whole if name not in box], *order]
    found = solve_in_box(forms, unknowns, whole, asked, known)
    ranges = list(found.ranges)
    places: dict[int, Affine] = {}
    for name, value in found.values:
        if name not in box:
            continue
        place = value.form
        if value.divisor > 1:  # a quotient that is exact, or there is no entry
            place = Affine.of(f"?u{name[1:]}")
            ranges.append(Range(place.names[0], (value,), (value,)))
        places[int(name[1:])] = place
    exact = {Congruence(value.form, value.divisor) for _, value in found.values}
    guards += [g for g in found.guards if g not in exact]
    if found.empty:
        guards.append(NEVER)
    return BoundedSum(places, ranges, guards)


def _named(found: BoundedSum, known: Context, fresh: Callable[[int], list[str]]) -> BoundedSum:
    """The same with names that users read, and without guards that hold anyway."""
    old = [r.name for r in found.ranges]
    names = dict(zip(old, fresh(len(old)), strict=True))
    new = {name: Affine.of(other) for name, other in names.items()}
    ranges = [
        Range(
            names[r.name],
            tuple([q.substitute(new) for q in r.lower]),
            tuple([q.substitute(new) for q in r.upper]),
        )
        for r in found.ranges
    ]
    checked = tuple([c.substitute(new) for c in found.checked])
    system = System(known)
    guards = [substituted(g, new) for g in dict.fromkeys(found.guards)]
    kept = [
        g for g in guards if isinstance(g, Congruence) or g.impossible or not implied(g, system)
    ]
    places = {label: form.substitute(new) for label, form in found.places.items()}
    return BoundedSum(places, ranges, kept, checked)
