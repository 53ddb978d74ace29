"""Contraction paths: in which order the operands of a product are multiplied pairwise.

Exact over all trees (outer products too) for few operands, the better of two greedy orders for
many. The measure is predicted time in units of one elementwise operation: entries read and written,
and multiply-adds of a matrix product, which run faster than elementwise ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from .twins import Operands, Word, twin

Pairs = tuple[tuple[int, int], ...]

EXACT_OPERANDS = 8
#: Multiply-adds of a matrix product in the time of one elementwise operation.
GEMM_SPEED = 8.0
#: Sums of times in another order, for comparison: equal to rounding.
NEARLY = 1 + 1e-9


#: Elementwise operations in the time of taking an entry by an integer, or adding one at its place.
LOOKUP = 2.0


class Path(NamedTuple):
    """Pairs of operands to multiply, each product joining the list at its end; words to read."""

    pairs: Pairs
    words: tuple[Word, ...]
    time: float


@lru_cache(maxsize=4096)
def contraction_path(given: Operands, keep: Word, extents: tuple[int, ...]) -> Path:
    """The order in which to multiply.

    Parameters
    ----------
    given : Operands
        No label twice in one word. A label of one operand only is in `keep`.
    keep : tuple of int
        Labels of the result.
    extents : tuple of int
        Extent of each label.
    """
    words = given.words
    if len(words) > EXACT_OPERANDS:
        found = [_greedy(words, keep, extents, smallest) for smallest in (False, True)]
        timed = [Path(pairs, words, _path_time(given, keep, extents, pairs)) for pairs in found]
        return min(timed, key=lambda path: path.time)
    if len(words) > 2:
        return _exact(given, keep, extents)
    pairs = ((0, 1),) if len(words) == 2 else ()
    return Path(pairs, words, _path_time(given, keep, extents, pairs))


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


class _Side(NamedTuple):
    """Labels of one side of a product as bits; of a selection tensor those that it is read by.

    `chosen` are the labels that a selection tensor selects, `places` its other ones. It is no
    array: a product of such tensors takes no time, and no label is summed, until entries are taken
    by it or added at its places.
    """

    labels: int
    places: int = 0
    chosen: int = 0


def _sides(given: Operands) -> list[_Side]:
    """The operands of a product."""
    sides = []
    for k, word in enumerate(given.words):
        count = given.chosen[k] if given.chosen else 0
        first = len(word) - count
        index = _mask(word[:first]) if count else 0
        sides.append(_Side(_mask(word), index, _mask(word[first:])))
    return sides


def _joint(a: _Side, b: _Side) -> _Side | None:
    """Two selection tensors as one, unless one selects by what the other one selects."""
    index, chosen = a.places | b.places, a.chosen | b.chosen
    apart = a.chosen and b.chosen and not a.chosen & b.chosen and not index & chosen
    return _Side(index | chosen, index, chosen) if apart else None


def _product_side(a: _Side, b: _Side, result: int) -> _Side:
    return _joint(a, b) or _Side(result)


def _side_time(a: _Side, b: _Side, result: int, size: Callable[[int], float]) -> float:
    """Predicted time of one pairwise product, of selection tensors too."""
    if not a.chosen and not b.chosen:
        return pair_time(a.labels, b.labels, result, size)
    extra = 0.0
    if a.chosen and b.chosen:
        if _joint(a, b) is not None:
            return 1.0
        extra = size(b.labels)
    elif b.chosen:
        a, b = b, a
    return extra + LOOKUP * size((b.labels | a.places) & ~a.chosen) + size(result)


Tree = int | tuple["Tree", "Tree"]


def _exact(given: Operands, keep: Word, extents: Sequence[int]) -> Path:
    """The fastest tree, by dynamic programming over subsets of the operands.

    Where both sides of a split are twins, one of them is made. Of equally fast trees, one that sums
    later labels first: those of an array's last axes, if labels are numbered by appearance.
    """
    words, n = given.words, len(given.words)
    full = (1 << n) - 1
    size = _Sizes(extents).__getitem__
    outside = _mask(keep)
    touched = [0] * (full + 1)
    arrays: list[tuple[int, ...]] = [()] * (full + 1)
    for subset in range(1, full + 1):
        low = subset & -subset
        k = low.bit_length() - 1
        touched[subset] = touched[subset ^ low] | _mask(words[k])
        arrays[subset] = tuple(sorted((*arrays[subset ^ low], given.arrays[k])))
    kept = [touched[s] & (outside | touched[full ^ s]) for s in range(full + 1)]
    operands, sides = _sides(given), [_Side(k) for k in kept]
    repeated = len(set(given.arrays)) < n
    best = [0.0] * (full + 1)
    trees: list[Tree] = [0] * (full + 1)
    spelled: list[dict[int, Word]] = [{} for _ in range(full + 1)]
    for subset in range(1, full + 1):
        low = subset & -subset
        rest = part = subset ^ low
        if not rest:
            trees[subset] = low.bit_length() - 1
            if operands[low.bit_length() - 1].chosen:
                sides[subset] = operands[low.bit_length() - 1]
            continue
        sides[subset] = _product_side(sides[low], sides[rest], kept[subset])
        least, chosen, pair, tie = float("inf"), low, None, 0
        while part:
            part = (part - 1) & rest
            one, two = part | low, rest ^ part
            same = None
            if repeated and part and arrays[one] == arrays[two]:
                same = twin(given, _places(one), _places(two), (kept[one], kept[two]))
            time = best[one] if same else best[one] + best[two]
            if time > least:
                continue
            time += _side_time(sides[one], sides[two], kept[subset], size)
            if time * NEARLY < least or (time <= least / NEARLY and kept[one] + kept[two] < tie):
                least, chosen, pair, tie = time, one, same, kept[one] + kept[two]
        best[subset] = least
        other = subset ^ chosen
        second, words_of_second = trees[other], spelled[other]
        if pair is not None:
            second = _renamed(trees[chosen], pair.partners)
            words_of_second = {pair.partners[k]: word for k, word in pair.words.items()}
        trees[subset] = trees[chosen], second
        spelled[subset] = spelled[chosen] | words_of_second
    found = tuple([spelled[full].get(k, word) for k, word in enumerate(words)])
    return Path(_listed(trees[full], n), found, best[full])


def _places(subset: int) -> list[int]:
    return [k for k in range(subset.bit_length()) if subset >> k & 1]


def _renamed(tree: Tree, names: Mapping[int, int]) -> Tree:
    if isinstance(tree, int):
        return names[tree]
    return _renamed(tree[0], names), _renamed(tree[1], names)


def _listed(tree: Tree, n: int) -> Pairs:
    """The products of a tree, operands before results."""
    pairs: list[tuple[int, int]] = []

    def place(node: Tree) -> int:
        if isinstance(node, int):
            return node
        pairs.append((place(node[0]), place(node[1])))
        return n + len(pairs) - 1

    place(tree)
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


def _path_time(given: Operands, keep: Word, extents: Sequence[int], pairs: Pairs) -> float:
    size = _Sizes(extents).__getitem__
    sides = _sides(given)
    uses = [0] * len(extents)
    for word in (*given.words, keep):
        for label in word:
            uses[label] += 1
    total = 0.0
    for i, j in pairs:
        a, b = sides[i].labels, sides[j].labels
        result = a | b
        for label in range(len(extents)):
            if a & b & 1 << label:
                uses[label] -= 1
                if uses[label] == 1:
                    result &= ~(1 << label)
        total += _side_time(sides[i], sides[j], result, size)
        sides.append(_product_side(sides[i], sides[j], result))
    return total
