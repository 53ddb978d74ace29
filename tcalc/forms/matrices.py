"""Laws of inverses, determinants, functions of matrices, and of constant matrices in indices."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from ..graph.applications import apply
from ..graph.extents import Coef, extent_coef, size_of
from ..graph.factors import LabelledExpr
from ..graph.nodes import Apply, Einsum, Expr, Labels
from ..graph.normal import add, einsum, scale, view
from ..graph.operators import TABLE
from ..graph.products import multiple, numeral, split_coef
from ..ops.elementwise import log, reciprocal
from ..ops.matrix.adjugate import adj
from ..ops.matrix.inverse import det, inv
from .laws import law
from .products import opened

INVERSES = ("inv",)
RECIPROCAL = TABLE["reciprocal"]
#: Between them numbers have reciprocals, which are written with one number.
SMALLEST, LARGEST = 1e-300, 1e300


def _is(e: Expr, *names: str) -> bool:
    return isinstance(e, Apply) and e.op.name in names


# --- multiples ------------------------------------------------------------------------------------


def _multiple(e: Expr) -> tuple[Coef, list[Expr], Expr] | None:
    """A matrix as a coefficient, scalars, and the rest; None where it is no multiple."""
    if not isinstance(e, Einsum) or e.summed or len(set(e.out)) < len(e.out):
        return None
    scalars = [op for op, word in zip(e.args, e.labels, strict=True) if not word]
    rest = [(op, word) for op, word in zip(e.args, e.labels, strict=True) if word]
    if not rest or (not scalars and e.coef == Coef()):
        return None
    if not SMALLEST < size_of(e.coef.value) < LARGEST:
        return None
    matrix = einsum(
        [op for op, _ in rest], [w for _, w in rest], e.out, Coef(), dict(enumerate(e.extents))
    )
    return e.coef, scalars, matrix


def _times(matrix: Expr, scalars: list[Expr], coef: Coef) -> Expr:
    axes = range(matrix.ndim)
    return einsum([matrix, *scalars], [axes, *[()] * len(scalars)], axes, coef)


@law("inverse-of-multiple", "inv(2*A) = inv(A)/2", *INVERSES, directed=True)
def _inverse_of_multiple(e: Expr) -> Iterable[Expr | None]:
    assert isinstance(e, Apply)
    found = _multiple(e.args[0])
    if found is not None:
        coef, scalars, matrix = found
        yield _times(apply(e.op, matrix), list(map(reciprocal, scalars)), coef.inverse())


@law("inverse-of-inverse", "inv(inv(A)) = A", *INVERSES, directed=True)
def _inverse_of_inverse(e: Expr) -> Iterable[Expr | None]:
    (inner,) = e.args
    if _is(inner, *INVERSES):
        yield inner.args[0]


@law(
    "logdet-of-multiple", "logdet(2*A) = logdet(A) + extent(n)*log(2)", "logdet", directed=True,
)  # fmt: skip
def _logdet_of_multiple(e: Expr) -> Iterable[Expr | None]:
    assert isinstance(e, Apply)
    found = _multiple(e.args[0])
    if found is None or e.ndim:
        return
    coef, scalars, matrix = found
    if coef.times or coef.over or scalars:
        return
    n = extent_coef(matrix.shape[-1])
    value = math.log(abs(float(coef.value)))
    yield add([apply(e.op, matrix), scale(numeral(value), n)])


@law("log-of-determinant", "logdet(A) + log(det_sign(A)) = log(det(A))", "Add", directed=True)
def _log_of_determinant(e: Expr) -> Iterable[Expr | None]:
    """The logarithm of a determinant, beside that of its sign or of a power of it: 0 or nan."""
    terms = [split_coef(t) for t in e.args]
    signed = {id(found): t for _, t in terms if (found := _signed(t)) is not None}
    for coef, term in terms:
        if _is(term, "logdet") and id(term.args[0]) in signed:
            gone = {id(term), id(signed[id(term.args[0])])}
            rest = [(c, t) for c, t in terms if id(t) not in gone]
            whole = (coef, log(det(*term.args)))
            yield add([multiple(t, c) for c, t in [*rest, whole]])
            return


def _signed(e: Expr) -> Expr | None:
    """The matrix, of the logarithm of a power of its determinant's sign."""
    inner = e.args[0] if _is(e, "log") else None
    while inner is not None and _is(inner, "power", "sqrt", "reciprocal"):
        inner = inner.args[0]
    return inner.args[0] if inner is not None and _is(inner, "det_sign") else None


