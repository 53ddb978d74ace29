"""Types of what operators and ordinary functions of the matrix language give."""

from __future__ import annotations

from ..reading.tree import Node
from .types import PRODUCT_ADVICE, PRODUCTS, SCALAR, TURNED, Operands, Rule, Type

# --- operators ------------------------------------------------------------------------------------


def transposed(operands: Operands, node: Node) -> Type:
    kind, dims, _ = operands.first(node)
    return Type(TURNED[kind], dims[::-1])


def scalar(operands: Operands, node: Node) -> Type:
    return SCALAR


def operand_type(operands: Operands, node: Node) -> Type:
    return operands.first(node)


def product(operands: Operands, node: Node) -> Type:
    left, right = (operands.types[place] for place in node.args)
    if "scalar" in (left.kind, right.kind):
        return right if left.kind == "scalar" else left
    kinds = (left.kind, right.kind)
    if kinds not in PRODUCTS:
        raise operands.refused(
            node, node.args, PRODUCT_ADVICE[kinds].format(*operands.factors(node))
        )
    *words, out, kind = PRODUCTS[kinds]
    for k, letter in enumerate(words[0]):
        if letter in words[1]:
            operands.same((node.args[0], k), (node.args[1], words[1].index(letter)), node.at)
    axes = dict(zip("".join(words), (*left.dims, *right.dims), strict=True))
    return Type(kind, tuple([axes[letter] for letter in out]))


def quotient(operands: Operands, node: Node) -> Type:
    left, right = node.args
    if operands.kind(right) != "scalar":
        above, below = operands.factors(node)
        advice = f"/ divides by a scalar: write {above} ./ {below} to divide entries"
        if operands.kind(right) == "matrix":
            advice += f", {below} \\ b to solve"
        raise operands.refused(node, node.args, advice)
    return operands.types[left]


def solved(operands: Operands, node: Node) -> Type:
    left, right = node.args
    if operands.kind(left) != "matrix" or operands.kind(right) not in ("column", "matrix"):
        advice = "A \\ b solves for a square matrix A and a column or matrix b"
        raise operands.refused(node, node.args, advice)
    operands.check_square(left, node.at)
    operands.same((left, 1), (right, 0), node.at)
    return operands.types[right]


def power(operands: Operands, node: Node) -> Type:
    base, exponent = node.args
    kinds = (operands.kind(base), operands.kind(exponent))
    if kinds == ("scalar", "scalar"):
        return SCALAR
    if kinds != ("matrix", "scalar"):
        advice = "^ raises scalars, square matrices to an integer; write {} .^ {} for entries"
        raise operands.refused(node, node.args, advice.format(*operands.factors(node)))
    operands.check_square(base, node.at)
    return operands.types[base]


# --- functions ------------------------------------------------------------------------------------


def extremum(operands: Operands, node: Node) -> Type:
    return SCALAR if len(node.args) == 1 else operands.entrywise(node)


def vector(operands: Operands, node: Node) -> Type:
    return operands.only(node, ("column", "row"), "a column or a row")


def square_matrix(operands: Operands, node: Node) -> Type:
    found = operands.only(node, ("matrix",), "a square matrix")
    operands.check_square(node.args[0], node.at)
    return found


def invariant(operands: Operands, node: Node) -> Type:
    square_matrix(operands, node)
    return SCALAR


def diagonal(operands: Operands, node: Node) -> Type:
    found = operands.only(node, ("column", "row", "matrix"), "a column, a row or a square matrix")
    if found.kind != "matrix":
        return Type("matrix", found.dims * 2)
    operands.check_square(node.args[0], node.at)
    return Type("column", found.dims[:1])


#: Rules by the kind of a node.
KIND_RULES: dict[str, Rule] = {
    "number": scalar,
    "size": scalar,
    "literal": scalar,
    "use": operand_type,
    "prefix": operand_type,
    "postfix": transposed,
}

#: Operators that are not entrywise.
OPERATOR_RULES: dict[str, Rule] = {
    "*": product,
    "/": quotient,
    "\\": solved,
    "^": power,
}

#: Typing rules by the names that `functions` uses.
FUNCTION_RULES: dict[str, Rule] = {
    "entrywise": Operands.entrywise,
    "total": scalar,
    "extremum": extremum,
    "vector": vector,
    "square_matrix": square_matrix,
    "invariant": invariant,
    "diagonal": diagonal,
}
