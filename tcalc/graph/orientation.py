"""The canonical order of axes of sums and applications, and the symmetries of sums.

An axis is known by the operands and their axes that it indexes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, permutations
from typing import Any

from ..support.limits import spend
from .canonical import axis_symmetries, closure, orbits
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
    if ndim < 2 or not viewed:
        return identity
    spend("steps", ndim * sum([e.ndim for e in items]) // PLACED_A_STEP)
    places = [_places(e, k if ordered else 0) for k, e in enumerate(items)]
    profiles = [tuple(sorted(chain.from_iterable(own))) for own in zip(*places, strict=True)]
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


def _places(e: Expr, tag: int) -> list[list[Any]]:
    """For every axis, where it stands in operands, up to their symmetries."""
    if not isinstance(e, Einsum) or e.summed:
        return [[(e.order, tag, k, 1)] for k in orbits(e.ndim, symmetries(e))]
    found: dict[int, list[Any]] = {label: [] for label in e.out}
    repeats = {label: e.out.count(label) for label in found}
    for arg, word in zip(e.args, e.labels, strict=True):
        for label, k in zip(word, orbits(arg.ndim, symmetries(arg)), strict=True):
            found[label].append((arg.order, tag, k, repeats[label]))
    return [found[label] or [((99, "", b""), tag, -1, repeats[label])] for label in e.out]


# --- symmetries of sums ---------------------------------------------------------------------------


def sum_symmetries(e: Add) -> tuple[tuple[Permutation, ...], tuple[Permutation, ...]]:
    """Permutations of axes that permute the terms, and those that turn each into minus one.

    Candidates keep which axes of which operands each axis is, as few permutations do.
    """
    spend("steps", e.ndim**2 * len(e.args) // PLACED_A_STEP)
    candidates = axis_symmetries(e.shape)
    if candidates:
        stands = zip(*map(_stands, e.args), strict=True)
        places = [sorted(chain.from_iterable(own)) for own in stands]
        candidates = [perm for perm in candidates if [places[axis] for axis in perm] == places]
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


def _stands(e: Expr) -> list[list[Any]]:
    """For every axis, where it stands in operands, up to their symmetries and antisymmetries."""

    def turned(op: Expr) -> Sequence[int]:
        return orbits(op.ndim, (*symmetries(op), *op._antisymmetries))

    if not isinstance(e, Einsum) or e.summed:
        return [[(e.order, k)] for k in turned(e)]
    found: dict[int, list[Any]] = {label: [] for label in e.out}
    for arg, word in zip(e.args, e.labels, strict=True):
        for label, k in zip(word, turned(arg), strict=True):
            found[label].append((arg.order, k))
    return [found[label] for label in e.out]
