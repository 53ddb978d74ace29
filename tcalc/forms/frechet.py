"""Laws of derivatives of matrix functions along directions: f_1(A, E), f_2(A, E, F) and on."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..graph.extents import Coef
from ..graph.factors import Factors, LabelledExpr
from ..graph.nodes import Add, Apply, Einsum, Expr
from ..graph.normal import add, built, einsum, scale, view
from ..graph.products import split_coef
from ..graph.sums import absent_axes
from ..ops.matrix.adjugate import adjugate_row
from ..ops.matrix.functions import expm, frechet_row, sqrtm
from ..ops.matrix.inverse import det, inv
from .laws import law
from .matrices import chain, square_factors

#: Functions that commute with their matrix.
FUNCTIONS = ("inv", "adj", "expm", "logm", "sqrtm")
#: The derivative of a function of one number, of a matrix.
DERIVATIVES: dict[str, Callable[[Expr], Expr]] = {
    "expm": expm,
    "logm": inv,
    "sqrtm": lambda a: scale(inv(sqrtm(a)), Coef(0.5)),
}
MAX_DEPTH = 6


def generators(e: Expr, depth: int = MAX_DEPTH) -> dict[int, Expr]:
    """The matrices of which a square matrix is made by sums, products and functions."""
    if depth and isinstance(e, Apply) and e.op.name in FUNCTIONS:
        return generators(e.args[0], depth - 1)
    parts: list[Expr] = []
    _, rest = split_coef(e)
    if isinstance(rest, Add):
        parts = list(rest.args)
    elif rest is not e and not isinstance(rest, Einsum):
        parts = [rest]
    elif isinstance(rest, Einsum) and rest.summed:
        parts = square_factors(rest) or []
    elif isinstance(rest, Einsum) and not rest.args and len(set(rest.out)) == 1:
        return {}
    elif isinstance(rest, Einsum):
        arrays = [(op, word) for op, word in zip(rest.args, rest.labels, strict=True) if word]
        if len(arrays) == 1 and sorted(arrays[0][1]) == sorted(rest.out) == [0, 1]:
            ((op, word),) = arrays
            parts = [op if word == rest.out else view(op, (1, 0))]
    if not parts or not depth or (len(parts) == 1 and parts[0] is e):
        return {id(e): e}
    found: dict[int, Expr] = {}
    for part in parts:
        found |= generators(part, depth - 1)
    return found


def commute(*matrices: Expr) -> bool:
    """Are these functions of one matrix?"""
    found: dict[int, Expr] = {}
    for matrix in matrices:
        found |= generators(matrix)
    return len(found) < 2


ROWS = {frechet_row(name, order).name: (name, order) for name in DERIVATIVES for order in (1, 2, 3)}
FIRST = {name: function for name, (function, order) in ROWS.items() if order == 1}


@law(
    "derivative-along-a-function", "expm_frechet(2*A, A*A) = A*A*expm(2*A)", *ROWS, directed=True,
)  # fmt: skip
def _along_function(e: Expr) -> Iterable[Expr | None]:
    """Along directions that are functions of the same matrix it is that of the scalar function."""
    assert isinstance(e, Apply)
    name, order = ROWS[e.op.name]
    a, *directions = e.args
    if e.ndim == 2 and (order == 1 or name == "expm") and commute(*e.args):
        yield chain([*directions, DERIVATIVES[name](a)])


@law(
    "derivative-beside-a-function", "tr(A*expm_frechet(2*A, B)) = tr(B*A*expm(2*A))", "Einsum",
    directed=True,
)  # fmt: skip
def _beside_function(e: Expr) -> Iterable[Expr | None]:
    """tr(C f_1(A, E)) is tr(E f_1(A, C)), where C and A are functions of one matrix."""
    assert isinstance(e, Einsum)
    if e.out:
        return
    pairs = list(zip(e.args, e.labels, strict=True))
    for k, (op, word) in enumerate(pairs):
        if not isinstance(op, Apply) or op.op.name not in FIRST or len(set(word)) < 2:
            continue
        extents = dict(enumerate(e.extents))
        rest = built(Factors(pairs[:k] + pairs[k + 1 :], word[::-1], extents, e.coef))
        a, direction = op.args
        if commute(rest, a):
            function = DERIVATIVES[FIRST[op.op.name]](a)
            yield einsum([direction, rest, function], [(0, 1), (1, 2), (2, 0)], ())
            return


@law(
    "derivative-of-adjugate", "adj_frechet(A, B) = det(A)*(tr(inv(A)*B)*inv(A) - inv(A)*B*inv(A))",
    adjugate_row(1).name, directed=True, given="the matrix has an inverse",
)  # fmt: skip
def _of_adjugate(e: Expr) -> Iterable[Expr | None]:
    """The derivative of det(A)*inv(A)."""
    a, direction = e.args
    n = e.ndim - 2
    if not set(range(n)) <= absent_axes(a):
        return
    batch = tuple(range(n))
    labels = [len(batch) + k for k in range(4)]
    if n:
        assert isinstance(a, Einsum)
        a = einsum(a.args, a.labels, a.out[n:], a.coef, dict(enumerate(a.extents)))
    i, j, k, m = labels
    scalar: list[LabelledExpr] = [(det(a), ()), (direction, (*batch, k, m))]
    words = [[(inv(a), (m, k)), (inv(a), (i, j))], [(inv(a), (i, k)), (inv(a), (m, j))]]
    terms = []
    for sign, more in zip((1, -1), words, strict=True):
        ops, places = zip(*scalar, *more, strict=True)
        terms.append(einsum(ops, places, (*batch, i, j), Coef(sign)))
    yield add(terms)
