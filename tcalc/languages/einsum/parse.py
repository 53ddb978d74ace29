"""The einsum language: `parse_einsum`.

text -> syntax tree (syntax) -> shapes of undeclared names (undeclared) -> expression
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

from ...graph.extent_forms import floor_divided, times
from ...graph.extents import (
    extent_coef,
    extent_from,
    extent_names,
    form_of,
    inverse_extent,
    show_shape,
)
from ...graph.nodes import Expr, Var
from ...graph.normal import add, einsum, scale
from ...graph.operators import TABLE
from ...graph.products import filled, numeral
from ...graph.variables import check_extent, var
from ...integers.affine import Affine
from ...ops.arithmetic import broadcast
from ...support.errors import Error, LimitError, ParseError, ShapeError
from ...support.limits import for_text
from ...support.misspelt import closest_name
from ..reading.calls import ADDING, ArrayTree
from ..reading.declarations import declared_variables, keeping_used
from ..reading.foreign import CALLED
from ..reading.library import LIBRARY
from ..reading.loops import LoopLanguage, with_loops
from ..reading.numbers import NUMBERS
from ..reading.row_calls import called_row, options
from ..reading.rows import row_named
from ..reading.tree import Node
from .syntax import FUNCTIONS_TOO, LEXICON, einsum_syntax_tree
from .undeclared import undeclared_shapes

#: Names of functions that NumPy has under another one.
ALIASES = {
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "chol": "cholesky", "tr": "trace",
}  # fmt: skip
#: The functions of operators that act entry by entry.
OPERATORS = {
    "+": "add", "-": "subtract", "*": "multiply", "/": "divide", "^": "power", "<": "less",
    "<=": "less_equal", ">": "greater", ">=": "greater_equal", "==": "equal", "!=": "not_equal",
}  # fmt: skip
#: Functions of entries that are no row of the operator table.
ENTRY_FUNCTIONS = ("where", "square", "clip", "greater", "greater_equal")
#: What advice calls the indices of operands.
LETTERS = "ijklmnopq"
#: Axes of one array, as in NumPy.
MAX_AXES = 64


@for_text
def parse_einsum(text: str, /, **declarations: Any) -> Expr:
    """The expression that a text of the einsum language stands for.

    Parameters
    ----------
    text : str
        Lines ``name = expression`` (or separated by ``;``), then one expression. A product over
        indices is ``#('ij,jk->ik', A, B)``, its letters known to no other; letters of the result
        may repeat, and have their extent stated where no operand has them: ``#('->ii', i=n)``.
        ``+ - * / ^`` act entry by entry on operands of one shape or scalars, ``A@B`` contracts the
        last axis of A with the first of B, ``A@@B`` is the outer product, ``|A|`` the magnitude of
        entries.
    **declarations : int, str, tuple of int and str, or variable
        Shapes (or variables) by name. An undeclared name has as many axes as its letters in an
        einsum form or what it is combined with entry by entry, else 2; but the name of a dimension
        is its extent.

    Returns
    -------
    Expr

    Raises
    ------
    ParseError
        Text that is not in the language; the message shows the place and what was expected.
    ShapeError
        Operands that do not fit; the message names both and their shapes.
    LimitError
        Text that asks for more than its share of work (see `limits`).

    Notes
    -----
    It reads what `to_einsum` prints, and gives the same node, apart from arrays of more than 64
    numbers, of which only the shape is printed: these are a ParseError.

    Examples
    --------
    >>> import tcalc as tc
    >>> f = tc.parse_einsum("#('ij,jk->ik', A, B) + C", A=("m", "k"), B=("k", "n"), C=("m", "n"))
    >>> print(f)
    C + A*B
    """
    return with_loops(text, declared_variables(text, declarations), _LANGUAGE)


def _without_loops(text: str, declared: Mapping[str, Var]) -> Expr:
    tree = einsum_syntax_tree(text)
    builder = _ExpressionBuilder(tree, declared)
    return keeping_used(builder.run(), tree, builder.variables)


_LANGUAGE = LoopLanguage(_without_loops, LEXICON)


class _ExpressionBuilder:
    """The expression of every node, operands first.

    `forms` are affine forms of those nodes that are made of integers and dimensions alone, `terms`
    those of sums that go on, which are the nodes in `continued`.
    """

    def __init__(self, tree: ArrayTree, declared: Mapping[str, Var]) -> None:
        self.tree = tree
        self.built: list[Expr] = []
        self.forms: list[Affine | None] = []
        self.declared = declared
        sizes = [e for form in tree.forms.values() for e in form.sizes.values()]
        shapes = [e for v in declared.values() for e in v.shape]
        self.terms: dict[int, list[Expr]] = {}
        self.continued = tree.continued
        self.dimensions = extent_names([*sizes, *shapes]) - declared.keys()
        self.variables: dict[str, Var] = {**declared, **self.undeclared()}
        self.rules: dict[str, Callable[[Node], Expr]] = {
            "number": lambda node: numeral(float(node.name)),
            "array": self.array,
            "name": self.name,
            "use": lambda node: self.built[node.args[0]],
            "prefix": self.prefix,
            "infix": self.infix,
            "einsum": self.einsum,
            "call": self.call,
        }

    def undeclared(self) -> dict[str, Var]:
        """Variables for the names that nothing declares."""
        names = {node.name: node for node in self.tree.nodes if node.kind == "name"}
        known = (*self.declared, *self.dimensions, *NUMBERS)
        free = [name for name in names if name not in known]
        if not free:
            return {}
        entrywise = {*ENTRY_FUNCTIONS, *ALIASES, *[n for n, op in TABLE.items() if op.elementwise]}
        found = undeclared_shapes(self.tree, self.declared, free, entrywise, names.keys())
        return {name: var(name, shape) for name, shape in found.items()}

    def run(self) -> Expr:
        for statement in self.tree.statements:
            if statement.name in self.declared:
                message = f"`{statement.name}` is declared; it cannot be given a value too"
                raise self.tree.error(message, statement.at)
        for node in self.tree.nodes:
            try:
                self.forms.append(self.form(node))
                self.built.append(self.rules[node.kind](node))
            except (ParseError, LimitError):
                raise
            except ShapeError as error:
                raise self.tree.placed(error, node.at) from error
            except (Error, TypeError, ValueError, IndexError) as error:
                raise self.tree.error(f"{node.name}: {error}", node.at) from error
        return self.built[self.tree.statements[-1].root]

    # --- names and numbers ------------------------------------------------------------------------

    def form(self, node: Node) -> Affine | None:
        """The integer that a node is, in dimensions."""
        if node.kind == "number":
            return Affine.of(int(node.name)) if node.name.isdecimal() else None
        if node.kind == "call" and node.name == "extent":
            texts = self.tree.parameters.get(len(self.built), ())
            return form_of(texts[0]) if len(texts) == 1 else None
        if node.kind == "name":
            return Affine.of(node.name) if node.name in self.dimensions else None
        forms = [form for arg in node.args if (form := self.forms[arg]) is not None]
        if len(forms) < len(node.args) or node.kind not in ("prefix", "infix"):
            return None
        return _integer(node.name, forms)

    def name(self, node: Node) -> Expr:
        if node.name in self.variables:
            return self.variables[node.name]
        if node.name in self.dimensions:
            return filled(extent_coef(node.name), ())
        return numeral(NUMBERS[node.name])

    def array(self, node: Node) -> Expr:
        found: Expr = LIBRARY["const"](self.tree.numbers(node))
        return found

    # --- operators --------------------------------------------------------------------------------

    def prefix(self, node: Node) -> Expr:
        operand = self.built[node.args[0]]
        return scale(operand, extent_coef(-1)) if node.name == "-" else operand

    def infix(self, node: Node) -> Expr:
        form = self.forms[-1]
        if form is not None and form.terms and node.name != "*":
            return filled(extent_coef(extent_from(form)), ())
        left, right = (self.built[place] for place in node.args)
        if node.name in ("@", "@@"):
            return self.contracted(node, left, right)
        if node.name == "//":
            message = "// rounds quotients of dimensions; write floor(a/b)"
            raise self.tree.error(message, node.at)
        self.check_entrywise(node)
        if node.name in ADDING:
            return self.sum(node, left, right)
        divisor = self.forms[node.args[1]]
        if node.name == "/" and divisor is not None and divisor.terms:
            return scale(left, inverse_extent(extent_from(divisor)))
        return self.library(OPERATORS[node.name], left, right)

    def sum(self, node: Node, left: Expr, right: Expr) -> Expr:
        """A chain of sums and differences without parentheses is one sum, built at its end."""
        place, first = len(self.built), node.args[0]
        terms = self.terms.pop(first, None) or [left]
        terms.append(right if node.name == "+" else scale(right, extent_coef(-1)))
        if place not in self.continued:
            return add(broadcast(*terms))
        self.terms[place] = terms
        return left if left.shape else right

    def contracted(self, node: Node, left: Expr, right: Expr) -> Expr:
        """The outer product, or the one over the last axis of A and the first of B."""
        if left.ndim + right.ndim > MAX_AXES:
            raise self.tree.error(f"arrays have at most {MAX_AXES} axes", node.at)
        word = tuple(range(left.ndim))
        other = tuple(range(left.ndim, left.ndim + right.ndim))
        if node.name == "@":
            if not (left.shape and right.shape) or left.shape[-1] != right.shape[0]:
                shown = f"{self.described(node.args[0])} and {self.described(node.args[1])}"
                message = (
                    f"{shown}: @ needs the last axis of the first to be the first of the other"
                )
                raise self.tree.shape_error(message, node.at)
            other = (word[-1], *other[1:])
        out = word + other if node.name == "@@" else word[:-1] + other[1:]
        return einsum([left, right], [word, other], out)

    def described(self, place: int) -> str:
        """`A` has shape (m, n)"""
        return f"`{self.tree.source(place)}` has shape {show_shape(self.built[place].shape)}"

    def check_entrywise(self, node: Node) -> None:
        """ShapeError where operands neither have one shape nor are scalars."""
        arrays = [place for place in node.args if self.built[place].shape]
        for place in arrays[1:]:
            one, two = self.built[arrays[0]].shape, self.built[place].shape
            if one == two:
                continue
            shown = f"{self.described(arrays[0])} and {self.described(place)}"
            message = f"they have {len(one)} and {len(two)} axes"
            if len(one) == len(two):
                axis = next(k for k, (a, b) in enumerate(zip(one, two, strict=True)) if a != b)
                message = f"index {axis} has extent {one[axis]} and {two[axis]}"
            advice = self.along_index(node) if node.name == "*" else ""
            advice = advice or "entries are combined of operands of one shape, or with scalars"
            raise self.tree.shape_error(f"{shown}: {message}; {advice}", node.at)

    def along_index(self, node: Node) -> str:
        """What to write for a product of arrays that have an extent in common."""
        one, two = (self.built[place].shape for place in node.args)
        pairs = [(j, k) for j in reversed(range(len(one))) for k in range(len(two))]
        common = [(j, k) for j, k in pairs if one[j] == two[k]]
        if not common or len(one) + len(two) > len(LETTERS):
            return ""
        left, right = list(LETTERS[: len(one)]), list(LETTERS[len(one) : len(one) + len(two)])
        right[common[0][1]] = shared = left[common[0][0]]
        kept = "".join(dict.fromkeys([*left, *right]))
        words = f"{''.join(left)},{''.join(right)}"
        operands = ", ".join(map(self.tree.source, node.args))
        summed, along = (
            f"#('{words}->{out}', {operands})" for out in (kept.replace(shared, ""), kept)
        )
        return f"write {summed} to sum over an index, {along} to keep it"

    # --- calls ------------------------------------------------------------------------------------

    def einsum(self, node: Node) -> Expr:
        form = self.tree.forms[len(self.built)]
        first: dict[str, tuple[int, int]] = {}
        for place, word in zip(node.args, form.words, strict=True):
            if len(word) != self.built[place].ndim:
                message = f"{self.described(place)}, and its letters here are '{word}'"
                raise self.tree.shape_error(message, self.tree.nodes[place].start)
            for axis, letter in enumerate(word):
                other, k = first.setdefault(letter, (place, axis))
                one, two = self.built[other].shape[k], self.built[place].shape[axis]
                if one != two:
                    shown = f"{self.described(other)} and {self.described(place)}"
                    message = f"{shown}: index {letter} has extent {one} and {two}"
                    raise self.tree.shape_error(message, self.tree.nodes[place].start)
        operands = [self.built[place] for place in node.args]
        return self.library("einsum", form.text, *operands, sizes=form.sizes)

    def call(self, node: Node) -> Expr:
        name = ALIASES.get(node.name, node.name)
        texts = self.tree.parameters.get(len(self.built), ())
        args = [self.built[place] for place in node.args]
        row = row_named(name)
        if name == "extent":
            if len(texts) != 1:
                raise self.tree.error("extent takes one dimension, as in extent(n)", node.at)
            return filled(extent_coef(check_extent(texts[0], name)), ())
        if name in ENTRY_FUNCTIONS or (row is not None and not row.parameters):
            self.check_entrywise(node)
            if name in LIBRARY:
                return self.library(name, *args)
        several = name in FUNCTIONS_TOO and len(args) > 1
        if row is None or several or (not texts and name in LIBRARY):
            return self.function(node, name, args, texts)
        if row.part >= 0 and not texts and row.op.name in LIBRARY:
            found: Expr = LIBRARY[row.op.name](*args)[row.part]
            return found
        operands = args if row.parameters else broadcast(*args)
        return called_row(row, operands, texts, lambda given: parse_einsum(given, x=()))

    def function(self, node: Node, name: str, args: list[Expr], texts: tuple[str, ...]) -> Expr:
        """A function of the library, with what it takes by name."""
        if name in FUNCTIONS_TOO and len(args) > 1:
            self.check_entrywise(node)
            return self.library(f"{name}imum", *args)
        if name not in LIBRARY or name == "const":
            raise self.tree.error(self.unknown(node), node.at)
        names = list(signature(LIBRARY[name]).parameters)[: len(args)]
        if "axis" in names[1:]:
            place = node.args[names.index("axis")]
            raise ValueError(f"write axis={self.tree.source(place)}, as operands stand here")
        return self.library(name, *args, **options(LIBRARY[name], texts))

    def unknown(self, node: Node) -> str:
        if node.name in self.variables or any(s.name == node.name for s in self.tree.statements):
            numbers = any(self.tree.nodes[place].kind == "number" for place in node.args)
            entries = "entries are taken by the index language, and " if numbers else ""
            return f"`{node.name}` is no function; {entries}a product is written {node.name}*(…)"
        if node.name in CALLED:
            return f"there is no function `{node.name}`; write {CALLED[node.name]}(…)"
        if node.name == "const":
            return "the numbers of const(…) are not in the text: declare a variable for it"
        close = closest_name(node.name, [*LIBRARY, *TABLE, *ALIASES])
        return f"unknown function `{node.name}`" + (f"; did you mean `{close}`?" if close else "")

    def library(self, name: str, *args: Any, **options: Any) -> Expr:
        found: Expr = LIBRARY[name](*args, **options)
        if not isinstance(found, Expr):
            raise TypeError("it has several results")
        return found


def _integer(operator: str, forms: list[Affine]) -> Affine | None:
    """What an operator makes of affine forms, if it is one."""
    left, right = forms if len(forms) == 2 else (Affine(), forms[0])
    if operator in ("+", "-"):
        return left + right * (1 if operator == "+" else -1)
    if operator == "*":
        return times(left, right)
    if operator == "//" and not right.terms and right.constant > 0:
        return floor_divided(left, right.constant)
    return None
