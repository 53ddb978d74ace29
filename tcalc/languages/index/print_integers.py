"""How the index language writes integers: forms in indices and dimensions, ranges, guards."""

from __future__ import annotations

from collections.abc import Sequence

from ...graph.extent_forms import Least, atom_of, atoms_in
from ...integers.affine import Affine, Congruence, Constraint, Guard, Quotient
from ...integers.elimination import Range
from ..writing.notation import Fragment


def spelled(form: Affine) -> Affine:
    """The form with quotients and minima of dimensions as the language writes them."""
    atoms = {name: atom_of(name) for name in atoms_in(form) if not name.isidentifier()}
    names: dict[str, Affine | int | str] = {}
    for name, atom in atoms.items():
        if isinstance(atom, Least):
            names[name] = f"min({', '.join(map(shown, atom.forms))})"
        elif atom is not None:
            inner = shown(atom.form)
            inner = inner if inner.isidentifier() else f"({inner})"
            names[name] = f"floor({inner}/{atom.divisor})"
    return form.substitute(names) if names else form


def shown(form: Affine) -> str:
    return str(spelled(form))


def shown_range(r: Range) -> str:
    lower = tuple([Quotient(spelled(q.form), q.divisor) for q in r.lower])
    upper = tuple([Quotient(spelled(q.form), q.divisor) for q in r.upper])
    return str(Range(r.name, lower, upper))


def shown_guard(g: Guard) -> str:
    if isinstance(g, Congruence):
        return f"mod({shown(g.form)}, {g.modulus}) == 0"
    return str(Constraint(spelled(g.form), g.equality))


def guard_fragments(guards: Sequence[Guard]) -> list[Fragment]:
    return [Fragment(f"[{' & '.join(map(shown_guard, guards))}]")] if guards else []
