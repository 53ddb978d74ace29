"""Laws of quotients and powers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any

from ..graph.extents import ONE, Coef, number, quotient_of
from ..graph.nodes import Apply, Einsum, Expr, Labels
from ..graph.normal import add, built, einsum
from ..graph.operators import TABLE
from ..graph.products import numeric_value
from ..ops.arithmetic import sum
from ..ops.elementwise import power, reciprocal
from .laws import law
from .powers import RECIPROCAL, degree_of, powers
from .products import opened


@law("quotient", "x./y = x .* reciprocal(y)", "divide", directed=True)
def _quotient(e: Expr) -> Iterable[Expr | None]:
    """Quotients are products, so that factors meet; notation writes them as quotients again."""
    above, below = e.args
    axes = range(e.ndim)
    yield einsum([above, reciprocal(below)], [axes, axes], axes)


@law(
    "guarded-reciprocal", "reciprocal0(x) = reciprocal(x)", "reciprocal0", directed=True,
    given="a norm whose derivative is printed is not 0",
)  # fmt: skip
def _guarded(e: Expr) -> Iterable[Expr | None]:
    yield reciprocal(e.args[0])


@law(
    "reciprocal-of-product", "reciprocal(2*x .* y) = reciprocal(x) .* reciprocal(y)/2",
    "reciprocal", directed=True,
)  # fmt: skip
def _of_product(e: Expr) -> Iterable[Expr | None]:
    (inner,) = e.args
    if isinstance(inner, Apply) and inner.op is RECIPROCAL:
        yield inner.args[0]
    if not isinstance(inner, Einsum) or inner.summed or len(set(inner.out)) < len(inner.out):
        return
    coef = inner.coef
    if not inner.args or not coef.value:
        return
    turned = Coef(quotient_of(1, coef.value), coef.over, coef.times)
    ops = [reciprocal(op) for op in inner.args]
    yield einsum(ops, inner.labels, inner.out, turned, dict(enumerate(inner.extents)))


# --- powers ---------------------------------------------------------------------------------------


@law(
    "powers-of-one-base", "x .* reciprocal(y) .* y .* x.^a = x.^(a + 1)", "Einsum",
    directed=True, given="what is divided by is not 0",
)  # fmt: skip
def _powers_of_one_base(e: Expr) -> Iterable[Expr | None]:
    assert isinstance(e, Einsum)
    if len(e.args) < 2:
        return
    found: dict[tuple[int, Labels], list[Any]] = {}
    for op, word in zip(e.args, e.labels, strict=True):
        base, degree, rest = degree_of(op)
        entry = found.setdefault((id(base), word), [base, Fraction(0), None, [], base])
        entry[1] += degree
        if rest is not None:
            entry[2] = rest if entry[2] is None else add([entry[2], rest])
        entry[3].append(op)
    ops: list[Expr] = []
    words: list[Labels] = []
    changed = False
    for (_, word), (base, degree, rest, old, _) in found.items():
        new = powers(base, degree, rest) if len(old) > 1 else old
        changed = changed or sorted(map(id, new)) != sorted(map(id, old))
        ops += new
        words += [word] * len(new)
    # Where nothing is left at a label that is summed, ones are.
    left = set(range(len(e.extents))).difference(e.out, *words)
    ops += [einsum([], [], (0,), ONE, {0: e.extents[label]}) for label in left]
    words += [(label,) for label in left]
    if changed:
        yield einsum(ops, words, e.out, e.coef, dict(enumerate(e.extents)))


@law(
    "power-beside-its-base", "x .* reciprocal(y) .* (x .* reciprocal(y)).^(a - 1) = "
    "(x .* reciprocal(y)).^a", "Einsum", directed=True, given="what is divided by is not 0",
)  # fmt: skip
def _power_beside_base(e: Expr) -> Iterable[Expr | None]:
    """All factors of a product, or what they are divided by, beside a power of it."""
    product = opened(e)
    held: dict[tuple[int, Labels], Fraction] = {}
    for op, word in product.operands:
        base, degree, rest = degree_of(op)
        if rest is None:
            held[id(base), word] = held.get((id(base), word), Fraction(0)) + degree
    for k, (op, word) in enumerate(product.operands):
        base, degree, rest = degree_of(op)
        whole = isinstance(base, Einsum) and not base.summed and not base.coef.zero
        if rest is None or not isinstance(base, Einsum) or not whole or len(base.args) < 2:
            continue
        place = dict(zip(base.out, word, strict=True))
        inside = [
            (degree_of(f), tuple([place[i] for i in w]))
            for f, w in zip(base.args, base.labels, strict=True)
        ]
        for sign in (1, -1):
            if all(
                own is None and sign * held.get((id(b), w), 0) / d >= 1 for (b, d, own), w in inside
            ):
                undone = [(f, w) for (b, d, _), w in inside for f in powers(b, -sign * d, None)]
                merged = powers(base, degree + sign, rest)
                operands = [*product.operands[:k], *product.operands[k + 1 :], *undone]
                coef = product.coef.by(base.coef.inverse() if sign > 0 else base.coef)
                operands += [(f, word) for f in merged]
                yield built(product._replace(operands=operands, coef=coef))
                return


@law("power-of-power", "(1./x).^3 = 1./(x.^3)", "power", directed=True)
def _power_of_power(e: Expr) -> Iterable[Expr | None]:
    base, degree, rest = degree_of(e)
    if rest is None and base is not e and base is not e.args[0]:
        found = powers(base, degree, None)
        axes = range(e.ndim)
        yield einsum(found, [axes] * len(found), axes)


#: Powers of products that are written as products of powers.
WHOLE = frozenset({*range(-16, 0), *range(1, 17)})


def _of_factors(e: Expr, one_base: bool) -> Iterator[Expr]:
    """The power of a product by its factors' powers: are they all of one base?"""
    inner, degree = e.args[0], numeric_value(e.args[1])
    if not isinstance(inner, Einsum) or inner.summed or len(set(inner.out)) < len(inner.out):
        return
    if (
        degree is None
        or degree not in WHOLE
        or not inner.args
        or inner.coef != Coef(inner.coef.value)
    ):
        return
    bases = {
        (id(degree_of(op)[0]), word) for op, word in zip(inner.args, inner.labels, strict=True)
    }
    size = math.prod([float(inner.coef.value)] * abs(int(degree)))  # infinite beyond all numbers
    value = size if degree > 0 or not size else quotient_of(1, size)
    if value and math.isfinite(value) and (len(bases) == 1) == one_base:
        ops = [power(op, degree) for op in inner.args]
        yield einsum(ops, inner.labels, inner.out, number(value), dict(enumerate(inner.extents)))


