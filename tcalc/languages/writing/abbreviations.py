"""Functions that formulas call by a name of their own, though they are composed of other nodes."""

from __future__ import annotations

from collections.abc import Callable

from ...graph.nodes import Add, Apply, Einsum, Expr
from ...ops.reductions import softmax

#: Functions of the last axis that are calls, though they are composed of other nodes.
ABBREVIATIONS: dict[str, Callable[[Expr], Expr]] = {"softmax": softmax}


def abbreviation(node: Apply) -> tuple[str, Expr] | None:
    """The function of vectors that this node composes, and its argument; None for others."""
    terms = node.args[0].args if isinstance(node.args[0], Add) else ()
    if node.ndim not in (1, 2) or len(node.args) != 1:
        return None
    for term in terms:
        total = term.args[0] if isinstance(term, Einsum) and len(term.args) == 1 else None
        if not isinstance(total, Apply) or len(total.args) != 1:
            continue
        for name, function in ABBREVIATIONS.items():
            if total.args[0].shape == node.shape and function(total.args[0]) is node:
                return name, total.args[0]
    return None
