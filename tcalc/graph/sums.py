"""Sums as lists of terms: distributing, flattening, collecting, and factors that terms share.

A product that is distributed is given as factors, for `tcalc.graph.normal` to build; so are terms
without a factor that they share. The caller decides when to distribute and when to factor out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from itertools import product
from math import inf
from typing import Any, TypeGuard, TypeVar

from ..support.records import NamedTuple
from .extents import Coef, sum_of
from .factors import Factors, enlarging, indicates, selects
from .nodes import Add, Einsum, Expr, Labels
from .products import atoms_of, multiple, split_coef

MAX_OPEN_TERMS = 16

FactorKey = TypeVar("FactorKey", bound=Hashable)

# --- terms ----------------------------------------------------------------------------------------


def distributed(e: Factors, sums: Mapping[int, Sequence[Expr]]) -> list[Factors]:
    """The products of which a product is the sum, its operand k being the sum of ``sums[k]``."""
    words = [word for _, word in e.operands]
    choices = [sums.get(k, (op,)) for k, (op, _) in enumerate(e.operands)]
    return [e._replace(operands=list(zip(ops, words, strict=True))) for ops in product(*choices)]


def flattened(
    e: Expr, terms: Callable[[Expr], Sequence[Expr] | None], most: float = inf
) -> list[Expr]:
    """Terms of sums inside sums, in order.

    ``terms(e)`` are those of one sum, None for what stays one term. Nothing is flattened any more
    once there are more than `most`.
    """
    found: list[Expr] = []
    waiting = [e]
    while waiting:
        term = waiting.pop()
        inner = terms(term) if len(found) + len(waiting) < most else None
        if inner is None:
            found.append(term)
        else:
            waiting.extend(reversed(inner))
    return found


def collected(items: Iterable[Expr]) -> list[Expr]:
    """A + A becomes 2 A; what cancels goes."""
    totals: dict[tuple[Any, ...], tuple[Coef, Expr]] = {}
    for t in items:
        coef, rest = split_coef(t)
        key = (id(rest), coef.times, coef.over)
        if key in totals:
            before = totals[key][0]
            coef = before._replace(value=sum_of(before.value, coef.value))
        totals[key] = (coef, rest)
    return [multiple(rest, coef) for coef, rest in totals.values() if not coef.zero]


# --- what terms share -----------------------------------------------------------------------------


class Shared(NamedTuple):
    """A factor at labels `word` of a product at `out`; the other factors' labels are `kept`."""

    factor: Expr
    word: Labels
    out: Labels
    kept: Labels


def most_shared(
    rows: Iterable[Iterable[FactorKey]], rank: Callable[[FactorKey], Any]
) -> tuple[FactorKey, list[int]] | None:
    """The key in most rows, of equals the least by rank, and these rows; None if all differ."""
    places: dict[FactorKey, list[int]] = {}
    for k, row in enumerate(rows):
        for key in row:
            places.setdefault(key, []).append(k)
    shared = [key for key, ks in places.items() if len(ks) > 1]
    if not shared:
        return None
    key = min(shared, key=lambda key: (-len(places[key]), rank(key)))
    return key, places[key]


def selections_of(e: Expr) -> list[Shared]:
    """Selection tensors among the factors of e whose last label stands in nothing else.

    S_ij a_i + S_ij b_i = S_ij (a + b)_i, as for unit tensors.
    """
    if not any(map(selects, outer_factors(e))):
        return []
    atoms, out, extents, _ = atoms_of(e)
    counts = Counter([label for word in (*[w for _, w in atoms], out) for label in word])
    return [
        Shared(arg, word, out, tuple([label for label in extents if label != word[-1]]))
        for arg, word in atoms
        if selects(arg) and counts[word[-1]] == 2
    ]


def lone_factors(e: Expr) -> list[Shared]:
    """Factors that share no label with the others and leave labels to the others."""
    if not isinstance(e, Einsum) or e.summed or len(e.args) < 2:
        return []
    words = [set(word) for word in e.labels]
    counts = Counter([label for word in words for label in word])
    lone = []
    for i, word in enumerate(words):
        alone = all(counts[label] == 1 for label in word)
        if alone and 0 < len(word) < len(counts) == len(e.extents):
            lone.append(Shared(e.args[i], e.labels[i], e.out, tuple(sorted(counts.keys() - word))))
    return lone


def without(e: Expr, shared: Shared) -> Factors:
    """The product e without a factor, its axes the labels that are left."""
    atoms, _, extents, coef = atoms_of(e)
    k = next(k for k, (op, w) in enumerate(atoms) if op is shared.factor and w == shared.word)
    return Factors(atoms[:k] + atoms[k + 1 :], shared.kept, extents, coef)


# --- what a term is -------------------------------------------------------------------------------


def embeds(e: Expr) -> TypeGuard[Einsum]:
    """Is e an array under unit tensors?"""
    return isinstance(e, Einsum) and len(set(e.out)) < len(e.out)


def low_order(e: Expr) -> bool:
    """Is e an outer product none of whose operands has all labels?"""
    if not isinstance(e, Einsum) or e.summed:
        return False
    return all(len(set(word)) < len(e.extents) for word in e.labels)


def shifts(e: Expr) -> bool:
    """Is an indicator a factor of e, or of a contraction with more axes than its other operands?"""
    return any(
        indicates(f)
        or (isinstance(f, Einsum) and any(indicates(a) for a in f.args) and enlarging(f))
        for f in outer_factors(e)
    )


def outer_factors(e: Expr) -> tuple[Expr, ...]:
    """The atoms of which e is an outer product."""
    return e.args if isinstance(e, Einsum) and not e.summed else (e,)


def structured(e: Add, known: Collection[int] = ()) -> bool:
    """Does some term carry a unit or selection tensor, and no other an operand with all labels?

    So does a term a factor of which is such a sum, perhaps shifted: `known` are the ids of these.
    """
    carries = False
    for term in e.args:
        inside = any(_stands_in(f, known) for f in outer_factors(term)) if known else False
        if inside or selections_of(term) or shifts(term):
            carries = True
            continue
        if not isinstance(term, Einsum) or term.summed:
            return False
        unit = embeds(term)
        if not unit and not low_order(term):
            return False
        carries = carries or unit
    return carries


def joins(e: Expr) -> bool:
    """Is a sum one of arrays beside each other, without unit or selection tensors?"""
    return isinstance(e, Add) and all(
        shifts(term) and not embeds(term) and not selections_of(term) for term in e.args
    )


def _stands_in(e: Expr, known: Collection[int]) -> bool:
    """Is e one of these sums, or one of them with indicators?"""
    shifted = isinstance(e, Einsum) and any(map(indicates, e.args))
    return id(e) in known or (shifted and any(id(a) in known for a in e.args))


def absent_axes(e: Expr) -> set[int]:
    """Axes that e is broadcast along; a contraction has none."""
    if not isinstance(e, Einsum):
        return set()
    standing = {label for word in e.labels for label in word}
    return {
        axis
        for axis, label in enumerate(e.out)
        if label not in standing and e.out.count(label) == 1
    }
