"""Laws of products with a sum among their factors that are written term by term."""

from __future__ import annotations

from collections.abc import Iterable

from ..graph.factors import indicates
from ..graph.nodes import Add, Einsum, Expr
from ..graph.normal import add, built, distribute
from ..graph.products import atoms_of, split_coef
from ..graph.sums import absent_axes
from .laws import law, once
from .products import MAX_MULTIPLIED, opened

#: Terms of a sum in a number that are written apart for one that is a column times a row.
MAX_APART = 4


@law(
    "sum-with-a-broadcast", "diag(y)*(A - vector(1, n)*x') = diag(y)*A - y*x'", "Einsum",
)  # fmt: skip
def _with_broadcast(e: Expr) -> Iterable[Expr | None]:
    """A product with a sum some of whose terms are broadcast, multiplied out."""
    assert isinstance(e, Einsum)
    for k, op in enumerate(e.args):
        broadcast = isinstance(op, Add) and len(op.args) <= 4 and any(map(absent_axes, op.args))
        if broadcast and e.ndim == 2:
            yield add(distribute(e, {k: op.args}))


@law("trace-of-sum", "tr(A + x*y') = tr(A) + x'*y", "Einsum")
def _trace_of_sum(e: Expr) -> Iterable[Expr | None]:
    assert isinstance(e, Einsum)
    if len(e.args) == 1 and e.labels[0] == (0, 0) and not e.out and isinstance(e.args[0], Add):
        yield add(distribute(e, {0: e.args[0].args}))


@law("trace-with-quadratic-form", "tr(A*(B + x*y')) = tr(A*B) + y'*A*x", "Einsum", directed=True)
def _trace_with_form(e: Expr) -> Iterable[Expr | None]:
    """A number with a sum in it, some terms of which are columns times rows, term by term."""
    assert isinstance(e, Einsum)
    for k, op in enumerate(e.args if not e.out else ()):
        word = e.labels[k]
        if (
            not isinstance(op, Add)
            or op.ndim != 2
            or len(op.args) > MAX_APART
            or word[0] == word[1]
        ):
            continue
        if any(map(_is_column_times_row, op.args)):
            yield add(distribute(e, {k: op.args}))
            return


@law(
    "sum-with-unit-vectors", "(A + x*eye(n)[1]')'*y = A'*y + (x'*y)*eye(n)[1]", "Einsum",
    directed=True,
)  # fmt: skip
def _with_unit_vectors(e: Expr) -> Iterable[Expr | None]:
    """A vector that is a product with a sum, some of whose terms are unit vectors, term by term."""
    assert isinstance(e, Einsum)
    if e.ndim != 1 or not e.summed or not any(map(_has_unit_vectors, e.args)):
        return
    product = opened(e)
    for k, (op, word) in enumerate(product.operands):
        if isinstance(op, Add) and len(op.args) <= MAX_MULTIPLIED and _has_unit_vectors(op):
            rest = product.operands[:k] + product.operands[k + 1 :]
            if rest and all(indicates(other) for other, _ in rest):
                return  # rows or columns of it, which are read as they stand
            terms = [product._replace(operands=[*rest, (t, word)]) for t in op.args]
            yield add(list(map(built, terms)))
            return


@once
def _has_unit_vectors(e: Expr) -> bool:
    """Is a matrix a sum, or a product with one, some terms of which are at one row or column?"""
    if isinstance(e, Einsum) and e.ndim == 2:
        return any(map(_has_unit_vectors, e.args))
    if not isinstance(e, Add) or e.ndim != 2:
        return False
    parts = [atoms_of(term) for term in e.args]
    return any(
        indicates(op) and op.ndim == 1 and word[0] in part.out
        for part in parts
        for op, word in part.operands
    ) or any(map(_has_unit_vectors, e.args))


def _is_column_times_row(e: Expr) -> bool:
    """Is a matrix a product of two vectors, each of which may be one of matrices and a vector?"""
    if not isinstance(e, Einsum):
        return False
    product = opened(e)
    if len(set(product.out)) < 2:
        return False
    i, j = product.out
    joined = {i}
    words = [set(word) for _, word in product.operands]
    for _ in words:
        joined = joined.union(*[word for word in words if word & joined])
    return j not in joined and all(any(label in word for word in words) for label in (i, j))


@law(
    "sum-of-tensors",
    "#('k,ijk->ij', x, #('i,jk->ijk', x, A) + #('j,ki->ijk', x, A)) = A'*x*x' + x*x'*A'",
    "Einsum", directed=True,
)  # fmt: skip
def _sum_of_tensors(e: Expr) -> Iterable[Expr | None]:
    """Contractions of a sum of products of more axes than matrices have are multiplied out."""
    assert isinstance(e, Einsum)
    for k, op in enumerate(e.args if e.summed else ()):
        if isinstance(op, Add) and op.ndim > 2 and len(op.args) <= MAX_MULTIPLIED:
            products = [split_coef(t)[1] for t in op.args]
            if all(isinstance(t, Einsum) and len(t.args) > 1 for t in products):
                yield add(distribute(e, {k: op.args}))
                return