@law("power-of-multiple", "(2*x.^2).^3 = 8*x.^6", "power", directed=True)
def _power_of_multiple(e: Expr) -> Iterable[Expr | None]:
    yield from _of_factors(e, True)


@law("power-of-product", "(2*x .* y).^3 = 8*x.^3 .* y.^3", "power")
def _power_of_product(e: Expr) -> Iterable[Expr | None]:
    yield from _of_factors(e, False)


@law("norm-in-product", "norm2(x)*(x'*x) = norm2(x)^3", "Einsum", directed=True)
def _norm_in_product(e: Expr) -> Iterable[Expr | None]:
    """A sum of squares beside the norm is its square."""
    assert isinstance(e, Einsum)
    bases = [degree_of(op)[0] for op in e.args]
    for norm in bases:
        if not isinstance(norm, Apply) or norm.op is not TABLE["norm2"]:
            continue
        (x,) = norm.args
        squares = sum(x * x, tuple(range(norm.ndim, x.ndim)))
        for k, base in enumerate(bases):
            if base is squares:
                degree = degree_of(e.args[k])[1]
                ops = [*e.args[:k], power(norm, float(2 * degree)), *e.args[k + 1 :]]
                yield einsum(ops, e.labels, e.out, e.coef, dict(enumerate(e.extents)))
                return
