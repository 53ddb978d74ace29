"""Contraction paths: the order in which the operands of a product are multiplied pairwise.

Exact over all binary trees (outer products too) for few operands, and for chains of many; for other
products of many the better of two greedy paths. The measure is predicted time in units of one
elementwise operation: entries read and written, and multiply-adds of a matrix product, which run
faster than elementwise ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from ..graph.nodes import Labels
from ..support.limits import spend
from ..support.machine import NOMINAL_MACHINE, Machine
from ..support.records import NamedTuple
from .chains import chain_of, chain_pairs
from .common_subproducts import ContractionOperands, Isomorphism, isomorphism

Pairs = tuple[tuple[int, int], ...]
KnownProducts = tuple[tuple[int, int], ...]

#: Operands up to which all trees are searched.
EXACT_OPERANDS = 8
#: Steps of a pair that a greedy path considers, and labels of its product for one step more.
CONSIDERED, LABELS_A_STEP = 3, 5
#: Factor by which a time must improve: sums in another order differ by rounding.
ROUNDING = 1 + 1e-9


class Path(NamedTuple):
    """A contraction path.

    Attributes
    ----------
    pairs : tuple of (int, int)
        Operands to multiply; each product is appended to the list of operands.
    words : tuple of labels
        The labels with which the operands are read.
    time : float
        Predicted.
    """

    pairs: Pairs
    words: tuple[Labels, ...]
    time: float


@lru_cache(maxsize=1 << 14)
def contraction_path(
    given: ContractionOperands,
    keep: Labels,
    extents: tuple[int, ...],
    known: KnownProducts = (),
    machine: Machine = NOMINAL_MACHINE,
) -> Path:
    """The fastest contraction path that is found.

    Parameters
    ----------
    given : ContractionOperands
        No label twice in one word. A label of one operand only is in `keep`.
    keep : tuple of int
        Labels of the result.
    extents : tuple of int
        Extent of each label.
    known : tuple of (int, int)
        Sets of operands, as bits, whose product is known already and takes no time, each with one
        of the two sets that it is the product of. Ignored where there are many operands.
    machine : Machine
        Whose speeds times are predicted from.
    """
    words = given.words
    if len(words) > EXACT_OPERANDS:
        chain = None if any(given.chosen) else chain_of(words, keep, extents)
        if chain is not None:
            pairs = tuple(chain_pairs(chain, machine))
            return Path(pairs, words, _path_time(given, keep, extents, pairs, machine))
        found = [_greedy(words, keep, extents, smallest) for smallest in (False, True)]
        timed = [
            Path(pairs, words, _path_time(given, keep, extents, pairs, machine)) for pairs in found
        ]
        return min(timed, key=lambda path: path.time)
    if len(words) > 2:
        return _ExactSearch(given, keep, extents, dict(known), machine).run()
    pairs = ((0, 1),) if len(words) == 2 else ()
    return Path(pairs, words, _path_time(given, keep, extents, pairs, machine))


def path_of(
    words: Sequence[Labels],
    keep: Sequence[int],
    extents: Mapping[int, int],
    arrays: Sequence[tuple[int, tuple[Labels, ...]]] = (),
    known: KnownProducts = (),
) -> Path:
    """The path of a product, whatever its labels are.

    Labels twice in a word are read as one; those that only one word has are summed before. Which
    array each operand is, and permutations of axes that leave it unchanged, are for operands
    without such labels; where nothing is said all arrays differ. The words of the path are the
    labels with which the operands are read.
    """
    uses = Counter([label for word in words for label in set(word)])
    number: dict[int, int] = {}
    for word in words:
        for label in word:
            if uses[label] > 1 or label in keep:
                number.setdefault(label, len(number))
    short = [tuple(dict.fromkeys([number[i] for i in word if i in number])) for word in words]
    alike: list[tuple[int, tuple[Labels, ...]]] = [(-k, ()) for k in range(len(words))]
    for k, known_as in enumerate(arrays):
        if len(short[k]) == len(words[k]):
            alike[k] = known_as
    places: dict[int, int] = {}
    same = tuple([places.setdefault(array, len(places)) for array, _ in alike])
    given = ContractionOperands(tuple(short), same, tuple([perms for _, perms in alike]))
    kept = tuple(sorted({number[label] for label in keep if label in number}))
    found = contraction_path(given, kept, tuple([extents[label] for label in number]), known)
    labels = list(number)
    spelled = [
        tuple([labels[i] for i in new]) if len(new) == len(word) else word
        for new, word in zip(found.words, words, strict=True)
    ]
    return found._replace(words=tuple(spelled))


def _bits(word: Sequence[int]) -> int:
    mask = 0
    for label in word:
        mask |= 1 << label
    return mask


class EntryCounts(dict[int, float]):
    """Number of entries of an array, by the set of its labels as bits."""

    def __init__(self, extents: Sequence[int]) -> None:
        super().__init__()
        self.extents = extents

    def __missing__(self, mask: int) -> float:
        size, rest = 1.0, mask
        while rest:
            lowest = rest & -rest
            size *= self.extents[lowest.bit_length() - 1]
            rest ^= lowest
        self[mask] = size
        return size


def pair_time(a: int, b: int, result: int, size: Callable[[int], float], machine: Machine) -> float:
    """Predicted time of one pairwise product, labels given as bits."""
    traffic = (size(a) + size(b)) * machine.read + size(result) * machine.write
    return traffic if a | b == result else traffic + size(a | b) / machine.gemm


class _OperandLabels(NamedTuple):
    """Labels of one operand of a product, as bits.

    A selection tensor has labels `chosen` that it selects, and `places` for its other ones. It is
    never an array: a product of selection tensors takes no time and sums no label, until it gathers
    entries of an array or scatters them.
    """

    labels: int
    places: int = 0
    chosen: int = 0


def _operand_labels(given: ContractionOperands) -> list[_OperandLabels]:
    """The operands of a product."""
    sides = []
    for k, word in enumerate(given.words):
        count = given.chosen[k] if given.chosen else 0
        first = len(word) - count
        index = _bits(word[:first]) if count else 0
        sides.append(_OperandLabels(_bits(word), index, _bits(word[first:])))
    return sides


def _joint_selection(a: _OperandLabels, b: _OperandLabels) -> _OperandLabels | None:
    """Two selection tensors as one; None where one selects by what the other one selects."""
    index, chosen = a.places | b.places, a.chosen | b.chosen
    apart = a.chosen and b.chosen and not a.chosen & b.chosen and not index & chosen
    return _OperandLabels(index | chosen, index, chosen) if apart else None


def _product_labels(a: _OperandLabels, b: _OperandLabels, result: int) -> _OperandLabels:
    return _joint_selection(a, b) or _OperandLabels(result)


def _product_time(
    a: _OperandLabels,
    b: _OperandLabels,
    result: int,
    size: Callable[[int], float],
    machine: Machine,
) -> float:
    """Predicted time of one pairwise product, of selection tensors too."""
    if not a.chosen and not b.chosen:
        return pair_time(a.labels, b.labels, result, size, machine)
    extra = 0.0
    if a.chosen and b.chosen:
        if _joint_selection(a, b) is not None:
            return 1.0
        extra = size(b.labels)
    elif b.chosen:
        a, b = b, a
    return extra + machine.lookup * size((b.labels | a.places) & ~a.chosen) + size(result)


Tree = int | tuple["Tree", "Tree"]


class _ExactSearch:
    """The fastest tree, by dynamic programming over subsets of the operands, as bits.

    Where both sides of a split are isomorphic, only one of them is computed.
    """

    def __init__(
        self,
        given: ContractionOperands,
        keep: Labels,
        extents: Sequence[int],
        known: Mapping[int, int],
        machine: Machine,
    ) -> None:
        self.given, self.known, self.machine = given, known, machine
        words, n = given.words, len(given.words)
        self.full = (1 << n) - 1
        self.size = EntryCounts(extents).__getitem__
        touched, arrays = [0] * (self.full + 1), [0] * (self.full + 1)
        for subset in range(1, self.full + 1):
            low = subset & -subset
            k = low.bit_length() - 1
            touched[subset] = touched[subset ^ low] | _bits(words[k])
            arrays[subset] = arrays[subset ^ low] + (n + 1) ** given.arrays[k]
        outside = _bits(keep)
        self.kept = [t & (outside | touched[self.full ^ s]) for s, t in enumerate(touched)]
        #: How often each array occurs in a subset, as digits in base n + 1.
        self.arrays = arrays
        self.repeated = len(set(given.arrays)) < n
        self.plain = not any(given.chosen)
        self.sides = [_OperandLabels(k) for k in self.kept]
        #: The time of every subset, and a lower bound of it as one side of a split: computing and
        #: reading it. What never changes takes no time, but inside of what is made once.
        self.once = [0.0] * (self.full + 1), [0.0] * (self.full + 1)
        self.paid = ([0.0] * (self.full + 1), [0.0] * (self.full + 1)) if given.fixed else self.once
        self.trees: list[Tree] = [0] * (self.full + 1)
        self.spelled: list[dict[int, Labels]] = [{} for _ in range(self.full + 1)]

    def run(self) -> Path:
        operands = _operand_labels(self.given)
        for subset in range(1, self.full + 1):
            low = subset & -subset
            if subset == low:
                self.trees[subset] = k = low.bit_length() - 1
                if operands[k].chosen:
                    self.sides[subset] = operands[k]
            elif subset in self.known:
                half = self.known[subset]
                self.trees[subset] = self.trees[half], self.trees[subset ^ half]
            else:
                self.split(subset, low)
            reading = self.size(self.kept[subset]) * self.machine.read if self.plain else 0.0
            for best, lower in (self.once, self.paid):
                lower[subset] = best[subset] + reading
        words, found = self.given.words, self.spelled[self.full]
        spelled = tuple([found.get(k, word) for k, word in enumerate(words)])
        return Path(_pairs_of(self.trees[self.full], len(words)), spelled, self.paid[0][self.full])

    def split(self, subset: int, low: int) -> None:
        """The best split of a subset; the part with its lowest operand first."""
        kept, size, plain = self.kept, self.size, self.plain
        best, lower = self.paid if subset & ~self.given.fixed else self.once
        machine, sides, gemm = self.machine, self.sides, self.machine.gemm
        rest = part = subset ^ low
        result = kept[subset]
        if not plain:
            sides[subset] = _product_labels(sides[low], sides[rest], result)
        writing = size(result) * machine.write if plain else 0.0
        least, chosen, pair = float("inf"), low, None
        while part:
            part = (part - 1) & rest
            one, two = part | low, rest ^ part
            same = self.isomorphism(one, two) if self.repeated and part else None
            if same:
                time = best[one] + _product_time(sides[one], sides[two], result, size, machine)
            else:
                time = lower[one] + lower[two] + writing
                if time >= least:
                    continue
                if not plain:
                    time += _product_time(sides[one], sides[two], result, size, machine)
                elif (joined := kept[one] | kept[two]) != result:
                    time += size(joined) / gemm
            if time * ROUNDING < least:
                least, chosen, pair = time, one, same
        self.once[0][subset] = least
        if subset & ~self.given.fixed:
            self.paid[0][subset] = least
        self.join(subset, chosen, pair)

    def isomorphism(self, one: int, two: int) -> Isomorphism | None:
        if self.arrays[one] != self.arrays[two]:
            return None
        return isomorphism(
            self.given, _members(one), _members(two), (self.kept[one], self.kept[two])
        )

    def join(self, subset: int, chosen: int, pair: Isomorphism | None) -> None:
        other = subset ^ chosen
        second, words = self.trees[other], self.spelled[other]
        if pair is not None:
            second = _with_operands(self.trees[chosen], pair.partners)
            words = {pair.partners[k]: word for k, word in pair.words.items()}
        self.trees[subset] = self.trees[chosen], second
        self.spelled[subset] = self.spelled[chosen] | words


def _members(subset: int) -> list[int]:
    return [k for k in range(subset.bit_length()) if subset >> k & 1]


def _with_operands(tree: Tree, names: Mapping[int, int]) -> Tree:
    if isinstance(tree, int):
        return names[tree]
    return _with_operands(tree[0], names), _with_operands(tree[1], names)


def _pairs_of(tree: Tree, n: int) -> Pairs:
    """The products of a tree, operands before results."""
    pairs: list[tuple[int, int]] = []

    def place(node: Tree) -> int:
        if isinstance(node, int):
            return node
        pairs.append((place(node[0]), place(node[1])))
        return n + len(pairs) - 1

    place(tree)
    return tuple(pairs)


def _greedy(words: Sequence[Labels], keep: Labels, extents: Sequence[int], smallest: bool) -> Pairs:
    """Pairs by the size of their product, or by how much less memory it takes than they do."""
    from opt_einsum.paths import greedy

    def cost(size12: int, size1: int, size2: int, labels12: frozenset[int], *_: object) -> int:
        spend("steps", CONSIDERED + len(labels12) // LABELS_A_STEP)
        return size12 if smallest else size12 - size1 - size2

    sizes = dict(enumerate(extents))
    linear = greedy([frozenset(w) for w in words], frozenset(keep), sizes, cost_fn=cost)
    place = list(range(len(words)))
    pairs = []
    for step, taken in enumerate(linear):
        chosen = [place[k] for k in taken]
        place = [p for k, p in enumerate(place) if k not in taken] + [len(words) + step]
        pairs.append((chosen[0], chosen[-1]))
    return tuple(pairs)


def _path_time(
    given: ContractionOperands, keep: Labels, extents: Sequence[int], pairs: Pairs, machine: Machine
) -> float:
    size = EntryCounts(extents).__getitem__
    sides = _operand_labels(given)
    uses = Counter([label for word in (*given.words, keep) for label in word])
    total = 0.0
    for i, j in pairs:
        a, b = sides[i].labels, sides[j].labels
        result, shared = a | b, a & b
        while shared:
            label = (shared & -shared).bit_length() - 1
            shared ^= 1 << label
            uses[label] -= 1
            if uses[label] == 1:
                result ^= 1 << label
        total += _product_time(sides[i], sides[j], result, size, machine)
        sides.append(_product_labels(sides[i], sides[j], result))
    return total
