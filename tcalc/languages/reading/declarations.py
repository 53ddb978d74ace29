"""The variables that a user declares beside a text."""

from __future__ import annotations

from collections.abc import Mapping

from ...calculus.projection import keeping_variables
from ...graph.extents import extent_names
from ...graph.nodes import Expr, Var, dimensions
from ...graph.variables import canonical_name, var
from ...rules.strategy import simplify
from .tree import SyntaxTree


def declared_variables(text: object, declarations: Mapping[str, object]) -> dict[str, Var]:
    """Variables by name, from shapes or variables. TypeError where these, or the text, are not."""
    if not isinstance(text, str):
        raise TypeError(f"the text of an expression is a str, not {type(text).__name__}")
    return {canonical_name(name): _variable(name, given) for name, given in declarations.items()}


def keeping_used(value: Expr, tree: SyntaxTree, known: Mapping[str, Var]) -> Expr:
    """The value of a text, with the variables that the text names, also where these cancelled.

    Others stay where they alone say what a dimension is.
    """
    used = {node.name for node in tree.nodes if node.name in known}
    told = extent_names([n for name in used for n in known[name].shape])
    if untold := set(dimensions([value])) - told:
        used |= {name for name, v in known.items() if untold & extent_names(v.shape)}
    if used <= value.variables.keys():
        return value
    return keeping_variables(simplify(value), [known[name] for name in sorted(used)])


def _variable(name: str, given: object) -> Var:
    if isinstance(given, Var):
        return given
    if isinstance(given, int | str | tuple | list):
        return var(name, given)
    shown, more = type(given).__name__, ""
    if isinstance(given, Expr):
        shown, more = "an expression", f"; declare its shape, and then .subs({{'{name}': ...}})"
    raise TypeError(f"{name} is declared by a shape or a variable, not by {shown}{more}")
