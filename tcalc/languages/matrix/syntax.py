"""The matrix language, first phase: text to a syntax tree with offsets.

Nodes are number, name, size, literal, use (of an earlier statement), call, prefix, infix and
postfix.
"""

from __future__ import annotations

from typing import NamedTuple

from ...support.errors import ParseError
from ..reading.lexer import WORDS, Lexicon, excerpt
from ..reading.precedence import (
    COMPARISON,
    MAX_DEPTH,
    POWER,
    PRODUCT,
    SIGN,
    SUM,
    Node,
    Open,
    Parser,
)

LEVELS = {
    **dict.fromkeys(("<", "<=", ">", ">=", "==", "!="), COMPARISON),
    **dict.fromkeys(("+", "-"), SUM),
    **dict.fromkeys(("*", ".*", "/", "./", "\\", "⊗"), PRODUCT),
    **dict.fromkeys(("^", ".^"), POWER),
}
TRANSPOSES = ("'", ".'")

LEXICON = Lexicon(
    operators=(*LEVELS, *TRANSPOSES, "²", "(", ")", ",", ";", "="),
    comments="#%",
    synonyms={"⊙": ".*", "⊘": "./", "·": "*", "−": "-", "ᵀ": "'"},
    hints={
        "**": "a power of entries is .^, of a scalar or a square matrix ^",
        "//": "write floor(a ./ b)",
        "@": "a product of matrices and vectors is *",
        ".T": "a transpose is '",
        "&&": "write logical_and(a, b)",
        "||": "write logical_or(a, b)",
        "&": "write logical_and(a, b)",
        "|": "write logical_or(a, b), and abs(a) for a magnitude",
        "~=": "write !=",
        "~": "write logical_not(a)",
        "!": "write logical_not(a)",
        "≤": "write <=",
        "≥": "write >=",
        "≠": "write !=",
    },
)

#: Functions whose further arguments are sizes, by the number of arguments before these.
CONSTANTS = ("lower_half", "lower_ones", "upper_ones", "leading_rows", "lower_trapezoid")
SIZED = {"eye": 0, "vector": 1, "matrix": 1, **dict.fromkeys(CONSTANTS, 0)}

#: Functions whose second and third argument are written out.
LITERAL = ("norm", "cumsum", "extractdiag", "extracttrian", "makediag", "maketrian")


class Statement(NamedTuple):
    """`name = …` or, last, an expression without a name; `root` is its place in the list."""

    name: str
    root: int
    at: int


class Tree(NamedTuple):
    text: str
    nodes: list[Node]
    statements: list[Statement]

    def source(self, node: Node) -> str:
        """The node as the user wrote it."""
        return excerpt(self.text, node.start, node.end)

    def factor(self, node: Node) -> str:
        """The same in parentheses where an operator behind it would bind to a part only."""
        shown = node.name if node.kind == "number" else self.source(node)
        enclosed = self.text[node.start] == "(" and self.text[node.end - 1] == ")"
        return f"({shown})" if node.kind in ("infix", "prefix") and not enclosed else shown


def parse_tree(text: str) -> Tree:
    """The syntax tree of a text of the matrix language."""
    return _Parser(text).run()


