"""Products with selection tensors that are gathers or sums by segments, for printing."""

from __future__ import annotations

from typing import NamedTuple

from ..expr import Einsum, Expr, Labels
from ..extents import ONE, Extent
from ..normal import einsum
from ..products import selects


class Gather(NamedTuple):
    """``array[keys]`` with its axes permuted.

    Attributes
    ----------
    keys : tuple of Expr or None
        The integers for each axis of the array; None takes all of the axis.
    perm : tuple of int
        Axis k of the product is axis perm[k] of the gather.
    """

    array: Expr
    keys: tuple[Expr | None, ...]
    perm: Labels


class Segments(NamedTuple):
    """``segment_sum(summand, index, extent)`` with its axes permuted."""

    summand: Expr
    index: Expr
    extent: Extent
    perm: Labels


def gather(node: Einsum) -> Gather | None:
    """The gather that a product is, if it is one."""
    if not node.summed:
        inner = _under_permutation(node)
        found = None if inner is None else gather(inner)
        return None if found is None else found._replace(perm=_composed(node, found.perm))
    arrays = [(op, w) for op, w in zip(node.args, node.labels, strict=True) if not selects(op)]
    chosen = {w[-1]: (op, w[:-1]) for op, w in zip(node.args, node.labels, strict=True)
              if selects(op)}  # fmt: skip
    if len(arrays) != 1 or len(chosen) + 1 != len(node.args) or not chosen:
        return None
    array, word = arrays[0]
    labels = {w for _, w in chosen.values() if w}
    shared = next(iter(labels), ())
    distinct = len(set(word + shared)) == len(word + shared)
    if len(labels) > 1 or not distinct or not chosen.keys() <= set(word) - set(node.out):
        return None
    natural = natural_order(word, tuple(chosen), shared)
    if sorted(natural) != sorted(node.out):
        return None
    keys = [chosen[label][0].args[0] if label in chosen else None for label in word]
    while keys[-1] is None:
        keys.pop()
    return Gather(array, tuple(keys), tuple([natural.index(label) for label in node.out]))


def natural_order(word: Labels, chosen: Labels, shared: Labels) -> Labels:
    """Axes of an indexed array in NumPy's order: those of the indices together, or in front."""
    places = [k for k, label in enumerate(word) if label in chosen]
    rest = tuple([label for label in word if label not in chosen])
    if places[-1] - places[0] + 1 > len(places):
        return shared + rest
    return rest[: places[0]] + shared + rest[places[0] :]


def _under_permutation(node: Einsum) -> Einsum | None:
    """The contraction that a product is with its axes in another order, if it is no more."""
    inner = node.args[0] if len(node.args) == 1 and node.coef == ONE else None
    if not isinstance(inner, Einsum) or not inner.summed:
        return None
    whole = len(set(node.out)) == len(node.out) == inner.ndim == len(set(node.labels[0]))
    return inner if whole else None


def _composed(node: Einsum, perm: Labels) -> Labels:
    return tuple([perm[node.labels[0].index(label)] for label in node.out])


def segments(node: Einsum) -> Segments | None:
    """The sum by segments that a contraction is, if it is one."""
    if not node.summed:
        inner = _under_permutation(node)
        found = None if inner is None else segments(inner)
        return None if found is None else found._replace(perm=_composed(node, found.perm))
    words = [label for word in node.labels for label in word]
    for k, (op, word) in enumerate(zip(node.args, node.labels, strict=True)):
        *places, value = word
        inside = value in node.out and words.count(value) == 1 and len(set(word)) == len(word)
        if not selects(op) or not places or not inside or set(places) & set(node.out):
            continue
        rest = [label for label in node.out if label != value]
        summand = einsum(
            [*node.args[:k], *node.args[k + 1 :]],
            [*node.labels[:k], *node.labels[k + 1 :]],
            [*places, *rest],
            ONE,
            dict(enumerate(node.extents)),
        )
        order = [value, *rest]
        perm = tuple([order.index(label) for label in node.out])
        return Segments(summand, op.args[0], node.extents[value], perm)
    return None
