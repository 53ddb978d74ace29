"""Common subexpressions of a formula, and names for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ...graph.applications import parts
from ...graph.nodes import Apply, Einsum, Expr, Var, postorder
from ...graph.operators import Loop


def used_twice(nodes: Sequence[Expr]) -> set[int]:
    """Nodes that stand in more than one place."""
    counts: dict[int, int] = {}
    for node in nodes:
        places: set[Any] = set()
        uses = uses_of_operands(node)
        for k, arg in enumerate(node.args):
            word = node.labels[k] if isinstance(node, Einsum) else (k,)
            if arg.args and (id(arg), word) not in places:
                places.add((id(arg), word))
                counts[id(arg)] = counts.get(id(arg), 0) + uses[k]
    return {key for key, count in counts.items() if count > 1}


def free_prefix(prefix: str, nodes: Sequence[Expr]) -> str:
    """The prefix, lengthened until no variable has one of its numbered names."""
    taken = [node.name for node in nodes if isinstance(node, Var)]
    while any(name.startswith(prefix) and name[len(prefix) :].isdigit() for name in taken):
        prefix += "t"
    return prefix


def uses_of_operands(node: Expr) -> Sequence[int]:
    """How often each operand is written: in a loop, as often as the step has what stands for it."""
    if not isinstance(node, Apply) or not isinstance(node.op, Loop):
        return [1] * len(node.args)
    loop = node.op.iteration(node.params, range(len(parts(node))))
    counts = Counter([id(arg) for e in postorder(loop.following.values()) for arg in e.args])
    return [max(1, counts[id(v)]) for v in loop.variables]
