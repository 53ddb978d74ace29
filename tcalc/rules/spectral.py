"""Sums over eigenvalues and V g(diag w) V', as functions of the matrix that was decomposed.

Such expressions are smooth where eigenvalues are equal, though w and V are not: their derivatives
must not go through w and V.
"""

from __future__ import annotations

from ..graph.applications import application, apply, parts
from ..graph.nodes import Add, Apply, Einsum, Expr, Labels, Part
from ..graph.normal import add, einsum
from ..graph.products import numeral, numeric_value
from ..ops.arithmetic import matmul, sum
from ..ops.elementwise import tanh
from ..ops.matrix.divided_differences import Scalar, X
from ..ops.matrix.eigh import EIGH, eigh, eigvalsh
from ..ops.matrix.spectral import matrix_function, spectral, spectral_trace, trace_function
from ..support.records import NamedTuple
from .strategy import rule

SPECTRAL = "spectral"
EIGH_ROWS = tuple(EIGH.values())
DECOMPOSING = [row.name for row in EIGH_ROWS]

#: Formulas of eigenvalues with more nodes are left as they are.
MAX_NODES = 200


class SpectralFactors(NamedTuple):
    """The factors of a product on one summed label, eigenvectors and functions of eigenvalues."""

    inside: list[int]
    sides: list[int]
    batch: Labels
    eigenvalues: Expr
    function: Expr


def _is_output(e: Expr, index: int) -> bool:
    """Is e the eigenvalues (0) or the eigenvectors (1) of some matrix?"""
    if not isinstance(e, Part) or e.index != index:
        return False
    row = application(e).op
    return any(row is other for other in EIGH_ROWS)


def _entrywise(e: Expr) -> bool:
    """Is every entry of e the same function of its operands' entries in that place?"""
    if isinstance(e, Einsum):
        whole = not e.summed and len(set(e.out)) == len(e.out)
        plain = not (e.coef.times or e.coef.over)
        return whole and plain and all(word == e.out for word in e.labels)
    return isinstance(e, Add) or (isinstance(e, Apply) and e.op.elementwise)


def _eigenvalue_function(e: Expr) -> tuple[Expr, Expr] | None:
    """The eigenvalues that e is a function of, entry by entry, and that function of `X`."""
    done: dict[int, Expr] = {}
    leaf: Expr | None = None
    stack = [e]
    while stack:
        node = stack[-1]
        if id(node) in done:
            stack.pop()
        elif _is_output(node, 0):
            if leaf is not None and leaf is not node:
                return None
            leaf, done[id(node)] = node, X
        elif (value := numeric_value(node)) is not None:
            done[id(node)] = numeral(value)
        elif not _entrywise(node) or len(done) > MAX_NODES or len(stack) > MAX_NODES:
            return None
        elif missing := [arg for arg in node.args if id(arg) not in done]:
            stack.extend(missing)
        else:
            done[id(node)] = _scalar(node, [done[id(arg)] for arg in node.args])
    return None if leaf is None else (leaf, done[id(e)])


def _scalar(node: Expr, args: list[Expr]) -> Expr:
    if isinstance(node, Add):
        return add(args)
    if isinstance(node, Apply):
        return apply(node.op, *args, params=node.params)
    assert isinstance(node, Einsum)
    return einsum(args, [()] * len(args), (), node.coef)


def _spectral_factors(e: Einsum, label: int, count: int) -> SpectralFactors | None:
    """The factors on a label: functions of eigenvalues, and their eigenvectors `count` times."""
    inside = [k for k, word in enumerate(e.labels) if label in word]
    if any(e.labels[k].index(label) < len(e.labels[k]) - 1 for k in inside):
        return None
    sides = [k for k in inside if _is_output(e.args[k], 1)]
    values = [k for k in inside if k not in sides]
    if len(sides) != count or not values:
        return None
    found: list[tuple[Expr, Expr]] = []
    for k in values:
        pair = _eigenvalue_function(e.args[k])
        if pair is None or (found and pair[0] is not found[0][0]):
            return None
        found.append(pair)
    w = found[0][0]
    batches = {e.labels[k][:-1] for k in values} | {e.labels[k][:-2] for k in sides}
    if len(batches) > 1 or any(e.args[k].args[0] is not w.args[0] for k in sides):
        return None
    scalars = [g for _, g in found]
    return SpectralFactors(
        inside, sides, batches.pop(), w, einsum(scalars, [()] * len(scalars), ())
    )


def _replaced(e: Expr, count: int) -> Expr | None:
    """The product with the factors on one label replaced by a function of the matrix."""
    assert isinstance(e, Einsum)
    for label in range(len(e.out), len(e.extents)) if e.summed else ():
        group = _spectral_factors(e, label, count)
        if group is None:
            continue
        g, whole = Scalar(group.function), application(group.eigenvalues)
        rest = [k for k in range(len(e.args)) if k not in group.inside]
        ends = [e.labels[k][-2] for k in group.sides]
        if ends[1:] == ends[:1] and not _stands((*e.out, *group.batch), e, ends[:1], rest):
            ends = []
        made = (spectral if ends else spectral_trace)(g, *whole.args, *parts(whole))
        ops, words = [e.args[k] for k in rest], [e.labels[k] for k in rest]
        extents = dict(enumerate(e.extents))
        return einsum([*ops, made], [*words, (*group.batch, *ends)], e.out, e.coef, extents)
    return None


def _stands(outside: Labels, e: Einsum, ends: list[int], places: list[int]) -> bool:
    """Is the label that both eigenvectors end in read outside, or by another operand?"""
    return any(label in outside or any(label in e.labels[k] for k in places) for label in ends)


def _matrix(e: Expr) -> Expr | None:
    return _replaced(e, 2)


def _trace(e: Expr) -> Expr | None:
    return _replaced(e, 0)


def _decomposed(a: Expr) -> Expr:
    w, v = eigh(a)
    return matmul(v * tanh(w), v.mT)


rule(
    "spectral", SPECTRAL, _decomposed, lambda a: matrix_function(a, tanh), "Einsum", _matrix,
    shape=(3, 3), needs=[DECOMPOSING],
)  # fmt: skip
rule(
    "spectral-trace", SPECTRAL, lambda a: sum(tanh(eigvalsh(a))),
    lambda a: trace_function(a, tanh), "Einsum", _trace, shape=(3, 3),
    needs=[DECOMPOSING],
)  # fmt: skip
