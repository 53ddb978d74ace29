"""How nodes look: which may be the same node of two steps of a loop.

A node looks as what it is and as its operands do, so many levels down (colour refinement,
Weisfeiler and Leman 1968). The further down two nodes look alike, the likelier they stand in one
place of two steps: the stages of a Runge-Kutta step look alike down to the stages before them. What
is read all along the expression is outside of all steps, and looks like nothing else; a number that
few nodes have may be that of one step, and says nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from ..graph.captures import is_captured
from ..graph.nodes import Add, Apply, Const, Einsum, Expr, Part, Var
from ..graph.operators import Indicator
from ..integers.affine import Affine, Constraint
from ..integers.boxes import index
from ..support.limits import spend

#: Levels that are looked down; those at which nodes of one group look alike.
DEPTH, NEAR = 64, 4
#: Parts of the height of an expression, and in how many of them a node is read that is outside.
PARTS, SPREAD = 16, 4


class Looks:
    """How these nodes look.

    Parameters
    ----------
    nodes : sequence of Expr
        Operands before consumers.
    many : int
        Nodes that have one number, where it is that of every step.

    Attributes
    ----------
    nodes : list of Expr
        By their height, which is one more than that of the highest operand.
    place : dict
        Node, by id -> its place among them.
    """

    def __init__(self, nodes: Sequence[Expr], many: int) -> None:
        height: dict[int, int] = {}
        for node in nodes:
            height[id(node)] = 1 + max([height[id(arg)] for arg in node.args], default=0)
        self.height = height
        self.nodes = sorted(nodes, key=lambda node: height[id(node)])
        self.place = place = {id(node): k for k, node in enumerate(self.nodes)}
        edges = [
            (k, place[id(arg)], word)
            for k, node in enumerate(self.nodes)
            for arg, word in zip(node.args, _words(node), strict=True)
        ]
        readers = np.array([reader for reader, _, _ in edges], int)
        read = np.array([arg for _, arg, _ in edges], int)
        words = _numbered([word for _, _, word in edges])
        ends = np.searchsorted(readers, np.arange(len(nodes) + 1))

        def refined(first: np.ndarray, fixed: np.ndarray) -> np.ndarray:
            rounds = np.empty((DEPTH + 1, len(nodes)), np.uint64)
            known = rounds[0] = first
            spend("steps", len(nodes))
            for level in range(DEPTH):
                below = np.cumsum(_mixed(known[read] ^ words))
                below = np.concatenate([np.zeros(1, np.uint64), below])
                known = np.where(fixed, first, _mixed(first + below[ends[1:]] - below[ends[:-1]]))
                rounds[level + 1] = known
            return rounds.T

        top = max(height.values(), default=0) + 1
        parts = {(arg, height[id(self.nodes[reader])] * PARTS // top) for reader, arg, _ in edges}
        read_in = Counter([arg for arg, _ in parts])
        outside = np.array([read_in[k] >= SPREAD for k in range(len(nodes))], bool)
        kinds = list(zip(map(_look, self.nodes), map(number_of, self.nodes), strict=True))
        common = Counter(kinds)
        first = _numbered([
            (look, k * outer, number if common[look, number] >= many else None)
            for k, ((look, number), outer) in enumerate(zip(kinds, outside.tolist(), strict=True))
        ])  # fmt: skip
        self._rounds = refined(first, outside)
        self._kinds = refined(_numbered([look for look, _ in kinds]), np.zeros_like(outside))
        near: defaultdict[int, list[int]] = defaultdict(list)
        for k, look in enumerate(self._kinds[:, NEAR].tolist()):
            near[look].append(k)
        self._near = {look: np.array(group) for look, group in near.items()}

    def alike(self, one: Expr, two: Expr) -> int:
        """How many levels down two nodes look alike."""
        at, to = self.place[id(one)], self.place[id(two)]
        return int(np.count_nonzero(self._rounds[at] == self._rounds[to]))

    def alike_in_kind(self, one: Expr, two: Expr) -> int:
        """That whatever numbers there are and whatever is outside."""
        at, to = self.place[id(one)], self.place[id(two)]
        return int(np.count_nonzero(self._kinds[at] == self._kinds[to]))

    def likest(self, node: Expr, others: Sequence[Expr], most: int) -> list[Expr]:
        """So many of those below a node that look like it furthest down, the highest first.

        So many more do whatever numbers there are and whatever is outside.
        """
        at = self.place[id(node)]
        below = np.array([self.place[id(n)] for n in others if self.rise(node, n) > 0], int)
        found: dict[int, None] = {}
        for rounds in (self._rounds, self._kinds):
            levels = np.count_nonzero(rounds[below] == rounds[at], axis=1)
            order = below[np.argsort(levels, kind="stable")]
            found |= dict.fromkeys(order[: -1 - most : -1].tolist())
        return [self.nodes[k] for k in found]

    def after(self, node: Expr, before: Expr) -> Expr | None:
        """The lowest above a node that looks like it, half as far down as one before it or more."""
        at = self.place[id(node)]
        near = self._near[int(self._kinds[at, NEAR])]
        above = near[np.searchsorted(near, at, "right") :]
        levels = np.count_nonzero(self._rounds[above] == self._rounds[at], axis=1)
        found = [self.nodes[k] for k in above[2 * levels >= self.alike(node, before)].tolist()]
        return next((e for e in found if self.rise(e, node) > 0), None)

    def rise(self, one: Expr, two: Expr) -> int:
        """How much higher a node stands than another."""
        return self.height[id(one)] - self.height[id(two)]

    def groups(self) -> list[list[Expr]]:
        """Nodes with operands, each group by height: those alike in kind from near."""
        found = [[self.nodes[k] for k in group.tolist()] for group in self._near.values()]
        return [group for group in found if group[0].args]


def _numbered(looks: Sequence[Hashable]) -> np.ndarray:
    """A random number for each, the same for equal ones."""
    numbers: dict[Hashable, int] = {}
    return _mixed(np.array([numbers.setdefault(look, len(numbers)) for look in looks], np.uint64))


def _mixed(numbers: np.ndarray) -> np.ndarray:
    """Numbers of 64 bits, each of which depends on all bits of one (splitmix64)."""
    z = numbers + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: np.ndarray = z ^ (z >> np.uint64(31))
    return mixed


def _words(node: Expr) -> Sequence[Hashable]:
    """What tells the operands of a node apart: nothing does in sums, in products axes."""
    if isinstance(node, Einsum):
        return words_on_axes(node)
    return [0] * len(node.args) if isinstance(node, Add) else range(len(node.args))


def words_on_axes(node: Einsum) -> list[tuple[int, ...]]:
    """The words of the operands, in axes of the product; labels that are summed are -1."""
    axes = {label: k for k, label in enumerate(node.out)}
    return [tuple([axes.get(label, -1) for label in word]) for word in node.labels]


def _look(node: Expr) -> Hashable:
    """What tells the node from those that do not look alike, numbers and operands apart."""
    if isinstance(node, Einsum):
        return Einsum, node.shape, node.coef.times, node.coef.over, len(node.extents)
    if isinstance(node, Const):
        return Const, node.shape, node._dtype
    if isinstance(node, Apply):
        if place_of(node) is not None:
            return Apply, "a place", node.shape
        return Apply, id(node.op), repr(node.params), node.shape
    if isinstance(node, Var) and is_captured(node):
        return Var, node.shape, node.properties
    return (type(node), *(node.meta if isinstance(node, Part | Var) else node.shape))


def number_of(node: Expr) -> Any:
    """The coefficient of a product, or the place that an indicator picks; None for others."""
    return node.coef.value if isinstance(node, Einsum) else place_of(node)


def place_of(node: Expr) -> int | None:
    """The place that an indicator picks of one axis; None for other nodes."""
    if not (isinstance(node, Apply) and isinstance(node.op, Indicator) and node.ndim == 1):
        return None
    _, guards, accesses = node.params
    if accesses or len(guards) != 1 or not isinstance(guards[0], Constraint):
        return None
    form: Affine = guards[0].form
    away = form - index(0)
    return -away.constant if guards[0].equality and not away.terms else None
