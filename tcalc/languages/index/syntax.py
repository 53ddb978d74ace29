"""The index language, first phase: text to a syntax tree with offsets.

Names of indices are resolved here: the parser knows which are bound where it stands. Bounds,
subscripts and values are one grammar; what may stand where is decided when the tree is read.
"""

from __future__ import annotations

from ...support.errors import ParseError
from ..reading.lexer import excerpt
from ..reading.precedence import COMPARISON, MAX_DEPTH, OR, POWER, SIGN, SUM, Open, Parser
from .words import BINDERS, FUNCTIONS_TOO, LEVELS, LEXICON, Header, Index, Statement, Tree


def parse_tree(text: str) -> Tree:
    """The syntax tree of a text of the index language."""
    return _Parser(text).run()


class _Parser(Parser):
    def __init__(self, text: str) -> None:
        super().__init__(text, LEXICON)
        self.indices: list[Index] = []
        self.statements: list[Statement] = []
        self.scope: dict[str, int] = {}
        self.headers: list[Header] = []

    def run(self) -> Tree:
        while self.follows():
            if self.statements and not self.statements[-1].name:
                raise self.unused(self.statements[-1].root)
            self.statement()
        if not self.statements:
            raise self.fail("the text is empty; expected name[indices] = expression")
        return Tree(self.text, self.nodes, self.indices, self.statements)

    # --- statements and indices -------------------------------------------------------------------

    def statement(self) -> None:
        token, name = self.token, ""
        self.scope.clear()
        if token.kind == "name" and (self.at("=", 1) or self.defines()):
            name = token.text
            if any(s.name == name for s in self.statements):
                raise self.fail(f"`{name}` has a value already; each name is given one value")
            self.place += 2
            if not self.at("=", -1):
                self.headers.append(Header("", token.start))
                self.header()
        header = self.headers[0] if self.headers else None
        self.expression()
        indices = tuple(header.indices) if header else ()
        self.headers.clear()
        self.statements.append(Statement(name, indices, self.values.pop(), token.start))

    def defines(self) -> bool:
        """Does `name[…] =` follow?"""
        if not self.at("[", 1):
            return False
        depth, place = 0, self.place + 1
        while place < len(self.tokens) - 1:
            token = self.tokens[place]
            if token.kind == "newline" or token.text == ";":
                return False
            depth += token.kind == "op" and token.text in ("[", "(")
            depth -= token.kind == "op" and token.text in ("]", ")")
            place += 1
            if depth == 0:
                return self.tokens[place].kind == "op" and self.tokens[place].text == "="
        return False

    def header(self) -> None:
        """Read indices until an expression follows: a bound, or what the indices are for."""
        while True:
            token = self.token
            if token.kind != "name":
                raise self.fail(f"expected the name of an index, found {self.found()}")
            self.place += 1
            self.headers[-1].last = len(self.indices)
            self.indices.append(Index(token.text, token.start))
            if self.at("="):
                self.open("low", token.text, token.start)
                self.place += 1
                return
            if self.bound():
                return

    def bound(self) -> bool:
        """The last index and its range are read; True unless another one follows."""
        header = self.headers[-1]
        index = self.indices[header.last]
        if index.name in self.scope:
            message = f"`{index.name}` is an index already; an index is bound once"
            raise self.fail(f"{message}: choose another name", index.at)
        self.scope[index.name] = header.last
        header.indices.append(header.last)
        if self.at(","):
            self.place += 1
            return False
        if not self.at("]"):
            wanted = "= low..high, a comma or ]" if index.low < 0 else "a comma or ]"
            raise self.fail(f"expected {wanted} behind {index.name}, found {self.found()}")
        self.place += 1
        wanted = "(" if header.name else "="
        if not self.at(wanted):
            behind = f"the indices of {header.name}" if header.name else "the indices"
            raise self.fail(f"expected {wanted} behind {behind}, found {self.found()}")
        if header.name:
            self.headers.pop()
            self.open("body", header.name, header.at, tuple(header.indices))
        self.place += 1
        return True

    # --- where an operand is expected -------------------------------------------------------------

    def operand(self) -> bool:
        """Read a token where an operand is expected; True once an operand is complete."""
        token = self.token
        if token.kind == "number":
            self.push("number", token.text, (), (token.start, token.start, token.end))
        elif token.kind == "name":
            if self.at("(", 1) or self.at("[", 1):
                self.applied()
                return False
            index = self.scope.get(token.text)
            kind, bound = ("name", ()) if index is None else ("index", (index,))
            self.push(kind, token.text, (), (token.start, token.start, token.end), bound)
        elif token.kind == "op" and token.text in ("(", "["):
            self.open("(" if token.text == "(" else "guard", token.text, token.start)
            self.place += 1
            return False
        elif token.kind == "op" and token.text in ("+", "-", "~"):
            self.sign()
            return False
        else:
            raise self.fail(self.missing())
        self.place += 1
        self.complete()
        return True

    def applied(self) -> None:
        """A name with a bracket behind it: a function, an array, or what binds indices."""
        token, square = self.token, self.at("[", 1)
        self.place += 1
        if square and token.text in BINDERS:
            self.place += 1
            self.headers.append(Header(token.text, token.start))
            self.header()
            return
        if square:
            if token.text in self.scope:
                raise self.fail(f"`{token.text}` is an index, not an array", token.start)
            self.open("access", token.text, token.start)
        else:
            if token.text in BINDERS and token.text not in FUNCTIONS_TOO:
                message = f"{token.text} says over which indices: {token.text}[k](…)"
                raise self.fail(message, token.start)
            self.open("call", token.text, token.start)
        self.place += 1

    def open(self, kind: str, name: str, at: int, indices: tuple[int, ...] = ()) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.fail(f"more than {MAX_DEPTH} nested brackets")
        self.stack.append(Open(kind, name, at, 0, len(self.values), self.token.start, indices))

    def missing(self) -> str:
        top = self.stack[-1] if self.stack else None
        if top and top.level in (POWER, SIGN):
            wanted = "an exponent: a number, a name, a call or a parenthesis"
        elif top and top.kind in ("call", "access") and self.token.text in ")]":
            what = "an argument of" if top.kind == "call" else "a subscript of"
            wanted = f"{what} {top.name}"
        elif top and top.kind in ("low", "high"):
            wanted = f"a bound of {top.name}"
        else:
            wanted = "a number, a name, a function or a bracket"
        message = f"expected {wanted}, found {self.found()}"
        if self.token.kind == "newline" and top:
            message += "; a line goes on only inside brackets"
        return message

    # --- where an operator is expected ------------------------------------------------------------

    def operator(self) -> bool | None:
        """Read a token behind an operand: True where one follows, False at the end, else None."""
        token = self.token
        if token.text == "[" and self.nodes[self.values[-1]].kind == "call":
            node = self.nodes[self.values[-1]]
            self.open("entry", node.name, node.at)
            self.stack[-1] = self.stack[-1]._replace(base=len(self.values) - 1)
            self.place += 1
            return True
        if token.kind in ("number", "name") or token.text in ("(", "["):
            self.juxtaposed()
        if token.kind in ("end", "newline") or token.text == ";":
            self.reduce(OR)
            if self.stack:
                raise self.unclosed(self.stack[-1])
            return False
        if token.text in (")", "]"):
            return self.close()
        if token.text in (",", ".."):
            self.separate()
        elif token.text in LEVELS:
            self.infix()
        else:
            raise self.fail("a statement is name[indices] = expression, and a comparison is ==")
        return True

    def juxtaposed(self) -> None:
        node, token = self.nodes[self.values[-1]], self.token
        left = excerpt(self.text, node.start, node.end)
        right = excerpt(self.text, token.start, token.end)
        right += {"(": "…)", "[": "…]"}.get(token.text, "")
        raise self.fail(f"expected an operator; a product is written with *: {left}*{right}")

    def unclosed(self, bracket: Open) -> ParseError:
        if bracket.kind in ("low", "high"):
            wanted = ".." if bracket.kind == "low" else "]"
            return self.fail(f"expected {wanted} in the range of {bracket.name}")
        at = bracket.bracket
        shown, close = "()" if self.text[at] == "(" else "[]"
        if self.token.kind == "end":
            return self.fail(f"this {shown} is never closed; expected {close}", at)
        line = self.text.count("\n", 0, at) + 1
        column = at - self.text.rfind("\n", 0, at)
        where = f"the {shown} at {line}:{column}"
        return self.fail(f"expected {close} for {where}, found {self.found()}")

    def close(self) -> bool | None:
        """A closing bracket; True where it ends a range, so that an operand follows."""
        self.reduce(OR)
        shown = self.token.text
        top = self.stack[-1] if self.stack else None
        if top is None:
            raise self.fail(f"this {shown} closes nothing; expected an operator or the end")
        if (shown == ")") != (top.kind in ("(", "call", "body")) or top.kind == "low":
            raise self.unclosed(top)
        if top.kind == "high":
            self.ended()
            return True
        bracket, end = self.stack.pop(), self.token.end
        self.depth -= 1
        args = tuple(self.values[bracket.base :])
        if bracket.kind == "(":
            inner = self.values[-1]
            self.nodes[inner] = self.nodes[inner]._replace(start=bracket.at, end=end)
        else:
            del self.values[bracket.base :]
            kind = {"body": "binder", "entry": "access"}.get(bracket.kind, bracket.kind)
            indices = bracket.indices
            if bracket.kind == "entry":
                indices, args = args[:1], args[1:]
            self.push(kind, bracket.name, args, (bracket.at, bracket.at, end), indices)
        if bracket.kind in ("access", "entry"):
            for axis, arg in enumerate(args):
                if self.nodes[arg].kind == "index":
                    self.indices[self.nodes[arg].indices[0]].uses.append((self.values[-1], axis))
        for index in bracket.indices:
            del self.scope[self.indices[index].name]
        self.place += 1
        self.complete()
        return None

    def separate(self) -> None:
        """A comma between arguments, subscripts, conditions or ranges, or `..` inside a range."""
        self.reduce(OR)
        top = self.stack[-1] if self.stack else None
        if self.token.text == "..":
            if top is None or top.kind != "low":
                raise self.fail("a range stands behind an index: k=low..high")
            self.stack[-1] = top._replace(kind="high")
            self.indices[self.headers[-1].last].low = self.values.pop()
            self.place += 1
        elif top is None or top.kind in ("(", "body", "low"):
            wanted = "expected .." if top and top.kind == "low" else "expected an operator"
            raise self.fail(f"no comma can stand here; {wanted}")
        elif top.kind == "high":
            self.ended()
        else:
            self.place += 1

    def ended(self) -> None:
        """The upper bound of an index is complete."""
        self.stack.pop()
        self.depth -= 1
        self.indices[self.headers[-1].last].high = self.values.pop()
        if not self.bound():
            self.header()

    def infix(self) -> None:
        token = self.token
        level = LEVELS[token.text]
        if level == POWER:
            self.unchained()
        elif level == COMPARISON:
            self.reduce(SUM)
            if self.stack and self.stack[-1].level == COMPARISON:
                raise self.fail("comparisons do not chain: join them by &")
        else:
            self.reduce(level)
        self.stack.append(Open("infix", token.text, token.start, level))
        self.place += 1
