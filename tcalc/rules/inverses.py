"""Inverses beside what they are the inverse of: inv(A) A is a unit tensor.

A may be a product whose factors stand among others, as in least squares: X inv(X'X) X' is
idempotent, and X' (y - X inv(X'X) X' y) is 0. An adjugate that is divided by its determinant is the
inverse, whose derivatives cost much less than those of adjugates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..graph.applications import root_of
from ..graph.extents import ONE, Coef, extent_coef
from ..graph.factors import Factors, LabelledExpr, factors_of
from ..graph.nodes import Add, Apply, Einsum, Expr, Labels
from ..graph.normal import built
from ..graph.operators import TABLE
from ..graph.products import atoms_of
from ..graph.sums import MAX_OPEN_TERMS
from ..ops.arithmetic import matmul
from ..ops.diagonals import eye
from ..ops.elementwise import divide, power, reciprocal
from ..ops.matrix.adjugate import adj
from ..ops.matrix.inverse import det, inv
from ..ops.matrix.triangular import TRI_INVERSE
from ..ops.powers import power_of
from ..support.records import NamedTuple
from .contracted import assigned, in_terms, opened, reaches, within
from .factors import FACTOR_RULES, SAMPLE_SHAPE, is_factor
from .strategy import rule

DIVIDE = TABLE["divide"]
#: The operators whose values are inverses of their operands.
INVERTING = [name for name, row in TABLE.items() if row.meaning.inverts]


class _Matrix(NamedTuple):
    """A matrix as a contraction of factors, times and over what has none of its two axes.

    Its axes are the labels 0, 1, ... of the factors; other labels are summed.
    """

    factors: Sequence[LabelledExpr]
    times: Sequence[LabelledExpr] = ()
    over: Sequence[LabelledExpr] = ()
    coef: Coef = ONE

    def undone(self, word: Labels) -> list[LabelledExpr]:
        """Factors that undo the scale but for its number, where the axes have these labels."""
        factors = [*self.over, *[(divide(1, op), axes) for op, axes in self.times]]
        return [(op, tuple([word[axis] for axis in axes])) for op, axes in factors]


def _forms(e: Expr) -> Iterator[_Matrix]:
    """The matrix as it is, and as its factors."""
    yield _Matrix([(e, tuple(range(e.ndim)))])
    quotient = isinstance(e, Apply) and e.op is DIVIDE
    if not quotient and not isinstance(e, Einsum):
        return
    above, below = e.args if quotient else (e, None)
    factors, coef = _labelled(above)
    over, divisor = _labelled(below) if below is not None else ([], ONE)
    scales = [item for item in factors if _is_scale(item, e.ndim)]
    whole = [item for item in factors if not _is_scale(item, e.ndim)]
    same = len(whole) == 1 and whole[0][0] is e
    scaled = all(_is_scale(item, e.ndim) for item in over) and not (coef.zero or divisor.zero)
    if scaled and not same:
        yield _Matrix(whole, scales, over, coef.by(divisor.inverse()))


def _labelled(e: Expr) -> tuple[list[LabelledExpr], Coef]:
    """The factors of a product, axes being the first labels; and its number."""
    product = opened(atoms_of(e), lambda inner: True)
    axes = {label: axis for axis, label in enumerate(product.out)}
    if len(axes) < e.ndim:
        return [(e, tuple(range(e.ndim)))], ONE
    words = [tuple([axes.get(i, e.ndim + i) for i in word]) for _, word in product.operands]
    return [(op, word) for (op, _), word in zip(product.operands, words, strict=True)], product.coef


def _is_scale(item: LabelledExpr, ndim: int) -> bool:
    return max(item[1], default=-1) < ndim - 2


def _inverts(e: Expr) -> bool:
    if not isinstance(e, Apply) or not e.op.meaning.inverts:
        return False
    return e.op is not TRI_INVERSE or is_factor(e.args[0])


def _has_inverse(e: Expr) -> bool:
    return reaches(e, _inverts, (Einsum,))


def _may_meet(e: Einsum, inside: tuple[type[Expr], ...]) -> bool:
    """Is there an inverse in a contraction, and all that its matrix is a product of?"""
    return e.summed and _meet(within(e.args, inside))


def _meet(parts: set[Expr]) -> bool:
    """Is there an inverse among these, and all that its matrix is a product of?"""
    forms = [form for op in parts if _inverts(op) for form in _forms(op.args[0])]
    return any(all(op in parts for op, _ in form.factors) for form in forms)


def _cancelled(e: Expr) -> Expr | None:
    """The product without an inverse and the matrix that it meets."""
    assert isinstance(e, Einsum)
    return _without_inverse(factors_of(e)) if _may_meet(e, (Einsum,)) else None


def _cancelled_in_sum(e: Expr) -> Expr | None:
    """A product with a sum multiplied out, where a term is the inverse of what multiplies it."""
    assert isinstance(e, Einsum)
    sums = [k for k, op in enumerate(e.args) if isinstance(op, Add) and op.ndim]
    if not sums or not _may_meet(e, (Einsum, Add)):
        return None
    for k in sums:
        op = e.args[k]
        if len(op.args) > MAX_OPEN_TERMS:
            continue
        beside = within([*e.args[:k], *e.args[k + 1 :]], (Einsum,))
        if any(_meet(beside | within([term], (Einsum,))) for term in op.args):
            found = in_terms(factors_of(e), k, _without_inverse)
            if found is not None:
                return found
    return None


def _without_inverse(whole: Factors) -> Expr | None:
    """The product without the first inverse that meets its matrix, or the factors of that."""
    inverses = [op for op, _ in opened(whole, _has_inverse).operands if _inverts(op)]
    forms = {id(op): list(_forms(op.args[0])) for op in inverses}
    parts = {id(op) for each in forms.values() for form in each for op, _ in form.factors}
    whole = opened(whole, lambda e: reaches(e, lambda f: id(f) in parts or _inverts(f), (Einsum,)))
    for k, (op, word) in enumerate(whole.operands):
        if id(op) not in forms or len(set(word)) < len(word):
            continue
        others = whole.operands[:k] + whole.operands[k + 1 :]
        for form in forms[id(op)]:
            for axis in (-1, -2):
                known = dict(enumerate(word[:-2])) | {op.ndim - 3 - axis: word[axis]}
                for rest, labels in assigned(form.factors, others, known):
                    found = _joined(whole._replace(operands=rest), form, word, axis, labels)
                    if found is not None:
                        return built(found)
    return None


def _joined(
    rest: Factors, form: _Matrix, word: Labels, axis: int, labels: Mapping[int, int]
) -> Factors | None:
    """What is left of a product, the axis of the matrix that is gone joined to the inverse's.

    `labels` are those of the matrix in the product, whose inverse met it at its `axis`.
    """
    other, gone = word[-3 - axis], labels.get(len(word) + axis)
    apart = {label for k, label in labels.items() if k >= len(word)} | {word[axis]}
    left = {*rest.out, *[label for _, w in rest.operands for label in w]}
    if gone is None or len({*labels.values()}) < len(labels) or apart & (left | {other, gone}):
        return None
    kept = [*rest.operands, *form.undone(word)]
    words = [tuple([other if i == gone else i for i in w]) for _, w in kept]
    out = tuple([other if i == gone else i for i in rest.out])
    coef = rest.coef.by(form.coef.inverse())
    # The trace of a unit tensor, and one for each item of a batch.
    for alone in {other, *word[:-2]}.difference(out, *words):
        coef = coef.by(extent_coef(rest.extents[alone]))
    operands = [(op, w) for (op, _), w in zip(kept, words, strict=True)]
    return Factors(operands, out, rest.extents, coef)


def _by_inverse(e: Expr) -> Expr | None:
    """The product with an inverse for an adjugate beside a negative power of its determinant."""
    assert isinstance(e, Einsum)
    whole = factors_of(e)
    for k, (op, word) in enumerate(whole.operands):
        for j, (factor, own) in enumerate(whole.operands if root_of(op) == "adj" else ()):
            base, degree = _power(factor)
            if own == word[:-2] and degree < 0 and base is det(*op.args):
                rest = [item for i, item in enumerate(whole.operands) if i not in (k, j)]
                operands = [*rest, (inv(*op.args), word), (power(base, degree + 1), own)]
                return built(whole._replace(operands=operands))
    return None


def _power(e: Expr) -> tuple[Expr, float]:
    """The base of a power, and its exponent."""
    found = power_of(e)
    if isinstance(e, Einsum) and len({*e.args}) == len({*e.labels, e.out}) == 1 and e.coef == ONE:
        found = e.args[0], len(e.args)
    if found is None:
        return e, 1
    base, inner = _power(found[0])
    return base, found[1] * inner


rule(
    "adjugate-over-determinant", FACTOR_RULES, lambda a: adj(a) * reciprocal(det(a)), inv, "Einsum",
    _by_inverse, shape=SAMPLE_SHAPE, needs=[["adj"]],
)  # fmt: skip
rule(
    "inverse-times-matrix", FACTOR_RULES, lambda a, b: matmul(inv(a), matmul(a, b)), lambda a, b: b,
    "Einsum", _cancelled, shape=SAMPLE_SHAPE, needs=[INVERTING],
)  # fmt: skip
rule(
    "inverse-times-sum", FACTOR_RULES, lambda a, b: matmul(inv(a), a + b),
    lambda a, b: eye(3) + matmul(inv(a), b), "Einsum", _cancelled_in_sum, shape=SAMPLE_SHAPE,
    needs=[["Add"], INVERTING],
)  # fmt: skip
