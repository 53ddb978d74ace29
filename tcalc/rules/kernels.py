"""Products that one kernel computes, and powers that are products: for plans only.

Nothing that users see is rewritten here.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..applied import rewritten
from ..expr import Add, Apply, Einsum, Expr, Labels, postorder
from ..extents import number
from ..normal import add, einsum, scale, split_coef, view
from ..ops.cholesky import CHOLESKY
from ..ops.elementwise import whole_power
from ..ops.pullbacks import cholesky_pullback
from ..ops.triangles import LOWER_HALF, TRI_INVERSE

#: Whole powers up to which multiplying is faster.
FACTORS = 16


def fused(roots: Sequence[Expr]) -> list[Expr]:
    """The roots with pullbacks of Cholesky factors as one node each, whole powers as products."""
    applied = [n for n in postorder(roots) if isinstance(n, Apply)]
    if not any(n.op is TRI_INVERSE or whole_power(n) for n in applied):
        return list(roots)

    def change(new: Expr, old: Expr) -> Expr:
        return _fused_sum(new) if isinstance(new, Add) and new.ndim == 2 else _repeated(new)

    return rewritten(roots, change)


def _repeated(e: Expr) -> Expr:
    found = whole_power(e)
    if found is None or found[1] > FACTORS:
        return e
    base, count = found
    return einsum([base] * count, [range(e.ndim)] * count, range(e.ndim))


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
