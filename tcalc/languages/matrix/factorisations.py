"""Typing rules of factorisations and of packed triangles, in the matrix language."""

from __future__ import annotations

from math import isqrt

from ..reading.lexer import literal
from ..reading.tree import Node
from .types import Type, TypingContext, TypingRule


def _matrix(context: TypingContext, node: Node) -> tuple[int, int]:
    m, n = context.only(node, ("matrix",), "a matrix").dims
    return m, n


def _smaller(context: TypingContext, node: Node, otherwise: int) -> int:
    """The smaller dimension of a matrix; the one at `otherwise` where a name hides which it is."""
    dims = _matrix(context, node)
    m, n = (context.dimensions.extent(dim) for dim in dims)
    if isinstance(m, int) and isinstance(n, int):
        return dims[0] if m < n else dims[1]
    return dims[otherwise]


def eigenvalues_type(context: TypingContext, node: Node) -> Type:
    dims = _matrix(context, node)
    context.check_square(node.args[0], node.at)
    return Type("column", dims[:1])


def singular_values_type(context: TypingContext, node: Node) -> Type:
    return Type("column", (_smaller(context, node, 1),))


def left_type(context: TypingContext, node: Node) -> Type:
    return Type("matrix", (_matrix(context, node)[0], _smaller(context, node, 1)))


def right_type(context: TypingContext, node: Node) -> Type:
    return Type("matrix", (_smaller(context, node, 1), _matrix(context, node)[1]))


def wide_left_type(context: TypingContext, node: Node) -> Type:
    return Type("matrix", (_matrix(context, node)[0], _smaller(context, node, 0)))


def wide_right_type(context: TypingContext, node: Node) -> Type:
    return Type("matrix", (_smaller(context, node, 0), _matrix(context, node)[1]))


def pseudoinverse_type(context: TypingContext, node: Node) -> Type:
    return Type("matrix", _matrix(context, node)[::-1])


def least_squares_type(context: TypingContext, node: Node) -> Type:
    left, right = node.args
    _, columns = _matrix(context, node)
    found = context.types[right]
    if found.kind not in ("column", "matrix"):
        raise context.refused(node, node.args, "it takes a matrix, and a column or a matrix")
    context.same((left, 0), (right, 0), node.at)
    return found._replace(dims=(columns, *found.dims[1:]))


def packed_type(context: TypingContext, node: Node) -> Type:
    """Entries of a square matrix as a column, or those of a column in a square matrix."""
    inward = node.name.startswith("make")
    triangle = node.name.endswith("trian")
    offset = abs(int(literal(context.nodes[node.args[1]].name))) if node.args[1:] else 0
    if inward:
        (dim,) = context.only(node, ("column", "row"), "a column or a row").dims
    else:
        dim = eigenvalues_type(context, node).dims[0]
    extent = context.dimensions.extent(dim)
    if triangle or offset:
        dim = context.dimensions.new()
        if isinstance(extent, int):
            dim = context.dimensions.rigid(packed_extent(extent, inward, triangle, offset))
    return Type("matrix", (dim, dim)) if inward else Type("column", (dim,))


def packed_extent(extent: int, inward: bool, triangle: bool, offset: int) -> int:
    """The extent of the other side of `extractdiag`, `extracttrian` and their inverses."""
    if inward:
        return ((isqrt(8 * extent + 1) - 1) // 2 if triangle else extent) + offset
    rows = max(0, extent - offset)
    return rows * (rows + 1) // 2 if triangle else rows


#: Typing rules by the names that `functions` uses.
FACTORISATION_RULES: dict[str, TypingRule] = {
    "eigenvalues": eigenvalues_type,
    "singular_values": singular_values_type,
    "left": left_type,
    "right": right_type,
    "wide_left": wide_left_type,
    "wide_right": wide_right_type,
    "pseudoinverse": pseudoinverse_type,
    "least_squares": least_squares_type,
    "moved": packed_type,
}
