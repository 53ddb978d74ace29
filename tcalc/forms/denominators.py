"""Laws of terms over a denominator, and of sums below the line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..graph.extents import ONE
from ..graph.factors import Factors, LabelledExpr
from ..graph.nodes import Add, Apply, Einsum, Expr
from ..graph.normal import add, built, distribute, einsum
from ..graph.products import atoms_of
from ..graph.sums import collected
from ..ops.elementwise import reciprocal
from .exponentials import complemented
from .laws import brought_together, law
from .powers import RECIPROCAL, degree_of, divisors
from .products import MAX_TERMS, multiplied_out, summands, total

#: The highest power of a sum that terms are brought over.
MAX_POWER = 4


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
    "powers-of-a-denominator", "1 - x .* reciprocal(x + y) .* (2 - x .* reciprocal(x + y)) = "
    "y.^2 .* reciprocal(x + y).^2", "Add", given="what is divided by is not 0",
)  # fmt: skip
def _powers_of_denominator(e: Expr) -> Iterable[Expr | None]:
    yield from _over_one(e)


def _over_one(e: Expr) -> Iterable[Expr]:
    """Terms over powers of one sum, over the highest of them."""
    whole = [atoms_of(t) for t in e.args]
    opened = [atoms_of(p) for t in e.args for p in multiplied_out(t)]
    for products in (whole, opened)[: 1 + (len(opened) > len(whole))]:
        yield from _over_powers(e, products)


@law(
    "denominator-beside", "(1 - 2*x .* reciprocal(x + y)) .* reciprocal(x + y) = "
    "(y - x) .* reciprocal(x + y).^2", "Einsum", given="what is divided by is not 0",
)  # fmt: skip
def _denominator_beside(e: Expr) -> Iterable[Expr | None]:
    """A factor over the denominator that stands beside it, where alone it reads better as it is."""
    assert isinstance(e, Einsum)
    pairs = list(zip(e.args, e.labels, strict=True))
    below = {(id(base), word) for base, word in divisors(pairs)}
    for k, (op, word) in enumerate(pairs):
        if not isinstance(op, Add) or len(set(word)) < len(word):
            continue
        inside = {id(base) for t in op.args for base, _ in divisors(atoms_of(t).operands)}
        if any(base in inside and place == word for base, place in below):
            for found in _over_one(op):
                ops = [*e.args[:k], found, *e.args[k + 1 :]]
                yield einsum(ops, e.labels, e.out, e.coef, dict(enumerate(e.extents)))


def _over_powers(e: Expr, products: Sequence[Factors]) -> Iterable[Expr]:
    """The sum of some products over the highest power of each sum below the line in them."""
    bases = {id(base): base for p in products for base, _ in divisors(p.operands)}
    axes = range(e.ndim)
    for below in [b for b in bases.values() if isinstance(b, Add) and b.shape == e.shape]:
        parts = [_without_divisor(p, below) for p in products]
        most = max([power for _, power in parts])
        if (
            not 0 < most <= MAX_POWER
            or len(below.args) ** most > MAX_TERMS
            or any(len(set(p.out)) < len(p.out) for p in products)
        ):
            continue
        above: list[Expr] = []
        for p, power in parts:
            term = built(p._replace(operands=[*p.operands, *[(below, p.out)] * (most - power)]))
            sums = {k: below.args for k, op in enumerate(term.args) if op is below}
            above += distribute(term, sums) if sums and isinstance(term, Einsum) else [term]
        above = collected(above)
        if len(above) <= len(products):
            ops = [total(above, e), *[reciprocal(below)] * most]
            yield einsum(ops, [axes] * len(ops), axes)


def _without_divisor(product: Factors, below: Expr) -> tuple[Factors, int]:
    """The product without whole powers of a sum below the line, and their degree."""
    kept, found = [], 0
    for op, word in product.operands:
        base, degree, rest = degree_of(op)
        whole = base is below and word == product.out and degree.denominator == 1 and rest is None
        if whole and degree < 0:
            found -= int(degree)
        else:
            kept.append((op, word))
    return product._replace(operands=kept), found


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
