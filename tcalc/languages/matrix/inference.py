"""The matrix language, second phase: types of all nodes, dimensions by unification."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ...graph.extents import Shape, extent_names
from ...graph.nodes import Expr, Var
from ...support.declaring import declaration
from ...support.errors import ParseError
from ...support.misspelt import closest_name
from ...support.records import NamedTuple
from ..reading.calls import ArrayTree
from ..reading.numbers import NUMBERS
from ..reading.rows import row_named
from ..reading.tree import Node
from ..reading.unification import DimensionUnifier
from .factorisations import FACTORISATION_RULES
from .functions import (
    RESULT_FUNCTIONS,
    FunctionSignature,
    available,
    closest_matrix_function,
    signature_of,
)
from .general_calls import general_call, is_general, placeholder
from .rules import FUNCTION_RULES, KIND_RULES, OPERATOR_RULES
from .sizes import SizeRules
from .spellings import called_array, instead
from .syntax import argument
from .types import SCALAR, Type, TypingContext, TypingRule, type_of_axes

#: Undeclared names: a to g are scalars, h to z columns, capitals matrices. Nobody transposes a
#: scalar: those of a to g that are transposed somewhere are columns too.
_CONVENTION = re.compile(r"[A-Za-z][0-9]*")


class Typed(NamedTuple):
    """Types of all nodes, dimensions, types of undeclared variables, extents read as numbers."""

    types: list[Type]
    dimensions: DimensionUnifier
    undeclared: dict[str, Type]
    numbers: set[str]

    def shape(self, found: Type) -> Shape:
        return tuple([self.dimensions.shown(dim) for dim in found.dims])


def infer(tree: ArrayTree, declared: Mapping[str, Var], read: Callable[..., Expr]) -> Typed:
    """The types of a tree, or the error that says which operands do not fit.

    `read` is the reader of text, for functions of one number that stand in it.
    """
    return _Inference(tree, declared, read).run()


def _transposed(tree: ArrayTree) -> set[str]:
    """The names that a text transposes."""
    operands = [tree.nodes[node.args[0]] for node in tree.nodes if node.kind == "postfix"]
    return {node.name for node in operands if node.kind == "name"}


def _shapes(name: str) -> str:
    """How the shape of a name is declared."""
    kinds = {(): "scalar", ("n",): "column", ("m", "n"): "matrix"}
    return ", ".join([f"{declaration(name, *shape)} for a {kind}" for shape, kind in kinds.items()])


class _Inference:
    """The walk over the nodes, by one rule for each kind, operator and function.

    `named` are dimensions with a name. Read as a variable, as in a sum divided by n, such a name is
    the extent; `numbers` are those that are read so.
    """

    def __init__(
        self, tree: ArrayTree, declared: Mapping[str, Var], read: Callable[..., Expr]
    ) -> None:
        extents = {extent for variable in declared.values() for extent in variable.shape}
        words = {node.name for node in tree.nodes if node.kind == "name"}
        sizes = {argument(node) for node in tree.nodes if node.kind == "size"}
        forms = {extent for form in tree.forms.values() for extent in form.sizes.values()}
        self.tree = tree
        self.read = read
        self.declared = declared
        self.named = extent_names([*extents, *sizes, *forms])
        self.numbers: set[str] = set()
        self.transposed = _transposed(tree)
        self.dimensions = DimensionUnifier({*self.named, *words, *declared})
        self.context = TypingContext(tree, self.dimensions)
        self.sizes = SizeRules(self.context, declared.keys() - extents)
        self.kinds: dict[str, Callable[[Node], Type]] = {
            **self.in_context(KIND_RULES),
            "name": self.name,
            "infix": self.infix,
            "call": self.call,
        }
        self.operators = {
            **self.in_context(OPERATOR_RULES),
            "⊗": self.sizes.kronecker,
        }
        self.functions = {
            **self.in_context(FUNCTION_RULES),
            **self.in_context(FACTORISATION_RULES),
            "kronecker": self.sizes.kronecker,
            "columns_below": self.sizes.vectorised,
            "identity": self.sizes.identity,
            "filled_vector": self.sizes.filled_vector,
            "filled_matrix": self.sizes.filled_matrix,
            "constant": self.sizes.constant,
            "block": self.sizes.block,
            "size": self.sizes.extent,
        }

    def in_context(self, rules: Mapping[str, TypingRule]) -> dict[str, Callable[[Node], Type]]:
        return {name: partial(rule, self.context) for name, rule in rules.items()}

    def run(self) -> Typed:
        types = self.context.types
        for statement in self.tree.statements:
            if statement.name in self.declared:
                message = f"`{statement.name}` is declared; it cannot be given a value too"
                raise self.tree.error(message, statement.at)
        for node in self.tree.nodes:
            arrays = any(types[place].kind == "array" for place in node.args)
            general = is_general(self.tree, len(types), arrays)
            types.append(self.general(node) if general else self.kinds[node.kind](node))
        self.sizes.settle()
        return Typed(types, self.dimensions, self.context.undeclared, self.numbers)

    # --- names -----------------------------------------------------------------------------------

    def name(self, node: Node) -> Type:
        name = node.name
        if name in self.declared:
            return self.variable(self.declared[name])
        if name in self.context.undeclared:
            return self.context.undeclared[name]
        if name in NUMBERS:
            return SCALAR
        if name == "eye":
            dim = self.sizes.unknown_size()
            return Type("matrix", (dim, dim))
        if name in self.named:
            self.numbers.add(name)
            return SCALAR
        if not _CONVENTION.fullmatch(name):
            raise self.unknown(node)
        if name[0] in "abcdefg" and name not in self.transposed:
            found = SCALAR
        elif name[0].islower():
            found = Type("column", (self.dimensions.new("entries"),))
        else:
            found = Type("matrix", (self.dimensions.new("rows"), self.dimensions.new("columns")))
        self.context.undeclared[name] = found
        return found

    def variable(self, variable: Var) -> Type:
        return type_of_axes([self.dimensions.rigid(extent) for extent in variable.shape])

    def unknown(self, node: Node) -> ParseError:
        name = node.name
        if signature_of(name):
            message = f"`{name}` is a function: write {name}(…), or declare its shape: "
            return self.tree.error(message + _shapes(name), node.at)
        close = closest_name(name, [*self.declared, *self.context.undeclared, *NUMBERS])
        hint = f"did you mean `{close}`? Otherwise " if close else ""
        return self.tree.error(
            f"unknown name `{name}`: {hint}declare its shape, such as {_shapes(name)}",
            node.at,
        )

    def general(self, node: Node) -> Type:
        """The type of a call that is found by calling it."""
        if node.kind == "call":
            self.check_call(node)
            row = row_named(node.name)
            spectral = row is not None and bool(row.op.spelling.shown)  # read off eigenvalues
            if spectral and self.context.kind(node.args[0]) == "matrix":
                self.context.check_square(node.args[0], node.at)
        args: list[Any] = []
        self.sizes.derive()
        for k, place in enumerate(node.args):
            operand = self.tree.nodes[place]
            dims = [self.dimensions.named(dim) for dim in self.context.types[place].dims]
            shape = tuple([extent for extent in dims if extent is not None])
            if len(shape) < len(dims):
                raise self.tree.error("the size of this does not follow from its use", operand.at)
            written = argument(operand)
            args.append(placeholder(node, k, shape) if written is None else written)
        found = general_call(self.tree, len(self.context.types), args, self.read)
        return type_of_axes([self.dimensions.rigid(extent) for extent in found.shape])

    # --- operators --------------------------------------------------------------------------------

    def infix(self, node: Node) -> Type:
        rule = self.operators.get(node.name)
        return rule(node) if rule else self.context.entrywise(node)

    # --- functions -------------------------------------------------------------------------------

    def call(self, node: Node) -> Type:
        return self.functions[self.check_call(node).rule](node)

    def check_call(self, node: Node) -> FunctionSignature:
        """The signature of a call, which its name and its arguments fit."""
        found = signature_of(node.name)
        if found is None:
            raise self.no_function(node)
        if not available(node.name):
            raise self.tree.error(f"the function `{node.name}` is not available", node.at)
        if not found.least <= len(node.args) <= found.most:
            least, most = found.least, found.most
            wanted = f"{most}" if least == most else f"{least} to {most}"
            plural = "s" if most > 1 else ""
            message = f"{node.name} takes {wanted} argument{plural}, not {len(node.args)}"
            raise self.tree.error(message + self.advice(node), node.at)
        return found

    def advice(self, node: Node) -> str:
        """What to write in place of a call with the wrong number of arguments."""
        found, written = signature_of(node.name), [self.tree.source(place) for place in node.args]
        if found is not None and found.rule in ("total", "vector") and len(written) == 2:
            columns, rows = (f"{node.name}({written[0]}, axis={k})" for k in (0, 1))
            return f"; write {columns} over the rows, {rows} over the columns"
        known = instead(node.name, written)
        return f"; write {known}" if known else ""

    def no_function(self, node: Node) -> ParseError:
        name, close = node.name, closest_matrix_function(node.name)
        known = instead(name, [self.tree.source(place) for place in node.args])
        if name in RESULT_FUNCTIONS:
            parts = " and ".join([f"{part}(…)" for part in RESULT_FUNCTIONS[name]])
            return self.tree.error(f"`{name}` has several results: write {parts}", node.at)
        assigned = any(name == statement.name for statement in self.tree.statements)
        if assigned or name in self.declared or name in NUMBERS or _CONVENTION.fullmatch(name):
            hint = f"`{name}` is no function; {called_array(name, node, self.tree)}"
        elif known:
            hint = f"there is no function `{name}`; write {known}"
        else:
            hint = f"unknown function `{name}`" + (f"; did you mean `{close}`?" if close else "")
        return self.tree.error(hint, node.at)
