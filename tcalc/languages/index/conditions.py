"""Conditions of the index language: guards, and what they say about indices elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...graph.extents import Extent
from ...integers.affine import Congruence, Constraint, Guard
from ...integers.polyhedra import NEVER
from ...support.trampoline import Steps
from ..reading.tree import Node
from .grammar import COMPARISONS, IndexTree
from .integers import Integers
from .labels import Context
from .values import COMPARED, UNIT, Labelled, added, called, multiplied, scaled, where_they_hold

CONNECTIVES = {"&": "logical_and", "|": "logical_or", "~": "logical_not"}


class Conditions:
    """Reads conditions, as values of 1 and 0 and as what is known where they hold.

    Parameters
    ----------
    tree : IndexTree
    integers : Integers
    extents : mapping
        Of labels.
    value : callable
        Reads the value of a node, given what is known of its indices.
    """

    def __init__(
        self,
        tree: IndexTree,
        integers: Integers,
        extents: Mapping[int, Extent],
        value: Callable[[int, Context], Steps],
    ) -> None:
        self.tree = tree
        self.integers = integers
        self.extents = extents
        self.value = value

    def guard(self, place: int, node: Node, context: Context) -> Steps:
        """[conditions]: 1 where all of them hold."""
        values: list[Labelled] = []
        for arg in node.args:
            if not self.conditional(arg):
                message = f"`{self.tree.source(arg)}` is no condition; expected a comparison"
                raise self.tree.error(message, self.tree.nodes[arg].start)
            values.append((yield self.condition(arg, context)))
        return multiplied(values, self.extents)

    def conditional(self, place: int) -> bool:
        """Is a node 1 or 0?"""
        node = self.tree.nodes[place]
        return node.kind == "guard" or (
            node.kind in ("infix", "prefix") and node.name in (*COMPARISONS, *CONNECTIVES)
        )

    def condition(self, place: int, context: Context) -> Steps:
        node = self.tree.nodes[place]
        if node.name in COMPARISONS and (found := self.compared(node)) is not None:
            guard, negative = found
            value = where_they_hold([guard], self.extents)
            return added([UNIT, scaled(value, -1)], self.extents) if negative else value
        values: list[Labelled] = []
        for arg in node.args:
            values.append((yield self.value(arg, context)))
        if all(map(self.conditional, node.args)) and node.name == "&":
            return multiplied(values, self.extents)
        if all(map(self.conditional, node.args)) and node.name == "~":
            return added([UNIT, scaled(values[0], -1)], self.extents)
        name = CONNECTIVES.get(node.name) or COMPARED[node.name]
        return called(name, values, self.extents)

    def compared(self, node: Node) -> tuple[Guard, bool] | None:
        """A comparison of integers as a condition on indices, or on the contrary; or None."""
        left, right = (self.integers.affine(arg) for arg in node.args)
        if node.name == "==" and (left is None) != (right is None):
            one = node.args[left is not None]
            form = left if left is not None else right
            call = self.tree.nodes[one]
            if call.kind != "call" or call.name != "mod" or len(call.args) != 2 or form is None:
                return None
            inner, by = (self.integers.affine(arg) for arg in call.args)
            if inner is None or by is None or by.terms or form.terms:
                return None
            if 0 <= form.constant < by.constant:
                return Congruence(inner - form, by.constant), False
            return None
        if left is None or right is None:
            return None
        if node.name in ("==", "!="):
            return Constraint(left - right, True), node.name == "!="
        if node.name in ("<", "<="):
            left, right = right, left
        return Constraint(left - right - (node.name in ("<", ">"))), False

    def known_where(self, place: int, positive: bool) -> Steps:
        """What is known of indices where a condition holds, or where it does not."""
        node = self.tree.nodes[place]
        found: list[Constraint] = []
        if node.kind == "guard" or node.name == "&":
            inner = node.args if positive or len(node.args) == 1 else ()
        elif node.kind == "infix" and node.name == "|":
            inner = () if positive else node.args
        elif node.kind == "prefix" and node.name == "~":
            return (yield self.known_where(node.args[0], not positive))
        elif node.kind == "infix" and node.name in COMPARISONS:
            return self.known_by(node, positive)
        else:
            inner = ()
        for arg in inner:
            found += yield self.known_where(arg, positive)
        return tuple(found)

    def known_by(self, node: Node, positive: bool) -> Context:
        """What one comparison says; an equality is two inequalities."""
        compared = self.compared(node)
        if compared is None or not isinstance(compared[0], Constraint):
            return ()
        guard, negative = compared
        if guard.trivial or guard.impossible:
            return () if (guard.trivial != negative) == positive else (NEVER,)
        form = guard.form
        if isinstance(guard, Constraint) and guard.equality:
            return (Constraint(form), Constraint(-form)) if positive != negative else ()
        return (Constraint(form),) if positive else (Constraint(-form - 1),)
