"""Products with inverses, which are solved: as in plans, no inverse is made for products alone.

An inverse is written where something needs all of its entries; products that stand behind are with
it. What plans make of a factor that several share is made of the factor here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ...contraction.congruences import Between, between
from ...graph.applications import apply
from ...graph.factors import Factors
from ...graph.nodes import Apply, Einsum, Expr, Labels
from ...graph.operators import Op
from ...support.records import record
from .language import Code, Language, Operator
from .values import NodeCodes, Operand

#: The words for products with inverses, by what `Meaning.inverts` says of their operand.
SOLVES = {"positive": "solve_definite", "lower": "solve_lower", "general": "solve"}
#: What is made of a Cholesky factor or of a triangle.
OF_FACTORS = frozenset({
    "inverse_definite_of_factor", "logdet_definite_of_factor", "solve_definite", "solve_lower",
})  # fmt: skip
#: These, and solves with other matrices; products of a vector and a stack of matrices; loops whose
#: steps take so long that what needs no state is computed before them, for all at once.
WORDS = OF_FACTORS | {"solve", "matmul_stacks", "ahead"}
#: Words of languages that are compiled: LU factors that several solves share; solutions that are
#: arrays of any number of axes; factors of stacks of matrices; symmetric matrices, or stacks of
#: them, between the inverse of a triangle and its transpose.
COMPILED = OF_FACTORS | {"lu", "solve_stacks", "factored_stacks", "congruence", "ahead"}


def of_factor(op: Op) -> str:
    """The word for what a row makes of the factor that plans share."""
    return f"{op.name}_of_factor"


def factored(language: type[Language] | Language, e: Expr) -> bool:
    """Is e a function of one matrix that the language makes of a factor?"""
    if not isinstance(e, Apply) or of_factor(e.op) not in language.own_words:
        return False
    return e.args[0].ndim == 2 or "factored_stacks" in language.own_words


def factor_of(e: Apply) -> Expr:
    """The factor of which plans make a function of one matrix."""
    assert isinstance(e.op.kernels.factor, Op)
    return apply(e.op.kernels.factor, e.args[0])


def solvable(language: type[Language], e: Expr, shared: bool) -> bool:
    """Is e the inverse of a matrix, and has the language a word for products with it?"""
    inverts = e.op.meaning.inverts if isinstance(e, Apply) and e.ndim == 2 else ""
    if inverts == "general" and "lu" in language.own_words:
        return True
    return SOLVES.get(inverts) in language.own_words and not (shared and inverts == "general")


@record(frozen=True, kw_only=True)
class Unmade(Code):
    """An inverse that is not written yet."""

    node: Apply


class Solves:
    """Inverses among the operands of products.

    Parameters
    ----------
    language : Language
    values : NodeCodes
        What stands around the products.
    """

    def __init__(self, language: Language, values: NodeCodes) -> None:
        self.language, self.values = language, values
        self.factored: dict[int, list[Code]] = {}

    def operand(self, e: Expr) -> Code:
        """The operand, which may be an inverse that is not written."""
        if isinstance(e, Apply) and self.values.unwritten(e):
            return Unmade("", node=e)
        return self.values.code(e)

    def made(self, operand: Operand) -> Operand:
        """The operand, written."""
        code, word = operand
        return (self.values.code(code.node), word) if isinstance(code, Unmade) else operand

    def rank(self, operand: Operand) -> tuple[bool, int]:
        """Less for what is better scaled: what is written, of few axes."""
        code, word = operand
        return isinstance(code, Unmade), len(word)

    def met(self, operands: Sequence[Operand], out: Labels) -> list[Operand]:
        """The operands; inverses are written that no other one operand meets at one axis."""
        counts = Counter([label for _, word in operands for label in set(word)])
        groups = Counter([frozenset(word) for _, word in operands])
        return [
            f
            if groups[frozenset(f[1])] == 1
            and len(set(f[1])) == 2
            and all(counts[label] > 1 or label in out for label in f[1])
            and any(counts[label] == 2 and label not in out for label in f[1])
            else self.made(f)
            for f in operands
        ]

    def solved(self, a: Operand, b: Operand, summed: Sequence[int]) -> Operand | None:
        """The product of an inverse with a vector or a matrix, one axis of each summed."""
        if not isinstance(a[0], Unmade):
            a, b = b, a
        inverse, word = a
        columns = [label for label in b[1] if label not in summed]
        if not isinstance(inverse, Unmade) or isinstance(b[0], Unmade):
            return None
        if len(summed) != 1 or len(b[1]) != len(columns) + 1:
            return None
        if len(columns) > 1 and "solve_stacks" not in self.language.own_words:
            return None
        (label,) = summed
        own = word[1 - word.index(label)]
        if own in columns:
            return None
        code, order = b
        if list(order) != [label, *columns]:
            code = self.language.transpose(code, [order.index(k) for k in (label, *columns)])
        return self.solution(inverse.node, word.index(label) == 0, code), (own, *columns)

    def between(self, node: Einsum, whole: Factors) -> Between | None:
        """Where the product has symmetric matrices between an inverse that is not written."""
        if "congruence" not in self.language.own_words:
            return None
        operands = [(id(e), word) for e, word in whole.operands]
        inverses = [
            k
            for k, (e, _) in enumerate(whole.operands)
            if isinstance(e, Apply) and e.op.meaning.inverts == "lower" and self.values.unwritten(e)
        ]
        found = between(operands, inverses, node.out)
        return found if found is not None and found.symmetric(node, whole) else None

    def congruence(self, inverse: Expr, b: Code) -> Code:
        """Symmetric matrices, the last axes of b, between an inverse and its transpose."""
        return self.call("congruence", [self.values.kept(inverse.args[0]), b])

    def of_factor(self, e: Apply) -> Code:
        """A function of one matrix, made of its factor."""
        word = Operator(of_factor(e.op), (), 2, [e.shape])
        return self.word(word, [self.values.kept(factor_of(e))])

    def lu(self, matrix: Expr) -> list[Code]:
        """The LU factors of a matrix and how its rows are exchanged, made once."""
        if id(matrix) not in self.factored:
            shapes = [matrix.shape, matrix.shape[:1]]
            found = self.word(Operator("lu", (), 2, shapes), [self.values.kept(matrix)])
            self.factored[id(matrix)] = [self.language.part(found, k) for k in range(2)]
        return self.factored[id(matrix)]

    def call(self, word: str, args: Sequence[Code], *params: str) -> Code:
        return self.word(Operator(word, params), args)

    def word(self, op: Operator, args: Sequence[Code]) -> Code:
        found = self.language.call(op, args)
        assert found is not None
        return found

    def solution(self, inverse: Apply, transposed: bool, b: Code) -> Code:
        """An inverse, or its transpose, times a vector or a matrix."""
        name = SOLVES[inverse.op.meaning.inverts]
        if name not in self.language.own_words:
            return self.call("solve_lu", [*self.lu(inverse.args[0]), b], str(transposed))
        definite = name == "solve_definite"
        matrix = self.values.kept(factor_of(inverse) if definite else inverse.args[0])
        if name == "solve" and transposed:
            matrix = self.language.transpose(matrix, [1, 0])
        params = [self.language.literal(transposed)] if name == "solve_lower" else []
        return self.call(name, [matrix, b], *params)
