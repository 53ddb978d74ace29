"""The index language: `parse_index`.

text -> syntax tree (syntax) -> labels of indices (integers, ranges) -> expression
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...graph.extents import extent_coef, extent_from, extent_names, inverse_extent, show_shape
from ...graph.nodes import Expr, Var
from ...graph.normal import scale
from ...graph.products import filled, numeral
from ...integers.affine import Affine
from ...integers.boxes import index
from ...ops.indicator import label_of
from ...support.errors import ParseError
from ...support.limits import for_text
from ...support.trampoline import Steps, run
from ..reading.declarations import declared_variables, keeping_used
from ..reading.loops import LoopLanguage, with_loops
from ..reading.numbers import NUMBERS
from ..reading.tree import Node, SyntaxStatement
from .arrays import Arrays, OffsetArray
from .conditions import Conditions
from .entries import Entries
from .grammar import COMPARISONS, LEXICON, IndexTree
from .integers import Integers
from .iteration_space import Context, IterationSpace, Placed
from .ranges import Ranges
from .spellings import no_function
from .syntax import index_syntax_tree
from .values import (
    Labelled,
    array_operands,
    combined_pieces,
    entry_arity,
    labelled_affine,
    labelled_call,
    labelled_modulo,
    labelled_multiple,
    labelled_product,
    labelled_sum,
    reduced_over,
    summed_partially,
    with_axes,
)


@for_text
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
        where that is so for all extents, else at evaluation.
    LimitError
        Text that asks for more than its share of work (see `limits`).

    Notes
    -----
    Other names in bounds are those of dimensions, whose extents are given at evaluation. Entries of
    integer variables may be subscripts, and count from the end where they are negative, as in
    ``x[idx]``.

    ``fold(s -> r[j] = tanh(sum[k](w[j,k]*s[k]) + x[i][j]), s0, i=0..T-1)[k]`` is an entry of the
    state after a loop, whose step is a text of this language (see `fold`).

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
    return with_loops(text, declared_variables(text, declarations), _LANGUAGE)


def _without_loops(text: str, declared: Mapping[str, Var]) -> Expr:
    tree = index_syntax_tree(text)
    return keeping_used(_ExpressionBuilder(tree, declared).run(), tree, declared)


_LANGUAGE = LoopLanguage(_without_loops, LEXICON, names_value=True)

#: The operators of sums.
SIGNS = {"+": 1, "-": -1}


def _has_labels(form: Affine) -> bool:
    return any(label_of(name) is not None for name in form.names)


class _ExpressionBuilder:
    """The expression of every statement; a node is read after the indices around it are labels."""

    def __init__(self, tree: IndexTree, declared: Mapping[str, Var]) -> None:
        self.tree = tree
        self.declared = declared
        self.dimensions = extent_names([e for v in declared.values() for e in v.shape])
        self.dimensions |= tree.named_in_bounds() - {
            name for name, v in declared.items() if v.ndim or not v.integral
        }
        self.checked = 0  # nodes of statements before
        self.space = IterationSpace()
        self.extents = self.space.extents
        self.integers = Integers(tree, self.dimensions)
        self.arrays = Arrays(tree, declared, self.integers, lambda given: parse_index(given, x=()))
        self.ranges = Ranges(tree, declared, self.arrays, self.space, self.integers)
        self.entries = Entries(tree, self.arrays, self.space, self.integers, self.value)
        self.conditions = Conditions(tree, self.integers, self.space, self.value)
        self.rules: dict[str, Callable[[int, Node, Context], Steps]] = {
            "binder": self.binder,
            "guard": self.conditions.guard,
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

    def statement(self, statement: SyntaxStatement) -> Expr:
        if statement.name in self.declared:
            raise self.tree.error(
                f"`{statement.name}` is declared; choose another name", statement.at
            )
        self.check_names(statement)
        lows, word = [], []
        context: Context = ()
        for place in statement.indices:
            found = self.ranges.output(place)
            self.integers.forms[place] = found.form
            lows.append(found.form - index(found.label))
            word.append(found.label)
            context += found.conditions
        value: Labelled = run(self.value(statement.root, context))
        e = with_axes(value, tuple(word), self.extents)
        self.arrays.named[statement.name] = OffsetArray(e, tuple(lows))
        return e

    def check_names(self, statement: SyntaxStatement) -> None:
        """Refuse names that stand for nothing: no range would follow from them.

        Bounds, subscripts and arguments of functions of whole arrays are read by others.
        """
        first, self.checked = self.checked, statement.root + 1
        others = {end for index in self.tree.indices for end in (index.low, index.high)}
        found: list[Node] = []
        for place in reversed(range(first, self.checked)):
            node = self.tree.nodes[place]
            whole = node.kind == "call" and entry_arity(node.name) is None
            if place in others or node.kind == "access" or whole:
                others.update(node.args)
            if place not in others and (node.kind == "name" or whole):
                found.append(node)
        for node in reversed(found):
            if node.kind == "name":
                self.name(node)
            elif array_operands(node.name) is None:
                raise self.no_function(node)

    def no_function(self, node: Node) -> ParseError:
        """The error for a call of a name that is no function."""
        arguments = ", ".join(map(self.tree.source, node.args))
        message = no_function(node.name, arguments, node.name in self.arrays.named)
        return self.tree.error(message, node.at)

    # --- values -----------------------------------------------------------------------------------

    def value(self, place: int, context: Context) -> Steps:
        node = self.tree.nodes[place]
        if node.kind == "number":
            return Labelled(numeral(float(node.name)), ())
        if node.kind == "index":
            return labelled_affine(self.integers.forms[node.indices[0]], self.extents)
        if node.kind == "name":
            return self.name(node)
        if node.kind == "access":
            return (yield self.entries.entry(place, context))
        return (yield self.rules[node.kind](place, node, context))

    def name(self, node: Node) -> Labelled:
        if node.name in self.arrays.named:
            array = self.arrays.named[node.name]
            self.arrays.check_arity(node, array)
            return Labelled(array.expr, ())
        if node.name in self.dimensions:
            return Labelled(filled(extent_coef(node.name), ()), ())
        if node.name in NUMBERS:
            return Labelled(numeral(NUMBERS[node.name]), ())
        raise self.arrays.unknown(node)

    # --- operators --------------------------------------------------------------------------------

    def prefix(self, place: int, node: Node, context: Context) -> Steps:
        if node.name == "~":
            return (yield self.conditions.condition(place, context))
        value: Labelled = yield self.value(node.args[0], context)
        if node.name == "-" and self.tree.nodes[node.args[0]].kind == "number":
            return Labelled(numeral(-float(self.tree.nodes[node.args[0]].name)), ())  # 0 has a sign
        return labelled_multiple(value, -1) if node.name == "-" else value

    def infix(self, place: int, node: Node, context: Context) -> Steps:
        if node.name in (*COMPARISONS, "&", "|"):
            return (yield self.conditions.condition(place, context))
        if node.name == "*":
            return (yield self.product(node, context))
        if node.name in SIGNS:
            return (yield self.sum(node, context))
        left: Labelled = yield self.value(node.args[0], context)
        divisor = self.integers.affine(node.args[1]) if node.name == "/" else None
        if divisor is not None and divisor.terms and not _has_labels(divisor):
            return Labelled(scale(left.expr, inverse_extent(extent_from(divisor))), left.word)
        right: Labelled = yield self.value(node.args[1], context)
        return labelled_call("divide" if node.name == "/" else "power", [left, right], self.extents)

    def sum(self, node: Node, context: Context) -> Steps:
        """A chain of sums and differences without parentheses is one sum."""
        terms: list[tuple[int, int]] = []
        first = -1
        while node.kind == "infix" and node.name in SIGNS:
            first = node.args[0]
            terms.append((node.args[1], SIGNS[node.name]))
            node = self.tree.nodes[first]
            if node.args and node.start != self.tree.nodes[node.args[0]].start:
                break  # in parentheses
        values: list[Labelled] = []
        for place, sign in [(first, 1), *reversed(terms)]:
            value: Labelled = yield self.value(place, context)
            values.append(value if sign > 0 else labelled_multiple(value, -1))
        return labelled_sum(values, self.extents)

    def product(self, node: Node, context: Context) -> Steps:
        """A product; its other factors are read under the constraints of its guards."""
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
            factor = k
            while (
                self.tree.nodes[factor].kind == "prefix" and self.tree.nodes[factor].name in SIGNS
            ):
                (factor,) = self.tree.nodes[factor].args
            if self.tree.nodes[factor].kind == "guard":
                said[k] = yield self.conditions.known_where(factor, True, context)
        values: list[Labelled] = []
        for k in places:
            others = [c for other, cs in said.items() if other != k for c in cs]
            values.append((yield self.value(k, (*context, *others))))
        return labelled_product(values, self.extents)

    def call(self, place: int, node: Node, context: Context) -> Steps:
        wanted = entry_arity(node.name)
        if wanted is None and array_operands(node.name) is not None:
            array = self.arrays.computed(place)
            if array.expr.ndim:
                shown = show_shape(array.expr.shape)
                message = f"{node.name} has shape {shown} here: its entries are {node.name}(…)[…]"
                raise self.tree.shape_error(message, node.at)
            return Labelled(array.expr, ())
        if wanted is None:
            raise self.no_function(node)
        if not wanted[0] <= len(node.args) <= wanted[1]:
            count = {1: "one argument", 2: "two arguments"}.get(wanted[0], f"{wanted[0]} arguments")
            message = f"{node.name} takes {count}, not {len(node.args)}"
            raise self.tree.error(message, node.at)
        forms = [self.integers.affine(arg) for arg in node.args] if node.name == "mod" else []
        if len(forms) == 2 and forms[0] and forms[1] and not _has_labels(forms[1]):
            return labelled_modulo(forms[0], forms[1], self.extents)
        contexts = [context] * len(node.args)
        if node.name == "where":
            for k, positive in ((1, True), (2, False)):
                contexts[k] = (
                    *context,
                    *(yield self.conditions.known_where(node.args[0], positive, context)),
                )
        values: list[Labelled] = []
        for arg, inner in zip(node.args, contexts, strict=True):
            values.append((yield self.value(arg, inner)))
        return labelled_call(node.name, values, self.extents)

    # --- binders ----------------------------------------------------------------------------------

    def binder(self, place: int, node: Node, context: Context) -> Steps:
        """A sum, product or extremum; one for each piece of the ranges."""
        states: list[tuple[dict[int, Placed], Context]] = [({}, ())]
        for k in node.indices:
            found = []
            for state, conditions in states:
                self.integers.forms.update({p: placed.form for p, placed in state.items()})
                for placed in self.ranges.pieces(k, (*context, *conditions)):
                    found.append(({**state, k: placed}, (*conditions, *placed.conditions)))
            states = found
        values: list[Labelled] = []
        for state, conditions in states:
            self.integers.forms.update({p: placed.form for p, placed in state.items()})
            labels = [placed.label for placed in state.values()]
            ends = None if context else self.partial_sums(node, labels, conditions)
            inner = conditions if ends is None else ()
            body: Labelled = yield self.value(node.args[0], (*context, *inner))
            if ends is not None and labels[0] in body.word:
                values.append(summed_partially(body, labels[0], *ends))
            else:
                values.append(reduced_over(node.name, body, labels, conditions, self.extents))
        return combined_pieces(node.name, values, self.extents)

    def partial_sums(
        self, node: Node, labels: Sequence[int], conditions: Context
    ) -> tuple[int, bool] | None:
        """The index up to which, or (True) from which on, a sum goes over another; else None.

        It has the same range, and what is summed does not depend on it.
        """
        if node.name != "sum" or len(labels) != 1 or len(conditions) != 1:
            return None
        (condition,) = conditions
        coefs = {label_of(name): c for name, c in condition.form.terms}
        if condition.equality or condition.form.constant or sorted(coefs.values()) != [-1, 1]:
            return None
        from_on = coefs.pop(labels[0], 0) > 0
        (other,) = coefs if len(coefs) == 1 else (None,)
        if other is None or self.extents[other] != self.extents[labels[0]]:
            return None
        waiting = [node.args[0]]
        while waiting:
            inner = self.tree.nodes[waiting.pop()]
            if inner.kind == "binder" or (inner.kind == "access" and inner.indices):
                return None
            if inner.kind == "index":
                form = self.integers.forms[inner.indices[0]]
                if other in map(label_of, form.names):
                    return None
            waiting += inner.args
        return other, from_on
