"""Conditions of the index language: guards, and the constraints that they put on indices."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...graph.extents import Extent
from ...integers.affine import Congruence, Constraint, Guard
from ...integers.polyhedra import NEVER
from ...support.trampoline import Steps
from ..reading.tree import Node
from .grammar import COMPARISONS, IndexTree
from .integers import Integers
from .iteration_space import Context
from .values import (
    COMPARISON_FUNCTIONS,
    SCALAR_ONE,
    Labelled,
    labelled_call,
    labelled_multiple,
    labelled_product,
    labelled_sum,
    mask_of,
)

CONNECTIVES = {"&": "logical_and", "|": "logical_or", "~": "logical_not"}


class Conditions:
    """Reads conditions: as values of 1 and 0, and as constraints that hold wherever they do.

    Parameters
    ----------
    tree : IndexTree
    integers : Integers
    extents : mapping
        Extents of labels.
    value : callable
        ``value(place, context)`` reads the value of a node.
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
        return labelled_product(values, self.extents)

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
            value = mask_of([guard], self.extents)
            return self.negated(value) if negative else value
        values: list[Labelled] = []
        for arg in node.args:
            values.append((yield self.value(arg, context)))
        if all(map(self.conditional, node.args)) and node.name == "&":
            return labelled_product(values, self.extents)
        if all(map(self.conditional, node.args)) and node.name == "~":
            return self.negated(values[0])
        name = CONNECTIVES.get(node.name) or COMPARISON_FUNCTIONS[node.name]
        return labelled_call(name, values, self.extents)

    def negated(self, value: Labelled) -> Labelled:
        """1 where a value of 1 and 0 is 0, and the reverse."""
        return labelled_sum([SCALAR_ONE, labelled_multiple(value, -1)], self.extents)

    def compared(self, node: Node) -> tuple[Guard, bool] | None:
        """A comparison of integers as a guard, and whether that is negated; None for others."""
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
        """The constraints that hold where a condition does, or (not positive) where it does not."""
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
        """The constraints of one comparison; an equality is two inequalities."""
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
