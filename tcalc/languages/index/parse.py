"""The index language: `parse_index`.

text -> syntax tree (index_syntax) -> ranges of indices (index_integers, index_ranges) -> expression
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...graph.extents import extent_coef, show_shape
from ...graph.nodes import Expr, Var
from ...graph.products import filled, numeral
from ...graph.variables import canonical_name, var
from ...ops.indicator import index
from ...support.trampoline import Steps, run
from ..reading.lexer import shape_error
from ..reading.precedence import Node
from .arrays import Array
from .conditions import Conditions
from .ranges import Context, Placed
from .syntax import parse_tree
from .values import (
    NUMBERS,
    Val,
    added,
    arity,
    bound,
    called,
    closest,
    combined,
    integers,
    moved,
    multiplied,
    operands_of,
    scaled,
)
from .words import COMPARISONS, Statement, Tree


def parse_index(text: str, /, **declarations: Any) -> Expr:
    """The expression that a text of the index language stands for.

    Parameters
    ----------
    text : str
        Statements ``name[indices] = expression``, separated by ``;`` or newlines. Earlier names are
        arrays later; the last statement is the value, one axis for each of its indices.
    **declarations : int, str, tuple of int and str, or variable
        Shapes (or variables) by name, `()` for scalars.

    Returns
    -------
    Expr

    Raises
    ------
    ParseError
        Text that is not in the language; the message shows the place and what was expected.
    ShapeError
        Indices whose ranges disagree, and entries read outside of an array: a `RangeError`, here
        where extents are numbers, else at evaluation.

    Notes
    -----
    Ranges are ``i=low..high``, both ends included; a range that is not given is that of the axes
    along which the index stands alone. Where the range of an index on the left starts at another
    number than 0, so does that axis of the array for the statements that follow; the first entry of
    the value's axis is that of the lower end.

    Examples
    --------
    >>> import tcalc as tc
    >>> y = tc.parse_index("y[i=0..n-m] = sum[k](w[k]*x[i+k])", x="n", w="m")
    >>> print(y(x=[1.0, 2.0, 4.0, 8.0], w=[1.0, -1.0]))
    [-1. -2. -4.]
    """
    if not isinstance(text, str):
        raise TypeError(f"the text of an expression is a str, not {type(text).__name__}")
    declared = {canonical_name(k): _declared(k, given) for k, given in declarations.items()}
    return _Builder(parse_tree(text), declared).run()


def _declared(name: str, given: object) -> Var:
    if isinstance(given, Var):
        return given
    if isinstance(given, int | str | tuple | list):
        return var(name, given)
    raise TypeError(f"{name} is declared by a shape or a variable, not by {type(given).__name__}")


class _Builder(Conditions):
    """Expressions of all statements, from the outside in."""

    def __init__(self, tree: Tree, declared: dict[str, Var]) -> None:
        super().__init__(tree, declared)
        self.rules: dict[str, Callable[[int, Node, Context], Steps]] = {
            "binder": self.binder,
            "guard": self.guard,
            "prefix": self.prefix,
            "infix": self.infix,
            "call": self.call,
        }

    def run(self) -> Expr:
        value: Expr | None = None
        for statement in self.tree.statements:
            value = self.statement(statement)
        assert value is not None
        return value

    def statement(self, statement: Statement) -> Expr:
        if statement.name in self.declared:
            raise self.fail(f"`{statement.name}` is declared; choose another name", statement.at)
        lows, word = [], []
        context: Context = ()
        for place in statement.indices:
            found = self.output(place)
            self.integers.forms[place] = found.form
            lows.append(found.form - index(found.label))
            word.append(found.label)
            context += found.conditions
        value: Val = run(self.value(statement.root, context))
        e = moved(value, tuple(word), self.labels.extents)
        self.arrays[statement.name] = Array(e, tuple(lows))
        return e

    # --- values -----------------------------------------------------------------------------------

    def value(self, place: int, context: Context) -> Steps:
        node = self.tree.nodes[place]
        if node.kind == "number":
            return Val(numeral(float(node.name)), ())
        if node.kind == "index":
            return integers(self.integers.forms[node.indices[0]], self.labels.extents)
        if node.kind == "name":
            return self.name(node)
        if node.kind == "access":
            return self.entry(place, context)
        return (yield self.rules[node.kind](place, node, context))

    def name(self, node: Node) -> Val:
        if node.name in self.arrays:
            array = self.arrays[node.name]
            self.check_arity(node, array)
            return Val(array.expr, ())
        if node.name in self.dimensions:
            return Val(filled(extent_coef(node.name), ()), ())
        if node.name in NUMBERS:
            return Val(numeral(NUMBERS[node.name]), ())
        raise self.unknown(node)

    # --- operators --------------------------------------------------------------------------------

    def prefix(self, place: int, node: Node, context: Context) -> Steps:
        if node.name == "~":
            return (yield self.condition(place, context))
        value: Val = yield self.value(node.args[0], context)
        return scaled(value, -1) if node.name == "-" else value

    def infix(self, place: int, node: Node, context: Context) -> Steps:
        if node.name in (*COMPARISONS, "&", "|"):
            return (yield self.condition(place, context))
        if node.name == "*":
            return (yield self.product(node, context))
        left: Val = yield self.value(node.args[0], context)
        right: Val = yield self.value(node.args[1], context)
        extents = self.labels.extents
        if node.name == "-":
            right = scaled(right, -1)
        if node.name in "+-":
            return added([left, right], extents)
        return called("divide" if node.name == "/" else "power", [left, right], extents)

    def product(self, node: Node, context: Context) -> Steps:
        """A product; what its guards say is known in its other factors."""
        places, waiting = [], [node.args[1], node.args[0]]
        while waiting:
            inner = self.tree.nodes[waiting[-1]]
            place = waiting.pop()
            if inner.kind == "infix" and inner.name == "*":
                waiting += [inner.args[1], inner.args[0]]
            else:
                places.append(place)
        said: dict[int, Context] = {}
        for k in places:
            if self.tree.nodes[k].kind == "guard":
                said[k] = yield self.said(k, True)
        values: list[Val] = []
        for k in places:
            others = [c for other, cs in said.items() if other != k for c in cs]
            values.append((yield self.value(k, (*context, *others))))
        return multiplied(values, self.labels.extents)

    def call(self, place: int, node: Node, context: Context) -> Steps:
        wanted = arity(node.name)
        if wanted is None and operands_of(node.name) is not None:
            array = self.computed(place)
            if array.expr.ndim:
                shown = show_shape(array.expr.shape)
                message = f"{node.name} has shape {shown} here: its entries are {node.name}(…)[…]"
                raise shape_error(message, self.tree.text, node.at)
            return Val(array.expr, ())
        if wanted is None:
            message = f"there is no function `{node.name}`"
            if node.name in self.arrays:
                message = f"`{node.name}` is an array; its entries are {node.name}[…]"
            elif near := closest(node.name):
                message += f"; did you mean {near}?"
            raise self.fail(message, node.at)
        if not wanted[0] <= len(node.args) <= wanted[1]:
            count = {1: "one argument", 2: "two arguments"}.get(wanted[0], f"{wanted[0]} arguments")
            message = f"{node.name} takes {count}, not {len(node.args)}"
            raise self.fail(message, node.at)
        contexts = [context] * len(node.args)
        if node.name == "where":
            for k, positive in ((1, True), (2, False)):
                contexts[k] = (*context, *(yield self.said(node.args[0], positive)))
        values: list[Val] = []
        for arg, inner in zip(node.args, contexts, strict=True):
            values.append((yield self.value(arg, inner)))
        return called(node.name, values, self.labels.extents)

    # --- binders ----------------------------------------------------------------------------------

    def binder(self, place: int, node: Node, context: Context) -> Steps:
        """A sum, product or extremum; one for each piece of the ranges."""
        states: list[tuple[dict[int, Placed], Context]] = [({}, ())]
        for k in node.indices:
            found = []
            for state, conditions in states:
                self.integers.forms.update({p: placed.form for p, placed in state.items()})
                for placed in self.ranges(k, (*context, *conditions)):
                    found.append(({**state, k: placed}, (*conditions, *placed.conditions)))
            states = found
        values: list[Val] = []
        for state, conditions in states:
            self.integers.forms.update({p: placed.form for p, placed in state.items()})
            body: Val = yield self.value(node.args[0], (*context, *conditions))
            labels = [placed.label for placed in state.values()]
            values.append(bound(node.name, body, labels, conditions, self.labels.extents))
        return combined(node.name, values, self.labels.extents)
