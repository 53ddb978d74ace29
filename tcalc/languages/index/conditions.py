"""Conditions of the index language: guards, and the constraints that they put on indices."""

from __future__ import annotations

from collections.abc import Callable

from ...integers.affine import Congruence, Constraint, Guard
from ...integers.polyhedra import NEVER
from ...support.trampoline import Steps
from ..reading.tree import Node
from .grammar import COMPARISONS, IndexTree
from .integers import Integers
from .iteration_space import Context, IterationSpace
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

#: Systems of which one holds where a condition does; of more, nothing is known.
MAX_ALTERNATIVES = 16

CONNECTIVES = {"&": "logical_and", "|": "logical_or", "~": "logical_not"}


class Conditions:
    """Reads conditions: as values of 1 and 0, and as constraints that hold wherever they do.

    Parameters
    ----------
    tree : IndexTree
    integers : Integers
    space : IterationSpace
        The labels of indices, and what is known of them.
    value : callable
        ``value(place, context)`` reads the value of a node.
    """

    def __init__(
        self,
        tree: IndexTree,
        integers: Integers,
        space: IterationSpace,
        value: Callable[[int, Context], Steps],
    ) -> None:
        self.tree = tree
        self.integers = integers
        self.space = space
        self.extents = space.extents
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
        if node.kind == "guard":
            return (yield self.guard(place, node, context))
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

    def known_where(self, place: int, positive: bool, context: Context) -> Steps:
        """The constraints that hold where a condition does, or (not positive) where it does not.

        Of several alternatives those count that are possible in the context, and of these what all
        have in common.
        """
        found: list[Context] = yield self.alternatives(place, positive)
        if len(found) > 1:
            found = [c for c in found if self.space.possible((*context, *c))] or [(NEVER,)]
        first, *others = found
        return tuple([
            c for c in first if all(self.space.holds(c, (*context, *other)) for other in others)
        ])  # fmt: skip

    def alternatives(self, place: int, positive: bool) -> Steps:
        """Systems of which one holds where a condition does, or (not positive) where not."""
        node = self.tree.nodes[place]
        if node.kind == "prefix" and node.name == "~":
            return (yield self.alternatives(node.args[0], not positive))
        if node.kind == "infix" and node.name in COMPARISONS:
            return self.compared_alternatives(node, positive)
        if node.kind != "guard" and node.name not in CONNECTIVES:
            return [()]
        found: list[Context] = [()]
        if (node.name == "|") == positive:  # one of them holds
            found = []
            for arg in node.args:
                found += yield self.alternatives(arg, positive)
            return found if len(found) <= MAX_ALTERNATIVES else [()]
        for arg in node.args:
            more: list[Context] = yield self.alternatives(arg, positive)
            if len(found) * len(more) <= MAX_ALTERNATIVES:
                found = [(*one, *other) for one in found for other in more]
        return found

    def compared_alternatives(self, node: Node, positive: bool) -> list[Context]:
        """The constraints of one comparison: an equality is two inequalities, or one of two."""
        compared = self.compared(node)
        if compared is None or not isinstance(compared[0], Constraint):
            return [()]
        guard, negative = compared
        positive = positive != negative
        if guard.trivial or guard.impossible:
            return [() if guard.trivial == positive else (NEVER,)]
        form = guard.form
        equality = isinstance(guard, Constraint) and guard.equality
        if equality and positive:
            return [(Constraint(form), Constraint(-form))]
        if equality:
            return [(Constraint(form - 1),), (Constraint(-form - 1),)]
        return [(Constraint(form),) if positive else (Constraint(-form - 1),)]
