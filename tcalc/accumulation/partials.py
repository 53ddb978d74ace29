"""The local rule of each node kind: what one step adds to a tangent or a cotangent.

A tangent of a node carries the node's axes and then those of the input; a cotangent carries the
axes of the output and then those of the node (Laue, Mitterreiter, Giesen 2020, Theorems 5-7 and
8-10). Products are built with `graph.normal.einsum`: a unit tensor is a repeated output label.
"""

from __future__ import annotations

from ..graph.applications import application, parts
from ..graph.extents import ONE, Shape
from ..graph.nodes import Add, Apply, Einsum, Expr, Labels, Part
from ..graph.normal import add, einsum, terms_of
from ..graph.operators import Slope, batch_axes


def unit_tensor(shape: Shape) -> Expr:
    """The derivative of a tensor of this shape with respect to itself."""
    axes = tuple(range(len(shape)))
    return einsum([], [], axes + axes, ONE, dict(enumerate(shape)))


def operands_of(node: Expr) -> tuple[Expr, ...]:
    """What a node is differentiated by: its operands, or what these are made of.

    Of one output of several those of its application.
    """
    if slopes := _slopes(node):
        return tuple([slope.operand for slope in slopes])
    return node.args[0].args if isinstance(node, Part) else node.args


def _slopes(node: Expr) -> list[Slope] | None:
    """Derivatives by what the operands are made of, where the row has such."""
    if not isinstance(node, Apply) or node.op.meaning.slopes is None:
        return None
    return node.op.meaning.slopes(node)


def local_pushforward(node: Expr, k: int, tangent: Expr) -> Expr | None:
    """The part of a node's tangent that comes from operand k; None where it is zero.

    Of shape node + directions, for a tangent of shape operand + directions.
    """
    if isinstance(node, Add):
        return tangent
    if isinstance(node, Apply) and node.op.meaning.pushforward is not None:
        return node.op.meaning.pushforward(k, tangent, node)
    if slopes := _slopes(node):
        extra = _fresh(node.ndim, tangent.ndim - slopes[k].operand.ndim)
        out = _fresh(0, node.ndim)
        return _times_slope(slopes[k], node, tangent, slopes[k].word + extra, out + extra)
    directions = tangent.ndim - operands_of(node)[k].ndim
    if isinstance(node, Einsum):
        extra = _fresh(len(node.extents), directions)
        read, result = node.labels[k] + extra, node.out + extra
        return _replaced(node, k, tangent, read, result)
    batch, out, core = _core_words(node, k)
    extra = _fresh(len(batch + out + core), directions)
    return _times_partial(node, k, tangent, batch + core + extra, batch + out + extra)


def local_pullback(node: Expr, k: int, cotangent: Expr) -> Expr | None:
    """The part of operand k's cotangent that comes from a node; None where it is zero.

    Of shape outputs + operand, for a cotangent of shape outputs + node.
    """
    if isinstance(node, Add):
        return cotangent
    if isinstance(node, Apply) and node.op.meaning.pullback is not None:
        return node.op.meaning.pullback(k, cotangent, node)
    lead = cotangent.ndim - node.ndim
    if slopes := _slopes(node):
        extra = _fresh(node.ndim, lead)
        out = _fresh(0, node.ndim)
        return _times_slope(slopes[k], node, cotangent, extra + out, extra + slopes[k].word)
    if isinstance(node, Einsum):
        extra = _fresh(len(node.extents), lead)
        return _replaced(node, k, cotangent, extra + node.out, extra + node.labels[k])
    batch, out, core = _core_words(node, k)
    extra = _fresh(len(batch + out + core), lead)
    return _times_partial(node, k, cotangent, extra + batch + out, extra + batch + core)


def _fresh(first: int, count: int) -> Labels:
    return tuple(range(first, first + count))


def _replaced(node: Einsum, k: int, other: Expr, read: Labels, result: Labels) -> Expr:
    """The product with `other`, read at its labels, for operand k (Theorems 5 and 8)."""
    ops = [*node.args[:k], other, *node.args[k + 1 :]]
    words = [*node.labels[:k], read, *node.labels[k + 1 :]]
    return einsum(ops, words, result, node.coef, dict(enumerate(node.extents)))


def _times_slope(slope: Slope, node: Expr, other: Expr, read: Labels, result: Labels) -> Expr:
    """The product of a derivative by what operands are made of with `other`."""
    ops, words = [e for e, _ in slope.factors], [word for _, word in slope.factors]
    extents = dict(enumerate(node.shape))
    return einsum([*ops, other], [*words, read], result, slope.coef, extents)


def _times_partial(node: Expr, k: int, other: Expr, read: Labels, result: Labels) -> Expr | None:
    """The product of an operator's derivative with `other` (Theorems 6, 7, 9 and 10).

    A derivative of more axes than either side is a sum of contractions larger than their operands
    (the Jacobian of a factorisation has n**4 entries): it is multiplied term by term, never
    written out.
    """
    partial = local_derivative(node, k)
    if partial is None:
        return None
    large = partial.ndim > max(node.ndim, operands_of(node)[k].ndim)
    word = tuple(range(partial.ndim))
    return add(
        [
            einsum([part, other], [word, read], result)
            for part in (terms_of(partial) if large else [partial])
        ]
    )


def local_derivative(node: Expr, k: int) -> Expr | None:
    """An operator's derivative by operand k: shape batch + core of the output + core of k."""
    whole = application(node)
    row = whole.op.meaning.partials[k]
    partial = row[node.index] if isinstance(row, tuple) and isinstance(node, Part) else row
    outputs = parts(whole) if isinstance(node, Part) else (node,)
    return partial(*whole.args, *outputs) if callable(partial) else None


def _core_words(node: Expr, k: int) -> tuple[Labels, Labels, Labels]:
    """Labels of the batch, of the output's core, of the core of operand k."""
    b = batch_axes(application(node))
    o = node.ndim
    return _fresh(0, b), _fresh(b, o - b), _fresh(o, operands_of(node)[k].ndim - b)
