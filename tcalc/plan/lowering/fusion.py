"""Products that one kernel computes, and powers that are products: for plans only.

Nothing that users see is rewritten here.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...graph.applications import rewritten
from ...graph.extents import number
from ...graph.nodes import Add, Apply, Einsum, Expr, Labels, postorder
from ...graph.normal import add, distribute, einsum, scale, view
from ...graph.products import split_coef
from ...ops.distances import as_distances, halves_of, squares_in
from ...ops.matrix.cholesky import CHOLESKY
from ...ops.matrix.cholesky_pullback import cholesky_pullback
from ...ops.matrix.triangular import LOWER_HALF, TRI_INVERSE
from ...ops.powers import whole_power

#: Whole powers up to which multiplying is faster.
FACTORS = 16


def fused(roots: Sequence[Expr]) -> list[Expr]:
    """The roots with what one kernel computes as one node, and with products for what they equal.

    Pullbacks of Cholesky factors and squared distances are such nodes; whole powers are products.
    """
    nodes = postorder(roots)
    squares = any(squares_in(n) for n in nodes)
    if squares:
        roots = rewritten(roots, lambda new, old: _sums_of_squares(new))
        nodes = postorder(roots)
    applied = [n for n in nodes if isinstance(n, Apply)]
    if not squares and not any(n.op is TRI_INVERSE or whole_power(n) for n in applied):
        return list(roots)

    def change(new: Expr, old: Expr) -> Expr:
        if isinstance(new, Add) and new.ndim == 2:
            return _fused_sum(new)
        if isinstance(new, Einsum):
            return as_distances(new)
        return _repeated(new)

    return rewritten(roots, change)


def _repeated(e: Expr) -> Expr:
    found = whole_power(e)
    if found is None or found[1] > FACTORS:
        return e
    base, count = found
    return einsum([base] * count, [range(e.ndim)] * count, range(e.ndim))


# --- squared distances ----------------------------------------------------------------------------


def _sums_of_squares(e: Expr) -> Expr:
    """A sum over k of terms, among which are squares of a_ik + b_jk, as the sums of each."""
    inner = e.args[0] if isinstance(e, Einsum) and len(e.args) == 1 else None
    if not isinstance(e, Einsum) or not e.summed or not isinstance(inner, Add):
        return e
    summed = [axis for axis, label in enumerate(e.labels[0]) if label not in e.out]
    if len(summed) != 1 or not any(_holds_square(t, summed[0]) for t in inner.args):
        return e
    return add(distribute(e, {0: inner.args}))


def _holds_square(e: Expr, axis: int) -> bool:
    """Is a factor of the product the square of a_ik + b_jk, of which k is the product's axis?"""
    if not isinstance(e, Einsum):
        return False
    words = [(e.args[place], e.labels[place]) for place in squares_in(e)]
    label = e.out[axis]
    return any(label in w and halves_of(op, w.index(label)) is not None for op, w in words)


# --- pullbacks of Cholesky factors ----------------------------------------------------------------


def _fused_sum(e: Add) -> Expr:
    """G + G', for G the pullback before it is made symmetric, as twice the pullback."""
    terms = list(e.args)
    for first in terms:
        coef, product = split_coef(first)
        mates = [t for t in terms if t is view(first, (1, 0))]
        if not mates or mates[0] is first or not isinstance(product, Einsum):
            continue
        if not product.summed and len(product.args) != 1:
            continue
        core = product if product.summed else product.args[0]
        found = _pullback(core) if isinstance(core, Einsum) and core.ndim == 2 else None
        if found is not None:
            rest = [t for t in terms if t is not first and t is not mates[0]]
            return add([*rest, scale(scale(found, coef), number(2))])
    return e


def _pullback(e: Einsum) -> Expr | None:
    """The pullback of which e_ij = C_kl L_km P_ml X_li X_mj is one half, X = inv(L)."""
    operands = list(zip(e.args, e.labels, strict=True))
    inverses = [o for o in operands if isinstance(o[0], Apply) and o[0].op is TRI_INVERSE]
    halves = [o for o in operands if isinstance(o[0], Apply) and o[0].op is LOWER_HALF]
    if len(inverses) != 2 or len(halves) != 1 or inverses[0][0] is not inverses[1][0]:
        return None
    factor = inverses[0][0].args[0]
    factors = [o for o in operands if o[0] is factor]
    if not isinstance(factor, Apply) or factor.op is not CHOLESKY or len(factors) != 1:
        return None
    m, inner = halves[0][1]
    if {word[0] for _, word in inverses} != {m, inner} or factors[0][1][1] != m:
        return None
    k = factors[0][1][0]
    taken = [*inverses, *halves, *factors]
    rest = [o for o in operands if not any(o is t for t in taken)]
    standing = {label for _, word in rest for label in word}
    if not _apart(standing, (k, inner), (m, *e.out), [word for _, word in inverses], e.out):
        return None
    extents = dict(enumerate(e.extents))
    bar = einsum([op for op, _ in rest], [word for _, word in rest], (k, inner), extents=extents)
    return cholesky_pullback(factor, bar)


def _apart(
    standing: set[int], wanted: Labels, barred: Labels, inverses: Sequence[Labels], out: Labels
) -> bool:
    """Do the other operands have these labels and none of those, the inverses the outer ones?"""
    outer = {word[1] for word in inverses}
    return standing.issuperset(wanted) and not standing & set(barred) and outer == set(out)
