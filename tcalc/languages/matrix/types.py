"""Types of the matrix language: what operands may stand together, and the errors when they may not.

A type is a kind (scalar, column, row, matrix) and one dimension per axis. Row values have one axis.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ...graph.extents import show_shape
from ...support.errors import ParseError, ShapeError
from ..reading.lexer import shape_error
from ..reading.precedence import Node
from .dimensions import Dimensions
from .syntax import Tree

KINDS = ("scalar", "column", "matrix")
AXES = {"column": ("entries",), "row": ("entries",), "matrix": ("rows", "columns")}
TURNED = {"scalar": "scalar", "column": "row", "row": "column", "matrix": "matrix"}

#: Products that sum or spread indices: the letters of both operands and of the result.
PRODUCTS = {
    ("row", "column"): ("i", "i", "", "scalar"),
    ("column", "row"): ("i", "j", "ij", "matrix"),
    ("matrix", "column"): ("ij", "j", "i", "column"),
    ("row", "matrix"): ("i", "ij", "j", "row"),
    ("matrix", "matrix"): ("ij", "jk", "ik", "matrix"),
}

#: What to write for the products that are not in the table.
PRODUCT_ADVICE = {
    ("column", "column"): "write {0}'*{1} for the scalar product, {0}*{1}' for the outer product, "
    "{0}.*{1} for the product of entries",
    ("row", "row"): "write {0}*{1}' for the scalar product, {0}'*{1} for the outer product, "
    "{0}.*{1} for the product of entries",
    ("column", "matrix"): "write {0}'*{1} to multiply with the transpose, or diag({0})*{1}",
    ("matrix", "row"): "write {0}*{1}' to multiply with the transpose, or {0}*diag({1})",
}
SPREAD_ADVICE = (
    "rows, columns and matrices never broadcast; diag(v)*A scales rows, A*diag(v) columns, "
    "v*vector(1)' repeats a column"
)


class Type(NamedTuple):
    """`dims` are places in `Dimensions`; a condition is what a comparison gives."""

    kind: str
    dims: tuple[int, ...] = ()
    condition: bool = False


SCALAR = Type("scalar")


class Operands:
    """The typed nodes of a tree so far; makes their dimensions equal where they must be."""

    def __init__(self, tree: Tree, reserved: Iterable[str]) -> None:
        self.tree = tree
        self.nodes = tree.nodes
        self.types: list[Type] = []
        self.undeclared: dict[str, Type] = {}
        self.dimensions = Dimensions(reserved)

    def kind(self, place: int) -> str:
        return self.types[place].kind

    def factors(self, node: Node) -> list[str]:
        """The operands as the user wrote them, for advice."""
        return [self.tree.factor(self.nodes[place]) for place in node.args]

    def fail(self, message: str, at: int) -> ParseError:
        return ParseError(message, self.tree.text, at)

    def mismatch(self, message: str, at: int) -> ShapeError:
        return shape_error(message, self.tree.text, at)

    def describe(self, place: int) -> str:
        """`x*y`, a column of shape (n,)"""
        kind, dims, _ = self.types[place]
        shown = f"`{self.tree.source(self.nodes[place])}`"
        undeclared = " (undeclared)" if self.nodes[place].name in self.undeclared else ""
        if not dims:
            return f"{shown} is a scalar{undeclared}"
        shape = tuple([self.dimensions.shown(dim) for dim in dims])
        return f"{shown} is a {kind} of shape {show_shape(shape)}{undeclared}"

    def axis(self, place: int, axis: int) -> str:
        """the columns of `A` (index 1, extent n)"""
        kind, dims, _ = self.types[place]
        extent = self.dimensions.shown(dims[axis])
        shown = self.tree.source(self.nodes[place])
        return f"the {AXES[kind][axis]} of `{shown}` (index {axis}, extent {extent})"

    def misplaced(self, node: Node) -> ParseError:
        message = "a comparison stands only in where(condition, a, b)"
        shown = self.tree.source(node)
        return self.fail(f"{message}; its value as a number is where({shown}, 1, 0)", node.at)

    def same(self, left: tuple[int, int], right: tuple[int, int], at: int) -> None:
        """Make an axis of one node and an axis of another equal."""
        a, b = (self.types[place].dims[axis] for place, axis in (left, right))
        if not self.dimensions.unify(a, b):
            raise self.mismatch(
                f"{self.describe(left[0])} and {self.describe(right[0])}: "
                f"{self.axis(*left)} and {self.axis(*right)} must be equal",
                at,
            )

    def refused(self, node: Node, places: Iterable[int], advice: str) -> ShapeError:
        described = " and ".join(self.describe(place) for place in places)
        return self.mismatch(f"`{node.name}` does not take these: {described}; {advice}", node.at)

    def check_square(self, place: int, at: int) -> None:
        a, b = self.types[place].dims
        if not self.dimensions.unify(a, b):
            raise self.mismatch(
                f"{self.describe(place)}, and a square one is needed here: "
                f"{self.axis(place, 0)} and {self.axis(place, 1)} must be equal",
                at,
            )

    def only(self, node: Node, kinds: tuple[str, ...], wanted: str) -> Type:
        """The type of the first argument, which must be of one of these kinds."""
        found = self.types[node.args[0]]
        if found.kind not in kinds:
            raise self.refused(node, node.args[:1], f"it takes {wanted}")
        return found

    def entrywise(self, node: Node) -> Type:
        """Operands of one type, or scalars."""
        first = -1
        for place in node.args:
            kind = self.types[place].kind
            if kind == "scalar":
                continue
            if first < 0:
                first = place
            if kind != self.types[first].kind:
                vectors = {kind, self.types[first].kind} == {"row", "column"}
                advice = "transpose one of them with '" if vectors else SPREAD_ADVICE
                raise self.refused(node, (first, place), advice)
            for axis in range(len(self.types[place].dims)):
                self.same((first, axis), (place, axis), node.at)
        return SCALAR if first < 0 else self.types[first]._replace(condition=False)
