"""In which order axes are hoped for, where an output is written into memory of a given order."""

from __future__ import annotations

from collections.abc import Sequence

from ...graph.nodes import Add, Apply, Einsum, Expr
from ..steps import Word


def hoped_orders(roots: Sequence[Expr], nodes: Sequence[Expr]) -> dict[int, Word]:
    """By id: a node's axes in the order in which its root has them, first axis first.

    Of nodes that a root is made of entry by entry; what several roots read is as in the last one.
    """
    found: dict[int, Word] = {id(root): tuple(range(root.ndim)) for root in roots}
    for node in reversed(nodes):
        order = found.get(id(node))
        if order is None:
            continue
        if isinstance(node, Add) or (isinstance(node, Apply) and node.op.elementwise):
            for arg in node.args:
                found.setdefault(id(arg), order)
        elif isinstance(node, Einsum) and not node.summed:
            labels = list(dict.fromkeys([node.out[axis] for axis in order]))
            for arg, word in zip(node.args, node.labels, strict=True):
                if len(set(word)) == len(word):
                    axes = [word.index(label) for label in labels if label in word]
                    found.setdefault(id(arg), tuple(axes))
    return found
