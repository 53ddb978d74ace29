"""Planted faults: small changes of a module's meaning, one at a time, over its syntax tree.

`Faults(source).all` has them in a fixed order. What changes no meaning is left out: docstrings,
type hints, the text of errors, decorators, imports, `__all__` and `__slots__`, and whatever
compiles to the same instructions. So are estimates of how long something takes, and what is
computed with them: they decide among plans of equal results, and tests of plans hold them. So are
the points at which tests sample a row, and the amounts that count towards a limit.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Any

#: An operator and what stands in its place.
OPERATORS: dict[type, type] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv, ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr,
    ast.MatMult: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
#: The same in text that another language reads.
CHARACTERS = {
    " + ": " - ", " - ": " + ", " * ": " / ", " / ": " * ", " < ": " <= ", " <= ": " < ",
    " > ": " >= ", " >= ": " > ", " == ": " != ", " != ": " == ", " && ": " || ", " || ": " && ",
    "+=": "-=", "-=": "+=", "++": "--", "(-": "(", "{0}": "{1}", "{1}": "{0}",
}  # fmt: skip
#: Names whose values are read by nothing that computes.
UNREAD = {"__all__", "__slots__"}
#: Calls of which the arguments change how fast something is, or what is told, and no result.
WORDLESS = {"cache", "lru_cache", "cast", "TypeVar", "Refused", "spend"}
#: Functions of which the arguments have no order.
SYMMETRIC = {"max", "min", "gcd", "lcm", "maximum", "minimum", "logaddexp", "hypot"}
#: Numbers below are tolerances: a thousandth more is nothing that results show.
TOLERANCE, LOOSER = 1e-6, 1e4
#: Names of functions, variables and fields that are estimates, or what tests sample.
ESTIMATES = re.compile(r"(\w*_)?(flops|time|cost)|domain")

Change = tuple[str, ast.AST | None]  # None: the statement goes
#: Where a node stands: its parent, the field, the place in the field's list.
Place = tuple[ast.AST, str, int | None]


@dataclass(frozen=True)
class Mutation:
    """One fault: the line, the first line of each function around it, what changed."""

    line: int
    functions: tuple[int, ...]
    what: str
    place: Place
    changed: ast.AST


class Faults:
    """The faults of a module's source; with `texts`, also those of the text that it writes."""

    def __init__(self, source: str, texts: bool = False) -> None:
        self.tree = ast.parse(source)
        self.plain = meaning(ast.unparse(self.tree))
        self.all = [
            Mutation(node.lineno, functions, what, place, changed or ast.Pass())
            for place, functions in sites(self.tree)
            for node in (held(place),)
            for what, changed in changes(node, texts)
        ]

    def planted(self, fault: Mutation) -> str | None:
        """The module with a fault; None where it means the same, or is no program."""
        node = held(fault.place)
        put(fault.place, fault.changed)
        text = ast.unparse(ast.fix_missing_locations(self.tree))
        put(fault.place, node)
        try:
            return None if meaning(text) == self.plain else text
        except SyntaxError:
            return None


def held(place: Place) -> ast.AST:
    parent, field, k = place
    node = getattr(parent, field)
    return node if k is None else node[k]


def put(place: Place, node: ast.AST) -> None:
    parent, field, k = place
    if k is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[k] = node


def meaning(source: str) -> tuple[object, ...]:
    """What a module compiles to, without lines and docstrings."""
    return instructions(compile(source, "", "exec", dont_inherit=True, optimize=2))


def instructions(code: CodeType) -> tuple[object, ...]:
    constants = (
        instructions(c) if isinstance(c, CodeType) else (type(c), repr(c)) for c in code.co_consts
    )
    return code.co_code, tuple(constants), code.co_names, code.co_varnames, code.co_freevars


# --- where ----------------------------------------------------------------------------------------


def sites(
    node: ast.AST, functions: tuple[int, ...] = ()
) -> Iterator[tuple[Place, tuple[int, ...]]]:
    """Every node with a meaning, and the functions around it."""
    if isinstance(node, ast.FunctionDef | ast.Lambda):
        lines = [node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))]
        functions = (min(lines), *functions)
    for field, value in ast.iter_fields(node):
        if field in ("decorator_list", "annotation", "returns", "type_params"):
            continue
        for place, child in enumerate(value) if isinstance(value, list) else ((None, value),):
            if isinstance(child, ast.AST) and not idle(child):
                if hasattr(child, "lineno"):
                    yield (node, field, place), functions
                yield from sites(child, functions)


def idle(node: ast.AST) -> bool:
    """Does nothing that computes read the node?"""
    match node:
        case ast.Import() | ast.ImportFrom() | ast.Raise() | ast.Assert():
            return True
        case ast.Expr(value=ast.Constant(value=str())):
            return True
        case ast.If(test=test):
            return ast.unparse(test).endswith("TYPE_CHECKING")
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name in UNREAD or ESTIMATES.fullmatch(name) is not None
        case ast.FunctionDef(name=name) | ast.keyword(arg=str(name)) if ESTIMATES.fullmatch(name):
            return True
        case ast.Call(func=ast.Name(id=name)):
            return name in WORDLESS or name.endswith(("Error", "Warning"))
        case ast.keyword(arg=name):
            return name == "strict"  # of zip: like an assertion
        case ast.BinOp(left=one, right=two) | ast.Compare(left=one, comparators=[two]):
            return estimated(one) or estimated(two)
    return False


def estimated(node: ast.AST) -> bool:
    """Is the value an estimate, or made of one?"""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Call(func=ast.Name(id=name)):
            return ESTIMATES.fullmatch(name) is not None
        case ast.BinOp(left=one, right=two):
            return estimated(one) or estimated(two)
    return False


