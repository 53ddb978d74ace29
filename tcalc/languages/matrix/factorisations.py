"""Typing rules of factorisations and of packed triangles, in the matrix language."""

from __future__ import annotations

from functools import partial

from ...graph.extent_equations import triangle_entries, triangle_rows
from ...graph.extents import Extent, extent_from, form_of, least_extent
from ...graph.operators import TABLE
from ..reading.lexer import literal
from ..reading.parameters import fault
from ..reading.tree import Node
from .types import Type, TypingContext, TypingRule


def _matrix(context: TypingContext, node: Node) -> tuple[int, int]:
    m, n = context.only(node, ("matrix",), "a matrix").dims
    return m, n


def _smaller(context: TypingContext, node: Node, axis: int) -> int:
    """The smaller dimension of a matrix; that of an axis where names hide which it is."""

    def rule(*extents: Extent) -> Extent:
        least = least_extent(*extents)
        return least if least in extents else extents[axis]

    return context.made(rule, node, *_matrix(context, node))


def _rank(context: TypingContext, node: Node) -> int:
    """The smaller dimension of a matrix."""
    return context.made(least_extent, node, *_matrix(context, node))


def eigenvalues_type(context: TypingContext, node: Node) -> Type:
    dims = _matrix(context, node)
    context.check_square(node.args[0], node.at)
    return Type("column", dims[:1])


def singular_values_type(context: TypingContext, node: Node) -> Type:
    return Type("column", (_rank(context, node),))


def left_vectors_type(context: TypingContext, node: Node) -> Type:
    return Type("matrix", (_matrix(context, node)[0], _rank(context, node)))


def right_vectors_type(context: TypingContext, node: Node) -> Type:
    return Type("matrix", (_rank(context, node), _matrix(context, node)[1]))


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
    given = [literal(context.nodes[place].name) for place in node.args[1:]]
    params = [*given, *([0, True] if triangle else [0])[len(given) :]]
    if problem := fault(TABLE[node.name], params):
        raise context.tree.error(f"{node.name}: {problem}", node.at)
    offset = abs(params[0])
    if inward:
        (dim,) = context.only(node, ("column", "row"), "a column or a row").dims
    else:
        dim = eigenvalues_type(context, node).dims[0]
    if triangle or offset:
        rule = partial(packed_extent, inward=inward, triangle=triangle, offset=offset)
        dim = context.made(rule, node, dim)
    return Type("matrix", (dim, dim)) if inward else Type("column", (dim,))


def packed_extent(extent: Extent, inward: bool, triangle: bool, offset: int) -> Extent:
    """The extent of the other side of `extractdiag`, `extracttrian` and their inverses."""
    if inward:
        form = form_of(extent)
        return extent_from((triangle_rows(form) or form if triangle else form) + offset)
    rows = form_of(max(0, extent - offset)) if isinstance(extent, int) else form_of(extent) - offset
    return extent_from(triangle_entries(rows) if triangle else rows)


#: Typing rules by the names that `functions` uses.
FACTORISATION_RULES: dict[str, TypingRule] = {
    "eigenvalues": eigenvalues_type,
    "singular_values": singular_values_type,
    "left_vectors": left_vectors_type,
    "right_vectors": right_vectors_type,
    "left": left_type,
    "right": right_type,
    "wide_left": wide_left_type,
    "wide_right": wide_right_type,
    "pseudoinverse": pseudoinverse_type,
    "least_squares": least_squares_type,
    "moved": packed_type,
}
