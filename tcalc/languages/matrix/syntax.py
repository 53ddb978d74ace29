"""The matrix language, first phase: text to a syntax tree with offsets.

Nodes are those of `reading.calls`, and size, literal and postfix.
"""

from __future__ import annotations

from ..reading.calls import ArrayParser, ArrayTree
from ..reading.lexer import WORDS, Lexicon
from ..reading.parser import COMPARISON, POWER, PRODUCT, SUM, Grammar, Open
from ..reading.tree import Positions, SyntaxTree

#: The precedence of this language's operators between two operands.
LEVELS = {
    **dict.fromkeys(("<", "<=", ">", ">=", "==", "!="), COMPARISON),
    **dict.fromkeys(("+", "-"), SUM),
    **dict.fromkeys(("*", ".*", "/", "./", "\\", "⊗"), PRODUCT),
    **dict.fromkeys(("^", ".^"), POWER),
}
TRANSPOSES = ("'", ".'")

LEXICON = Lexicon(
    operators=(*LEVELS, *TRANSPOSES, "²", "(", ")", ",", ";", "=", "#", "//"),
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

GRAMMAR = Grammar(
    LEXICON,
    LEVELS,
    signs=("+", "-"),
    whole="an expression",
    statement="name = expression",
    chained="nest where(…) for each",
    bracket="parenthesis",
    brackets="parentheses",
    closing={"(": ")"},
)

#: Constant matrices, which are functions of their sizes alone.
CONSTANT_MATRICES = ("lower_half", "lower_ones", "upper_ones", "leading_rows", "lower_trapezoid")
#: How many arguments stand before those that are sizes.
SIZED = {"eye": 0, "vector": 1, "matrix": 1, **dict.fromkeys(CONSTANT_MATRICES, 0)}

#: Functions whose second and third argument are literals.
LITERAL = ("norm", "cumsum", "extractdiag", "extracttrian", "makediag", "maketrian")


def matrix_syntax_tree(text: str) -> ArrayTree:
    """The syntax tree of a text of the matrix language. ParseError where it is none."""
    return _MatrixParser(text).tree()


def factor_source(tree: SyntaxTree, place: int) -> str:
    """A node as written, in parentheses where an operator behind it would bind to a part only."""
    node = tree.nodes[place]
    shown = node.name if node.kind == "number" else tree.source(place)
    enclosed = tree.text[node.start] == "(" and tree.text[node.end - 1] == ")"
    return f"({shown})" if node.kind in ("infix", "prefix") and not enclosed else shown


class _MatrixParser(ArrayParser):
    def __init__(self, text: str) -> None:
        super().__init__(text, GRAMMAR)
        self.operators |= {"²": self.squared, **dict.fromkeys(TRANSPOSES, self.transposed)}

    # --- powers and transposes --------------------------------------------------------------------

    def squared(self) -> bool:
        token = self.token
        self.unchained()
        self.push("number", "2", (), (token.start, token.start, token.end))
        exponent, base = self.values.pop(), self.values.pop()
        span = (token.start, self.nodes[base].start, token.end)
        self.push("infix", "^", (base, exponent), span)
        self.powered = True
        self.place += 1
        return False

    def transposed(self) -> bool:
        token, operand = self.token, self.values.pop()
        span = (token.start, self.nodes[operand].start, token.end)
        self.push("postfix", token.text, (operand,), span)
        self.powered = False
        self.place += 1
        return False

    # --- functions --------------------------------------------------------------------------------

    def called(self, bracket: Open, args: Positions) -> None:
        self.sizes(bracket.name, args)
        self.literals(bracket.name, args)
        self.push("call", bracket.name, args, (bracket.at, bracket.at, self.token.end))

    def sizes(self, name: str, args: Positions) -> None:
        """Check and mark arguments that are sizes: an int or the name of a dimension."""
        for k in args[SIZED.get(name, len(args)) :]:
            node = self.nodes[k]
            whole = node.kind == "number" and node.name.isdecimal() and len(node.name) <= 15
            if not whole and node.kind != "name":
                message = f"a size of {name} is an int or the name of a dimension"
                raise self.fail(message, node.start)
            self.nodes[k] = node._replace(kind="size")

    def literals(self, name: str, args: Positions) -> None:
        """Check and mark arguments that must be literals."""
        for k in args[1:] if name in LITERAL else ():
            node = self.nodes[k]
            sign = node.name if node.kind == "prefix" else ""
            word = self.nodes[node.args[0]] if sign else node
            whole = word.kind == "number" and word.name.isdecimal() and len(word.name) <= 15
            if not whole and not (word.kind == "name" and word.name in WORDS):
                message = f"the second and third argument of {name} are whole numbers"
                raise self.fail(f"{message} or one of {', '.join(WORDS)}", node.start)
            self.nodes[k] = node._replace(kind="literal", name=sign + word.name, args=())
