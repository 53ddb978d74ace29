"""The index language, first phase: text to a syntax tree with offsets.

Names of indices are resolved here: the parser knows which are bound where it stands. Bounds,
subscripts and values are one grammar; what may stand where is decided when the tree is read.
"""

from __future__ import annotations

from ...support.errors import ParseError
from ..reading.parser import OR, Open, Parser
from ..reading.tree import Positions
from .grammar import BINDERS, FUNCTIONS_TOO, GRAMMAR, Header, Index, IndexTree
from .spellings import binder


def index_syntax_tree(text: str) -> IndexTree:
    """The syntax tree of a text of the index language. ParseError where it is none."""
    parser = _IndexParser(text)
    parser.run()
    return IndexTree(text, parser.nodes, parser.statements, parser.indices)


class _IndexParser(Parser):
    """`scope` are the indices that are bound here, `headers` those whose ranges are being read.

    Besides operators and brackets, the `low` and the `high` end of a range stand on the stack.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text, GRAMMAR)
        self.indices: list[Index] = []
        self.scope: dict[str, int] = {}
        self.headers: list[Header] = []
        self.operands["["] = self.guard
        self.operators |= {"[": self.entry, "]": self.bracket_closed, "..": self.range_goes_on}

    # --- statements and indices -------------------------------------------------------------------

    def statement(self) -> None:
        self.scope.clear()
        super().statement()

    def defines(self) -> bool:
        """Does `name =` or `name[…] =` stand here?"""
        if not self.at("[", 1):
            return super().defines()
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

    def left_side(self, name: str) -> None:
        """Read indices up to the first bound, which is an expression, or up to the `=`."""
        at = self.token.start
        super().left_side(name)
        if not self.at("=", -1):
            self.headers.append(Header("", at))
            self.header()

    def defined(self, name: str, at: int) -> Positions:
        indices = tuple(self.headers[0].indices) if self.headers else ()
        self.headers.clear()
        return indices

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

    def named(self) -> None:
        token = self.token
        index = self.scope.get(token.text)
        kind, bound = ("name", ()) if index is None else ("index", (index,))
        self.push(kind, token.text, (), (token.start, token.start, token.end), bound)

    def applied(self) -> bool:
        """A name with a bracket behind it: a function, an array, or what binds indices."""
        token, square = self.token, self.at("[", 1)
        self.place += 1
        if square and token.text in BINDERS:
            self.place += 1
            self.headers.append(Header(token.text, token.start))
            self.header()
            return True
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
        return True

    def guard(self) -> bool:
        self.open("guard", "[", self.token.start)
        self.place += 1
        return True

    def wanted(self, bracket: Open) -> str:
        if bracket.kind in ("low", "high"):
            return f"a bound of {bracket.name}"
        if bracket.kind not in ("call", "access") or self.token.text not in ("", ")", "]"):
            return ""
        what = "an argument of" if bracket.kind == "call" else "a subscript of"
        return f"{what} {bracket.name}"

    # --- where an operator is expected ------------------------------------------------------------

    def entry(self) -> bool:
        """Subscripts of what a call gives."""
        node = self.nodes[self.values[-1]]
        if node.kind != "call":
            raise self.juxtaposed()
        self.open("entry", node.name, node.at, operands_before=1)
        self.place += 1
        return True

    def juxtaposed(self) -> ParseError:
        node = self.nodes[self.values[-1]]
        called = node.kind == "access" and self.at("(")
        indices = self.text[node.at + len(node.name) + 1 : node.end - 1] if called else ""
        if (called or "_" in node.name) and (written := binder(node.name, indices)):
            return self.fail(f"there is no `{node.name}` here; write {written}", node.at)
        return super().juxtaposed()

    def unclosed(self, bracket: Open) -> ParseError:
        if bracket.kind not in ("low", "high"):
            return super().unclosed(bracket)
        wanted = ".." if bracket.kind == "low" else "]"
        return self.fail(f"expected {wanted} in the range of {bracket.name}")

    def bracket_closed(self) -> bool:
        """`]` closes a bracket or ends a range."""
        self.reduce(OR)
        if not self.stack or self.stack[-1].kind != "high":
            return self.close()
        self.ended()
        return True

    def closed(self, bracket: Open, args: Positions) -> None:
        kind = {"body": "binder", "entry": "access"}.get(bracket.kind, bracket.kind)
        indices = bracket.indices
        if bracket.kind == "entry":
            indices, args = args[:1], args[1:]
        self.push(kind, bracket.name, args, (bracket.at, bracket.at, self.token.end), indices)
        if kind == "access":
            for axis, arg in enumerate(args):
                if self.nodes[arg].kind == "index":
                    self.indices[self.nodes[arg].indices[0]].uses.append((self.values[-1], axis))
        for index in bracket.indices:
            del self.scope[self.indices[index].name]

    def comma(self) -> bool:
        """A comma between arguments, subscripts, conditions or ranges."""
        self.reduce(OR)
        top = self.stack[-1] if self.stack else None
        if top is None or top.kind in ("(", "body", "low"):
            wanted = "expected .." if top and top.kind == "low" else "expected an operator"
            raise self.fail(f"no comma can stand here; {wanted}")
        if top.kind == "high":
            self.ended()
        else:
            self.place += 1
        return True

    def range_goes_on(self) -> bool:
        """`..` between the ends of a range."""
        self.reduce(OR)
        if not self.stack or self.stack[-1].kind != "low":
            raise self.fail("a range stands behind an index: k=low..high")
        self.stack[-1] = self.stack[-1]._replace(kind="high")
        self.indices[self.headers[-1].last].low = self.values.pop()
        self.place += 1
        return True

    def ended(self) -> None:
        """The upper bound of an index is complete."""
        self.stack.pop()
        self.indices[self.headers[-1].last].high = self.values.pop()
        if not self.bound():
            self.header()
