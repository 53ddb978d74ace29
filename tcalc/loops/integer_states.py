"""States of loops that are indices: integers before every step."""

from __future__ import annotations

from collections.abc import Sequence

from ..graph.factors import selects
from ..graph.nodes import Expr, Var, postorder
from ..ops.affine_entries import integral

__all__: list[str] = []


def check_integer_states(states: Sequence[Var], outputs: Sequence[Expr]) -> None:
    """Refuse a state that indices are made of, directly or by other states, and that is no integer
    after a step.

    Raises
    ------
    TypeError
    """
    indices = [arg for node in postorder(outputs) if selects(node) for arg in node.args]
    seen: set[int] = set()
    while waiting := _read(indices, states) - seen:
        seen |= waiting
        indices = [outputs[k] for k in waiting]
        for k in sorted(waiting):
            if not integral(outputs[k]):
                raise TypeError(
                    f"fold: state {k} is used as an index, so it is an integer before and after "
                    "every step"
                )


def _read(exprs: Sequence[Expr], states: Sequence[Var]) -> set[int]:
    """The numbers of the states that expressions read."""
    inside = {id(node) for node in postorder(exprs)}
    return {k for k, v in enumerate(states) if id(v) in inside}
