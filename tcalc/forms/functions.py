"""Laws of functions of matrices, of factorisations, and of constant matrices made from indices."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..graph.applications import application, apply
from ..graph.extents import ONE, Extent
from ..graph.nodes import Apply, Einsum, Expr, Part
from ..graph.normal import einsum
from ..graph.operators import TABLE
from ..graph.products import symmetries
from ..ops.arithmetic import matmul
from ..ops.diagonals import trace
from ..ops.matrix.divided_differences import Scalar, X
from ..ops.matrix.functions import expm, logm, sqrtm
from ..ops.matrix.inverse import inv, logdet
from ..ops.matrix.pseudoinverse import pseudoinverse
from ..ops.matrix.triangular import TRI_INVERSE, lower_triangle
from .laws import law

#: Functions of matrices by that of their eigenvalues.
NAMED: dict[str, Callable[[Expr], Expr]] = {
    "reciprocal": inv, "exp": expm, "log": logm, "sqrt": sqrtm,
}  # fmt: skip


def _named(g: Expr, a: Expr) -> Expr | None:
    """The function of a matrix as a product of functions with names."""
    if g is X:
        return a
    if isinstance(g, Apply) and g.op.name in NAMED and g.args[0] is X:
        return NAMED[g.op.name](a)
    if not isinstance(g, Einsum) or g.coef != ONE or len(g.args) < 2:
        return None
    product: Expr | None = None
    for factor in g.args:
        found = _named(factor, a)
        if found is None:
            return None
        product = found if product is None else matmul(product, found)
    return product


def _function(e: Expr) -> tuple[Expr, Expr] | None:
    assert isinstance(e, Apply)
    (g, *_), (a, *_) = e.params, e.args
    known = isinstance(g, Scalar) and g.order == 0 and a.ndim == 2 and (1, 0) in symmetries(a)
    return (g.expr, a) if known else None


@law(
    "named-matrix-function", "matrix_function(S, reciprocal(x)) = inv(S)", "matrix_function",
    directed=True,
)  # fmt: skip
def _matrix_function(e: Expr) -> Iterable[Expr | None]:
    found = _function(e)
    if found is not None:
        yield _named(*found)


@law(
    "named-trace-function", "sum(log(eigvals(S))) = logdet(S)", "matrix_function_trace",
    directed=True,
)  # fmt: skip
def _trace_function(e: Expr) -> Iterable[Expr | None]:
    found = _function(e)
    if found is None:
        return
    g, a = found
    if isinstance(g, Apply) and g.op.name == "log" and g.args[0] is X:
        yield logdet(a)
        return
    matrix = _named(g, a)
    if matrix is not None:
        yield trace(matrix)


@law("pseudoinverse-of-factors", "lq_q(A)'*tri_inverse(lq_l(A)) = pinv(A)", "Einsum", directed=True)
def _pseudoinverse(e: Expr) -> Iterable[Expr | None]:
    """With A = L Q, the product of Q' and the inverse of L."""
    assert isinstance(e, Einsum)
    for k, (op, word) in enumerate(zip(e.args, e.labels, strict=True)):
        if not isinstance(op, Apply) or op.op is not TRI_INVERSE or op.ndim != 2:
            continue
        (factor,) = op.args
        if not isinstance(factor, Part) or application(factor).op.parts[:1] != ("lq_l",):
            continue
        whole = application(factor)
        for j, (other, w) in enumerate(zip(e.args, e.labels, strict=True)):
            meets = isinstance(other, Part) and other.args[0] is whole and other.index == 1
            label = word[0]
            alone = sum([i == label for row in e.labels for i in row]) == 2
            if meets and w[0] == label and label not in e.out and alone:
                rest = [i for i in range(len(e.args)) if i not in (j, k)]
                ops = [*[e.args[i] for i in rest], pseudoinverse("pinv", whole.args[0])]
                words = [*[e.labels[i] for i in rest], (w[1], word[1])]
                yield einsum(ops, words, e.out, e.coef, dict(enumerate(e.extents)))
                return


# --- matrices made from indices -------------------------------------------------------------------


