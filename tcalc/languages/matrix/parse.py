"""The matrix language: `parse`.

text -> syntax tree (syntax) -> types and dimensions (inference) -> expression
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...graph.applications import apply
from ...graph.extents import Extent, extent_coef
from ...graph.nodes import Expr, Var
from ...graph.normal import add, scale
from ...graph.operators import TABLE
from ...graph.products import filled, numeral, numeric_value
from ...graph.variables import var
from ...ops.arithmetic import broadcast
from ...support.errors import ParseError, ShapeError, UnsupportedError
from ...support.limits import for_text
from ..reading.calls import ADDING, ArrayTree
from ..reading.declarations import declared_variables, keeping_used
from ..reading.library import LIBRARY
from ..reading.loops import LoopLanguage, with_loops
from ..reading.numbers import NUMBERS
from ..reading.tree import Node
from .functions import OPERATOR_FUNCTIONS, implementation
from .general_calls import general_call, is_general
from .inference import Typed, infer
from .syntax import LEXICON, argument, factor_source, matrix_syntax_tree
from .types import MATRIX_PRODUCTS

MAX_MATRIX_POWER = 1_000_000


@for_text
def parse(text: str, /, **declarations: Any) -> Expr:
    """The expression that a text of the matrix language stands for.

    Parameters
    ----------
    text : str
        Statements ``name = expression``, separated by ``;`` or newlines; the last is the value and
        needs no name. Operators are MATLAB's: ``* / ^ '`` of matrices, ``.* ./ .^`` of entries,
        comparisons, which are 1 or 0.
        Functions that reduce take ``axis=`` as NumPy's, ``x[1:]`` and ``X[rows, 0]`` index from 0
        as NumPy does, ``[[1, 2], [3, 4]]`` are numbers, and ``#('ij,jk->ik', A, B)`` is a product
        of arrays of any number of axes. ``fold(s -> tanh(w*s + x[i]), s0, i=0..T-1)`` is the state
        after a loop (see `fold`; `fold_after` gives the states after every step, `fold_before`
        before it), where operands may have names: ``fold(s -> u*s, s0, u=A*B, i=0..9)``. It reads
        what `str` of an expression prints, but for arrays of more than 64 numbers.
    **declarations : int, str, tuple of int and str, or variable
        Shapes (or variables) by name. Undeclared names of one letter and digits are scalars (a–g),
        columns (h–z, and of a–g those that are transposed somewhere) or matrices (A–Z) whose
        dimensions follow from their use; but the name of a dimension that the declarations or the
        text mention is its extent.

    Returns
    -------
    Expr
        Columns and rows have one axis.

    Raises
    ------
    ParseError
        Text that is not in the language; the message shows the place and what was expected.
    ShapeError
        Operands that do not fit; the message names both, their shapes and the index.
    LimitError
        Text that asks for more than its share of work (see `limits`).

    Examples
    --------
    >>> import tcalc as tc
    >>> tc.parse("X'*(X*w - y)", X=("m", "n"), w=("n",), y=("m",)).shape
    ('n',)
    """
    return with_loops(text, declared_variables(text, declarations), _LANGUAGE)


def _without_loops(text: str, declared: Mapping[str, Var]) -> Expr:
    tree = matrix_syntax_tree(text)
    builder = _ExpressionBuilder(tree, infer(tree, declared, parse), declared)
    return keeping_used(builder.run(), tree, builder.variables)


_LANGUAGE = LoopLanguage(_without_loops, LEXICON)


class _ExpressionBuilder:
    """The expression of every node, operands first, by the library's functions."""

    def __init__(self, tree: ArrayTree, typed: Typed, declared: Mapping[str, Var]) -> None:
        self.tree = tree
        self.typed = typed
        self.built: list[Expr] = []
        undeclared = {name: var(name, typed.shape(t)) for name, t in typed.undeclared.items()}
        self.variables = {**declared, **undeclared}
        self.terms: dict[int, list[Expr]] = {}  # of sums that go on
        self.continued = tree.continued
        numbers = {name: numeral(value) for name, value in NUMBERS.items()}
        self.names: dict[str, Expr] = {**numbers, **self.variables}
        for name in typed.numbers:
            self.names[name] = filled(extent_coef(name), ())
        self.rules: dict[str, Callable[[Node], Expr]] = {
            "number": lambda node: numeral(float(node.name)),
            "size": lambda node: numeral(0),
            "literal": lambda node: numeral(0),
            "array": lambda node: _call("const", self.tree.numbers(node)),
            "index": self.general,
            "name": self.name,
            "use": lambda node: self.built[node.args[0]],
            "prefix": self.prefix,
            "postfix": lambda node: _call("transpose", self.built[node.args[0]]),
            "infix": self.infix,
            "einsum": self.einsum,
            "call": self.call,
        }
        self.functions: dict[str, Callable[..., Expr]] = {
            "eye": self.identity,
            "vector": self.filled,
            "matrix": self.filled,
            "kron": self.kronecker,
            "norm": lambda node, a, *p: _call("norm" if a.shape else "abs", a, *p),
            "norm1": lambda node, a: _call("sum", _call("abs", a)),
            "norm2": lambda node, a: _call("norm" if a.shape else "abs", a),
            "max": lambda node, *args: _call("max" if len(args) == 1 else "maximum", *args),
            "min": lambda node, *args: _call("min" if len(args) == 1 else "minimum", *args),
        }

    def run(self) -> Expr:
        for node in self.tree.nodes:
            try:
                self.built.append(self.rules[node.kind](node))
            except ParseError:
                raise
            except ShapeError as error:
                raise self.tree.placed(error, node.at) from error
            except UnsupportedError as error:
                raise self.tree.error(str(error), node.at) from error
        return self.built[self.tree.statements[-1].root]

    def kind(self, place: int) -> str:
        return self.typed.types[place].kind

    def name(self, node: Node) -> Expr:
        if node.name in self.names:
            return self.names[node.name]
        return self.identity(node)

    def shape(self) -> tuple[Any, ...]:
        """The shape of the node being built."""
        return self.typed.shape(self.typed.types[len(self.built)])

    def prefix(self, node: Node) -> Expr:
        operand, literal = self.built[node.args[0]], self.tree.nodes[node.args[0]]
        if node.name != "-":
            return operand
        if literal.kind == "number":
            return numeral(-float(literal.name))  # as 0 has a sign
        return _call("negative", operand)

    def infix(self, node: Node) -> Expr:
        left, right = (self.built[place] for place in node.args)
        kinds = (self.kind(node.args[0]), self.kind(node.args[1]))
        if node.name == "*" and kinds in MATRIX_PRODUCTS:
            *words, out, _ = MATRIX_PRODUCTS[kinds]
            return _call("einsum", f"{words[0]},{words[1]}->{out}", left, right)
        if node.name == "\\":
            return _call("solve", left, right)
        if node.name == "⊗":
            return self.kronecker(node, left, right)
        if node.name == "^":
            return self.power(node, left, right)
        if node.name in ADDING:
            return self.sum(node, left, right)
        return _call(OPERATOR_FUNCTIONS[node.name], left, right)

    def extent(self, node: Node) -> Extent | None:
        """The extent that a call is, as a number."""
        is_extent = node.kind == "call" and node.name == "extent"
        return argument(self.tree.nodes[node.args[0]]) if is_extent else None

    def sum(self, node: Node, left: Expr, right: Expr) -> Expr:
        """A chain of sums and differences without parentheses is one sum, built at its end."""
        place = len(self.built)
        terms = self.terms.pop(node.args[0], None) or [left]
        terms.append(right if node.name == "+" else scale(right, extent_coef(-1)))
        if place not in self.continued:
            return add(broadcast(*terms))
        self.terms[place] = terms
        return left if left.shape else right

    def einsum(self, node: Node) -> Expr:
        form = self.tree.forms[len(self.built)]
        operands = [self.built[place] for place in node.args]
        return _call("einsum", form.text, *operands, sizes=form.sizes)

    def kronecker(self, node: Node, left: Expr, right: Expr) -> Expr:
        kinds = tuple(map(self.kind, node.args))
        if kinds == ("column", "row"):
            return _call("outer", left, right)
        if kinds == ("row", "column"):
            return _call("outer", right, left)
        return _call("kron", left, right)

    def power(self, node: Node, base: Expr, exponent: Expr) -> Expr:
        if not base.shape:
            return _call("power", base, exponent)
        value = numeric_value(exponent)
        if value is None or not float(value).is_integer():
            factors = [factor_source(self.tree, place) for place in node.args]
            message = "the power of a matrix is an integer number; write {} .^ {} for entries"
            raise self.tree.error(message.format(*factors), node.at)
        if abs(value) > MAX_MATRIX_POWER:
            message = f"the power of a matrix is at most {MAX_MATRIX_POWER} in magnitude"
            raise self.tree.error(message, node.at)
        return _matrix_power(base, int(value))

    def general(self, node: Node) -> Expr:
        return general_call(self.tree, len(self.built), [*map(self.argument, node.args)], parse)

    def call(self, node: Node) -> Expr:
        arrays = any(self.kind(place) == "array" for place in node.args)
        if is_general(self.tree, len(self.built), arrays):
            return self.general(node)
        if node.name in self.functions:
            return self.functions[node.name](node, *map(self.argument, node.args))
        if node.name in ("zeros", "ones"):
            return _call(node.name, [*map(self.argument, node.args)])
        if (extent := self.extent(node)) is not None:
            return filled(extent_coef(extent), ())
        if self.tree.nodes[node.args[0]].kind == "size":
            return apply(TABLE[node.name], params=tuple(map(self.argument, node.args)))
        found: Expr = implementation(node.name)(*map(self.argument, node.args))
        return found

    def argument(self, place: int) -> Any:
        """An expression, a literal's value or an extent."""
        written = argument(self.tree.nodes[place])
        return self.built[place] if written is None else written

    def identity(self, node: Node, *_: object) -> Expr:
        return _call("eye", self.shape()[0])

    def filled(self, node: Node, value: Expr, *_: object) -> Expr:
        return _call("broadcast_to", value, self.shape())


def _call(name: str, *args: Any, **options: Any) -> Expr:
    """A function of the library."""
    found: Expr = LIBRARY[name](*args, **options)
    return found


def _matrix_power(base: Expr, exponent: int) -> Expr:
    """Repeated squaring."""
    if exponent == 0:
        return _call("eye", base.shape[0])
    if exponent < 0:
        base, exponent = _call("inv", base), -exponent
    result: Expr | None = None
    while exponent:
        if exponent & 1:
            result = base if result is None else _call("matmul", result, base)
        exponent >>= 1
        if exponent:
            base = _call("matmul", base, base)
    assert result is not None
    return result