@law("det-of-inverse", "det(inv(A)) = reciprocal(det(A))", "det", directed=True)
def _det_of_inverse(e: Expr) -> Iterable[Expr | None]:
    (inner,) = e.args
    if _is(inner, *INVERSES):
        yield reciprocal(det(inner.args[0]))


# --- products of square matrices ------------------------------------------------------------------


def square_factors(e: Expr) -> list[Expr] | None:
    """The square matrices, first to last, whose product a chain is; None for other nodes."""
    if not isinstance(e, Einsum) or e.ndim != 2 or len(set(e.out)) < 2:
        return None
    product = opened(e)
    if product.coef != Coef() or any(op.shape != e.shape for op, _ in product.operands):
        return None
    waiting = product.operands
    label, end = product.out
    found = []
    while waiting:
        here = [k for k, (_, word) in enumerate(waiting) if label in word]
        if len(here) != 1:
            return None
        op, word = waiting[here[0]]
        if word[0] == word[1]:
            return None
        waiting = [item for k, item in enumerate(waiting) if k != here[0]]
        found.append(op if word[0] == label else view(op, (1, 0)))
        label = word[1] if word[0] == label else word[0]
    return found if label == end and len(found) > 1 else None


def chain(factors: Iterable[Expr]) -> Expr:
    """The product of matrices, first to last."""
    ops = list(factors)
    words = [(k, k + 1) for k in range(len(ops))]
    return einsum(ops, words, (0, len(ops)))


def _expanded(e: Expr) -> Expr | None:
    """inv, adj and det of a product as a product."""
    if not _is(e, "det", "adj", *INVERSES):
        return None
    assert isinstance(e, Apply)
    factors = square_factors(e.args[0])
    if factors is None:
        return None
    if e.op.name == "det":
        return einsum([det(f) for f in factors], [()] * len(factors), ())
    return chain([(adj if e.op.name == "adj" else inv)(f) for f in reversed(factors)])


@law("det-of-power", "det(A*A) = det(A)*det(A)", "det", directed=True)
def _det_of_power(e: Expr) -> Iterable[Expr | None]:
    factors = square_factors(e.args[0]) if e.args[0].ndim == 2 else None
    if factors is not None and len(set(map(id, factors))) == 1:
        yield _expanded(e)


@law(
    "one-name", "inv(P*P) = inv(P*P)", *[
        name for name, row in TABLE.items() if row.spelling.printed in TABLE
    ], directed=True,
)  # fmt: skip
def _one_name(e: Expr) -> Iterable[Expr | None]:
    """A row that is printed as another one with the same values, as that."""
    assert isinstance(e, Apply)
    yield apply(TABLE[e.op.spelling.printed], *e.args, params=e.params)


@law(
    "inverse-of-product", "inv(A*B) = inv(B)*inv(A)", "adj", *INVERSES,
    given="factors of a matrix that has an inverse have one",
)  # fmt: skip
def _inverse_of_product(e: Expr) -> Iterable[Expr | None]:
    yield _expanded(e)


@law(
    "inverse-in-product", "inv(A*B)*A = inv(B)", "Einsum", directed=True, early=True,
    given="factors of a matrix that has an inverse have one",
)  # fmt: skip
def _inverse_in_product(e: Expr) -> Iterable[Expr | None]:
    """The inverse of a product beside one of its factors opened, so that they cancel."""
    assert isinstance(e, Einsum)
    for k, (op, word) in enumerate(zip(e.args, e.labels, strict=True)):
        if not _is(op, *INVERSES):
            continue
        factors = square_factors(op.args[0])
        if factors is None:
            continue
        ends = {word[0]: (factors[-1], 1), word[1]: (factors[0], 0)}
        pairs = [p for j, p in enumerate(zip(e.args, e.labels, strict=True)) if j != k]
        if any(_cancels(a, w, *end, label) for a, w in pairs for label, end in ends.items()):
            yield _replaced(e, k, _expanded(op))
            return


