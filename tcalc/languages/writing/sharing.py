"""Common subexpressions of a formula, and names for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...graph.nodes import Einsum, Expr, Var, postorder, variables
from ...graph.normal import bare
from ...support.given import no_expression


def nodes_and_names(e: Expr) -> tuple[list[Expr], set[str], set[str]]:
    """The nodes of an expression, its variables' names, and their dimensions.

    Raises
    ------
    TypeError
        Where it is none.
    """
    if not isinstance(e, Expr):
        raise TypeError(f"formulas are written for one expression, not for {no_expression(e)}")
    e = bare(e)
    nodes, known = postorder((e,)), variables((e,))
    # Ones are not written where they are repeated anyway; unit tensors are.
    units = [n for n in nodes if isinstance(n, Einsum) and not n.args and len({*n.out}) < n.ndim]
    stated = {n for e in (*known.values(), *units) for n in e.shape if isinstance(n, str)}
    return nodes, set(known), stated


def used_twice(nodes: Sequence[Expr]) -> set[int]:
    """Nodes that stand in more than one place."""
    counts: dict[int, int] = {}
    for node in nodes:
        places: set[Any] = set()
        for k, arg in enumerate(node.args):
            word = node.labels[k] if isinstance(node, Einsum) else (k,)
            if arg.args and (id(arg), word) not in places:
                places.add((id(arg), word))
                counts[id(arg)] = counts.get(id(arg), 0) + 1
    return {key for key, count in counts.items() if count > 1}


def free_prefix(prefix: str, nodes: Sequence[Expr]) -> str:
    """The prefix, lengthened until no variable has one of its numbered names."""
    taken = [node.name for node in nodes if isinstance(node, Var)]
    while any(name.startswith(prefix) and name[len(prefix) :].isdigit() for name in taken):
        prefix += "t"
    return prefix