def _compared_places(e: Expr) -> tuple[int, int] | None:
    """The axes whose indices are compared, where e compares two of its own indices."""
    axes = []
    for arg in e.args:
        if not isinstance(arg, Einsum) or len(arg.args) != 1 or arg.coef != ONE:
            return None
        (inner,), (word,) = arg.args, arg.labels
        if not isinstance(inner, Apply) or inner.op is not TABLE["iota"] or len(word) != 1:
            return None
        axes.append(arg.out.index(word[0]) if arg.out.count(word[0]) == 1 else -1)
    if e.ndim != 2 or sorted(axes) != [0, 1]:
        return None
    return axes[0], axes[1]


@law(
    "equal-indices", "A .* equal(iota(n)*vector(1, n)', vector(1, n)*iota(n)') = diag(diag(A))",
    "equal", directed=True,
)  # fmt: skip
def _equal_indices(e: Expr) -> Iterable[Expr | None]:
    if _compared_places(e) and e.shape[0] == e.shape[1]:
        yield einsum([], [], (0, 0), ONE, {0: e.shape[0]})


@law(
    "triangle", "A .* less_equal(vector(1, n)*iota(n)', iota(n)*vector(1, n)') = lower_triangle(A)",
    "Einsum", directed=True,
)  # fmt: skip
def _triangle(e: Expr) -> Iterable[Expr | None]:
    assert isinstance(e, Einsum)
    for k, (op, word) in enumerate(zip(e.args, e.labels, strict=True)):
        if not isinstance(op, Apply) or op.op is not TABLE["less_equal"] or len(set(word)) < 2:
            continue
        axes = _compared_places(op)
        if axes is None or op.shape[0] != op.shape[1]:
            continue
        column, row = word[axes[0]], word[axes[1]]
        rest = [i for i in range(len(e.args)) if i != k]
        own = [i for i in rest if set(e.labels[i]) & {row, column}]
        extents: dict[int, Extent] = dict(enumerate(e.extents))
        inner = einsum(
            [e.args[i] for i in own], [e.labels[i] for i in own], (row, column), ONE, extents
        )
        if any(set(e.labels[i]) - {row, column} for i in own):
            return
        others = [i for i in rest if i not in own]
        ops = [*[e.args[i] for i in others], lower_triangle(inner)]
        words = [*[e.labels[i] for i in others], (row, column)]
        yield einsum(ops, words, e.out, e.coef, extents)
        return


# --- merged axes ----------------------------------------------------------------------------------


def _split(e: Expr, axis: int, into: tuple[Extent, ...]) -> Expr | None:
    """The array with an axis split again that was merged from axes of these extents."""
    merges = TABLE["merge_axes"]
    if isinstance(e, Einsum) and len(e.args) == 1 and not e.summed:
        (inner,), (word,) = e.args, e.labels
        label = e.out[axis]
        if e.out.count(label) != 1 or word.count(label) != 1:
            return None
        place = word.index(label)
        found = _split(inner, place, into)
        if found is None:
            return None
        new = [len(e.extents) + k for k in range(len(into))]
        out = [*e.out[:axis], *new, *e.out[axis + 1 :]]
        words = [*word[:place], *new, *word[place + 1 :]]
        return einsum([found], [words], out, e.coef, dict(enumerate(e.extents)))
    if not isinstance(e, Apply) or e.op is not merges:
        return None
    count, after = e.params
    (inner,) = e.args
    if axis < e.ndim - len(after):
        found = _split(inner, axis, into)
        return None if found is None else apply(merges, found, params=e.params)
    if len(after) == 1 and inner.shape[inner.ndim - count :] == into:
        return inner
    return None


@law(
    "split-of-merged", "reshape(reshape(F, (6,)), (2, 3)) = F", "merge_axes", directed=True,
)  # fmt: skip
def _split_of_merged(e: Expr) -> Iterable[Expr | None]:
    assert isinstance(e, Apply)
    count, after = e.params
    if count == 1:
        yield _split(e.args[0], e.args[0].ndim - 1, after)
