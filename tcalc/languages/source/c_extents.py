"""Extents as integers of C."""

from __future__ import annotations

import ast

from . import infix
from .infix import operand
from .language import PRODUCT, SUM, Code


def extent_text(text: str) -> str:
    """An extent, whose text is that of Python."""
    return _integer(ast.parse(text, mode="eval").body).text


def _integer(tree: ast.expr) -> Code:
    """An extent in C."""
    match tree:
        case ast.Constant():
            return Code(str(tree.value))
        case ast.Name():
            return Code(tree.id)
        case ast.Call(func=ast.Name(id=name)):
            args = [_integer(arg) for arg in tree.args]
            found = args[0]
            for other in args[1:]:
                found = Code(f"index_{name}({found.text}, {other.text})")
            return found
        case ast.UnaryOp(op=ast.USub()):
            return infix.negative(_integer(tree.operand))
        case ast.BinOp(left=left, op=op, right=right):
            a, b = _integer(left), _integer(right)
            if isinstance(op, ast.Add):
                return (
                    infix.total([a, b])
                    if not b.text.startswith("-")
                    else Code(f"{a.text} + ({b.text})", SUM)
                )
            if isinstance(op, ast.Sub):
                return Code(f"{a.text} - {operand(b, PRODUCT)}", SUM)
            if isinstance(op, ast.Mult):
                return infix.product([a, b])
            if isinstance(op, ast.FloorDiv):
                return Code(f"{operand(a)} / {operand(b)}", PRODUCT)
            if isinstance(op, ast.Pow):
                return infix.product([a] * int(b.text))
    raise ValueError(f"the extent {ast.unparse(tree)} has no source")
