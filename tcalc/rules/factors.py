"""Products of Cholesky factors, and of their inverses: L L' is A, inv(L)' inv(L) is inv(A).

An expression that a Cholesky factor drops out of is differentiated without it: the derivative of
y' inv(A) y has two factors inv(A), where that through the Cholesky factor has six operands. And
where a matrix is known to be positive definite or triangular, the cheaper inverse and determinant
are used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..graph.applications import core_swap
from ..graph.extents import ONE, Coef, Extent
from ..graph.factors import LabelledExpr, inlined
from ..graph.nodes import Add, Apply, Einsum, Expr, Var
from ..graph.normal import add, distribute, einsum, scale, view
from ..graph.operators import TABLE
from ..graph.properties import subspace
from ..ops.arithmetic import matmul, sum
from ..ops.diagonals import diagonal, eye
from ..ops.elementwise import abs, log
from ..ops.matrix.cholesky import CHOLESKY, cholesky
from ..ops.matrix.definite import inverse_definite, logdet_definite
from ..ops.matrix.inverse import INV, inv, logdet
from ..ops.matrix.triangular import TRI_INVERSE, lower_triangle, tri_inverse
from .contracted import reaches
from .facts import is_definite
from .strategy import rule

FACTOR_RULES = "factors"
DIVIDE = TABLE["divide"]


def is_factor(e: Expr) -> bool:
    return isinstance(e, Apply) and e.op is CHOLESKY


def _is_inverse_factor(e: Expr) -> bool:
    return isinstance(e, Apply) and e.op is TRI_INVERSE and is_factor(e.args[0])


class OpenedProduct:
    """A contraction some of whose operands, products themselves, are inlined: one set of labels."""

    def __init__(self, e: Einsum) -> None:
        self.operands: list[LabelledExpr] = list(zip(e.args, e.labels, strict=True))
        self.out, self.coef = e.out, e.coef
        self.extents: dict[int, Extent] = dict(enumerate(e.extents))
        self.summed = [label for label in self.extents if label not in e.out]

    def places(self, label: int) -> list[int]:
        return [k for k, (_, word) in enumerate(self.operands) for i in word if i == label]

    def inline_all(self, chosen: Sequence[int], holds: Callable[[Expr], bool]) -> None:
        """Inline those products among the chosen operands that have a factor for which `holds`."""
        kept: list[LabelledExpr] = []
        for k, (op, word) in enumerate(self.operands):
            inside = isinstance(op, Einsum) and len(set(op.out)) == len(op.out)
            if k in chosen and isinstance(op, Einsum) and inside and any(map(holds, op.args)):
                self.coef = self.coef.by(op.coef)
                kept += inlined(op, word, self.extents)
            else:
                kept.append((op, word))
        self.operands = kept

    def with_operands(self, operands: Sequence[LabelledExpr]) -> Expr:
        words = [word for _, word in operands]
        return einsum([op for op, _ in operands], words, self.out, self.coef, self.extents)


def _contracted_pair(
    e: Expr, holds: Callable[[Expr], bool], axis: int, made: Callable[[Expr], Expr]
) -> Expr | None:
    """Two equal factors contracted over one label, at `axis` of both, replaced by one matrix."""
    assert isinstance(e, Einsum)
    if not e.summed or not any(reaches(arg, holds, (Einsum,), 1) for arg in e.args):
        return None
    for label in OpenedProduct(e).summed:
        whole = OpenedProduct(e)
        chosen = whole.places(label)
        if len(chosen) != 2:
            continue
        whole.inline_all(chosen, holds)
        both = [(op, word) for op, word in whole.operands if label in word]
        if len(both) != 2 or both[0][0] is not both[1][0] or not holds(both[0][0]):
            continue
        (op, one), (_, two) = both
        if one[axis] == two[axis] == label and one[:-2] == two[:-2] and label not in one[:-2]:
            other = -3 - axis
            if label in (one[other], two[other]):
                continue
            rest = [o for o in whole.operands if label not in o[1]]
            return whole.with_operands([*rest, (made(op), (*one[:-2], one[other], two[other]))])
    return None


def _inverse_from_factors(e: Expr) -> Expr | None:
    return _contracted_pair(
        e, _is_inverse_factor, -2, lambda x: inverse_definite(x.args[0].args[0])
    )


def _matrix_from_factors(e: Expr) -> Expr | None:
    return _contracted_pair(e, is_factor, -1, lambda factor: factor.args[0])


def log_diagonal(
    e: Expr, holds: Callable[[Expr], bool], made: Callable[[Expr], Expr]
) -> Expr | None:
    """The sum of log(diag(L)), over the diagonal and perhaps batch axes, for an L that `holds`.

    It is `made` of L in its place.
    """
    if not isinstance(e, Einsum) or len(e.args) != 1:
        return None
    (inner,), (word,) = e.args, e.labels
    if not e.summed:
        found = log_diagonal(inner, holds, made)
        return (
            None
            if found is None
            else einsum([found], [word], e.out, e.coef, dict(enumerate(e.extents)))
        )
    if isinstance(inner, Add):
        if not any(map(_reads_logarithm, inner.args)):
            return None
        terms = distribute(e, {0: inner.args})
        halves = [log_diagonal(t, holds, made) for t in terms]
        if all(half is None for half in halves):
            return None
        return add([t if half is None else half for half, t in zip(halves, terms, strict=True)])
    outside = (*e.out, *word[:-1])  # a label of the batch reads one entry of each diagonal
    if not isinstance(inner, Apply) or inner.op is not TABLE["log"] or word[-1] in outside:
        return None
    (read,) = inner.args
    if not isinstance(read, Einsum) or len(read.args) != 1 or read.coef != ONE:
        return None
    (factor,), (axes,) = read.args, read.labels
    n = factor.ndim - 2
    if not holds(factor) or axes != (*range(n), n, n) or read.out != tuple(range(n + 1)):
        return None
    return einsum([made(factor)], [word[:-1]], e.out, e.coef, dict(enumerate(e.extents)))


def _reads_logarithm(e: Expr) -> bool:
    """Is a term a logarithm, or a sum of some, under products of one operand?"""
    while isinstance(e, Einsum) and len(e.args) == 1:
        (e,) = e.args
    if isinstance(e, Add):
        return any(map(_reads_logarithm, e.args))
    return isinstance(e, Apply) and e.op is TABLE["log"]


def _log_diagonal(e: Expr) -> Expr | None:
    return log_diagonal(
        e, is_factor, lambda factor: scale(logdet_definite(factor.args[0]), Coef(0.5))
    )


def _of_definite(e: Expr) -> Expr | None:
    """inv and logdet of a matrix that is positive definite whatever the variables are."""
    assert isinstance(e, Apply)
    if not is_definite(e.args[0]):
        return None
    return inverse_definite(e.args[0]) if e.op is INV else logdet_definite(e.args[0])


def _triangular(e: Expr) -> bool:
    """Is e lower triangular, by its operator or by its declaration?"""
    if isinstance(e, Var):
        return subspace(e.properties).lower
    return isinstance(e, Apply) and e.op.meaning.triangular


def _inverse_of_triangle(e: Expr) -> Expr | None:
    assert isinstance(e, Apply)
    (a,) = e.args
    if _triangular(a):
        return tri_inverse(a)
    other = view(a, core_swap(a.ndim))
    return view(tri_inverse(other), core_swap(a.ndim)) if _triangular(other) else None


def _logdet_of_triangle(e: Expr) -> Expr | None:
    assert isinstance(e, Apply)
    (a,) = e.args
    if not _triangular(a) and not _triangular(view(a, core_swap(a.ndim))):
        return None
    n = a.ndim - 2
    return sum(log(abs(einsum([a], [(*range(n), n, n)], range(n + 1)))), axis=-1)


def _definite(a: Expr) -> Expr:
    return a @ a.T + eye(3)


def _factor_of(a: Expr) -> Expr:
    return cholesky(_definite(a))


SAMPLE_SHAPE = (3, 3)
rule(
    "inverse-from-factors", FACTOR_RULES,
    lambda a, b: matmul(matmul(tri_inverse(_factor_of(a)), b).T, tri_inverse(_factor_of(a))),
    lambda a, b: matmul(b.T, inverse_definite(_definite(a))),
    "Einsum", _inverse_from_factors, shape=SAMPLE_SHAPE, needs=[[TRI_INVERSE.name]],
)  # fmt: skip
rule(
    "matrix-from-factors", FACTOR_RULES,
    lambda a, b: matmul(_factor_of(a), matmul(_factor_of(a).T, b)),
    lambda a, b: matmul(_definite(a), b),
    "Einsum", _matrix_from_factors, shape=SAMPLE_SHAPE, needs=[[CHOLESKY.name]],
)  # fmt: skip
rule(
    "log-diagonal-of-factor", FACTOR_RULES, lambda a: sum(log(diagonal(_factor_of(a)))),
    lambda a: logdet_definite(_definite(a)) / 2, "Einsum", _log_diagonal, shape=SAMPLE_SHAPE,
    needs=[[CHOLESKY.name], ["log"]],
)  # fmt: skip
rule(
    "inverse-of-definite", FACTOR_RULES, lambda a: inv(_definite(a)),
    lambda a: inverse_definite(_definite(a)), "inv", _of_definite, shape=SAMPLE_SHAPE,
)  # fmt: skip
rule(
    "logdet-of-definite", FACTOR_RULES, lambda a: logdet(_definite(a)),
    lambda a: logdet_definite(_definite(a)), "logdet", _of_definite, shape=SAMPLE_SHAPE,
)  # fmt: skip
rule(
    "inverse-of-triangle", FACTOR_RULES, lambda a: inv(lower_triangle(a)),
    lambda a: tri_inverse(lower_triangle(a)), "inv", _inverse_of_triangle, shape=SAMPLE_SHAPE,
)  # fmt: skip
rule(
    "logdet-of-triangle", FACTOR_RULES, lambda a: logdet(lower_triangle(a)),
    lambda a: sum(log(abs(diagonal(lower_triangle(a))))), "logdet", _logdet_of_triangle,
    shape=SAMPLE_SHAPE,
)  # fmt: skip
