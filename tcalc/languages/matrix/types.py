"""Types of the matrix language: what operands may stand together, and the errors when they may not.

A type is a kind (scalar, column, row, matrix; an array has more axes) and one dimension per axis.
Row values have one axis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ...graph.extents import Extent, show_shape
from ...support.declaring import declaration
from ...support.errors import ShapeError
from ...support.records import NamedTuple
from ..reading.calls import ArrayTree
from ..reading.tree import Node
from ..reading.unification import DimensionUnifier
from .syntax import factor_source

#: By the number of axes of a declared variable, or of what an einsum form gives.
KIND_OF_NDIM = ("scalar", "column", "matrix")
AXES = {"column": ("entries",), "row": ("entries",), "matrix": ("rows", "columns")}
#: By the kind of the operand.
TRANSPOSED_KIND = {"scalar": "scalar", "column": "row", "row": "column", "matrix": "matrix"}
ARRAY_ADVICE = "products of arrays with more than two axes are written #('ijk,k->ij', T, x)"

#: Products * by the kinds of their operands: the indices of both and of the result, and its kind.
MATRIX_PRODUCTS = {
    ("row", "column"): ("i", "i", "", "scalar"),
    ("column", "row"): ("i", "j", "ij", "matrix"),
    ("matrix", "column"): ("ij", "j", "i", "column"),
    ("row", "matrix"): ("i", "ij", "j", "row"),
    ("matrix", "matrix"): ("ij", "jk", "ik", "matrix"),
}

SPREAD_ADVICE = (
    "rows, columns and matrices never broadcast; diag(v)*A scales rows, A*diag(v) columns, "
    "v*vector(1)' repeats a column"
)


#: An extent from others.
ExtentRule = Callable[..., Extent]


class Type(NamedTuple):
    """`dims` are dimensions of a `DimensionUnifier`."""

    kind: str
    dims: tuple[int, ...] = ()


SCALAR = Type("scalar")


def type_of_axes(dims: Iterable[int]) -> Type:
    """The type of a value with these axes."""
    dims = tuple(dims)
    return Type(KIND_OF_NDIM[len(dims)] if len(dims) < len(KIND_OF_NDIM) else "array", dims)


class TypingContext:
    """The types of the nodes so far; dimensions that must be equal are unified."""

    def __init__(self, tree: ArrayTree, dimensions: DimensionUnifier) -> None:
        self.tree = tree
        self.nodes = tree.nodes
        self.dimensions = dimensions
        self.types: list[Type] = []
        self.undeclared: dict[str, Type] = {}
        self.derived: list[tuple[int, ExtentRule, tuple[int, ...], Node]] = []

    def made(self, rule: ExtentRule, node: Node, *dims: int) -> int:
        """The dimension whose extent a rule gives from those of others, now or in the end."""
        extents = [extent for dim in dims if (extent := self.dimensions.extent(dim)) is not None]
        if len(extents) == len(dims):
            return self.dimensions.rigid(rule(*extents))
        self.derived.append((self.dimensions.new(), rule, dims, node))
        return self.derived[-1][0]

    def first(self, node: Node) -> Type:
        """The type of the first operand."""
        return self.types[node.args[0]]

    def kind(self, place: int) -> str:
        return self.types[place].kind

    def factors(self, node: Node) -> list[str]:
        """The operands as the user wrote them, for advice."""
        return [factor_source(self.tree, place) for place in node.args]

    def describe(self, place: int) -> str:
        """`x*y`, a column of shape (n,)"""
        kind, dims = self.types[place]
        shown = f"`{self.tree.source(place)}`"
        undeclared = " (undeclared)" if self.nodes[place].name in self.undeclared else ""
        if not dims:
            return f"{shown} is a scalar{undeclared}"
        shape = tuple([self.dimensions.shown(dim) for dim in dims])
        article = "an" if kind == "array" else "a"
        return f"{shown} is {article} {kind} of shape {show_shape(shape)}{undeclared}"

    def axis(self, place: int, axis: int) -> str:
        """the columns of `A` (index 1, extent n)"""
        kind, dims = self.types[place]
        extent = self.dimensions.shown(dims[axis])
        shown = self.tree.source(place)
        name = f"the {AXES[kind][axis]}" if kind in AXES else "an axis"
        return f"{name} of `{shown}` (index {axis}, extent {extent})"

    def same(
        self,
        left: tuple[int, int],
        right: tuple[int, int],
        at: int,
        advice: Callable[[], str] = str,
    ) -> None:
        """Make an axis of one node and an axis of another equal."""
        a, b = (self.types[place].dims[axis] for place, axis in (left, right))
        if not self.dimensions.unify(a, b):
            message = (
                f"{self.describe(left[0])} and {self.describe(right[0])}: "
                f"{self.axis(*left)} and {self.axis(*right)} must be equal"
            )
            written = advice()
            raise self.tree.shape_error(f"{message}; {written}" if written else message, at)

    def may_be_equal(self, left: tuple[int, int], right: tuple[int, int]) -> bool:
        """Can an axis of one node and an axis of another be equal?"""
        a, b = (self.types[place].dims[axis] for place, axis in (left, right))
        return self.dimensions.may_be_equal(a, b)

    def refused(self, node: Node, places: Sequence[int], advice: str) -> ShapeError:
        described = " and ".join(self.describe(place) for place in places)
        return self.tree.shape_error(
            f"`{node.name}` does not take these: {described}; {self.assumed(places)}{advice}",
            node.at,
        )

    def assumed(self, places: Iterable[int]) -> str:
        """That names in operands are scalars because nobody says what they are."""
        found, waiting = list[str](), list(places)
        while waiting:
            node = self.nodes[waiting.pop()]
            waiting += node.args
            if node.kind == "name" and self.undeclared.get(node.name) == SCALAR:
                found.append(node.name)
        if not found:
            return ""
        name = min(found)
        return (
            f"`{name}` is not declared, and so a scalar by convention: declare its shape, such as "
            f"{declaration(name, 'n')} for a column; "
        )

    def check_square(self, place: int, at: int) -> None:
        a, b = self.types[place].dims
        if not self.dimensions.unify(a, b):
            raise self.tree.shape_error(
                f"{self.describe(place)}, and a square one is needed here: "
                f"{self.axis(place, 0)} and {self.axis(place, 1)} must be equal",
                at,
            )

    def only(self, node: Node, kinds: tuple[str, ...], wanted: str) -> Type:
        """The type of the first argument, which must be of one of these kinds."""
        found = self.first(node)
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
        return SCALAR if first < 0 else self.types[first]


#: The type of a node from those of its operands; a ShapeError where these do not fit.
TypingRule = Callable[[TypingContext, Node], Type]