# --- what -----------------------------------------------------------------------------------------


def changes(node: ast.AST, texts: bool) -> Iterator[Change]:
    """What may stand in place of a node, and how it is told."""
    for kind, rule in CHANGES.items():
        if isinstance(node, kind):
            yield from rule(node)
    if texts and isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield from of_text(node)


def of_binary(node: ast.BinOp) -> Iterator[Change]:
    """Another operator, one operand alone, or off by a thousandth."""
    other = OPERATORS.get(type(node.op))
    if is_text(node.left) or is_text(node.right) or other is None:
        return
    yield told(node, ast.BinOp(node.left, other(), node.right))
    if isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.BitOr | ast.BitAnd):
        yield told(node, node.left)
    if isinstance(node.op, ast.Mult | ast.Div):
        yield told(node, ast.BinOp(ast.Constant(1.001), ast.Mult(), node))


def of_unary(node: ast.UnaryOp) -> Iterator[Change]:
    if isinstance(node.op, ast.USub | ast.Not):
        yield told(node, node.operand)


def of_comparison(node: ast.Compare) -> Iterator[Change]:
    for k, op in enumerate(node.ops):
        ops = [*node.ops[:k], OPERATORS[type(op)](), *node.ops[k + 1 :]]
        yield told(node, ast.Compare(node.left, ops, node.comparators))


def of_condition(node: ast.BoolOp) -> Iterator[Change]:
    yield told(node, ast.BoolOp(OPERATORS[type(node.op)](), node.values))
    for k in range(len(node.values)):
        rest = [*node.values[:k], *node.values[k + 1 :]]
        yield told(node, rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest))


def of_branch(node: ast.If | ast.While | ast.IfExp) -> Iterator[Change]:
    """The negated condition, where a comparison does not say it already."""
    if not isinstance(node.test, ast.Compare):
        test = ast.UnaryOp(ast.Not(), node.test)
        changed: ast.AST = (
            ast.IfExp(test, node.body, node.orelse)
            if isinstance(node, ast.IfExp)
            else type(node)(test, node.body, node.orelse)
        )
        yield f"if {ast.unparse(node.test)} -> if not", changed


def of_number(node: ast.Constant) -> Iterator[Change]:
    value = node.value
    if isinstance(value, bool):
        yield told(node, ast.Constant(not value))
    elif isinstance(value, int):
        yield told(node, ast.Constant(value + 1))
    elif isinstance(value, float):
        factor = LOOSER if 0 < value < TOLERANCE else 1.001
        yield told(node, ast.Constant(value * factor if value else 1.0))


def of_call(node: ast.Call) -> Iterator[Change]:
    """The first two arguments swapped, where their order is one."""
    if isinstance(node.func, ast.Name) and node.func.id in SYMMETRIC:
        return
    if len(node.args) >= 2 and not any(isinstance(a, ast.Starred) for a in node.args[:2]):
        first, second, *rest = node.args
        yield told(node, ast.Call(node.func, [second, first, *rest], node.keywords))


def of_place(node: ast.Subscript) -> Iterator[Change]:
    """The entry before, where it is at a computed place."""
    if isinstance(node.ctx, ast.Load) and isinstance(node.slice, ast.BinOp):
        before = ast.BinOp(node.slice, ast.Sub(), ast.Constant(1))
        yield told(node, ast.Subscript(node.value, before, node.ctx))


def of_comprehension(node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Iterator[Change]:
    """Without one of the conditions."""
    for k, generator in enumerate(node.generators):
        for c in range(len(generator.ifs)):
            ifs = [*generator.ifs[:c], *generator.ifs[c + 1 :]]
            loose = ast.comprehension(generator.target, generator.iter, ifs, generator.is_async)
            generators = [*node.generators[:k], loose, *node.generators[k + 1 :]]
            yield told(node, type(node)(node.elt, generators))


def of_statement(node: ast.stmt) -> Iterator[Change]:
    """A statement that is called for what it does is left out."""
    yield f"without {short(node)}", None


def of_text(node: ast.Constant) -> Iterator[Change]:
    """Operators, digits and operands in text that is read by another language."""
    text = node.value
    for found in re.finditer("|".join(map(re.escape, CHARACTERS)), text):
        other = CHARACTERS[found[0]]
        yield told(node, ast.Constant(text[: found.start()] + other + text[found.end() :]))
    for found in re.finditer(r"(?<![\w{.])\d+(?![\w}.])", text):
        other = str(int(found[0]) + 1)
        yield told(node, ast.Constant(text[: found.start()] + other + text[found.end() :]))


CHANGES: dict[Any, Callable[[Any], Iterator[Change]]] = {
    ast.BinOp: of_binary,
    ast.UnaryOp: of_unary,
    ast.Compare: of_comparison,
    ast.BoolOp: of_condition,
    (ast.If, ast.While, ast.IfExp): of_branch,
    ast.Constant: of_number,
    ast.Call: of_call,
    ast.Subscript: of_place,
    (ast.ListComp, ast.SetComp, ast.GeneratorExp): of_comprehension,
    (ast.AugAssign, ast.Expr, ast.Continue, ast.Break): of_statement,
}


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def told(node: ast.AST, changed: ast.AST) -> Change:
    return f"{short(node)} -> {short(changed)}", changed


def short(node: ast.AST) -> str:
    text = " ".join(ast.unparse(ast.fix_missing_locations(node)).split())
    return text if len(text) <= 70 else f"{text[:67]}..."
