"""Products that are there, nested ones, shared ones, and those between inverses, at random."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.contraction.congruences import between
from tcalc.contraction.known_products import MAX_KNOWN, known_products
from tcalc.contraction.nested import flatten
from tcalc.contraction.paths import EXACT_OPERANDS
from tcalc.contraction.shared_products import shared_products
from tcalc.graph.factors import Factors
from tcalc.graph.nodes import Einsum, Expr, postorder
from tests.test_paths import SEEDS, bits


@SEEDS
def test_products_that_are_there_are_found(seed: int) -> None:
    """Pairs, and pairs of these, each with one half, and asked for with the labels of the rest."""
    rng = random.Random(seed)
    n = rng.randint(2, 6)
    words = [tuple(rng.sample(range(6), 2)) for _ in range(n)]
    out = rng.sample(range(6), 2)
    subsets = [frozenset(s) for size in (1, 2, 3) for s in itertools.combinations(range(n), size)]
    apart = [{a, b} for a, b in itertools.combinations(subsets, 2) if not a & b]
    made = rng.sample(apart, min(len(apart), rng.choice([2, 10, 200])))
    kept = [s for s in made if rng.random() < 0.8]

    def product(one: Any, two: Any, labels: set[int]) -> Any:
        rest = [words[k] for k in range(n) if k not in one | two]
        assert labels == {*out, *itertools.chain(*rest)}
        return one | two if {one, two} in kept else None

    operands = [frozenset([k]) for k in range(n)]
    found = known_products(operands, words, out, lambda one, two: {one, two} in made, product)
    there = {*operands}
    while more := {frozenset.union(*s) for s in kept if s <= there} - there:
        there |= more
    for both, known in found.items():
        assert bits(known.operand) == both
        halves = {frozenset(k for k in range(n) if half >> k & 1) for half in
                  (known.half, both ^ known.half)}  # fmt: skip
        assert halves in kept
        assert halves <= there
    assert len(found) >= min(MAX_KNOWN, len(there) - n)
    assert len(found) < MAX_KNOWN + len(there)


def value(whole: Factors, data: dict[str, np.ndarray]) -> Any:
    """Of factors, by NumPy."""
    entries = [arg for op, word in whole.operands for arg in (evaluated(op, data), word)]
    return np.einsum(*entries, whole.out) * float(whole.coef.value)


def evaluated(e: Expr, data: dict[str, np.ndarray]) -> Any:
    """A product of products, by NumPy."""
    if not isinstance(e, Einsum):
        return data[str(e)]
    entries = [
        arg for a, word in zip(e.args, e.labels, strict=True) for arg in (evaluated(a, data), word)
    ]
    return np.einsum(*entries, e.out) * float(e.coef.value)


@SEEDS
def test_nested_products_are_flattened(seed: int) -> None:
    """To the same number, to so many kinds of operands, and as far as that allows."""
    rng = random.Random(seed)
    data = {f"A{k}": np.random.default_rng(k).normal(size=(2, 2)) for k in range(12)}
    parts: list[Expr] = [tc.var(name, (2, 2)) for name in data][: rng.choice([5, 8, 9, 12])]
    total = len(parts)
    while len(parts) > 1:
        k = rng.randrange(len(parts) - 1)
        spec = rng.choice(["ij,jk->ik", "ij,kj->ik", "ji,jk->ki"])
        parts[k : k + 2] = [tc.einsum(spec, parts[k], parts[k + 1])]
    (e,) = parts
    assert isinstance(e, Einsum)
    shut = rng.choice([a for a in postorder([e]) if isinstance(a, Einsum)])
    for opens in (lambda a: True, lambda a: a is not shut):
        found = flatten(e, opens, int, long=False)
        np.testing.assert_allclose(value(found, data), evaluated(e, data))
        kinds = {frozenset(word) for _, word in found.operands}
        assert len(kinds) <= EXACT_OPERANDS
        left = [op for op, _ in found.operands if isinstance(op, Einsum) and opens(op)]
        assert not left or total > EXACT_OPERANDS


#: Products with names of arrays, and how many of their products are shared.
SHARED: list[tuple[list[tuple[str, str]], int]] = [
    ([("ij,ij,jk->ik", "ABC"), ("ij,ij,jk->ik", "ABD")], 1),
    ([("ij,ij,jk->ik", "ABC"), ("kl,kl,lm->mk", "BAD")], 1),
    ([("ij,ij,jk->ik", "ABC"), ("ij,ij,jk->ik", "ACD")], 0),
    ([("ij,ij,jk->ik", "ABC"), ("ij,ji,jk->ik", "ABD")], 0),
    ([("ij,jk,k->i", "ABu"), ("ij,jk,k->i", "CBu")], 1),
    ([("ij,jk,k->i", "ABu"), ("ij,kj,k->i", "CBu")], 0),
    ([("ij,jk,k->i", "ABu"), ("ij,jk,k->i", "ABu")], 0),
    ([("ijk,ijk,k->ij", "STu"), ("ijk,ijk,k->ij", "STv")], 0),  # larger than all that is made
    ([("ijk,ijk,k->ij", "STu"), ("ijk,ijk,kl->ijl", "STA")], 1),
    ([("ij,ij,j->i", "ABu"), ("ij,ij,j->i", "ABv"), ("ij,ij,i->j", "ABu")], 0),
    ([("ij,ij,j->", "ABu"), ("ij,ij,j->", "ABv")], 1),  # i is summed at once
    ([("ij,ij,jk->ik", "ABC"), ("ij,jk,kl->il", "ABC")], 0),
]


@pytest.mark.parametrize("case", range(len(SHARED)))
def test_what_several_products_need_is_one_node(case: int) -> None:
    products, count = SHARED[case]
    rng = np.random.default_rng(case)
    data = {name: rng.normal(size=(4,) * (3 if name in "ST" else 1 if name in "uv" else 2))
            for name in "ABCDSTuv"}  # fmt: skip
    variables = {name: tc.var(name, array.shape) for name, array in data.items()}
    roots = [tc.einsum(spec, *[variables[k] for k in names]) for spec, names in products]
    found = shared_products(roots, lambda uses: lambda e: True, int)
    for e, (spec, names) in zip(found, products, strict=True):
        np.testing.assert_allclose(evaluated(e, data), np.einsum(spec, *[data[k] for k in names]))
    reads = Counter([a for e in postorder(found) for a in e.args if isinstance(a, Einsum)])
    assert sum(n > 1 for n in reads.values()) == count
    assert shared_products(found, lambda uses: lambda e: False, int) == found


@SEEDS
def test_what_stands_between_inverses_is_found(seed: int) -> None:
    """One matrix on both sides of all others, which meet nothing else of it."""
    rng, seen = random.Random(seed), set()
    for _ in range(40):
        x, y = rng.choice([("X", "X"), ("X", "X"), ("X", "Y")])
        i, j, m, n, p = names = rng.sample(range(5), 5)
        sides = [(x, (i, m)), (y, (j, n))]
        if rng.random() < 0.3:
            sides[1] = y, tuple(rng.choices(names, k=2))
        others: list[Any] = [
            (name, tuple(rng.sample(names, 2) if rng.random() < 0.3 else word))
            for name, word in (("B", (m, n)), ("c", (m,)), ("D", (n, p)))
        ]
        others = rng.sample(others, rng.randint(1, 3))
        out = tuple([k for k in (i, j, p) if rng.random() < 0.9])
        operands = rng.sample([*sides, *others], len(others) + 2)
        inverses = [operands.index(side) for side in sides]
        found = between(operands, sorted(set(inverses)), out)
        (a, b), (c, d) = sides[0][1], sides[1][1]
        inner = {label for _, word in others for label in word}
        right = (
            x == y and len({a, b, c, d}) == 4 and {a, c} <= {*out} and not {b, d} & {*out}
            and not {a, c} & inner and any({b, d} <= {*word} for _, word in others)
        )  # fmt: skip
        seen.add(right)
        assert (found is not None) == right
        if found is not None:
            first = operands[found.inverse][1]
            assert {first, (found.outer[1], found.inner[1])} == {sides[0][1], sides[1][1]}
            assert first == (found.outer[0], found.inner[0])
            assert [operands[k] for k in found.rest] == [o for o in operands if o not in sides]
            word = found.word([word for _, word in operands], out)
            assert {*word} == (inner & {*out}) | {*found.inner}
    assert len(seen) == 2
