"""Entries of arrays in the index language: products with indicators of where they are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...graph.extents import Extent, form_of, show_shape
from ...graph.factors import LabelledExpr
from ...integers.affine import Affine, Constraint
from ...integers.boxes import index
from ...ops.affine_entries import integral
from ...ops.indicator import CheckedAccess, indicator, label_of
from ...ops.outside import always_outside
from ...ops.selection import selection
from ...support.errors import RangeError, ShapeError
from ...support.trampoline import Steps
from ..reading.lexer import line_and_column
from .arrays import Arrays
from .grammar import IndexTree
from .integers import Integers
from .iteration_space import Context, IterationSpace
from .values import (
    Labelled,
    contracted,
    labelled_affine,
    labelled_call,
    labelled_modulo,
    labelled_sum,
)

#: Kinds of nodes that may be integers of arrays.
_VALUES = ("access", "infix", "prefix", "call", "guard", "binder")


class Entries:
    """Reads accesses `a[…]`, and checks their bounds.

    Parameters
    ----------
    tree : IndexTree
    arrays : Arrays
        What is read.
    space : IterationSpace
        The labels of indices, and what is known of them.
    integers : Integers
        Reads subscripts.
    value : callable
        ``value(place, context)`` reads the value of a node.
    """

    def __init__(
        self,
        tree: IndexTree,
        arrays: Arrays,
        space: IterationSpace,
        integers: Integers,
        value: Callable[[int, Context], Steps],
    ) -> None:
        self.tree = tree
        self.arrays = arrays
        self.space = space
        self.integers = integers
        self.value = value
        #: Entries by array, subscripts and what is known there: each is made once.
        self.read: dict[Any, Labelled] = {}

    def entry(self, place: int, context: Context) -> Steps:
        """An entry of an array: its product with indicators that equate axes and subscripts."""
        node = self.tree.nodes[place]
        array = self.arrays.array(node)
        self.arrays.check_arity(node, array)
        forms = tuple(map(self.integers.affine, node.args))
        key = array.expr, forms, context
        if key in self.read:
            return self.read[key]
        word: list[int] = []
        others: list[LabelledExpr] = []
        for axis, (arg, extent) in enumerate(zip(node.args, array.expr.shape, strict=True)):
            sub, own = self.tree.nodes[arg], -1 - axis  # labels of the text are not negative
            if sub.kind == "call" and sub.name == "mod":
                word.append(own)
                others += yield self.wrapped(place, axis, own, context)
                continue
            if forms[axis] is None:
                places: Labelled | None = yield self.integer(arg, context)
                if places is not None:
                    word.append(own)
                    others.append(self.selected(places, array.lows[axis], extent, own))
                    continue
            form = (forms[axis] or self.subscript(arg)) - array.lows[axis]
            label = label_of(form.names[0]) if len(form.terms) == 1 else None
            if label is not None and form == index(label) and self.space.extents[label] == extent:
                word.append(label)
                continue
            word.append(own)
            extents = self.space.extents | {own: extent}
            others += indicator(extents, [Constraint(index(own) - form, True)])
            accesses, near = self.inside(place, axis, form, context)
            if accesses:  # apart from the axis, which may be empty
                others += indicator(extents, near, accesses)
        operands: list[LabelledExpr] = [(array.expr, tuple(word)), *others]
        out = tuple(sorted({k for _, w in operands for k in w if k >= 0}))
        found = contracted(operands, out, self.space.extents)
        if None not in forms:
            self.read[key] = found
        return found

    def integer(self, place: int, context: Context) -> Steps:
        """The value of a node where that is an integer of an array; None for other nodes."""
        node = self.tree.nodes[place]
        held = node.kind == "name" and node.name in self.arrays.named
        if held or node.kind in _VALUES:
            value: Labelled = yield self.value(place, context)
            return value if integral(value.expr) else None
        return None

    def selected(self, places: Labelled, low: Affine, extent: Extent, label: int) -> LabelledExpr:
        """The tensor that selects places along an axis, which starts at `low`, under a label."""
        if low != Affine():
            extents = self.space.extents
            places = labelled_sum([places, labelled_affine(-low, extents)], extents)
        return selection(places.expr, extent), (*places.word, label)

    def subscript(self, place: int) -> Affine:
        """A subscript as an affine form. ParseError where it is none."""
        found = self.integers.bound(place).affine
        if found is None:
            message = f"`{self.tree.source(place)}` is not affine; a subscript is, or mod(e, n)"
            raise self.tree.error(message, self.tree.nodes[place].start)
        return found

    def inside(
        self, place: int, axis: int, form: Affine, context: Context
    ) -> tuple[list[CheckedAccess], Context]:
        """Check that a place is inside an axis; what must be checked when extents are known."""
        node = self.tree.nodes[place]
        extent = self.arrays.array(node).expr.shape[axis]
        ends = Constraint(form), Constraint(form_of(extent) - 1 - form)
        if all(self.space.holds(c, context) for c in ends) or not self.space.possible(context):
            return [], ()
        text = self.tree.source(place)
        near = self.space.related([form], context)
        system = self.space.known([form, form_of(extent)], context)
        if any(label_of(name) is None for name in system.names) or not isinstance(extent, int):
            if always_outside(form, extent, self.space.extents, near):
                raise self.out_of_range(place, axis, "leaves {0} to {1} whatever the extents are")
            what = f"{line_and_column(self.tree.text, node.start)}: {text}"
            return [CheckedAccess(form, extent, what)], near
        span = self.space.span(form, context)
        if span is None or (span[0] >= 0 and span[1] < extent):
            return [], ()
        low = self.arrays.array(node).lows[axis].constant
        wrong = (span[0] if span[0] < 0 else span[1]) + low
        raise self.out_of_range(place, axis, f"is {wrong}, and goes from {{0}} to {{1}}")

    def out_of_range(self, place: int, axis: int, told: str) -> ShapeError:
        """The error for a subscript, of which something is told by the ends of the axis."""
        node = self.tree.nodes[place]
        array = self.arrays.array(node)
        shown, low = self.tree.source(node.args[axis]), array.lows[axis]
        told = told.format(low, low + form_of(array.expr.shape[axis]) - 1)
        message = (
            f"{self.tree.source(place)} reads outside of {node.name}, of shape "
            f"{show_shape(array.expr.shape)}: index {shown} of axis {axis} {told}"
        )
        return self.tree.shape_error(message, self.tree.nodes[node.args[axis]].start, RangeError)

    def wrapped(self, place: int, axis: int, label: int, context: Context) -> Steps:
        """The entry at mod(e, n): a selection by computed integers."""
        node = self.tree.nodes[place]
        low = self.arrays.array(node).lows[axis]
        call = self.tree.nodes[node.args[axis]]
        if len(call.args) != 2:
            raise self.tree.error("mod takes two arguments", call.at)
        modulus = self.subscript(call.args[1])
        free = any(label_of(name) is not None for name in modulus.names)
        if free or (not modulus.terms and modulus.constant < 1):
            at = self.tree.nodes[call.args[1]].start
            raise self.tree.error(
                "the second argument of mod is a positive number or dimension", at
            )
        extents = self.space.extents
        inner: Labelled | None = None
        if self.integers.affine(call.args[0]) is None:
            inner = yield self.integer(call.args[0], context)
        if inner is None:
            places = labelled_modulo(self.subscript(call.args[0]), modulus, extents)
        else:
            places = labelled_call("mod", [inner, labelled_affine(modulus, extents)], extents)
        accesses, _ = self.inside(place, axis, modulus - 1 - low, ())
        lowest, _ = self.inside(place, axis, -low, ())
        extent = self.arrays.array(node).expr.shape[axis]
        found = self.selected(places, low, extent, label)
        return [found, *indicator({}, [], [*accesses, *lowest])]
