"""Equality saturation over interned nodes, bounded and deterministic.

A class is a set of expressions that are equal by the laws, kept by union-find. In rounds, laws are
tried on all new nodes, and every node is built again with the best form of each of its operands.
What is best is told by a cost; of equal costs the form that was found first stays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from ..graph.applications import root_of, with_args
from ..graph.nodes import Expr, postorder
from ..support.limits import spend
from .laws import LATE_LAWS

MAX_ROUNDS = 8
#: Steps that all laws take to see that a node is none of theirs, and more of them an operand.
TRIED, OPERAND = 40, 10
Cost = tuple[float, str]  #: of equal costs the first in the alphabet
RETIRED: Cost = (math.inf, "")


class EqualForms:
    """Classes of equal expressions.

    Parameters
    ----------
    cost : callable
        ``cost(node)``, called once for each, operands first.
    most : int
        The number of nodes.
    """

    def __init__(self, cost: Callable[[Expr], Cost], most: int) -> None:
        self.cost = cost
        self.most = most
        self.nodes: list[Expr] = []  # in order of arrival
        self.costs: list[Cost] = []
        self.place: dict[int, int] = {}
        self.above: list[int] = []
        self.best: list[int] = []  # of a class, by its representative
        self.tried = 0
        self.built: dict[int, tuple[int, ...]] = {}  # the operands a node was last built with

    def add(self, e: Expr) -> int:
        """The place of an expression, which enters with all below it."""
        if id(e) not in self.place:
            for node in postorder([e]):
                if id(node) not in self.place:
                    self.costs.append(self.cost(node))
                    self.place[id(node)] = k = len(self.nodes)
                    self.nodes.append(node)
                    self.above.append(k)
                    self.best.append(k)
        return self.place[id(e)]

    def find(self, k: int) -> int:
        while self.above[k] != k:
            self.above[k] = k = self.above[self.above[k]]
        return k

    def union(self, one: int, other: int) -> None:
        one, other = sorted((self.find(one), self.find(other)))
        if one != other:
            self.above[other] = one
            a, b = self.best[one], self.best[other]
            self.best[one] = min(a, b, key=lambda k: (self.costs[k], k))

    def equal(self, k: int, found: Iterable[Expr | None]) -> bool:
        """Enter expressions that equal the node at a place; was there one?"""
        some = False
        for e in found:
            if e is not None and e is not self.nodes[k] and len(self.nodes) < self.most:
                self.union(k, self.add(e))
                some = True
        return some

    def best_of(self, e: Expr) -> Expr:
        return self.nodes[self.best[self.find(self.place[id(e)])]]

    # --- saturation ---

    def saturate(self) -> None:
        """Laws and rebuilding in turns, until nothing is new or there are nodes enough."""
        for _ in range(MAX_ROUNDS):
            before = len(self.nodes)
            while self.tried < min(len(self.nodes), self.most):
                self.apply_laws(self.tried)
                self.tried += 1
            self.rebuild()
            if len(self.nodes) == before == self.tried:
                break

    def apply_laws(self, k: int) -> None:
        node = self.nodes[k]
        spend("steps", TRIED + OPERAND * len(node.args))
        for row in LATE_LAWS.get(root_of(node), ()):
            if self.equal(k, row.rewrite(node)) and row.directed:
                self.retire(k)
                break

    def retire(self, k: int) -> None:
        """Let the node be no form any more, whatever it costs."""
        root = self.find(k)
        self.costs[k] = RETIRED
        if self.best[root] == k:
            members = [j for j in range(len(self.nodes)) if self.find(j) == root]
            self.best[root] = min(members, key=lambda j: (self.costs[j], j))

    def rebuild(self) -> None:
        """Every node with the best forms of its operands."""
        for k, node in enumerate(self.nodes[:]):
            if node.args and self.costs[k] is not RETIRED:
                args = [self.best_of(arg) for arg in node.args]
                ids = tuple(map(id, args))
                if ids != self.built.get(k, tuple(map(id, node.args))):
                    self.built[k] = ids
                    self.equal(k, [with_args(node, args)])