class _Parser(Parser):
    def __init__(self, text: str) -> None:
        super().__init__(text, LEXICON)
        self.statements: list[Statement] = []
        self.assigned: dict[str, int] = {}
        self.used: set[str] = set()

    def run(self) -> Tree:
        while self.follows():
            if self.statements and not self.statements[-1].name:
                raise self.unused(self.statements[-1].root)
            self.statement()
        if not self.statements:
            raise self.fail("the text is empty; expected an expression")
        return Tree(self.text, self.nodes, self.statements)

    def statement(self) -> None:
        token, name = self.token, ""
        if token.kind == "name" and self.at("=", 1):
            name = token.text
            if name in self.assigned:
                raise self.fail(f"`{name}` has a value already; each name is given one value")
            if name == "pi":
                raise self.fail("`pi` is a number already; choose another name")
            self.place += 2
        self.expression()
        root = self.values.pop()
        if name:
            if name in self.used:
                message = f"`{name}` is used before it is given a value here; choose another name"
                raise self.fail(message, token.start)
            self.assigned[name] = root
        self.statements.append(Statement(name, root, token.start))

    # --- where an operand is expected ------------------------------------------------------------

    def operand(self) -> bool:
        """Read a token where an operand is expected; True once an operand is complete."""
        token = self.token
        if token.kind == "number":
            self.push("number", token.text, (), (token.start, token.start, token.end))
        elif token.kind == "name" and self.at("(", 1):
            self.open("call", token.text)
            self.place += 2
            return False
        elif token.kind == "name":
            self.name()
        elif token.kind == "op" and token.text == "(":
            self.open("(", "(")
            self.place += 1
            return False
        elif token.kind == "op" and token.text in ("+", "-"):
            self.sign()
            return False
        else:
            raise self.fail(self.missing())
        self.place += 1
        self.complete()
        return True

    def name(self) -> None:
        token = self.token
        root = self.assigned.get(token.text)
        if root is None:
            self.used.add(token.text)
        kind, args = ("name", ()) if root is None else ("use", (root,))
        self.push(kind, token.text, args, (token.start, token.start, token.end))

    def open(self, kind: str, name: str) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.fail(f"more than {MAX_DEPTH} nested parentheses")
        self.stack.append(Open(kind, name, self.token.start, base=len(self.values)))

    def missing(self) -> str:
        top = self.stack[-1] if self.stack else None
        if top and top.level in (POWER, SIGN):
            wanted = "an exponent: a number, a name, a call or a parenthesis"
        elif top and top.kind == "call" and self.token.text == ")":
            wanted = f"an argument of {top.name}"
        else:
            wanted = "a number, a name, a function or a parenthesis"
        message = f"expected {wanted}, found {self.found()}"
        if self.token.kind == "newline" and top:
            message += "; a line goes on only inside parentheses"
        return message

    # --- where an operator is expected -----------------------------------------------------------

    def operator(self) -> bool | None:
        """Read a token behind an operand: True where one follows, False at the end, else None."""
        token = self.token
        if token.kind in ("number", "name") or token.text == "(":
            left = self.source(self.values[-1])
            right = excerpt(self.text, token.start, token.end) + "…)" * (token.text == "(")
            raise self.fail(f"expected an operator; a product is written with *: {left}*{right}")
        if token.kind in ("end", "newline") or token.text == ";":
            self.reduce(COMPARISON)
            if self.stack:
                raise self.unclosed(self.stack[-1])
            return False
        if token.text in TRANSPOSES or token.text == "²":
            self.postfix()
            return None
        if token.text == ")":
            self.close()
            return None
        if token.text == ",":
            self.comma()
        elif token.text in LEVELS:
            self.infix()
        else:
            raise self.fail("a statement is name = expression, and a comparison is ==")
        return True

    def unclosed(self, bracket: Open) -> ParseError:
        at = bracket.at + len(bracket.name) if bracket.kind == "call" else bracket.at
        at = self.text.index("(", at)
        if self.token.kind == "end":
            return self.fail("this ( is never closed; expected )", at)
        line = self.text.count("\n", 0, at) + 1
        column = at - self.text.rfind("\n", 0, at)
        return self.fail(f"expected ) for the ( at {line}:{column}, found {self.found()}")

    def postfix(self) -> None:
        token = self.token
        if token.text == "²":
            self.unchained()
            self.push("number", "2", (), (token.start, token.start, token.end))
            exponent = self.values.pop()
        operand = self.values.pop()
        start = self.nodes[operand].start
        if token.text == "²":
            self.push("infix", "^", (operand, exponent), (token.start, start, token.end))
        else:
            self.push("postfix", token.text, (operand,), (token.start, start, token.end))
        self.powered = token.text == "²"
        self.place += 1

    def close(self) -> None:
        self.reduce(COMPARISON)
        if not self.stack:
            raise self.fail("this ) closes nothing; expected an operator or the end")
        bracket = self.stack.pop()
        self.depth -= 1
        end = self.token.end
        if bracket.kind == "call":
            args = tuple(self.values[bracket.base :])
            del self.values[bracket.base :]
            self.sizes(bracket.name, args)
            self.literals(bracket.name, args)
            self.push("call", bracket.name, args, (bracket.at, bracket.at, end))
        else:
            inner = self.values[-1]
            self.nodes[inner] = self.nodes[inner]._replace(start=bracket.at, end=end)
        self.place += 1
        self.complete()

    def sizes(self, name: str, args: tuple[int, ...]) -> None:
        """Arguments that are sizes: an int or the name of a dimension."""
        for k in args[SIZED.get(name, len(args)) :]:
            node = self.nodes[k]
            whole = node.kind == "number" and node.name.isdecimal() and len(node.name) <= 15
            if not whole and node.kind != "name":
                message = f"a size of {name} is an int or the name of a dimension"
                raise self.fail(message, node.start)
            self.nodes[k] = node._replace(kind="size")

    def literals(self, name: str, args: tuple[int, ...]) -> None:
        """Arguments that are written out."""
        for k in args[1:] if name in LITERAL else ():
            node = self.nodes[k]
            sign = node.name if node.kind == "prefix" else ""
            word = self.nodes[node.args[0]] if sign else node
            whole = word.kind == "number" and word.name.isdecimal() and len(word.name) <= 15
            if not whole and not (word.kind == "name" and word.name in WORDS):
                message = f"the second and third argument of {name} are whole numbers"
                raise self.fail(f"{message} or one of {', '.join(WORDS)}", node.start)
            self.nodes[k] = node._replace(kind="literal", name=sign + word.name, args=())

    def comma(self) -> None:
        self.reduce(COMPARISON)
        if not self.stack or self.stack[-1].kind != "call":
            wanted = "expected )" if self.stack else "expected an operator or the end"
            raise self.fail(f"a comma stands between arguments of a function only; {wanted}")
        self.place += 1

    def infix(self) -> None:
        token = self.token
        level = LEVELS[token.text]
        if level == POWER:
            self.unchained()
        elif level == COMPARISON:
            self.reduce(SUM)
            if self.stack and self.stack[-1].level == COMPARISON:
                raise self.fail("comparisons do not chain: nest where(…) for each")
        else:
            self.reduce(level)
        self.stack.append(Open("infix", token.text, token.start, level))
        self.place += 1

    def source(self, place: int) -> str:
        node = self.nodes[place]
        return excerpt(self.text, node.start, node.end)
