"""The matrix language, second phase: types of all nodes, dimensions by unification."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from ...graph.extents import Extent, Shape, show_shape
from ...graph.nodes import Var
from ...support.errors import ParseError
from ..reading.precedence import COMPARISON, Node
from .dimensions import Dimensions
from .factors import Factors
from .functions import SEVERAL, available, closest, function
from .syntax import LEVELS, Tree
from .types import KINDS, PRODUCT_ADVICE, PRODUCTS, SCALAR, TURNED, Type

#: Undeclared names: a to g are scalars, h to z columns, capitals matrices.
_CONVENTION = re.compile(r"[A-Za-z][0-9]*")


class Typed(NamedTuple):
    """Types of all nodes, their dimensions, types of undeclared variables, extents as numbers."""

    types: list[Type]
    dimensions: Dimensions
    undeclared: dict[str, Type]
    numbers: set[str]

    def shape(self, found: Type) -> Shape:
        return tuple([self.dimensions.shown(dim) for dim in found.dims])


def infer(tree: Tree, declared: Mapping[str, Var]) -> Typed:
    """The types of a tree, or the error that says which operands do not fit."""
    return _Inference(tree, declared).run()


class _Inference(Factors):
    """The walk over the nodes.

    `inferred`: nodes whose size must follow from use; `products`: merged dimensions; `named`:
    dimensions with a name, which is a number where no variable has it (sums divided by n).
    """

    def __init__(self, tree: Tree, declared: Mapping[str, Var]) -> None:
        extents = {str(extent) for variable in declared.values() for extent in variable.shape}
        words = {node.name for node in tree.nodes if node.kind in ("name", "size")}
        super().__init__(tree, {*extents, *words, *declared})
        self.extents = extents
        sizes = {node.name for node in tree.nodes if node.kind == "size"}
        self.named = {extent for extent in extents | sizes if not extent.isdecimal()}
        self.numbers: set[str] = set()
        self.declared = declared
        self.inferred: list[int] = []
        self.products: list[tuple[int, int, int, Node]] = []

    def run(self) -> Typed:
        for name, _, at in self.tree.statements:
            if name in self.declared:
                raise self.fail(f"`{name}` is declared; it cannot be given a value too", at)
        for node in self.nodes:
            self.check_conditions(node)
            self.types.append(_RULES[node.kind](self, node))
        for _, root, _ in self.tree.statements:
            if self.types[root].condition:
                raise self.misplaced(self.nodes[root])
        self.settle()
        return Typed(self.types, self.dimensions, self.undeclared, self.numbers)

    def settle(self) -> None:
        """Name what is unknown; merged dimensions are products of what they merge."""
        dimensions = self.dimensions
        dimensions.settle()
        for merged, a, b, node in self.products:
            left, right = dimensions.extent(a), dimensions.extent(b)
            if left is None or right is None:
                break
            extent = _merged(left, right)
            if not dimensions.unify(merged, dimensions.rigid(extent)):
                known = dimensions.extent(merged)
                operands = " and ".join(self.describe(place) for place in node.args)
                message = f"{operands}: ⊗ gives extent {extent} where {known} is needed"
                raise self.mismatch(message, node.at)
        written = {"eye": "eye(n)", "vector": "vector(a, n)", "matrix": "matrix(a, m, n)"}
        for place in self.inferred:
            node = self.nodes[place]
            if any(dimensions.extent(dim) is None for dim in self.types[place].dims):
                message = f"the size of {node.name} does not follow from its use; write"
                raise self.fail(f"{message} {written[node.name]}", node.at)

    def check_conditions(self, node: Node) -> None:
        for k, place in enumerate(node.args):
            if self.types[place].condition:
                called = function(node.name) if node.kind == "call" else None
                if not called or k >= called.conditions:
                    raise self.misplaced(self.nodes[place])

    # --- names -----------------------------------------------------------------------------------

    def name(self, node: Node) -> Type:
        name = node.name
        if name in self.declared:
            return self.variable(node, self.declared[name])
        if name in self.undeclared:
            return self.undeclared[name]
        if name == "pi":
            return SCALAR
        if name == "eye":
            dim = self.unknown_size()
            return Type("matrix", (dim, dim))
        if name in self.named:
            self.numbers.add(name)
            return SCALAR
        if not _CONVENTION.fullmatch(name):
            raise self.unknown(node)
        if name[0] in "abcdefg":
            found = SCALAR
        elif name[0].islower():
            found = Type("column", (self.dimensions.new("entries"),))
        else:
            found = Type("matrix", (self.dimensions.new("rows"), self.dimensions.new("columns")))
        self.undeclared[name] = found
        return found

    def variable(self, node: Node, variable: Var) -> Type:
        if variable.ndim > 2:
            raise self.fail(
                f"`{node.name}` has shape {show_shape(variable.shape)}; the matrix language has "
                "scalars, columns, rows and matrices: use the index or the einsum language",
                node.at,
            )
        dims = tuple([self.dimensions.rigid(extent) for extent in variable.shape])
        return Type(KINDS[variable.ndim], dims)

    def unknown(self, node: Node) -> ParseError:
        name = node.name
        if function(name):
            return self.fail(f"`{name}` is a function; write {name}(…)", node.at)
        close = difflib.get_close_matches(name, [*self.declared, *self.undeclared, "pi"], 1)
        hint = f"did you mean `{close[0]}`? Otherwise " if close else ""
        return self.fail(
            f"unknown name `{name}`: {hint}declare its shape, such as {name}=() for a scalar, "
            f'{name}=("n",) for a column, {name}=("m", "n") for a matrix',
            node.at,
        )

    # --- operators -------------------------------------------------------------------------------

    def transposed(self, node: Node) -> Type:
        kind, dims, _ = self.types[node.args[0]]
        return Type(TURNED[kind], dims[::-1])

    def scalar(self, node: Node) -> Type:
        return SCALAR

    def operand_type(self, node: Node) -> Type:
        return self.types[node.args[0]]

    def infix(self, node: Node) -> Type:
        rule = _INFIXES.get(node.name)
        if rule:
            return rule(self, node)
        return self.entrywise(node)._replace(condition=LEVELS[node.name] == COMPARISON)

    def product(self, node: Node) -> Type:
        left, right = (self.types[place] for place in node.args)
        if "scalar" in (left.kind, right.kind):
            return right if left.kind == "scalar" else left
        kinds = (left.kind, right.kind)
        if kinds not in PRODUCTS:
            raise self.refused(node, node.args, PRODUCT_ADVICE[kinds].format(*self.factors(node)))
        *words, out, kind = PRODUCTS[kinds]
        for k, letter in enumerate(words[0]):
            if letter in words[1]:
                self.same((node.args[0], k), (node.args[1], words[1].index(letter)), node.at)
        axes = dict(zip("".join(words), (*left.dims, *right.dims), strict=True))
        return Type(kind, tuple([axes[letter] for letter in out]))

    def quotient(self, node: Node) -> Type:
        left, right = node.args
        if self.kind(right) != "scalar":
            above, below = self.factors(node)
            advice = f"/ divides by a scalar: write {above} ./ {below} to divide entries"
            if self.kind(right) == "matrix":
                advice += f", {below} \\ b to solve"
            raise self.refused(node, node.args, advice)
        return self.types[left]

    def solved(self, node: Node) -> Type:
        left, right = node.args
        if self.kind(left) != "matrix" or self.kind(right) not in ("column", "matrix"):
            advice = "A \\ b solves for a square matrix A and a column or matrix b"
            raise self.refused(node, node.args, advice)
        self.check_square(left, node.at)
        self.same((left, 1), (right, 0), node.at)
        return self.types[right]

    def power(self, node: Node) -> Type:
        base, exponent = node.args
        kinds = (self.kind(base), self.kind(exponent))
        if kinds == ("scalar", "scalar"):
            return SCALAR
        if kinds != ("matrix", "scalar"):
            advice = "^ raises scalars, square matrices to an integer; write {} .^ {} for entries"
            raise self.refused(node, node.args, advice.format(*self.factors(node)))
        self.check_square(base, node.at)
        return self.types[base]

    # --- functions -------------------------------------------------------------------------------

    def call(self, node: Node) -> Type:
        found = function(node.name)
        if found is None:
            raise self.no_function(node)
        if not available(node.name):
            raise self.fail(f"the function `{node.name}` is not available", node.at)
        if not found.least <= len(node.args) <= found.most:
            least, most = found.least, found.most
            wanted = f"{most}" if least == most else f"{least} to {most}"
            plural = "s" if most > 1 else ""
            message = f"{node.name} takes {wanted} argument{plural}, not {len(node.args)}"
            raise self.fail(message, node.at)
        return _FUNCTIONS[found.rule](self, node)

    def no_function(self, node: Node) -> ParseError:
        name, close = node.name, closest(node.name)
        if name in SEVERAL:
            parts = " and ".join([f"{part}(…)" for part in SEVERAL[name]])
            return self.fail(f"`{name}` has several results: write {parts}", node.at)
        assigned = any(name == statement.name for statement in self.tree.statements)
        if assigned or name in self.declared or name == "pi" or _CONVENTION.fullmatch(name):
            hint = f"`{name}` is no function; a product is written {name}*(…)"
        else:
            hint = f"unknown function `{name}`" + (f"; did you mean `{close}`?" if close else "")
        return self.fail(hint, node.at)

    def extremum(self, node: Node) -> Type:
        return SCALAR if len(node.args) == 1 else self.entrywise(node)

    def vector(self, node: Node) -> Type:
        return self.only(node, ("column", "row"), "a column or a row")

    def square_matrix(self, node: Node) -> Type:
        found = self.only(node, ("matrix",), "a square matrix")
        self.check_square(node.args[0], node.at)
        return found

    def invariant(self, node: Node) -> Type:
        self.square_matrix(node)
        return SCALAR

    def diagonal(self, node: Node) -> Type:
        found = self.only(node, ("column", "row", "matrix"), "a column, a row or a square matrix")
        if found.kind != "matrix":
            return Type("matrix", found.dims * 2)
        self.check_square(node.args[0], node.at)
        return Type("column", found.dims[:1])

    def kronecker(self, node: Node) -> Type:
        left, right = (self.types[place] for place in node.args)
        if "scalar" in (left.kind, right.kind):
            return right if left.kind == "scalar" else left
        if left.kind == right.kind:
            pairs = zip(left.dims, right.dims, strict=True)
            return Type(left.kind, tuple([self.merged(a, b, node) for a, b in pairs]))
        if left.kind != "matrix" and right.kind != "matrix":
            column, row = (left, right) if left.kind == "column" else (right, left)
            return Type("matrix", (*column.dims, *row.dims))
        raise self.refused(node, node.args, "two matrices or two vectors have a Kronecker product")

    def merged(self, a: int, b: int, node: Node) -> int:
        found = self.dimensions.new()
        self.products.append((found, a, b, node))
        return found

    def identity(self, node: Node) -> Type:
        dim = self.size(node.args[0])
        return Type("matrix", (dim, dim))

    def filled_vector(self, node: Node) -> Type:
        self.only(node, ("scalar",), "a scalar, and then its size")
        return Type("column", (self.size(node.args[1]) if node.args[1:] else self.unknown_size(),))

    def filled_matrix(self, node: Node) -> Type:
        self.only(node, ("scalar",), "a scalar, and then its numbers of rows and columns")
        if len(node.args) == 2:
            raise self.fail("matrix takes both sizes or none: write matrix(a, m, n)", node.at)
        if node.args[1:]:
            return Type("matrix", (self.size(node.args[1]), self.size(node.args[2])))
        return Type("matrix", (self.unknown_size(), self.unknown_size()))

    def constant(self, node: Node) -> Type:
        dims = [self.size(place) for place in node.args]
        return Type("matrix", (dims[0], dims[-1]))

    def size(self, place: int) -> int:
        node = self.nodes[place]
        if node.name in self.declared and node.name not in self.extents:
            message = f"`{node.name}` is a variable; a size is an int or the name of a dimension"
            raise self.fail(message, node.at)
        return self.dimensions.rigid(int(node.name) if node.name.isdecimal() else node.name)

    def unknown_size(self) -> int:
        """A dimension of the node being typed, to be inferred."""
        self.inferred.append(len(self.types))
        return self.dimensions.new()


def _merged(a: Extent, b: Extent) -> Extent:
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    if 1 in (a, b):
        return b if a == 1 else a
    return f"{a}*{b}"


_Rule = Callable[[_Inference, Node], Type]

_RULES: dict[str, _Rule] = {
    "number": _Inference.scalar,
    "size": _Inference.scalar,
    "literal": _Inference.scalar,
    "name": _Inference.name,
    "use": _Inference.operand_type,
    "prefix": _Inference.operand_type,
    "postfix": _Inference.transposed,
    "infix": _Inference.infix,
    "call": _Inference.call,
}

#: Operators that are not entrywise.
_INFIXES: dict[str, _Rule] = {
    "*": _Inference.product,
    "/": _Inference.quotient,
    "\\": _Inference.solved,
    "^": _Inference.power,
    "⊗": _Inference.kronecker,
}

#: Typing rules by the names that `matrix_functions` uses.
_FUNCTIONS: dict[str, _Rule] = {
    "entrywise": _Inference.entrywise,
    "total": _Inference.scalar,
    "extremum": _Inference.extremum,
    "vector": _Inference.vector,
    "square_matrix": _Inference.square_matrix,
    "invariant": _Inference.invariant,
    "diagonal": _Inference.diagonal,
    "kronecker": _Inference.kronecker,
    "identity": _Inference.identity,
    "filled_vector": _Inference.filled_vector,
    "filled_matrix": _Inference.filled_matrix,
    "constant": _Inference.constant,
    "eigenvalues": Factors.eigenvalues,
    "singular_values": Factors.singular_values,
    "left": Factors.left,
    "right": Factors.right,
    "wide_left": Factors.wide_left,
    "wide_right": Factors.wide_right,
    "pseudoinverse": Factors.pseudoinverse,
    "least_squares": Factors.least_squares,
    "moved": Factors.moved,
}
