"""Typing rules of the operators and of most functions of the matrix language."""

from __future__ import annotations

from functools import partial

from ..reading.tree import Node
from .advice import extent_advice, product_advice, quotient_advice
from .spellings import TRANSPOSES
from .types import (
    MATRIX_PRODUCTS,
    SCALAR,
    TRANSPOSED_KIND,
    Type,
    TypingContext,
    TypingRule,
    type_of_axes,
)

# --- operators ------------------------------------------------------------------------------------


def array_type(context: TypingContext, node: Node) -> Type:
    return type_of_axes([context.dimensions.rigid(n) for n in context.tree.numbers(node).shape])


def transpose_type(context: TypingContext, node: Node) -> Type:
    kind, dims = context.first(node)
    if kind not in TRANSPOSED_KIND:
        raise context.refused(node, node.args, "axes are permuted by #('ijk->kji', T)")
    return Type(TRANSPOSED_KIND[kind], dims[::-1])


def scalar_type(context: TypingContext, node: Node) -> Type:
    return SCALAR


def operand_type(context: TypingContext, node: Node) -> Type:
    return context.first(node)


def product_type(context: TypingContext, node: Node) -> Type:
    left, right = (context.types[place] for place in node.args)
    if "scalar" in (left.kind, right.kind):
        return right if left.kind == "scalar" else left
    kinds = (left.kind, right.kind)
    if kinds not in MATRIX_PRODUCTS:
        raise context.refused(node, node.args, product_advice(context, node))
    *words, out, kind = MATRIX_PRODUCTS[kinds]
    for k, letter in enumerate(words[0]):
        if letter in words[1]:
            axis = words[1].index(letter)
            advice = partial(extent_advice, context, node)
            context.same((node.args[0], k), (node.args[1], axis), node.at, advice)
    axes = dict(zip("".join(words), (*left.dims, *right.dims), strict=True))
    return Type(kind, tuple([axes[letter] for letter in out]))


def quotient_type(context: TypingContext, node: Node) -> Type:
    left, right = node.args
    if context.kind(right) != "scalar":
        raise context.refused(node, node.args, quotient_advice(context, node))
    return context.types[left]


def solution_type(context: TypingContext, node: Node) -> Type:
    left, right = node.args
    if context.kind(left) != "matrix" or context.kind(right) not in ("column", "matrix"):
        advice = "A \\ b solves for a square matrix A and a column or matrix b"
        raise context.refused(node, node.args, advice)
    context.check_square(left, node.at)
    context.same((left, 1), (right, 0), node.at)
    return context.types[right]


def power_type(context: TypingContext, node: Node) -> Type:
    base, exponent = node.args
    kinds = (context.kind(base), context.kind(exponent))
    if kinds == ("scalar", "scalar"):
        return SCALAR
    if kinds != ("matrix", "scalar"):
        factors, shown = context.factors(node), context.tree.source(exponent)
        if shown in TRANSPOSES:
            message = f"there is no `^{shown}` here; {TRANSPOSES[shown].format(*factors)}"
            raise context.tree.shape_error(message, node.at)
        advice = "^ raises scalars, square matrices to an integer; write {} .^ {} for entries"
        raise context.refused(node, node.args, advice.format(*factors))
    context.check_square(base, node.at)
    return context.types[base]


def einsum_type(context: TypingContext, node: Node) -> Type:
    """The letters of an einsum form are dimensions; those of the result are its axes."""
    form = context.tree.forms[len(context.types)]
    first: dict[str, tuple[int, int]] = {}
    for place, word in zip(node.args, form.words, strict=True):
        if len(word) != len(context.types[place].dims):
            raise context.refused(node, (place,), f"its letters here are '{word}'")
        for axis, letter in enumerate(word):
            context.same(first.setdefault(letter, (place, axis)), (place, axis), node.at)
    dims = {letter: context.types[place].dims[axis] for letter, (place, axis) in first.items()}
    for letter, extent in form.sizes.items():
        stated = context.dimensions.rigid(extent)
        if not context.dimensions.unify(dims.setdefault(letter, stated), stated):
            other = context.axis(*first[letter])
            message = f"the index {letter} has extent {extent}, and is {other}"
            raise context.tree.shape_error(message, node.at)
    return type_of_axes([dims[letter] for letter in form.out])


# --- functions ------------------------------------------------------------------------------------


def extremum_type(context: TypingContext, node: Node) -> Type:
    return SCALAR if len(node.args) == 1 else context.entrywise(node)


def weighted_type(context: TypingContext, node: Node) -> Type:
    context.entrywise(node)
    return SCALAR


def vector_type(context: TypingContext, node: Node) -> Type:
    """Functions along the last axis, as NumPy's: of every row of a matrix."""
    return (
        line_type(context, node) if context.kind(node.args[0]) == "scalar" else context.first(node)
    )


def line_type(context: TypingContext, node: Node) -> Type:
    """Functions that take matrices along an axis that is said only."""
    return context.only(node, ("column", "row"), "a column or a row; of others, say axis=")


def square_matrix_type(context: TypingContext, node: Node) -> Type:
    found = context.only(node, ("matrix",), "a square matrix")
    context.check_square(node.args[0], node.at)
    return found


def invariant_type(context: TypingContext, node: Node) -> Type:
    square_matrix_type(context, node)
    return SCALAR


def diagonal_type(context: TypingContext, node: Node) -> Type:
    found = context.only(node, ("column", "row", "matrix"), "a column, a row or a square matrix")
    if found.kind != "matrix":
        return Type("matrix", found.dims * 2)
    context.check_square(node.args[0], node.at)
    return Type("column", found.dims[:1])


#: Rules by the kind of a node.
KIND_RULES: dict[str, TypingRule] = {
    "number": scalar_type,
    "size": scalar_type,
    "literal": scalar_type,
    "use": operand_type,
    "prefix": operand_type,
    "postfix": transpose_type,
    "einsum": einsum_type,
    "array": array_type,
}

#: Operators that are not entrywise.
OPERATOR_RULES: dict[str, TypingRule] = {
    "*": product_type,
    "/": quotient_type,
    "\\": solution_type,
    "^": power_type,
}

#: Typing rules by the names that `functions` uses.
FUNCTION_RULES: dict[str, TypingRule] = {
    "entrywise": TypingContext.entrywise,
    "total": scalar_type,
    "extremum": extremum_type,
    "weighted": weighted_type,
    "vector": vector_type,
    "line": line_type,
    "square_matrix": square_matrix_type,
    "invariant": invariant_type,
    "diagonal": diagonal_type,
}
