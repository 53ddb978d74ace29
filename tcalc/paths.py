"""Contraction paths: in which order the operands of a product are multiplied pairwise.

Exact over all trees (outer products too) for few operands, the better of two greedy orders for
many. The measure is predicted time in units of one elementwise operation: entries read and written,
and multiply-adds of a matrix product, which run faster than elementwise ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

Word = tuple[int, ...]
Pairs = tuple[tuple[int, int], ...]

EXACT_OPERANDS = 8
#: Multiply-adds of a matrix product in the time of one elementwise operation.
GEMM_SPEED = 8


@lru_cache(maxsize=4096)
def contraction_path(words: tuple[Word, ...], keep: Word, extents: tuple[int, ...]) -> Pairs:
    """Pairs of operands to multiply; each product joins the list of operands at its end.

    Parameters
    ----------
    words : tuple of tuple of int
        Labels of each operand, no label twice in one. A label of one operand only is in `keep`.
    keep : tuple of int
        Labels of the result.
    extents : tuple of int
        Extent of each label.
    """
    if len(words) < 3:
        return ((0, 1),) if len(words) == 2 else ()
    if len(words) <= EXACT_OPERANDS:
        return _exact(words, keep, extents)
    return min(
        (_greedy(words, keep, extents, smallest) for smallest in (False, True)),
        key=lambda pairs: _path_time(words, keep, extents, pairs),
    )


def _mask(word: Sequence[int]) -> int:
    mask = 0
    for label in word:
        mask |= 1 << label
    return mask


class _Sizes(dict[int, float]):
    """Number of entries of an array, by the set of its labels as bits."""

    def __init__(self, extents: Sequence[int]) -> None:
        super().__init__()
        self.extents = extents

    def __missing__(self, mask: int) -> float:
        size = 1.0
        for label, extent in enumerate(self.extents):
            if mask >> label & 1:
                size *= extent
        self[mask] = size
        return size


def pair_time(a: int, b: int, result: int, size: Callable[[int], float]) -> float:
    """Predicted time of one pairwise product, labels given as bits."""
    traffic = (size(a) + size(b)) / 2 + size(result)
    return traffic if a | b == result else traffic + size(a | b) / GEMM_SPEED


def _exact(words: Sequence[Word], keep: Word, extents: Sequence[int]) -> Pairs:
    """The fastest tree, by dynamic programming over subsets of the operands."""
    n = len(words)
    full = (1 << n) - 1
    size = _Sizes(extents).__getitem__
    outside = _mask(keep)
    touched = [0] * (full + 1)
    for subset in range(1, full + 1):
        low = subset & -subset
        touched[subset] = touched[subset ^ low] | _mask(words[low.bit_length() - 1])
    kept = [touched[s] & (outside | touched[full ^ s]) for s in range(full + 1)]
    best = [0.0] * (full + 1)
    split = [0] * (full + 1)
    for subset in range(1, full + 1):
        low = subset & -subset
        rest = part = subset ^ low
        if not rest:
            continue
        least, chosen = float("inf"), low
        while part:
            part = (part - 1) & rest
            one, two = part | low, rest ^ part
            time = best[one] + best[two]
            if time < least:
                time += pair_time(kept[one], kept[two], kept[subset], size)
                if time < least:
                    least, chosen = time, one
        best[subset], split[subset] = least, chosen
    return _listed(split, n)


def _listed(split: Sequence[int], n: int) -> Pairs:
    """The tree below the full set as pairs, smaller products first."""
    full = len(split) - 1
    order, stack = [], [full]
    while stack:
        subset = stack.pop()
        if subset & (subset - 1):
            order.append(subset)
            stack += [split[subset], subset ^ split[subset]]
    place = {1 << k: k for k in range(n)}
    pairs = []
    for subset in reversed(order):
        one = split[subset]
        pairs.append((place[one], place[subset ^ one]))
        place[subset] = len(place)
    return tuple(pairs)


def _greedy(words: Sequence[Word], keep: Word, extents: Sequence[int], smallest: bool) -> Pairs:
    from opt_einsum.paths import greedy

    def result_size(size12: int, *_: int) -> int:
        return size12

    cost = result_size if smallest else "memory-removed"
    sizes = dict(enumerate(extents))
    linear = greedy([frozenset(w) for w in words], frozenset(keep), sizes, cost_fn=cost)
    place = list(range(len(words)))
    pairs = []
    for step, taken in enumerate(linear):
        chosen = [place[k] for k in taken]
        place = [p for k, p in enumerate(place) if k not in taken] + [len(words) + step]
        pairs.append((chosen[0], chosen[-1]))
    return tuple(pairs)


def _path_time(words: Sequence[Word], keep: Word, extents: Sequence[int], pairs: Pairs) -> float:
    size = _Sizes(extents).__getitem__
    masks = [_mask(word) for word in words]
    uses = [0] * len(extents)
    for word in (*words, keep):
        for label in word:
            uses[label] += 1
    total = 0.0
    for i, j in pairs:
        a, b = masks[i], masks[j]
        result = a | b
        for label in range(len(extents)):
            if a & b & 1 << label:
                uses[label] -= 1
                if uses[label] == 1:
                    result &= ~(1 << label)
        total += pair_time(a, b, result, size)
        masks.append(result)
    return total
