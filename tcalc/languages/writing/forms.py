"""Forms of nodes by their ids, some of them made only when they are asked for."""

from __future__ import annotations

from collections.abc import Callable

from ...graph.nodes import Add, Einsum, Expr
from .matrix_form import NodeForm

#: Nodes above each other whose forms wait.
MAX_WAITING = 16


class Forms(dict[int, NodeForm]):
    """The forms of nodes.

    Sums and products of more than two axes wait: what reads them often opens them, or writes them
    with their axes in another order, and then nobody asks for their own form.

    Parameters
    ----------
    make : callable
        The form of a node.
    """

    def __init__(self, make: Callable[[Expr], NodeForm]) -> None:
        super().__init__()
        self.make = make
        self.waiting: dict[int, tuple[int, Expr]] = {}

    def may_wait(self, node: Expr) -> bool:
        """Is the form of a node left for later? It is forgotten if it was known."""
        depth = 1 + max([self.waiting.get(id(arg), (0, arg))[0] for arg in node.args], default=0)
        waits = isinstance(node, Add | Einsum) and node.ndim > 2 and depth <= MAX_WAITING
        if waits:
            self.pop(id(node), None)
            self.waiting[id(node)] = depth, node
        return waits

    def __missing__(self, key: int) -> NodeForm:
        _, node = self.waiting[key]
        form = self[key] = self.make(node)
        return form
