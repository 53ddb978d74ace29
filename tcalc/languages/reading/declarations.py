"""The variables that a user declares beside a text."""

from __future__ import annotations

from collections.abc import Mapping

from ...graph.nodes import Var
from ...graph.variables import canonical_name, var


def declared_variables(text: object, declarations: Mapping[str, object]) -> dict[str, Var]:
    """Variables by name, from shapes or variables. TypeError where these, or the text, are not."""
    if not isinstance(text, str):
        raise TypeError(f"the text of an expression is a str, not {type(text).__name__}")
    return {canonical_name(name): _variable(name, given) for name, given in declarations.items()}


def _variable(name: str, given: object) -> Var:
    if isinstance(given, Var):
        return given
    if isinstance(given, int | str | tuple | list):
        return var(name, given)
    raise TypeError(f"{name} is declared by a shape or a variable, not by {type(given).__name__}")
