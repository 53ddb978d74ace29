"""What to write in place of operands that do not fit: only what would."""

from __future__ import annotations

from collections.abc import Sequence

from ...support.declaring import declaration
from ..reading.tree import Node
from .syntax import TRANSPOSES, factor_source
from .types import ARRAY_ADVICE, TypingContext

#: An axis of the first and one of the second operand, which must be equal.
Axes = tuple[int, int]

_OTHER_ORDER = "{1}*{0} to multiply in the other order"
#: What to write for products, by the kinds of their operands: {2} and {3} are these transposed.
PRODUCT_ADVICE: dict[tuple[str, str], Sequence[tuple[str, Axes | None]]] = {
    ("column", "column"): (
        ("{2}*{1} for the scalar product", (0, 0)),
        ("{0}*{3} for the outer product", None),
        ("{0}.*{1} for the product of entries", (0, 0)),
    ),
    ("row", "row"): (
        ("{0}*{3} for the scalar product", (0, 0)),
        ("{2}*{1} for the outer product", None),
        ("{0}.*{1} for the product of entries", (0, 0)),
    ),
    ("column", "matrix"): (
        ("{2}*{1} to multiply with the transpose", (0, 0)),
        (_OTHER_ORDER, (0, 1)),
        ("diag({0})*{1} to scale rows", (0, 0)),
    ),
    ("matrix", "row"): (
        ("{0}*{3} to multiply with the transpose", (1, 0)),
        (_OTHER_ORDER, (0, 0)),
        ("{0}*diag({1}) to scale columns", (1, 0)),
    ),
    ("matrix", "column"): (("{2}*{1} to multiply with the transpose", (0, 0)),),
    ("row", "matrix"): (("{0}*{3} to multiply with the transpose", (0, 1)),),
    ("matrix", "matrix"): (
        ("{2}*{1} to multiply with a transpose", (0, 0)),
        ("{0}*{3} to multiply with a transpose", (1, 1)),
        (_OTHER_ORDER, (0, 1)),
    ),
}

NOTHING = "nothing like it fits their extents"
#: Quotients, by the kinds of their operands.
QUOTIENT_ADVICE: dict[tuple[str, str], Sequence[tuple[str, Axes | None]]] = {
    ("matrix", "column"): (
        ("diag(1 ./ {1})*{0} to divide rows", (0, 0)),
        ("{0}*diag(1 ./ {1}) to divide columns", (1, 0)),
    ),
    ("matrix", "row"): (
        ("diag(1 ./ {1})*{0} to divide rows", (0, 0)),
        ("{0}*diag(1 ./ {1}) to divide columns", (1, 0)),
    ),
    ("column", "row"): (("{0} ./ {3} to divide entries", (0, 0)),),
    ("row", "column"): (("{0} ./ {3} to divide entries", (0, 0)),),
}


def product_advice(context: TypingContext, node: Node) -> str:
    """What to write for a product of operands whose kinds have none."""
    left, right = node.args
    found = PRODUCT_ADVICE.get((context.kind(left), context.kind(right)))
    if found is None:
        return ARRAY_ADVICE
    return _fitting(context, node, found) or NOTHING


def extent_advice(context: TypingContext, node: Node) -> str:
    """What to write for a product of which extents differ; nothing where that is not known."""
    left, right = node.args
    found = PRODUCT_ADVICE.get((context.kind(left), context.kind(right)), ())
    return _fitting(context, node, found)


def quotient_advice(context: TypingContext, node: Node) -> str:
    """What to write for a division by what is no scalar."""
    left, right = node.args
    kinds = context.kind(left), context.kind(right)
    found = QUOTIENT_ADVICE.get(kinds, ())
    if kinds[0] in ("scalar", kinds[1]):
        axes = range(len(context.types[right].dims)) if kinds[0] == kinds[1] else ()
        if all(context.may_be_equal((left, k), (right, k)) for k in axes):
            found = (("{0} ./ {1} to divide entries", None),)
    advice = f"/ divides by a scalar: {_fitting(context, node, found) or NOTHING}"
    if context.kind(right) == "matrix":
        advice += f", {factor_source(context.tree, right)} \\ b to solve"
    name = context.nodes[right].name
    if context.nodes[right].kind == "name" and name in context.undeclared:
        number, extent = declaration(name), declaration("x", name)
        advice += f", or declare {number} as a number, {extent} as an extent"
    return advice


def _fitting(context: TypingContext, node: Node, advice: Sequence[tuple[str, Axes | None]]) -> str:
    """Of what could be written that of which axes can be equal, if any."""
    left, right = node.args
    factors = [*context.factors(node), *[_transposed(context, place) for place in node.args]]
    fitting = [
        text.format(*factors)
        for text, axes in advice
        if axes is None or context.may_be_equal((left, axes[0]), (right, axes[1]))
    ]
    if not fitting:
        return ""
    return f"write {', '.join(fitting[:-1])}{' or ' if fitting[1:] else ''}{fitting[-1]}"


def _transposed(context: TypingContext, place: int) -> str:
    """The text of an operand that is transposed, or no more."""
    node = context.nodes[place]
    if node.kind == "postfix" and node.name in TRANSPOSES:
        return factor_source(context.tree, node.args[0])
    return f"{factor_source(context.tree, place)}'"
