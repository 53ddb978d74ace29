"""Types of what comes out of factorisations and of packed triangles, in the matrix language."""

from __future__ import annotations

from math import isqrt

from ..reading.lexer import literal
from ..reading.tree import Node
from .types import Operands, Rule, Type


def _matrix(operands: Operands, node: Node) -> tuple[int, int]:
    m, n = operands.only(node, ("matrix",), "a matrix").dims
    return m, n


def _smaller(operands: Operands, node: Node, otherwise: int) -> int:
    """The smaller dimension of the argument; of names it is taken to be this one."""
    dims = _matrix(operands, node)
    m, n = (operands.dimensions.extent(dim) for dim in dims)
    if isinstance(m, int) and isinstance(n, int):
        return dims[0] if m < n else dims[1]
    return dims[otherwise]


def eigenvalues(operands: Operands, node: Node) -> Type:
    dims = _matrix(operands, node)
    operands.check_square(node.args[0], node.at)
    return Type("column", dims[:1])


def singular_values(operands: Operands, node: Node) -> Type:
    return Type("column", (_smaller(operands, node, 1),))


def left(operands: Operands, node: Node) -> Type:
    return Type("matrix", (_matrix(operands, node)[0], _smaller(operands, node, 1)))


def right(operands: Operands, node: Node) -> Type:
    return Type("matrix", (_smaller(operands, node, 1), _matrix(operands, node)[1]))


def wide_left(operands: Operands, node: Node) -> Type:
    return Type("matrix", (_matrix(operands, node)[0], _smaller(operands, node, 0)))


def wide_right(operands: Operands, node: Node) -> Type:
    return Type("matrix", (_smaller(operands, node, 0), _matrix(operands, node)[1]))


def pseudoinverse(operands: Operands, node: Node) -> Type:
    return Type("matrix", _matrix(operands, node)[::-1])


def least_squares(operands: Operands, node: Node) -> Type:
    left, right = node.args
    _, columns = _matrix(operands, node)
    found = operands.types[right]
    if found.kind not in ("column", "matrix"):
        raise operands.refused(node, node.args, "it takes a matrix, and a column or a matrix")
    operands.same((left, 0), (right, 0), node.at)
    return found._replace(dims=(columns, *found.dims[1:]))


def moved(operands: Operands, node: Node) -> Type:
    """Entries of a square matrix as a column, or those of a column in a square matrix."""
    inward = node.name.startswith("make")
    triangle = node.name.endswith("trian")
    offset = abs(int(literal(operands.nodes[node.args[1]].name))) if node.args[1:] else 0
    if inward:
        (dim,) = operands.only(node, ("column", "row"), "a column or a row").dims
    else:
        dim = eigenvalues(operands, node).dims[0]
    extent = operands.dimensions.extent(dim)
    if triangle or offset:
        dim = operands.dimensions.new()
        if isinstance(extent, int):
            dim = operands.dimensions.rigid(moved_extent(extent, inward, triangle, offset))
    return Type("matrix", (dim, dim)) if inward else Type("column", (dim,))


def moved_extent(extent: int, inward: bool, triangle: bool, offset: int) -> int:
    """The extent of the other side of `extractdiag`, `extracttrian` and their inverses."""
    if inward:
        return ((isqrt(8 * extent + 1) - 1) // 2 if triangle else extent) + offset
    rows = max(0, extent - offset)
    return rows * (rows + 1) // 2 if triangle else rows


#: Typing rules by the names that `functions` uses.
FACTORISATION_RULES: dict[str, Rule] = {
    "eigenvalues": eigenvalues,
    "singular_values": singular_values,
    "left": left,
    "right": right,
    "wide_left": wide_left,
    "wide_right": wide_right,
    "pseudoinverse": pseudoinverse,
    "least_squares": least_squares,
    "moved": moved,
}
