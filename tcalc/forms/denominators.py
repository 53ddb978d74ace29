"""Laws of terms over a denominator, and of sums below the line."""

from __future__ import annotations

from collections.abc import Iterable

from ..graph.extents import ONE
from ..graph.nodes import Add, Apply, Einsum, Expr
from ..graph.normal import add, einsum
from ..graph.sums import collected
from ..ops.elementwise import reciprocal
from .exponentials import complemented
from .laws import law
from .powers import RECIPROCAL
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
    "quotient-below", "reciprocal(y) .* reciprocal(x .* reciprocal(y) + z) = "
    "reciprocal(x + z .* y)", "Einsum", given="what is divided by is not 0",
)  # fmt: skip
def _quotient_below(e: Expr) -> Iterable[Expr | None]:
    """Below the line, what a term of a sum is divided by beside that sum, multiplied into it."""
    assert isinstance(e, Einsum)
    pairs = list(zip(e.args, e.labels, strict=True))
    for k, (over, word) in enumerate(pairs):
        total = over.args[0] if isinstance(over, Apply) and over.op is RECIPROCAL else None
        if not isinstance(total, Add):
            continue
        below = {id(op) for t in total.args if isinstance(t, Einsum) for op in t.args}
        for j, (factor, other) in enumerate(pairs):
            if id(factor) not in below or other not in ((), word):
                continue
            if isinstance(factor, Apply) and factor.op is RECIPROCAL:
                axes = range(total.ndim)
                places = [axes, axes[: factor.ndim]]
                inside = add([einsum([t, factor.args[0]], places, axes) for t in total.args])
                rest = [pair for i, pair in enumerate(pairs) if i not in (j, k)]
                ops, words = zip(*rest, (reciprocal(inside), word), strict=True)
                yield einsum(ops, words, e.out, e.coef, dict(enumerate(e.extents)))
