"""Contractions of a few arrays by labels, planned once per labels and extents.

Along the contraction path each pair of arrays is one matrix product, or one elementwise product
where no label is summed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod

import numpy as np

from ...contraction.paths import path_of
from ...graph.nodes import Labels
from ...support.arrays import Array
from ...support.namespaces import namespace_of

PairKernel = Callable[[Array, Array], Array]


def contract_arrays(
    arrays: Sequence[Array], words: tuple[Labels, ...], out: Labels, extents: tuple[int, ...]
) -> Array:
    """The product of arrays[k] with labels words[k], summed over labels that are not in `out`.

    Labels of `out` are distinct. The result may be a view of an operand, and is read-only where it
    is broadcast along a label of no operand.
    """
    return _planned(words, out, extents)(arrays)


@lru_cache(4096)
def _planned(words: tuple[Labels, ...], out: Labels, extents: tuple[int, ...]) -> Contraction:
    return Contraction(words, out, extents)


class Contraction:
    """A contraction planned: the path, and a kernel for each pair of operands.

    Attributes
    ----------
    fresh : bool
        Whether the result is a new array, never a view of an operand.
    """

    def __init__(self, words: tuple[Labels, ...], out: Labels, extents: tuple[int, ...]) -> None:
        self.unary: list[tuple[int, list[int], list[int]]] = []
        current: list[Labels] = []
        for k, word in enumerate(words):
            others = {label for j, w in enumerate(words) if j != k for label in w}.union(out)
            kept = tuple([label for label in dict.fromkeys(word) if label in others])
            if kept != word:
                ranks = {label: rank for rank, label in enumerate(dict.fromkeys(word))}
                self.unary.append((k, [ranks[i] for i in word], [ranks[i] for i in kept]))
            current.append(kept)
        self.pairs: list[tuple[int, int, PairKernel]] = []
        held = dict(enumerate(current))
        for i, j in path_of(current, out, dict(enumerate(extents))).pairs:
            one, other = held.pop(i), held.pop(j)
            if not held and _before(other, one, out):
                i, j, one, other = j, i, other, one
            keep = set(out).union(*held.values())
            pair, held[len(words) + len(self.pairs)] = _pair(one, other, keep, extents)
            self.pairs.append((i, j, pair))
        (last,) = held.values() or ((),)
        placed = [label for label in out if label in last]
        self.order = [last.index(label) for label in placed]
        self.straight = self.order == list(range(len(last)))
        complete = len(placed) == len(out)
        self.full = None if complete else tuple([extents[label] for label in out])
        self.spread = tuple([slice(None) if label in last else None for label in out])
        self.fresh = bool(self.pairs) and complete

    def __call__(self, arrays: Sequence[Array]) -> Array:
        held = dict(enumerate(arrays))
        for k, word, kept in self.unary:
            held[k] = namespace_of(held[k]).einsum(held[k], word, kept)
        for step, (i, j, pair) in enumerate(self.pairs, len(arrays)):
            held[step] = pair(held.pop(i), held.pop(j))
        result: Array = held.popitem()[1] if held else np.ones(())
        if not self.straight:
            result = result.transpose(self.order)
        if self.full is not None:
            result = namespace_of(result).broadcast_to(result[self.spread], self.full)
        return result


def _before(a: Labels, b: Labels, out: Labels) -> bool:
    """Whether the first label of a alone comes before the first of b alone in the result."""
    mine = [out.index(label) for label in a if label not in b and label in out]
    other = [out.index(label) for label in b if label not in a and label in out]
    return bool(mine) and bool(other) and min(mine) < min(other)


def _pair(
    wa: Labels, wb: Labels, keep: set[int], extents: tuple[int, ...]
) -> tuple[PairKernel, Labels]:
    shared = [label for label in wa if label in wb]
    summed = [label for label in shared if label not in keep]
    batch = [label for label in shared if label in keep]
    left = [label for label in wa if label not in shared]
    right = [label for label in wb if label not in shared]
    word = (*batch, *left, *right)
    if not summed:
        return _elementwise(wa, wb, word), word
    sizes = [prod([extents[label] for label in part]) for part in (batch, left, summed, right)]
    if batch and (sizes[1] == 1 or sizes[3] == 1):
        ranks = {label: rank for rank, label in enumerate(dict.fromkeys((*wa, *wb)))}
        a, b, c = ([ranks[label] for label in part] for part in (wa, wb, word))
        return (lambda x, y: namespace_of(x).einsum(x, a, y, b, c)), word
    return _matmul(wa, wb, (batch, left, summed, right), sizes, extents), word


def _elementwise(wa: Labels, wb: Labels, word: Labels) -> PairKernel:
    order_a = [wa.index(label) for label in word if label in wa]
    order_b = [wb.index(label) for label in word if label in wb]
    spread_a = tuple([slice(None) if label in wa else None for label in word])
    spread_b = tuple([slice(None) if label in wb else None for label in word])

    def multiply(x: Array, y: Array) -> Array:
        product: Array = x.transpose(order_a)[spread_a] * y.transpose(order_b)[spread_b]
        return product

    return multiply


def _matmul(
    wa: Labels,
    wb: Labels,
    parts: tuple[list[int], list[int], list[int], list[int]],
    sizes: list[int],
    extents: tuple[int, ...],
) -> PairKernel:
    batch, left, summed, right = parts
    order_a = [wa.index(label) for label in (*batch, *left, *summed)]
    order_b = [wb.index(label) for label in (*batch, *summed, *right)]
    lead = sizes[:1] if batch else []
    shape_a, shape_b = [*lead, sizes[1], sizes[2]], [*lead, sizes[2], sizes[3]]
    shape = tuple([extents[label] for label in (*batch, *left, *right)])

    def multiply(x: Array, y: Array) -> Array:
        a = x.transpose(order_a).reshape(shape_a)
        b = y.transpose(order_b).reshape(shape_b)
        product: Array = (a @ b).reshape(shape)
        return product

    return multiply
