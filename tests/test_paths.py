"""Paths, renamings and chains, each beside all that could have been found.

Searches are compared with enumeration of all trees, renamings and orders, at random words.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from tcalc.contraction.chains import chain_of
from tcalc.contraction.common_subproducts import ContractionOperands, isomorphism
from tcalc.contraction.paths import Path, contraction_path
from tcalc.graph.nodes import Labels
from tcalc.support.machine import NOMINAL_MACHINE as MACHINE

Tree = Any  # an operand, or two trees
SEEDS = pytest.mark.parametrize("seed", range(25))


def bits(some: Any) -> int:
    return sum(1 << k for k in some)


# --- paths ----------------------------------------------------------------------------------------


def trees(operands: tuple[int, ...]) -> Iterator[Tree]:
    """All binary trees over some operands."""
    if len(operands) == 1:
        yield operands[0]
    first, *rest = operands
    for size in range(len(rest)):
        for some in itertools.combinations(rest, size):
            others = tuple([k for k in rest if k not in some])
            yield from itertools.product(trees((first, *some)), trees(others))


def leaves(tree: Tree) -> frozenset[int]:
    return frozenset([tree]) if isinstance(tree, int) else leaves(tree[0]) | leaves(tree[1])


class Product:
    """A random product of a few operands, and what its products take."""

    def __init__(self, rng: random.Random, count: int) -> None:
        self.count, self.extents = count, tuple([rng.choice([2, 3, 7, 20, 50]) for _ in range(5)])
        self.words: tuple[Labels, ...] = tuple(
            [tuple(rng.sample(range(5), rng.randint(1, 3))) for _ in range(count)]
        )
        uses = [sum(label in word for word in self.words) for label in range(5)]
        self.keep = tuple([k for k in range(5) if uses[k] == 1 or (uses[k] and rng.random() < 0.3)])

    def labels(self, some: frozenset[int]) -> set[int]:
        """Of the product of some operands."""
        others = [self.words[k] for k in range(self.count) if k not in some]
        return {i for k in some for i in self.words[k]} & set(self.keep).union(*others)

    def size(self, labels: set[int]) -> float:
        return float(np.prod([float(self.extents[i]) for i in labels]))

    def time(self, tree: Tree, free: frozenset[int], known: Sequence[frozenset[int]]) -> float:
        """Of a tree; products that are known, or of free operands only, take none."""
        whole = leaves(tree)
        if isinstance(tree, int) or whole in known or whole <= free:
            return 0.0
        one, two, out = (self.labels(s) for s in (*map(leaves, tree), whole))
        time = MACHINE.read * (self.size(one) + self.size(two)) + MACHINE.write * self.size(out)
        if one | two != out:
            time += self.size(one | two) / MACHINE.gemm
        return time + sum(self.time(side, free, known) for side in tree)

    def least(self, free: frozenset[int] = frozenset(), known: Any = ()) -> float:
        return min(self.time(tree, free, known) for tree in trees(tuple(range(self.count))))

    def tree(self, path: Path) -> Tree:
        made: list[Tree] = list(range(self.count))
        for i, j in path.pairs:
            made.append((made[i], made[j]))
        assert leaves(made[-1]) == {*range(self.count)}
        return made[-1]


class Selected(Product):
    """A random product of which some operands are tables: labels that are chosen by the others."""

    def __init__(self, rng: random.Random, count: int) -> None:
        super().__init__(rng, count)
        tables = rng.sample(range(count), rng.randint(1, 2))
        self.words = tuple(
            [tuple(rng.sample(range(5), rng.randint(2, 3))) if k in tables else word
             for k, word in enumerate(self.words)]
        )  # fmt: skip
        uses = [sum(label in word for word in self.words) for label in range(5)]
        self.keep = tuple([k for k in range(5) if uses[k] == 1 or (uses[k] and rng.random() < 0.3)])
        self.chosen = tuple([int(k in tables) for k in range(count)])

    def table(self, tree: Tree) -> tuple[set[int], set[int]] | None:
        """Places and chosen labels of a tree that is a table still; of others None."""
        if isinstance(tree, int):
            *places, chosen = self.words[tree]
            return ({*places}, {chosen}) if self.chosen[tree] else None
        one, two = map(self.table, tree)
        if one is None or two is None or one[1] & two[1]:
            return None
        places, chosen = one[0] | two[0], one[1] | two[1]
        return None if places & chosen else (places, chosen)

    def read(self, tree: Tree) -> set[int]:
        """The labels with which a tree is read: a table keeps all."""
        held = self.table(tree)
        return self.labels(leaves(tree)) if held is None else held[0] | held[1]

    def time(self, tree: Tree, free: Any = (), known: Any = ()) -> float:
        """A table gathers entries or adds them at places: of two, one of them is written out."""
        if isinstance(tree, int):
            return 0.0
        before = sum(map(self.time, tree))
        sides, out = [self.read(side) for side in tree], self.labels(leaves(tree))
        tables = [self.table(side) for side in tree]
        if tables == [None, None]:
            time = MACHINE.read * sum(map(self.size, sides)) + MACHINE.write * self.size(out)
            one, two = sides
            return before + time + (self.size(one | two) / MACHINE.gemm if one | two != out else 0)
        if self.table(tree) is not None:
            return before + 1
        places, chosen = tables[0] or tables[1] or (set(), set())
        other = sides[0 if tables[0] is None else 1]
        extra = self.size(other) if None not in tables else 0
        return (
            before + extra + MACHINE.lookup * self.size((other | places) - chosen) + self.size(out)
        )


@SEEDS
def test_paths_with_tables_take_the_least_time(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(3):
        p = Selected(rng, rng.randint(2, 4))
        n = p.count
        given = ContractionOperands(p.words, tuple(range(n)), ((),) * n, p.chosen)
        path = contraction_path(given, p.keep, p.extents)
        assert path.time == pytest.approx(p.time(p.tree(path)))
        if n > 2:
            assert path.time == pytest.approx(min(map(p.time, trees(tuple(range(n))))))


@SEEDS
def test_paths_take_the_least_time(seed: int) -> None:
    """Also where products are there already, or are made once as what they read never changes."""
    rng = random.Random(seed)
    p = Product(rng, rng.randint(3, 5))
    n = p.count
    apart = ContractionOperands(p.words, tuple(range(n)), ((),) * n)
    path = contraction_path(apart, p.keep, p.extents)
    assert path.time == pytest.approx(p.least())
    assert p.time(p.tree(path), frozenset(), ()) == pytest.approx(path.time)

    pair = frozenset(rng.sample(range(n), 2))
    triple = pair | {rng.choice([k for k in range(n) if k not in pair])}
    known = [pair, triple][: rng.randint(1, 2)]
    halves = tuple([(bits(s), bits(pair if len(s) > 2 else [min(s)])) for s in known])
    path = contraction_path(apart, p.keep, p.extents, halves)
    assert path.time == pytest.approx(p.least(known=known))
    assert p.time(p.tree(path), frozenset(), known) == pytest.approx(path.time)
    if triple == leaves(p.tree(path)) and triple in known:
        assert pair in map(leaves, p.tree(path))

    free = frozenset(rng.sample(range(n), rng.randint(2, n - 1)))
    path = contraction_path(apart._replace(fixed=bits(free)), p.keep, p.extents)
    assert path.time == pytest.approx(p.least(free))
    assert p.time(p.tree(path), free, ()) == pytest.approx(path.time)


@SEEDS
def test_products_of_the_same_arrays_are_made_once(seed: int) -> None:
    """Read with the labels of the path they are the whole; equal products count once."""
    rng = random.Random(seed)
    n = rng.randint(4, 6)
    ends = [rng.sample(range(4), 2) for _ in range(n)]
    arrays = tuple([rng.randint(0, 1) for _ in range(n)])  # 0 is symmetric
    words, keep = tuple([tuple(word) for word in ends]), tuple(rng.sample(range(4), 1))
    symmetries: Any = tuple([((1, 0),) if not a else () for a in arrays])
    given = ContractionOperands(words, arrays, symmetries)
    path = contraction_path(given, keep, (3,) * 4)
    values = np.random.default_rng(seed).integers(-2, 3, (2, 3, 3))
    values[0] += values[0].T
    entries = [arg for k in range(n) for arg in (values[arrays[k]], words[k])]
    spelled = [arg for k in range(n) for arg in (values[arrays[k]], path.words[k])]
    kept = tuple([k for k in keep if any(k in word for word in words)])
    np.testing.assert_array_equal(np.einsum(*entries, kept), np.einsum(*spelled, kept))
    apart = contraction_path(given._replace(arrays=tuple(range(n))), keep, (3,) * 4)
    assert path.time <= apart.time * (1 + 1e-9)
    p = Product(rng, n)
    p.words, p.keep, p.extents = path.words, keep, (3,) * 5
    once: dict[Any, float] = {}

    def alike(tree: Tree) -> tuple[Any, ...]:
        """The operands of a tree, labels by where they first stand, and those that are kept."""
        order = flat(tree)
        names: dict[int, int] = {}
        for k in order:
            for label in path.words[k]:
                names.setdefault(label, len(names))
        read = [(arrays[k], *[names[i] for i in path.words[k]]) for k in order]
        return *read, frozenset([names[i] for i in p.labels(leaves(tree))])

    def flat(tree: Tree) -> list[int]:
        return [tree] if isinstance(tree, int) else flat(tree[0]) + flat(tree[1])

    def count(tree: Tree) -> None:
        if not isinstance(tree, int):
            inside = sum(p.time(side, frozenset(), ()) for side in tree)
            once[alike(tree)] = p.time(tree, frozenset(), ()) - inside
            count(tree[0])
            count(tree[1])

    count(p.tree(path))
    assert sum(once.values()) <= path.time * (1 + 1e-9)


# --- renamings ------------------------------------------------------------------------------------


def renamings(given: ContractionOperands, one: Any, two: Any, kept: Any) -> Iterator[Any]:
    """All ways in which the second set is the first one under other labels, tried one by one."""
    for partners in itertools.permutations(two):
        turns = [[(*range(len(given.words[k])),), *given.symmetries[k]] for k in partners]
        for turned in itertools.product(*turns):
            words = [
                tuple([given.words[k][p] for p in turn])
                for k, turn in zip(partners, turned, strict=True)
            ]
            named = {
                (a, b)
                for k, word in zip(one, words, strict=True)
                for a, b in zip(given.words[k], word, strict=False)
            }
            same = [given.arrays[k] for k in one] == [given.arrays[k] for k in partners]
            lengths = [len(given.words[k]) for k in one] == [len(word) for word in words]
            injective = len(named) == len({a for a, _ in named}) == len({b for _, b in named})
            ends = all((kept[0] >> a & 1) == (kept[1] >> b & 1) for a, b in named)
            if same and lengths and injective and ends:
                yield dict(zip(one, partners, strict=True)), dict(zip(one, words, strict=True))


@pytest.mark.parametrize("seed", range(10))
def test_renamings_are_those_that_there_are(seed: int) -> None:
    rng, seen = random.Random(seed), set()
    for _ in range(60):
        axes = [rng.randint(1, 3) for _ in range(3)]
        arrays = tuple([rng.randint(0, 1) for _ in range(6)])
        words = tuple([tuple(rng.sample(range(5), axes[a])) for a in arrays])
        turns: list[tuple[Labels, ...]] = [
            tuple(rng.sample(list(itertools.permutations(range(n)))[1:], n > 1)) for n in axes
        ]
        given = ContractionOperands(words, arrays, tuple([turns[a] for a in arrays]))
        count = rng.randint(1, 3)
        one, two = list(range(count)), [3 + k for k in range(count)]
        kept = tuple([bits([i for i in range(5) if rng.random() < 0.3]) for _ in range(2)])
        kept = kept if rng.random() < 0.5 else (0, 0)
        found, ways = isomorphism(given, one, two, kept), [*renamings(given, one, two, kept)]
        seen.add(found is None)
        assert (found is None) == (not ways)
        assert found is None or (dict(found.partners), dict(found.words)) in ways
    assert len(seen) == 2


# --- chains ---------------------------------------------------------------------------------------


def chains(words: Sequence[Labels], keep: Labels, extents: Sequence[int]) -> Iterator[Any]:
    """All orders in which operands are a chain, and the extents between them."""
    uses = [sum(label in word for word in words) for label in range(len(extents))]
    if any(n > 2 or (n == 2 and label in keep) for label, n in enumerate(uses)):
        return
    for order in itertools.permutations(range(len(words))):
        sets = [set(words[k]) for k in order]
        bonds = [one & two for one, two in itertools.pairwise(sets)]
        ring = sets[0] & sets[-1]
        apart = itertools.combinations(range(len(sets)), 2)
        far = any(sets[i] & sets[j] for i, j in apart if 1 < j - i < len(sets) - 1)
        if far or not all(bonds) or any(s & set(keep) for s in sets[1:-1]):
            continue
        size = lambda some: float(np.prod([float(extents[i]) for i in some]))  # noqa: E731
        if ring and any(size(bond) < size(ring) for bond in bonds):
            continue
        ends = [size(ring) * size(s & set(keep)) for s in (sets[0], sets[-1])]
        yield [*order], [ends[0], *map(size, bonds), ends[1]]


@pytest.mark.parametrize("seed", range(10))
def test_chains_are_those_that_there_are(seed: int) -> None:
    rng, seen = random.Random(seed), set()
    for _ in range(40):
        count = rng.randint(3, 5)
        kind, names = rng.choice(["row", "ring", "any"]), rng.sample(range(9), 9)
        sets: list[set[int]] = [set() for _ in range(count)]
        for k in range(count - (kind == "row")):
            for name in (names[k], *[names[5 + k % 2]][: rng.random() < 0.2]):
                sets[k].add(name)
                sets[(k + 1) % count if kind != "any" else rng.randrange(count)].add(name)
        if rng.random() < 0.5:
            sets[rng.choice([0, count - 1, rng.randrange(count)])].add(names[8])
        if min(map(len, sets)) == 0:
            continue
        uses = [sum(label in s for s in sets) for label in range(9)]
        more = [k for k in range(9) if uses[k] == 2 and rng.random() < 0.02]
        keep = tuple([k for k in range(9) if uses[k] == 1] + more)
        extents = rng.sample([2, 3, 5, 7, 11, 13, 17, 19, 23], 9)  # of no ring two cuts are alike
        words = [tuple(rng.sample(sorted(s), len(s))) for s in rng.sample(sets, count)]
        found, ways = chain_of(words, keep, extents), [*chains(words, keep, extents)]
        seen.add((kind, found is None))
        assert not ways or found is not None
        assert found is None or ([*found.order], [*found.extents]) in ways
    assert len(seen) > 3
