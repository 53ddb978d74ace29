"""The canonical order of axes of sums and applications, and the symmetries of sums.

An axis is known by the operands and their axes that it indexes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

from ..support.limits import spend
from .canonical import axis_symmetries, closure
from .extents import number
from .nodes import Add, Einsum, Expr, Permutation
from .products import multiple, permuted, symmetries

MINUS = number(-1)
MAX_ORIENTATIONS = 24
#: Axes that are looked for among axes in a step.
PLACED_A_STEP = 8


def inverse_permutation(perm: Sequence[int]) -> Permutation:
    back = [0] * len(perm)
    for k, p in enumerate(perm):
        back[p] = k
    return tuple(back)


def canonical_axes(items: Sequence[Expr], ordered: bool) -> Permutation:
    """The order of axes that does not depend on the order in which they are given.

    Ties are broken by the least operands that an order gives; in sums before that by which axes
    they stand on and by their signs, so that differences of all pairs are x_i - x_j whatever x is.
    `ordered`: operands cannot change places.
    """
    ndim = items[0].ndim
    identity = tuple(range(ndim))
    viewed = any(isinstance(e, Einsum) and not e.summed for e in items)
    if ndim < 2 or (not viewed and (ordered or len({id(e) for e in items}) == 1)):
        return identity
    spend("steps", ndim * sum([e.ndim for e in items]) // PLACED_A_STEP)
    profiles = [
        tuple(sorted(p for k, e in enumerate(items) for p in _places(e, axis, k if ordered else 0)))
        for axis in identity
    ]
    base = sorted(identity, key=lambda axis: (profiles[axis], axis))
    best = tuple(base)
    if ndim > 5 or len({*profiles}) == ndim:
        return best
    options = [
        p for p in permutations(identity) if [profiles[a] for a in p] == [profiles[a] for a in base]
    ]
    best_key: tuple[Any, ...] = ()
    for perm in options[:MAX_ORIENTATIONS]:
        turned = [permuted(e, perm) for e in items]
        orders = [e.order for e in turned]
        key = ([], orders) if ordered else (sorted(map(_standing, turned)), sorted(orders))
        if not best_key or key < best_key:
            best, best_key = perm, key
    return best


def _standing(e: Expr) -> tuple[Any, ...]:
    """The axes that the operands of a term stand on, and its number: larger ones first."""
    if not isinstance(e, Einsum) or e.summed:
        return (), -1
    return tuple(sorted(e.labels)), -e.coef.value


def _places(e: Expr, axis: int, tag: int) -> list[Any]:
    if isinstance(e, Einsum) and not e.summed:
        label = e.out[axis]
        repeats = e.out.count(label)
        found = [
            (arg.order, tag, _orbit(arg, k), repeats)
            for arg, word in zip(e.args, e.labels, strict=True)
            for k, other in enumerate(word)
            if other == label
        ]
        return found or [((99, "", b""), tag, -1, repeats)]
    return [(e.order, tag, _orbit(e, axis), 1)]


def _orbit(e: Expr, axis: int, further: tuple[Permutation, ...] = ()) -> int:
    return min([axis, *[perm[axis] for perm in symmetries(e)], *[perm[axis] for perm in further]])


# --- symmetries of sums ---------------------------------------------------------------------------


def sum_symmetries(e: Add) -> tuple[tuple[Permutation, ...], tuple[Permutation, ...]]:
    """Permutations of axes that permute the terms, and those that turn each into minus one.

    Candidates keep which axes of which operands each axis is, as few permutations do.
    """
    spend("steps", e.ndim**2 * len(e.args) // PLACED_A_STEP)
    places = [sorted([p for t in e.args for p in _stands(t, axis)]) for axis in range(e.ndim)]
    candidates = [
        perm for perm in axis_symmetries(e.shape) if [places[axis] for axis in perm] == places
    ]
    if not candidates:
        return (), ()
    # all are held while ids are compared: the id of a collected node may be reused
    turned = {perm: [permuted(t, perm) for t in e.args] for perm in candidates}
    negative = [multiple(t, MINUS) for t in e.args]
    same = [perm for perm, terms in turned.items() if _equal_terms(terms, e.args)]
    antisymmetries = [perm for perm, terms in turned.items() if _equal_terms(terms, negative)]
    return closure(same), tuple(antisymmetries)


def signs_below(e: Expr) -> int:
    """Of how many functions one on the other signs come: its own, or of a product's operands."""
    return max([op._signs for op in e.args], default=0) if isinstance(e, Einsum) else e._signs


def _equal_terms(some: Sequence[Expr], others: Sequence[Expr]) -> bool:
    return set(map(id, some)) == set(map(id, others))


def _stands(e: Expr, axis: int) -> list[Any]:
    """Where an axis stands in the operands, up to their symmetries and antisymmetries."""
    if not isinstance(e, Einsum) or e.summed:
        return [(e.order, _orbit(e, axis, e._antisymmetries))]
    label = e.out[axis]
    return [
        (arg.order, _orbit(arg, k, arg._antisymmetries))
        for arg, word in zip(e.args, e.labels, strict=True)
        for k, other in enumerate(word)
        if other == label
    ]
