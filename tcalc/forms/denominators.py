"""Laws of terms over a denominator, and of sums below the line."""

from __future__ import annotations

from collections.abc import Iterable

from ..graph.extents import ONE
from ..graph.nodes import Add, Apply, Einsum, Expr
from ..graph.normal import add, einsum
from ..graph.products import LabelledExpr, atoms_of
from ..graph.sums import collected
from ..ops.elementwise import reciprocal
from .exponentials import complemented
from .laws import brought_together, law
from .powers import RECIPROCAL, divisors
from .products import multiplied_out, summands, total


@law(
    "common-denominator", "1 - x .* reciprocal(x + y) = y .* reciprocal(x + y)", "Add",
    directed=True, early=True, given="what is divided by is not 0",
)  # fmt: skip
def _common_denominator(e: Expr) -> Iterable[Expr | None]:
    """Terms over one denominator, a sum, where their numerators then cancel."""
    seen = {}
    for t in e.args:
        if isinstance(t, Einsum) and not t.summed:
            for op, word in zip(t.args, t.labels, strict=True):
                if isinstance(op, Apply) and op.op is RECIPROCAL and isinstance(op.args[0], Add):
                    seen[id(op)] = op, () if not word else None
    for op, scalar in seen.values():
        (below,) = op.args
        if scalar is None and below.shape != e.shape:
            continue
        axes = range(e.ndim)
        word = tuple(axes)[: below.ndim]
        extents = dict(enumerate(e.shape))
        above: list[Expr] = []
        for t in e.args:
            whole = einsum([t, below], [axes, word], axes, ONE, extents)
            terms = [t for part in _cancelled(whole, op, below) for t in summands(part)]
            above += terms
        above = collected(above)
        while (fewer := complemented(above)) is not None:
            above = fewer
        if len(above) < len(e.args):
            yield einsum([total(above, e), op], [axes, word], axes, ONE, extents)
            return


def _cancelled(e: Expr, over: Expr, below: Expr) -> list[Expr]:
    """The terms of a product with a sum, its reciprocal cancelled where it stands beside it."""
    if isinstance(e, Einsum) and not e.summed:
        pairs = list(zip(e.args, e.labels, strict=True))
        for k, (a, w) in enumerate(pairs):
            if a is over and any(b is below and v == w for b, v in pairs):
                rest = [p for j, p in enumerate(pairs) if j != k]
                at = next(j for j, p in enumerate(rest) if p[0] is below and p[1] == w)
                del rest[at]
                ops, words = [p[0] for p in rest], [p[1] for p in rest]
                e = einsum(ops, words, e.out, e.coef, dict(enumerate(e.extents)))
                return multiplied_out(e)
    return multiplied_out(e)


@law(
    "quotient-below", "reciprocal(x .* reciprocal(y) + z) = y .* reciprocal(x + z .* y)",
    "reciprocal", directed=True, given="what is divided by is not 0",
)  # fmt: skip
def _quotient_below(e: Expr) -> Iterable[Expr | None]:
    """What terms of a sum below the line are divided by, above the line."""
    (total,) = e.args
    found = _divided_by(total) if isinstance(total, Add) else []
    if found:
        axes = range(total.ndim)
        ops, words = [op for op, _ in found], [word for _, word in found]
        terms = [einsum([t, *ops], [axes, *words], axes) for t in total.args]
        inside = add(list(map(brought_together, terms)))
        yield einsum([*ops, reciprocal(inside)], [*words, axes], axes)


def _divided_by(e: Add) -> list[LabelledExpr]:
    """What terms of a sum are divided by, at its axes."""
    found = {}
    for term in e.args:
        product = atoms_of(term)
        axis = {label: k for k, label in enumerate(product.out)}
        for base, word in divisors(product.operands):
            if set(word) <= set(axis):
                place = tuple([axis[label] for label in word])
                found[id(base), place] = base, place
    return list(found.values())
