"""Types of what comes out of factorisations and of packed triangles, in the matrix language."""

from __future__ import annotations

from math import isqrt

from ..reading.lexer import literal
from ..reading.precedence import Node
from .types import Operands, Type


class Factors(Operands):
    """Typing rules by the names that `matrix_functions` uses."""

    def matrix(self, node: Node) -> tuple[int, int]:
        m, n = self.only(node, ("matrix",), "a matrix").dims
        return m, n

    def smaller(self, node: Node, otherwise: int) -> int:
        """The smaller dimension of the argument; of names it is taken to be this one."""
        dims = self.matrix(node)
        m, n = (self.dimensions.extent(dim) for dim in dims)
        if isinstance(m, int) and isinstance(n, int):
            return dims[0] if m < n else dims[1]
        return dims[otherwise]

    def eigenvalues(self, node: Node) -> Type:
        dims = self.matrix(node)
        self.check_square(node.args[0], node.at)
        return Type("column", dims[:1])

    def singular_values(self, node: Node) -> Type:
        return Type("column", (self.smaller(node, 1),))

    def left(self, node: Node) -> Type:
        return Type("matrix", (self.matrix(node)[0], self.smaller(node, 1)))

    def right(self, node: Node) -> Type:
        return Type("matrix", (self.smaller(node, 1), self.matrix(node)[1]))

    def wide_left(self, node: Node) -> Type:
        return Type("matrix", (self.matrix(node)[0], self.smaller(node, 0)))

    def wide_right(self, node: Node) -> Type:
        return Type("matrix", (self.smaller(node, 0), self.matrix(node)[1]))

    def pseudoinverse(self, node: Node) -> Type:
        return Type("matrix", self.matrix(node)[::-1])

    def least_squares(self, node: Node) -> Type:
        left, right = node.args
        _, columns = self.matrix(node)
        found = self.types[right]
        if found.kind not in ("column", "matrix"):
            raise self.refused(node, node.args, "it takes a matrix, and a column or a matrix")
        self.same((left, 0), (right, 0), node.at)
        return found._replace(dims=(columns, *found.dims[1:]))

    def moved(self, node: Node) -> Type:
        """Entries of a square matrix as a column, or those of a column in a square matrix."""
        inward = node.name.startswith("make")
        triangle = node.name.endswith("trian")
        offset = abs(int(literal(self.nodes[node.args[1]].name))) if node.args[1:] else 0
        if inward:
            (dim,) = self.only(node, ("column", "row"), "a column or a row").dims
        else:
            dim = self.eigenvalues(node).dims[0]
        extent = self.dimensions.extent(dim)
        if triangle or offset:
            dim = self.dimensions.new()
            if isinstance(extent, int):
                dim = self.dimensions.rigid(_moved(extent, inward, triangle, offset))
        return Type("matrix", (dim, dim)) if inward else Type("column", (dim,))


def _moved(extent: int, inward: bool, triangle: bool, offset: int) -> int:
    if inward:
        return ((isqrt(8 * extent + 1) - 1) // 2 if triangle else extent) + offset
    rows = max(0, extent - offset)
    return rows * (rows + 1) // 2 if triangle else rows