def _cancels(e: Expr, word: Labels, factor: Expr, axis: int, label: int) -> bool:
    """Is a factor of a product, or its transpose, one that meets its inverse at a label?"""
    if e.ndim != 2 or label not in word or len(set(word)) < 2:
        return False
    return (e if word[axis] == label else view(e, (1, 0))) is factor


def _replaced(e: Einsum, k: int, by: Expr | None) -> Expr:
    assert by is not None
    ops = [*e.args[:k], by, *e.args[k + 1 :]]
    return einsum(ops, e.labels, e.out, e.coef, dict(enumerate(e.extents)))


# --- cancelling -----------------------------------------------------------------------------------


def _without(e: Einsum, gone: set[int], more: list[LabelledExpr], same: dict[int, int]) -> Expr:
    """The product without some operands, with others, and with labels that become one."""
    kept = [
        (op, w) for k, (op, w) in enumerate(zip(e.args, e.labels, strict=True)) if k not in gone
    ]
    kept += more
    words = [tuple([same.get(label, label) for label in w]) for _, w in kept]
    out = [same.get(label, label) for label in e.out]
    extents = dict(enumerate(e.extents))
    coef = e.coef
    for label in set(same.values()):
        if label not in {i for w in words for i in w}.union(out):
            coef = coef.by(extent_coef(extents[label]))  # the trace of a unit tensor
    return einsum([op for op, _ in kept], words, out, coef, extents)


def _meeting(e: Einsum, *names: str) -> Iterator[tuple[int, int, int, int]]:
    """Places of a function of a matrix and of that matrix over one label; their other labels."""
    for k, (op, word) in enumerate(zip(e.args, e.labels, strict=True)):
        if not _is(op, *names) or op.ndim != 2:
            continue
        for j, (a, w) in enumerate(zip(e.args, e.labels, strict=True)):
            if a is not op.args[0] or len(set(w)) < 2 or len(set(word)) < 2:
                continue
            for axis in (0, 1):
                label = word[axis]
                alone = sum([i == label for other in e.labels for i in other]) == 2
                if w[1 - axis] == label and label not in e.out and alone:
                    yield k, j, word[1 - axis], w[axis]


@law("inverse-times-matrix", "inv(A)*A*B = B", "Einsum", directed=True)
def _cancelled(e: Expr) -> Iterable[Expr | None]:
    assert isinstance(e, Einsum)
    for k, j, one, other in _meeting(e, *INVERSES):
        yield _without(e, {k, j}, [], {other: one})
        return


@law(
    "adjugate-in-product", "x'*adj(A)*B = det(A)*x'*inv(A)*B", "Einsum", directed=True,
    given="the matrix has an inverse",
)  # fmt: skip
def _adjugate_in_product(e: Expr) -> Iterable[Expr | None]:
    """The adjugate beside other factors, by the inverse that is better known."""
    assert isinstance(e, Einsum)
    for k, (op, word) in enumerate(zip(e.args, e.labels, strict=True)):
        if _is(op, "adj") and op.ndim == 2:
            (matrix,) = op.args
            if len(set(word)) == 2 and (e.summed or any(a is det(matrix) for a in e.args)):
                yield _without(e, {k}, [(det(matrix), ()), (inv(matrix), word)], {})
                return


@law("adjugate-times-matrix", "adj(A)*A*B = det(A)*B", "Einsum", directed=True)
def _adjugate(e: Expr) -> Iterable[Expr | None]:
    assert isinstance(e, Einsum)
    for k, j, one, other in _meeting(e, "adj"):
        yield _without(e, {k, j}, [(det(e.args[j]), ())], {other: one})
        return


@law("adjugate-over-determinant", "reciprocal(det(A))*adj(A) = inv(A)", "Einsum", directed=True)
def _adjugate_over_determinant(e: Expr) -> Iterable[Expr | None]:
    assert isinstance(e, Einsum)
    for k, (op, word) in enumerate(zip(e.args, e.labels, strict=True)):
        if not _is(op, "adj") or op.ndim != 2:
            continue
        (matrix,) = op.args
        for j, other in enumerate(e.args):
            if _is(other, "reciprocal") and other.args[0] is det(matrix):
                yield _without(e, {k, j}, [(inv(matrix), word)], {})
                return
