"""Typing rules where a size is stated, is a product of two, or must follow from use."""

from __future__ import annotations

from collections.abc import Collection

from ...graph.extents import Extent, extent_product
from ..reading.tree import Node
from .syntax import argument
from .types import AXES, SCALAR, Type, TypingContext, type_of_axes

#: What states the size of the words that can go without.
WITH_SIZE = {"eye": "eye(n)", "vector": "vector(a, n)", "matrix": "matrix(a, m, n)"}


def _product(*extents: Extent) -> Extent:
    return extent_product(extents)


class SizeRules:
    """Typing rules of functions that make dimensions; `settle` checks and names these at the end.

    Parameters
    ----------
    context : TypingContext
        The nodes typed so far.
    variables : collection of str
        Variables, whose names are not those of a dimension.
    """

    def __init__(self, context: TypingContext, variables: Collection[str]) -> None:
        self.context = context
        self.tree = context.tree
        self.dimensions = context.dimensions
        self.variables = variables
        self.inferred: list[int] = []  # nodes whose size must follow from use

    def kronecker(self, node: Node) -> Type:
        left, right = (self.context.types[place] for place in node.args)
        if "scalar" in (left.kind, right.kind):
            return right if left.kind == "scalar" else left
        if left.kind == right.kind and left.kind in AXES:
            pairs = zip(left.dims, right.dims, strict=True)
            made = [self.context.made(_product, node, a, b) for a, b in pairs]
            return Type(left.kind, tuple(made))
        if {left.kind, right.kind} == {"column", "row"}:
            column, row = (left, right) if left.kind == "column" else (right, left)
            return Type("matrix", (*column.dims, *row.dims))
        raise self.context.refused(
            node, node.args, "two matrices or two vectors have a Kronecker product"
        )

    def vectorised(self, node: Node) -> Type:
        found = self.context.only(node, ("matrix",), "a matrix")
        return Type("column", (self.context.made(_product, node, *found.dims),))

    def identity(self, node: Node) -> Type:
        dim = self.size(node.args[0])
        return Type("matrix", (dim, dim))

    def filled_vector(self, node: Node) -> Type:
        self.context.only(node, ("scalar",), "a scalar, and then its size")
        return Type("column", (self.size(node.args[1]) if node.args[1:] else self.unknown_size(),))

    def filled_matrix(self, node: Node) -> Type:
        self.context.only(node, ("scalar",), "a scalar, and then its numbers of rows and columns")
        if len(node.args) == 2:
            raise self.tree.error("matrix takes both sizes or none: write matrix(a, m, n)", node.at)
        if node.args[1:]:
            return Type("matrix", (self.size(node.args[1]), self.size(node.args[2])))
        return Type("matrix", (self.unknown_size(), self.unknown_size()))

    def constant(self, node: Node) -> Type:
        for place in node.args:
            extent = argument(self.tree.nodes[place])
            if isinstance(extent, int) and extent < 0:
                raise self.tree.shape_error(f"{node.name}: extent {extent} is negative", node.at)
        dims = [self.size(place) for place in node.args]
        return Type("matrix", (dims[0], dims[-1]))

    def block(self, node: Node) -> Type:
        return type_of_axes([self.size(place) for place in node.args])

    def extent(self, node: Node) -> Type:
        self.size(node.args[0])
        return SCALAR

    def size(self, place: int) -> int:
        """The dimension that an argument states."""
        node = self.tree.nodes[place]
        if node.name in self.variables:
            message = f"`{node.name}` is a variable; a size is an int or the name of a dimension"
            raise self.tree.error(message, node.at)
        return self.dimensions.rigid(argument(node))

    def unknown_size(self) -> int:
        """A dimension of the node being typed, to be inferred."""
        self.inferred.append(len(self.context.types))
        return self.dimensions.new()

    def settle(self) -> None:
        """Name what is unknown; dimensions made of others get their extents."""
        self.dimensions.settle()
        self.derive()
        dimensions = self.dimensions
        for place in self.inferred:
            node = self.tree.nodes[place]
            if any(dimensions.extent(dim) is None for dim in self.context.types[place].dims):
                message = f"the size of {node.name} does not follow from its use; write"
                raise self.tree.error(f"{message} {WITH_SIZE[node.name]}", node.at)

    def derive(self) -> None:
        """Give dimensions that are made of others their extents, as far as these are known."""
        dimensions = self.dimensions
        for made, rule, dims, node in self.context.derived:
            extents = [e for dim in dims if (e := dimensions.extent(dim)) is not None]
            if len(extents) < len(dims):
                break
            extent = rule(*extents)
            if not dimensions.unify(made, dimensions.rigid(extent)):
                known = dimensions.extent(made)
                shown = " and ".join(map(self.context.describe, node.args))
                message = f"{shown}: {node.name} gives extent {extent} where {known} is needed"
                raise self.tree.shape_error(message, node.at)
