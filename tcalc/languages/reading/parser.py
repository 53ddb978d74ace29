"""What the text languages' parsers share: statements, operands, operators by precedence, brackets.

Precedence climbing with an explicit stack: depth of a text costs memory only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping

from ...support.errors import ParseError
from ...support.passages import Passage
from ...support.records import NamedTuple
from .lexer import Lexicon, Token, excerpt, line_and_column
from .tree import Node, Positions, SyntaxStatement

#: Precedence: operators of a higher level bind more tightly.
OR, AND, COMPARISON, SUM, PRODUCT, UNARY, POWER, SIGN = range(1, 9)

#: Brackets that may stand behind a name, and what closes them.
BRACKETS = {"(": ")", "[": "]"}

#: Three offsets: of a word, and the start and the end of the whole that it stands for.
Span = tuple[int, int, int]


class Grammar(NamedTuple):
    """What the parser must know of a language.

    Attributes
    ----------
    lexicon : Lexicon
    levels : mapping
        The precedence of each operator between two operands.
    signs : tuple of str
        Operators in front of their operand.
    whole : str
        What a text is, for a message.
    statement : str
        How a statement is written.
    chained : str
        What to write in place of a chain of comparisons.
    bracket, brackets : str
        What brackets are called: one, and several.
    closing : mapping
        What closes a bracket, by its first character.
    """

    lexicon: Lexicon
    levels: Mapping[str, int]
    signs: tuple[str, ...]
    whole: str
    statement: str
    chained: str
    bracket: str
    brackets: str
    closing: Mapping[str, str]


class Open(NamedTuple):
    """What the parser has begun and not ended: an operator, a bracket or a call.

    `at` is the offset of the word, `bracket` that of the bracket; `base` operands stand before it.
    """

    kind: str
    name: str
    at: int
    level: int = 0
    base: int = 0
    bracket: int = 0
    indices: Positions = ()


class Parser(ABC):
    """Tokens to nodes. A language adds what its names, calls and commas mean.

    Attributes
    ----------
    stack : list of Open
        Operators and brackets whose operands are not complete, the innermost last.
    values : list of int
        Positions in `nodes` of the operands that no operator has taken yet.
    assigned : dict
        The value of every earlier statement by its name.
    operands : dict
        What a token does that begins an operand; it returns whether more of it follows.
    operators : dict
        What a token does behind an operand; it returns whether another operand follows.
    """

    def __init__(self, text: str, grammar: Grammar) -> None:
        self.text = text
        self.grammar = grammar
        self.tokens = grammar.lexicon.tokens(text)
        self.place = 0
        self.nodes: list[Node] = []
        self.statements: list[SyntaxStatement] = []
        self.assigned: dict[str, int] = {}
        self.stack: list[Open] = []
        self.values: list[int] = []
        self.powered = False
        self.operands: dict[str, Callable[[], bool]] = {
            "(": self.parenthesis,
            **dict.fromkeys(grammar.signs, self.sign),
        }
        self.operators: dict[str, Callable[[], bool]] = {
            **dict.fromkeys(grammar.levels, self.infix),
            **dict.fromkeys(grammar.closing.values(), self.close),
            ",": self.comma,
        }

    # --- what a language says ---------------------------------------------------------------------

    @abstractmethod
    def named(self) -> None:
        """Push the node of a name that stands alone."""

    @abstractmethod
    def applied(self) -> bool:
        """Open the bracket behind a name, and go on behind it; does an operand follow?"""

    @abstractmethod
    def closed(self, bracket: Open, args: Positions) -> None:
        """Push the node of a closed bracket that is no parenthesis."""

    @abstractmethod
    def comma(self) -> bool:
        """Read a comma behind an operand, as `operators` do."""

    def wanted(self, bracket: Open) -> str:
        """What is expected first inside a bracket; nothing where it is any operand."""
        return ""

    def defines(self) -> bool:
        """Does the name at the start of a statement get a value?"""
        return self.at("=", 1)

    def left_side(self, name: str) -> None:
        """Go on behind the `=` of a statement that gives a name its value."""
        self.place += 2

    def defined(self, name: str, at: int) -> Positions:
        """The indices of a statement whose value is complete."""
        return ()

    # --- statements -------------------------------------------------------------------------------

    def run(self) -> None:
        """Read all statements. ParseError where the text is not in the language."""
        while self.follows():
            if self.statements and not self.statements[-1].name:
                message = "this value is not used: only the last statement needs no name ="
                raise self.fail(message, self.nodes[self.statements[-1].root].start)
            self.statement()
        if not self.statements:
            raise self.fail(f"the text is empty; expected {self.grammar.whole}")

    def follows(self) -> bool:
        """Skip what separates statements; does another one follow?"""
        while self.token.kind == "newline" or self.at(";"):
            self.place += 1
        return self.token.kind != "end"

    def statement(self) -> None:
        token = self.token
        name = token.text if token.kind == "name" and self.defines() else ""
        if name in self.assigned:
            raise self.fail(f"`{name}` has a value already; each name is given one value")
        if name:
            self.left_side(name)
        self.expression()
        root = self.values.pop()
        indices = self.defined(name, token.start)
        if name:
            self.assigned[name] = root
        self.statements.append(SyntaxStatement(name, root, token.start, indices))

    def expression(self) -> None:
        """One expression, up to the end of its statement."""
        self.operand()
        while (token := self.tokens[self.place]).kind not in ("end", "newline"):
            if token.text == ";":
                break
            if self.operator():
                self.operand()
        self.reduce(OR)
        if self.stack:
            raise self.unclosed(self.stack[-1])

    # --- where an operand is expected -------------------------------------------------------------

    def operand(self) -> None:
        """Read up to the end of a number or a name."""
        while True:
            token = self.tokens[self.place]
            if token.kind == "number":
                self.push("number", token.text, (), (token.start, token.start, token.end))
                break
            if token.kind == "name":
                following = self.tokens[self.place + 1]
                if following.kind != "op" or following.text not in BRACKETS:
                    self.named()
                    break
                if not self.applied():
                    return
            elif token.kind == "op" and token.text in self.operands:
                if not self.operands[token.text]():
                    return
            else:
                raise self.missing()
        self.place += 1
        self.complete()

    def parenthesis(self) -> bool:
        self.open("(", "(", self.token.start)
        self.place += 1
        return True

    def sign(self) -> bool:
        top = self.stack[-1] if self.stack else None
        if top and top.level == SIGN:
            raise self.fail("an exponent has one sign; put more in parentheses")
        level = SIGN if top and top.level == POWER else UNARY
        self.stack.append(Open("prefix", self.token.text, self.token.start, level))
        self.place += 1
        return True

    def missing(self) -> ParseError:
        lexicon, token = self.grammar.lexicon, self.token
        if token.text in lexicon.hints:
            return lexicon.misused(token.text, self.text, token.start, True)
        top = self.stack[-1] if self.stack else None
        if top and top.level in (POWER, SIGN):
            wanted = "an exponent: a number, a name, a call or a parenthesis"
        else:
            wanted = self.wanted(top) if top else ""
        wanted = wanted or f"a number, a name, a function or a {self.grammar.bracket}"
        message = f"expected {wanted}, found {self.found()}"
        if self.token.kind == "newline" and top:
            message += f"; a line goes on only inside {self.grammar.brackets}"
        return self.fail(message)

    # --- where an operator is expected ------------------------------------------------------------

    def operator(self) -> bool:
        """Read a token behind an operand; does another operand follow?"""
        token = self.tokens[self.place]
        if token.kind == "op" and token.text in self.operators:
            return self.operators[token.text]()
        if token.kind in ("number", "name") or token.text in BRACKETS:
            raise self.juxtaposed()
        if token.text in self.grammar.lexicon.hints:
            raise self.grammar.lexicon.misused(token.text, self.text, token.start)
        raise self.misplaced()

    def misplaced(self) -> ParseError:
        """The error for a token that stands behind no operand."""
        return self.fail(f"a statement is {self.grammar.statement}, and a comparison is ==")

    def juxtaposed(self) -> ParseError:
        """The error for two operands without an operator between them."""
        node, token, lexicon = self.nodes[self.values[-1]], self.token, self.grammar.lexicon
        for kind, word, at in (
            (token.kind, token.text, token.start),
            (node.kind, node.name, node.at),
        ):
            if kind == "name" and word in lexicon.hints:
                return lexicon.misused(word, self.text, at)
        left = excerpt(self.text, node.start, node.end)
        right = excerpt(self.text, token.start, token.end)
        following = self.tokens[self.place + (token.kind == "name")].text
        if following in BRACKETS:
            right = f"{right.rstrip(following)}{following}…{BRACKETS[following]}"
        return self.fail(f"expected an operator; a product is written with *: {left}*{right}")

    def infix(self) -> bool:
        token = self.token
        level = self.grammar.levels[token.text]
        if level == POWER:
            self.unchained()
        elif level == COMPARISON:
            self.reduce(SUM)
            if self.stack and self.stack[-1].level == COMPARISON:
                raise self.fail(f"comparisons do not chain: {self.grammar.chained}")
        else:
            self.reduce(level)
        self.stack.append(Open("infix", token.text, token.start, level))
        self.place += 1
        return True

    def unchained(self) -> None:
        if self.powered:
            raise self.fail("powers do not chain: write (a^b)^c or a^(b^c)")

    # --- brackets ---------------------------------------------------------------------------------

    def open(
        self, kind: str, name: str, at: int, indices: Positions = (), operands_before: int = 0
    ) -> None:
        """Open the bracket that is read now; some operands before it may belong to it."""
        base = len(self.values) - operands_before
        self.stack.append(Open(kind, name, at, 0, base, self.token.start, indices))

    def close(self) -> bool:
        self.reduce(OR)
        token = self.token
        if not self.stack:
            raise self.fail(f"this {token.text} closes nothing; expected an operator or the end")
        if self.grammar.closing.get(self.text[self.stack[-1].bracket]) != token.text:
            raise self.unclosed(self.stack[-1])
        bracket = self.stack.pop()
        if bracket.kind == "(":
            inner = self.values[-1]
            self.nodes[inner] = self.nodes[inner]._replace(start=bracket.at, end=token.end)
        else:
            args = tuple(self.values[bracket.base :])
            del self.values[bracket.base :]
            self.closed(bracket, args)
        self.place += 1
        self.complete()
        return False

    def unclosed(self, bracket: Open) -> ParseError:
        """The error for a bracket that something else than its end follows."""
        shown = self.text[bracket.bracket]
        wanted = self.grammar.closing[shown]
        if self.token.kind == "end":
            message = f"this {shown} is never closed; expected {wanted}"
            return self.fail(message, bracket.bracket)
        where = f"the {shown} at {line_and_column(self.text, bracket.bracket)}"
        return self.fail(f"expected {wanted} for {where}, found {self.found()}")

    # --- tokens and nodes -------------------------------------------------------------------------

    @property
    def token(self) -> Token:
        return self.tokens[self.place]

    def at(self, text: str, ahead: int = 0) -> bool:
        """Is the token, or one ahead of it, this operator?"""
        token = self.tokens[min(self.place + ahead, len(self.tokens) - 1)]
        return token.kind == "op" and token.text == text

    def found(self) -> str:
        """The token, for a message."""
        end = "this part of the loop" if isinstance(self.text, Passage) else "the text"
        names = {"end": f"the end of {end}", "newline": "the end of the line"}
        token = self.token
        return names.get(token.kind) or f"`{excerpt(self.text, token.start, token.end)}`"

    def fail(self, message: str, at: int | None = None) -> ParseError:
        """The error that points at an offset of the text, or else at the token."""
        return ParseError(message, self.text, self.token.start if at is None else at)

    def complete(self) -> None:
        """An operand has ended; as an exponent, it ends its power."""
        self.powered = self.reduce(POWER)

    def reduce(self, level: int) -> bool:
        """Make nodes of the open operators of at least this precedence; are there any?"""
        stack, values = self.stack, self.values
        reduced = False
        while stack and stack[-1].level >= level:
            top = stack.pop()
            right = values.pop()
            left = values.pop() if top.kind == "infix" else right
            start = self.nodes[left].start if top.kind == "infix" else top.at
            args = (left, right) if top.kind == "infix" else (right,)
            self.push(top.kind, top.name, args, (top.at, start, self.nodes[right].end))
            reduced = True
        return reduced

    def push(
        self, kind: str, name: str, args: Positions, span: Span, indices: Positions = ()
    ) -> None:
        """A node, which is an operand now."""
        self.values.append(len(self.nodes))
        self.nodes.append(Node(kind, name, args, *span, indices))
